//! Checks whether a folder can be put into RAM, and computes its size. The facts are
//! gathered first and judged afterwards, so that each check can be tested by itself.
//! Every refusal names a remedy.

use std::path::{Path, PathBuf};

use fsure_os::overmount::{self, HoldKind, Survey};
use fsure_os::storage_stack::Stack;
use fsure_os::{machine, path as os_path};

use super::allowed_paths::{check_file_system, check_path};
use super::auto_size::{NAMES_MIN, Use, reserve};
use super::backend::Backend;
use super::bind_refusal::{BindRefusal, NAMES_SHOWN_MAX, refuse, some};
use super::facts::Facts;
use super::other_ram_folders;
use super::registry::Registry;
use super::{alternate_paths, overlapping};
use crate::write_back::OWN;
use fsure_core::units::{MIB, size};
use fsure_core::{Error, IoContext as _, Result};

/// Plan for putting a folder into RAM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementPlan {
    /// The folder, without links.
    pub path: PathBuf,
    /// Bytes in its files.
    pub content: u64,
    /// Names of regular files.
    pub files: u64,
    /// Bytes of memory that it takes once it is filled.
    pub need: u64,
    /// Bytes of memory that it is to take at most, at first.
    pub bytes: u64,
    /// Names that it is to take at most, at first.
    pub inodes: u64,
    /// Bytes that it is to have in any case, if its size follows its use from then on;
    /// `None` if it stays as it is.
    pub least: Option<u64>,
    /// Reasons not to do it; empty if it can be done.
    pub refusals: Vec<BindRefusal>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Asks for all facts of a folder.
pub fn gather(given: &Path, registry: &Registry) -> Result<Facts> {
    let path = os_path::without_links(given).context("access", given)?;
    if !os_path::is_folder(&path) {
        let message = format!("{} is not a folder", path.display());
        return Err(Error::Usage { message, hint: Some("name an existing folder".into()) });
    }
    let bound = registry.entries()?.into_iter().map(|entry| entry.path).collect();
    let facts = Facts { path, runtime: registry.folder().to_owned(), bound, ..Facts::default() };
    // A refused folder is not read either: that could take hours.
    if check_path(&facts).is_some() {
        return Ok(facts);
    }
    let path = &facts.path;
    let mount = overmount::mount_at(path).context("find the mount of", path)?;
    // A look through a folder on another machine could, too.
    if check_file_system(&mount).is_some() {
        return Ok(Facts { mount, ..facts });
    }
    let own = path.join(OWN);
    let survey = overmount::survey(path, OWN).context("list", path)?;
    let is_meant =
        |device: u64, inode: u64| device == survey.device && survey.inodes.contains(&inode);
    let holders = overmount::holders(&[std::process::id()], &is_meant);
    Ok(Facts {
        mount,
        holders: holders.context("find the processes that use", path)?,
        ways: overmount::ways(path, &facts.runtime).context("find other paths to", path)?,
        disks: overmount::block_devices_on(&is_meant)
            .context("find loop devices and swap in", path)?,
        available: machine::available_memory(),
        memory: machine::machine().memory_bytes,
        others: other_ram_folders::count(registry, None),
        free: machine::free_bytes(path).context("read the free space of", path)?,
        has_own: os_path::exists(&own),
        overlapping: overlapping::find(path, &survey),
        held_flushes: Stack::of(path)
            .ok()
            .and_then(|stack| stack.held_flushes().map(str::to_owned)),
        is_foreign: os_path::is_link(&own) || os_path::exists(&own) && !os_path::is_folder(&own),
        survey,
        ..facts
    })
}

/// Judges them. `wanted` is the size that was asked for, if one was.
pub fn judge(facts: &Facts, wanted: Option<u64>) -> PlacementPlan {
    let mut plan = PlacementPlan { path: facts.path.clone(), ..PlacementPlan::default() };
    if let Some(refusal) = check_path(facts).or_else(|| check_file_system(&facts.mount)) {
        plan.refusals.push(refusal);
        return plan;
    }
    (plan.files, plan.content) = facts.survey.content;
    let (backend, names) = (facts.backend, facts.survey.inodes.len() as u64);
    let need = facts.survey.bytes + names * INODE;
    plan.need = need;
    let least = match wanted {
        Some(wanted) => wanted.max(backend.least()),
        None => automatic_size(facts, need).max(backend.least()),
    };
    let least = least.next_multiple_of(4096);
    plan.least = (wanted.is_none() && backend.grows()).then_some(least);
    let limits = plan.least.map(|least| expected_use(facts, need, names).limits(least));
    plan.bytes = limits.map_or(least, |limits| limits.bytes);
    plan.inodes = limits.map_or(NAMES_MIN, |limits| limits.names).max(names * 4);
    let refusals = [
        facts.lacks.as_deref().map(|lacks| refuse_backend(backend, lacks)),
        check_memory(facts, need, least),
        check_disk_space(facts),
        check_content(&facts.survey),
        alternate_paths::check(&facts.ways.here),
        overlapping::check(facts.overlapping.as_deref()),
        facts.is_foreign.then(|| {
            refuse(
                format!("{OWN} in it was not made by fsure"),
                "check what it is, and move it away",
            )
        }),
        check_users(facts),
    ];
    plan.refusals.extend(refusals.into_iter().flatten());
    plan.warnings = warnings(facts);
    if wanted.is_some_and(|wanted| wanted < backend.least()) {
        plan.warnings.push(format!(
            "{} gets at least {}: what is not used takes no memory",
            backend.name(),
            size(backend.least())
        ));
    }
    plan
}

/// Memory that the kernel takes for a name and its inode, in bytes, in addition to the
/// content.
const INODE: u64 = 1024;
const SIZE_MIN_BYTES: u64 = 64 * MIB;
/// A backend that cannot grow gets one part in so many of the available memory.
const FIXED_SHARE: u64 = 4;

/// Returns the size for a folder: 1.3 times its need, and never less than for a few files.
fn automatic_size(facts: &Facts, need: u64) -> u64 {
    let fixed = if facts.backend.grows() { None } else { facts.available };
    let share = fixed.map_or(0, |available| available / FIXED_SHARE);
    facts.backend.size_for((need.saturating_mul(13) / 10).max(SIZE_MIN_BYTES)).max(share)
}

/// Returns the memory that the folder takes once it is filled, and the rest of the memory.
fn expected_use(facts: &Facts, need: u64, names: u64) -> Use {
    let available = facts.available.unwrap_or(0);
    Use {
        bytes: need,
        names,
        others: facts.others,
        available: available.saturating_sub(need),
        reserve: reserve(facts.memory.unwrap_or(available)),
    }
}

/// Refuses a backend that the machine lacks something for.
fn refuse_backend(backend: Backend, lacks: &str) -> BindRefusal {
    let remedy = format!("that, or '--backend {}'", Backend::default().name());
    refuse(format!("{}: {lacks}", backend.name()), remedy)
}

/// Refuses a size that its content does not fit into, or that leaves too little memory for
/// other processes.
fn check_memory(facts: &Facts, content: u64, bytes: u64) -> Option<BindRefusal> {
    if bytes < facts.backend.size_for(content) {
        let why =
            format!("its content takes {}, and its size would be {}", size(content), size(bytes));
        let least = automatic_size(facts, content).div_ceil(MIB);
        return Some(refuse(why, format!("'--size {least}M' or more")));
    }
    let (available, bytes) = (facts.available?, facts.backend.memory(bytes));
    let reserve = reserve(facts.memory.unwrap_or(available));
    (bytes.saturating_add(reserve) > available).then(|| {
        let why = format!(
            "its size would be {}, and {} are reserved for other programs, but only {} of memory \
             are available",
            size(bytes),
            size(reserve),
            size(available),
        );
        refuse(why, "free memory, give a smaller '--size', or name a folder below it")
    })
}

/// Refuses a disk without space for a generation, which is staged before it replaces anything.
fn check_disk_space(facts: &Facts) -> Option<BindRefusal> {
    let need = facts.survey.bytes / 10 + MIB;
    (facts.free < need).then(|| {
        let why = format!(
            "only {} are free on its disk: each generation is staged beside the one before",
            size(facts.free)
        );
        refuse(why, format!("free at least {}", size(need)))
    })
}

/// Refuses a folder whose content cannot be brought into RAM and back.
fn check_content(survey: &Survey) -> Option<BindRefusal> {
    if !survey.mounts.is_empty() {
        let why = format!("something else is mounted in it: {}", some(&survey.mounts));
        let remedy =
            "unmount that, or name a folder without mounts (a subvolume counts as a mount)";
        return Some(refuse(why, remedy));
    }
    if let Some(unread) = survey.unread.first() {
        let why = format!("not all of it can be read: {unread}");
        return Some(refuse(why, "run it as root; 'fsure verify' finds what is damaged"));
    }
    if !survey.linked_outside.is_empty() {
        let why = format!(
            "files in it have hard links outside it, and would become two files: {}",
            some(&survey.linked_outside)
        );
        return Some(refuse(
            why,
            "name a folder that holds all hard links of these files, or copy the files",
        ));
    }
    (!survey.frozen.is_empty()).then(|| {
        let why = format!("immutable or append-only: {}", some(&survey.frozen));
        refuse(why, "changes could not be written back to them: run 'chattr -i -a' on them first")
    })
}

/// Refuses a folder that other processes or disks use for more than reading.
fn check_users(facts: &Facts) -> Option<BindRefusal> {
    if !facts.disks.is_empty() {
        let why = format!("files in it are loop devices or swap: {}", some(&facts.disks));
        return Some(refuse(why, "detach it with 'losetup -d' or 'swapoff' first"));
    }
    let in_the_way: Vec<_> =
        facts.holders.iter().filter(|holder| holder.how != HoldKind::Reads).collect();
    let first = in_the_way.first()?;
    let named: Vec<_> = in_the_way.iter().take(NAMES_SHOWN_MAX).map(ToString::to_string).collect();
    let rest = in_the_way.len().saturating_sub(NAMES_SHOWN_MAX);
    let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    let why = format!(
        "processes use it, and what they write would go to the covered disk side and be lost: \
         {}{rest}",
        named.join("; ")
    );
    let remedy = match first.how {
        HoldKind::Works | HoldKind::Root => "let it change its folder ('cd /'), or end it",
        _ => "end or stop it, and restart it when the folder is in RAM",
    };
    Some(refuse(why, remedy))
}

fn warnings(facts: &Facts) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(held) = &facts.held_flushes {
        warnings.push(format!(
            "flushes are {held}: a power cut can lose or damage generations that are on the disk \
             side"
        ));
    }
    let readers: Vec<_> =
        facts.holders.iter().filter(|holder| holder.how == HoldKind::Reads).collect();
    if let Some(first) = readers.first() {
        let count = readers.len();
        warnings.push(format!(
            "{count} open for reading stay on the disk side and do not see changes: {first}"
        ));
    }
    warnings
        .extend(facts.ways.elsewhere.iter().take(NAMES_SHOWN_MAX).map(alternate_paths::warning));
    if !facts.survey.sockets.is_empty() {
        warnings.push(format!(
            "programs that listen at these sockets cannot be reached until they are restarted: {}",
            some(&facts.survey.sockets)
        ));
    }
    if facts.free < facts.survey.bytes {
        warnings.push(format!(
            "{} are free on its disk, less than its content of {}: if much of it changes at once, \
             a generation might not fit, and the folder is read-only until it does",
            size(facts.free),
            size(facts.survey.bytes),
        ));
    }
    if facts.has_own {
        warnings.push(format!("{OWN} is left from an earlier bind: fsure recovers it first"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::overmount::{Holder, MountEntry};

    fn facts() -> Facts {
        let mount =
            MountEntry { kind: "ext4".into(), point: "/srv".into(), ..MountEntry::default() };
        Facts {
            path: "/srv/work".into(),
            runtime: "/run/fsure/ram".into(),
            mount,
            survey: Survey { bytes: 100 * MIB, content: (10, 99), ..Survey::default() },
            available: Some(4096 * MIB),
            memory: Some(8192 * MIB),
            free: 4096 * MIB,
            ..Facts::default()
        }
    }

    /// Returns the refusals of facts that are fine except for one change.
    fn refused(change: impl FnOnce(&mut Facts)) -> Vec<String> {
        let mut facts = facts();
        change(&mut facts);
        let plan = judge(&facts, None);
        assert!(plan.refusals.iter().all(|refusal| !refusal.remedy.is_empty()));
        plan.refusals.into_iter().map(|refusal| refusal.why).collect()
    }

    fn holder(how: HoldKind) -> Holder {
        Holder { process: 7, command: "vi".into(), how, path: "/srv/work/file".into() }
    }

    #[test]
    fn a_disk_side_that_gets_no_flush_is_reported() {
        let held_flushes = Some("kept from the disk by nobarrier".to_owned());
        let plan = judge(&Facts { held_flushes, ..facts() }, None);
        assert!(plan.refusals.is_empty() && plan.warnings[0].contains("nobarrier"), "{plan:?}");
    }

    #[test]
    fn a_plain_folder_is_taken() {
        let plan = judge(&facts(), None);
        assert_eq!((&*plan.refusals, &*plan.warnings), (&[][..], &[][..]));
        assert_eq!(plan.least, Some(130 * MIB));
        // Half of what is available, in steps of 64 MiB above what it has.
        assert_eq!(plan.bytes, 2020 * MIB);
        let others = super::super::RamFolders { folders: 1, bytes: 0 };
        // Half of that beside another folder, but 1 GiB at least.
        assert_eq!(judge(&Facts { others, ..facts() }, None).bytes, 1124 * MIB);
        let stated = judge(&facts(), Some(200 * MIB));
        assert_eq!((stated.bytes, stated.least), (200 * MIB, None));
    }

    #[test]
    fn the_system_is_left_alone() {
        for path in [
            "/",
            "/boot",
            "/boot/grub",
            "/etc",
            "/etc/x",
            "/usr",
            "/usr/bin",
            "/usr/lib/x",
            "/dev",
            "/proc",
            "/sys",
            "/run",
            "/run/fsure",
            "/run/fsure/ram/x",
            "/var",
            "/lib64",
            "/bin",
        ] {
            let why = refused(|facts| facts.path = path.into());
            assert_eq!(why.len(), 1, "{path}");
        }
        for path in ["/usr/local/x", "/var/lib/x", "/home/x", "/library", "/srv"] {
            assert_eq!(refused(|facts| facts.path = path.into()), [""; 0], "{path}");
        }
    }

    #[test]
    fn nothing_is_bound_twice_or_nested() {
        for bound in ["/srv/work", "/srv", "/srv/work/deep"] {
            let why = refused(|facts| facts.bound = vec![bound.into()]);
            assert!(why[0].contains("already in RAM"), "{why:?}");
        }
        assert_eq!(refused(|facts| facts.bound = vec!["/srv/work2".into()]), [""; 0]);
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        type Change = fn(&mut Facts);
        let cases: [(Change, &str); 16] = [
            (|facts| facts.mount.kind = "tmpfs".into(), "already in memory"),
            (|facts| facts.mount.kind = "fuse.sshfs".into(), "fuse.sshfs"),
            (|facts| facts.mount.kind = "nfs4".into(), "nfs4"),
            (|facts| facts.mount.kind = "vfat".into(), "vfat"),
            (|facts| facts.mount.options = vec!["ro".into()], "read-only"),
            (|facts| facts.survey.mounts = vec!["/srv/work/m".into()], "/srv/work/m"),
            (|facts| facts.survey.linked_outside = vec!["/srv/work/l".into()], "/srv/work/l"),
            (|facts| facts.survey.frozen = vec!["/srv/work/i".into()], "/srv/work/i"),
            (|facts| facts.survey.unread = vec!["/srv/work/u: no".into()], "/srv/work/u"),
            (|facts| facts.disks = vec!["/srv/work/image".into()], "/srv/work/image"),
            (|facts| facts.holders = vec![holder(HoldKind::Writes)], "process 7 (vi) writes to"),
            (|facts| facts.holders = vec![holder(HoldKind::Works)], "works in"),
            (|facts| facts.available = Some(400 * MIB), "400.0 MiB"),
            (|facts| facts.free = MIB, "1.0 MiB are free"),
            (|facts| facts.is_foreign = true, ".fsure-ram"),
            (|facts| facts.overlapping = Some("/srv/work/in".into()), "/srv/work/in is in RAM"),
        ];
        for (change, words) in cases {
            let why = refused(change);
            assert!(why.len() == 1 && why[0].contains(words), "{words}: {why:?}");
        }
        let small = judge(&facts(), Some(MIB)).refusals;
        assert!(small[0].remedy.contains("--size 130M"), "{small:?}");
    }

    #[test]
    fn a_backend_takes_what_it_needs() {
        let xfs = Facts { backend: Backend::ZramXfs, ..facts() };
        let plan = judge(&xfs, None);
        assert_eq!((plan.refusals.len(), plan.warnings.len()), (0, 0));
        assert_eq!((plan.bytes, plan.least), (1024 * MIB, None), "a quarter, and for good");
        let little = judge(&Facts { available: Some(800 * MIB), ..xfs.clone() }, None);
        assert_eq!(little.bytes, 300 * MIB, "the least");
        let small = judge(&xfs, Some(150 * MIB));
        assert!(small.bytes == 300 * MIB && small.warnings[0].contains("300.0 MiB"), "{small:?}");
        let much = Facts { survey: Survey { bytes: 1000 * MIB, ..xfs.survey.clone() }, ..xfs };
        let bytes = judge(&much, None).bytes;
        assert!(bytes > 1300 * MIB + 64 * MIB, "with the journal: {bytes}");
        let tight = judge(&much, Some(1100 * MIB)).refusals;
        assert!(tight[0].remedy.contains(&format!("--size {}M", bytes.div_ceil(MIB))), "{tight:?}");
        // Content that cannot be compressed takes more memory than it has bytes.
        let available = Some(bytes + reserve(8192 * MIB));
        let why = judge(&Facts { available, ..much.clone() }, None).refusals;
        assert!(why[0].why.contains("reserved for other programs"), "{why:?}");
        let lacks = Some("mkfs.xfs is not there".to_owned());
        let refusals = judge(&Facts { lacks, ..much }, None).refusals;
        assert_eq!(refusals[0].why, "zram-xfs: mkfs.xfs is not there");
        assert!(refusals[0].remedy.contains("--backend tmpfs"));
    }

    #[test]
    fn a_process_that_only_reads_is_reported_and_not_refused() {
        let mut facts = facts();
        facts.holders = vec![holder(HoldKind::Reads)];
        facts.survey.sockets = vec!["/srv/work/s".into()];
        facts.free = 50 * MIB;
        facts.has_own = true;
        let plan = judge(&facts, None);
        assert_eq!((plan.refusals.len(), plan.warnings.len()), (0, 4));
    }

    #[test]
    fn many_are_not_all_named() {
        let all: Vec<_> = (0..7).map(|n| format!("/{n}")).collect();
        assert_eq!(some(&all), "/0, /1, /2, /3, /4, and 2 more");
    }
}
