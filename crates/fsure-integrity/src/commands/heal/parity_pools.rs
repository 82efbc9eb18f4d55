//! The groups of small files. Each holds a stretch of the record in the order of
//! paths, up to where the next begins: so the group of a file is found with one pool
//! and one stretch in memory.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use super::parity_writer::ParityWriter;
use super::proof::RecordProof;
use super::source_reader::{HealAttempt, HealFailure, OrUnhealed as _};
use crate::catalog::Row;
use crate::parity;
use crate::parity::{GroupHeaderInfo, Member, POOL_FILES_MAX, POOL_MAX, SHARD};
use fsure_core::RelPath;

/// Pools and the stretch of the record that is being compared with one.
pub(super) struct Pools {
    /// The first paths of those there were, in order, and their names.
    known: Vec<(RelPath, String)>,
    /// Index of the known pool that this stretch belongs to.
    place: usize,
    stretch: Vec<(Member, Row)>,
    bytes: u64,
    /// True if some of the stretch was too much for one pool.
    is_cut: bool,
    /// Pools that are replaced.
    stale: Vec<String>,
}

impl Pools {
    pub(super) fn open(keeper: &mut ParityWriter<'_>) -> HealAttempt<Self> {
        let (mut known, mut stale) = (Vec::new(), Vec::new());
        for name in parity::names(&keeper.folder, ".pool").or_unhealed("list it")? {
            let claim = GroupHeaderInfo::read(&keeper.folder.join(&name));
            match claim.ok().and_then(|claim| claim.members.into_iter().next()) {
                Some(first) => known.push((first.path, name)),
                None => {
                    keeper.done.damaged += 1;
                    stale.push(name);
                }
            }
        }
        known.sort();
        let stretch = Vec::new();
        Ok(Self { known, place: 0, stretch, bytes: 0, is_cut: false, stale })
    }

    /// Takes the next small file of the record.
    pub(super) fn take(&mut self, keeper: &mut ParityWriter<'_>, row: Row) -> HealAttempt<()> {
        let record = &row.record;
        while self.known.get(self.place + 1).is_some_and(|(first, _)| *first <= record.path) {
            self.end(keeper)?;
        }
        let size = record.entry.size;
        if self.bytes + size > POOL_MAX || self.stretch.len() >= POOL_FILES_MAX {
            self.is_cut = true;
            self.make(keeper)?;
        }
        let member = Member {
            path: record.path.clone(),
            size,
            offset: 0,
            length: size,
            identity: parity::identity(&record.digests),
        };
        self.bytes += size;
        self.stretch.push((member, row));
        Ok(())
    }

    /// Ends the stretch of one pool: the pool stays as it was, or it is made anew.
    fn end(&mut self, keeper: &mut ParityWriter<'_>) -> HealAttempt<()> {
        if let Some((_, name)) = self.known.get(self.place) {
            let members: Vec<_> = self.stretch.iter().map(|(member, _)| member.clone()).collect();
            match keeper.as_wanted(name, &members).filter(|_| !self.is_cut) {
                Some(claim) => {
                    keeper.count_kept(&claim);
                    self.stretch.clear();
                    self.bytes = 0;
                }
                None => self.stale.push(name.clone()),
            }
        }
        self.make(keeper)?;
        self.place += 1;
        self.is_cut = false;
        Ok(())
    }

    fn make(&mut self, keeper: &mut ParityWriter<'_>) -> HealAttempt<()> {
        self.bytes = 0;
        if keeper.done.is_dry_run && !self.stretch.is_empty() {
            let stretch = std::mem::take(&mut self.stretch);
            keeper.plan(stretch.into_iter().map(|(member, _)| member).collect());
            return Ok(());
        }
        let (mut members, mut data) = (Vec::new(), Vec::new());
        for (member, row) in std::mem::take(&mut self.stretch) {
            let recorded = RecordProof::whole(row);
            match keeper.read_small(&recorded) {
                Ok(content) => {
                    data.extend(content);
                    members.push(member);
                }
                Err(HealFailure::Unhealed(why)) => keeper.leave_out(member.path, &why),
                Err(other) => return Err(other),
            }
        }
        if members.is_empty() {
            return Ok(());
        }
        data.resize(data.len().next_multiple_of(SHARD), 0);
        let name = format!("{:016x}.pool", RandomState::new().build_hasher().finish());
        let draft = keeper.write(&name, members, &data)?;
        keeper.publish(draft)
    }

    /// Deletes what was replaced, unless it is all there is for a file that is
    /// damaged now.
    pub(super) fn finish(mut self, keeper: &mut ParityWriter<'_>) -> HealAttempt<()> {
        self.end(keeper)?;
        while self.place < self.known.len() {
            self.end(keeper)?;
        }
        for name in self.stale {
            let header = parity::read_header(&keeper.folder.join(&name));
            let is_needed = header.is_ok_and(|header| {
                header.members.iter().any(|member| keeper.left_out.contains(&member.path))
            });
            if !is_needed {
                keeper.delete(&name);
            }
        }
        Ok(())
    }
}
