//! Identifies file systems, so that a record is never judged against another disk
//! that happens to be mounted at the same place.

use std::io;

use crate::physical_order::LocateFiles;
use crate::repair_write::Draft;
use crate::root_dir::Root;

/// One file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its type as the system names it, in small letters: `ext4`, `apfs`,
    /// `ntfs`, `fuse.sshfs`; on Linux its magic number in hexadecimal where the
    /// mount table cannot be read.
    pub kind: String,
    /// Its UUID, 32 hexadecimal digits or what the disk's label says for
    /// file systems with shorter ones; on Windows the serial number.
    pub uuid: Option<String>,
    /// Granularity of modification times, nanoseconds: 1 until it is measured by
    /// [`measure_granularity_ns`].
    pub mtime_granularity_ns: i64,
    /// True if an inode number means the same file after the next mount.
    pub has_stable_inodes: bool,
}

impl Volume {
    /// A file system of a kind, as far as its kind tells what it can do.
    pub(crate) fn new(kind: String, uuid: Option<String>) -> Self {
        Self { uuid, mtime_granularity_ns: 1, has_stable_inodes: has_stable_inodes(&kind), kind }
    }

    /// A file system that does not tell what it is.
    pub fn unknown() -> Self {
        Self {
            kind: "unknown".to_owned(),
            uuid: None,
            mtime_granularity_ns: 1,
            has_stable_inodes: false,
        }
    }
}

/// The file system of a folder below a root.
pub fn of(root: &Root, path: &[u8]) -> io::Result<Volume> {
    crate::host::filesystem_id::of(root, path)
}

/// The paths below a root at which something is mounted, as far as this process
/// sees: in no order, and none where the system does not say.
pub fn mount_points(root: &Root) -> Vec<Vec<u8>> {
    crate::host::filesystem_id::mount_points(root).unwrap_or_default()
}

/// Units that file systems keep dates in, the coarsest first, nanoseconds: some
/// FUSE file systems, FAT, ext with 128-byte inodes and HFS+, exFAT, UDF, NTFS
/// and SMB.
const DATE_UNITS_NS: [i64; 6] =
    [60_000_000_000, 2_000_000_000, 1_000_000_000, 10_000_000, 1_000, 100];

/// The coarsest unit that a date is a multiple of, nanoseconds. A date that the
/// kernel set shows by this how finely it can have been kept: one file system
/// may keep some of its dates by the second (old inodes of ext4) and others by
/// the nanosecond.
pub fn date_unit_ns(time_ns: i64) -> i64 {
    let unit = DATE_UNITS_NS.into_iter().find(|unit| time_ns.rem_euclid(*unit) == 0);
    unit.unwrap_or(1)
}

/// Measures how finely the file system of a folder keeps modification times,
/// nanoseconds: with a file that is made there for a moment, if `may_write`,
/// otherwise from the dates that are there. 1 where neither tells.
pub fn measure_granularity_ns(root: &Root, folder: &[u8], may_write: bool) -> i64 {
    let probed = if may_write { probe_granularity_ns(root, folder).ok() } else { None };
    probed.unwrap_or_else(|| observe_granularity_ns(root, folder).unwrap_or(1))
}

/// Gives a file a date that no unit but the nanosecond divides, and asks what is
/// left of it.
fn probe_granularity_ns(root: &Root, folder: &[u8]) -> io::Result<i64> {
    // In none of the units above a multiple, and a minute begins 19 s before.
    const DATE_NS: i64 = 1_600_000_079_987_654_321;
    let name = format!("granularity-probe-{}", std::process::id());
    let draft = Draft::create(root, &[folder, b"/", name.as_bytes()].concat())?;
    draft.writing().set_date(DATE_NS)?;
    let kept = draft.writing().stat()?.mtime_ns;
    let unit = DATE_UNITS_NS.into_iter().find(|unit| DATE_NS.div_euclid(*unit) * unit == kept);
    Ok(unit.unwrap_or(1))
}

/// Takes the finest unit of dates that the system itself has set: a change time
/// that is equal to the modification time. `None` where there are too few.
fn observe_granularity_ns(root: &Root, folder: &[u8]) -> Option<i64> {
    /// Fewer dates than this may all be even seconds by chance.
    const DATES_MIN: usize = 8;
    let listing = root.list(folder, LocateFiles::No, &|| ()).ok()?;
    let stats = listing.entries.iter().filter_map(|(_, stat)| stat.as_ref().ok());
    let set_by_system = stats.filter(|stat| stat.mtime_ns == stat.ctime_ns);
    let units: Vec<_> = set_by_system.map(|stat| date_unit_ns(stat.mtime_ns)).collect();
    if units.len() < DATES_MIN { None } else { units.into_iter().min() }
}

/// FAT and exFAT have no inodes: systems number them anew at every mount, or
/// by where the entry lies. FUSE file systems may do so, too, but the usual ones
/// keep theirs.
fn has_stable_inodes(kind: &str) -> bool {
    !matches!(kind, "vfat" | "msdos" | "umsdos" | "fat" | "fat32" | "exfat" | "9p")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_same_answer_twice() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert_eq!(of(&root, b"").unwrap(), of(&root, b"sub").unwrap());
    }

    #[test]
    fn a_date_shows_the_unit_it_is_kept_in() {
        const SECOND_NS: i64 = 1_000_000_000;
        for (time_ns, unit_ns) in [
            (1_700_000_001_123_456_789, 1),
            (1_700_000_001_123_456_700, 100),
            (1_700_000_001_123_456_000, 1_000),
            (1_700_000_001_120_000_000, 10_000_000),
            (1_700_000_001 * SECOND_NS, SECOND_NS),
            (1_700_000_002 * SECOND_NS, 2 * SECOND_NS),
            (1_700_000_040 * SECOND_NS, 60 * SECOND_NS),
            (-SECOND_NS, SECOND_NS),
        ] {
            assert_eq!(date_unit_ns(time_ns), unit_ns, "{time_ns}");
        }
    }

    #[test]
    fn granularity_is_measured_and_nothing_stays() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("own")).unwrap();
        let root = Root::open(tree.path()).unwrap();
        let probed = measure_granularity_ns(&root, b"own", true);
        assert!(probed <= 2_000_000_000, "{probed}");
        assert_eq!(std::fs::read_dir(tree.path().join("own")).unwrap().count(), 0);
        for name in 0..20 {
            std::fs::write(tree.path().join(name.to_string()), "x").unwrap();
        }
        let observed = measure_granularity_ns(&root, b"", false);
        assert!(observed <= probed.max(2_000_000_000), "{observed} for {probed}");
    }

    #[test]
    fn a_name_that_is_none_is_no_file_system() {
        let root = Root::open(Path::new(".")).unwrap();
        assert!(of(&root, b"no such folder").is_err());
    }
}
