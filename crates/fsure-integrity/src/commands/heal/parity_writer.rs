//! Writes the groups of recovery data, and tells which of them are still as they are to
//! be.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fsure_os::opener::Opener;
use fsure_os::path as os_path;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;
use fsure_os::user_file;

use super::proof::RecordProof;
use super::source_reader::{
    HealAttempt, HealFailure, OrUnhealed as _, SourceFile, SourceReader, reader,
};
use crate::catalog::{Catalog, Row, StoredRow};
use crate::model::{HealSource, ProtectOutcome, ScanMonitor};
use crate::parity;
use crate::parity::{GroupFile, GroupHeader, GroupHeaderInfo, Member, ParityGroup, SHARD};
use fsure_core::block_hash::BLOCK;
use fsure_core::{Error, KEEPING_RECOVERY_DATA, RelPath, Result};

/// Groups of one file that come to their names together, where only the whole
/// of it is proven.
const TOGETHER_MAX: usize = 64;

/// Keeps the recovery data of one root.
pub(super) struct ParityWriter<'a> {
    pub(super) folder: PathBuf,
    opener: Opener,
    pub(super) reader: SourceReader<'a>,
    monitor: &'a dyn ScanMonitor,
    per_mille: u32,
    /// True if all recovery data are read and checked.
    checks: bool,
    pub(super) done: ProtectOutcome,
    /// Files whose content is not what is recorded.
    pub(super) left_out: HashSet<RelPath>,
}

impl<'a> ParityWriter<'a> {
    pub(super) fn new(
        folder: PathBuf,
        root: &Arc<Root>,
        (per_mille, checks, is_dry_run): (u32, bool, bool),
        monitor: &'a dyn ScanMonitor,
    ) -> Result<Self> {
        Ok(Self {
            folder,
            opener: Opener::new(Arc::clone(root), ReadMode::Direct),
            reader: reader(monitor)?,
            monitor,
            per_mille,
            checks,
            done: ProtectOutcome { per_mille, is_dry_run, ..ProtectOutcome::default() },
            left_out: HashSet::new(),
        })
    }

    /// Removes groups that never got their name.
    pub(super) fn remove_halves(&self) -> io::Result<()> {
        if self.done.is_dry_run {
            return Ok(());
        }
        for name in user_file::names(&self.folder)? {
            if name.windows(8).any(|part| part == b".making-") {
                os_path::remove(&self.folder.join(os_path::from_bytes(&name)), false);
            }
        }
        Ok(())
    }

    /// Keeps the groups of a large file, or makes anew what is not as it should
    /// be: all of them where only the whole of the file is proven.
    pub(super) fn keep_own(&mut self, row: Row, catalog: &mut Catalog) -> HealAttempt<()> {
        let names = (0..).map(|number| parity::own_name(&row.record.path, number));
        let (mut kept, mut left, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for group in own_members(&row).into_iter().zip(names) {
            match self.as_wanted(&group.1, std::slice::from_ref(&group.0)) {
                Some(claim) => kept.push(claim),
                None => left.push(group.clone()),
            }
            all.push(group);
        }
        if left.is_empty() {
            kept.iter().for_each(|claim| self.count_kept(claim));
            return Ok(());
        }
        let path = row.record.path.clone();
        let recorded = RecordProof::of(row, catalog)?;
        let made = match recorded.is_by_blocks() {
            true => {
                kept.iter().for_each(|claim| self.count_kept(claim));
                self.make_own(&recorded, &left)
            }
            false => self.make_own(&recorded, &all),
        };
        match made {
            Err(HealFailure::Unhealed(why)) => {
                self.leave_out(path, &why);
                Ok(())
            }
            other => other,
        }
    }

    fn make_own(&mut self, recorded: &RecordProof, groups: &[(Member, String)]) -> HealAttempt<()> {
        if self.done.is_dry_run {
            groups.iter().for_each(|(member, _)| self.plan(vec![member.clone()]));
            return Ok(());
        }
        let path = &recorded.row.record.path;
        let file = SourceFile::open(HealSource::Itself, &self.opener, path.as_bytes());
        let file = file.or_unhealed("open it")?;
        let by_blocks = recorded.is_by_blocks();
        if !by_blocks && groups.len() > TOGETHER_MAX {
            return Err(HealFailure::Unhealed("its blocks are not recorded".to_owned()));
        }
        if !by_blocks && !self.reader.has_whole(recorded, &file, &mut Default::default())? {
            return Err(HealFailure::Unhealed("it is not as recorded".to_owned()));
        }
        let mut whole = blake3::Hasher::new();
        let mut drafts = Vec::new();
        for (member, name) in groups {
            let mut data = vec![0; parity::shards(member.length) as usize * SHARD];
            for (number, part) in
                data[..member.length as usize].chunks_mut(BLOCK as usize).enumerate()
            {
                self.reader.go_on()?;
                let offset = member.offset + number as u64 * BLOCK;
                let read = self.reader.read(&file, offset, part.len() as u64);
                let read = read.or_unhealed("read it")?;
                let is_proven = !by_blocks || recorded.proves_block(offset / BLOCK, read);
                if read.len() < part.len() || !is_proven {
                    return Err(HealFailure::Unhealed("it is not as recorded".to_owned()));
                }
                part.copy_from_slice(read);
                whole.update(part);
                self.done.bytes_read += part.len() as u64;
            }
            let draft = self.write(name, vec![member.clone()], &data)?;
            if by_blocks { self.publish(draft)? } else { drafts.push(draft) }
        }
        let blake3 = recorded.row.record.digests.blake3.filter(|_| !by_blocks);
        if blake3.is_some_and(|blake3| blake3 != *whole.finalize().as_bytes()) {
            return Err(HealFailure::Unhealed("it changed while it was read".to_owned()));
        }
        drafts.into_iter().try_for_each(|draft| self.publish(draft))
    }

    /// Reads a small file, if it is as recorded.
    pub(super) fn read_small(&mut self, recorded: &RecordProof) -> HealAttempt<Vec<u8>> {
        let (path, size) = (&recorded.row.record.path, recorded.row.record.entry.size);
        let file = SourceFile::open(HealSource::Itself, &self.opener, path.as_bytes());
        let file = file.or_unhealed("open it")?;
        let is_whole = file.stat.size == size
            && self.reader.has_whole(recorded, &file, &mut Default::default())?;
        self.done.bytes_read += size;
        match is_whole {
            true => Ok(self.reader.last(size).to_vec()),
            false => Err(HealFailure::Unhealed("it is not as recorded".to_owned())),
        }
    }

    /// Reports a file that has no recovery data of what is recorded.
    pub(super) fn leave_out(&mut self, path: RelPath, why: &str) {
        self.monitor.warn(&format!("{}: {why}: no recovery data were made of it", path.display()));
        self.done.left_out += 1;
        self.left_out.insert(path);
    }

    /// A group, if it is of these members and has the redundancy that is wanted.
    pub(super) fn as_wanted(&mut self, name: &str, members: &[Member]) -> Option<GroupHeaderInfo> {
        let file = self.folder.join(name);
        if !os_path::exists(&file) {
            return None;
        }
        let (claim, is_sound) = match self.checks {
            true => match ParityGroup::read(&file) {
                Ok(group) => (Some(group.header.claim()), group.is_sound),
                Err(_) => (None, false),
            },
            false => (GroupHeaderInfo::read(&file).ok(), true),
        };
        if claim.is_none() || !is_sound {
            let made = if self.done.is_dry_run { "would be made" } else { "is made" };
            self.monitor.warn(&format!("{} is damaged, and {made} again", file.display()));
            self.done.damaged += 1;
        }
        claim.filter(|claim| {
            let wanted = parity::recovery_count(claim.data, self.per_mille);
            is_sound && claim.members == members && claim.recovery == wanted
        })
    }

    pub(super) fn count_kept(&mut self, claim: &GroupHeaderInfo) {
        self.done.kept += 1;
        self.count(claim);
    }

    /// Counts a group that would be made, as if its files were as recorded.
    pub(super) fn plan(&mut self, members: Vec<Member>) {
        let length = members.iter().map(|member| member.length).sum();
        let data = parity::shards(length);
        let recovery = parity::recovery_count(data, self.per_mille);
        let claim = GroupHeaderInfo { members, data, recovery };
        self.done.bytes_read += length;
        self.done.bytes_written += claim.file_length();
        self.done.made += 1;
        self.count(&claim);
    }

    /// Writes a group that has no name yet.
    pub(super) fn write(
        &mut self,
        name: &str,
        members: Vec<Member>,
        data: &[u8],
    ) -> HealAttempt<(GroupFile, GroupHeader)> {
        let shards = (data.len() / SHARD) as u32;
        let code = parity::encode(data, parity::recovery_count(shards, self.per_mille));
        let no_code = || HealFailure::Fatal(Error::Internal("a group has no code".to_owned()));
        let code = code.ok_or_else(no_code)?;
        let header = GroupHeader::new(members, data, &code);
        let written = GroupFile::write(&self.folder.join(name), &header, &code);
        let (file, length) = written.map_err(|error| HealFailure::Fatal(self.full(&error)))?;
        self.done.bytes_written += length;
        Ok((file, header))
    }

    /// Gives a group its name.
    pub(super) fn publish(&mut self, (file, header): (GroupFile, GroupHeader)) -> HealAttempt<()> {
        file.finish().map_err(|error| HealFailure::Fatal(self.full(&error)))?;
        self.done.made += 1;
        self.count(&header.claim());
        Ok(())
    }

    fn full(&self, error: &io::Error) -> Error {
        not_kept(&self.folder, error)
    }

    fn count(&mut self, claim: &GroupHeaderInfo) {
        self.done.space += claim.file_length();
        for member in &claim.members {
            self.done.files += u64::from(member.offset == 0);
            self.done.bytes += member.length;
        }
    }

    /// Deletes the groups of large files that are not recorded any more.
    pub(super) fn delete_gone(&mut self, catalog: &mut Catalog) -> HealAttempt<()> {
        for name in parity::names(&self.folder, ".own").or_unhealed("list it")? {
            let file = self.folder.join(&name);
            let claimed = GroupHeaderInfo::read(&file).map(|claim| claim.members);
            if claimed.is_ok_and(|members| is_recorded(&members, catalog)) {
                continue;
            }
            // Nothing is deleted because of a flipped byte; a group that cannot be
            // read is made anew if it is wanted.
            let Ok(header) = parity::read_header(&file) else { continue };
            if !is_recorded(&header.members, catalog) {
                self.delete(&name);
            }
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, name: &str) {
        if !self.done.is_dry_run {
            os_path::remove(&self.folder.join(name), false);
        }
        self.done.deleted += 1;
    }
}

/// Returns true if a group is of a large file as it is recorded, or of one that
/// cannot be checked: its row is bad, or cannot be read.
fn is_recorded(members: &[Member], catalog: &mut Catalog) -> bool {
    let Some(member) = members.first() else { return false };
    match catalog.get(&member.path) {
        Ok(Some(StoredRow::Sound(row))) => is_wanted(&row) && own_members(&row).contains(member),
        Ok(None) => false,
        Ok(Some(StoredRow::Bad(_))) | Err(_) => true,
    }
}

/// Returns true if there is content to be protected, and a size and a digest to prove
/// it by: a list has no size that could be relied on.
pub(super) fn is_wanted(row: &Row) -> bool {
    let record = &row.record;
    row.is_live_file()
        && record.entry.size > 0
        && !record.entry.is_undated()
        && record.digests.algorithms().bits() != 0
}

fn own_members(row: &Row) -> Vec<Member> {
    let record = &row.record;
    let size = record.entry.size;
    let starts = (0..size).step_by(parity::OWN_MAX as usize);
    let member = |offset| Member {
        path: record.path.clone(),
        size,
        offset,
        length: parity::OWN_MAX.min(size - offset),
        identity: parity::identity(&record.digests),
    };
    if size > BLOCK { starts.map(member).collect() } else { Vec::new() }
}

/// Returns the error of recovery data that cannot be kept.
pub(super) fn not_kept(folder: &Path, error: &io::Error) -> Error {
    Error::Io { doing: KEEPING_RECOVERY_DATA, path: folder.to_owned(), source: copy_of(error) }
}

fn copy_of(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
