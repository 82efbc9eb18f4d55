//! The workers: many hands, no decisions. Each takes the next batch of orders,
//! or a segment of a large file that another has opened. Small files of a
//! batch are read together. Every queue is bounded, and so is what is under
//! way: the control thread never has more than [`IN_FLIGHT_MAX`] orders out,
//! so that neither side can block the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select_biased};
use fsure_os::Stat;
use fsure_os::folder::Root;
use fsure_os::opener::Opener;
use fsure_os::read::Source;
use fsure_os::ring::RING_READS_MAX;

use super::reader::{Job, Order, Reading, Segment};
use super::span::{CHUNK, Hands, Meter};
use crate::catalog::UnfinishedBlocks;
use crate::words::{Error, IoContext as _, Result};

/// Orders under way at once. Far more than are being read: the more there are
/// to choose from, the better is their order on the disk.
pub(super) const IN_FLIGHT_MAX: usize = 8_192;

/// Orders put in the order of the disk at once.
const WINDOW: usize = 4_096;

/// Orders that make a batch worth while when workers wait.
const BATCH_MIN: usize = 64;

/// A worker's news.
#[derive(Debug)]
pub(super) enum News {
    /// A part of a large file is read; its block values, to be kept.
    Part(u64, Stat, UnfinishedBlocks),
    /// An order is done.
    Done(Order, Reading),
    /// A worker cannot work.
    Unable(Error),
}

/// The workers at work.
pub(super) struct Pool {
    orders: Sender<Vec<Order>>,
    pub(super) news: Receiver<News>,
}

/// Readers at once. Measured with direct reads of small files: 1 thread
/// 1.0 GB/s, 4: 1.0, 8: 1.26, 16: 1.29; more only costs memory.
pub(super) fn worker_count() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (2 * cores).clamp(8, 16)
}

impl Pool {
    /// Starts the workers in a scope. They end when `orders` is dropped.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        root: &'scope Root,
        opener: &'scope Opener<'scope>,
        meter: &'scope Meter,
    ) -> Result<Self> {
        let count = worker_count();
        let (orders, incoming) = bounded(IN_FLIGHT_MAX);
        let (outgoing, news) = bounded(4_096);
        let (call, calls) = bounded(count * count);
        for _ in 0..count {
            let (outgoing, call) = (outgoing.clone(), call.clone());
            let worker = Worker { root, opener, meter, outgoing, call, helpers: count - 1 };
            let (incoming, calls) = (incoming.clone(), calls.clone());
            let thread = std::thread::Builder::new().name("read".into());
            let started = thread.spawn_scoped(scope, move || worker.run(&incoming, &calls));
            started.map_err(|error| Error::Internal(format!("no thread to read with: {error}")))?;
        }
        Ok(Self { orders, news })
    }

    /// Sends orders to the workers in the order of the disk: all of them, or
    /// only if there are enough to choose from or workers are waiting.
    pub(super) fn send(&self, orders: &mut Vec<Order>, all: bool) {
        let is_enough = orders.len() >= WINDOW;
        let workers_wait = orders.len() >= BATCH_MIN && self.orders.is_empty();
        if orders.is_empty() || !(all || is_enough || workers_wait) {
            return;
        }
        orders.sort_unstable_by_key(Order::place);
        let mut batch = Vec::new();
        let mut bytes = 0;
        for order in orders.drain(..) {
            let size = order.stat.size;
            let goes_alone = order.attempt > 0 || size > CHUNK;
            let is_full = bytes + size > CHUNK || batch.len() >= RING_READS_MAX;
            if (is_full || goes_alone) && !batch.is_empty() {
                self.send_batch(std::mem::take(&mut batch));
                bytes = 0;
            }
            bytes += size;
            batch.push(order);
        }
        self.send_batch(batch);
    }

    fn send_batch(&self, batch: Vec<Order>) {
        // There is always room: no more are out than the queue holds.
        self.orders.try_send(batch).expect("room for every order under way");
    }
}

struct Worker<'a> {
    root: &'a Root,
    opener: &'a Opener<'a>,
    meter: &'a Meter,
    outgoing: Sender<News>,
    call: Sender<Arc<Job>>,
    helpers: usize,
}

impl Worker<'_> {
    fn run(self, incoming: &Receiver<Vec<Order>>, calls: &Receiver<Arc<Job>>) {
        let mut hands = match Hands::new().doing("get memory to read", "files".as_ref()) {
            Ok(hands) => hands,
            Err(error) => return self.tell(News::Unable(error)),
        };
        // A fault here must reach the control thread, which would wait for ever.
        let work = AssertUnwindSafe(|| self.work(&mut hands, incoming, calls));
        if catch_unwind(work).is_err() {
            self.tell(News::Unable(Error::Internal("a reader failed".to_owned())));
        }
    }

    fn work(&self, hands: &mut Hands, incoming: &Receiver<Vec<Order>>, calls: &Receiver<Arc<Job>>) {
        loop {
            // A file that is open is finished before another is begun.
            select_biased! {
                recv(calls) -> job => if let Ok(job) = job { self.work_on(&job, hands) },
                recv(incoming) -> batch => match batch {
                    Ok(batch) => self.begin(batch, hands),
                    Err(_) => return,
                },
            }
        }
    }

    fn begin(&self, batch: Vec<Order>, hands: &mut Hands) {
        let mut pack = Pack::default();
        for order in batch {
            if self.meter.is_stopped() {
                self.tell(News::Done(order, Reading::Stopped));
                continue;
            }
            if order.attempt > 0 {
                // Somebody is writing to it: give them time to finish.
                std::thread::sleep(Duration::from_millis(100 * u64::from(order.attempt)));
            }
            match Job::open(self.opener, order) {
                Err(failed) => self.tell(failed_to_open(*failed)),
                Ok(job) if job.is_small() && job.source().0.is_in_memory() => {
                    match job.read_whole(self.root, hands, self.meter) {
                        Some(reading) => self.tell(News::Done(job.order, reading)),
                        None => self.work_on(&job, hands),
                    }
                }
                Ok(job) if hands.ring.is_some() && job.is_small() => {
                    if !pack.has_room(&job, hands.buffer.len()) {
                        self.read_pack(std::mem::take(&mut pack), hands);
                    }
                    pack.push(job);
                }
                Ok(job) => self.share(job, hands),
            }
        }
        self.read_pack(pack, hands);
    }

    /// Works on a file together with whoever has nothing else to do.
    fn share(&self, job: Job, hands: &mut Hands) {
        let job = Arc::new(job);
        for _ in 1..job.segment_count().min(self.helpers + 1) {
            // Full: enough others have been called already.
            let _ = self.call.try_send(Arc::clone(&job));
        }
        self.work_on(&job, hands);
    }

    fn read_pack(&self, pack: Pack, hands: &mut Hands) {
        let Some(ring) = hands.ring.as_mut().filter(|_| !pack.jobs.is_empty()) else { return };
        let wanted: Vec<_> = pack
            .jobs
            .iter()
            .map(|(job, at)| {
                let (source, length) = job.source();
                (source, *at, length)
            })
            .collect();
        let filled = Source::read_whole(ring, &mut hands.buffer, &wanted);
        let mut left = Vec::new();
        for ((job, at), filled) in pack.jobs.into_iter().zip(filled) {
            let filled = match filled {
                Some(Ok(filled)) => filled,
                failed => {
                    if failed.is_some() {
                        job.note_failed_read();
                    }
                    left.push(job);
                    continue;
                }
            };
            self.meter.count(filled.way, filled.bytes);
            self.meter.count_hashed(filled.bytes);
            let content = &hands.buffer[at..at + filled.bytes];
            let reading = job.take_whole(content, self.root, self.meter);
            self.tell(News::Done(job.order, reading));
        }
        // What did not come with the others is read by itself, where trouble
        // is looked into.
        for job in left {
            self.work_on(&job, hands);
        }
    }

    fn work_on(&self, job: &Job, hands: &mut Hands) {
        while let Some(segment) = job.work(self.root, hands, self.meter) {
            match segment {
                Segment::Read(Some(blocks)) => {
                    self.tell(News::Part(job.order.id, job.stat().clone(), blocks));
                }
                Segment::Read(None) => {}
                Segment::Last(reading) => self.tell(News::Done(job.order.clone(), reading)),
            }
        }
    }

    fn tell(&self, news: News) {
        // Nobody listens any more only when the run has failed already.
        let _ = self.outgoing.send(news);
    }
}

/// The news of a file that could not be opened: of itself, or of us.
fn failed_to_open((order, reading): (Order, Reading)) -> News {
    match reading {
        Reading::NoMeans(source) => {
            let path = fsure_os::path::from_bytes(order.path.as_bytes()).into_owned();
            News::Unable(Error::Io { doing: "open", path, source })
        }
        reading => News::Done(order, reading),
    }
}

/// Small files that are read together, each with its place in the buffer.
#[derive(Default)]
struct Pack {
    jobs: Vec<(Job, usize)>,
    end: usize,
}

impl Pack {
    fn has_room(&self, job: &Job, capacity: usize) -> bool {
        self.end + Self::room_for(job) <= capacity && self.jobs.len() < RING_READS_MAX
    }

    fn push(&mut self, job: Job) {
        let room = Self::room_for(&job);
        self.jobs.push((job, self.end));
        self.end += room;
    }

    fn room_for(job: &Job) -> usize {
        let (source, length) = job.source();
        length.next_multiple_of(source.grain() as usize)
    }
}
