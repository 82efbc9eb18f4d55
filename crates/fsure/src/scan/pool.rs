//! The workers: many hands, no decisions. Each takes the next order, or a
//! segment of a large file that another has opened. Every queue is bounded,
//! and so is what is under way: the control thread never has more than
//! [`IN_FLIGHT_MAX`] orders out, so that neither side can block the other.

use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select_biased};
use fsure_os::folder::Root;
use fsure_os::read::Way;

use super::reader::{Job, Order, Reading, Segment};
use super::span::{Hands, Meter};
use crate::catalog::UnfinishedBlocks;
use crate::words::{Error, IoContext as _, Result};

/// Orders under way at once.
pub(super) const IN_FLIGHT_MAX: usize = 1024;

/// A worker's news.
#[derive(Debug)]
pub(super) enum News {
    /// A part of a large file is read; its block values, to be kept.
    Part(u64, UnfinishedBlocks),
    /// An order is done.
    Done(Order, Reading),
}

/// The workers at work.
pub(super) struct Pool {
    pub(super) orders: Sender<Order>,
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
        meter: &'scope Meter,
        first: Way,
    ) -> Result<Self> {
        let count = worker_count();
        let (orders, incoming) = bounded::<Order>(IN_FLIGHT_MAX);
        let (outgoing, news) = bounded::<News>(2 * IN_FLIGHT_MAX);
        let (call, calls) = bounded::<Arc<Job>>(count * count);
        for _ in 0..count {
            let hands = Hands::new().doing("get memory to read", std::path::Path::new("files"))?;
            let worker = Worker {
                root,
                meter,
                first,
                hands,
                outgoing: outgoing.clone(),
                call: call.clone(),
                helpers: count - 1,
            };
            let (incoming, calls) = (incoming.clone(), calls.clone());
            let started = std::thread::Builder::new()
                .name("read".into())
                .spawn_scoped(scope, move || worker.run(&incoming, &calls));
            started.map_err(|error| Error::Internal(format!("no thread to read with: {error}")))?;
        }
        Ok(Self { orders, news })
    }
}

struct Worker<'a> {
    root: &'a Root,
    meter: &'a Meter,
    first: Way,
    hands: Hands,
    outgoing: Sender<News>,
    call: Sender<Arc<Job>>,
    helpers: usize,
}

impl Worker<'_> {
    fn run(mut self, incoming: &Receiver<Order>, calls: &Receiver<Arc<Job>>) {
        loop {
            // A file that is open is finished before another is begun.
            select_biased! {
                recv(calls) -> job => if let Ok(job) = job { self.work_on(&job) },
                recv(incoming) -> order => match order {
                    Ok(order) => self.begin(order),
                    Err(_) => return,
                },
            }
        }
    }

    fn begin(&mut self, order: Order) {
        if self.meter.is_stopped() {
            self.tell(News::Done(order, Reading::Stopped));
            return;
        }
        if order.attempt > 0 {
            // Somebody is writing to it: give them time to finish.
            std::thread::sleep(Duration::from_millis(100 * u64::from(order.attempt)));
        }
        match Job::open(self.root, order.clone(), self.first) {
            Err(reading) => self.tell(News::Done(order, reading)),
            Ok(job) => {
                let job = Arc::new(job);
                for _ in 1..job.segment_count().min(self.helpers + 1) {
                    // Full: enough others have been called already.
                    let _ = self.call.try_send(Arc::clone(&job));
                }
                self.work_on(&job);
            }
        }
    }

    fn work_on(&mut self, job: &Job) {
        while let Some(segment) = job.work(self.root, &mut self.hands, self.meter) {
            match segment {
                Segment::Read(Some(blocks)) => self.tell(News::Part(job.order.id, blocks)),
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
