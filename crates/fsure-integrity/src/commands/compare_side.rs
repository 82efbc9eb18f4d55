//! One side of a comparison: a folder as it is now, a catalog or a list, as one
//! stream of records in the order of paths.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use fsure_os::filesystem_id::Volume;
use fsure_os::{input, path as os_path};

use super::list_catalog::{ListCatalog, expected_where};
use super::list_records::ResolvedEntry;
use super::open_root::{open_root, require_record};
use super::snapshot::{look, warn_of_known_damage};
use super::{Options, list_records};
use crate::catalog::{Audit, Catalog, PageStart, RootLocation, StoredRow, locate};
use crate::manifest::{ManifestEntry, ManifestFormat, ManifestSource, is_database};
use crate::model::{KnownDamage, Record, ScanMonitor, VerdictCounts};
use fsure_core::{Algorithm, AlgorithmSet, IoContext as _, NullMonitor, RelPath, Result};

/// One of the two sides of a comparison, as the user names it.
#[derive(Clone, Debug)]
pub struct CompareSide {
    /// A folder, a catalog or a list.
    pub path: PathBuf,
    /// Format of a list; `None` to detect it from the list.
    pub format: Option<ManifestFormat>,
}

/// One side of a comparison as the user has named it.
pub(super) enum CompareInput {
    Folder(RootLocation),
    Catalog(PathBuf),
    List(ManifestSource),
}

impl CompareInput {
    pub(super) fn of(side: &CompareSide, monitor: &dyn ScanMonitor) -> Result<Self> {
        if os_path::is_folder(&side.path) {
            return locate(&side.path, None).map(Self::Folder);
        }
        if input::is_stream(&side.path) {
            return ManifestSource::open(&side.path, side.format, monitor).map(Self::List);
        }
        Ok(match is_database(&side.path)? {
            true => Self::Catalog(side.path.clone()),
            false => Self::List(ManifestSource::open(&side.path, side.format, monitor)?),
        })
    }

    /// The same; the absolute paths of a list are names in the folder of the other side.
    pub(super) fn beside(self, other: &Self) -> Self {
        match (self, other) {
            (Self::List(source), Self::Folder(place)) => {
                Self::List(source.of_files_in(place.asked()))
            }
            (itself, _) => itself,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder(_))
    }

    /// Returns the digests that it has; `None` if it has none yet.
    pub(super) fn digests(&self) -> Result<Option<AlgorithmSet>> {
        let file = match self {
            Self::Folder(place) => &place.catalog,
            Self::Catalog(file) => file,
            Self::List(source) => {
                let first = list_records::first(source, &NullMonitor)?;
                return Ok(first.map(|listed| listed.digests.algorithms()));
            }
        };
        let Ok(mut catalog) = Catalog::open(file, None) else { return Ok(None) };
        // Imported files can have other digests than the ones set for new records.
        let first =
            catalog.page(&PageStart::From(b""), None)?.into_iter().find_map(
                |stored| match stored {
                    StoredRow::Sound(row) if row.is_live_file() => {
                        Some(row.record.digests.algorithms())
                    }
                    _ => None,
                },
            );
        Ok(first.or(Some(catalog.settings().digests)))
    }

    /// Opens it. `other` is the other side, if that is open already.
    pub(super) fn open(
        &self,
        wanted: Algorithm,
        by_records: bool,
        other: Option<&mut OpenedSide>,
        options: &Options,
        monitor: &dyn ScanMonitor,
    ) -> Result<OpenedSide> {
        match self {
            Self::Folder(place) if by_records => {
                require_record(place)?;
                OpenedSide::recorded(place.clone(), monitor)
            }
            Self::Folder(place) => OpenedSide::look(place, wanted, options, monitor),
            Self::Catalog(file) => {
                // A catalog does not name its root: its commands need any folder.
                let (root, scope) = (PathBuf::from("."), RelPath::root());
                let catalog = os_path::without_links(file).context("find", file)?;
                OpenedSide::recorded(RootLocation { root, catalog, scope, parts: None }, monitor)
            }
            Self::List(source) => OpenedSide::read(source, wanted, other, monitor),
        }
    }
}

/// Returns the name of an entry, as the list spells it.
fn as_written(listed: &ManifestEntry) -> ResolvedEntry {
    ResolvedEntry { path: listed.path.clone(), there: None, written: None }
}

/// One of the two trees as records, page by page.
pub(super) struct OpenedSide {
    catalog: Catalog,
    scope: RelPath,
    /// Paths below the scope that could not be read. Their records are not those of the
    /// current state.
    pub(super) unread: BTreeSet<RelPath>,
    pub(super) bytes_read: u64,
    /// Time from which on a file was read for this comparison; `None` if none of the entries is
    /// a record of fsure.
    pub(super) read_since_ns: Option<i64>,
    /// Rows of its record that are damaged or lost.
    pub(super) faults: u64,
    /// Files that are known to be damaged, by the verdict of the run that last read them.
    pub(super) known_damage: VerdictCounts,
    /// True if it is a list, which contains files only.
    pub(super) is_list: bool,
    /// True if it is a list that names no file.
    pub(super) is_empty_list: bool,
    /// Lines that make no sense.
    pub(super) malformed: u64,
    /// Entries that cannot be used.
    pub(super) unusable: u64,
    page: VecDeque<StoredRow>,
    after: Option<Vec<u8>>,
}

impl OpenedSide {
    fn of(catalog: Catalog, scope: RelPath) -> Self {
        Self {
            catalog,
            scope,
            unread: BTreeSet::new(),
            bytes_read: 0,
            read_since_ns: None,
            faults: 0,
            known_damage: VerdictCounts::default(),
            is_list: false,
            is_empty_list: false,
            malformed: 0,
            unusable: 0,
            page: VecDeque::new(),
            after: None,
        }
    }

    /// Opens the tree as a catalog has it, whatever is there now.
    fn recorded(place: RootLocation, monitor: &dyn ScanMonitor) -> Result<Self> {
        let mut catalog = Catalog::open(&place.catalog, None)?;
        let faults = Audit::of(&mut catalog)?.faults();
        let mut known_damage = VerdictCounts::default();
        let mut add = |_, known: KnownDamage| known_damage.add(known.verdict);
        catalog.findings().each_damage(&place.scope, &mut add)?;
        warn_of_known_damage(&place, &known_damage, monitor);
        let read_since_ns = Some(i64::MAX);
        Ok(Self { faults, known_damage, read_since_ns, ..Self::of(catalog, place.scope) })
    }

    /// Reads a tree as it is now, whatever was recorded of it before.
    fn look(
        place: &RootLocation,
        wanted: Algorithm,
        options: &Options,
        monitor: &dyn ScanMonitor,
    ) -> Result<Self> {
        let open = open_root(place)?;
        let digests = AlgorithmSet::of(&[wanted]);
        let read_since_ns = Some(options.clock.now_ns());
        let looked = look(place, &open, digests, false, options, monitor)?;
        let start = place.scope.below().0.len();
        let within =
            |path: RelPath| RelPath::from_bytes(path.as_bytes().get(start..).unwrap_or_default());
        let unread = looked.unread.into_iter().map(within).collect();
        let (bytes_read, faults) = (looked.bytes_read, looked.bad_records);
        let opened = Self::of(looked.catalog, place.scope.clone());
        let known_damage = looked.known_damage;
        Ok(Self { unread, bytes_read, read_since_ns, faults, known_damage, ..opened })
    }

    /// Reads a list. Its names are spelled as on the other side, if that is open.
    fn read(
        source: &ManifestSource,
        wanted: Algorithm,
        mut other: Option<&mut Self>,
        monitor: &dyn ScanMonitor,
    ) -> Result<Self> {
        let mut find = |listed: &ManifestEntry| match &mut other {
            Some(other) => other.named(listed),
            None => Ok(as_written(listed)),
        };
        let root = (Volume::unknown(), 0);
        let digests = AlgorithmSet::of(&[wanted]);
        let ListCatalog { catalog, entries, troubles, .. } =
            expected_where(root, source, digests, &mut find, monitor)?;
        let command = |list: &str, folder: &str| format!("fsure compare {list} {folder}");
        troubles.warn_of_elsewhere(source, &command, monitor);
        let list_records::ListProblems { malformed, unusable, .. } = troubles;
        let opened = Self::of(catalog, RelPath::root());
        let is_empty_list = entries + unusable == 0;
        if is_empty_list {
            monitor.warn(&format!("{} names no file", source.label().display()));
        }
        Ok(Self { is_list: true, is_empty_list, malformed, unusable, ..opened })
    }

    /// Returns the name of an entry of the other side, as this side spells it.
    fn named(&mut self, listed: &ManifestEntry) -> Result<ResolvedEntry> {
        let others = if self.has(&listed.path)? { Vec::new() } else { listed.path_variants() };
        for path in others {
            if self.has(&path)? {
                return Ok(ResolvedEntry { path, there: None, written: Some(listed.path.clone()) });
            }
        }
        Ok(as_written(listed))
    }

    fn has(&mut self, path: &RelPath) -> Result<bool> {
        let path = self.scope.join(path.as_bytes());
        Ok(matches!(self.catalog.get(&path)?, Some(StoredRow::Sound(row)) if !row.is_gone()))
    }

    /// Returns the next item that is not a tombstone; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<SideEntry>> {
        let (first, end) = self.scope.below();
        loop {
            if self.page.is_empty() {
                let from = self.after.as_deref().map_or(PageStart::From(&first), PageStart::After);
                self.page = self.catalog.page(&from, end.as_deref())?.into();
            }
            let Some(stored) = self.page.pop_front() else { return Ok(None) };
            self.after = Some(stored.path().as_bytes().to_vec());
            let path = RelPath::from_bytes(&stored.path().as_bytes()[first.len()..]);
            let what = match stored {
                StoredRow::Sound(row) if row.is_gone() => continue,
                _ if self.unread.remove(&path) => SideRecord::Unread,
                StoredRow::Bad(_) => SideRecord::BadRecord,
                StoredRow::Sound(row) => {
                    SideRecord::Record(Box::new(Record { path: path.clone(), ..row.record }))
                }
            };
            return Ok(Some(SideEntry { path, what }));
        }
    }
}

/// A path on one side.
pub(super) struct SideEntry {
    pub(super) path: RelPath,
    pub(super) what: SideRecord,
}

/// The record of a path, or the reason why there is none that can be compared.
pub(super) enum SideRecord {
    /// Its record, under its path below the scope.
    Record(Box<Record>),
    /// It could not be read.
    Unread,
    /// Its record fails its seal.
    BadRecord,
}
