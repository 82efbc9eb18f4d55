//! One folder as the walk needs it: its names sorted, what is left out
//! marked, and which of them are to be descended into.

use std::cmp::Ordering;
use std::io;

use fsure_os::root_dir::{Listing, NameAt, NameBuffer, Root, is_gone, is_other_kind};
use fsure_os::{Kind, Stat};

use super::excludes::{IGNORE_FILE, Patterns};
use super::walk_bounds::{ExcludeReason, WalkBounds};
use super::walk_event::WalkEvent;
use fsure_core::RelPath;

/// Maximum size of a pattern file, in bytes. A tree can come from any user,
/// and a megabyte of patterns takes a gigabyte of memory to match.
const IGNORE_FILE_MAX: usize = 32 << 10;

/// Entries after which the memory of those that were turned into items is given
/// back: some 7 MB.
const ENTRIES_GIVEN_BACK: usize = 1 << 16;

/// A folder still to be listed.
#[derive(Clone, Debug)]
pub(super) struct ListTask {
    pub(super) folder: RelPath,
    pub(super) device: u64,
    pub(super) patterns: Patterns,
}

/// A folder's content, ready to be reported. Paths are built when they are reported: what
/// waits has only names, one behind the other.
#[derive(Debug, Default)]
pub(super) struct FolderListing {
    folder: RelPath,
    names: NameBuffer,
    /// In the order of paths.
    items: std::vec::IntoIter<FolderItem>,
    /// The folders among them to be listed in turn.
    pub(super) tasks: Vec<ListTask>,
}

/// An item to report for a name in a folder, or for the folder itself.
#[derive(Debug)]
struct FolderItem {
    /// Empty for the folder itself.
    name: NameAt,
    what: NameKind,
}

#[derive(Debug)]
pub(super) enum NameKind {
    Entry(Stat, u64),
    LeftOut(Kind, ExcludeReason),
    Unseen(io::Error),
    Listed,
    Unlisted(io::Error),
    PatternsRead(Vec<u8>),
    PatternsUnread(io::Error),
    Descend,
}

/// The next item of a folder.
#[derive(Debug)]
pub(super) enum ListingItem {
    Step(WalkEvent),
    /// The content of this folder comes before the rest of the folder that contains it.
    Descend(RelPath),
}

impl FolderListing {
    fn of(folder: &RelPath, what: NameKind) -> Self {
        let items = vec![FolderItem { name: NameAt::default(), what }].into_iter();
        Self { folder: folder.clone(), items, ..Self::default() }
    }

    /// A folder whose names could not be read in time.
    pub(super) fn unanswered(folder: &RelPath, error: io::Error) -> Self {
        Self::of(folder, NameKind::Unlisted(error))
    }

    /// Returns the number of items that are left to report.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

impl Iterator for FolderListing {
    type Item = ListingItem;

    fn next(&mut self) -> Option<ListingItem> {
        let FolderItem { name, what } = self.items.next()?;
        let path = match self.names.get(name) {
            b"" => self.folder.clone(),
            name => self.folder.join(name),
        };
        Some(ListingItem::Step(match what {
            NameKind::Entry(stat, device) => WalkEvent::Entry(path, stat, device),
            NameKind::LeftOut(kind, why) => WalkEvent::LeftOut(path, kind, why),
            NameKind::Unseen(error) => WalkEvent::Unseen(path, error),
            NameKind::Listed => WalkEvent::Listed(path),
            NameKind::Unlisted(error) => WalkEvent::Unlisted(path, error),
            NameKind::PatternsRead(text) => WalkEvent::PatternsRead(path, text),
            NameKind::PatternsUnread(error) => WalkEvent::PatternsUnread(path, error),
            NameKind::Descend => return Some(ListingItem::Descend(path)),
        }))
    }
}

impl FolderItem {
    /// The place in the order of all paths: what is below `a` comes where
    /// `a/` would, behind `a-b`. What a pattern file says comes before its entry.
    fn compare(&self, other: &Self, names: &NameBuffer) -> Ordering {
        let (mine, theirs) = (names.get(self.name), names.get(other.name));
        let common = mine.len().min(theirs.len());
        let tail =
            |item: &Self| if matches!(item.what, NameKind::Descend) { &b"/"[..] } else { b"" };
        mine[..common].cmp(&theirs[..common]).then_with(|| {
            let mine = mine[common..].iter().chain(tail(self));
            mine.cmp(theirs[common..].iter().chain(tail(other)))
                .then_with(|| other.is_of_patterns().cmp(&self.is_of_patterns()))
        })
    }

    fn is_of_patterns(&self) -> bool {
        matches!(self.what, NameKind::PatternsRead(_) | NameKind::PatternsUnread(_))
    }
}

/// Lists one folder. What cannot be listed or read is reported, too. Calls `moved`
/// for every name it comes to.
pub(super) fn list(
    root: &Root,
    task: &ListTask,
    borders: &WalkBounds,
    moved: &dyn Fn(),
) -> FolderListing {
    let folder = &task.folder;
    let Listing { names, mut entries, error } =
        match root.list(folder.as_bytes(), borders.places, moved) {
            Ok(listing) => listing,
            // Removed, or made into something else, since its name was listed.
            Err(error) if is_gone(&error) || is_other_kind(&error) => {
                return FolderListing::default();
            }
            Err(error) => return FolderListing::of(folder, NameKind::Unlisted(error)),
        };
    // A folder that changes while it is listed may give a name twice.
    entries.sort_unstable_by(|a, b| names.get(a.0).cmp(names.get(b.0)));
    entries.dedup_by(|a, b| names.get(a.0) == names.get(b.0));
    let find = |name: &[u8]| entries.binary_search_by(|(at, _)| names.get(*at).cmp(name)).ok();
    if !folder.is_root() && borders.is_nested_root(root, folder, &|name| find(name).is_some()) {
        return FolderListing::of(
            folder,
            NameKind::LeftOut(Kind::Folder, ExcludeReason::NestedRoot),
        );
    }
    let mut patterns = task.patterns.clone();
    let mut items = Vec::with_capacity(entries.len() + 1);
    let known = error.map_or(NameKind::Listed, NameKind::Unlisted);
    items.push(FolderItem { name: NameAt::default(), what: known });
    if let Some(place) = find(IGNORE_FILE.as_bytes()) {
        let name = entries[place].0;
        match with_pattern_file(root, folder, &patterns) {
            Ok((with_file, text)) => {
                patterns = with_file;
                items.extend(
                    text.map(|text| FolderItem { name, what: NameKind::PatternsRead(text) }),
                );
            }
            Err(error) => items.push(FolderItem { name, what: NameKind::PatternsUnread(error) }),
        }
    }
    let mut tasks = Vec::new();
    // From the end, and what is done is given back: a million names would be
    // in memory twice.
    while let Some((name, stat)) = entries.pop() {
        if entries.len().is_multiple_of(ENTRIES_GIVEN_BACK) {
            entries.shrink_to_fit();
        }
        let mut add = |what| items.push(FolderItem { name, what });
        let path = || folder.join(names.get(name));
        if borders.is_own(folder, names.get(name), &stat) {
            continue;
        }
        let what = what(stat, &path, task, &patterns, borders);
        if let NameKind::Entry(stat, device) = &what
            && stat.kind == Kind::Folder
        {
            tasks.push(ListTask { folder: path(), device: *device, patterns: patterns.clone() });
            add(NameKind::Descend);
        }
        add(what);
    }
    items.sort_unstable_by(|a, b| a.compare(b, &names));
    FolderListing { folder: folder.clone(), names, items: items.into_iter(), tasks }
}

/// Determines the item to report for a name.
pub(super) fn what(
    stat: io::Result<Stat>,
    path: &dyn Fn() -> RelPath,
    task: &ListTask,
    patterns: &Patterns,
    borders: &WalkBounds,
) -> NameKind {
    let stat = match stat {
        Ok(stat) => stat,
        Err(error) => return NameKind::Unseen(error),
    };
    let is_folder = stat.kind == Kind::Folder;
    let by_pattern =
        if patterns.is_empty() { None } else { patterns.leave_out(&path(), is_folder) };
    if let Some(why) = by_pattern.or_else(|| borders.stops_at(&stat, task.device, path)) {
        return NameKind::LeftOut(stat.kind, why);
    }
    let device = if is_folder { stat.device } else { task.device };
    NameKind::Entry(stat, device)
}

/// The patterns that hold in a folder, and those of the pattern file in it, with
/// the text of that.
pub(super) fn with_pattern_file(
    root: &Root,
    folder: &RelPath,
    patterns: &Patterns,
) -> io::Result<(Patterns, Option<Vec<u8>>)> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let file = folder.join(IGNORE_FILE.as_bytes());
    let Some(bytes) = root.read_small(file.as_bytes(), IGNORE_FILE_MAX)? else {
        return Ok((patterns.clone(), None));
    };
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|_| invalid("it is not UTF-8 text".to_owned()))?;
    let with_file = patterns.with_file(folder, text);
    Ok((with_file.map_err(|error| invalid(error.to_string()))?, Some(bytes)))
}
