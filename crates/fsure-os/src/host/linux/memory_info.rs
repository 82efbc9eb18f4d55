//! Memory, from `/proc` and the control groups. See [`crate::memory_info`].

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::mountinfo;
use crate::memory_info::{CacheFill, LimitingCgroup, Memory, Pressure, Swap, SwapKind};

/// Version 1 writes a number of pages near 2⁶³ where there is no limit.
const NO_LIMIT: u64 = 1 << 62;

/// See [`crate::memory_info::memory`].
pub(crate) fn memory() -> Memory {
    let table = read("/proc/meminfo");
    Memory {
        total: kib(&table, "MemTotal:"),
        available: kib(&table, "MemAvailable:"),
        shared: kib(&table, "Shmem:"),
        swap: swaps(&read("/proc/swaps")),
    }
}

/// See [`crate::memory_info::CacheGauge::read`].
pub(crate) fn cache_fill(group: Option<&LimitingCgroup>) -> Option<CacheFill> {
    match group {
        Some(group) => of(&group.folder)
            .and_then(|now| group_fill(&now, &read(group.folder.join("memory.stat")))),
        None => machine_fill(&read("/proc/meminfo")),
    }
}

fn machine_fill(table: &str) -> Option<CacheFill> {
    let shared = kib(table, "Shmem:").unwrap_or(0);
    Some(CacheFill {
        cached: kib(table, "Cached:")?.saturating_sub(shared),
        free: kib(table, "MemFree:")?,
        total: kib(table, "MemTotal:")?,
    })
}

/// Version 1 has its own pages in `cache` and those of all below in `total_cache`; version 2
/// has all of them in `file`. Each counts shared memory, too.
fn group_fill(group: &LimitingCgroup, stat: &str) -> Option<CacheFill> {
    let of = |names: [&str; 2]| names.into_iter().find_map(|name| value(stat, name));
    let shared = of(["total_shmem ", "shmem "]).unwrap_or(0);
    Some(CacheFill {
        cached: of(["total_cache ", "file "])?.saturating_sub(shared),
        free: group.available()?,
        total: group.limit?,
    })
}

/// See [`crate::page_cache::purge`].
pub(crate) fn purge_page_cache() -> std::io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "1")
}

fn read(path: impl AsRef<Path>) -> String {
    // One name in a table that is not text must not hide the table.
    std::fs::read(path)
        .map(|table| String::from_utf8_lossy(&table).into_owned())
        .unwrap_or_default()
}

/// A line of `/proc/meminfo`, which counts in KiB.
pub(super) fn kib(table: &str, key: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the number behind a name at the beginning of a line, such as `active_file 4096`.
pub(super) fn value(table: &str, name: &str) -> Option<u64> {
    table.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Returns the number that is all of a file.
pub(super) fn number(file: impl AsRef<Path>) -> Option<u64> {
    read(file).trim().parse().ok()
}

/// `/proc/swaps`: a heading, then name, type, size and use in KiB, priority.
fn swaps(table: &str) -> Vec<Swap> {
    let mut all = Vec::new();
    for line in table.lines().skip(1) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
        let mut bytes = || words.next()?.parse::<u64>().ok()?.checked_mul(1024);
        let (Some(total), Some(used)) = (bytes(), bytes()) else { continue };
        let name = PathBuf::from(name.replace("\\040", " "));
        let kind = match kind {
            "file" => SwapKind::File,
            _ if name.starts_with("/dev/") && is_zram(&name) => SwapKind::Zram,
            _ => SwapKind::Disk,
        };
        let is_encrypted = if kind == SwapKind::Disk { is_encrypted(&name) } else { None };
        all.push(Swap { name, kind, total, used, is_encrypted });
    }
    all
}

fn is_zram(device: &Path) -> bool {
    device.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("zram"))
}

/// The device mapper says which of its devices are dm-crypt's.
fn is_encrypted(device: &Path) -> Option<bool> {
    let device = std::fs::canonicalize(device).ok()?;
    let uuid = Path::new("/sys/class/block").join(device.file_name()?).join("dm/uuid");
    read(uuid).starts_with("CRYPT-").then_some(true)
}

/// See [`crate::memory_info::pressure`].
pub(crate) fn pressure() -> Option<Pressure> {
    shares(&read("/proc/pressure/memory"))
}

/// `some avg10=0.00 avg60=…`, and the same of `full`.
fn shares(text: &str) -> Option<Pressure> {
    let share = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.trim().strip_prefix("avg10=")?.split(' ').next()?.parse().ok()
    };
    Some(Pressure { some: share("some")?, full: share("full")? })
}

/// See [`crate::memory_info::group`].
pub(crate) fn group(process: Option<u32>) -> Option<LimitingCgroup> {
    let process = process.map_or_else(|| "self".to_owned(), |number| number.to_string());
    let groups = read(format!("/proc/{process}/cgroup"));
    let (own, top) = place(&groups, &mountinfo::read(None).ok()?)?;
    // The own group, and all above it, each of which counts what is below.
    own.ancestors()
        .take_while(|folder| folder.starts_with(&top))
        .filter_map(of)
        .min_by_key(|group| group.available().unwrap_or(u64::MAX))
}

/// A group's numbers; a group at the top has none in version 2.
fn of(folder: &Path) -> Option<LimitingCgroup> {
    let number = |name: &str| number(folder.join(name));
    let current = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    // Above `memory.high` processes are slowed down until they stand still.
    let limits = ["memory.max", "memory.high", "memory.limit_in_bytes"];
    let limit = limits.into_iter().filter_map(number).min().filter(|limit| *limit < NO_LIMIT);
    Some(LimitingCgroup { folder: folder.to_owned(), limit, current })
}

/// The folder of the group that counts the memory, and where its hierarchy is
/// mounted: version 1 where that has the memory, else version 2. A controller is
/// in one of them only.
fn place(groups: &str, mounts: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let has_memory = |names: &str| names.split(',').any(|name| name == "memory");
    let path_of = |is_it: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            is_it(controllers).then_some(path)
        })
    };
    let (path, kind) = match path_of(&has_memory) {
        Some(path) => (path, "cgroup"),
        None => (path_of(&str::is_empty)?, "cgroup2"),
    };
    let mount = mountinfo::lines(mounts).find(|mount| {
        mount.kind == kind && (kind == "cgroup2" || has_memory(&mount.own_options))
    })?;
    let root = String::from_utf8_lossy(&mount.root);
    let top = PathBuf::from(OsString::from_vec(mount.point));
    // In a container the path may be told from above what is mounted.
    let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
    Some((top.join(below.trim_start_matches('/')), top))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let table = "MemTotal:       24684068 kB\nMemAvailable:   100 kB\nShmem:  7 kB\n";
        assert_eq!(kib(table, "MemAvailable:"), Some(102_400));
        assert_eq!(kib(table, "SwapFree:"), None);
        let text = "some avg10=1.50 avg60=0.20 avg300=0.00 total=9\nfull avg10=0.25 avg60=0\n";
        assert_eq!(shares(text), Some(Pressure { some: 1.5, full: 0.25 }));
        assert_eq!(shares(""), None);
    }

    #[test]
    fn a_cache_is_read_in_either_version() {
        let table = "MemTotal: 100 kB\nMemFree: 20 kB\nCached: 50 kB\nShmem: 10 kB\n";
        let fill = |cached, free, total| Some(CacheFill { cached, free, total });
        assert_eq!(machine_fill(table), fill(40 << 10, 20 << 10, 100 << 10));
        assert_eq!(machine_fill("MemTotal: 100 kB\n"), None);
        let group = LimitingCgroup { folder: PathBuf::new(), limit: Some(90), current: 70 };
        assert_eq!(group_fill(&group, "anon 9\nfile 60\nshmem 4\n"), fill(56, 20, 90));
        let first = "cache 1\nshmem 0\ntotal_cache 60\ntotal_shmem 4\n";
        assert_eq!(group_fill(&group, first), fill(56, 20, 90));
        assert_eq!(group_fill(&LimitingCgroup { limit: None, ..group }, first), None);
    }

    #[test]
    fn swaps_are_distinguished() {
        let table = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                     /dev/zram0  partition\t1024\t\t4\t\t100\n\
                     /swap\\040file  file\t\t2048\t\t0\t\t-2\n\
                     /dev/sda2 partition 4096 0 -3\n";
        let all = swaps(table);
        let kinds: Vec<_> = all.iter().map(|swap| swap.kind).collect();
        assert_eq!(kinds, [SwapKind::Zram, SwapKind::File, SwapKind::Disk]);
        assert_eq!((all[0].total, all[0].used), (1 << 20, 4096));
        assert_eq!(all[1].name, Path::new("/swap file"));
        assert_eq!(all[2].is_encrypted, None);
        assert_eq!(swaps("Filename Type Size Used Priority\n"), []);
    }

    #[test]
    fn a_group_is_found_in_either_version() {
        let mounts = b"30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = |groups| place(groups, mounts).unwrap().0;
        assert_eq!(found("4:memory:/a/b\n0::/c\n"), Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(found("0::/c\n"), Path::new("/sys/fs/cgroup/unified/c"));
        let inner = b"30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let (own, top) = place("0::/docker/x/y\n", inner).unwrap();
        assert_eq!((own, top), ("/sys/fs/cgroup/y".into(), "/sys/fs/cgroup".into()));
        let odd = b"29 23 0:25 / /mnt/\xff rw - tmpfs none rw\n\
                    31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let place_of = place("0::/c\n", odd).unwrap().0;
        assert_eq!(place_of, Path::new("/sys/fs/cgroup/unified/c"), "a name that is not text");
        assert_eq!(place("0::/c\n", b""), None);
    }

    #[test]
    fn the_tightest_group_counts() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let write = |path: &Path, name, text| std::fs::write(path.join(name), text).unwrap();
        write(&inner, "memory.current", "1000\n");
        assert_eq!(of(&inner).unwrap().limit, None);
        write(&inner, "memory.max", "max\n");
        write(&inner, "memory.high", "5000\n");
        assert_eq!(of(&inner).unwrap().available(), Some(4000));
        write(folder.path(), "memory.usage_in_bytes", "10");
        write(folder.path(), "memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(of(folder.path()).unwrap().limit, None);
    }
}
