//! Looks at the files that are due: what each is now, and where it lies. By a
//! thread of its own, since the control thread must not wait for storage that
//! does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fsure_os::Stat;
use fsure_os::folder::{Root, is_gone};

use super::Plan;
use super::merge::Seen;
use crate::catalog::Due;
use crate::tree::{LeftOut, Patterns};
use crate::words::{Error, RelPath, Result, Silence};

/// How long the control thread waits for a chunk before it looks after others.
const MOMENT: Duration = Duration::from_millis(10);

/// A file that is due, as it is now.
pub(super) struct Looked {
    pub(super) due: Due,
    pub(super) seen: Seen,
    /// Of one that is gone, the nearest folder above it that is there.
    pub(super) above: Option<(RelPath, Stat)>,
}

impl Looked {
    /// Where it may lie on the disk; what is not going to be read comes first.
    fn place(&self) -> (u64, u64) {
        match &self.seen {
            Seen::Entry(stat, _) => (stat.device, stat.place.unwrap_or(stat.inode)),
            _ => (0, 0),
        }
    }
}

/// The thread that looks, from outside.
pub(super) struct Looker {
    asks: Sender<Vec<Due>>,
    answers: Receiver<Vec<Looked>>,
    moves: Arc<AtomicU64>,
    silence: Silence,
    patience: Duration,
    is_asked: bool,
}

impl Looker {
    pub(super) fn start(plan: &Plan, mounted_over: Vec<RelPath>) -> Result<Self> {
        let (asks, asked) = bounded::<Vec<Due>>(1);
        let (answer, answers) = bounded(1);
        let moves = Arc::new(AtomicU64::new(0));
        let eyes = Eyes {
            root: Arc::clone(&plan.root),
            patterns: plan.walk.patterns.clone(),
            crosses: plan.walk.borders.cross_file_systems,
            nested: plan.scrub.as_ref().map_or(Vec::new(), |rules| rules.nested_roots.clone()),
            mounted_over,
            moves: Arc::clone(&moves),
        };
        let work = move || {
            for chunk in asked {
                // Nobody listens any more when the run is over.
                if answer.send(eyes.look_at_all(chunk)).is_err() {
                    return;
                }
            }
        };
        // Not waited for: it may be stuck where the storage does not answer.
        let started = std::thread::Builder::new().name("look".into()).spawn(work);
        started.map_err(|error| Error::Internal(format!("no thread to look with: {error}")))?;
        let (silence, patience) = (Silence::new(), plan.effort.patience);
        Ok(Self { asks, answers, moves, silence, patience, is_asked: false })
    }

    /// Whether there is an answer to come.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub(super) fn ask(&mut self, chunk: Vec<Due>) {
        // It ends only after this has been dropped, or by a fault, which the
        // missing answer shows.
        self.is_asked = self.asks.send(chunk).is_ok();
    }

    /// The answer, in the order of the disk.
    pub(super) fn answer(&mut self) -> Result<Poll<Vec<Looked>>> {
        match self.answers.recv_timeout(MOMENT) {
            Ok(looked) => {
                self.is_asked = false;
                Ok(Poll::Ready(looked))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Poll::Pending),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::Internal("looking at files failed".to_owned()))
            }
        }
    }

    /// Whether the storage has not answered for too long.
    pub(super) fn is_silent(&mut self) -> bool {
        let silent = self.silence.look(self.moves.load(Ordering::Relaxed));
        self.is_asked && silent >= self.patience
    }
}

/// What the thread knows.
struct Eyes {
    root: Arc<Root>,
    patterns: Patterns,
    crosses: bool,
    nested: Vec<RelPath>,
    mounted_over: Vec<RelPath>,
    moves: Arc<AtomicU64>,
}

impl Eyes {
    fn look_at_all(&self, mut chunk: Vec<Due>) -> Vec<Looked> {
        chunk.sort_unstable_by(|one, other| one.stored.path().cmp(other.stored.path()));
        let home = self.root.stat(b"").ok().map(|stat| stat.device);
        let mut folder = None;
        let look = |due| self.look_at(due, home, &mut folder);
        let mut looked: Vec<_> = chunk.into_iter().map(look).collect();
        looked.sort_by_key(Looked::place);
        looked
    }

    /// `folder` is the last folder that was asked for, and its device.
    fn look_at(&self, due: Due, home: Option<u64>, folder: &mut Option<(RelPath, u64)>) -> Looked {
        self.moves.fetch_add(1, Ordering::Relaxed);
        let path = due.stored.path();
        let mut above = None;
        let seen = match self.root.stat_and_place(path.as_bytes()) {
            _ if self.is_left_out(path) => Seen::BelowLeftOut(LeftOut::CommandLine),
            _ if self.nested.iter().any(|nested| path.is_within(nested)) => {
                Seen::BelowLeftOut(LeftOut::NestedRoot)
            }
            _ if self.mounted_over.iter().any(|folder| path.is_within(folder)) => {
                Seen::BelowLeftOut(LeftOut::OtherMount)
            }
            Ok(stat) => {
                let parent = path.parent().unwrap_or_default();
                let device = match folder {
                    Some((known, device)) if *known == parent => *device,
                    _ => self.root.stat(parent.as_bytes()).map_or(stat.device, |at| at.device),
                };
                *folder = Some((parent, device));
                self.within_border(home, device).unwrap_or(Seen::Entry(stat, device))
            }
            Err(error) if is_gone(&error) => {
                above = self.nearest_above(path);
                let device = above.as_ref().map(|(_, stat)| stat.device);
                device.and_then(|device| self.within_border(home, device)).unwrap_or(Seen::Absent)
            }
            Err(error) => Seen::Unseen(error),
        };
        Looked { due, seen, above }
    }

    /// What is to be said of what lies behind the border of another file
    /// system, if it does.
    fn within_border(&self, home: Option<u64>, device: u64) -> Option<Seen> {
        let is_behind = !self.crosses && home.is_some_and(|home| home != device);
        is_behind.then_some(Seen::BelowLeftOut(LeftOut::OtherFileSystem))
    }

    /// Whether the command line leaves it out. What files say about patterns
    /// plays no part: what is recorded is read.
    fn is_left_out(&self, path: &RelPath) -> bool {
        let leaves_out = |path: &RelPath, is_folder| {
            self.patterns.leave_out(path, is_folder) == Some(LeftOut::CommandLine)
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
