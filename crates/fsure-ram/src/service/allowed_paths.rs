//! Places where a folder cannot be put into RAM: where the machine needs it to start,
//! above or below another folder that is in RAM, and on file systems that do not keep the
//! promises of a disk.

use std::path::Path;

use fsure_os::overmount::{self, MountEntry};

use super::bind_refusal::{BindRefusal, refuse};
use super::facts::Facts;
use fsure_core::shell_command;

/// Folders without which the machine does not run; alone, and with all below.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr", "/var", "/run", "/home"];
const WHOLE: [&str; 5] = ["/boot", "/etc", "/dev", "/proc", "/sys"];

pub(super) fn check_path(facts: &Facts) -> Option<BindRefusal> {
    let (path, shown) = (facts.path.as_path(), facts.path.display());
    let is_system = path == Path::new("/")
        || SYSTEM_FOLDERS.iter().any(|system| path == Path::new(system))
        || WHOLE.iter().any(|system| path.starts_with(system))
        || ["/usr/", "/"].iter().any(|above| is_programs(path, above));
    if is_system {
        let why = format!("{shown} holds the system itself, which must not depend on a daemon");
        return Some(refuse(why, "name the folder below it that is written often"));
    }
    if overmount::overlaps(path, &facts.runtime) {
        let why = format!("{shown} contains the registry of RAM folders, or lies in it");
        return Some(refuse(why, "name another folder"));
    }
    if facts.bound.iter().any(|bound| bound == path) {
        let why = format!("{shown} is already in RAM");
        return Some(refuse(
            why,
            format!("to see it, run {}", shell_command("fsure ram status", path)),
        ));
    }
    let overlapping = facts.bound.iter().find(|bound| overmount::overlaps(bound, path))?;
    let why = format!(
        "{} is already in RAM, and one of the two folders contains the other",
        overlapping.display()
    );
    Some(refuse(why, format!("first run {}", shell_command("fsure ram unbind", overlapping))))
}

/// `/bin`, `/usr/lib64` and the like.
fn is_programs(path: &Path, above: &str) -> bool {
    let first = path.strip_prefix(above).ok().and_then(|rest| rest.iter().next());
    let first = first.and_then(|name| name.to_str()).unwrap_or_default();
    ["bin", "sbin", "libexec"].contains(&first) || first == "lib" || first.starts_with("lib6")
}

/// Refuses a file system on which no folder can be put into RAM; `None` if it is
/// suitable.
pub fn check_file_system(mount: &MountEntry) -> Option<BindRefusal> {
    let (kind, point) = (&*mount.kind, mount.point.display());
    let is = |option: &str| mount.options.iter().chain(&mount.own_options).any(|is| is == option);
    let network = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs", "gfs2", "ocfs2"];
    let no_rights = ["vfat", "msdos", "exfat", "ntfs", "ntfs3", "hfs", "hfsplus"];
    if ["tmpfs", "ramfs"].contains(&kind) {
        return Some(refuse(
            format!("{point} is already in memory ({kind})"),
            "nothing needs to be done",
        ));
    }
    if is("ro") {
        let why = format!("{point} is mounted read-only: changes cannot be written back to it");
        return Some(refuse(why, "'fsure ram pin' keeps its files in the page cache"));
    }
    if kind.starts_with("fuse") || network.contains(&kind) {
        let why = format!(
            "{point} is {kind}: fsure cannot know whether acknowledged writes are durable there, \
             and other machines might write to it"
        );
        return Some(refuse(why, "name a folder on a disk of this machine"));
    }
    no_rights.contains(&kind).then(|| {
        let why = format!("{point} is {kind}, which stores neither owners nor modes");
        refuse(why, "name a folder on a Linux file system: ext4, xfs, btrfs")
    })
}
