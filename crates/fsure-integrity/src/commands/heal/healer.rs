//! Treats one finding after the other: decides if it may be healed and by which
//! method, and updates the record and the report.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use fsure_os::opener::Opener;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;
use fsure_os::{DATE_NS_MAX, Stat};

use super::parity_rebuild::Parity;
use super::plan::SourcePlan;
use super::proof::RecordProof;
use super::replica::Replica;
use super::source_reader::{
    HealAttempt, HealFailure, OrUnhealed as _, SourceErrors, SourceFile, SourceReader, reader,
};
use super::{HEAL, HealOptions, OpenRoot};
use crate::catalog::{Catalog, OWN_FOLDER, RootLocation, Row, StoredRow};
use crate::model::{
    Changes, Entry, EntryKind, Finding, HealResult, HealSource, HealStatus, HealSummary, Record,
    ScanMonitor, Verdict, is_same_date,
};
use crate::scan::EntryBuilder;
use fsure_core::{Clock, RelPath, Result};

/// Heals the findings of one root, one at a time.
pub(super) struct Healer<'a> {
    pub(super) place: &'a RootLocation,
    pub(super) root: Arc<Root>,
    pub(super) opener: Opener,
    pub(super) catalog: &'a mut Catalog,
    pub(super) options: &'a HealOptions,
    pub(super) replicas: Rc<Vec<Replica>>,
    parity: Option<Parity>,
    pub(super) monitor: &'a dyn ScanMonitor,
    pub(super) reader: SourceReader<'a>,
    entries: EntryBuilder,
    pub(super) healing: HealSummary,
    /// Paths that are as recorded again.
    pub(super) healed: HashSet<RelPath>,
    /// Files that were written in place: other names of them are healed, too.
    pub(super) patched: HashSet<(u64, u64)>,
    /// Folder for what this run replaces; `None` before it has replaced anything.
    pub(super) room: Option<RelPath>,
    /// Folders that were made, and the dates they are to have in the end.
    pub(super) made_folders: Vec<(RelPath, i64)>,
    /// The number of the generation that the run makes, once it makes one.
    generation: Option<u64>,
}

/// A file that can be healed, and how.
pub(super) struct HealTask<'a> {
    pub(super) finding: &'a Finding,
    pub(super) recorded: RecordProof,
    pub(super) candidates: Vec<SourceFile>,
    pub(super) plan: SourcePlan,
    /// Metadata of the damaged file; `None` if the file is missing.
    pub(super) damaged: Option<Stat>,
}

impl<'a> Healer<'a> {
    pub(super) fn new(
        place: &'a RootLocation,
        open: &OpenRoot,
        catalog: &'a mut Catalog,
        options: &'a HealOptions,
        (replicas, parity): (Vec<Replica>, Option<Parity>),
        monitor: &'a dyn ScanMonitor,
    ) -> Result<Self> {
        Ok(Self {
            place,
            root: Arc::clone(&open.root),
            opener: Opener::new(Arc::clone(&open.root), ReadMode::Direct),
            catalog,
            options,
            replicas: Rc::new(replicas),
            parity,
            monitor,
            reader: reader(monitor)?,
            entries: EntryBuilder::default(),
            healing: HealSummary {
                is_dry_run: !options.does,
                is_in_place: options.in_place,
                ..HealSummary::default()
            },
            healed: HashSet::new(),
            patched: HashSet::new(),
            room: None,
            made_folders: Vec::new(),
            generation: None,
        })
    }

    /// Sets the total of the progress from the findings to treat.
    pub(super) fn expect(&mut self, findings: &[Finding]) {
        self.reader.gauge.expect(findings.iter().map(size).sum());
    }

    /// Does what can be done about a finding, and reports it.
    pub(super) fn heal_finding(&mut self, finding: &Finding) -> HealAttempt<()> {
        self.reader.go_on()?;
        self.reader.gauge.begin(&finding.path, size(finding));
        let mut remedy = HealResult {
            path: finding.path.clone(),
            kind: finding.kind,
            size: size(finding),
            verdict: finding.verdict,
            cure: if self.options.does { HealStatus::Healed } else { HealStatus::Healable },
            taken: Vec::new(),
            lacking: Vec::new(),
            kept: None,
            reason: None,
        };
        match self.try_to_heal(finding, &mut remedy) {
            Ok(()) if self.options.does => _ = self.healed.insert(finding.path.clone()),
            Ok(()) => {}
            Err(HealFailure::Unhealed(why)) => {
                remedy.cure = HealStatus::Unhealed;
                remedy.reason = Some(why);
            }
            Err(other) => return Err(other),
        }
        self.healing.unkept += u64::from(self.would_lose_an_edit(finding));
        self.healing.add(&remedy);
        self.monitor.remedy(&remedy);
        Ok(())
    }

    fn try_to_heal(&mut self, finding: &Finding, remedy: &mut HealResult) -> HealAttempt<()> {
        if let Some(why) = self.objection(finding) {
            return Err(HealFailure::Unhealed(why));
        }
        let recorded_as = finding.moved_from.as_ref().unwrap_or(&finding.path);
        let Some(StoredRow::Sound(row)) = self.catalog.get(recorded_as)? else {
            return Err(HealFailure::Unhealed("it is not recorded any more".to_owned()));
        };
        match row.record.entry.kind {
            EntryKind::File => self.heal_file(finding, row, remedy),
            _ => self.restore_name(finding, row, remedy),
        }
    }

    /// Returns the reason against healing a finding, whatever there is to heal it
    /// from; `None` if there is none.
    fn objection(&self, finding: &Finding) -> Option<String> {
        let is_missing = finding.verdict == Verdict::Missing;
        let why = match finding.verdict {
            _ if !is_beneath(&finding.path) => "its name leads out of the root",
            _ if self.would_lose_an_edit(finding) => {
                "it may be an edit, and is replaced only if what is there is kept: not with \
                 '--no-keep'"
            }
            Verdict::DamagedCopy if self.options.in_place && is_longer(finding) => {
                "it is longer than recorded, and in place its end is kept nowhere: without \
                 '--in-place' all of it is kept"
            }
            _ if self.options.in_place
                && self.must_keep_original(finding)
                && is_longer(finding) =>
            {
                "it is longer than recorded, and in place its end is kept nowhere: '--no-keep' \
                 cuts it off"
            }
            Verdict::Flaky => "its content is as recorded: check medium, cable and memory",
            _ if finding.kind != EntryKind::File && !is_missing => {
                "only what is missing is made anew, if it is no file"
            }
            _ if is_missing => return None,
            _ if finding.found.is_none() => "it cannot even be looked at",
            // Kept, or refused above.
            Verdict::DamagedCopy => return None,
            _ if !self.has_its_date(finding) => {
                "its date is not the recorded one: it may hold an edit that cannot be seen"
            }
            _ => return None,
        };
        Some(why.to_owned())
    }

    /// Returns true if nothing shows that a file was edited since it was recorded.
    fn has_its_date(&self, finding: &Finding) -> bool {
        let (Some(then), Some(now)) = (&finding.recorded, &finding.found) else { return false };
        let of = |entry: &Entry| self.catalog.granularity_ns(entry.file_system);
        let is_same = is_same_date(then.mtime_ns, now.mtime_ns, of(then).max(of(now)));
        // Beyond the range of dates, an edit shows by its change time only.
        let is_known = then.exact_mtime_ns().is_some() || then.same_change(now);
        then.is_undated() || is_same && is_known
    }

    fn heal_file(
        &mut self,
        finding: &Finding,
        row: Row,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let recorded = RecordProof::of(row, self.catalog)?;
        if recorded.row.record.digests.algorithms().bits() == 0 {
            return Err(HealFailure::Unhealed("no digest of it is recorded".to_owned()));
        }
        let damaged = match finding.verdict {
            Verdict::Missing => None,
            _ => Some(self.root.stat(finding.path.as_bytes()).or_unhealed("look at it")?),
        };
        if let Some(stat) = &damaged {
            if self.was_patched(stat, &finding.path, &recorded)? {
                remedy.reason = Some("healed under another of its names".to_owned());
                let now_ns = Clock::default().now_ns();
                self.record(&recorded.row, &finding.path, stat, now_ns)?;
                return Ok(self.catalog.commit()?);
            }
            require_as_found(stat, finding)?;
            self.require_way(stat, finding, &recorded)?;
        }
        let mut troubles = SourceErrors::default();
        let candidates = self.candidates(finding, &recorded.row, damaged.as_ref(), &mut troubles);
        let plan = self.plan(finding, &recorded, &candidates, &mut troubles, remedy)?;
        let work = HealTask { finding, recorded, candidates, plan, damaged };
        if !self.options.does {
            remedy.reason = self.must_keep_original(finding).then(super::keep_replaced::would_be);
            return Ok(());
        }
        if work.damaged.is_some() && self.options.in_place {
            self.patch(&work, remedy)
        } else {
            self.put_draft(&work, remedy)
        }
    }

    /// Returns true if a file was already healed in place under another name.
    fn was_patched(
        &mut self,
        stat: &Stat,
        path: &RelPath,
        recorded: &RecordProof,
    ) -> HealAttempt<bool> {
        if !self.patched.contains(&(stat.device, stat.inode)) {
            return Ok(false);
        }
        let itself = SourceFile::open(HealSource::Itself, &self.opener, path.as_bytes());
        let itself = itself.or_unhealed("read it")?;
        let is_of_size = recorded.size().is_none_or(|size| size == itself.stat.size);
        let mut troubles = SourceErrors::default();
        Ok(is_of_size && self.reader.has_whole(recorded, &itself, &mut troubles)?)
    }

    /// Refuses a file that cannot be written by the requested method.
    fn require_way(
        &self,
        stat: &Stat,
        finding: &Finding,
        recorded: &RecordProof,
    ) -> HealAttempt<()> {
        let names = stat.links as usize - self.kept_as(&finding.path, stat).len();
        if names > 1 && !self.options.in_place {
            return Err(HealFailure::Unhealed(format!(
                "it has {names} names, which a new file would split: '--in-place' writes into it"
            )));
        }
        if self.must_keep_original(finding) && !self.options.in_place {
            self.require_room(finding, stat)?;
        }
        if self.options.in_place && stat.mtime_ns.abs() == DATE_NS_MAX {
            return Err(HealFailure::Unhealed(
                "its date is beyond what '--in-place' can put back: a copy in its place keeps it"
                    .to_owned(),
            ));
        }
        if self.options.in_place && !super::in_place::can_patch(recorded) {
            return Err(HealFailure::Unhealed(
                "it cannot be healed in place: its blocks are not recorded".to_owned(),
            ));
        }
        Ok(())
    }

    /// The places that may have the content: the file itself first.
    fn candidates(
        &self,
        finding: &Finding,
        row: &Row,
        damaged: Option<&Stat>,
        troubles: &mut SourceErrors,
    ) -> Vec<SourceFile> {
        let mut all = Vec::new();
        let mut take = |origin: &HealSource, opened: std::io::Result<SourceFile>| match opened {
            Ok(candidate) => {
                all.push(candidate);
                true
            }
            Err(error) => {
                troubles.add(origin, error);
                false
            }
        };
        if damaged.is_some() {
            let path = finding.path.as_bytes();
            take(&HealSource::Itself, SourceFile::open(HealSource::Itself, &self.opener, path));
        }
        for replica in self.replicas.iter() {
            let by_name = |path: &RelPath| replica.candidate(path, damaged);
            let opened = by_name(&row.record.path);
            let is_moved = finding.path != row.record.path;
            let opened = if is_moved { opened.or_else(|_| by_name(&finding.path)) } else { opened };
            take(&replica.origin, opened);
        }
        if let Some(parity) = &self.parity {
            let rebuilder = parity.of(&row.record, &self.replicas);
            take(&HealSource::Parity, rebuilder.map(|one| SourceFile::rebuilt(one, row)));
        }
        all
    }

    /// Records what is there now under the digests that are recorded, and the time at
    /// which they were verified, if it still is what was `proved`. Durable with the
    /// next commit.
    pub(super) fn record(
        &mut self,
        row: &Row,
        path: &RelPath,
        proved: &Stat,
        hashed_ns: i64,
    ) -> HealAttempt<()> {
        let stat = self.root.stat(path.as_bytes()).or_unhealed("look at what was healed")?;
        let looks = |stat: &Stat| (stat.inode, stat.size, stat.mtime_ns);
        if looks(&stat) != looks(proved) {
            // Healed, but changed by another process since: the next run reports what
            // it is now.
            return Ok(());
        }
        let parent = path.parent().unwrap_or_default();
        let device = self.root.stat(parent.as_bytes()).map_or(stat.device, |stat| stat.device);
        let found = self.entries.entry(&self.root, self.catalog, path, &stat, device)?;
        let was = &row.record;
        let (entry, hashed_ns) = match was.entry.is_undated() {
            // Still only what a list says.
            true => (was.entry.clone(), was.hashed_ns),
            false => {
                // A folder gets its date when all is in it.
                let is_folder = was.entry.kind == EntryKind::Folder;
                let mtime_ns = if is_folder { was.entry.mtime_ns } else { found.mtime_ns };
                (Entry { target: was.entry.target.clone(), mtime_ns, ..found }, hashed_ns)
            }
        };
        let verified_s = Clock::default().now_s();
        let record = Record { entry, hashed_ns, verified_s, gone_s: None, ..was.clone() };
        self.catalog.put_same_content(row, record)?;
        self.catalog.forget_finding(path)?;
        // Where dates are coarser than the recorded ones, what was healed has
        // another one, and the record claims something new.
        let (number, changes) = (&mut self.generation, Changes::default());
        Ok(self.catalog.note_changes(number, verified_s, HEAL, changes)?)
    }
}

/// Refuses a file that has changed since it was judged.
pub(super) fn require_as_found(stat: &Stat, finding: &Finding) -> HealAttempt<()> {
    let is_as_found = finding.found.as_ref().is_some_and(|found| {
        found.size == stat.size
            && found.mtime_ns == stat.mtime_ns
            && found.ctime_ns.is_none_or(|ctime_ns| ctime_ns == stat.ctime_ns)
            && found.inode.is_none_or(|inode| inode == stat.inode)
    });
    if is_as_found && stat.kind == fsure_os::Kind::File {
        return Ok(());
    }
    Err(HealFailure::Unhealed("busy: it changed since it was judged".to_owned()))
}

/// Returns true if a path stays below its root and is not one of fsure's own.
fn is_beneath(path: &RelPath) -> bool {
    let is_name = |name: &[u8]| !name.is_empty() && name != b"." && name != b"..";
    path.as_bytes().split(|byte| *byte == b'/').all(is_name)
        && !path.is_within(&RelPath::from_bytes(OWN_FOLDER.as_bytes()))
}

/// Returns true if a file is longer than recorded.
fn is_longer(finding: &Finding) -> bool {
    let size = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.size);
    size(&finding.found) > size(&finding.recorded)
}

fn size(finding: &Finding) -> u64 {
    finding.recorded.as_ref().map_or(0, |entry| entry.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record may have been forged: no name in it leads anywhere else.
    #[test]
    fn only_names_beneath_the_root_are_healed() {
        for (path, is) in [
            ("a", true),
            ("a/b..c/.d", true),
            (".fsures", true),
            ("..", false),
            ("a/../../b", false),
            ("/etc/passwd", false),
            ("a//b", false),
            ("./a", false),
            ("", false),
            (".fsure", false),
            (".fsure/catalog.db", false),
        ] {
            assert_eq!(is_beneath(&RelPath::from_bytes(path.as_bytes())), is, "{path}");
        }
    }
}
