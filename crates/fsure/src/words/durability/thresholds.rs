//! Every number that a rule compares with, and where it comes from. They are
//! medians that others measured on real drives, not tuned on ours; where a
//! source gives a range, the end was taken that accuses fewer honest drives
//! and acquits fewer dishonest ones, and what lies between is `suspicious`.

/// Operations below which a median says nothing here. The 95 % confidence
/// interval of the median by order statistics then reaches from the 10th to the
/// 21st of 30. A hundred would never be reached in a second by the drive that
/// all of this began with, at 46 a second.
pub const COUNT_MIN: u64 = 30;

/// 90th over 10th percentile from which on somebody else was being measured. On
/// a virtual disk with four to nine busy tasks beside us it stayed below 30,
/// with medians that could still be used.
pub const SPREAD_MAX: f64 = 30.0;

/// Bytes that others wrote per byte of ours from which on the counters say more
/// of them than of us: as much as we did.
pub const FOREIGN_MAX: f64 = 1.0;

/// Flushes per operation below which none was sent for it. Where flushes were
/// sent, 1 to 4 were counted (ext4, xfs, btrfs, Linux 6.18); where none was,
/// 0.00 to 0.02, which is the journal at its own times.
pub const NO_FLUSHES: f64 = 0.05;

/// Flushes per operation below which more than every second one had none of its
/// own. The kernel merges flushes that run at the same time, to 0.6 to 0.7 with
/// four threads of ours; these were made one after the other.
pub const FEW_FLUSHES: f64 = 0.5;

/// Half a revolution at 7,200 rpm, microseconds: what a head waits for on
/// average before the sector comes by (60 s / 7,200 / 2 = 4.17 ms).
pub const HALF_TURN_US: f64 = 60e6 / 7_200.0 / 2.0;

/// Half a revolution at 15,000 rpm, the fastest that were sold, microseconds.
pub const HALF_TURN_FASTEST_US: f64 = 60e6 / 15_000.0 / 2.0;

/// What a flush takes at most on drives whose cache is protected by capacitors,
/// and a good margin, microseconds: they were measured at 12 to 58 us
/// (smalldatum, January 2026). Below this no flash was waited for: a page of TLC
/// takes some hundred microseconds to be programmed.
pub const FLASH_MIN_US: f64 = 150.0;

/// The fastest real flush of a consumer's NVMe drive, microseconds: they were
/// measured at 0.9 to 5.6 ms (Samsung 990 Pro: smalldatum, January 2026, and
/// Tanel Poder with `pg_test_fsync`).
pub const CONSUMER_MIN_US: f64 = 900.0;

/// A flush from which on solid state is as slow as heads, microseconds: 10 ms is
/// a 7,200 rpm disk with a short seek, and the mark of etcd's own advice. Apple's
/// drives were measured at 17 to 22 ms.
pub const SLOW_US: f64 = 10_000.0;

/// A flush adds less than this to a write, microseconds: then it was one more
/// command and no work. An empty command takes an NVMe drive 5 to 20 us.
pub const FREE_US: f64 = 20.0;

/// The same as a share of the write, for slow ways to the drive (USB, virtual
/// machines), where one more command takes longer.
pub const FREE_SHARE: f64 = 0.2;

/// Bytes per second that no drive takes: PCIe 5.0 with four lanes, raw, is
/// 15.75 GB/s. Whoever flushes more per second had nothing left to write.
pub const IMPOSSIBLE_RATE: f64 = 16e9;

/// How often a flush after the most bytes must take the time of one after the
/// fewest to be called rising. Medians of a busy machine differ by up to four
/// without any rise, but then they do not also rise by [`FLASH_MIN_US`] from the
/// first to the last.
pub const RISING_FACTOR: f64 = 4.0;

/// How far two ways to the same promise may lie apart. `O_DSYNC` took 2.4 times
/// what `fdatasync` did on an honest 990 Pro (Tanel Poder), since it forces each
/// write through the cache (FUA) rather than flush; xfs reached 1.7 here.
pub const MISMATCH_FACTOR: f64 = 5.0;

/// Share of the strong flush's time below which the weak one left the drive out.
/// On macOS `fsync` takes 1/100 to 1/1000 of `F_FULLFSYNC`; the barrier, which
/// does reach the drive, a quarter (19 and 4.5 ms on an M1 Pro).
pub const WEAK_SHARE: f64 = 0.2;

/// Cuts that must have passed before they settle what only cuts can settle: the
/// repeats that testers of real drives use, since one cut may come at a moment
/// when nothing was in the cache.
pub const CUTS_MIN: u64 = 5;
