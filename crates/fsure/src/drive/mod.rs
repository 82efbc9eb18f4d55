//! A simulated drive: what a power cut loses can be tried here as often as one
//! likes, and seen again by its seed.
//!
//! A drive keeps two images. One is what its host sees: every acknowledged
//! write. The other is what is on the medium. Between them lie the writes that
//! are acknowledged and not durable, in their order; the drive's
//! [`Personality`] says when they become so, and a [`Cut`] which of the rest
//! survive. Time is handed in, so that tests need none.
//!
//! [`files`] is the same for files and names instead of blocks.

mod cut;
pub mod files;
mod history;
mod image;
mod latency;
mod pending;
mod personality;
mod random;

use std::io;
use std::path::Path;
use std::time::Duration;

pub use cut::{Cut, SECTOR, UnknownCut};
use history::Recorder;
pub use history::{Boundary, Event, History};
pub use image::{Image, PAGE};
pub use latency::Latency;
pub use pending::{Change, What};
use pending::{Pending, Waiting};
pub use personality::{Personality, UnknownDrive};
pub use random::Random;

/// Bytes of its cache: beyond them a drive makes the oldest durable by itself,
/// whatever it promises. A host that never flushes would have all memory else.
pub const CACHE: usize = 128 << 20;

/// How a drive behaves.
#[derive(Clone, Debug)]
pub struct Traits {
    /// When acknowledged writes become durable.
    pub personality: Personality,
    /// How long it takes over what it does.
    pub latency: Latency,
    /// Writes and trims that succeed before one fails; `None`: none fails.
    pub writes_before_error: Option<u64>,
    /// Writes that fail from then on before all is well again.
    pub errors: u64,
}

impl Traits {
    /// A drive of this personality that takes no time and never fails.
    pub fn new(personality: Personality) -> Self {
        Self { personality, latency: Latency::NONE, writes_before_error: None, errors: 0 }
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The drive was told to fail here.
    #[error("the simulated drive fails this request")]
    Told,
    /// Behind the end.
    #[error("behind the end of the simulated drive")]
    OutOfRange,
}

/// What a drive was asked for so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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
    /// What the host reads.
    seen: Image,
    /// What a cut leaves, whatever else it loses.
    medium: Image,
    pending: Pending,
    /// Grows with every flush: writes of one epoch have no order among them.
    epoch: u64,
    /// When what was flushed last began to wait, for a drive that defers.
    flush_due: Option<Duration>,
    flushed_at: Option<Duration>,
    recorder: Option<Recorder>,
    counts: Counts,
}

impl Drive {
    /// A drive that holds this.
    pub fn new(traits: Traits, content: Image) -> Self {
        Self {
            traits,
            seen: content.clone(),
            medium: content,
            pending: Pending::default(),
            epoch: 0,
            flush_due: None,
            flushed_at: None,
            recorder: None,
            counts: Counts::default(),
        }
    }

    /// Remembers everything from now on, in a file without a name in this folder,
    /// so that each flush boundary can be looked at afterwards.
    pub fn remember(&mut self, folder: &Path) -> io::Result<()> {
        self.recorder = Some(Recorder::new(self.seen.clone(), folder)?);
        Ok(())
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.seen.size()
    }

    /// When its writes become durable.
    pub fn personality(&self) -> Personality {
        self.traits.personality
    }

    /// What it was asked for so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Everything that happened since it was to remember that; fails where it has
    /// not, or could not.
    pub fn history(&mut self) -> io::Result<History> {
        let recorder = self.recorder.as_mut();
        recorder.ok_or_else(|| io::Error::other("this drive does not remember"))?.history()
    }

    /// Whether it still remembers all, if it was to.
    pub fn remembers_all(&self) -> io::Result<()> {
        self.recorder.as_ref().map_or(Ok(()), Recorder::is_whole)
    }

    /// Reads as its host does.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DriveError> {
        self.seen.read(offset, target).ok_or(DriveError::OutOfRange)
    }

    /// Takes a write; the answer is how long it takes until it is acknowledged.
    pub fn write(
        &mut self,
        now: Duration,
        offset: u64,
        data: &[u8],
    ) -> Result<Duration, DriveError> {
        self.take(now, Change { offset, what: What::Data(data.into()) }, false)?;
        self.count_write(data);
        Ok(self.traits.latency.write)
    }

    /// Takes a write that is to be on the medium when it is acknowledged (`FUA`),
    /// whatever was before it. A drive that does not do that for a flush does not
    /// for one write either.
    pub fn write_fua(
        &mut self,
        now: Duration,
        offset: u64,
        data: &[u8],
    ) -> Result<Duration, DriveError> {
        let is_honest = self.traits.personality == Personality::Honest;
        self.take(now, Change { offset, what: What::Data(data.into()) }, is_honest)?;
        self.count_write(data);
        let write = self.traits.latency.write;
        Ok(match self.traits.personality {
            Personality::Honest => write + self.traits.latency.of_flush(data.len() as u64),
            // As a driver does it for a drive that has no such write.
            Personality::Defer { .. } => write + self.settle_by_flush(now),
            Personality::Protected | Personality::Lying { .. } => write,
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
        self.take(now, Change { offset, what: What::Zeroes(length) }, false)?;
        self.counts.trims += 1;
        Ok(self.traits.latency.write)
    }

    /// Takes a flush; the answer is how long it takes until it is acknowledged.
    /// What it makes durable, the personality decides.
    pub fn flush(&mut self, now: Duration) -> Result<Duration, DriveError> {
        self.settle(now);
        self.epoch += 1;
        self.note(Recorder::flushed);
        self.counts.flushes += 1;
        Ok(self.settle_by_flush(now))
    }

    /// Notes in the history that everything up to a number was said to be safe.
    pub fn mark(&mut self, number: u64) {
        self.note(|recorder| recorder.marked(number));
    }

    /// What is on the medium when the power is cut now.
    pub fn cut(&mut self, now: Duration, cut: Cut, random: &mut Random) -> Image {
        self.settle(now);
        let mut image = self.medium.clone();
        cut.leave(&self.pending, &mut image, random);
        image
    }

    /// Bytes acknowledged and not durable.
    pub fn volatile_bytes(&self) -> u64 {
        self.pending.volatile_bytes()
    }

    /// Is of another kind from now on. What a former kind has made durable stays.
    pub fn change_personality(&mut self, now: Duration, personality: Personality) {
        self.settle(now);
        self.traits.personality = personality;
        (self.flushed_at, self.flush_due) = (None, None);
        self.settle(now);
    }

    /// Fails so many changes after so many more that succeed, and none besides.
    pub fn fail_after(&mut self, writes: u64, errors: u64) {
        (self.traits.writes_before_error, self.traits.errors) = (Some(writes), errors);
    }

    fn take(&mut self, now: Duration, change: Change, is_durable: bool) -> Result<(), DriveError> {
        self.settle(now);
        self.may_fail()?;
        change.make(&mut self.seen).ok_or(DriveError::OutOfRange)?;
        self.note(|recorder| recorder.changed(&change));
        self.pending.push(Waiting { at: now, epoch: self.epoch, is_durable, change });
        self.pending.settle_beyond(CACHE, &mut self.medium);
        self.settle(now);
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

    /// Does for a flush what the personality does for one, and says how long that
    /// takes.
    fn settle_by_flush(&mut self, now: Duration) -> Duration {
        let waiting = self.pending.volatile_bytes();
        let is_done = match self.traits.personality {
            Personality::Honest => true,
            Personality::Protected | Personality::Lying { .. } => false,
            Personality::Defer { longest } => {
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
        self.pending.settle_all(&mut self.medium);
        (self.flushed_at, self.flush_due) = (Some(now), None);
        self.traits.latency.of_flush(waiting)
    }

    /// Lets the drive do what it does by itself.
    fn settle(&mut self, now: Duration) {
        match self.traits.personality {
            Personality::Honest => self.pending.settle_durable(&mut self.medium),
            Personality::Protected => self.pending.settle_all(&mut self.medium),
            Personality::Lying { lag } => {
                if let Some(until) = lag.and_then(|lag| now.checked_sub(lag)) {
                    self.pending.settle_until(until, &mut self.medium);
                }
            }
            Personality::Defer { .. } => {
                if let Some(due) = self.flush_due.filter(|due| *due <= now) {
                    // What came before it was due; later writes wait for the next.
                    self.pending.settle_until(due, &mut self.medium);
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
        Err(DriveError::Told)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
