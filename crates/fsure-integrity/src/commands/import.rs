//! `import`: makes or completes the record of a root from a list, without
//! reading a byte of data, unless the list has CRC-32 values only (`import_crc32`).
//! Entries of a list are recorded and not verified; the next `verify` judges
//! them. Existing records stay as they are.

use std::collections::HashSet;

use fsure_os::Kind;

use super::list_catalog::broken_rules;
use super::list_folder::ListFolder;
use super::list_records::{self, ListProblem, ListProblems, ResolvedEntry, named, record};
use super::listed_algorithm::in_proven_form;
use super::open_root::{
    OpenRoot, is_empty, keep_backup, lock, make_own_folder, open_root, root_identity,
};
use super::{Options, RecordAccess, dry_run};
use crate::catalog::{Audit, Catalog, OWN_FOLDER, RootLocation, RootSettings, Row, StoredRow};
use crate::manifest::{ManifestEntry, ManifestFormat, ManifestSource, ProblemKind};
use crate::model::{Allowed, Changes, Entry, EntryKind, Record, ScanMonitor};
use fsure_core::{
    Algorithm, AlgorithmSet, Clock, Digests, Error, ExitCode, RelPath, Result, shell_quoted,
};

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Files recorded from the list.
    pub recorded: u64,
    /// Those of them of which there is no file; the next `verify` calls them
    /// missing.
    pub absent: u64,
    /// Files recorded before, with the same digest, or from a list.
    pub known: u64,
    /// Files recorded before, with other kinds of digests only: there is
    /// nothing to compare, and they stay as they are.
    pub incomparable: u64,
    /// Files recorded before with another digest. The record stays as it is.
    pub conflicts: u64,
    /// Lines that make no sense.
    pub malformed: u64,
    /// Entries that cannot be used.
    pub unusable: u64,
    /// True if the list names no file at all.
    pub is_empty: bool,
    /// True if the files were read and compared with the list, so that only those
    /// that match it were recorded.
    pub is_proven: bool,
    /// Files that were read and do not match the list.
    pub mismatched: u64,
    /// Files that were to be read and could not be.
    pub unread: u64,
    /// Files that were to be read and are not there.
    pub missing: u64,
    /// States of the folder that the next `verify` must be allowed to judge: it is empty, or has
    /// fewer than half of the recorded files.
    pub verify_allows: Allowed,
    /// True if nothing was recorded because that was asked for.
    pub is_dry_run: bool,
}

impl Imported {
    /// The exit code this deserves.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self { is_empty: true, .. } => ExitCode::RecordUntrusted,
            Self { malformed, conflicts, .. } if malformed + conflicts > 0 => {
                ExitCode::RecordUntrusted
            }
            Self { mismatched: 1.., .. } => ExitCode::Damage,
            Self { unread: 1.., .. } => ExitCode::Unread,
            Self { unusable: 1.., .. } => ExitCode::Incomplete,
            Self { missing: 1.., .. } => ExitCode::Differences,
            _ => ExitCode::Clean,
        }
    }
}

/// Records the files below `place` as a list has them.
pub fn import(
    place: &RootLocation,
    source: &ManifestSource,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Imported> {
    let open = open_root(place)?;
    let source = &source.of_files_in(place.asked());
    let source = &in_proven_form(place, &open.root, source, monitor)?;
    if list_records::first(source, monitor)?.is_none() {
        return nothing(source, monitor);
    }
    if !options.allowed.missing {
        refuse_other_folder(place, &open, source, monitor)?;
    }
    let mut catalog = open_or_create(place, &open, options.access, monitor)?;
    Audit::of(&mut catalog)?.require_clean(place, "nothing was imported")?;
    let mut import = Import {
        place,
        open: &open,
        catalog: &mut catalog,
        imported: Imported::default(),
        folders: HashSet::new(),
    };
    if source.format == ManifestFormat::Sfv {
        import.prove(source, options, monitor)?;
    } else {
        import.take_all(source, monitor)?;
    }
    let imported = Imported { is_dry_run: options.access.is_dry_run, ..import.imported };
    let is_empty = is_empty(place, &open)?;
    let is_mostly_missing = imported.absent.saturating_mul(2) > catalog.files();
    let verify_allows =
        Allowed { empty: is_empty, missing: is_mostly_missing && !is_empty, other_disk: false };
    let imported = Imported { verify_allows, ..imported };
    let changes = Changes { new: imported.recorded, ..Changes::default() };
    catalog.history_mut().note_changes(&mut None, options.clock.now_s(), "import", changes)?;
    catalog.commit()?;
    keep_backup(place, &mut catalog, &options.backup_folders, monitor)?;
    Ok(imported)
}

/// Refuses a list of which not one file is there: it is about another folder, or its disk is not
/// mounted. Every later command would find the record of the wrong folder, and call its files
/// missing.
fn refuse_other_folder(
    place: &RootLocation,
    open: &OpenRoot,
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let mut folder = ListFolder::default();
    let is_here = list_records::any(source, monitor, &mut |listed| {
        folder.add(&listed.path);
        named(&open.root, &place.scope, listed).there.is_some()
    })?;
    if is_here {
        return Ok(());
    }
    let asked = shell_quoted(&place.asked());
    let reason = match open.root.stat(place.scope.as_bytes()) {
        Err(_) if !place.scope.is_root() => {
            format!("there is no folder {asked}; '--root DIR' names another one")
        }
        _ => folder.warning(place, open, source, &command_at).unwrap_or_else(|| {
            "names in a list are relative to the folder that it lies in; '--root DIR' names another \
             one"
                .to_owned()
        }),
    };
    let lost = "If these files are lost, the same command with '--allow-missing' records them as \
                missing";
    Err(Error::FailedPrecondition {
        message: format!(
            "not one file of {} is in {}: nothing was recorded",
            source.label().display(),
            place.asked().display()
        ),
        hint: Some(format!("{reason}. {lost}")),
    })
}

/// Returns the command for a list and the folder that its files are in.
pub(super) fn command_at(list: &str, folder: &str) -> String {
    format!("fsure import {list} --root {folder}")
}

/// Reports the problems of a list that has no entry. No record is made for it: a list that
/// was lost in a power cut must not pass for one of an empty folder.
fn nothing(source: &ManifestSource, monitor: &dyn ScanMonitor) -> Result<Imported> {
    let troubles = list_records::read(source, monitor, true, &mut |_| Ok(Ok(())))?;
    troubles.warn_of_elsewhere(source, &command_at, monitor);
    let ListProblems { malformed, unusable, .. } = troubles;
    let is_empty = unusable == 0;
    if is_empty {
        let why =
            if source.is_empty() { " and is empty (did the command before it fail?)" } else { "" };
        monitor.warn(&format!("{} names no file{why}", source.label().display()));
    }
    Ok(Imported { malformed, unusable, is_empty, ..Imported::default() })
}

pub(super) struct Import<'a> {
    pub(super) place: &'a RootLocation,
    pub(super) open: &'a OpenRoot,
    pub(super) catalog: &'a mut Catalog,
    pub(super) imported: Imported,
    /// Folders that are there and recorded by now.
    folders: HashSet<RelPath>,
}

impl Import<'_> {
    /// Records all entries of the list.
    fn take_all(&mut self, source: &ManifestSource, monitor: &dyn ScanMonitor) -> Result<()> {
        let mut folder = ListFolder::default();
        let troubles = list_records::read(source, monitor, true, &mut |listed| {
            folder.add(&listed.path);
            match monitor.stop_requested() {
                Some(code) => Err(Error::Interrupted(code)),
                None => self.take(listed),
            }
        })?;
        if let Some(warning) = folder.warning(self.place, self.open, source, &command_at) {
            monitor.warn(&warning);
        }
        troubles.warn_of_elsewhere(source, &command_at, monitor);
        let ListProblems { malformed, unusable, .. } = troubles;
        self.imported.unusable = unusable;
        let broken = broken_rules(self.place, self.open, source, monitor)?;
        // A conflict is reported like a malformed line, and is not one.
        self.imported.malformed = malformed + broken - self.imported.conflicts;
        Ok(())
    }

    fn take(&mut self, listed: ManifestEntry) -> Result<std::result::Result<(), ListProblem>> {
        let refuse = |trouble, reason| Ok(Err(ListProblem::new(trouble, reason)));
        let named = named(&self.open.root, &self.place.scope, &listed);
        let shown = named.path.display().to_string();
        if named.path.is_within(&RelPath::from_bytes(OWN_FOLDER.as_bytes())) {
            return refuse(ProblemKind::Unsupported, format!("{shown} belongs to fsure itself"));
        }
        if named.there.as_ref().is_some_and(|stat| stat.kind != Kind::File) {
            return refuse(ProblemKind::Unsupported, format!("{shown} is not a file here"));
        }
        match self.catalog.get(&named.path)? {
            None => self.record(None, named, listed).map(Ok),
            Some(StoredRow::Bad(_)) => {
                refuse(ProblemKind::Malformed, format!("the record of {shown} fails its own seal"))
            }
            // The same digits by another name: the list was taken for one of another digest.
            Some(StoredRow::Sound(row))
                if row.record.hashed_ns == 0
                    && is_renamed(&row.record.digests, &listed.digests) =>
            {
                self.record(Some(&row), named, listed).map(Ok)
            }
            Some(StoredRow::Sound(row)) => match row.record.digests.agree(&listed.digests) {
                // Several digests of one file are several lines of most lists.
                None | Some(true) if row.record.hashed_ns == 0 => {
                    self.imported.known += 1;
                    let file_system = row.record.entry.file_system;
                    let record = record(named, listed, file_system, true);
                    list_records::join(self.catalog, &row, &record)
                }
                _ => self.compare(&row, &listed.digests),
            },
        }
    }

    /// Records an entry, in place of the row `before` if there is one.
    fn record(
        &mut self,
        before: Option<&Row>,
        named: ResolvedEntry,
        listed: ManifestEntry,
    ) -> Result<()> {
        self.imported.recorded += 1;
        self.imported.absent += u64::from(named.there.is_none());
        self.record_folders(&named.path)?;
        let file_system = match before {
            Some(row) => row.record.entry.file_system,
            None => self.catalog.root_identity().0.id,
        };
        self.catalog.put(before, record(named, listed, file_system, true), &[])
    }

    /// Compares digests with a record, which stays as it is.
    pub(super) fn compare(
        &mut self,
        row: &Row,
        digests: &Digests,
    ) -> Result<std::result::Result<(), ListProblem>> {
        let shown = row.record.path.display();
        let (trouble, reason) = match row.record.digests.agree(digests) {
            Some(true) => {
                self.imported.known += 1;
                return Ok(Ok(()));
            }
            Some(false) => {
                self.imported.conflicts += 1;
                let reason = format!("{shown} is recorded with another digest, which stays");
                (ProblemKind::Malformed, reason)
            }
            None => {
                self.imported.incomparable += 1;
                (ProblemKind::Note, format!("{shown} is recorded with other kinds of digests only"))
            }
        };
        Ok(Err(ListProblem::new(trouble, reason)))
    }

    /// Records the folders that a file is in, as they are: otherwise each would
    /// be new to the next `verify`.
    pub(super) fn record_folders(&mut self, path: &RelPath) -> Result<()> {
        if path.parent().is_none_or(|folder| folder.is_root() || self.folders.contains(&folder)) {
            return Ok(());
        }
        // From the top, and no further than there are folders: a name in a list may have
        // more components than any system takes.
        for folder in path.folders() {
            if self.folders.contains(&folder) {
                continue;
            }
            let stat = self.open.root.stat(folder.as_bytes());
            let Some(stat) = stat.ok().filter(|stat| stat.kind == Kind::Folder) else { break };
            if self.catalog.get(&folder)?.is_none() {
                self.record_folder(&folder, stat.mtime_ns)?;
            }
            self.folders.insert(folder);
        }
        Ok(())
    }

    fn record_folder(&mut self, path: &RelPath, mtime_ns: i64) -> Result<()> {
        let entry = Entry {
            kind: EntryKind::Folder,
            size: 0,
            mtime_ns,
            ctime_ns: None,
            birth_ns: None,
            inode: None,
            file_system: self.catalog.root_identity().0.id,
            target: None,
        };
        let record = Record {
            path: path.clone(),
            entry,
            digests: Digests::default(),
            hashed_ns: 0,
            verified_s: 0,
            gone_s: None,
        };
        self.catalog.put(None, record, &[])
    }
}

/// Returns true if two sets of digests have the same values, and not one name in common.
fn is_renamed(recorded: &Digests, listed: &Digests) -> bool {
    let values = |digests: &Digests| -> Vec<Vec<u8>> {
        let all = digests.algorithms();
        let values = all.iter().filter_map(|one| digests.get(one).map(<[u8]>::to_vec));
        values.collect()
    };
    recorded.agree(listed).is_none() && values(recorded) == values(listed)
}

fn open_or_create(
    place: &RootLocation,
    open: &OpenRoot,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<Catalog> {
    if place.is_recorded() {
        return dry_run::open_to_write(place, access, monitor);
    }
    let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
    let settings = RootSettings { digests, cross_file_systems: false };
    if access.is_dry_run {
        return dry_run::new_record(place, open, settings, access, monitor);
    }
    make_own_folder(place)?;
    let lock = lock(&place.catalog, access, monitor)?;
    if !place.is_recorded() {
        let root = root_identity(place, open, false);
        Catalog::create(&place.catalog, settings, root, Clock::default().now_s())?;
    }
    Catalog::open(&place.catalog, Some(lock))
}
