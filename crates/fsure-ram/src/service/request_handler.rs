//! Requests to a worker and the responses to them. A status is answered from what is
//! known, by the thread that serves the request. A comparison is made by that thread
//! while the worker goes on. Everything else is done by the worker.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{DifferenceLine, Failed, FolderState, PathName, Request, Response};
use crate::write_back::{
    Activity, DifferenceKind, LastGenerationEntries, SideComparison, SideDifference,
};
use fsure_core::{Error, RelPath, Result};

/// So many may wait at once: who only wants to know must find a place.
const WAITING_MAX: usize = 32;
/// Interval at which a request that waits for the worker checks whether to give up.
const WORKER_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Requests to the worker's own thread.
pub(super) enum WorkerRequest {
    /// A request of the user.
    Request(Request),
    /// To give both sides to be compared, after a generation.
    Comparison,
    /// To say what the last generation has of these names; a new one, where that is asked
    /// for.
    Known(BTreeSet<RelPath>, bool),
}

/// Replies to an [`WorkerRequest`].
pub(super) enum Reply {
    Answer(Response),
    Comparison(Box<SideComparison>),
    Known(LastGenerationEntries),
}

/// Something asked, and where the reply is waited for.
pub(super) type PendingRequest = (WorkerRequest, Sender<Reply>);

/// The last known state, and the moment since which changes are at risk. A generation can
/// take long, and clients that ask meanwhile get this state.
#[derive(Default)]
pub(super) struct PublishedState {
    pub(super) state: FolderState,
    pub(super) since: Option<Instant>,
    pub(super) doing: Activity,
}

impl PublishedState {
    fn now(&self) -> FolderState {
        let worst = self.since.map(|since| ms(since.elapsed()));
        let (doing, doing_for) = self.doing.now().unzip();
        FolderState {
            worst_loss_ms: worst.unwrap_or_default(),
            doing: doing.map(str::to_owned),
            doing_ms: doing_for.map_or(0, ms),
            ..self.state.clone()
        }
    }
}

/// Answers lines.
pub(super) struct RequestHandler<'a> {
    shown: &'a Mutex<PublishedState>,
    asked: Mutex<Sender<PendingRequest>>,
    waiting: AtomicUsize,
}

impl<'a> RequestHandler<'a> {
    pub(super) fn new(shown: &'a Mutex<PublishedState>, asked: Sender<PendingRequest>) -> Self {
        Self { shown, asked: Mutex::new(asked), waiting: AtomicUsize::new(0) }
    }

    /// Answers one line, as soon as there is an answer.
    pub(super) fn answer(&self, text: Option<&str>) -> Response {
        let Some(request) = text.and_then(|text| serde_json::from_str(text).ok()) else {
            return Response::Failed(Failed::from(&usage("this is not a request")));
        };
        if request == Request::Status {
            let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            return Response::Status(Box::new(shown.now()));
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let answer = match request {
            _ if before >= WAITING_MAX => Err(usage("too many requests wait for it already")),
            Request::Verify => self.verify(),
            _ => self.ask(WorkerRequest::Request(request)).and_then(|reply| match reply {
                Reply::Answer(answer) => Ok(answer),
                _ => Err(unexpected()),
            }),
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        answer.unwrap_or_else(|error| Response::Failed(Failed::from(&error)))
    }

    fn ask(&self, ask: WorkerRequest) -> Result<Reply> {
        self.ask_while(ask, &|| Ok(()))
    }

    /// Waits for the worker's reply as long as `go_on` has no error.
    fn ask_while(&self, ask: WorkerRequest, go_on: &dyn Fn() -> Result<()>) -> Result<Reply> {
        let over = || usage("the folder is out of RAM");
        let (sender, replies) = channel();
        let sent = self.asked.lock().unwrap_or_else(PoisonError::into_inner).send((ask, sender));
        sent.map_err(|_| over())?;
        loop {
            match replies.recv_timeout(WORKER_POLL_INTERVAL) {
                Ok(Reply::Answer(Response::Failed(failed))) => return Err(failed.into()),
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Timeout) => go_on()?,
                Err(RecvTimeoutError::Disconnected) => return Err(over()),
            }
        }
    }

    /// Compares both sides. Reading them can take long, and generations go on meanwhile.
    fn verify(&self) -> Result<Response> {
        let Reply::Comparison(comparison) = self.ask(WorkerRequest::Comparison)? else {
            return Err(unexpected());
        };
        // A worker that takes the folder out of RAM waits for this to end.
        let go_on = || comparison.go_on();
        let ask = |paths: &BTreeSet<RelPath>, is_new| {
            self.ask_while(WorkerRequest::Known(paths.clone(), is_new), &go_on)
        };
        let different = comparison.run(&mut |paths, is_new| match ask(paths, is_new)? {
            Reply::Known(known) => Ok(known),
            _ => Err(unexpected()),
        })?;
        Ok(Response::Verified { differences: different.iter().map(difference).collect() })
    }
}

fn difference(one: &SideDifference) -> DifferenceLine {
    let how = match one.how {
        DifferenceKind::OnlyInRam => "only-in-ram",
        DifferenceKind::OnlyOnDisk => "only-on-disk",
        DifferenceKind::Content => "content",
        DifferenceKind::Metadata => "metadata",
        DifferenceKind::Changing => "changing",
    };
    DifferenceLine { name: PathName::new(&one.path), how: how.to_owned() }
}

fn usage(message: &str) -> Error {
    Error::Usage { message: message.to_owned(), hint: None }
}

fn unexpected() -> Error {
    Error::Internal("another reply was expected".to_owned())
}

pub(super) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::ControlFlow;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::write_back::Engine;

    #[test]
    fn a_comparison_does_not_wait_for_a_worker_that_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let [disk, ram] = ["disk", "ram"].map(|side| folder.path().join(side));
        fs::create_dir(&ram).and_then(|()| fs::create_dir(&disk)).unwrap();
        let go_on = &mut |_: &_, _| ControlFlow::Continue(());
        // Skipped if there is no other side at all.
        let Ok(engine) = Engine::fill(&disk, &ram, go_on) else { return };
        fs::write(ram.join("not on the disk yet"), "").unwrap();
        let (shown, (sender, asked)) = (Mutex::default(), channel());
        let answers = RequestHandler::new(&shown, sender);
        let verify = serde_json::to_string(&Request::Verify).unwrap();
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| answers.answer(Some(&verify)));
            let (ask, to) = asked.recv().unwrap();
            assert!(matches!(ask, WorkerRequest::Comparison));
            let stop = Arc::<AtomicBool>::default();
            let comparison = engine.comparison(&ram, &stop).unwrap();
            to.send(Reply::Comparison(Box::new(comparison))).unwrap();
            let (ask, to) = asked.recv().unwrap();
            assert!(matches!(ask, WorkerRequest::Known(_, true)));
            stop.store(true, Ordering::Relaxed);
            let began = Instant::now();
            while Arc::strong_count(&stop) > 1 && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(WORKER_POLL_INTERVAL);
            }
            let is_over = Arc::strong_count(&stop) == 1;
            drop(to);
            let Response::Failed(failed) = answer.join().unwrap() else { panic!("an answer") };
            assert!(is_over && failed.message.contains("is being unbound"), "{failed:?}");
        });
    }
}
