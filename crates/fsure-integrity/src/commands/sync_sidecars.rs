//! Brings the carriers of a root's layout in line with its catalog, from the
//! catalog alone: no data is read. `update` writes them, `verify` only checks.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use fsure_os::file_attributes::Node;
use fsure_os::root_dir::{Root, is_gone};

use super::sidecar_io::{
    FOLDER_FILE_MAX, ProblemReporter, each_folder, read_carrier, read_folder_file,
};
use crate::catalog::{Audit, Catalog, PageStart, RootOptions, Row, StoredRow};
use crate::manifest::{
    ManifestEntry, carried, contradicts, has_more_digests, is_cut_off_folder_file, is_folder_file,
    read_attribute, read_folder, write_attribute, write_folder,
};
use crate::model::{
    FILE_ATTRIBUTE, FOLDER_FILE, FOLDER_FILE_MAKING, Outcome, Record, ScanMonitor, SidecarCounts,
    SidecarKind, StopReason,
};
use crate::scan::{Accept, survive_write_error};
use fsure_core::{Error, RelPath, Result};

/// Interval between commits: the work that a kill or a power cut can cost.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Names of one inode that are remembered; more are read once more.
const LINKS_MAX: usize = 100_000;

const CONFLICT: &str = "its sidecar and the record give different content for the same size and \
                        date: one of them is wrong, or the file was damaged before it was \
                        recorded; 'fsure verify PATH' reads it, and 'fsure update --full --accept \
                        PATH PATH' records what it holds";

const FOREIGN_FILE: &str = "a file of this name exists that fsure did not make";

/// Decisions of an `update` about the carriers that it writes.
#[derive(Clone, Copy)]
pub(super) struct SidecarRules<'a> {
    /// Findings that the user accepts.
    pub(super) accept: &'a Accept,
    /// Start of the run, in nanoseconds since 1970.
    pub(super) started_ns: i64,
    /// Count what would be written and removed, and leave it as it is.
    pub(super) is_dry_run: bool,
}

/// Writes and removes carriers at the end of an `update`.
pub(super) fn bring_in_line(
    root: &Root,
    catalog: &mut Catalog,
    rules: SidecarRules<'_>,
    monitor: &dyn ScanMonitor,
    outcome: &mut Outcome,
) -> Result<()> {
    let mut run = SidecarSync::new(root, Some(rules), monitor);
    let written = write_all(&mut run, catalog);
    run.stopped = survive_write_error(written, catalog)?.or(run.stopped);
    outcome.carriers = run.found;
    run.close(outcome);
    Ok(())
}

fn write_all(run: &mut SidecarSync<'_>, catalog: &mut Catalog) -> Result<()> {
    let RootOptions { layout, leaving, .. } = catalog.options();
    for left in leaving.iter() {
        run.go(left, SidecarAction::TakeAway, catalog)?;
        if run.found.refused == 0 && run.is_going_on() {
            let leaving = catalog.options().leaving.without(left);
            catalog.set_options(RootOptions { leaving, ..catalog.options() })?;
        }
    }
    if layout != SidecarKind::Tree && run.is_going_on() {
        run.go(layout, SidecarAction::Write, catalog)?;
    }
    if catalog.is_writing() {
        catalog.commit()?;
    }
    Ok(())
}

/// Checks the carriers at the end of a `verify`.
pub(super) fn look(
    root: &Root,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
    outcome: &mut Outcome,
) -> Result<()> {
    let layout = catalog.options().layout;
    if layout != SidecarKind::Tree {
        let mut run = SidecarSync::new(root, None, monitor);
        run.go(layout, SidecarAction::Write, catalog)?;
        outcome.carriers = run.found;
        run.close(outcome);
    }
    Ok(())
}

/// The action that a run takes on carriers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SidecarAction {
    Write,
    TakeAway,
}

struct SidecarSync<'a> {
    root: &'a Root,
    /// `None` in a run that only checks.
    writes: Option<SidecarRules<'a>>,
    reporter: ProblemReporter<'a>,
    found: SidecarCounts,
    /// The reason why nothing can be written from this record; `None` until the record
    /// was checked, `Some(None)` if there is no such reason.
    objection: Option<Option<String>>,
    stopped: Option<StopReason>,
    committed: Instant,
    /// Change times before and after, of files with several names.
    links: HashMap<(u64, u64), (i64, i64)>,
}

impl<'a> SidecarSync<'a> {
    fn new(root: &'a Root, writes: Option<SidecarRules<'a>>, monitor: &'a dyn ScanMonitor) -> Self {
        Self {
            root,
            writes,
            reporter: ProblemReporter::new(monitor),
            found: SidecarCounts::default(),
            objection: None,
            stopped: None,
            committed: Instant::now(),
            links: HashMap::new(),
        }
    }

    fn close(self, outcome: &mut Outcome) {
        if let Some(stop) = self.stopped {
            outcome.stopped.get_or_insert(stop);
        }
        if let Some(why) = self.objection.flatten() {
            outcome.record_untrusted.get_or_insert(why);
        }
    }

    fn is_dry_run(&self) -> bool {
        self.writes.is_some_and(|rules| rules.is_dry_run)
    }

    fn is_going_on(&mut self) -> bool {
        if let Some(code) = self.reporter.monitor.stop_requested() {
            self.stopped.get_or_insert(StopReason::Interrupted(code));
        }
        self.stopped.is_none() && !matches!(self.objection, Some(Some(_)))
    }

    fn go(&mut self, layout: SidecarKind, aim: SidecarAction, catalog: &mut Catalog) -> Result<()> {
        match layout {
            SidecarKind::Tree => Ok(()),
            SidecarKind::Folder => each_folder(catalog, &mut |catalog, folder, files| {
                if self.is_going_on() {
                    self.folder(catalog, folder, files, aim)?;
                }
                Ok(())
            }),
            SidecarKind::Xattr => self.each_file(catalog, aim),
        }
    }

    /// Returns true if carriers can be written from this record: a record that has lost
    /// rows would remove them from the carriers, too. In a run that only checks, counts
    /// the carrier as behind and returns false.
    fn may_write(&mut self, catalog: &mut Catalog) -> Result<bool> {
        if self.writes.is_none() {
            self.found.behind += 1;
            return Ok(false);
        }
        if self.objection.is_none() {
            // The scan before has checked the pages.
            let audit = Audit::of_rows(catalog)?;
            let is_clean = audit.is_clean();
            let why = || audit.objection.unwrap_or_else(|| "rows fail their seal".to_owned());
            self.objection = Some((!is_clean).then(why));
        }
        Ok(self.objection == Some(None))
    }

    fn refused(&mut self, path: &RelPath, error: &io::Error) {
        // A file or folder that is gone has its own verdict.
        if !is_gone(error) {
            self.found.refused += 1;
            self.reporter.report(path, &format!("its sidecar could not be updated: {error}"));
        }
    }

    fn damaged(&mut self, path: &RelPath, why: &str) {
        self.found.damaged += 1;
        self.reporter.report(path, &format!("its sidecar is damaged: {why}"));
    }

    /// Returns true, and reports it, if a carrier contradicts the record of a file. It is
    /// not a conflict if the file was read in this run and the user accepts its content.
    fn is_conflict(
        &mut self,
        catalog: &mut Catalog,
        path: &RelPath,
        carrier: &ManifestEntry,
        record: &ManifestEntry,
    ) -> Result<bool> {
        if !contradicts(carrier, record) {
            return Ok(false);
        }
        if let Some(rules) = self.writes
            && rules.accept.covers(path)
            && let Some(StoredRow::Sound(row)) = catalog.get(path)?
            && row.record.hashed_ns >= rules.started_ns
        {
            return Ok(false);
        }
        self.found.conflicts += 1;
        self.reporter.report(path, CONFLICT);
        Ok(true)
    }

    fn folder(
        &mut self,
        catalog: &mut Catalog,
        folder: &RelPath,
        mut files: Vec<ManifestEntry>,
        aim: SidecarAction,
    ) -> Result<()> {
        let path = folder.join(FOLDER_FILE.as_bytes());
        let existing = match read_folder_file(self.root, folder) {
            Ok(existing) => existing,
            Err(error) => {
                self.refused(&path, &error);
                return Ok(());
            }
        };
        if existing.as_deref().is_some_and(|bytes| !is_folder_file(bytes)) {
            self.refused(&path, &io::Error::other(FOREIGN_FILE));
            return Ok(());
        }
        if aim == SidecarAction::TakeAway {
            // No later run would report it.
            let making = folder.join(FOLDER_FILE_MAKING.as_bytes());
            let done = self.may_make(&making);
            let remove = || match self.is_dry_run() {
                true => Ok(()),
                false => self.root.remove_small(making.as_bytes()),
            };
            let done = done.and_then(|()| remove());
            if let Err(error) = done {
                self.refused(&making, &error);
            }
        }
        match (aim, &existing) {
            (SidecarAction::TakeAway, Some(_)) => return self.remove(catalog, &path),
            (_, None) if aim == SidecarAction::TakeAway || !self.is_any_here(folder, &files) => {
                return Ok(());
            }
            _ => {}
        }
        if existing.as_deref() == Some(&bytes_of(&files)?) {
            return Ok(());
        }
        match existing.as_deref().map(read_folder) {
            None => {}
            Some(Err(why)) => self.damaged(&path, &why),
            Some(Ok(carriers)) => {
                if self.has_conflicts(catalog, folder, &carriers, &files)? {
                    return Ok(());
                }
                // Files that came here with their records and could not be recorded.
                let unrecorded = carriers.into_iter().filter(|carrier| {
                    find(&files, carrier).is_none()
                        && self.root.stat(folder.join(carrier.path.as_bytes()).as_bytes()).is_ok()
                });
                let unrecorded: Vec<_> = unrecorded.collect();
                files.extend(unrecorded);
                files.sort_by(|one, other| one.path.cmp(&other.path));
            }
        }
        if files.is_empty() {
            return self.remove(catalog, &path);
        }
        let wanted = bytes_of(&files)?;
        if wanted.len() > FOLDER_FILE_MAX {
            self.refused(&path, &io::ErrorKind::FileTooLarge.into());
        } else if existing.as_deref() != Some(&wanted) && self.may_write(catalog)? {
            let [name, making] = [FOLDER_FILE, FOLDER_FILE_MAKING].map(str::as_bytes);
            let done = self.may_make(&folder.join(making));
            let write = || match self.is_dry_run() {
                true => Ok(()),
                false => self.root.write_small(folder.as_bytes(), name, making, &wanted),
            };
            match done.and_then(|()| write()) {
                Ok(()) => self.found.written += 1,
                Err(error) => self.refused(&path, &error),
            }
        }
        Ok(())
    }

    fn has_conflicts(
        &mut self,
        catalog: &mut Catalog,
        folder: &RelPath,
        carriers: &[ManifestEntry],
        files: &[ManifestEntry],
    ) -> Result<bool> {
        let mut has_one = false;
        for carrier in carriers {
            if let Some(file) = find(files, carrier) {
                let path = folder.join(carrier.path.as_bytes());
                has_one |= self.is_conflict(catalog, &path, carrier, file)?;
            }
        }
        Ok(has_one)
    }

    /// Returns true if any of a folder's files might be there. If none is, a file system
    /// might not be mounted, and the folder of that name is another one.
    fn is_any_here(&self, folder: &RelPath, files: &[ManifestEntry]) -> bool {
        files.iter().any(|file| {
            let stat = self.root.stat(folder.join(file.path.as_bytes()).as_bytes());
            !stat.is_err_and(|error| is_gone(&error))
        })
    }

    /// Succeeds if a folder's file can be made at `path`: if nothing is there, or only what
    /// a killed run has left. Any other file there is an error.
    fn may_make(&self, path: &RelPath) -> io::Result<()> {
        let left = read_carrier(self.root, path)?;
        match left.is_none_or(|bytes| is_cut_off_folder_file(&bytes)) {
            true => Ok(()),
            false => Err(io::Error::other(FOREIGN_FILE)),
        }
    }

    fn remove(&mut self, catalog: &mut Catalog, path: &RelPath) -> Result<()> {
        if self.may_write(catalog)? {
            let removed = match self.is_dry_run() {
                true => Ok(()),
                false => self.root.remove_small(path.as_bytes()),
            };
            match removed {
                Ok(()) => self.found.removed += 1,
                Err(error) => self.refused(path, &error),
            }
        }
        Ok(())
    }

    fn each_file(&mut self, catalog: &mut Catalog, aim: SidecarAction) -> Result<()> {
        let nested: HashSet<RelPath> = catalog.nested_roots().all()?.into_iter().collect();
        let mut after: Option<Vec<u8>> = None;
        while self.is_going_on() {
            let from = after.as_deref().map_or(PageStart::From(b""), PageStart::After);
            let page = catalog.page(&from, None)?;
            let Some(last) = page.last() else { break };
            after = Some(last.path().as_bytes().to_vec());
            for stored in &page {
                if let StoredRow::Sound(row) = stored
                    && row.is_live_file()
                    && !is_below_any(&nested, &row.record.path)
                    && self.is_going_on()
                {
                    self.file(catalog, row, aim)?;
                }
            }
            if self.committed.elapsed() >= COMMIT_EVERY && catalog.is_writing() {
                catalog.commit()?;
                self.committed = Instant::now();
            }
        }
        Ok(())
    }

    fn file(&mut self, catalog: &mut Catalog, row: &Row, aim: SidecarAction) -> Result<()> {
        let path = &row.record.path;
        let asked = Node::at(self.root, path.as_bytes())
            .and_then(|node| Ok((node.attribute(FILE_ATTRIBUTE)?, node)));
        let (existing, node) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                self.refused(path, &error);
                return Ok(());
            }
        };
        let wanted = carried(&row.record);
        let in_line = match (aim, existing.as_deref().map(|v| read_attribute(path.name(), v))) {
            (SidecarAction::TakeAway, existing) => existing.is_none(),
            (SidecarAction::Write, None) => false,
            (SidecarAction::Write, Some(Err(why))) => {
                self.damaged(path, &why);
                false
            }
            (SidecarAction::Write, Some(Ok(carrier))) => {
                carrier == wanted
                    || self.is_conflict(catalog, path, &carrier, &wanted)?
                    || has_more_digests(&carrier, &wanted) && self.has_several_names(path)
            }
        };
        if in_line {
            return self.follow_link(catalog, row);
        }
        // If the file is not as recorded, the record is of another state.
        let before = self.root.stat(path.as_bytes());
        let Some(before) = before.ok().filter(|stat| is_as_recorded(&row.record, stat)) else {
            self.found.behind += 1;
            return Ok(());
        };
        if !self.may_write(catalog)? {
            return Ok(());
        }
        let done = match aim {
            _ if self.is_dry_run() => Ok(()),
            SidecarAction::Write => {
                node.set_attribute(FILE_ATTRIBUTE, &write_attribute(&row.record))
            }
            SidecarAction::TakeAway => node.remove_attribute(FILE_ATTRIBUTE),
        };
        let after = done.and_then(|()| self.root.stat(path.as_bytes()));
        let after = match after {
            Ok(after) => after,
            Err(error) => {
                self.refused(path, &error);
                return Ok(());
            }
        };
        self.found.written += u64::from(aim == SidecarAction::Write);
        self.found.removed += u64::from(aim == SidecarAction::TakeAway);
        if after.links > 1 && self.links.len() < LINKS_MAX {
            let times = (before.ctime_ns, after.ctime_ns);
            self.links.insert((after.device, after.inode), times);
        }
        take_change(catalog, row, &before, &after)
    }

    /// Returns true if the file has several names. They share its attribute: if they are
    /// recorded with different digests, each would have its own written, and the file read
    /// again for it, at every run.
    fn has_several_names(&self, path: &RelPath) -> bool {
        self.root.stat(path.as_bytes()).is_ok_and(|stat| stat.links > 1)
    }

    /// Records the new change time for another name of a file whose attribute was
    /// written under its first name.
    fn follow_link(&mut self, catalog: &mut Catalog, row: &Row) -> Result<()> {
        if self.links.is_empty() {
            return Ok(());
        }
        let Ok(now) = self.root.stat(row.record.path.as_bytes()) else { return Ok(()) };
        let times = self.links.get(&(now.device, now.inode));
        let Some((before_ns, _)) = times.filter(|(_, after)| *after == now.ctime_ns) else {
            return Ok(());
        };
        let before = fsure_os::Stat { ctime_ns: *before_ns, ..now.clone() };
        if is_as_recorded(&row.record, &before) {
            take_change(catalog, row, &before, &now)?;
        }
        Ok(())
    }
}

/// Returns true if a path is in a root below this one, which has its own files.
fn is_below_any(nested: &HashSet<RelPath>, path: &RelPath) -> bool {
    let above = |path: &RelPath| path.parent();
    !nested.is_empty() && std::iter::successors(path.parent(), above).any(|f| nested.contains(&f))
}

fn find<'a>(files: &'a [ManifestEntry], carrier: &ManifestEntry) -> Option<&'a ManifestEntry> {
    let place = files.binary_search_by(|file| file.path.cmp(&carrier.path));
    place.ok().map(|place| &files[place])
}

fn bytes_of(files: &[ManifestEntry]) -> Result<Vec<u8>> {
    write_folder(files).map_err(|error| Error::Internal(format!("a line of JSON: {error}")))
}

/// Returns true if a file has the size, dates and inode of its record.
fn is_as_recorded(record: &Record, stat: &fsure_os::Stat) -> bool {
    let then = &record.entry;
    stat.kind == fsure_os::Kind::File
        && then.size == stat.size
        && then.mtime_ns == stat.mtime_ns
        && then.ctime_ns == Some(stat.ctime_ns)
        && then.inode.is_none_or(|inode| inode == stat.inode)
}

/// Replaces the recorded change time with the one that writing an attribute has caused,
/// if nothing else has changed.
fn take_change(
    catalog: &mut Catalog,
    row: &Row,
    before: &fsure_os::Stat,
    after: &fsure_os::Stat,
) -> Result<()> {
    let only_ctime = fsure_os::Stat { ctime_ns: before.ctime_ns, ..after.clone() };
    if !only_ctime.is_unchanged_from(before) {
        return Ok(());
    }
    let granularity_ns = catalog.granularity_ns(row.record.entry.file_system);
    let was_racy = row.record.is_racy(granularity_ns)
        && !catalog.own_changes().contains(&row.record.path, &row.record.entry)?;
    let mut record = row.record.clone();
    record.entry.ctime_ns = Some(after.ctime_ns);
    let path = record.path.clone();
    catalog.put_same_content(row, record)?;
    if was_racy { Ok(()) } else { catalog.own_changes_mut().note(&path, after.ctime_ns) }
}
