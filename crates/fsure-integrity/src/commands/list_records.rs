//! Turns the entries of a list into records, for `verify --against` and `import`.

use std::path::Path;

use fsure_os::Kind;
use fsure_os::root_dir::Root;

use super::cshatag_source;
use super::paths_elsewhere::PathsElsewhere;
use crate::catalog::{Catalog, PageStart, StoredRow};
use crate::manifest::{
    ListedMtime, ManifestEntry, ManifestFormat, ManifestItem, ManifestSource, ProblemKind,
};
use crate::model::{Entry, EntryKind, FileSystemId, Record, ScanMonitor, UNDATED};
use crate::scan::LISTED_SIZE;
use fsure_core::{Error, RelPath, Result, count};

/// Number of problems that are reported one by one: a file that is not a list can have
/// a billion lines, each with a problem.
const PROBLEMS_REPORTED_MAX: u64 = 1_000;

/// The same while not one line was understood: most likely the file is not a list at all.
const PROBLEMS_OF_NO_LIST_MAX: u64 = 3;

/// Numbers of problems that were found while reading a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListProblems {
    /// Lines that make no sense, or name what no list may name.
    pub(super) malformed: u64,
    /// Entries that make sense and cannot be used.
    pub(super) unusable: u64,
    /// Those of them that have an absolute path, which is not below the folder of the list.
    pub(super) elsewhere: Option<PathsElsewhere>,
}

impl ListProblems {
    /// Warns of paths elsewhere; `command` makes the command for a list and their folder.
    pub(super) fn warn_of_elsewhere(
        &self,
        source: &ManifestSource,
        command: &dyn Fn(&str, &str) -> String,
        monitor: &dyn ScanMonitor,
    ) {
        if let Some(elsewhere) = &self.elsewhere {
            monitor.warn(&elsewhere.warning(source, command));
        }
    }
}

/// The reason why an entry was not taken.
pub(super) struct ListProblem {
    pub(super) trouble: ProblemKind,
    pub(super) reason: String,
    /// True if two entries of one file contradict each other.
    pub(super) is_contradiction: bool,
}

impl ListProblem {
    pub(super) fn new(trouble: ProblemKind, reason: String) -> Self {
        Self { trouble, reason, is_contradiction: false }
    }

    pub(super) fn contradiction(reason: String) -> Self {
        Self { trouble: ProblemKind::Malformed, reason, is_contradiction: true }
    }
}

/// Reads a list to its end, reports every problem with its place, and passes every
/// entry to `each`. Problems with the lines themselves are reported the first time
/// only.
pub(super) fn read(
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
    is_first_time: bool,
    each: &mut dyn FnMut(ManifestEntry) -> Result<std::result::Result<(), ListProblem>>,
) -> Result<ListProblems> {
    let mut troubles = ListProblems::default();
    let (mut found, mut reported, mut has_entry) = (0, 0, false);
    let mut take = |file: &Path, item| {
        let (line, trouble, reason) = match item {
            ManifestItem::Problem(_) if !is_first_time => return Ok(()),
            ManifestItem::Problem(problem) => (problem.line, problem.trouble, problem.reason),
            ManifestItem::Listed(listed) if listed.is_absolute => {
                if is_first_time {
                    troubles.unusable += 1;
                    let before = troubles.elsewhere.take();
                    troubles.elsewhere = Some(PathsElsewhere::with(before, &listed));
                }
                return Ok(());
            }
            ManifestItem::Listed(listed) => {
                let line = listed.line;
                has_entry = true;
                match each(listed)? {
                    Ok(()) => return Ok(()),
                    Err(refusal) => (line, refusal.trouble, refusal.reason),
                }
            }
        };
        troubles.malformed += u64::from(trouble == ProblemKind::Malformed);
        troubles.unusable += u64::from(trouble == ProblemKind::Unsupported);
        found += 1;
        if reported < if has_entry { PROBLEMS_REPORTED_MAX } else { PROBLEMS_OF_NO_LIST_MAX } {
            reported += 1;
            let place = if line > 0 { format!(":{line}") } else { String::new() };
            monitor.warn(&format!("{}{place}: {reason}", file.display()));
        }
        Ok(())
    };
    each_item(source, monitor, &mut take)?;
    if has_entry {
        let folder = source.files_in();
        troubles.elsewhere = troubles.elsewhere.map(|all| all.and_those_in(folder));
    }
    if found > reported {
        monitor.warn(&format!("... and {} more problems with the list", count(found - reported)));
    }
    Ok(troubles)
}

/// Passes every item of a list to `each`, with the file that it is in.
fn each_item(
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
    each: &mut dyn FnMut(&Path, ManifestItem) -> Result<()>,
) -> Result<()> {
    match source.format {
        ManifestFormat::Cshatag => cshatag_source::read(source, monitor, each),
        _ => source.read(each),
    }
}

/// Returns the first entry of a list that can be used, if it has any. Problems with the
/// list are not reported.
pub(super) fn first(
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
) -> Result<Option<ManifestEntry>> {
    let mut found = None;
    any(source, monitor, &mut |listed| {
        found = Some(listed.clone());
        true
    })?;
    Ok(found)
}

/// Reads a list up to the first entry for which `is_wanted` returns true, and returns true if there
/// is one. Problems with the list are not reported.
pub(super) fn any(
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
    is_wanted: &mut dyn FnMut(&ManifestEntry) -> bool,
) -> Result<bool> {
    let mut is_found = false;
    let read = each_item(source, monitor, &mut |_, item| match item {
        ManifestItem::Listed(listed) if !listed.is_absolute && is_wanted(&listed) => {
            is_found = true;
            // Which ends the reading.
            Err(Error::Internal(String::new()))
        }
        _ => match monitor.stop_requested() {
            Some(code) => Err(Error::Interrupted(code)),
            None => Ok(()),
        },
    });
    if !is_found {
        read?;
    }
    Ok(is_found)
}

/// The path that an entry of a list stands for, and the stat of what is there.
pub(super) struct ResolvedEntry {
    pub(super) path: RelPath,
    /// `None` if nothing is there, or if its stat fails.
    pub(super) there: Option<fsure_os::Stat>,
    /// The path as the list spells it, if it is found as it is in another
    /// spelling.
    pub(super) written: Option<RelPath>,
}

impl ResolvedEntry {
    /// Returns the name as the list spells it, as one of which nothing is there.
    pub(super) fn into_written(self) -> Self {
        Self { path: self.written.unwrap_or(self.path), there: None, written: None }
    }
}

/// Returns the first of an entry's spellings by which there is a file, or the
/// first spelling if there is none.
pub(super) fn named(root: &Root, below: &RelPath, listed: &ManifestEntry) -> ResolvedEntry {
    // A failed stat is reported when the file is to be read.
    let look = |path: &RelPath| {
        let path = below.join(path.as_bytes());
        let there = root.stat(path.as_bytes()).ok();
        ResolvedEntry { path, there, written: None }
    };
    let first = look(&listed.path);
    if first.there.is_some() {
        return first;
    }
    let others = listed.path_variants();
    match others.iter().map(look).find(|named| named.there.is_some()) {
        Some(other) => ResolvedEntry { written: Some(first.path), ..other },
        None => first,
    }
}

/// Returns the record of an entry. Nothing was read for it: it was never hashed and
/// never verified. Change time and inode are those of the machine that made the list, and
/// so is the date; a size that the list lacks is that of the file there.
pub(super) fn record(
    named: ResolvedEntry,
    listed: ManifestEntry,
    file_system: FileSystemId,
    keeps_date: bool,
) -> Record {
    let there = named.there.filter(|stat| stat.kind == Kind::File);
    let date = listed.modified.filter(|_| keeps_date);
    let mtime_ns = date.map_or(UNDATED, |date| match &there {
        // The list may be less exact than the file system.
        Some(stat) if is_of(date, stat.mtime_ns) => stat.mtime_ns,
        _ => date.time_ns,
    });
    Record {
        path: named.path,
        entry: Entry {
            kind: EntryKind::File,
            size: listed.size.or(there.map(|stat| stat.size)).unwrap_or(0),
            mtime_ns,
            ctime_ns: None,
            birth_ns: None,
            inode: None,
            file_system,
            target: None,
        },
        digests: listed.digests,
        hashed_ns: 0,
        verified_s: 0,
        gone_s: None,
    }
}

/// Returns true if a date in a list is that of a file, truncated to the list's unit.
fn is_of(date: ListedMtime, mtime_ns: i64) -> bool {
    date.time_ns.div_euclid(date.unit_ns) == mtime_ns.div_euclid(date.unit_ns)
}

/// Reports the files of a strict bag at `below` that are not in each of its payload
/// manifests, and returns their number; 0 if the list is not a strict bag.
pub(super) fn require_all_manifests(
    source: &ManifestSource,
    below: &RelPath,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<u64> {
    let Some(bag) = source.bag.as_ref().filter(|bag| bag.is_strict) else { return Ok(0) };
    let (first, end) = below.join(b"data").below();
    let (mut lacking, mut from) = (0, first);
    let mut is_first = true;
    loop {
        let bound = if is_first { PageStart::From(&from) } else { PageStart::After(&from) };
        let page = catalog.page(&bound, end.as_deref())?;
        let Some(last) = page.last() else { return Ok(lacking) };
        (from, is_first) = (last.path().as_bytes().to_vec(), false);
        for stored in page {
            let StoredRow::Sound(row) = stored else { continue };
            let has = row.record.digests.algorithms();
            if has.covers(bag.payload) {
                continue;
            }
            lacking += 1;
            if lacking <= PROBLEMS_REPORTED_MAX {
                let folder = source.folder.display();
                let path = row.record.path.display();
                let manifests = bag.payload.without(has);
                monitor.warn(&format!("{folder}: {path} is not in its manifest of {manifests}"));
            }
        }
    }
}

/// Merges a second entry of a path into its record, or returns the reason why the two
/// contradict each other.
pub(super) fn join(
    catalog: &mut Catalog,
    row: &crate::catalog::Row,
    record: &Record,
) -> Result<std::result::Result<(), ListProblem>> {
    let known = &row.record.digests;
    if known.agree(&record.digests) == Some(false) {
        let reason = format!("{} is listed twice, with different digests", record.path.display());
        return Ok(Err(ListProblem::contradiction(reason)));
    }
    let mut both = row.record.clone();
    for algorithm in record.digests.algorithms().iter() {
        let value = record.digests.get(algorithm).expect("it is in the set");
        both.digests.insert(algorithm, value);
    }
    if record.entry.size != 0 && row.record.verified_s & LISTED_SIZE == 0 {
        both.entry.size = record.entry.size;
    }
    both.verified_s |= record.verified_s;
    catalog.put_same_content(row, both).map(Ok)
}
