//! One folder as the walk needs it: its names sorted, what is left out
//! marked, and which of them are to be descended into.

use std::io;

use fsure_os::folder::{Root, is_gone, is_other_kind};
use fsure_os::{Kind, Stat};

use super::patterns::{IGNORE_FILE, Patterns};
use super::walk::{Borders, LeftOut, Step};
use crate::words::RelPath;

/// The most a pattern file may hold, in bytes. A tree may come from anybody,
/// and a megabyte of patterns takes a gigabyte of memory to match.
const IGNORE_FILE_MAX: usize = 32 << 10;

/// A folder still to be listed.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) folder: RelPath,
    pub(super) device: u64,
    pub(super) patterns: Patterns,
}

/// A folder's content, ready to be told.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// In the order of paths, the last first, so that they are popped off.
    pub(super) items: Vec<Item>,
    /// The folders among them to be listed in turn.
    pub(super) tasks: Vec<Task>,
}

impl Listed {
    fn of(step: Step) -> Self {
        Self { items: vec![Item::Step(step)], tasks: Vec::new() }
    }
}

/// What comes next in a folder.
#[derive(Debug)]
pub(super) enum Item {
    Step(Step),
    Descend(RelPath),
}

impl Item {
    /// The place in the order of all paths: what is below `a` comes where
    /// `a/` would, behind `a-b`.
    fn order(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Step(step) => (step.path().as_bytes(), b""),
            Self::Descend(folder) => (folder.as_bytes(), b"/"),
        }
    }

    pub(super) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let ((mine, my_tail), (theirs, their_tail)) = (self.order(), other.order());
        mine.iter().chain(my_tail).cmp(theirs.iter().chain(their_tail))
    }
}

/// Lists one folder. What cannot be listed or read is a step, too.
pub(super) fn list(root: &Root, task: &Task, borders: &Borders) -> Listed {
    let folder = &task.folder;
    let mut listing = match root.list(folder.as_bytes(), borders.places) {
        Ok(listing) => listing,
        // Removed, or made into something else, since its name was listed.
        Err(error) if is_gone(&error) || is_other_kind(&error) => return Listed::default(),
        Err(error) => return Listed::of(Step::Unlisted(folder.clone(), error)),
    };
    // A folder that changes while it is listed may give a name twice.
    listing.entries.sort_by(|a, b| a.0.cmp(&b.0));
    listing.entries.dedup_by(|a, b| a.0 == b.0);
    if !folder.is_root() && borders.is_nested_root(root, folder, &listing) {
        let why = LeftOut::NestedRoot;
        return Listed::of(Step::LeftOut(folder.clone(), Kind::Folder, why));
    }
    let mut listed = Listed::default();
    let mut patterns = task.patterns.clone();
    if listing.entries.iter().any(|(name, _)| **name == *IGNORE_FILE.as_bytes()) {
        match with_pattern_file(root, folder, &patterns) {
            Ok(with_file) => patterns = with_file,
            Err(error) => {
                let file = folder.join(IGNORE_FILE.as_bytes());
                listed.items.push(Item::Step(Step::PatternsUnread(file, error)));
            }
        }
    }
    listed.items.push(Item::Step(match listing.error.take() {
        Some(error) => Step::Unlisted(folder.clone(), error),
        None => Step::Listed(folder.clone()),
    }));
    for (name, stat) in listing.entries {
        let path = folder.join(&name);
        if !borders.is_own(&path) {
            push(&mut listed, path, stat, task, &patterns, borders);
        }
    }
    listed.items.sort_by(|a, b| b.compare(a));
    listed
}

fn push(
    listed: &mut Listed,
    path: RelPath,
    stat: io::Result<Stat>,
    task: &Task,
    patterns: &Patterns,
    borders: &Borders,
) {
    let step = match stat {
        Err(error) => Step::Unseen(path, error),
        Ok(stat) => {
            let by_pattern = patterns.leave_out(&path, stat.kind == Kind::Folder);
            let by_border =
                borders.stops_at(&stat, task.device).then_some(LeftOut::OtherFileSystem);
            if let Some(why) = by_pattern.or(by_border) {
                listed.items.push(Item::Step(Step::LeftOut(path, stat.kind, why)));
                return;
            }
            let is_folder = stat.kind == Kind::Folder;
            let device = if is_folder { stat.device } else { task.device };
            if is_folder {
                listed.items.push(Item::Descend(path.clone()));
                listed.tasks.push(Task {
                    folder: path.clone(),
                    device,
                    patterns: patterns.clone(),
                });
            }
            Step::Entry(path, stat, device)
        }
    };
    listed.items.push(Item::Step(step));
}

/// The patterns that hold in a folder, and those of the pattern file in it.
pub(super) fn with_pattern_file(
    root: &Root,
    folder: &RelPath,
    patterns: &Patterns,
) -> io::Result<Patterns> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let file = folder.join(IGNORE_FILE.as_bytes());
    let text = root.read_small(file.as_bytes(), IGNORE_FILE_MAX)?.unwrap_or_default();
    let text = String::from_utf8(text).map_err(|_| invalid("it is not UTF-8 text".to_owned()))?;
    patterns.with_file(folder, &text).map_err(|error| invalid(error.to_string()))
}
