//! Judges if a flush can be trusted: the facts about an acknowledged write that can
//! be known from inside a machine, and a rule for each thing that they can mean.
//! Only a power cut proves anything; these rules decide what is consistent with the
//! measurements and what is not.
//!
//! A fact that is not known never speaks for a drive, and no sentence says
//! "safe" before a cut has passed.

mod backup_power;
mod free_flush;
mod rules;
#[cfg(test)]
mod table;
pub mod thresholds;

pub use rules::judge;

use fsure_core::ExitCode;

/// The kind of storage that a path is on in the end.
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
    /// Behind a network, or behind another program.
    Remote,
    /// Memory: tmpfs, zram, RAM disks.
    Memory,
    /// Not known.
    Unknown,
}

/// The kind of a device's write cache, as the kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// `write back`: acknowledged writes may be in a volatile cache, and
    /// flushes are sent.
    Back,
    /// `write through`: acknowledged writes are said to be on the medium, and
    /// no flushes are sent.
    Through,
}

/// The facts found out about a path. A fact that could not be found out is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlushFacts {
    /// The storage in the end.
    pub medium: Medium,
    /// The file system's type.
    pub file_system: String,
    /// Kind of the write cache, as the kernel sees it.
    pub write_cache: Option<WriteCache>,
    /// True if the kernel took the cache for another kind after the measurement than
    /// before it.
    pub write_cache_changed: bool,
    /// The setting by which a loop device keeps flushes from its file, if one does.
    pub held_by_loop: Option<String>,
    /// True if the drive itself reports that its volatile cache is on (NVMe
    /// feature 6, ATA identify word 85). Only root can query it.
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
    /// Bytes that other programs wrote to the device per byte of the measurement
    /// of F: those beyond what the file system itself would write.
    pub foreign_ratio: Option<f64>,
    /// Flush time by the bytes written before it: bytes, median microseconds.
    pub slope: Vec<(u64, f64)>,
    /// Median of a write through a descriptor opened with `O_DSYNC`.
    pub dsync_us: Option<f64>,
    /// Median of the system's weaker flush, if it has one: `fsync` on macOS,
    /// the flush without a device flush on Windows.
    pub weak_us: Option<f64>,
    /// Batteries and UPSs of the machine that the system knows of.
    pub backup_power: Option<String>,
    /// Results of real or simulated power cuts of this device.
    pub cuts: Option<PowerCutHistory>,
}

/// The results of power cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCutHistory {
    /// Cuts made.
    pub made: u64,
    /// Writes acknowledged before them, in all.
    pub acknowledged: u64,
    /// Acknowledged writes that were gone.
    pub lost: u64,
}

/// A judgement on a flush. `docs/flush.md` states when each applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlushFindingId {
    /// Power cuts lost acknowledged writes.
    CutFailed,
    /// Power cuts lost nothing.
    CutPassed,
    /// No judgement is possible, for a stated reason.
    NotMeasured,
    /// The drive was sent no flush although its cache is volatile.
    NoFlushSent,
    /// The kernel takes the cache for write through and sends no flush.
    ClaimsWt,
    /// Faster than a disk with heads can be.
    Impossible,
    /// The flush is quicker than a drive can be whose cache is not protected.
    FreeFlush,
    /// Consistent with a real flush.
    Plausible,
    /// As slow as a disk with heads, on storage without heads.
    SlowFlush,
    /// Two ways to the same promise cost very different times.
    Mismatch,
    /// The system's weaker flush does not reach the drive.
    WeakFsync,
}

impl FlushFindingId {
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

/// The meaning of a judgement for a user with the only copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grade {
    /// Nothing speaks against it.
    Ok,
    /// It can lose acknowledged writes, which cannot be determined from inside.
    Suspicious,
    /// It will lose acknowledged writes when the power fails, or has lost some.
    Bad,
    /// No judgement is possible.
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

    /// The grade of that name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ok, Self::Suspicious, Self::Bad, Self::NotMeasured]
            .into_iter()
            .find(|grade| grade.name() == name)
    }
}

/// A judgement on a flush, with its grade and its sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlushFinding {
    /// Identifier of the judgement.
    pub id: FlushFindingId,
    /// Its meaning for the user.
    pub grade: Grade,
    /// The observation, its meaning, and advice on what to do now.
    pub words: String,
}

/// The exit code of a run with these judgements: 3 if one is bad, else 5 if
/// something could not be measured, else 1 if one is suspicious. No judgements at
/// all count as nothing measured.
pub fn exit_code(judgements: &[FlushFinding]) -> ExitCode {
    let code = |judgement: &FlushFinding| match judgement.grade {
        Grade::Ok => ExitCode::Clean,
        Grade::Suspicious => ExitCode::Differences,
        Grade::Bad => ExitCode::Damage,
        Grade::NotMeasured => ExitCode::Incomplete,
    };
    judgements.iter().map(code).reduce(ExitCode::worse).unwrap_or(ExitCode::Incomplete)
}
