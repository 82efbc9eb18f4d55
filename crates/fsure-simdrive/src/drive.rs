//! A simulated drive: the losses of a power cut can be tried on it as often as needed,
//! and reproduced by a seed.
//!
//! A drive keeps two images. One is what its host sees: every acknowledged write. The
//! other is what is on the medium. Between them lie the writes that are acknowledged and
//! not durable, in their order. The drive's [`Behavior`] decides when they become
//! durable, and a [`CutVariant`] which of the rest survive. Time is passed in, so that tests
//! need none.
//!
//! [`super::files`] is the same for files and names instead of blocks.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::event_log::Recorder;
use super::pending_writes::{PendingWrite, PendingWrites};
use super::{Behavior, CutVariant, DriveChange, History, Image, Latency, WriteEffect};
use fsure_core::Random;

/// Bytes of the cache. Beyond them a drive makes the oldest changes durable by itself,
/// whatever it promises: otherwise a host that never flushes would use all memory.
pub const CACHE: usize = 128 << 20;

/// Properties of a drive.
#[derive(Clone, Debug)]
pub struct Traits {
    /// Kind of drive: decides when acknowledged writes become durable.
    pub behavior: Behavior,
    /// Time that its requests take.
    pub latency: Latency,
    /// Writes and trims that succeed before one fails; `None`: none fails.
    pub writes_before_error: Option<u64>,
    /// Writes that fail from then on before all is well again.
    pub errors: u64,
}

impl Traits {
    /// A drive of this behavior that takes no time and never fails.
    pub fn new(behavior: Behavior) -> Self {
        Self { behavior, latency: Latency::NONE, writes_before_error: None, errors: 0 }
    }
}

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The drive was made to fail here.
    #[error("the simulated drive fails this request")]
    Injected,
    /// The range goes beyond the end of the drive.
    #[error("behind the end of the simulated drive")]
    OutOfRange,
}

/// Counts of the requests to a drive so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Writes acknowledged.
    pub writes: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Trims acknowledged.
    pub trims: u64,
    /// Flushes acknowledged.
    pub flushes: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// A simulated drive. `now` is the time since it was switched on, and never
/// goes back.
#[derive(Debug)]
pub struct Drive {
    traits: Traits,
    /// Content that the host reads.
    seen: Image,
    /// Content that every cut leaves, whatever else is lost.
    medium: Image,
    pending: PendingWrites,
    /// Grows with every flush: writes of one epoch have no order among them.
    epoch: u64,
    /// Time at which the deferred flush is due, for a drive that defers.
    flush_due: Option<Duration>,
    flushed_at: Option<Duration>,
    recorder: Option<Recorder>,
    counts: RequestCounts,
}

impl Drive {
    /// Creates a drive that holds `content`.
    pub fn new(traits: Traits, content: Image) -> Self {
        Self {
            traits,
            seen: content.clone(),
            medium: content,
            pending: PendingWrites::default(),
            epoch: 0,
            flush_due: None,
            flushed_at: None,
            recorder: None,
            counts: RequestCounts::default(),
        }
    }

    /// Records everything from now on, in a file without a name in this folder, so that
    /// each flush boundary can be checked afterwards.
    pub fn remember(&mut self, folder: &Path) -> io::Result<()> {
        self.recorder = Some(Recorder::new(self.seen.clone(), folder)?);
        Ok(())
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.seen.size()
    }

    /// Returns its behavior, which decides when its writes become durable.
    pub fn behavior(&self) -> Behavior {
        self.traits.behavior
    }

    /// Returns the counts of requests so far.
    pub fn counts(&self) -> RequestCounts {
        self.counts
    }

    /// Returns all events since `remember` was called. Fails if it was not, or if an
    /// event could not be recorded.
    pub fn history(&mut self) -> io::Result<History> {
        let recorder = self.recorder.as_mut();
        recorder.ok_or_else(|| io::Error::other("this drive does not remember"))?.history()
    }

    /// Returns an error if it was to record its requests and could not record all of
    /// them.
    pub fn remembers_all(&self) -> io::Result<()> {
        self.recorder.as_ref().map_or(Ok(()), Recorder::is_whole)
    }

    /// Reads as its host does.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DriveError> {
        self.seen.read(offset, target).ok_or(DriveError::OutOfRange)
    }

    /// Takes a write; returns the time until it is acknowledged.
    pub fn write(
        &mut self,
        now: Duration,
        offset: u64,
        data: &[u8],
    ) -> Result<Duration, DriveError> {
        self.take(now, DriveChange { offset, what: WriteEffect::Data(data.into()) }, None)?;
        self.count_write(data);
        Ok(self.traits.latency.write)
    }

    /// Takes a write that is to be on the medium when it is acknowledged (`FUA`),
    /// regardless of earlier writes. A drive that does not do that for a flush does not
    /// do it for one write either.
    pub fn write_fua(
        &mut self,
        now: Duration,
        offset: u64,
        data: &[u8],
    ) -> Result<Duration, DriveError> {
        let write = self.traits.latency.write;
        let honest = write + self.traits.latency.of_flush(data.len() as u64);
        let is_honest = self.traits.behavior == Behavior::Honest;
        let durable_at = is_honest.then(|| now + honest);
        self.take(now, DriveChange { offset, what: WriteEffect::Data(data.into()) }, durable_at)?;
        self.count_write(data);
        Ok(match self.traits.behavior {
            Behavior::Honest => honest,
            // As a driver does it for a drive that has no such write.
            Behavior::Defer { .. } => write + self.persist_for_flush(now),
            Behavior::Protected | Behavior::Lying { .. } => write,
        })
    }

    /// Takes a trim: the range is zero from then on, as soon and as surely as
    /// after a write.
    pub fn trim(
        &mut self,
        now: Duration,
        offset: u64,
        length: u64,
    ) -> Result<Duration, DriveError> {
        self.take(now, DriveChange { offset, what: WriteEffect::Zeroes(length) }, None)?;
        self.counts.trims += 1;
        Ok(self.traits.latency.write)
    }

    /// Takes a flush; returns the time until it is acknowledged. The behavior decides
    /// what it makes durable. That is durable when the time has passed, and not before: a cut
    /// during a flush leaves as much as one before it.
    pub fn flush(&mut self, now: Duration) -> Result<Duration, DriveError> {
        self.persist_due(now);
        self.epoch += 1;
        self.note(Recorder::flushed);
        self.counts.flushes += 1;
        Ok(self.persist_for_flush(now))
    }

    /// Notes in the history that everything up to a number was acknowledged as safe.
    pub fn mark(&mut self, number: u64) {
        self.note(|recorder| recorder.marked(number));
    }

    /// Returns what is on the medium if the power is cut now.
    pub fn cut(&mut self, now: Duration, cut: CutVariant, random: &mut Random) -> Image {
        self.persist_due(now);
        let mut image = self.medium.clone();
        cut.leave(now, &self.pending, &mut image, random);
        image
    }

    /// Returns the bytes that are acknowledged and not durable, those of a flush that has not
    /// ended among them.
    pub fn volatile_bytes(&self, now: Duration) -> u64 {
        self.pending.volatile_bytes(now)
    }

    /// Changes the kind of the drive from now on. What the former kind has made durable
    /// stays.
    pub fn set_behavior(&mut self, now: Duration, behavior: Behavior) {
        self.persist_due(now);
        self.traits.behavior = behavior;
        (self.flushed_at, self.flush_due) = (None, None);
        self.persist_due(now);
    }

    /// Fails `errors` changes after `writes` more that succeed, and no others.
    pub fn fail_after(&mut self, writes: u64, errors: u64) {
        (self.traits.writes_before_error, self.traits.errors) = (Some(writes), errors);
    }

    fn take(
        &mut self,
        now: Duration,
        change: DriveChange,
        durable_at: Option<Duration>,
    ) -> Result<(), DriveError> {
        self.persist_due(now);
        self.may_fail()?;
        change.make(&mut self.seen).ok_or(DriveError::OutOfRange)?;
        self.note(|recorder| recorder.changed(&change));
        self.pending.push(PendingWrite { at: now, epoch: self.epoch, durable_at, change });
        self.pending.apply_beyond(CACHE, &mut self.medium);
        self.persist_due(now);
        Ok(())
    }

    fn count_write(&mut self, data: &[u8]) {
        self.counts.writes += 1;
        self.counts.bytes += data.len() as u64;
    }

    fn note(&mut self, note: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = &mut self.recorder {
            note(recorder);
        }
    }

    /// Begins to make durable what the behavior makes durable for a flush, and returns the time
    /// after which it is.
    fn persist_for_flush(&mut self, now: Duration) -> Duration {
        let waiting = self.pending.uncovered_bytes();
        let is_done = match self.traits.behavior {
            Behavior::Honest => true,
            Behavior::Protected | Behavior::Lying { .. } => false,
            Behavior::Defer { longest } => {
                let is_long_ago = self.flushed_at.is_none_or(|then| now - then >= longest);
                if !is_long_ago && self.flush_due.is_none() {
                    self.flush_due = self.flushed_at.map(|then| then + longest);
                }
                is_long_ago
            }
        };
        if !is_done {
            return Duration::ZERO;
        }
        // It ends after those that it overlaps: what they cover is before it, too.
        let others_end = self.pending.iter().filter_map(|waiting| waiting.durable_at).max();
        let others = others_end.map_or(Duration::ZERO, |end| end.saturating_sub(now));
        let took = self.traits.latency.of_flush(waiting).max(others);
        self.pending.cover(now + took);
        (self.flushed_at, self.flush_due) = (Some(now), None);
        self.persist_due(now);
        took
    }

    /// Makes durable what the drive brings to the medium by itself.
    fn persist_due(&mut self, now: Duration) {
        self.pending.apply_durable(now, &mut self.medium);
        match self.traits.behavior {
            Behavior::Honest => {}
            Behavior::Protected => self.pending.apply_all(&mut self.medium),
            Behavior::Lying { lag } => {
                if let Some(until) = lag.and_then(|lag| now.checked_sub(lag)) {
                    self.pending.apply_until(until, &mut self.medium);
                }
            }
            Behavior::Defer { .. } => {
                if let Some(due) = self.flush_due.filter(|due| *due <= now) {
                    // What came before it was due; later writes wait for the next.
                    self.pending.apply_until(due, &mut self.medium);
                    (self.flushed_at, self.flush_due) = (Some(due), None);
                }
            }
        }
    }

    fn may_fail(&mut self) -> Result<(), DriveError> {
        let Some(left) = &mut self.traits.writes_before_error else {
            return Ok(());
        };
        if *left > 0 {
            *left -= 1;
            return Ok(());
        }
        if self.traits.errors == 0 {
            self.traits.writes_before_error = None;
            return Ok(());
        }
        self.traits.errors -= 1;
        self.counts.errors += 1;
        Err(DriveError::Injected)
    }
}
