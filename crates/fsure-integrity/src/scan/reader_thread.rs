//! One reader: takes the next batch of orders, or a segment of a large file
//! that another has opened, reads, hashes, and decides nothing. Small files of
//! a batch are read together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Sender, select_biased};
use fsure_os::Stat;
use fsure_os::read::OpenFile;

use super::device_queue::DeviceQueue;
use super::file_read::{FileRead, ReadOutcome, ReadRequest, SegmentResult};
use super::reader_context::{ReaderContext, ReaderShared};
use super::watchdog::Heartbeat;
use crate::catalog::UnfinishedBlocks;
use fsure_core::{Error, IoContext as _};

/// A reader's news.
#[derive(Debug)]
pub(super) enum ReaderEvent {
    /// A part of a large file is read; its block values, to be kept.
    Part(u64, Stat, UnfinishedBlocks),
    /// Orders that are done.
    Done(Vec<(ReadRequest, ReadOutcome)>),
    /// A reader cannot work.
    Unable(Error),
}

/// Responses that are sent at once. One by one they cost the control thread as
/// much as what they hold.
const TOLD_AT_ONCE: usize = 64;

/// A reader, before it has its memory.
pub(super) struct Worker {
    pub(super) shared: Arc<ReaderShared>,
    pub(super) lane: Arc<DeviceQueue>,
    pub(super) post: Arc<Heartbeat>,
    pub(super) outgoing: Sender<ReaderEvent>,
    /// Dropped when the reader is gone.
    pub(super) alive: Sender<()>,
}

impl Worker {
    /// Works until no more orders can come.
    pub(super) fn run(self) {
        let Self { shared, lane, post, outgoing, alive } = self;
        let at_work = |hands: &mut ReaderContext| {
            let mut work = ReaderLoop { outgoing: outgoing.clone(), told: Vec::new() };
            work.run_loop(hands);
        };
        // A fault here must reach the control thread, which would wait for ever.
        let work = AssertUnwindSafe(|| {
            let hands = ReaderContext::new(shared, lane, post);
            hands
                .context("get memory to read", "files".as_ref())
                .map(|mut hands| at_work(&mut hands))
        });
        let failed = catch_unwind(work)
            .unwrap_or_else(|_| Err(Error::Internal("a reader failed".to_owned())));
        if let Err(error) = failed {
            // The receiver is gone only if the run has failed already.
            let _ = outgoing.send(ReaderEvent::Unable(error));
        }
        drop(alive);
    }
}

/// A reader at work.
struct ReaderLoop {
    outgoing: Sender<ReaderEvent>,
    /// Responses that are not sent yet.
    told: Vec<(ReadRequest, ReadOutcome)>,
}

impl ReaderLoop {
    fn run_loop(&mut self, hands: &mut ReaderContext) {
        let lane = Arc::clone(&hands.lane);
        while !hands.post.is_lost() {
            hands.post.hold(Vec::new());
            hands.post.set_idle();
            // A file that is open is finished before another is begun.
            select_biased! {
                recv(lane.calls) -> job => if let Ok(job) = job { self.work_on(&job, hands) },
                recv(lane.orders) -> batch => match batch {
                    Ok(batch) => self.begin(batch, hands),
                    Err(_) => return,
                },
            }
            self.flush_results(hands);
        }
    }

    fn begin(&mut self, batch: Vec<ReadRequest>, hands: &mut ReaderContext) {
        hands.post.hold(batch.iter().map(|order| order.id).collect());
        let mut pack = SmallFileBatch::new(hands.lane.share.batch);
        for order in batch {
            if hands.post.is_lost() {
                return;
            }
            if hands.meter().is_stopped() {
                self.tell(order, ReadOutcome::Stopped, hands);
                continue;
            }
            hands.post.beat();
            match FileRead::open(&hands.shared, order) {
                Err(failed) => self.tell_unopened(*failed, hands),
                Ok(job) if job.is_small() && job.source().0.is_in_memory() => {
                    match job.read_whole(hands) {
                        Some(reading) => self.tell(job.order, reading, hands),
                        None => self.work_on(&Arc::new(job), hands),
                    }
                }
                Ok(job) if hands.ring.is_some() && job.is_small() => {
                    if !pack.has_room(&job, hands.buffer.len()) {
                        self.read_pack(pack.take(), hands);
                    }
                    pack.push(job);
                }
                Ok(job) => self.share(job, hands),
            }
        }
        self.read_pack(pack.take(), hands);
    }

    /// Works on a file together with the readers that have nothing else to do.
    fn share(&mut self, job: FileRead, hands: &mut ReaderContext) {
        let job = Arc::new(job);
        // What is in memory is read as fast as it is hashed: more than the cores
        // can do at once only takes more buffers, touched for the first time.
        let share = hands.lane.share;
        let is_in_memory = job.source().0.is_in_memory();
        let count = if is_in_memory { share.threads.min(share.cores) } else { share.threads };
        for _ in 1..job.segment_count().min(count) {
            // Full: enough others have been called already.
            let _ = hands.lane.call.try_send(Arc::clone(&job));
        }
        self.work_on(&job, hands);
    }

    fn read_pack(&mut self, jobs: Vec<(FileRead, usize)>, hands: &mut ReaderContext) {
        if jobs.is_empty() {
            return;
        }
        let bytes = jobs.iter().map(|(job, _)| job.source().1 as u64).sum();
        if !hands.post.acquire_seek_slot(&hands.lane.heads) {
            return;
        }
        let filled = match (hands.wait_for_rate(bytes), &mut hands.ring) {
            (Ok(()), Some(ring)) => {
                let wanted = jobs.iter().map(|(job, at)| (job.source().0, *at, job.source().1));
                OpenFile::read_whole(ring, &mut hands.buffer, &wanted.collect::<Vec<_>>())
            }
            _ => Vec::new(),
        };
        hands.post.give_back_head(&hands.lane.heads);
        let mut left = Vec::new();
        let filled = filled.into_iter().chain(std::iter::repeat_with(|| None));
        for ((job, at), filled) in jobs.into_iter().zip(filled) {
            let Some(Ok(filled)) = filled else {
                if filled.is_some() {
                    job.note_failed_read();
                }
                left.push(job);
                continue;
            };
            hands.count(filled.way, filled.bytes);
            hands.meter().count_hashed(filled.bytes);
            hands.post.beat();
            let reading = job.digest_small(at, hands);
            self.tell(job.order, reading, hands);
        }
        // What did not come with the others is read by itself, where trouble
        // is looked into.
        for job in left {
            self.work_on(&Arc::new(job), hands);
        }
    }

    fn work_on(&mut self, job: &Arc<FileRead>, hands: &mut ReaderContext) {
        // Large files take long, and so does trouble: others may wait for these.
        self.flush_results(hands);
        hands.post.set_current(Some(Arc::clone(job)));
        if !job.source().0.is_in_memory() && !hands.post.acquire_seek_slot(&hands.lane.heads) {
            return;
        }
        while let Some(segment) = job.read_next_segment(hands) {
            let SegmentResult { kept, last } = segment;
            // A content that is reported as a whole has them all.
            let is_wanted = matches!(last, None | Some(ReadOutcome::CutOff(_)));
            if let Some(blocks) = kept.filter(|_| is_wanted) {
                self.send(ReaderEvent::Part(job.order.id, job.stat().clone(), blocks), hands);
            }
            if let Some(reading) = last {
                self.tell(job.order.clone(), reading, hands);
            }
        }
        hands.post.give_back_head(&hands.lane.heads);
        // Before the file is closed, which may get stuck, too.
        self.flush_results(hands);
        hands.post.set_current(None);
    }

    /// Reports that a file could not be opened: for the file, or for this
    /// process if it lacks the means to open it.
    fn tell_unopened(
        &mut self,
        (order, reading): (ReadRequest, ReadOutcome),
        hands: &ReaderContext,
    ) {
        match reading {
            ReadOutcome::NoMeans(source) => {
                let path = fsure_os::path::from_bytes(order.path.as_bytes()).into_owned();
                self.send(ReaderEvent::Unable(Error::Io { doing: "open", path, source }), hands);
            }
            reading => self.tell(order, reading, hands),
        }
    }

    fn tell(&mut self, order: ReadRequest, reading: ReadOutcome, hands: &ReaderContext) {
        self.told.push((order, reading));
        if self.told.len() >= TOLD_AT_ONCE {
            self.flush_results(hands);
        }
    }

    fn flush_results(&mut self, hands: &ReaderContext) {
        if !self.told.is_empty() {
            let told = std::mem::take(&mut self.told);
            self.send(ReaderEvent::Done(told), hands);
        }
    }

    fn send(&self, news: ReaderEvent, hands: &ReaderContext) {
        if !hands.post.is_lost() {
            hands.post.set_idle();
            // The receiver is gone only if the run has failed already.
            let _ = self.outgoing.send(news);
            hands.post.beat();
        }
    }
}

/// Small files that are read together, each with its place in the buffer.
struct SmallFileBatch {
    jobs: Vec<(FileRead, usize)>,
    end: usize,
    count_max: usize,
}

impl SmallFileBatch {
    fn new(count_max: usize) -> Self {
        Self { jobs: Vec::new(), end: 0, count_max }
    }

    fn has_room(&self, job: &FileRead, capacity: usize) -> bool {
        self.end + Self::room_for(job) <= capacity && self.jobs.len() < self.count_max
    }

    fn push(&mut self, job: FileRead) {
        let room = Self::room_for(&job);
        self.jobs.push((job, self.end));
        self.end += room;
    }

    fn take(&mut self) -> Vec<(FileRead, usize)> {
        self.end = 0;
        std::mem::take(&mut self.jobs)
    }

    fn room_for(job: &FileRead) -> usize {
        let (source, length) = job.source();
        length.next_multiple_of(source.grain() as usize)
    }
}
