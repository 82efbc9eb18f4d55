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

/// The drives with which this project began, and a consumer's NVMe drive.
pub const REFERENCES: [Reference; 4] = [
    Reference { what: "Apple SSD, Linux, fsync", per_second: 46.0, source: THREAD },
    Reference { what: "Apple SSD, macOS, FAT32, F_FULLFSYNC", per_second: 58.0, source: THREAD },
    Reference { what: "USB 3 flash drive, macOS, FAT32", per_second: 223.0, source: THREAD },
    Reference {
        what: "Samsung 990 Pro, xfs, 8 KiB, fdatasync",
        per_second: 608.573,
        source: "Tanel Poder, pg_test_fsync, May 2025",
    },
];

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

const GIB_PER_S: f64 = 1024.0;
const PV: &str = "the founders' article on RAM disks: 'pv' writes zeros on a Mac";

const RUNG_REFERENCES: [RungReference; 5] = [
    RungReference { rung: "void", what: "/dev/null", mib_per_s: 13.5 * GIB_PER_S, source: PV },
    RungReference {
        rung: "ram disk first write",
        what: "RAM disk",
        mib_per_s: 1.38 * GIB_PER_S,
        source: PV,
    },
    RungReference {
        rung: "bind",
        what: "RAM disk over a folder",
        mib_per_s: 1.41 * GIB_PER_S,
        source: PV,
    },
    RungReference { rung: "disk write durable", what: "SSD", mib_per_s: 305.0, source: PV },
    RungReference { rung: "fuse", what: "RAM disk by bindfs", mib_per_s: 145.0, source: PV },
];

/// The rates of the founders' ladder.
pub fn rung_references() -> &'static [RungReference] {
    &RUNG_REFERENCES
}
