//! Figures that others have measured on known drives, to hold a drive beside. Each has its
//! source; the conditions were others, so that no ratio is made of them.

/// A durable write on a known drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// The drive, and the way in which the write was made durable.
    pub what: &'static str,
    /// Durable writes a second, one after the other.
    pub per_second: f64,
    /// The source: a person, a place, a date.
    pub source: &'static str,
}

impl Reference {
    /// Time of one of them, in microseconds.
    pub fn microseconds(&self) -> f64 {
        1e6 / self.per_second
    }
}

const THREAD: &str = "Hector Martin, thread on Apple's NVMe drives, February 2022";

/// A write that returns before the drive has the data: no durable write, and therefore not one
/// of [`REFERENCES`].
pub const UNFLUSHED_REFERENCE: Reference =
    Reference { what: "Apple SSD, macOS, fsync: no flush", per_second: 60_000.0, source: THREAD };

/// The drives with which this project began, a consumer's NVMe drive, and drives with power-loss
/// protection, whose quick flushes are true. The slowest first.
pub const REFERENCES: [Reference; 6] = [
    Reference { what: "Apple SSD, Linux, fsync", per_second: 46.0, source: THREAD },
    Reference { what: "Apple SSD, macOS, FAT32, F_FULLFSYNC", per_second: 58.0, source: THREAD },
    Reference { what: "USB 3 flash drive, macOS, FAT32", per_second: 223.0, source: THREAD },
    Reference {
        what: "Samsung 990 Pro, xfs, 8 KiB, fdatasync",
        per_second: 608.573,
        source: "Tanel Poder, pg_test_fsync, May 2025",
    },
    Reference {
        what: "drives with capacitors, slowest",
        per_second: 1e6 / 58.0,
        source: SMALLDATUM,
    },
    Reference {
        what: "drives with capacitors, quickest",
        per_second: 1e6 / 12.0,
        source: SMALLDATUM,
    },
];

const SMALLDATUM: &str = "smalldatum, January 2026";

/// A rate that the founders have measured, beside the rung that does the same here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RungReference {
    /// Name of the rung.
    pub rung: &'static str,
    /// The place that `pv` wrote to.
    pub what: &'static str,
    /// The rate, in MiB/s.
    pub mib_per_s: f64,
    /// The source.
    pub source: &'static str,
}

impl RungReference {
    /// Returns how many times as fast as the founders' SSD it is, for which no flush was asked.
    pub fn times_disk(&self) -> f64 {
        self.mib_per_s / SSD.1
    }
}

const GIB_PER_S: f64 = 1024.0;
const PV: &str = "the founders' article on RAM disks: 'pv' writes zeros on a Mac";

/// Places that the founders wrote to, with the rates in MiB/s.
const VOID: (&str, f64) = ("/dev/null", 13.5 * GIB_PER_S);
const RAM_DISK: (&str, f64) = ("RAM disk", 1.38 * GIB_PER_S);
const BIND: (&str, f64) = ("RAM disk over a folder", 1.41 * GIB_PER_S);
const SSD: (&str, f64) = ("SSD, not flushed", 305.0);
const BINDFS: (&str, f64) = ("RAM disk by bindfs", 145.0);

/// Those of the ladder, and those of the founders' own line.
const RUNG_REFERENCES: [RungReference; 10] = [
    by_pv("void", VOID),
    by_pv("ram disk first write", RAM_DISK),
    by_pv("bind", BIND),
    by_pv("disk write durable", SSD),
    by_pv("fuse", BINDFS),
    by_pv("pv void", VOID),
    by_pv("pv ram disk", RAM_DISK),
    by_pv("pv bind", BIND),
    by_pv("pv", SSD),
    by_pv("pv bindfs", BINDFS),
];

const fn by_pv(rung: &'static str, (what, mib_per_s): (&'static str, f64)) -> RungReference {
    RungReference { rung, what, mib_per_s, source: PV }
}

/// The rates of the founders' ladder.
pub fn rung_references() -> &'static [RungReference] {
    &RUNG_REFERENCES
}
