//! Stats the files that are due and finds their place on the disk. A thread of
//! its own does that, since the control thread must not wait for storage that
//! does not respond.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fsure_os::Stat;
use fsure_os::root_dir::{Root, is_gone};

use super::ScanPlan;
use super::merge::WalkState;
use crate::catalog::DueFile;
use crate::tree::{ExcludeReason, Patterns};
use fsure_core::{Error, RelPath, Result, StallDetector};

/// Longest time that the control thread waits for a chunk before it attends to others.
const CHUNK_WAIT_MAX: Duration = Duration::from_millis(10);

/// A file that is due, as it is now.
pub(super) struct DueStat {
    pub(super) due: DueFile,
    pub(super) seen: WalkState,
    /// Of one that is gone, the nearest folder above it that is there.
    pub(super) above: Option<(RelPath, Stat)>,
}

impl DueStat {
    /// Returns the device and the likely place on the disk, to sort by; what is
    /// not going to be read comes first.
    fn place(&self) -> (u64, u64) {
        match &self.seen {
            WalkState::Entry(stat, _) => (stat.device, stat.place.unwrap_or(stat.inode)),
            _ => (0, 0),
        }
    }
}

/// Handle of the thread that stats files.
pub(super) struct StatThread {
    asks: Sender<Vec<DueFile>>,
    answers: Receiver<Vec<DueStat>>,
    moves: Arc<AtomicU64>,
    silence: StallDetector,
    timeout: Duration,
    is_asked: bool,
}

impl StatThread {
    pub(super) fn start(plan: &ScanPlan, mounted_over: Vec<RelPath>) -> Result<Self> {
        let (asks, asked) = bounded::<Vec<DueFile>>(1);
        let (answer, answers) = bounded(1);
        let moves = Arc::new(AtomicU64::new(0));
        let eyes = StatWorker {
            root: Arc::clone(&plan.root),
            patterns: plan.walk.patterns.clone(),
            crosses: plan.walk.borders.cross_file_systems,
            nested: plan.scrub.as_ref().map_or(Vec::new(), |rules| rules.nested_roots.clone()),
            mounted_over,
            moves: Arc::clone(&moves),
        };
        let work = move || {
            for chunk in asked {
                // The receiver is gone when the run is over.
                if answer.send(eyes.look_at_all(chunk)).is_err() {
                    return;
                }
            }
        };
        // Not waited for: it might be stuck if the storage does not respond.
        let started = std::thread::Builder::new().name("look".into()).spawn(work);
        started.map_err(|error| {
            Error::Internal(format!("cannot start a thread to examine files: {error}"))
        })?;
        let (silence, timeout) = (StallDetector::new(), plan.effort.timeout);
        Ok(Self { asks, answers, moves, silence, timeout, is_asked: false })
    }

    /// Returns true if a response is still to come.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub(super) fn ask(&mut self, chunk: Vec<DueFile>) {
        // The thread ends only after this has been dropped, or by a fault,
        // which the missing response shows.
        self.is_asked = self.asks.send(chunk).is_ok();
    }

    /// Receives the response, in the order of the disk.
    pub(super) fn answer(&mut self) -> Result<Poll<Vec<DueStat>>> {
        match self.answers.recv_timeout(CHUNK_WAIT_MAX) {
            Ok(looked) => {
                self.is_asked = false;
                Ok(Poll::Ready(looked))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Poll::Pending),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::Internal("a thread that examines files failed".to_owned()))
            }
        }
    }

    /// Returns true if the storage has not responded within the timeout.
    pub(super) fn is_silent(&mut self) -> bool {
        let silent = self.silence.look(self.moves.load(Ordering::Relaxed));
        self.is_asked && silent >= self.timeout
    }
}

/// State of the thread that stats files.
struct StatWorker {
    root: Arc<Root>,
    patterns: Patterns,
    crosses: bool,
    nested: Vec<RelPath>,
    mounted_over: Vec<RelPath>,
    moves: Arc<AtomicU64>,
}

impl StatWorker {
    fn look_at_all(&self, mut chunk: Vec<DueFile>) -> Vec<DueStat> {
        chunk.sort_unstable_by(|one, other| one.stored.path().cmp(other.stored.path()));
        let home = self.root.stat(b"").ok().map(|stat| stat.device);
        let mut folder = None;
        let look = |due| self.look_at(due, home, &mut folder);
        let mut looked: Vec<_> = chunk.into_iter().map(look).collect();
        looked.sort_by_key(DueStat::place);
        looked
    }

    /// Stats a file that is due. `folder` is the last folder that was queried,
    /// and its device.
    fn look_at(
        &self,
        due: DueFile,
        home: Option<u64>,
        folder: &mut Option<(RelPath, u64)>,
    ) -> DueStat {
        self.moves.fetch_add(1, Ordering::Relaxed);
        let path = due.stored.path();
        let mut above = None;
        let seen = match self.root.stat_and_place(path.as_bytes()) {
            _ if self.is_left_out(path) => WalkState::BelowLeftOut(ExcludeReason::CommandLine),
            _ if self.nested.iter().any(|nested| path.is_within(nested)) => {
                WalkState::BelowLeftOut(ExcludeReason::NestedRoot)
            }
            _ if self.mounted_over.iter().any(|folder| path.is_within(folder)) => {
                WalkState::BelowLeftOut(ExcludeReason::OtherMount)
            }
            Ok(stat) => {
                let parent = path.parent().unwrap_or_default();
                let device = match folder {
                    Some((known, device)) if *known == parent => *device,
                    _ => self.root.stat(parent.as_bytes()).map_or(stat.device, |at| at.device),
                };
                *folder = Some((parent, device));
                self.within_border(home, device).unwrap_or(WalkState::Entry(stat, device))
            }
            Err(error) if is_gone(&error) => {
                above = self.nearest_above(path);
                let device = above.as_ref().map(|(_, stat)| stat.device);
                device
                    .and_then(|device| self.within_border(home, device))
                    .unwrap_or(WalkState::Absent)
            }
            Err(error) => WalkState::Unseen(error),
        };
        DueStat { due, seen, above }
    }

    /// Returns the state of a path that lies behind the border of another file
    /// system; `None` if it does not.
    fn within_border(&self, home: Option<u64>, device: u64) -> Option<WalkState> {
        let is_behind = !self.crosses && home.is_some_and(|home| home != device);
        is_behind.then_some(WalkState::BelowLeftOut(ExcludeReason::OtherFileSystem))
    }

    /// Returns true if the command line leaves out `path`. Patterns in files
    /// are ignored: what is recorded is read.
    fn is_left_out(&self, path: &RelPath) -> bool {
        let leaves_out = |path: &RelPath, is_folder| {
            self.patterns.leave_out(path, is_folder) == Some(ExcludeReason::CommandLine)
        };
        let mut above = std::iter::successors(path.parent(), RelPath::parent);
        !self.patterns.is_empty()
            && (leaves_out(path, false)
                || above.any(|folder| !folder.is_root() && leaves_out(&folder, true)))
    }

    fn nearest_above(&self, path: &RelPath) -> Option<(RelPath, Stat)> {
        std::iter::successors(path.parent(), RelPath::parent)
            .find_map(|folder| Some((folder.clone(), self.root.stat(folder.as_bytes()).ok()?)))
    }
}
