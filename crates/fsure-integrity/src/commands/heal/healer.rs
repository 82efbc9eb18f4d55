//! Treats one finding after the other: decides if it may be healed and by which
//! method, and updates the record and the report.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use fsure_os::opener::Opener;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::{Root, is_gone};
use fsure_os::{DATE_NS_MAX, Stat};

use super::HealOptions;
use super::entry_restorer::{EntryRestorer, require_target};
use super::heal_recorder::HealRecorder;
use super::heal_task::{HealTask, require_as_found};
use super::objection::{must_keep_original, objection, would_lose_an_edit};
use super::parity_rebuild::Parity;
use super::patcher::{Patched, Patcher, can_patch};
use super::plan::SourcePlan;
use super::proof::RecordProof;
use super::replaced_folder::{KeptJournal, ReplacedFolder, dry_run_reason};
use super::replacement::{Replacement, draft_name};
use super::replica::Replica;
use super::resume;
use super::source_reader::{
    HealAttempt, HealFailure, OrUnhealed as _, SourceErrors, SourceFile, SourceReader, reader,
};
use crate::catalog::{Catalog, RootLocation, Row, StoredRow};
use crate::model::{
    EntryKind, Finding, HealResult, HealSource, HealStatus, HealSummary, ScanMonitor, Verdict,
};
use fsure_core::{Clock, Error, RelPath, Result};

/// Heals the findings of one root, one at a time.
pub(super) struct Healer<'a> {
    place: &'a RootLocation,
    options: &'a HealOptions,
    monitor: &'a dyn ScanMonitor,
    opener: Opener,
    replicas: Rc<Vec<Replica>>,
    parity: Option<Parity>,
    reader: SourceReader<'a>,
    recorder: HealRecorder,
    restorer: EntryRestorer,
    replaced: ReplacedFolder<'a>,
    summary: HealSummary,
    /// Paths that are as recorded again.
    healed: HashSet<RelPath>,
    /// Files that were written in place, by device and inode: other names of them are
    /// healed, too.
    patched: HashSet<(u64, u64)>,
}

impl<'a> Healer<'a> {
    pub(super) fn new(
        place: &'a RootLocation,
        root: &Arc<Root>,
        options: &'a HealOptions,
        (replicas, parity): (Vec<Replica>, Option<Parity>),
        monitor: &'a dyn ScanMonitor,
    ) -> Result<Self> {
        let replicas = Rc::new(replicas);
        Ok(Self {
            place,
            options,
            monitor,
            opener: Opener::new(Arc::clone(root), ReadMode::Direct),
            replicas: Rc::clone(&replicas),
            parity,
            reader: reader(monitor)?,
            recorder: HealRecorder::new(Arc::clone(root)),
            restorer: EntryRestorer::new(Arc::clone(root), replicas),
            replaced: ReplacedFolder::new(place, Arc::clone(root), monitor),
            summary: HealSummary {
                is_dry_run: !options.does,
                is_in_place: options.in_place,
                ..HealSummary::default()
            },
            healed: HashSet::new(),
            patched: HashSet::new(),
        })
    }

    /// Ends what a run before this one has begun; a dry run only reports it.
    pub(super) fn clear_up(&mut self, catalog: &mut Catalog) -> Result<()> {
        if !self.options.does {
            if resume::is_any(self.place, catalog)? {
                self.monitor
                    .warn("an earlier heal was interrupted; with '--yes' it is finished first");
            }
            return Ok(());
        }
        resume::remove_drafts(self.opener.root(), catalog, self.monitor)?;
        resume::remove_halves(&self.place.catalog);
        let patcher = Patcher::new(self.place, &self.opener);
        if !patcher.has_journal() {
            return Ok(());
        }
        let finished = resume::finish_patch(
            &patcher,
            &mut self.reader,
            &mut self.recorder,
            &mut self.replaced,
            catalog,
            self.options.discards_replaced,
        );
        match finished {
            Ok(path) => {
                self.monitor.warn(&format!("{path}: an interrupted heal is now finished"));
                Ok(())
            }
            Err(HealFailure::Unhealed(why)) => {
                self.monitor.warn(&format!("an interrupted heal: {why}"));
                Ok(())
            }
            Err(HealFailure::Stopped(code)) => Err(Error::Interrupted(code)),
            Err(HealFailure::Fatal(error)) => Err(error),
        }
    }

    /// Sets the total of the progress from the findings to treat.
    pub(super) fn expect(&mut self, findings: &[Finding]) {
        self.reader.gauge.expect(findings.iter().map(size).sum());
    }

    /// Does what can be done about a finding, and reports it.
    pub(super) fn heal_finding(
        &mut self,
        catalog: &mut Catalog,
        finding: &Finding,
    ) -> HealAttempt<()> {
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
        match self.try_to_heal(catalog, finding, &mut remedy) {
            Ok(()) if self.options.does => _ = self.healed.insert(finding.path.clone()),
            Ok(()) => {}
            Err(HealFailure::Unhealed(why)) => {
                remedy.cure = HealStatus::Unhealed;
                remedy.reason = Some(why);
            }
            Err(other) => return Err(other),
        }
        self.summary.unkept += u64::from(would_lose_an_edit(finding, self.options));
        self.summary.add(&remedy);
        self.monitor.remedy(&remedy);
        Ok(())
    }

    fn try_to_heal(
        &mut self,
        catalog: &mut Catalog,
        finding: &Finding,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        if let Some(why) = objection(finding, self.options, catalog) {
            return Err(HealFailure::Unhealed(why));
        }
        let recorded_as = finding.moved_from.as_ref().unwrap_or(&finding.path);
        let Some(StoredRow::Sound(row)) = catalog.get(recorded_as)? else {
            return Err(HealFailure::Unhealed("it is not recorded any more".to_owned()));
        };
        match row.record.entry.kind {
            EntryKind::File => self.heal_file(catalog, finding, row, remedy),
            _ => self.restore(catalog, &finding.path, &row, remedy),
        }
    }

    fn heal_file(
        &mut self,
        catalog: &mut Catalog,
        finding: &Finding,
        row: Row,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let recorded = RecordProof::of(row, catalog)?;
        if recorded.row.record.digests.algorithms().bits() == 0 {
            return Err(HealFailure::Unhealed("no digest of it is recorded".to_owned()));
        }
        let damaged = match finding.verdict {
            Verdict::Missing => None,
            _ => Some(self.opener.root().stat(finding.path.as_bytes()).or_unhealed("examine it")?),
        };
        if let Some(stat) = &damaged {
            if self.was_patched(stat, &finding.path, &recorded)? {
                remedy.reason = Some("healed under another of its names".to_owned());
                let now_ns = Clock::default().now_ns();
                self.recorder.record(catalog, &recorded.row, &finding.path, stat, now_ns)?;
                return Ok(catalog.commit()?);
            }
            require_as_found(stat, finding)?;
            self.require_way(stat, finding, &recorded)?;
        }
        let mut troubles = SourceErrors::default();
        let candidates = self.candidates(finding, &recorded.row, damaged.as_ref(), &mut troubles);
        let reader = &mut self.reader;
        let plan = SourcePlan::choose(reader, finding, &recorded, &candidates, &mut troubles)?;
        remedy.taken = plan.taken(&recorded, &candidates);
        remedy.lacking = plan.lacking(&recorded);
        plan.require_complete(&recorded, &troubles)?;
        let keeps_original = must_keep_original(finding, self.options);
        let task = HealTask { finding, recorded, candidates, plan, damaged, keeps_original };
        if !self.options.does {
            remedy.reason = keeps_original.then(dry_run_reason);
            return Ok(());
        }
        if task.damaged.is_some() && self.options.in_place {
            self.patch(catalog, &task, remedy)
        } else {
            self.replace(catalog, &task, remedy)
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
        let names = stat.links as usize - self.replaced.kept_as(&finding.path, stat).len();
        if names > 1 && !self.options.in_place {
            return Err(HealFailure::Unhealed(format!(
                "it has {names} hard links, which a new file would break: '--in-place' writes into \
                 the file itself"
            )));
        }
        if must_keep_original(finding, self.options) && !self.options.in_place {
            self.replaced.require_room(finding, stat)?;
        }
        if self.options.in_place && stat.mtime_ns.abs() == DATE_NS_MAX {
            return Err(HealFailure::Unhealed(
                "'--in-place' cannot restore a date that far off: without '--in-place' a new file \
                 gets it"
                    .to_owned(),
            ));
        }
        if self.options.in_place && !can_patch(recorded) {
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
            Ok(candidate) => all.push(candidate),
            Err(error) => troubles.add(origin, error),
        };
        if damaged.is_some() {
            let path = finding.path.as_bytes();
            take(&HealSource::Itself, SourceFile::open(HealSource::Itself, &self.opener, path));
        }
        for replica in self.replicas.iter() {
            let by_name = |path: &RelPath| SourceFile::of_replica(replica, path, damaged);
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

    /// Puts a whole file in the place of a damaged or missing one.
    fn replace(
        &mut self,
        catalog: &mut Catalog,
        task: &HealTask<'_>,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let path = &task.finding.path;
        let folder = path.parent().unwrap_or_default();
        if task.damaged.is_none() {
            self.restorer.make_parents(catalog, &folder)?;
        }
        let draft = folder.join(&draft_name());
        catalog.heal_drafts_mut().put(path, &draft)?;
        catalog.commit()?;
        let replacement = Replacement { opener: &self.opener, task, draft: &draft };
        let placed = replacement.make_and_place(&mut self.reader, &mut self.replaced, remedy);
        let recorded = placed.and_then(|(healed, proved_ns)| {
            self.recorder.record(catalog, &task.recorded.row, path, &healed, proved_ns)
        });
        // A failed write ends the heal, and its message is the first one.
        if let Err(HealFailure::Fatal(Error::RecordNotWritten { .. })) = recorded {
            return recorded;
        }
        // Noted for as long as there is anything to be removed.
        if self.opener.root().stat(draft.as_bytes()).is_err_and(|error| is_gone(&error)) {
            catalog.heal_drafts_mut().forget(path)?;
            catalog.commit()?;
        }
        recorded
    }

    /// Writes into a damaged file what is wrong in it, and keeps the journal if what is
    /// replaced is to be kept.
    fn patch(
        &mut self,
        catalog: &mut Catalog,
        task: &HealTask<'_>,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let path = &task.finding.path;
        let patcher = Patcher::new(self.place, &self.opener);
        let Patched { file, stat, proved_ns } = patcher.patch(&mut self.reader, task)?;
        self.recorder.record(catalog, &task.recorded.row, path, &stat, proved_ns)?;
        catalog.commit()?;
        if task.keeps_original {
            match self.replaced.keep_journal(path)? {
                KeptJournal::Below(kept) => remedy.kept = Some(kept),
                KeptJournal::Beside(kept) => {
                    let kept = kept.display();
                    remedy.reason = Some(format!("the bytes that were replaced are in {kept}"));
                }
            }
        } else {
            patcher.remove_journal();
        }
        self.patched.insert(file);
        Ok(())
    }

    /// Makes a link or a folder again.
    fn restore(
        &mut self,
        catalog: &mut Catalog,
        path: &RelPath,
        row: &Row,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        remedy.taken = vec![(HealSource::Record, Vec::new())];
        let entry = &row.record.entry;
        require_target(entry)?;
        if !self.options.does {
            return Ok(());
        }
        let made = self.restorer.restore(catalog, path, entry)?;
        remedy.reason = made.reason;
        self.recorder.record(catalog, row, path, &made.stat, Clock::default().now_ns())?;
        Ok(catalog.commit()?)
    }

    /// Gives the folders that were made their dates. Returns the counts, and the paths
    /// that are as recorded again.
    pub(super) fn finish(self) -> (HealSummary, HashSet<RelPath>) {
        self.restorer.date_folders(self.monitor);
        (self.summary, self.healed)
    }
}

fn size(finding: &Finding) -> u64 {
    finding.recorded.as_ref().map_or(0, |entry| entry.size)
}
