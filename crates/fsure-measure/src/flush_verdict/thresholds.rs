//! The numbers that the rules compare with, each with its source. They are medians
//! that others measured on real drives, not tuned on the drives of this project; if
//! a source gives a range, the end was taken that accuses fewer honest drives
//! and acquits fewer dishonest ones, and what lies between is `suspicious`.

/// Number of operations below which a median is not used. The 95 % confidence
/// interval of the median by order statistics reaches from the 10th to the 21st of
/// 30. The drive with which this project began, at 46 operations a second, would
/// never reach a hundred in a second.
pub const COUNT_MIN: u64 = 30;

/// Ratio of the 90th to the 10th percentile above which the load of other programs
/// was measured instead. On a virtual disk with four to nine busy tasks beside the
/// measurement it stayed below 30, with medians that could still be used.
pub const SPREAD_MAX: f64 = 30.0;

/// Bytes that others wrote per byte of the measurement, above which the counters
/// show more of them than of the measurement: as much as it wrote itself.
pub const FOREIGN_MAX: f64 = 1.0;

/// Flushes per operation below which none was sent for it. If flushes were sent,
/// 1 to 4 were counted (ext4, xfs, btrfs, Linux 6.18); if none was, 0.00 to 0.02,
/// which is the journal at its own times.
pub const NO_FLUSHES: f64 = 0.05;

/// Flushes per operation below which more than every second one had none of its
/// own. The kernel merges flushes that run at the same time, to 0.6 to 0.7 with
/// four threads of this program; the measured ones were made one after the other.
pub const FEW_FLUSHES: f64 = 0.5;

/// Half a revolution at 7,200 rpm, microseconds: the time that a head waits on
/// average before the sector comes by (60 s / 7,200 / 2 = 4.17 ms).
pub const HALF_TURN_US: f64 = 60e6 / 7_200.0 / 2.0;

/// Half a revolution at 15,000 rpm, the fastest that were sold, microseconds.
pub const HALF_TURN_FASTEST_US: f64 = 60e6 / 15_000.0 / 2.0;

/// The longest flush on drives whose cache is protected by capacitors, with a good
/// margin, microseconds: they were measured at 12 to 58 us (smalldatum, January
/// 2026). A shorter flush did not wait for flash: a page of TLC takes some hundred
/// microseconds to be programmed.
pub const FLASH_MIN_US: f64 = 150.0;

/// The fastest real flush of a consumer's NVMe drive, microseconds: they were
/// measured at 0.9 to 5.6 ms (Samsung 990 Pro: smalldatum, January 2026, and
/// Tanel Poder with `pg_test_fsync`).
pub const CONSUMER_MIN_US: f64 = 900.0;

/// Time of a flush above which solid state is as slow as a disk with heads,
/// microseconds: 10 ms is a 7,200 rpm disk with a short seek, and the mark of
/// etcd's own advice. Apple's drives were measured at 17 to 22 ms.
pub const SLOW_US: f64 = 10_000.0;

/// The time that a flush adds to a write, microseconds, below which it was one more
/// command and no work. An empty command takes an NVMe drive 5 to 20 us.
pub const FREE_US: f64 = 20.0;

/// The same as a share of the write, for slow ways to the drive (USB, virtual
/// machines), where one more command takes longer.
pub const FREE_SHARE: f64 = 0.2;

/// Bytes per second that no drive takes: PCIe 5.0 with four lanes, raw, is
/// 15.75 GB/s. A flush at a higher rate had nothing left to write.
pub const IMPOSSIBLE_RATE: f64 = 16e9;

/// Ratio of the time of a flush after the most bytes to that of one after the
/// fewest, above which the time counts as rising. Medians of a busy machine differ
/// by a factor of up to four without any rise, but then they do not also rise by
/// [`FLASH_MIN_US`] from the first to the last.
pub const RISING_FACTOR: f64 = 4.0;

/// Largest ratio between the times of two ways to the same promise. `O_DSYNC` took
/// 2.4 times as long as `fdatasync` on an honest 990 Pro (Tanel Poder), since it
/// forces each write through the cache (FUA) rather than flush; xfs reached 1.7
/// here.
pub const MISMATCH_FACTOR: f64 = 5.0;

/// Share of the strong flush's time below which the weak one did not reach the drive.
/// On macOS `fsync` takes 1/100 to 1/1000 of `F_FULLFSYNC`; the barrier, which
/// does reach the drive, a quarter (19 and 4.5 ms on an M1 Pro).
pub const WEAK_SHARE: f64 = 0.2;

/// Cuts that must have passed before they settle what only cuts can settle: the
/// repeats that testers of real drives use, since one cut can come at a moment
/// when nothing is in the cache.
pub const CUTS_MIN: u64 = 5;

/// Below this 99th percentile of a flush etcd calls a disk reasonably fast, in
/// microseconds: its FAQ on warnings, of the metric `wal_fsync_duration_seconds`.
pub const ETCD_P99_US: f64 = 10_000.0;

/// Transactions a second that SQLite expects of a disk of 7,200 rpm: its FAQ, question 19. It
/// is not a mark that a disk must reach. PostgreSQL publishes none either: the manual of
/// `pg_test_fsync` compares methods only.
pub const SQLITE_DISK_COMMITS: f64 = 60.0;
