//! A folder that is measured: its storage, how much of it a measurement may
//! use, and the file that all its rungs read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fsure_os::block_stats::DeviceCounters;
use fsure_os::device::StorageDevice;
use fsure_os::durable_write::{self, Method, Writer};
use fsure_os::machine;
use fsure_os::opener::Opener;
use fsure_os::read::{OpenFile, ReadMode};
use fsure_os::root_dir::Root;
use fsure_os::scratch_dir::Scratch;
use fsure_os::{filesystem_id, path as os_path};

use super::data_pool::DataPool;
use super::rung::{RunContext, RunResult, Spec};
use crate::speed_run::target_text;
use fsure_core::{DeviceReaders, IoContext as _, Result, units};

/// Direct requests: what saturates a fast disk from huge pages
/// (`docs/method.md`).
pub(super) const REQUEST: u64 = 4 << 20;
/// Direct writes begin and end here; every disk's blocks divide it.
pub(super) const GRAIN: u64 = 4096;
/// Of the free space, all files of a folder's rungs together use one part in
/// this many.
const SPACE_SHARE: u64 = 4;
/// Files of the stream's size that are there at the same time: the one that is
/// read and the one that is being written.
const STREAMS: u64 = 2;
/// Of that, small files have one part in this many, and the streams have the rest.
const SMALL_SHARE: u64 = 16;
/// Below this there is nothing to be measured but the beginning and the end.
const SIZE_MIN: u64 = 1 << 20;
/// The trial that shows how slow the storage is.
const TRIAL: Duration = Duration::from_millis(250);
/// Bytes of its first step; each is twice the one before, and flushed.
const TRIAL_STEP: u64 = 1 << 20;
/// Bytes of all steps.
const TRIAL_MAX: u64 = 64 << 20;

/// A folder that is measured.
pub(super) struct SpeedWorkspace {
    /// The folder.
    pub(super) folder: PathBuf,
    /// The same as text.
    pub(super) target: String,
    /// The folder for all files of the measurement, on the file system of `folder`;
    /// removed with this.
    pub(super) scratch: Arc<Scratch>,
    /// The file system's type.
    pub(super) kind: String,
    /// Its device's counters; `None` if it has none.
    pub(super) meter: Option<DeviceCounters>,
    /// Bytes of a stream.
    pub(super) size: u64,
    /// The reason why the streams are shorter than requested; `None` if they are not.
    pub(super) bounded: Option<String>,
    /// Files of small-file rungs at most.
    pub(super) files_max: u64,
    /// Data that are written.
    pub(super) pool: Arc<DataPool>,
    /// Bytes that were free before anything was made.
    free_bytes: u64,
    tree: Arc<Root>,
    readers: OnceLock<usize>,
}

/// The name of the file that is read, in the tree that `verify` goes over.
const STREAM: &str = "stream";

impl SpeedWorkspace {
    /// Inspects a folder's storage, in whose scratch folder nothing is yet. `slice`
    /// is the time that one run may take.
    pub(super) fn new(
        folder: PathBuf,
        scratch: Scratch,
        (size, memory): (u64, Option<u64>),
        slice: Duration,
        pool: &Arc<DataPool>,
    ) -> Result<Self> {
        let tree = scratch.path().join("tree");
        os_path::make_folder(&tree).context("make", &tree)?;
        let tree = Arc::new(Root::open(&tree).context("open", &tree)?);
        let kind = filesystem_id::of(&tree, b"").map_or_else(|_| "unknown".to_owned(), |v| v.kind);
        let path = scratch.path().to_owned();
        let free_bytes = machine::free_bytes(&path).context("ask for free space in", &path)?;
        let meter = DeviceCounters::of(&path).ok().flatten();
        let (share, small) = (free_bytes / SPACE_SHARE, free_bytes / SPACE_SHARE / SMALL_SHARE);
        let mut site = Self {
            target: target_text(&folder),
            folder,
            scratch: Arc::new(scratch),
            kind,
            meter,
            size: 0,
            bounded: None,
            // 4 KiB of content and up to as much for its name and inode, and
            // two of the rungs have their files there at a time.
            files_max: small / 2 / (4 * GRAIN),
            pool: Arc::clone(pool),
            free_bytes,
            tree,
            readers: OnceLock::new(),
        };
        let limits = [
            (size, String::new()),
            (
                (share - small) / STREAMS,
                format!("{} are free, of which a quarter is used", units::size(free_bytes)),
            ),
            (
                memory.map_or(u64::MAX, |memory| memory / 4),
                format!("{} of memory are free", units::size(memory.unwrap_or_default())),
            ),
            site.bound_by_speed(slice, size.min(share)).context("write in", &path)?,
        ];
        let (bytes, why) = limits.into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or_default();
        site.size = bytes / GRAIN * GRAIN;
        site.bounded = (!why.is_empty()).then(|| {
            format!(
                "{}: streams of {} in place of {}: {why}",
                site.target,
                units::size(site.size),
                units::size(size)
            )
        });
        Ok(site)
    }

    /// Returns the bytes that the storage could take in the time of one run, and the
    /// reason in words.
    fn bound_by_speed(&self, slice: Duration, free_bytes: u64) -> std::io::Result<(u64, String)> {
        let path = self.path().join("trial");
        let writer = Writer::create(&path, Method::strongest())?;
        let (began, mut done, mut step, mut rate) = (Instant::now(), 0, TRIAL_STEP, f64::INFINITY);
        let tried = loop {
            if done + step > free_bytes.min(TRIAL_MAX) || began.elapsed() >= TRIAL {
                break Ok(());
            }
            let step_began = Instant::now();
            let written = writer.write(self.pool.at(0, step), done);
            if let Err(error) = written.and_then(|()| writer.flush()) {
                break Err(error);
            }
            // The last and largest step says most.
            rate = step as f64 / step_began.elapsed().as_secs_f64().max(1e-9);
            (done, step) = (done + step, step * 2);
        };
        drop(writer);
        durable_write::remove(&path)?;
        tried?;
        let fits = (rate * slice.as_secs_f64()) as u64;
        let why = format!(
            "a trial wrote {:.0} MiB/s, and a run can take at most {:.1} s of the budget; a larger \
             '--budget' helps",
            rate / units::MIB as f64,
            slice.as_secs_f64()
        );
        Ok((fits.max(SIZE_MIN), why))
    }

    /// Fails with the reason if streams make no sense here.
    pub(super) fn require_size(&self) -> RunResult<()> {
        if self.size >= SIZE_MIN {
            return Ok(());
        }
        Err(super::rung::RungUnavailable::NotHere(format!(
            "too little space: a quarter of the free space must hold two files of {}",
            units::size(SIZE_MIN)
        )))
    }

    /// Fails with the reason if files of so many bytes must not be made any more.
    pub(super) fn require_free_space(&self, bytes: u64) -> RunResult<()> {
        let used = self.free_bytes.saturating_sub(machine::free_bytes(self.path())?);
        if used.saturating_add(bytes) <= self.free_bytes / SPACE_SHARE {
            return Ok(());
        }
        Err(super::rung::RungUnavailable::NotHere(format!(
            "too little space for a file of {}: all data that is written here at a time must fit \
             into a quarter of the {} that were free",
            units::size(bytes),
            units::size(self.free_bytes)
        )))
    }

    /// Returns true if the folder lies in memory, with no device behind it.
    pub(super) fn is_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&&*self.kind)
    }

    /// A rung of this folder.
    pub(super) fn spec(&self, name: &str, unit: &'static str) -> Spec {
        Spec { name: name.to_owned(), target: self.target.clone(), unit }
    }

    /// The tree that is read and verified.
    pub(super) fn tree(&self) -> PathBuf {
        self.path().join("tree")
    }

    /// The scratch folder.
    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns the number of readers that its storage wants, as `verify` would have
    /// them. A check for heads is timed with what lies there, so this is called once
    /// there is something.
    pub(super) fn readers(&self) -> usize {
        *self.readers.get_or_init(|| {
            let class = StorageDevice::of(&self.tree, b"").class(&self.tree, b"");
            let readers = DeviceReaders::of(class);
            readers.threads.min(readers.heads)
        })
    }

    /// Opens the file that is read.
    pub(super) fn open_stream(&self, first: ReadMode) -> std::io::Result<OpenFile> {
        Ok(Opener::new(Arc::clone(&self.tree), first).open(STREAM.as_bytes(), false)?.0)
    }

    /// The path of the file that is read.
    pub(super) fn stream_path(&self) -> PathBuf {
        self.tree().join(STREAM)
    }

    /// Writes the file that is read, if no other rung has.
    pub(super) fn lay_out(&self, go: &RunContext<'_>) -> RunResult<()> {
        self.require_size()?;
        let path = self.stream_path();
        if os_path::exists(&path) {
            return Ok(());
        }
        let written = self.write_past_cache(&path, self.size, go);
        if written.is_err() {
            os_path::remove(&path, false);
        }
        written
    }

    /// Writes a file to the medium, past the cache if that is available, and leaves
    /// nothing of it in memory.
    pub(super) fn write_past_cache(
        &self,
        path: &Path,
        size: u64,
        go: &RunContext<'_>,
    ) -> RunResult<()> {
        let writer = match self.direct_writer(path) {
            Ok(writer) => writer,
            Err(error) if durable_write::is_refusal(&error) => {
                Writer::create(path, Method::WriteOnly)?
            }
            Err(error) => return Err(error.into()),
        };
        self.fill(&writer, size, REQUEST, go)?;
        Ok(writer.flush_to_medium()?)
    }

    /// A file for direct writes. Some file systems refuse those at the first
    /// write only.
    pub(super) fn direct_writer(&self, path: &Path) -> std::io::Result<Writer> {
        let writer = Writer::create(path, Method::Direct)?;
        if let Err(error) = writer.write(self.pool.at(0, GRAIN), 0) {
            drop(writer);
            durable_write::remove(path)?;
            return Err(error);
        }
        Ok(writer)
    }

    /// Writes so many bytes of data from the beginning on.
    pub(super) fn fill(
        &self,
        writer: &Writer,
        size: u64,
        block: u64,
        go: &RunContext<'_>,
    ) -> RunResult<()> {
        let mut at = 0;
        while at < size {
            let data = self.pool.at(at, block.min(size - at));
            writer.write(data, at)?;
            at += data.len() as u64;
            go.check()?;
        }
        Ok(())
    }
}
