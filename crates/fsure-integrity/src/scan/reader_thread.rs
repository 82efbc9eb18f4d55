//! One reader: takes the next batch of orders, or a segment of a large file
//! that another has opened, reads, hashes, and decides nothing. Small files of
//! a batch are read together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Sender, select_biased};
use fsure_os::Stat;
use fsure_os::read::OpenFile;

use super::device_queue::DeviceQueue;
use super::file_read::{FileRead, SegmentResult};
use super::read_request::{ReadOutcome, ReadRequest};
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
const RESPONSES_AT_ONCE: usize = 64;

/// A reader, before it has its memory.
pub(super) struct Worker {
    pub(super) shared: Arc<ReaderShared>,
    pub(super) lane: Arc<DeviceQueue>,
    pub(super) heartbeat: Arc<Heartbeat>,
    pub(super) outgoing: Sender<ReaderEvent>,
    /// Dropped when the reader is gone.
    pub(super) alive: Sender<()>,
}

impl Worker {
    /// Works until no more orders can come.
    pub(super) fn run(self) {
        let Self { shared, lane, heartbeat, outgoing, alive } = self;
        let is_remote = lane.is_remote;
        let mut reader = ReaderLoop { lane, outgoing: outgoing.clone(), reported: Vec::new() };
        // A fault here must reach the control thread, which would wait for ever.
        let work = AssertUnwindSafe(|| {
            let context = ReaderContext::new(shared, is_remote, heartbeat);
            context
                .context("get memory to read", "files".as_ref())
                .map(|mut context| reader.run_loop(&mut context))
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
    lane: Arc<DeviceQueue>,
    outgoing: Sender<ReaderEvent>,
    /// Responses that are not sent yet.
    reported: Vec<(ReadRequest, ReadOutcome)>,
}

impl ReaderLoop {
    fn run_loop(&mut self, context: &mut ReaderContext) {
        let lane = Arc::clone(&self.lane);
        while !context.heartbeat.is_lost() {
            context.heartbeat.hold(Vec::new());
            context.heartbeat.set_idle();
            // A file that is open is finished before another is begun.
            select_biased! {
                recv(lane.calls) -> call => if let Ok(call) = call { self.work_on(&call, context) },
                recv(lane.orders) -> batch => match batch {
                    Ok(batch) => self.begin(batch, context),
                    Err(_) => return,
                },
            }
            self.flush_results(context);
        }
    }

    fn begin(&mut self, batch: Vec<ReadRequest>, context: &mut ReaderContext) {
        context.heartbeat.hold(batch.iter().map(|order| order.id).collect());
        let mut pack = SmallFileBatch::new(self.lane.share.batch);
        for order in batch {
            if context.heartbeat.is_lost() {
                return;
            }
            if context.meter().is_stopped() {
                self.report(order, ReadOutcome::Stopped, context);
                continue;
            }
            context.heartbeat.beat();
            let Some(order) = self.read_resident(order, context) else { continue };
            match FileRead::open(&context.shared, order) {
                Err(failed) => self.report_unopened(*failed, context),
                Ok(file_read)
                    if file_read.is_small() && self.needs_no_head(&file_read, context) =>
                {
                    match file_read.read_whole(context) {
                        Some(reading) => self.report(file_read.order, reading, context),
                        None => self.work_on(&Arc::new(file_read), context),
                    }
                }
                Ok(file_read) if context.ring.is_some() && file_read.is_small() => {
                    if !pack.has_space(&file_read, context.buffer.len()) {
                        self.read_pack(pack.take(), context);
                    }
                    pack.push(file_read);
                }
                Ok(file_read) => self.share(file_read, context),
            }
        }
        self.read_pack(pack.take(), context);
    }

    /// Reads a small file that is in memory as a whole. Returns the order if the file is large, not
    /// in memory or has changed since its listing: the caller opens it anew.
    fn read_resident(
        &mut self,
        order: ReadRequest,
        context: &mut ReaderContext,
    ) -> Option<ReadRequest> {
        let file_read = match FileRead::open_resident(&context.shared, order) {
            Ok(file_read) => file_read,
            Err(order) => return Some(*order),
        };
        match file_read.read_whole(context) {
            Some(reading @ ReadOutcome::Read(_)) => {
                self.report(file_read.order, reading, context);
                None
            }
            // The error belongs to this open file; another one might read without it.
            None if file_read.has_failed_read() => {
                self.work_on(&Arc::new(file_read), context);
                None
            }
            _ => Some(file_read.order),
        }
    }

    /// Works on a file together with the readers that have nothing else to do.
    fn share(&mut self, file_read: FileRead, context: &mut ReaderContext) {
        let file_read = Arc::new(file_read);
        // What is in memory is read as fast as it is hashed: more than the cores
        // can do at once only takes more buffers, touched for the first time.
        let share = self.lane.share;
        let count = if is_resident(&file_read, context) {
            share.threads.min(share.cores)
        } else {
            share.threads
        };
        for _ in 1..file_read.segment_count().min(count) {
            // Full: enough others have been called already.
            let _ = self.lane.call.try_send(Arc::clone(&file_read));
        }
        self.work_on(&file_read, context);
    }

    /// Returns true if a small file can be read at once, without waiting for a head.
    fn needs_no_head(&self, file_read: &FileRead, context: &ReaderContext) -> bool {
        let has_heads = self.lane.share.heads < self.lane.share.threads;
        file_read.source().0.is_in_memory() && !(context.shared.reads_through && has_heads)
    }

    fn read_pack(&mut self, file_reads: Vec<(FileRead, usize)>, context: &mut ReaderContext) {
        if file_reads.is_empty() {
            return;
        }
        let bytes = file_reads.iter().map(|(file_read, _)| file_read.source().1 as u64).sum();
        if !context.heartbeat.acquire_seek_slot(&self.lane.heads) {
            return;
        }
        let filled = match (context.wait_for_rate(bytes), &mut context.ring) {
            (Ok(()), Some(ring)) => {
                let wanted = file_reads
                    .iter()
                    .map(|(file_read, at)| (file_read.source().0, *at, file_read.source().1));
                OpenFile::read_whole(ring, &mut context.buffer, &wanted.collect::<Vec<_>>())
            }
            _ => Vec::new(),
        };
        context.heartbeat.give_back_head(&self.lane.heads);
        let mut left = Vec::new();
        let filled = filled.into_iter().chain(std::iter::repeat_with(|| None));
        for ((file_read, at), filled) in file_reads.into_iter().zip(filled) {
            let Some(Ok(filled)) = filled else {
                if filled.is_some() {
                    file_read.note_failed_read();
                }
                left.push(file_read);
                continue;
            };
            context.count(filled.way, filled.bytes);
            context.meter().count_hashed(filled.bytes);
            context.heartbeat.beat();
            let reading = file_read.digest_small(at, context);
            self.report(file_read.order, reading, context);
        }
        // What did not come with the others is read by itself, where trouble
        // is looked into.
        for file_read in left {
            self.work_on(&Arc::new(file_read), context);
        }
    }

    fn work_on(&mut self, file_read: &Arc<FileRead>, context: &mut ReaderContext) {
        // Large files take long, and so does trouble: others may wait for these.
        self.flush_results(context);
        context.heartbeat.set_current(Some(Arc::clone(file_read.handle())));
        if !is_resident(file_read, context)
            && !context.heartbeat.acquire_seek_slot(&self.lane.heads)
        {
            return;
        }
        while let Some(segment) = file_read.read_next_segment(context) {
            let SegmentResult { kept, last } = segment;
            // A content that is reported as a whole has them all.
            let is_wanted = matches!(last, None | Some(ReadOutcome::CutOff(_)));
            if let Some(blocks) = kept.filter(|_| is_wanted) {
                self.send(
                    ReaderEvent::Part(file_read.order.id, file_read.stat().clone(), blocks),
                    context,
                );
            }
            if let Some(reading) = last {
                self.report(file_read.order.clone(), reading, context);
            }
        }
        context.heartbeat.give_back_head(&self.lane.heads);
        // Before the file is closed, which may get stuck, too.
        self.flush_results(context);
        context.heartbeat.set_current(None);
    }

    /// Reports that a file could not be opened: for the file, or for this
    /// process if it lacks the means to open it.
    fn report_unopened(
        &mut self,
        (order, reading): (ReadRequest, ReadOutcome),
        context: &ReaderContext,
    ) {
        match reading {
            ReadOutcome::NoMeans(source) => {
                let path = fsure_os::path::from_bytes(order.path.as_bytes()).into_owned();
                self.send(ReaderEvent::Unable(Error::Io { doing: "open", path, source }), context);
            }
            reading => self.report(order, reading, context),
        }
    }

    fn report(&mut self, order: ReadRequest, reading: ReadOutcome, context: &ReaderContext) {
        self.reported.push((order, reading));
        if self.reported.len() >= RESPONSES_AT_ONCE {
            self.flush_results(context);
        }
    }

    fn flush_results(&mut self, context: &ReaderContext) {
        if !self.reported.is_empty() {
            let reported = std::mem::take(&mut self.reported);
            self.send(ReaderEvent::Done(reported), context);
        }
    }

    fn send(&self, news: ReaderEvent, context: &ReaderContext) {
        if !context.heartbeat.is_lost() {
            context.heartbeat.set_idle();
            // The receiver is gone only if the run has failed already.
            let _ = self.outgoing.send(news);
            context.heartbeat.beat();
        }
    }
}

/// Returns true if a file is read from memory, where it was found as a whole or has its place.
fn is_resident(file_read: &FileRead, context: &ReaderContext) -> bool {
    file_read.source().0.is_in_memory() && !context.shared.reads_through
}

/// Small files that are read together, each with its place in the buffer.
struct SmallFileBatch {
    file_reads: Vec<(FileRead, usize)>,
    end: usize,
    count_max: usize,
}

impl SmallFileBatch {
    fn new(count_max: usize) -> Self {
        Self { file_reads: Vec::new(), end: 0, count_max }
    }

    fn has_space(&self, file_read: &FileRead, capacity: usize) -> bool {
        self.end + Self::space_for(file_read) <= capacity && self.file_reads.len() < self.count_max
    }

    fn push(&mut self, file_read: FileRead) {
        let space = Self::space_for(&file_read);
        self.file_reads.push((file_read, self.end));
        self.end += space;
    }

    fn take(&mut self) -> Vec<(FileRead, usize)> {
        self.end = 0;
        std::mem::take(&mut self.file_reads)
    }

    fn space_for(file_read: &FileRead) -> usize {
        let (source, length) = file_read.source();
        length.next_multiple_of(source.grain() as usize)
    }
}
