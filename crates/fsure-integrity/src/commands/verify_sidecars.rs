//! A record made of the sidecars, if there is no catalog: a
//! folder that was moved alone to another disk, a file copied with its
//! attributes. Carriers are believed as far as their own digests and each other
//! go, and the files are judged by them as by any record of a copy.

use std::io;
use std::sync::Arc;

use fsure_os::Kind;
use fsure_os::file_attributes::{HAS_ATTRIBUTES, Node};
use fsure_os::physical_order::LocateFiles;

use super::open_root::{OpenRoot, open_root, plan, require_parts};
use super::sidecar_io::{ProblemReporter, read_folder_file};
use super::{Options, list_records};
use crate::catalog::{Catalog, OWN_CATALOG, OWN_FOLDER, RootLocation, RootSettings, StoredRow};
use crate::manifest::{ManifestEntry, contradicts, read_attribute, read_folder};
use crate::model::{
    Allowed, Changes, FILE_ATTRIBUTE, FOLDER_FILE, Outcome, ScanMonitor, SidecarCounts,
};
use crate::scan::{Purpose, scan};
use crate::tree::{Walk, WalkEvent, WalkOptions};
use fsure_core::{Algorithm, AlgorithmSet, Clock, Error, RelPath, Result, count};

/// Files that are looked at before a tree is taken for one without carriers.
const PROBED: u64 = 100;

/// Judges the files of a folder without a catalog by what travelled with them;
/// `None` where nothing did.
pub(super) fn verify(
    place: &RootLocation,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Option<Outcome>> {
    let open = open_root(place)?;
    let settings = RootSettings {
        digests: AlgorithmSet::of(&[Algorithm::Blake3]),
        cross_file_systems: options.cross_file_systems.unwrap_or(false),
    };
    let root = (open.volume.clone(), open.inode);
    let mut catalog = Catalog::temporary(&place.catalog, settings, root)?;
    let mut plan = plan(place, &open, &catalog, options, Purpose::Verify, false)?;
    let carriers = gather(&open, &plan.walk, &mut catalog, monitor)?;
    if carriers == SidecarCounts::default() {
        return Ok(None);
    }
    catalog.commit()?;
    let (place, unknown_paths) = require_parts(place, &open, &mut catalog, monitor)?;
    plan.scopes = place.scopes();
    plan.is_list = true;
    // They are in the folder: it is there, and each missing file is reported.
    plan.allowed = Allowed::ALL;
    // No run of this kind writes anything.
    plan.is_dry_run = false;
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    outcome.carriers = carriers;
    outcome.unknown_paths = unknown_paths;
    Ok(Some(outcome))
}

/// Fills a new catalog with what travelled with the data.
pub(super) fn adopt(
    place: &RootLocation,
    open: &OpenRoot,
    walk: &WalkOptions,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<SidecarCounts> {
    let carriers = gather(open, walk, catalog, monitor)?;
    if carriers.damaged + carriers.conflicts > 0 {
        return Err(Error::RecordUntrusted {
            catalog: place.root.clone(),
            why: "sidecars are damaged or contradict each other".to_owned(),
            hint: format!(
                "nothing was recorded; '{}' judges by the sound sidecars; if the data are known to \
                 be good, the others can be removed",
                place.command("verify")
            ),
            is_recoverable: false,
        });
    }
    if carriers.used > 0 {
        let (new, bytes) = (carriers.used, catalog.bytes());
        let changes = Changes { new, bytes, ..Changes::default() };
        catalog.history_mut().note_changes(
            &mut None,
            Clock::default().now_s(),
            "adopt",
            changes,
        )?;
    }
    catalog.commit()?;
    Ok(carriers)
}

pub(super) fn gather(
    open: &OpenRoot,
    walk: &WalkOptions,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<SidecarCounts> {
    let mut gatherer = Gatherer {
        open,
        catalog,
        reporter: ProblemReporter::new(monitor),
        found: SidecarCounts::default(),
    };
    let mut options = walk.clone();
    options.borders.places = LocateFiles::No;
    gatherer.folder(&RelPath::root())?;
    let mut files = 0;
    for step in Walk::start(Arc::clone(&open.root), options)? {
        if let Some(code) = monitor.stop_requested() {
            return Err(Error::Interrupted(code));
        }
        let WalkEvent::Entry(path, stat, _) = step? else { continue };
        match stat.kind {
            Kind::Folder => gatherer.folder(&path)?,
            Kind::File => gatherer.file(&path, &stat)?,
            _ => {}
        }
        files += u64::from(stat.kind == Kind::File);
        if files >= PROBED && gatherer.found == SidecarCounts::default() {
            break;
        }
    }
    let found = gatherer.found;
    if found.used > 0 {
        let files = if found.used == 1 { "file" } else { "files" };
        monitor.warn(&format!(
            "no catalog is here: fsure uses the records of {} {files} from the sidecars",
            count(found.used)
        ));
    }
    Ok(found)
}

fn is_own_file(path: &RelPath) -> bool {
    path.as_bytes() == OWN_FOLDER.as_bytes()
}

struct Gatherer<'a> {
    open: &'a OpenRoot,
    catalog: &'a mut Catalog,
    reporter: ProblemReporter<'a>,
    found: SidecarCounts,
}

impl Gatherer<'_> {
    fn folder(&mut self, folder: &RelPath) -> Result<()> {
        // A root of its own is judged by its own record.
        let catalog = folder.join(OWN_CATALOG.as_bytes());
        if !folder.is_root() && self.open.root.stat(catalog.as_bytes()).is_ok() {
            return Ok(());
        }
        let path = folder.join(FOLDER_FILE.as_bytes());
        let files = match read_folder_file(&self.open.root, folder) {
            Ok(None) => return Ok(()),
            Ok(Some(bytes)) => read_folder(&bytes),
            // The user may not enter the folder, as with 'lost+found': the scan calls it denied.
            Err(error) if !folder.is_root() && self.may_not_enter(&path, &error) => return Ok(()),
            Err(error) => Err(error.to_string()),
        };
        match files {
            // No file's record can be kept under the name that the catalog has.
            Ok(files) if folder.is_root() && files.iter().any(|file| is_own_file(&file.path)) => {
                self.damaged(&path, "it names a file of fsure itself");
            }
            Ok(files) => {
                for file in files {
                    let path = folder.join(file.path.as_bytes());
                    self.take(path, file)?;
                }
            }
            Err(why) => self.damaged(&path, &why),
        }
        Ok(())
    }

    /// Returns true if a folder refuses even the stat of what is in it.
    fn may_not_enter(&self, path: &RelPath, error: &io::Error) -> bool {
        let stat = self.open.root.stat(path.as_bytes());
        error.kind() == io::ErrorKind::PermissionDenied && stat.is_err()
    }

    fn file(&mut self, path: &RelPath, stat: &fsure_os::Stat) -> Result<()> {
        if !HAS_ATTRIBUTES {
            return Ok(());
        }
        let value = Node::at(&self.open.root, path.as_bytes())
            .and_then(|node| node.attribute(FILE_ATTRIBUTE));
        let carrier = match value {
            // The run that reads the file reports what is wrong with it.
            Ok(None) | Err(_) => return Ok(()),
            Ok(Some(value)) => read_attribute(path.name(), &value),
        };
        let carrier = match carrier {
            Ok(carrier) => carrier,
            Err(why) => {
                self.damaged(path, &why);
                return Ok(());
            }
        };
        let Some(StoredRow::Sound(row)) = self.catalog.get(path)? else {
            return self.take(path.clone(), carrier);
        };
        let other = crate::manifest::carried(&row.record);
        if contradicts(&carrier, &other) {
            self.found.conflicts += 1;
            self.found.used -= 1;
            let what = "its sidecar and that of its folder give different content for the same \
                        size and date: neither is used";
            self.reporter.report(path, what);
            return self.catalog.delete(path);
        }
        // Of two that are of different times, the one that fits the file.
        let fits = |listed: &ManifestEntry| {
            listed.size == Some(stat.size)
                && listed.modified.is_some_and(|modified| modified.time_ns == stat.mtime_ns)
        };
        if fits(&carrier) && !fits(&other) {
            self.catalog.delete(path)?;
            self.found.used -= 1;
            return self.take(path.clone(), carrier);
        }
        Ok(())
    }

    fn damaged(&mut self, path: &RelPath, why: &str) {
        self.found.damaged += 1;
        self.reporter.report(path, &format!("its sidecar is damaged: {why}"));
    }

    fn take(&mut self, path: RelPath, listed: ManifestEntry) -> Result<()> {
        self.found.used += 1;
        let file_system = self.catalog.root_identity().0.id;
        let named = list_records::ResolvedEntry { path, there: None, written: None };
        let record = list_records::record(named, listed, file_system, true);
        self.catalog.put(None, record, &[])
    }
}
