//! RAM folders that are gone here and that processes in other mount namespaces still see:
//! they read old data, and what they write is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fsure_os::overmount::{self, MountEntry};
use fsure_os::user_file;

use super::{OURS, Stale};

/// Mounts of RAM folders and RAM disks that are seen elsewhere and no longer here.
/// `known` are the ids of RAM folders that are or were.
pub(super) fn stale(here: &[MountEntry], known: &BTreeSet<String>) -> Vec<Stale> {
    let names = user_file::names(Path::new("/proc")).unwrap_or_default();
    let number = |name: &Vec<u8>| std::str::from_utf8(name).ok()?.parse::<u32>().ok();
    let mut found = BTreeMap::new();
    for process in names.iter().filter_map(number) {
        // One that has ended, or of others.
        for mount in overmount::mounts(Some(process)).unwrap_or_default() {
            let is_here = here.iter().any(|known| known.device == mount.device);
            if !is_here && is_meant(&mount, || overmount::is_of_our_users(process), known) {
                found.entry(mount.device).or_insert(Stale { process, point: mount.point });
            }
        }
    }
    found.into_values().collect()
}

/// Returns true if a mount in another namespace is one of fsure's. Its source is not
/// proof: any user can mount a tmpfs of any name in a user namespace of their own.
fn is_meant(mount: &MountEntry, is_own: impl Fn() -> bool, known: &BTreeSet<String>) -> bool {
    let name = mount.source.strip_prefix(OURS).filter(|_| mount.kind == "tmpfs");
    let Some(name) = name else { return false };
    let is_id = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    known.contains(name) || (is_id || name.starts_with("disk:")) && is_own()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_makes_no_mount_fsure_s() {
        let known = BTreeSet::from(["0123456789abcdef".to_owned()]);
        let meant = |source: &str, kind: &str, is_own: bool| {
            let mount = MountEntry {
                source: source.into(),
                kind: kind.to_owned(),
                ..MountEntry::default()
            };
            is_meant(&mount, || is_own, &known)
        };
        for (source, kind, is_own, is) in [
            ("fsure:0123456789abcdef", "tmpfs", false, true),
            ("fsure:0123456789abcdef", "fuse", true, false),
            ("fsure:fedcba9876543210", "tmpfs", true, true),
            ("fsure:fedcba9876543210", "tmpfs", false, false),
            ("fsure:disk:fast", "tmpfs", true, true),
            ("fsure:disk:fast", "tmpfs", false, false),
            ("fsure:x", "tmpfs", true, false),
        ] {
            assert_eq!(meant(source, kind, is_own), is, "{source} {kind} {is_own}");
        }
    }
}
