//! Whether a flush is to be believed: what can be known from inside a machine
//! about an acknowledged write, and a rule for each thing that it can mean.
//! Only a cut proves anything; these rules say what is consistent with what was
//! measured and what is not.
//!
//! A fact that is not known never speaks for a drive, and no sentence says
//! "safe" before a cut has passed.

mod freedom;
mod rules;
#[cfg(test)]
mod table;
pub mod thresholds;

pub use rules::judge;

use super::ExitCode;

/// What kind of storage a path is on in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Solid state, by NVMe.
    Nvme,
    /// Solid state, by SATA, SAS or USB, or an SD card.
    Ssd,
    /// With heads.
    Hdd,
    /// A disk that a hypervisor makes: virtio, Xen.
    Virtual,
    /// A file behind a loop device, whose own storage decides.
    Loop,
    /// Behind a network, or a program of somebody's.
    Remote,
    /// Memory: tmpfs, zram, RAM disks.
    Memory,
    /// Not known.
    Unknown,
}

/// What the kernel takes a device's write cache for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// `write back`: acknowledged writes may be in a volatile cache, and
    /// flushes are sent.
    Back,
    /// `write through`: what is acknowledged is said to be on the medium, and
    /// no flushes are sent.
    Through,
}

/// What was found out about a path. What could not be is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The storage in the end.
    pub medium: Medium,
    /// The file system's type.
    pub file_system: String,
    /// What the kernel takes the cache for.
    pub write_cache: Option<WriteCache>,
    /// True where the kernel took the cache for another kind after the measurement than
    /// before it.
    pub write_cache_changed: bool,
    /// The setting by which a loop device keeps flushes from its file, where one does.
    pub held_by_loop: Option<String>,
    /// Whether the drive itself says that its volatile cache is on (NVMe
    /// feature 6, ATA identify word 85): root may ask.
    pub drive_cache_on: Option<bool>,
    /// Operations behind `flush_us`.
    pub count: u64,
    /// 10th and 90th percentile of a small write and its flush, microseconds.
    pub spread_us: (f64, f64),
    /// F: median of a small write and the strongest flush that the system has
    /// (`fdatasync`; `F_FULLFSYNC` on macOS; `FlushFileBuffers` on Windows), in
    /// microseconds.
    pub flush_us: Option<f64>,
    /// W: median of the same write past the page cache without a flush.
    pub direct_us: Option<f64>,
    /// Flushes that the device was sent per operation of F, by its counter.
    pub flushes_per_op: Option<f64>,
    /// Bytes that the device was written per byte of ours while F was measured
    /// beyond what the file system itself would write: others at work.
    pub foreign_ratio: Option<f64>,
    /// Flush time over bytes written before it: bytes, median microseconds.
    pub slope: Vec<(u64, f64)>,
    /// Median of a write through a descriptor opened with `O_DSYNC`.
    pub dsync_us: Option<f64>,
    /// Median of the system's weaker flush, where it has one: `fsync` on macOS,
    /// the flush without a device flush on Windows.
    pub weak_us: Option<f64>,
    /// What real or simulated power cuts of this device have shown.
    pub cuts: Option<Cuts>,
}

/// What power cuts have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// Cuts made.
    pub made: u64,
    /// Writes acknowledged before them, in all.
    pub acknowledged: u64,
    /// Of these, writes that were gone.
    pub lost: u64,
}

/// What can be said of a flush. `docs/flush.md` says when each applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// Power cuts lost acknowledged writes.
    CutFailed,
    /// Power cuts lost nothing.
    CutPassed,
    /// Nothing can be said, and why.
    NotMeasured,
    /// The drive was sent no flush although its cache is volatile.
    NoFlushSent,
    /// The kernel takes the cache for write through and sends no flush.
    ClaimsWt,
    /// Faster than heads can be.
    Impossible,
    /// The flush is quicker than a drive can be whose cache is not protected.
    FreeFlush,
    /// Consistent with a real flush.
    Plausible,
    /// As slow as heads, on storage without.
    SlowFlush,
    /// Two ways to the same promise cost very different times.
    Mismatch,
    /// The system's weaker flush leaves the drive out.
    WeakFsync,
}

impl Id {
    /// The name in results: `FREE_FLUSH`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CutFailed => "CUT_FAILED",
            Self::CutPassed => "CUT_PASSED",
            Self::NotMeasured => "NOT_MEASURED",
            Self::NoFlushSent => "NO_FLUSH_SENT",
            Self::ClaimsWt => "CLAIMS_WT",
            Self::Impossible => "IMPOSSIBLE",
            Self::FreeFlush => "FREE_FLUSH",
            Self::Plausible => "PLAUSIBLE",
            Self::SlowFlush => "SLOW_FLUSH",
            Self::Mismatch => "MISMATCH",
            Self::WeakFsync => "WEAK_FSYNC",
        }
    }
}

/// What a judgement means for somebody with the only copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grade {
    /// Nothing speaks against it.
    Ok,
    /// It may lose acknowledged writes, and nobody can tell from inside.
    Suspicious,
    /// It will lose acknowledged writes when the power goes, or has.
    Bad,
    /// Nothing can be said.
    NotMeasured,
}

impl Grade {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Suspicious => "suspicious",
            Self::Bad => "bad",
            Self::NotMeasured => "not measured",
        }
    }
}

/// One thing that can be said of a flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Which.
    pub id: Id,
    /// What it means.
    pub grade: Grade,
    /// What was seen, what it means, and what to do now.
    pub words: String,
}

/// The exit code of a run with these judgements: 3 where one is bad, else 5
/// where something could not be measured, else 1 where one is suspicious. None
/// at all is nothing measured.
pub fn exit_code(judgements: &[Judgement]) -> ExitCode {
    let code = |judgement: &Judgement| match judgement.grade {
        Grade::Ok => ExitCode::Clean,
        Grade::Suspicious => ExitCode::Differences,
        Grade::Bad => ExitCode::Damage,
        Grade::NotMeasured => ExitCode::Incomplete,
    };
    judgements.iter().map(code).reduce(ExitCode::worse).unwrap_or(ExitCode::Incomplete)
}
