//! `recover`: puts a damaged record together from what is sound of it, from its
//! backups, and from what travels with the data. The damaged file is kept. Where it
//! is proved that nothing is lacking, the new record says all that the old one did.

use std::io;
use std::path::{Path, PathBuf};

use fsure_os::filesystem_id::Volume;
use fsure_os::lock::Lock;
use fsure_os::path::{self as os_path, with_suffix};
use fsure_os::scratch_dir::Scratch;
use fsure_os::unnamed_file;
use fsure_os::user_file::open_own;

use super::damaged_catalogs::kept_name;
use super::open_root::{
    OpenRoot, is_any_as_recorded, is_recorded_root, keep_backup, lock_any, make_own_folder,
    open_root, plan, require_record, root_identity, wait,
};
use super::{Options, RecordAccess, verify_sidecars};
use crate::catalog::{
    Audit, Catalog, OWN_CATALOG, PageStart, RECOVERED, ReadSeek, Recovered, RootLocation,
    RootSettings, Row, Sources, StoredRow, drop_unproven_blocks, is_recorded, open_unchanged,
};
use crate::model::{Changes, Generation, ScanMonitor, Verdict};
use crate::scan::{Purpose, are_proven};
use fsure_core::{
    AlgorithmSet, Clock, Error, ExitCode, IoContext as _, RelPath, Result, shell_quoted,
};

/// The end of the name of a catalog that is being put together.
const RECOVERING: &str = ".recovering";

/// The options of `recover`.
#[derive(Clone, Debug, Default)]
pub struct RecoverOptions {
    /// Backups besides the one beside the catalog.
    pub from: Vec<PathBuf>,
    /// The manner in which the run takes the record; a dry run says what could be put together.
    pub access: RecordAccess,
    /// Folders in which a copy of the backup is kept.
    pub backup_folders: Vec<PathBuf>,
}

/// The result of `recover`.
#[derive(Clone, Debug, Default)]
pub struct CatalogRepair {
    /// The damage; `None` if the record is sound and was left alone.
    pub damage: Option<String>,
    /// The result of putting it together.
    pub recovered: Recovered,
    /// Files whose records only travelled with the data.
    pub from_sidecars: u64,
    /// Rows of the new record.
    pub rows: u64,
    /// Large files whose block values are lost: they are verified as a whole.
    pub without_blocks: u64,
    /// The path of the damaged record; `None` if there was none, and in a dry
    /// run.
    pub kept_as: Option<PathBuf>,
    /// True if the record does not tell that its root is this folder: a run over it has to be
    /// allowed to find another disk there.
    pub is_root_unproved: bool,
    /// True if nothing was changed because that was asked for.
    pub is_dry_run: bool,
}

impl CatalogRepair {
    /// Rows that are known to be lost.
    pub fn lost(&self) -> u64 {
        let before = self.recovered.rows_before.unwrap_or(0);
        if self.recovered.is_whole() { 0 } else { before.saturating_sub(self.rows) }
    }

    fn has_changed(&self) -> bool {
        self.damage.is_some() && !self.is_dry_run
    }

    /// The exit code it deserves: 7 for a record that is whole again.
    pub fn exit_code(&self) -> ExitCode {
        match &self.damage {
            None => ExitCode::Clean,
            Some(_) if self.is_dry_run => ExitCode::RecordUntrusted,
            Some(_) if self.recovered.is_whole() => ExitCode::Healed,
            Some(_) => ExitCode::Incomplete,
        }
    }
}

/// The nearest root above a path that has a record, or a backup of one.
pub fn locate_backup(path: &Path) -> Result<Option<RootLocation>> {
    let asked = os_path::resolve(path).context("find", path)?;
    let root = asked.ancestors().find(|folder| {
        let catalog = folder.join(OWN_CATALOG);
        is_recorded(&catalog)
    });
    Ok(root.map(|root| RootLocation {
        root: root.to_owned(),
        catalog: root.join(OWN_CATALOG),
        scope: RelPath::root(),
        parts: None,
    }))
}

/// Puts the record of a root together, if it needs that.
pub fn recover(
    place: &RootLocation,
    options: &RecoverOptions,
    monitor: &dyn ScanMonitor,
) -> Result<CatalogRepair> {
    let open = open_root(place)?;
    if options.from.is_empty() {
        require_record(place)?;
    }
    if options.access.is_dry_run {
        return rehearse(place, &open, options, monitor);
    }
    // Of a folder whose record is gone, a backup may be kept elsewhere.
    let is_folder_new = make_own_folder(place)?;
    let lock_file = Catalog::lock_file(&place.catalog);
    let had_lock_file = os_path::exists(&lock_file);
    let lock = lock_any(&place.catalog, options.access, monitor).inspect_err(|_| {
        if is_folder_new {
            os_path::remove(&place.catalog, true);
        }
    })?;
    let recovered = recover_locked(place, &open, lock, options, monitor);
    let has_changed = recovered.as_ref().is_ok_and(|recovery| recovery.has_changed());
    if !has_changed && !had_lock_file {
        os_path::remove(&lock_file, is_folder_new);
    }
    recovered
}

/// Puts a record together in a folder that is gone afterwards.
fn rehearse(
    place: &RootLocation,
    open: &OpenRoot,
    options: &RecoverOptions,
    monitor: &dyn ScanMonitor,
) -> Result<CatalogRepair> {
    Catalog::await_unlocked(&place.catalog, wait(&place.catalog, options.access, monitor))?;
    let Some(damage) = damage(place, true)? else {
        return Ok(CatalogRepair { is_dry_run: true, ..CatalogRepair::default() });
    };
    let mut recovery =
        CatalogRepair { damage: Some(damage), is_dry_run: true, ..CatalogRepair::default() };
    let folder = unnamed_file::folder();
    let scratch = Scratch::create(&folder, None).context("put a record together in", &folder)?;
    let (making, kept) = (scratch.path().join("catalog.db"), kept_name(&place.catalog));
    put_together(place, open, (&making, &kept), options, &mut recovery, monitor)?;
    Ok(recovery)
}

fn recover_locked(
    place: &RootLocation,
    open: &OpenRoot,
    lock: Lock,
    options: &RecoverOptions,
    monitor: &dyn ScanMonitor,
) -> Result<CatalogRepair> {
    let Some(damage) = damage(place, false)? else {
        return Ok(CatalogRepair::default());
    };
    let making = with_suffix(&place.catalog, RECOVERING);
    os_path::remove(&making, false);
    let mut recovery = CatalogRepair { damage: Some(damage), ..CatalogRepair::default() };
    let kept = kept_name(&place.catalog);
    let made = put_together(place, open, (&making, &kept), options, &mut recovery, monitor);
    if let Err(error) = made {
        os_path::remove(&making, false);
        return Err(error);
    }
    install(&place.catalog, &making, &kept, recovery.recovered.is_whole())?;
    recovery.kept_as = os_path::exists(&kept).then_some(kept);
    renew_backup(place, lock, &options.backup_folders, monitor)?;
    Ok(recovery)
}

/// Describes the damage of a record, if there is any.
fn damage(place: &RootLocation, is_dry_run: bool) -> Result<Option<String>> {
    if os_path::exists(&with_suffix(&place.catalog, RECOVERED)) {
        return Ok(Some("an earlier 'fsure recover' was interrupted".to_owned()));
    }
    if !os_path::exists(&place.catalog) {
        return Ok(Some("it is gone".to_owned()));
    }
    let look = || -> Result<Option<String>> {
        let mut catalog = match is_dry_run {
            true => open_unchanged(&place.catalog)?,
            false => Catalog::open(&place.catalog, None)?,
        };
        let audit = Audit::of(&mut catalog)?;
        let bad = audit.bad_rows.len();
        let bad = (bad > 0).then(|| format!("{bad} of its rows fail their own seal"));
        // Their totals are checked when they are read.
        catalog.history().generations()?;
        catalog.history().verifications()?;
        Ok(audit.objection.or(bad))
    };
    match look() {
        Err(Error::RecordUntrusted { why, .. }) => Ok(Some(why)),
        other => other,
    }
}

fn put_together(
    place: &RootLocation,
    open: &OpenRoot,
    (making, kept): (&Path, &Path),
    options: &RecoverOptions,
    recovery: &mut CatalogRepair,
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let present = |file: &dyn Fn(&Path) -> PathBuf| {
        let (own, kept) = (file(&place.catalog), file(kept));
        if os_path::exists(&own) { own } else { kept }
    };
    let (damaged, own) = (present(&Path::to_owned), present(&Catalog::backup_file));
    let files = options.from.iter().map(PathBuf::as_path);
    let mut backups = Vec::new();
    for file in files {
        backups.push((file, content(file)?.ok_or_else(|| not_there(file))?));
    }
    if let Some(content) = content(&own)? {
        backups.push((&own, content));
    }
    let sources = Sources {
        catalog: &place.catalog,
        damaged: content(&damaged)?,
        journal: content(&present(&journal))?,
        backups,
    };
    let now_s = Clock::default().now_s();
    let root = root_identity(place, open, options.access.is_dry_run);
    recovery.recovered = crate::catalog::recover(making, sources, root, now_s)?;
    if !recovery.recovered.is_of_catalog && !os_path::exists(&own) && !place.is_inside() {
        // By mistake '--catalog' may name any file.
        Catalog::refuse_foreign(&damaged).map_err(|error| match error {
            Error::RecordUntrusted { catalog, why, .. } => nothing_left(place, catalog, why),
            other => other,
        })?;
    }
    let mut catalog = Catalog::open(making, None)?;
    recovery.without_blocks = drop_unproven_blocks(&mut catalog, &is_proven)?;
    if !recovery.recovered.has_all_rows {
        recovery.from_sidecars = take_sidecars(place, open, &mut catalog, monitor)?;
    }
    if !recovery.recovered.is_whole() {
        note_losses(&mut catalog, now_s)?;
    }
    recovery.is_root_unproved = !place.is_inside() && !knows_root(open, &mut catalog)?;
    catalog.commit()?;
    let audit = Audit::of(&mut catalog)?;
    if !audit.is_clean() {
        let why = format!("the restored record is not sound: {audit:?}");
        return Err(Error::Internal(why));
    }
    recovery.rows = catalog.rows();
    if recovery.rows == 0 && recovery.recovered.rows_before != Some(0) {
        let why = "no row of it can be proved sound, and it has no backup".to_owned();
        return Err(nothing_left(place, place.catalog.clone(), why));
    }
    Ok(())
}

/// Returns true if the record knows the root folder. If the row of its file system is lost, the
/// folder is taken for the root where a recorded file has its inode and its change time.
fn knows_root(open: &OpenRoot, catalog: &mut Catalog) -> Result<bool> {
    if is_recorded_root(open, catalog) || catalog.is_empty() {
        return Ok(true);
    }
    let is_lost = catalog.root_identity().0.volume == Volume::unknown();
    let is_proved = is_lost && is_any_as_recorded(&open.root, catalog)?;
    if is_proved {
        catalog.bind_root(open.volume.clone(), open.inode)?;
    }
    Ok(is_proved)
}

/// Returns the error with advice for a record of which nothing is left to put together.
fn nothing_left(place: &RootLocation, catalog: PathBuf, why: String) -> Error {
    let is_recoverable = false;
    // It may be a photo: no advice moves that away.
    if !place.is_inside() && catalog.extension() != Some("db".as_ref()) {
        let hint = "nothing was changed; name the catalog itself with '--catalog FILE', or a backup \
                    of it that is kept elsewhere with '--from FILE'";
        return Error::RecordUntrusted { catalog, why, hint: hint.to_owned(), is_recoverable };
    }
    // Under names of damaged catalogs they are none of the user's files, even within the root.
    let kept = kept_name(&catalog);
    let files = [
        (catalog.clone(), kept.clone()),
        (Catalog::backup_file(&catalog), Catalog::backup_file(&kept)),
        (journal(&catalog), journal(&kept)),
    ];
    let there = files.iter().filter(|(file, _)| os_path::exists(file));
    let moves =
        there.map(|(file, away)| format!("mv {} {} && ", shell_quoted(file), shell_quoted(away)));
    let right = match place.is_inside() {
        true => "",
        false => "if '--catalog' names the wrong file, name the right one; ",
    };
    let hint = format!(
        "nothing was changed; {right}'--from FILE' names a backup that is kept elsewhere. Without \
         one, a new record can be begun: '{}{}'. It takes all files for sound as they are now: \
         damage from before is not detected any more. 'fsure compare' with a copy shows it",
        moves.collect::<String>(),
        place.command("update"),
    );
    Error::RecordUntrusted { catalog, why, hint, is_recoverable }
}

fn is_proven(row: &Row, values: &[[u8; 32]]) -> bool {
    are_proven(&row.record, values)
}

/// The content of a regular file; `None` where there is none.
fn content(file: &Path) -> Result<Option<Box<dyn ReadSeek>>> {
    match open_own(file) {
        Ok(content) => Ok(Some(Box::new(content))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("read", file),
    }
}

fn not_there(file: &Path) -> Error {
    Error::Usage { message: format!("{} does not exist", file.display()), hint: None }
}

/// Takes what travels with the data of files of which nothing else is left.
fn take_sidecars(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<u64> {
    let settings = RootSettings { digests: AlgorithmSet::default(), ..catalog.settings() };
    let identity = (open.volume.clone(), open.inode);
    let mut travelled = Catalog::temporary(&place.catalog, settings, identity)?;
    let options = Options::default();
    let walk = plan(place, open, &travelled, &options, Purpose::Status, false)?.walk;
    verify_sidecars::gather(open, &walk, &mut travelled, monitor)?;
    let (mut taken, mut after) = (0, Vec::new());
    loop {
        let page = travelled.page(&PageStart::After(&after), None)?;
        let Some(last) = page.last() else { return Ok(taken) };
        after = last.path().as_bytes().to_vec();
        for stored in page {
            let StoredRow::Sound(row) = stored else { continue };
            if catalog.get(&row.record.path)?.is_none() {
                let file_system = catalog.root_identity().0.id;
                let mut record = row.record.clone();
                record.entry.file_system = file_system;
                catalog.put(None, record, &[])?;
                taken += 1;
            }
        }
    }
}

/// Leaves a note that rows may be lost without a trace, as `--accept-all` does.
fn note_losses(catalog: &mut Catalog, now_s: i64) -> Result<()> {
    let (none, name) = (RelPath::root(), Verdict::RecordBad.name());
    catalog.note_accepted(now_s, &none, name, None, None)?;
    let number = catalog.history().next_generation()?;
    catalog.history_mut().put_generation(&Generation {
        number,
        at_s: now_s,
        command: "recover".to_owned(),
        made_by: crate::catalog::MADE_BY.to_owned(),
        changes: Changes::default(),
        seal: None,
    })
}

/// Puts the new record in the place of the damaged one, which is kept under another name;
/// so is its backup, if it may hold what the new record lacks. While [`RECOVERED`] is
/// there, a run that was cut off in between is gone on with, and no other takes place.
fn install(catalog: &Path, making: &Path, kept: &Path, is_whole: bool) -> Result<()> {
    let rename = |from: &Path, to: &Path| os_path::rename(from, to).context("rename", from);
    let keep = |from: &Path, to: &Path| match os_path::exists(from) {
        true => rename(from, to),
        false => Ok(()),
    };
    let recovered = with_suffix(catalog, RECOVERED);
    rename(making, &recovered)?;
    // The journal first: with the new record beside it, it would be carried out.
    keep(&journal(catalog), &journal(kept))?;
    keep(catalog, kept)?;
    if !is_whole {
        keep(&Catalog::backup_file(catalog), &Catalog::backup_file(kept))?;
    }
    rename(&recovered, catalog)
}

fn journal(catalog: &Path) -> PathBuf {
    with_suffix(catalog, "-journal")
}

/// Writes a backup of the record that was put together.
fn renew_backup(
    place: &RootLocation,
    lock: Lock,
    folders: &[PathBuf],
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let mut catalog = Catalog::open(&place.catalog, Some(lock))?;
    catalog.commit()?;
    keep_backup(place, &mut catalog, folders, monitor)
}
