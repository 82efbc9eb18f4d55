//! The readers, by the device they read. Every queue is bounded, and so is what
//! is under way: the control thread never has more than [`IN_FLIGHT_MAX`]
//! orders out, so that neither side can block the other.
//!
//! The readers are not waited for without end: storage that does not respond
//! cannot be made to, and neither Ctrl-C nor the rest of the tree should have
//! to wait for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use fsure_os::batch_read::RING_READS_MAX;
use fsure_os::device::{DeviceClass, StorageDevice};
use fsure_os::opener::Opener;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;

use super::ScanPlan;
use super::device_queue::DeviceQueue;
use super::io_options::IoOptions;
use super::read_request::ReadRequest;
use super::reader_context::{ReadCounters, ReaderShared};
use super::reader_thread::{ReaderEvent, Worker};
use super::scrub_budget::Deadline;
use super::segments::SEGMENT_BYTES;
use super::watchdog::{Heartbeat, InProgress};
use fsure_core::{Error, RelPath, Result};

/// Orders under way at once. Far more than are being read: the more there are
/// to choose from, the better is their order on the disk.
pub(super) const IN_FLIGHT_MAX: usize = 8_192;

/// Orders put in the order of the disk at once.
const WINDOW: usize = 4_096;

/// Orders that make a batch worth while when readers wait.
const BATCH_MIN: usize = 64;

/// Number of batches and files that may get stuck, each time with a reader that
/// is replaced by a new one, before the run is given up.
const LOST_MAX: usize = 32;

/// Longest time that a device may take to show its class. One with heads takes
/// a fifth of a second.
const CLASS_PATIENCE: Duration = Duration::from_secs(5);

/// Longest time that readers may take to end when the run has ended.
const READER_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The readers at work.
pub(super) struct Pool {
    shared: Arc<ReaderShared>,
    effort: IoOptions,
    /// Class of all devices, if it is known from an earlier run.
    known_class: Option<DeviceClass>,
    open_files: usize,
    lanes: Vec<DeviceReaders>,
    /// Index of the lane that serves a device, by the device number in a file's stat.
    by_device: HashMap<u64, usize>,
    pub(super) events: Receiver<ReaderEvent>,
    outgoing: Sender<ReaderEvent>,
    /// Every reader has a sender of it.
    alive: (Sender<()>, Receiver<()>),
    /// Number of batches and files that were given up. A file counts once, by its number.
    lost: usize,
    lost_files: HashSet<u64>,
}

/// A device and its readers.
struct DeviceReaders {
    device: StorageDevice,
    class: DeviceClass,
    lane: Arc<DeviceQueue>,
    orders: Sender<Vec<ReadRequest>>,
    posts: Vec<Arc<Heartbeat>>,
}

/// Orders that a reader had in hand when it was given up.
pub(super) enum AbandonedRead {
    /// One of these, by number, is what it got stuck at.
    Among(Vec<u64>),
    /// This one is.
    One(u64),
}

impl Pool {
    /// A pool without readers; they are started when there is something to
    /// read.
    pub(super) fn new(plan: &ScanPlan, meter: Arc<ReadCounters>, ending: Deadline) -> Self {
        let shared = ReaderShared {
            opener: Opener::new(Arc::clone(&plan.root), plan.first_way),
            meter,
            ending,
            rate: Arc::clone(&plan.effort.rate),
            clock: plan.clock.clone(),
            chunk: plan.effort.chunk(),
            reads_through: plan.first_way == ReadMode::Cached,
        };
        let (outgoing, events) = bounded(IN_FLIGHT_MAX);
        Self {
            shared: Arc::new(shared),
            effort: plan.effort.clone(),
            known_class: None,
            open_files: fsure_os::rlimit::open_files(),
            lanes: Vec::new(),
            by_device: HashMap::new(),
            events,
            outgoing,
            alive: bounded(0),
            lost: 0,
            lost_files: HashSet::new(),
        }
    }

    /// Returns the end of the run that the readers keep to.
    pub(super) fn ending(&self) -> Deadline {
        self.shared.ending.clone()
    }

    /// Takes all devices for ones of this class, as an earlier run has found them.
    pub(super) fn set_class(&mut self, class: DeviceClass) {
        self.known_class = Some(class);
    }

    /// Returns the class of the device of a folder below the root, by which it is read.
    pub(super) fn class(&mut self, folder: &RelPath) -> DeviceClass {
        let stat = self.shared.opener.root().stat(folder.as_bytes());
        let lane = self.lane(stat.map_or(0, |stat| stat.device), folder);
        self.lanes[lane].class
    }

    /// The lane of a device, which shows at a folder below the root.
    fn lane(&mut self, device: u64, folder: &RelPath) -> usize {
        if let Some(lane) = self.by_device.get(&device) {
            return *lane;
        }
        let root = self.shared.opener.root();
        let found = StorageDevice::of(root, folder.as_bytes());
        let shared = self.lanes.iter().position(|lane| lane.device.shares_a_disk_with(&found));
        let lane = shared.unwrap_or_else(|| {
            let class = self.known_class.unwrap_or_else(|| class_in_time(&found, root, folder));
            let (orders, incoming) = bounded(IN_FLIGHT_MAX);
            let lane = DeviceQueue::new(
                incoming,
                self.effort.share(class, self.open_files),
                found.is_remote(),
            );
            self.lanes.push(DeviceReaders {
                device: found,
                class,
                lane: Arc::new(lane),
                orders,
                posts: Vec::new(),
            });
            self.lanes.len() - 1
        });
        self.by_device.insert(device, lane);
        lane
    }

    /// Sends orders to the readers in the order of the disk: all of them, or
    /// only if there are enough to choose from or readers are waiting.
    pub(super) fn send(&mut self, orders: &mut Vec<ReadRequest>, all: bool) -> Result<()> {
        let is_enough = orders.len() >= WINDOW;
        let readers_wait =
            || orders.len() >= BATCH_MIN && self.lanes.iter().any(|lane| lane.orders.is_empty());
        if orders.is_empty() || !(all || is_enough || readers_wait()) {
            return Ok(());
        }
        orders.sort_unstable_by_key(|order| (order.stat.device, order.place()));
        let mut batch = Batch::default();
        for order in orders.drain(..) {
            if batch.is_full(&order, self.shared.chunk) {
                self.send_batch(std::mem::take(&mut batch))?;
            }
            batch.push(order);
        }
        self.send_batch(batch)
    }

    fn send_batch(&mut self, batch: Batch) -> Result<()> {
        let Some(first) = batch.orders.first() else { return Ok(()) };
        let folder = first.path.parent().unwrap_or_default();
        let lane = self.lane(first.stat.device, &folder);
        let readers = self.lanes[lane].posts.len() + batch.readers_to_use();
        for _ in self.lanes[lane].posts.len()..readers.min(self.lanes[lane].lane.share.threads) {
            self.start_reader(lane)?;
        }
        // There is always space: no more are out than the queue holds.
        self.lanes[lane].orders.try_send(batch.orders).expect("room for every order under way");
        Ok(())
    }

    fn start_reader(&mut self, lane: usize) -> Result<()> {
        let heartbeat = Arc::new(Heartbeat::new());
        let worker = Worker {
            shared: Arc::clone(&self.shared),
            lane: Arc::clone(&self.lanes[lane].lane),
            heartbeat: Arc::clone(&heartbeat),
            outgoing: self.outgoing.clone(),
            alive: self.alive.0.clone(),
        };
        let thread = std::thread::Builder::new().name("read".into());
        let started = thread.spawn(move || worker.run());
        started
            .map_err(|error| Error::Internal(format!("cannot start a thread to read: {error}")))?;
        self.lanes[lane].posts.push(heartbeat);
        Ok(())
    }

    /// Gives up readers that have waited too long for a response, and replaces
    /// them. Returns the orders that they had in hand; `None` once so many are
    /// stuck that the storage has to be given up.
    pub(super) fn look_after(&mut self) -> Result<Option<Vec<AbandonedRead>>> {
        let mut all = Vec::new();
        for lane in 0..self.lanes.len() {
            let open = &mut self.lanes[lane];
            let held: Vec<_> = open
                .posts
                .iter()
                .filter_map(|heartbeat| {
                    heartbeat.give_up_after(self.effort.timeout, &open.lane.heads)
                })
                .collect();
            open.posts.retain(|heartbeat| !heartbeat.is_lost());
            for held in held {
                self.start_reader(lane)?;
                // Many readers may be stuck at one file.
                let file_read = held.file_read.as_ref().map(|file_read| file_read.order());
                self.lost += usize::from(file_read.is_none_or(|id| self.lost_files.insert(id)));
                all.extend(AbandonedRead::of(held));
            }
        }
        Ok((self.lost <= LOST_MAX).then_some(all))
    }

    /// Ends the readers, and waits for them as long as they move.
    pub(super) fn close(self) {
        self.shared.meter.stop();
        let (alive, is_over) = self.alive;
        // They wait for space to send their news, or for orders: that ends now.
        drop((alive, self.events, self.outgoing, self.lanes));
        let _ = is_over.recv_timeout(READER_EXIT_TIMEOUT);
    }
}

/// Returns the class of a device; one that takes too long to show it is taken
/// for a disk with heads.
fn class_in_time(device: &StorageDevice, root: &Arc<Root>, folder: &RelPath) -> DeviceClass {
    let (reported, answer) = bounded(1);
    let (device, root, folder) = (device.clone(), Arc::clone(root), folder.clone());
    let ask = move || {
        // Too late: the receiver is gone.
        let _ = reported.send(device.class(&root, folder.as_bytes()));
    };
    let asked = std::thread::Builder::new().name("time".into()).spawn(ask);
    let class = asked.ok().and_then(|_| answer.recv_timeout(CLASS_PATIENCE).ok());
    class.unwrap_or(DeviceClass::Rotational(1))
}

impl AbandonedRead {
    fn of(InProgress { orders, file_read }: InProgress) -> Vec<Self> {
        if let Some(file_read) = file_read {
            file_read.cut();
            return vec![Self::One(file_read.order()), Self::Among(orders)];
        }
        match orders[..] {
            [order] => vec![Self::One(order)],
            _ => vec![Self::Among(orders)],
        }
    }
}

/// Orders for one reader: on one device, and small enough to be read together.
#[derive(Default)]
struct Batch {
    orders: Vec<ReadRequest>,
    bytes: u64,
}

impl Batch {
    fn is_full(&self, next: &ReadRequest, chunk: u64) -> bool {
        let goes_alone = |order: &ReadRequest| order.alone || order.stat.size > chunk;
        self.orders.last().is_some_and(|last| {
            last.stat.device != next.stat.device
                || goes_alone(last)
                || goes_alone(next)
                || self.bytes + next.stat.size > chunk
                || self.orders.len() >= RING_READS_MAX
        })
    }

    fn push(&mut self, order: ReadRequest) {
        self.bytes += order.stat.size;
        self.orders.push(order);
    }

    /// Returns the number of readers that can be at work on it. A reader has a buffer and a ring:
    /// in a run over a few files all of them took longer to start than the files to read.
    fn readers_to_use(&self) -> usize {
        let segments = |order: &ReadRequest| match order.blocks.len() {
            0 => order.stat.size.div_ceil(SEGMENT_BYTES) as usize,
            blocks => blocks,
        };
        self.orders.iter().map(segments).max().unwrap_or(1).max(1)
    }
}
