//! One file from opening to its digests. Large files are cut into segments
//! that several workers read at once.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fsure_os::Stat;
use fsure_os::read::OpenFile;
use fsure_os::root_dir::{is_denied, is_gone, is_other_kind, is_out_of_means};

use super::range_read::{RangeRead, RangeReport};
use super::read_request::{ReadContent, ReadOutcome, ReadRequest};
use super::reader_context::{ReadAbort, ReaderContext, ReaderShared};
use super::segments::Segments;
use super::watchdog::ReadHandle;
use crate::catalog::UnfinishedBlocks;
use crate::model::{ByteRange, merge_ranges};
use fsure_core::block_hash::{
    BLOCK, BlockValue, SequentialDigests, block_count, block_value, merge_blocks,
};
use fsure_core::{Algorithm, Digests, units};

/// Bytes of holes up to which a file is read. Every digest takes all of its
/// zeros: these take some hours, and those of the largest size that a file system
/// lets a file claim (8 EiB) decades, in which nothing else would be read. No
/// format of disk images goes beyond (VHDX: 64 TiB).
const HOLES_MAX: u64 = 64 << 40;

/// A file being read by one worker or several.
pub(super) struct FileRead {
    pub(super) order: ReadRequest,
    source: OpenFile,
    stat: Stat,
    hashed_ns: i64,
    segments: Segments,
    next: AtomicUsize,
    left: AtomicUsize,
    handle: Arc<ReadHandle>,
    /// True if the run came to its end before the last byte.
    is_unfinished: AtomicBool,
    parts: Mutex<PartialResult>,
}

#[derive(Default)]
struct PartialResult {
    blocks: Vec<(u64, Option<BlockValue>)>,
    digests: Digests,
    unreadable: Vec<ByteRange>,
    error: Option<io::Error>,
    needed_second_read: bool,
}

/// The result of reading one segment.
pub(super) struct SegmentResult {
    /// The values of its blocks, if they are to be kept.
    pub(super) kept: Option<UnfinishedBlocks>,
    /// The response to the order, if this was the last segment.
    pub(super) last: Option<ReadOutcome>,
}

impl FileRead {
    /// Opens a small file that is in memory as a whole, with the stat that it had when it was
    /// ordered. The error is the order of a file that is large or not in memory.
    pub(super) fn open_resident(
        shared: &ReaderShared,
        order: ReadRequest,
    ) -> Result<Self, Box<ReadRequest>> {
        let hashed_ns = shared.clock.now_ns();
        if !order.uses_cache || order.alone || !is_small(&order, &order.stat) {
            return Err(Box::new(order));
        }
        match shared.opener.open_resident(order.path.as_bytes(), &order.stat) {
            Some(source) => Ok(Self::begin(source, order.stat.clone(), order, hashed_ns)),
            None => Err(Box::new(order)),
        }
    }

    /// Opens the file. The error is the response to the order.
    pub(super) fn open(
        shared: &ReaderShared,
        mut order: ReadRequest,
    ) -> Result<Self, Box<(ReadRequest, ReadOutcome)>> {
        let mut hashed_ns = shared.clock.now_ns();
        let opened = shared.opener.open(order.path.as_bytes(), order.uses_cache);
        let (source, stat) = match opened {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Err(Box::new((order, ReadOutcome::Gone))),
            Err(error) if is_denied(&error) => {
                return Err(Box::new((order, ReadOutcome::Denied(error))));
            }
            // Not a regular file any more, or kept by another process just now.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput || is_other_kind(&error) => {
                return Err(Box::new((order, ReadOutcome::Changed)));
            }
            Err(error) if is_out_of_means(&error) => {
                return Err(Box::new((order, ReadOutcome::NoMeans(error))));
            }
            Err(error) => return Err(Box::new((order, ReadOutcome::Unopened(error)))),
        };
        if stat.size.saturating_sub(stat.allocated) > HOLES_MAX {
            return Err(Box::new((order, ReadOutcome::Unopened(claims_too_much(&stat)))));
        }
        // Parts of another content than this one are worth nothing, and a
        // content is as old as its oldest part.
        if !stat.is_unchanged_from(&order.stat) {
            order.kept.clear();
        }
        for kept in &order.kept {
            hashed_ns = hashed_ns.min(kept.hashed_ns);
        }
        Ok(Self::begin(source, stat, order, hashed_ns))
    }

    fn begin(source: OpenFile, stat: Stat, order: ReadRequest, hashed_ns: i64) -> Self {
        let mut parts = PartialResult::default();
        let segments = Segments::of(&order, stat.size, &mut parts.blocks);
        Self {
            source,
            stat,
            hashed_ns,
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(segments.count()),
            segments,
            handle: Arc::new(ReadHandle::new(order.id)),
            is_unfinished: AtomicBool::new(false),
            parts: Mutex::new(parts),
            order,
        }
    }

    pub(super) fn handle(&self) -> &Arc<ReadHandle> {
        &self.handle
    }

    /// Returns the number of readers that the file can use.
    pub(super) fn segment_count(&self) -> usize {
        self.segments.count()
    }

    /// Reads the next segment that no reader has taken, if there is one.
    pub(super) fn read_next_segment(&self, context: &mut ReaderContext) -> Option<SegmentResult> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let range = self.segments.get(place)?;
        let kept = self.read_segment(range, context);
        // Acquire and release: the last one sees what the others have put in.
        let is_last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        Some(SegmentResult { kept, last: is_last.then(|| self.finish(context)) })
    }

    /// Returns true if the file can be read in one go together with others.
    pub(super) fn is_small(&self) -> bool {
        is_small(&self.order, &self.stat)
    }

    /// Returns the stat of the file when it was opened.
    pub(super) fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The open file, and its length.
    pub(super) fn source(&self) -> (&OpenFile, usize) {
        (&self.source, self.stat.size as usize)
    }

    /// Reads a small file that is in memory, all of it with one call. `None` if
    /// that does not give all of it.
    pub(super) fn read_whole(&self, context: &mut ReaderContext) -> Option<ReadOutcome> {
        let length = self.stat.size as usize;
        context.wait_for_rate(self.stat.size).ok()?;
        let filled = self.source.read_at(&mut context.buffer, 0, length);
        let filled = filled.inspect_err(|_| self.note_failed_read()).ok()?;
        if filled.bytes < length {
            return None;
        }
        context.count(filled.way, length);
        context.meter().count_hashed(length);
        Some(self.digest_small(0, context))
    }

    /// Returns true if a read has failed.
    pub(super) fn has_failed_read(&self) -> bool {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).needed_second_read
    }

    /// Notes that a read has failed: if another one does not, that is reported.
    pub(super) fn note_failed_read(&self) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.needed_second_read = true;
    }

    /// Takes the whole content of a small file, which lies at that place in
    /// the buffer.
    pub(super) fn digest_small(&self, at: usize, context: &ReaderContext) -> ReadOutcome {
        let content = &context.buffer[at..at + self.stat.size as usize];
        let mut digests = Digests::default();
        if self.order.algorithms.contains(Algorithm::Blake3) {
            digests.insert(Algorithm::Blake3, blake3::hash(content).as_bytes());
        }
        if let Some(mut in_order) = SequentialDigests::new(self.order.algorithms) {
            in_order.update(content);
            in_order.finish(&mut digests);
        }
        if !self.is_unchanged() {
            self.handle.cut();
        }
        self.add(PartialResult { digests, ..PartialResult::default() }, RangeReport::default());
        self.finish(context)
    }

    /// Returns true if the file still is what it was when it was opened.
    fn is_unchanged(&self) -> bool {
        self.source.stat().is_ok_and(|now| now.is_unchanged_from(&self.stat))
    }

    fn read_segment(
        &self,
        range: Range<u64>,
        context: &mut ReaderContext,
    ) -> Option<UnfinishedBlocks> {
        if self.handle.is_cut() {
            return None;
        }
        let size = self.stat.size;
        let wants_blake3 = self.order.algorithms.contains(Algorithm::Blake3);
        let is_whole = self.order.blocks.is_empty() && self.segments.count() == 1;
        let mut in_order = SequentialDigests::new(self.order.algorithms).filter(|_| is_whole);
        let mut parts = PartialResult::default();
        let mut report = RangeReport::default();
        let span = RangeRead {
            source: &self.source,
            range: range.clone(),
            size,
            has_holes: self.stat.allocated < size,
        };
        let done = span.read(context, &mut report, &mut |block, content| {
            if let Some(read) = &self.order.blocks_read {
                read.fetch_add(1, Ordering::Relaxed);
            }
            if let (Some(in_order), Some(content)) = (&mut in_order, content) {
                in_order.update(content);
            }
            match content {
                Some(content) if size <= BLOCK && wants_blake3 => {
                    parts.digests.insert(Algorithm::Blake3, blake3::hash(content).as_bytes());
                }
                _ if size > BLOCK && wants_blake3 => {
                    parts.blocks.push((block, content.map(|content| block_value(block, content))));
                }
                _ => {}
            }
        });
        // A file without content has no block to say so.
        if size == 0 && wants_blake3 {
            parts.digests.insert(Algorithm::Blake3, blake3::hash(b"").as_bytes());
        }
        let unchanged = self.is_unchanged();
        if done == Err(ReadAbort::Stopped) {
            self.is_unfinished.store(true, Ordering::Relaxed);
        }
        if done == Err(ReadAbort::Shrunk) || !unchanged {
            self.handle.cut();
        }
        if let Some(in_order) = in_order.filter(|_| report.unreadable.is_empty()) {
            in_order.finish(&mut parts.digests);
        }
        let values: Option<Vec<_>> = parts.blocks.iter().map(|(_, value)| *value).collect();
        // The blocks of a part stand for themselves; what a whole file is begun
        // with again has to be a whole segment. What came at a second attempt
        // only is to be reported, and so read again.
        let is_enough =
            done.is_ok() || done == Err(ReadAbort::Stopped) && !self.order.blocks.is_empty();
        let is_kept =
            self.order.keeps_parts && is_enough && unchanged && !report.needed_second_read;
        let kept = values.filter(|values| is_kept && !values.is_empty());
        self.add(parts, report);
        let (first_block, hashed_ns) = (range.start / BLOCK, self.hashed_ns);
        kept.map(|values| UnfinishedBlocks { first_block, hashed_ns, values })
    }

    fn add(&self, parts: PartialResult, report: RangeReport) {
        let mut all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        all.blocks.extend(parts.blocks);
        for algorithm in parts.digests.algorithms().iter() {
            let value = parts.digests.get(algorithm).expect("it is in the set");
            all.digests.insert(algorithm, value);
        }
        all.unreadable.extend(report.unreadable);
        all.needed_second_read |= report.needed_second_read;
        all.error = all.error.take().or(report.error);
    }

    fn finish(&self, context: &ReaderContext) -> ReadOutcome {
        if self.is_unfinished.load(Ordering::Relaxed) {
            return ReadOutcome::CutOff(self.hashed_ns);
        }
        // That a small file's name stands for another one now shows by the
        // change time, which moves with every name that is taken away. Reading
        // a large one takes long enough for asking once more.
        if self.stat.size > BLOCK {
            match context.root().stat(self.order.path.as_bytes()) {
                Err(error) if is_gone(&error) => return ReadOutcome::Gone,
                Ok(now) if now.inode == self.stat.inode => {}
                _ => return ReadOutcome::Changed,
            }
        }
        if self.handle.is_cut() {
            return ReadOutcome::Changed;
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let PartialResult { mut blocks, mut digests, unreadable, error, needed_second_read } =
            std::mem::take(&mut *parts);
        blocks.sort_unstable_by_key(|(block, _)| *block);
        if blocks.len() as u64 == block_count(self.stat.size)
            && let Some(values) = blocks.iter().map(|(_, v)| *v).collect::<Option<Vec<_>>>()
            && values.len() > 1
        {
            digests.insert(Algorithm::Blake3, &merge_blocks(&values));
        }
        let has_all = digests.algorithms().covers(self.order.algorithms);
        if self.order.blocks.is_empty() && unreadable.is_empty() && !has_all {
            let why = "it was read, but not all of its digests were computed";
            return ReadOutcome::Unopened(io::Error::other(why));
        }
        ReadOutcome::Read(Box::new(ReadContent {
            digests,
            blocks,
            unreadable: merge_ranges(&unreadable),
            error,
            needed_second_read,
            stat: self.stat.clone(),
            hashed_ns: self.hashed_ns,
        }))
    }
}

/// Returns true if all of a file is read in one go.
fn is_small(order: &ReadRequest, stat: &Stat) -> bool {
    let is_whole = order.blocks.is_empty();
    is_whole && (1..=BLOCK).contains(&stat.size) && stat.allocated >= stat.size
}

/// Returns the error for a file that is not read because its size is nearly all holes.
fn claims_too_much(stat: &Stat) -> io::Error {
    let [size, allocated, most] = [stat.size, stat.allocated, HOLES_MAX].map(units::size);
    io::Error::other(format!(
        "it claims {size} and stores {allocated}: holes of more than {most} are not read; \
         a line in .fsureignore leaves it out"
    ))
}
