//! The threads of the walk. They list folders ahead of the reader, always the
//! next one in order first, until a bounded number of names waits.
//!
//! A folder that does not answer is given up, and its thread left behind and
//! replaced: nothing can end a wait in the kernel.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::Builder;
use std::time::{Duration, Instant};

use fsure_os::root_dir::Root;

use super::list_folder::{FolderListing, ListTask, list};
use super::walk_bounds::WalkBounds;
use fsure_core::{Error, RelPath, Result, StallDetector, timeout_error};

/// Names that may wait for the reader. Once there are so many, listing stops
/// until half of them are taken, so that threads do not go to sleep and wake up
/// for every folder. Twice the orders that are under way at once; more only
/// takes memory that is first touched for it.
pub(super) const WAITING_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 14 };

/// Names that are worth waking the reader for, for the same reason, and how
/// long it waits for so many. Waking up for each of 11,773 folders cost 30,000
/// context switches and a quarter of the CPU time of the whole run.
const WAKE_AT: usize = 4_096;
const WAKE_AFTER: Duration = Duration::from_millis(2);

/// Time that the reader waits for a folder before it does something else.
const FOLDER_WAIT_MAX: Duration = Duration::from_millis(20);

/// Folders that may get stuck before the walk is given up.
const LOST_MAX: usize = 32;

/// Time that the threads may take to end after the end of the walk.
const LISTER_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The threads, and what they have found.
pub(super) struct ListerPool {
    shared: Arc<Shared>,
}

struct Shared {
    root: Arc<Root>,
    borders: WalkBounds,
    timeout: Duration,
    /// The most threads that list.
    threads_max: usize,
    board: Mutex<Board>,
    task_or_space: Condvar,
    listed: Condvar,
    left: Condvar,
}

#[derive(Default)]
struct Board {
    /// Folders to be listed, in the order in which they will be wanted. The
    /// key is the path with a slash behind it.
    tasks: BTreeMap<Vec<u8>, ListTask>,
    listed: HashMap<RelPath, Result<FolderListing>>,
    /// Names in `listed`.
    waiting: usize,
    /// True if enough names wait for the reader.
    is_full: bool,
    /// The folder the reader waits for.
    wanted: Option<RelPath>,
    /// Threads that wait for something to do.
    idle: usize,
    /// Threads that list a folder, by number.
    busy: HashMap<usize, Busy>,
    /// Threads started, ended, and given up.
    started: usize,
    ended: usize,
    lost: usize,
    is_over: bool,
}

/// A thread at work.
struct Busy {
    folder: RelPath,
    /// Counts the names it has come to.
    moves: Arc<AtomicU64>,
    silence: StallDetector,
}

impl ListerPool {
    /// Starts a thread on a first folder, which starts others as folders are found:
    /// `threads_max` at most.
    pub(super) fn start(
        root: Arc<Root>,
        borders: WalkBounds,
        timeout: Duration,
        threads_max: usize,
        first: Option<ListTask>,
    ) -> Result<Self> {
        let mut board = Board::default();
        board.tasks.extend(first.map(|task| (key(&task.folder), task)));
        let shared = Shared {
            root,
            borders,
            timeout,
            threads_max,
            board: Mutex::new(board),
            task_or_space: Condvar::new(),
            listed: Condvar::new(),
            left: Condvar::new(),
        };
        let listers = Self { shared: Arc::new(shared) };
        listers.shared.start_one(&mut listers.shared.lock())?;
        Ok(listers)
    }

    /// Takes a folder's listing, if it comes soon.
    pub(super) fn take(&self, folder: &RelPath) -> Poll<Result<FolderListing>> {
        let shared = &*self.shared;
        let mut board = shared.lock();
        let mut begun = None;
        loop {
            if let Some(listed) = board.listed.remove(folder) {
                board.wanted = None;
                board.waiting -= listed.as_ref().map_or(0, FolderListing::len);
                if board.is_full && board.waiting <= WAITING_MAX / 2 {
                    board.is_full = false;
                    shared.task_or_space.notify_all();
                }
                return Poll::Ready(listed);
            }
            if begun.get_or_insert_with(Instant::now).elapsed() >= FOLDER_WAIT_MAX {
                return match self.give_up_stuck(&mut board) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                };
            }
            board.wanted = Some(folder.clone());
            if board.is_full && board.idle > 0 {
                shared.task_or_space.notify_one();
            }
            let waited = shared.listed.wait_timeout(board, WAKE_AFTER);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns true if so many folders were given up that the storage has to be given up.
    pub(super) fn are_silent(&self) -> bool {
        self.shared.lock().lost > LOST_MAX
    }

    fn give_up_stuck(&self, board: &mut Board) -> Result<()> {
        let timeout = self.shared.timeout;
        let is_stuck =
            |busy: &mut Busy| busy.silence.look(busy.moves.load(Ordering::Relaxed)) >= timeout;
        let stuck =
            board.busy.iter_mut().filter_map(|(number, busy)| is_stuck(busy).then_some(*number));
        for number in stuck.collect::<Vec<_>>() {
            let Some(Busy { folder, .. }) = board.busy.remove(&number) else { continue };
            board.lost += 1;
            let listed = FolderListing::unanswered(&folder, timeout_error(timeout));
            board.put(folder, Ok(listed));
            self.shared.start_one(board)?;
        }
        Ok(())
    }
}

impl Drop for ListerPool {
    fn drop(&mut self) {
        let mut board = self.shared.lock();
        board.is_over = true;
        self.shared.task_or_space.notify_all();
        // So that the root can be unmounted when the walk is over; but one that
        // is stuck is not waited for.
        let are_left = |board: &mut Board| board.ended + board.lost < board.started;
        drop(self.shared.left.wait_timeout_while(board, LISTER_EXIT_TIMEOUT, are_left));
    }
}

fn key(folder: &RelPath) -> Vec<u8> {
    let mut key = folder.as_bytes().to_vec();
    if !folder.is_root() {
        key.push(b'/');
    }
    key
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_one(self: &Arc<Self>, board: &mut Board) -> Result<()> {
        let (shared, number) = (Arc::clone(self), board.started);
        let thread = Builder::new().name("list".into()).spawn(move || shared.work(number));
        thread.map_err(|error| {
            Error::Internal(format!("cannot start a thread to list folders: {error}"))
        })?;
        board.started += 1;
        Ok(())
    }

    /// Lists folders until the walk is over.
    fn work(self: &Arc<Self>, number: usize) {
        let mut board = self.lock();
        while !board.is_over {
            let Some(task) = board.next_task() else {
                board.idle += 1;
                board = self.task_or_space.wait(board).unwrap_or_else(PoisonError::into_inner);
                board.idle -= 1;
                continue;
            };
            let moves = Arc::new(AtomicU64::new(0));
            let silence = StallDetector::new();
            let busy = Busy { folder: task.folder.clone(), moves: Arc::clone(&moves), silence };
            board.busy.insert(number, busy);
            drop(board);
            let moved = || {
                moves.fetch_add(1, Ordering::Relaxed);
            };
            // A fault here must reach the reader, who would wait for ever.
            let listed =
                catch_unwind(AssertUnwindSafe(|| list(&self.root, &task, &self.borders, &moved)))
                    .map_err(|_| Error::Internal("listing a folder failed".to_owned()));
            board = self.lock();
            if board.busy.remove(&number).is_none() {
                // Given up: another is in this one's place.
                return;
            }
            let new_tasks = board.put(task.folder, listed);
            for _ in 0..new_tasks.min(board.idle) {
                self.task_or_space.notify_one();
            }
            let unserved = new_tasks.saturating_sub(board.idle);
            for _ in 0..unserved.min(self.threads_max.saturating_sub(board.at_work())) {
                // The thread that finds these folders goes on without another one.
                if self.start_one(&mut board).is_err() {
                    break;
                }
            }
            if board.is_worth_waking() {
                self.listed.notify_one();
            }
        }
        board.ended += 1;
        self.left.notify_all();
    }
}

impl Board {
    /// The next folder in order, if there is space for its names or the reader
    /// waits for it. What the reader waits for is always the first in order,
    /// so that a full board cannot stop the walk.
    fn next_task(&mut self) -> Option<ListTask> {
        let first = self.tasks.first_entry()?;
        if !self.is_full || self.wanted.as_ref() == Some(&first.get().folder) {
            return Some(first.remove());
        }
        None
    }

    /// Returns the number of threads that list or wait for a folder.
    fn at_work(&self) -> usize {
        self.started - self.ended - self.lost
    }

    /// Stores the content of a folder for the reader. Returns the number of folders to be
    /// listed in turn.
    fn put(&mut self, folder: RelPath, mut listed: Result<FolderListing>) -> usize {
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

    /// Returns true if the folder that the reader waits for is listed, and if it is not
    /// worth waiting for more names.
    fn is_worth_waking(&self) -> bool {
        let is_there = self.wanted.as_ref().is_some_and(|wanted| self.listed.contains_key(wanted));
        let is_all = self.busy.is_empty() && self.tasks.is_empty();
        is_there && (is_all || self.is_full || self.waiting >= WAKE_AT)
    }
}
