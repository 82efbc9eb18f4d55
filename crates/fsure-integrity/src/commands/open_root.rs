//! Prepares a run over a root: opens its catalog, checks its identity and reads its
//! configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fsure_os::filesystem_id::{self, Volume};
use fsure_os::lock::Lock;
use fsure_os::path as os_path;
use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::Root;

use super::config::{self, Config};
use super::damaged_catalogs::damaged_names;
use super::heal::is_draft_name;
use super::{Options, RecordAccess};
use crate::catalog::{
    Catalog, OWN_CATALOG, OWN_FOLDER, PageStart, RECOVERED, RootLocation, StoredRow,
};
use crate::model::{Allowed, Offline, Outcome, ScanMonitor, Scopes, is_carrier};
use crate::parity;
use crate::scan::{ContentSource, Purpose, ScanPlan};
use crate::tree::{LISTERS, Patterns, WalkBounds, WalkOptions};
use crate::trust::Trusted;
use fsure_core::{Error, IoContext as _, RelPath, Result, shell_quoted};

/// A root folder as it is now.
pub(super) struct OpenRoot {
    pub(super) root: Arc<Root>,
    pub(super) volume: Volume,
    pub(super) inode: u64,
    pub(super) config: Config,
}

/// Opens the root folder and finds the file system that it is on.
pub(super) fn open_root(place: &RootLocation) -> Result<OpenRoot> {
    let path = &place.root;
    let root = Root::open(path).context("open", path)?;
    let volume = filesystem_id::of(&root, b"").context("ask for the file system of", path)?;
    let inode = root.stat(b"").context("access", path)?.inode;
    let config = config::read(&root, path)?;
    Ok(OpenRoot { root: Arc::new(root), volume, inode, config })
}

/// Returns the identity by which a catalog knows its root. The granularity of the dates
/// of its file system is measured: with a file in the folder of the catalog, if that is in
/// the root and this is not a dry run.
pub(super) fn root_identity(
    place: &RootLocation,
    open: &OpenRoot,
    is_dry_run: bool,
) -> (Volume, u64) {
    let is_inside = place.is_inside();
    let folder = if is_inside { OWN_FOLDER.as_bytes() } else { b"" };
    let may_write = is_inside && !is_dry_run;
    let mtime_granularity_ns = filesystem_id::measure_granularity_ns(&open.root, folder, may_write);
    (Volume { mtime_granularity_ns, ..open.volume.clone() }, open.inode)
}

/// Brings the backup of a record in step with it, here and in the folders that the
/// user has named. A record is as sound without, so that what fails is a warning.
pub(super) fn keep_backup(
    place: &RootLocation,
    catalog: &mut Catalog,
    folders: &[PathBuf],
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let warn = |error: &std::io::Error| {
        monitor.warn(&format!(
            "the backup of {} could not be written: {error}; the record itself is sound",
            place.catalog.display()
        ));
    };
    if let Err(error) = catalog.keep_backup()? {
        warn(&error);
        return Ok(());
    }
    let name = place.root.file_name().map_or("root".into(), |name| name.to_string_lossy());
    for folder in folders {
        if let Err(error) = catalog.copy_backup(folder, &name) {
            warn(&error);
        }
    }
    Ok(())
}

/// Waits for the right to write the catalog.
pub(super) fn lock(file: &Path, access: RecordAccess, monitor: &dyn ScanMonitor) -> Result<Lock> {
    // A file that the user has named by mistake gets no lock beside it.
    Catalog::refuse_foreign(file)?;
    lock_any(file, access, monitor)
}

/// The same for a file that may be too damaged to be known as a catalog.
pub(super) fn lock_any(
    file: &Path,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<Lock> {
    Catalog::lock(file, wait(file, access, monitor))
}

/// Returns what is called for as long as another process has locked a catalog: it reports that
/// once, and ends the wait if the run is to end or was not to wait.
pub(super) fn wait<'a>(
    file: &'a Path,
    access: RecordAccess,
    monitor: &'a dyn ScanMonitor,
) -> impl FnMut(&str) -> Result<()> + 'a {
    let mut has_reported = false;
    move |holder: &str| {
        if access.is_impatient {
            let (catalog, holder) = (file.to_owned(), holder.to_owned());
            return Err(Error::RecordInUse { catalog, holder });
        }
        if !has_reported {
            monitor.warn(&format!(
                "{} is in use by another fsure ({holder}); waiting for it to finish",
                file.display()
            ));
            has_reported = true;
        }
        match monitor.stop_requested() {
            Some(code) => Err(Error::Interrupted(code)),
            None => Ok(()),
        }
    }
}

/// Fails if another process has locked a catalog, and waits for none. Nothing is locked or written.
pub(super) fn require_unlocked(file: &Path, monitor: &dyn ScanMonitor) -> Result<()> {
    let access = RecordAccess { is_impatient: true, ..RecordAccess::default() };
    Catalog::await_unlocked(file, wait(file, access, monitor))
}

/// Refuses a place without a record.
pub(super) fn require_record(place: &RootLocation) -> Result<()> {
    let root = place.root.clone();
    match place.is_recorded() {
        true => Ok(()),
        false if place.is_inside() || place.catalog.as_os_str().is_empty() => {
            Err(Error::NoRecord { path: root.clone(), folder: root })
        }
        false => Err(Error::NoCatalog { root, catalog: place.catalog.clone() }),
    }
}

/// The same for a run that might require a signature. The records that travel with the
/// data are not signed, and no record must be made of them.
pub(super) fn require_trusted_record(place: &RootLocation, options: &Options) -> Result<()> {
    match options.signed_by {
        Some(_) if !place.is_recorded() => Err(Error::RecordUntrusted {
            catalog: place.catalog.clone(),
            why: "no catalog is here, and sidecars cannot be signed".to_owned(),
            hint: "nothing was judged. Put the signed catalog back, or name it with '--catalog \
                   FILE'; '--signed-by none' checks no signature"
                .to_owned(),
            is_recoverable: false,
        }),
        _ => require_record(place),
    }
}

/// Checks the signature of the record; `None` if none is required.
pub(super) fn check_signature<'a>(
    place: &'a RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    options: &'a Options,
) -> Result<Option<Trusted<'a>>> {
    let by = options.signed_by.as_ref();
    by.map(|by| by.check(place, catalog, open.config.digest)).transpose()
}

/// Refuses a path that neither exists nor is recorded.
pub(super) fn require_scope(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
) -> Result<()> {
    match is_known(&place.scope, open, catalog)? {
        true => Ok(()),
        false => Err(not_there(place, &place.scope)),
    }
}

/// Leaves out of a selection the paths that neither exist nor are recorded, and reports each.
/// Returns the place and their number. It is an error if none is left.
pub(super) fn require_parts(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<(RootLocation, u64)> {
    require_scope(place, open, catalog)?;
    let Some(parts) = &place.parts else { return Ok((place.clone(), 0)) };
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for path in parts.iter() {
        if is_known(path, open, catalog)? { &mut known } else { &mut unknown }.push(path.clone());
    }
    if known.is_empty() {
        return Err(not_there(place, &unknown[0]));
    }
    for path in unknown.iter().take(PATHS_SHOWN_MAX) {
        monitor.warn(&not_there(place, path).to_string());
    }
    if let Some(more) = unknown.len().checked_sub(PATHS_SHOWN_MAX).filter(|more| *more > 0) {
        monitor.warn(&format!("... and {more} more that neither exist nor are recorded"));
    }
    let place = RootLocation { parts: Some(Scopes::of(known)), ..place.clone() };
    Ok((place, unknown.len() as u64))
}

/// Warns of each accepted path that neither exists nor is recorded, and returns their number: most
/// likely it is misspelt.
pub(super) fn warn_of_unknown(
    accepted: &[RelPath],
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<u64> {
    let nested = catalog.nested_roots().all()?;
    let mut unknown = 0;
    for path in accepted.iter().filter(|path| !nested.contains(path)) {
        if !is_known(path, open, catalog)? {
            monitor.warn(&format!("--accept: {}", not_there(place, path)));
            unknown += 1;
        }
    }
    Ok(unknown)
}

/// Paths of a selection that are named if they neither exist nor are recorded.
const PATHS_SHOWN_MAX: usize = 20;

fn not_there(place: &RootLocation, path: &RelPath) -> Error {
    Error::not_there(place.root.join(os_path::from_bytes(path.as_bytes())))
}

/// Returns true if a path exists or anything at or below it is recorded.
fn is_known(path: &RelPath, open: &OpenRoot, catalog: &mut Catalog) -> Result<bool> {
    let stat = open.root.stat(path.as_bytes());
    if !stat.is_err_and(|error| fsure_os::root_dir::is_gone(&error)) {
        return Ok(true);
    }
    let (first, end) = path.below();
    Ok(catalog.get(path)?.is_some()
        || !catalog.page(&PageStart::From(&first), end.as_deref())?.is_empty())
}

/// Makes the folder of a record that is kept in its root, if it is missing; returns true then.
pub(super) fn make_own_folder(place: &RootLocation) -> Result<bool> {
    let folder = place.root.join(OWN_FOLDER);
    if !place.is_inside() || os_path::exists(&folder) {
        return Ok(false);
    }
    os_path::make_lasting_folder(&folder)
        .map_err(|error| Error::record_write_failed(&place.catalog, &error))?;
    Ok(true)
}

/// Returns the reason why the root cannot be the recorded one; `None` if it can, or if that is
/// allowed. A catalog in the root came with it: then the root is a copy, and can be judged.
pub(super) fn detect_offline(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &Catalog,
    allowed: Allowed,
) -> Result<Option<Offline>> {
    refuse_inner_folder(place, open, catalog)?;
    let is_another = !is_recorded_root(open, catalog) && !place.is_inside() && !catalog.is_empty();
    if is_another && !allowed.other_disk {
        let (recorded, _) = catalog.root_identity();
        let recorded = describe(&recorded.volume);
        let (found, is_empty) = (describe(&open.volume), is_empty(place, open)?);
        let is_empty = is_empty && !allowed.empty;
        return Ok(Some(Offline::OtherFileSystem { recorded, found, is_empty }));
    }
    let is_emptied = !allowed.empty && catalog.files() > 0 && is_empty(place, open)?;
    Ok(is_emptied.then_some(Offline::Empty))
}

/// Refuses a folder within the recorded root. A catalog that is kept elsewhere is held against the
/// folder that is named: most of its files would count as gone, and the rest as moved.
fn refuse_inner_folder(place: &RootLocation, open: &OpenRoot, catalog: &Catalog) -> Result<()> {
    let (recorded, Some(inode)) = catalog.root_identity() else { return Ok(()) };
    if place.is_inside() || catalog.is_empty() || inode == open.inode {
        return Ok(());
    }
    let is_recorded = |folder: &Path| {
        let Ok(outer) = Root::open(folder) else { return false };
        let is_same = outer.stat(b"").is_ok_and(|stat| stat.inode == inode);
        let volume = &recorded.volume;
        is_same
            && filesystem_id::of(&outer, b"").is_ok_and(|found| {
                found.kind == volume.kind && found.uuid == volume.uuid && found == open.volume
            })
    };
    match place.root.ancestors().skip(1).find(|folder| is_recorded(folder)) {
        None => Ok(()),
        Some(outer) => Err(Error::Usage {
            message: format!(
                "{} is in the folder that is recorded in {}, and with '--catalog FILE', PATH must \
                 be that folder",
                place.root.display(),
                place.catalog.display()
            ),
            hint: Some(format!(
                "name the recorded folder: fsure verify {} --catalog {}",
                shell_quoted(outer),
                shell_quoted(&place.catalog)
            )),
        }),
    }
}

/// Returns true if the root contains nothing but fsure's own files.
pub(super) fn is_empty(place: &RootLocation, open: &OpenRoot) -> Result<bool> {
    let own = own_paths(place);
    let is_own = |name: &[u8]| is_carrier(name) || own.iter().any(|own| own.as_bytes() == name);
    open.root.has_names_besides(&is_own).map(|is_one| !is_one).context("list", &place.root)
}

/// Returns true if the root is the folder, or at least on the file system, that was
/// recorded.
pub(super) fn is_recorded_root(open: &OpenRoot, catalog: &Catalog) -> bool {
    let (recorded, inode) = catalog.root_identity();
    let then = &recorded.volume;
    // Without UUID only the root's inode identifies it, if that is recorded.
    let is_known = then.uuid.is_some() || inode.is_none_or(|inode| inode == open.inode);
    then.kind == open.volume.kind && then.uuid == open.volume.uuid && is_known
}

/// Returns true if the root is provably the recorded one, or the copy that its record
/// travelled with: the mount point of a disk that is not mounted is neither.
pub(super) fn is_surely_the_root(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
) -> Result<bool> {
    if place.is_inside() || !is_recorded_root(open, catalog) {
        return Ok(place.is_inside());
    }
    let (recorded, inode) = catalog.root_identity();
    let is_known = recorded.volume.uuid.is_some() && inode == Some(open.inode);
    Ok(is_known || is_any_as_recorded(&open.root, catalog)?)
}

/// Returns true if any recorded file is there, with its inode and its change time: on
/// another file system without UUID, none would be.
pub(super) fn is_any_as_recorded(root: &Root, catalog: &mut Catalog) -> Result<bool> {
    let mut after = Vec::new();
    loop {
        let page = catalog.page(&PageStart::After(&after), None)?;
        let Some(last) = page.last() else { return Ok(false) };
        after = last.path().as_bytes().to_vec();
        let is_there = |stored: &StoredRow| {
            let StoredRow::Sound(row) = stored else { return false };
            let then = &row.record.entry;
            let now = root.stat(row.record.path.as_bytes());
            row.is_live_file()
                && now.is_ok_and(|now| {
                    then.inode == Some(now.inode) && then.ctime_ns == Some(now.ctime_ns)
                })
        };
        if page.iter().any(is_there) {
            return Ok(true);
        }
    }
}

/// Warns with the given consequence if the root is not the one that was recorded.
pub(super) fn warn_of_other_root(
    open: &OpenRoot,
    catalog: &Catalog,
    consequence: &str,
    monitor: &dyn ScanMonitor,
) {
    if is_recorded_root(open, catalog) {
        return;
    }
    let recorded = describe(&catalog.root_identity().0.volume);
    let found = describe(&open.volume);
    let difference = if recorded == found {
        format!(
            "this is not the folder that was recorded, though on the same kind of file system \
             ({found})"
        )
    } else {
        format!("this is not the file system that was recorded ({recorded}), but {found}")
    };
    monitor.warn(&format!("{difference}: {consequence}"));
}

fn describe(volume: &Volume) -> String {
    let uuid = volume.uuid.as_deref();
    let uuid = uuid.map_or("without UUID".to_owned(), |uuid| format!("UUID {}", dashed(uuid)));
    format!("{}, {uuid}", volume.kind)
}

/// Returns a UUID as `lsblk` and `blkid` show it: 32 digits in five groups. Shorter ones, of FAT
/// for example, stay as they are.
fn dashed(uuid: &str) -> String {
    match uuid.len() == 32 && uuid.is_ascii() {
        true => {
            let groups = [&uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]];
            groups.join("-")
        }
        false => uuid.to_owned(),
    }
}

/// Returns the outcome of a run over a root that is offline.
pub(super) fn offline_outcome(
    offline: Offline,
    options: &Options,
    command: &'static str,
) -> Outcome {
    Outcome {
        command,
        offline: Some(offline),
        allowed: options.allowed,
        is_update: command == "update",
        is_dry_run: options.access.is_dry_run,
        ..Outcome::default()
    }
}

/// Makes the plan of a run.
pub(super) fn plan(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &Catalog,
    options: &Options,
    purpose: Purpose,
    may_write: bool,
) -> Result<ScanPlan> {
    let recorded = catalog.settings().cross_file_systems;
    // Of an empty root, all is missing.
    let allows_missing = options.allowed.missing || options.allowed.empty && is_empty(place, open)?;
    let reads_from = options.reads_from.unwrap_or(match purpose {
        Purpose::Update(_) => ContentSource::Cache,
        _ => ContentSource::Medium,
    });
    Ok(ScanPlan {
        scopes: place.scopes(),
        walk: WalkOptions {
            scope: place.scope.clone(),
            patterns: Patterns::new(
                &options.exclude,
                &open.config.exclude,
                &options.exclude_always,
            )?,
            borders: WalkBounds {
                cross_file_systems: options.cross_file_systems.unwrap_or(recorded),
                mounted_over: Vec::new(),
                own: own_paths(place).into_iter().chain(drafts(catalog, options)?).collect(),
                places: match (&purpose, reads_from) {
                    (Purpose::Status, _) => LocateFiles::No,
                    (Purpose::Update(rules), _) if !rules.full && !catalog.is_empty() => {
                        LocateFiles::No
                    }
                    (_, ContentSource::Cache) => LocateFiles::IfCold,
                    (_, ContentSource::Medium) => LocateFiles::Yes,
                },
                catalog_in_root: OWN_CATALOG,
            },
            listers: LISTERS,
            timeout: options.effort.timeout,
        },
        reads_from,
        effort: options.effort.clone(),
        may_write,
        meta: catalog.options().meta,
        allowed: Allowed { missing: allows_missing, ..options.allowed },
        report_ok: options.report_ok,
        is_dry_run: options.access.is_dry_run,
        has_recovery_data: parity::is_kept(&place.catalog),
        clock: options.clock.clone(),
        ..ScanPlan::new(Arc::clone(&open.root), purpose)
    })
}

/// Refuses to record a tree in which a file might be half healed: its date
/// makes it look like an edit.
pub(super) fn reject_interrupted_heal(place: &RootLocation) -> Result<()> {
    if !os_path::exists(&Catalog::journal_file(&place.catalog)) {
        return Ok(());
    }
    Err(Error::RecordNotWritten {
        catalog: place.catalog.clone(),
        why: "an in-place heal was interrupted, and a file may be half written".to_owned(),
        hint: format!("nothing was recorded; '{} --yes' finishes it", place.command("heal")),
    })
}

/// Warns if a heal was cut off.
pub(super) fn warn_interrupted_heal(
    place: &RootLocation,
    catalog: &Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let has_journal = os_path::exists(&Catalog::journal_file(&place.catalog));
    if has_journal || !catalog.heal_drafts().all()?.is_empty() {
        let heal = place.command("heal");
        monitor.warn(&format!("an earlier heal was interrupted; '{heal} --yes' finishes it"));
    }
    Ok(())
}

/// Returns the paths of drafts that a heal that was cut off has left in the tree. Empty
/// if a signature is required: none covers the notes of drafts, so that a forged note
/// could hide any name.
fn drafts(catalog: &Catalog, options: &Options) -> Result<Vec<RelPath>> {
    if options.signed_by.is_some() {
        return Ok(Vec::new());
    }
    let drafts = catalog.heal_drafts().all()?.into_iter().map(|(_, draft)| draft);
    Ok(drafts.filter(|draft| is_draft_name(draft.name())).collect())
}

/// Returns the files that `recover` has kept beside a catalog in the tree.
fn damaged_catalogs(place: &RootLocation) -> impl Iterator<Item = RelPath> {
    let folder = place.catalog.parent().unwrap_or(&place.root);
    let below = folder.strip_prefix(&place.root).map(|folder| os_path::bytes(folder).into_owned());
    let below = RelPath::from_bytes(below.unwrap_or_default());
    damaged_names(&place.catalog).into_iter().map(move |name| below.join(&name))
}

/// Returns the paths below the root that are fsure's own.
fn own_paths(place: &RootLocation) -> Vec<RelPath> {
    let mut own = vec![RelPath::from_bytes(OWN_FOLDER.as_bytes())];
    if let Ok(catalog) = place.catalog.strip_prefix(&place.root) {
        let catalog = os_path::bytes(catalog);
        let with = |tail: &[u8]| RelPath::from_bytes([&*catalog, tail].concat());
        own.extend(
            [
                b"".as_slice(),
                b".lock",
                b"-journal",
                b".making",
                b".healing",
                b".parity",
                b".seal",
                b".backup",
                b".backup.making",
                b".backup.away",
                b".recovering",
                RECOVERED.as_bytes(),
            ]
            .map(with),
        );
        own.extend(damaged_catalogs(place));
    }
    own
}
