//! The walk: every name below a root, in the order of the path's bytes, found
//! by several threads.
//!
//! The threads list folders ahead of the reader, always the next one in order
//! first, until a bounded number of names waits. So the memory is that of the
//! folders on the way down plus that bound, whatever the number of files. (A
//! single folder is sorted in memory: about 200 bytes a name.)

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use fsure_os::folder::Root;
use fsure_os::place::Places;
use fsure_os::{Kind, Stat};

use super::list::{Listed, Next, Task, list, with_pattern_file};
use super::patterns::Patterns;
use crate::words::{Error, RelPath, Result};

/// Threads that list folders. Measured cold: 1 thread 1.0-1.8 s, 2: 0.57,
/// 8: 0.37, 16: 0.35 for 100,000 names in 1,000 folders.
pub const LISTERS: usize = 8;

/// Names that may wait for the reader. Once there are so many, listing stops
/// until half of them are taken, so that threads do not go to sleep and wake up
/// for every folder. Twice the orders that are under way at once; more only
/// takes memory that is first touched for it.
const WAITING_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 14 };

/// Names that are worth waking the reader for, for the same reason, and how
/// long it waits for so many. Waking up for each of 11,773 folders cost 30,000
/// context switches and a quarter of the CPU time of the whole run.
const WAKE_AT: usize = 4_096;
const WAKE_AFTER: Duration = Duration::from_millis(2);

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// `--exclude` says so.
    CommandLine,
    /// A pattern in a file says so.
    Pattern,
    /// It is on another file system.
    OtherFileSystem,
    /// It is a root with a catalog of its own.
    NestedRoot,
}

/// One step of the walk, in the order of paths.
#[derive(Debug)]
pub enum Step {
    /// A name, its stat, and the device of the folder it is in (of itself, if
    /// it is a folder).
    Entry(RelPath, Stat, u64),
    /// A name that is left out, with everything below it. A nested root is
    /// told after its own entry.
    LeftOut(RelPath, Kind, LeftOut),
    /// A name of which nothing more is known.
    Unseen(RelPath, io::Error),
    /// A folder of which all names are known. Told some time after the folder's
    /// own entry and before what is in it.
    Listed(RelPath),
    /// The same of a folder of which not all names are known.
    Unlisted(RelPath, io::Error),
    /// A pattern file that cannot be read; nothing is left out for it.
    PatternsUnread(RelPath, io::Error),
}

impl Step {
    /// The path it is about.
    pub fn path(&self) -> &RelPath {
        match self {
            Self::Entry(path, ..)
            | Self::LeftOut(path, ..)
            | Self::Unseen(path, _)
            | Self::Listed(path)
            | Self::Unlisted(path, _)
            | Self::PatternsUnread(path, _) => path,
        }
    }
}

/// Where the tree ends.
#[derive(Clone, Debug, Default)]
pub struct Borders {
    /// Whether other file systems are part of it.
    pub cross_file_systems: bool,
    /// Paths that belong to fsure itself and are never told.
    pub own: Vec<RelPath>,
    /// Whether it is worth knowing where the files lie on the disk.
    pub places: Places,
    /// The catalog's place in a root: a folder that has one is a root itself.
    pub catalog_in_root: &'static str,
}

impl Borders {
    pub(super) fn is_own(&self, folder: &RelPath, name: &[u8]) -> bool {
        self.own.iter().any(|own| own.is(folder, name))
    }

    pub(super) fn stops_at(&self, stat: &Stat, device: u64) -> bool {
        !self.cross_file_systems && stat.kind == Kind::Folder && stat.device != device
    }

    pub(super) fn is_nested_root(
        &self,
        root: &Root,
        folder: &RelPath,
        has_name: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        let first = self.catalog_in_root.split('/').next().unwrap_or_default();
        has_name(first.as_bytes())
            && root.stat(folder.join(self.catalog_in_root.as_bytes()).as_bytes()).is_ok()
    }
}

/// What to walk.
#[derive(Clone, Debug)]
pub struct WalkOptions {
    /// The root itself, or a folder or file below it.
    pub scope: RelPath,
    /// What is left out.
    pub patterns: Patterns,
    /// Where the tree ends.
    pub borders: Borders,
    /// Threads that list folders, usually [`LISTERS`].
    pub listers: usize,
}

/// A walk under way: an iterator over its steps.
pub struct Walk {
    shared: Arc<Shared>,
    listers: Vec<JoinHandle<()>>,
    /// What is left to tell of the scope itself, the last first.
    first: Vec<Next>,
    /// What is left to tell of each folder on the way down.
    frames: Vec<Listed>,
}

struct Shared {
    root: Arc<Root>,
    borders: Borders,
    board: Mutex<Board>,
    task_or_room: Condvar,
    listed: Condvar,
}

#[derive(Default)]
struct Board {
    /// Folders to be listed, in the order in which they will be wanted. The
    /// key is the path with a slash behind it.
    tasks: BTreeMap<Vec<u8>, Task>,
    listed: HashMap<RelPath, Result<Listed>>,
    /// Names in `listed`.
    waiting: usize,
    /// Whether enough names wait.
    is_full: bool,
    /// The folder the reader waits for.
    wanted: Option<RelPath>,
    /// Threads that wait for something to do, and those that list a folder.
    idle: usize,
    busy: usize,
    is_over: bool,
}

impl Walk {
    /// Starts walking. A scope that does not exist yields nothing.
    pub fn start(root: Arc<Root>, options: WalkOptions) -> Result<Self> {
        let mut board = Board::default();
        let first = first_items(&root, &options, &mut board);
        let shared = Arc::new(Shared {
            root,
            borders: options.borders,
            board: Mutex::new(board),
            task_or_room: Condvar::new(),
            listed: Condvar::new(),
        });
        let listers = (0..options.listers).map(|_| {
            let shared = Arc::clone(&shared);
            let thread = Builder::new().name("list".into()).spawn(move || shared.work());
            thread.map_err(|error| Error::Internal(format!("no thread to walk with: {error}")))
        });
        let listers = listers.collect::<Result<_>>()?;
        Ok(Self { shared, listers, first, frames: Vec::new() })
    }
}

/// The entry of the scope itself, and the way into it.
fn first_items(root: &Root, options: &WalkOptions, board: &mut Board) -> Vec<Next> {
    let scope = &options.scope;
    let stat = match root.stat(scope.as_bytes()) {
        Err(error) if fsure_os::folder::is_gone(&error) => return Vec::new(),
        Err(error) => return vec![Next::Step(Step::Unseen(scope.clone(), error))],
        Ok(stat) => stat,
    };
    let (patterns, left_out) = patterns_at(root, options, stat.kind);
    if let Some(why) = left_out {
        return vec![Next::Step(Step::LeftOut(scope.clone(), stat.kind, why))];
    }
    let device = match scope.parent() {
        Some(parent) if stat.kind != Kind::Folder => {
            root.stat(parent.as_bytes()).map_or(stat.device, |parent| parent.device)
        }
        _ => stat.device,
    };
    let mut items = Vec::new();
    if stat.kind == Kind::Folder {
        items.push(Next::Descend(scope.clone()));
        let task = Task { folder: scope.clone(), device, patterns };
        board.tasks.insert(key(scope), task);
    }
    if !scope.is_root() {
        items.push(Next::Step(Step::Entry(scope.clone(), stat, device)));
    }
    items
}

/// The patterns that hold in the folder of the scope, and whether they leave
/// the scope out.
fn patterns_at(root: &Root, options: &WalkOptions, kind: Kind) -> (Patterns, Option<LeftOut>) {
    let mut above: Vec<RelPath> =
        std::iter::successors(options.scope.parent(), RelPath::parent).collect();
    above.reverse();
    let mut patterns = options.patterns.clone();
    for folder in above {
        if let Some(why) = patterns.leave_out(&folder, true) {
            return (patterns, Some(why));
        }
        // One that cannot be read leaves nothing out, here as everywhere; it
        // is told by a walk that comes across it.
        patterns = with_pattern_file(root, &folder, &patterns).unwrap_or(patterns);
    }
    let is_folder = kind == Kind::Folder;
    let left_out =
        if options.scope.is_root() { None } else { patterns.leave_out(&options.scope, is_folder) };
    (patterns, left_out)
}

fn key(folder: &RelPath) -> Vec<u8> {
    let mut key = folder.as_bytes().to_vec();
    if !folder.is_root() {
        key.push(b'/');
    }
    key
}

impl Iterator for Walk {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Result<Step>> {
        loop {
            let next = match self.frames.last_mut() {
                Some(frame) => frame.next(),
                None => Some(self.first.pop()?),
            };
            match next {
                None => drop(self.frames.pop()),
                Some(Next::Step(step)) => return Some(Ok(step)),
                Some(Next::Descend(folder)) => match self.shared.take(&folder) {
                    Ok(listed) => self.frames.push(listed),
                    Err(error) => {
                        self.first.clear();
                        self.frames.clear();
                        return Some(Err(error));
                    }
                },
            }
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.task_or_room.notify_all();
        for lister in self.listers.drain(..) {
            // A lister that panicked has been reported where it was waited for.
            let _ = lister.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a folder's listing and takes it.
    fn take(&self, folder: &RelPath) -> Result<Listed> {
        let mut board = self.lock();
        loop {
            if let Some(listed) = board.listed.remove(folder) {
                board.wanted = None;
                board.waiting -= listed.as_ref().map_or(0, Listed::len);
                if board.is_full && board.waiting <= WAITING_MAX / 2 {
                    board.is_full = false;
                    self.task_or_room.notify_all();
                }
                return listed;
            }
            board.wanted = Some(folder.clone());
            if board.is_full && board.idle > 0 {
                self.task_or_room.notify_one();
            }
            let waited = self.listed.wait_timeout(board, WAKE_AFTER);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lists folders until the walk is over.
    fn work(&self) {
        let mut board = self.lock();
        while !board.is_over {
            let Some(task) = board.next_task() else {
                board.idle += 1;
                board = self.task_or_room.wait(board).unwrap_or_else(PoisonError::into_inner);
                board.idle -= 1;
                continue;
            };
            board.busy += 1;
            drop(board);
            // A fault here must reach the reader, who would wait for ever.
            let listed = catch_unwind(AssertUnwindSafe(|| list(&self.root, &task, &self.borders)))
                .map_err(|_| Error::Internal("listing a folder failed".to_owned()));
            board = self.lock();
            board.busy -= 1;
            let new_tasks = board.put(task.folder, listed);
            for _ in 0..new_tasks.min(board.idle) {
                self.task_or_room.notify_one();
            }
            if board.is_worth_waking() {
                self.listed.notify_one();
            }
        }
    }
}

impl Board {
    /// The next folder in order, if there is room for its names or the reader
    /// waits for it. What the reader waits for is always the first in order,
    /// so that a full board cannot stop the walk.
    fn next_task(&mut self) -> Option<Task> {
        let first = self.tasks.first_entry()?;
        if !self.is_full || self.wanted.as_ref() == Some(&first.get().folder) {
            return Some(first.remove());
        }
        None
    }

    /// Puts up what a folder holds. The number of folders to be listed in turn.
    fn put(&mut self, folder: RelPath, mut listed: Result<Listed>) -> usize {
        let mut new_tasks = 0;
        if let Ok(listed) = &mut listed {
            self.waiting += listed.len();
            self.is_full |= self.waiting >= WAITING_MAX;
            new_tasks = listed.tasks.len();
            let tasks = std::mem::take(&mut listed.tasks).into_iter();
            self.tasks.extend(tasks.map(|task| (key(&task.folder), task)));
        }
        self.listed.insert(folder, listed);
        new_tasks
    }

    /// Whether the reader waits for something that is there, and more of it
    /// would not be worth waiting for.
    fn is_worth_waking(&self) -> bool {
        let is_there = self.wanted.as_ref().is_some_and(|wanted| self.listed.contains_key(wanted));
        let is_all = self.busy == 0 && self.tasks.is_empty();
        is_there && (is_all || self.is_full || self.waiting >= WAKE_AT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn walk(root: &Path, scope: &str, patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<_> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let options = WalkOptions {
            scope: RelPath::from_bytes(scope.as_bytes()),
            patterns: Patterns::new(&patterns, &[]).unwrap(),
            borders: Borders {
                own: vec![RelPath::from_bytes(*b".fsure")],
                catalog_in_root: ".fsure/catalog.db",
                ..Borders::default()
            },
            listers: LISTERS,
        };
        let walk = Walk::start(Arc::new(Root::open(root).unwrap()), options).unwrap();
        let walk = walk.filter(|step| !matches!(step, Ok(Step::Listed(_))));
        let tell = |step: Result<Step>| match step.unwrap() {
            Step::LeftOut(path, _, why) => format!("{} {why:?}", path.shown()),
            step => step.path().shown().to_string(),
        };
        walk.map(tell).collect()
    }

    fn make(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
    }

    #[test]
    fn the_order_is_that_of_whole_paths() {
        let tree = tempfile::tempdir().unwrap();
        make(
            tree.path(),
            &["a/x", "a/y/z", "a-b", "a0", "A", ".fsure/catalog.db", "b/.fsure/none"],
        );
        let told = walk(tree.path(), "", &[]);
        let sorted = {
            let mut sorted = told.clone();
            sorted.sort();
            sorted
        };
        assert_eq!(told, sorted);
        assert_eq!(
            told,
            ["A", "a", "a-b", "a/x", "a/y", "a/y/z", "a0", "b", "b/.fsure", "b/.fsure/none"]
        );
        assert_eq!(walk(tree.path(), "a", &[]), ["a", "a/x", "a/y", "a/y/z"]);
        assert_eq!(walk(tree.path(), "a/x", &[]), ["a/x"]);
        assert_eq!(walk(tree.path(), "none", &[]), [""; 0]);
    }

    #[test]
    fn what_is_left_out_is_told_once() {
        let tree = tempfile::tempdir().unwrap();
        make(
            tree.path(),
            &["keep/a", "keep/b.tmp", "cache/x/y", "in/.fsure/catalog.db", "in/file"],
        );
        std::fs::write(tree.path().join("keep/.fsureignore"), "a\n").unwrap();
        assert_eq!(
            walk(tree.path(), "", &["*.tmp", "cache/"]),
            [
                "cache CommandLine",
                "in",
                "in NestedRoot",
                "keep",
                "keep/.fsureignore",
                "keep/a Pattern",
                "keep/b.tmp CommandLine"
            ]
        );
        assert_eq!(walk(tree.path(), "cache/x", &["cache/"]), ["cache/x CommandLine"]);
        assert_eq!(walk(tree.path(), "keep/a", &[]), ["keep/a Pattern"]);
    }

    #[test]
    fn more_names_than_may_wait() {
        let tree = tempfile::tempdir().unwrap();
        for folder in 0..60 {
            let folder = tree.path().join(format!("{folder}"));
            std::fs::create_dir(&folder).unwrap();
            for file in 0..60 {
                std::fs::write(folder.join(format!("{file}")), "").unwrap();
            }
        }
        let told = walk(tree.path(), "", &[]);
        assert!(told.len() > WAITING_MAX);
        assert!(told.is_sorted());
        assert_eq!(told.len(), 60 * 61);
    }
}
