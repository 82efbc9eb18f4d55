//! `ram doctor`: what this machine lacks for RAM folders, and what is wrong with
//! those that are there. First all facts are gathered, then they are judged, so
//! that each judgement can be tried without the machine that deserves it.

mod stale_mounts;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fsure_os::kernel_features::{self, Features};
use fsure_os::memory_info::{self, LimitingCgroup, Memory, Pressure, SwapKind};
use fsure_os::overmount::{self, MountEntry};
use fsure_os::{path as os_path, user};

use crate::service::{Registry, RegistryEntry, Role};
use crate::write_back::OWN;
use fsure_core::{Error, IoContext as _, Result, shell_command, units};

/// Prefix of the sources of fsure's own mounts in the mount table.
const OURS: &str = "fsure:";

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingState {
    /// All is well.
    Fine,
    /// Something is not available, or works less well.
    Limits,
    /// Something is to be done now.
    Act,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its short name: `swap`.
    pub about: &'static str,
    /// Severity.
    pub state: FindingState,
    /// Description of the result.
    pub words: String,
    /// The remedy; `None` if all is well.
    pub remedy: Option<String>,
}

/// A RAM folder of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFacts {
    /// Path of the folder.
    pub path: PathBuf,
    /// True if its RAM side is mounted.
    pub is_mounted: bool,
    /// True if its keeper runs, which restarts the worker.
    pub is_kept: bool,
    /// True if its worker runs, which brings the disk side up to date.
    pub is_synced: bool,
    /// True if the folder that is seen at the path has something under way in it.
    pub has_journal: bool,
}

/// A process that still has what is not mounted here any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The process.
    pub process: u32,
    /// Mount point at which the process sees it.
    pub point: PathBuf,
}

/// All that is judged.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Checks that could not be made, and the remedy for each.
    pub unknown: Vec<(&'static str, &'static str)>,
    /// Features of the kernel.
    pub features: Features,
    /// Memory of the machine.
    pub memory: Memory,
    /// Memory pressure.
    pub pressure: Option<Pressure>,
    /// Mounts of fsure's own.
    pub mounts: Vec<MountEntry>,
    /// RAM folders of the registry, those of before the last start included.
    pub folders: Vec<FolderFacts>,
    /// Folders that were asked about and have something under way in them.
    pub journals: Vec<PathBuf>,
    /// Groups of processes that write into mounts of fsure, and where.
    pub writers: Vec<(PathBuf, LimitingCgroup)>,
    /// Processes elsewhere.
    pub stale: Vec<Stale>,
    /// Sockets of those that held a folder in memory and were killed.
    pub dead_pins: Vec<PathBuf>,
}

/// Gathers the facts. `asked` are folders that are in no registry; `runtime` is where
/// the sockets of pinned folders are, `None` if there is no such place.
pub fn gather(registry: &Registry, runtime: Option<&Path>, asked: &[PathBuf]) -> Result<Facts> {
    let all = overmount::mounts(None).unwrap_or_default();
    // A FUSE file system is called what its user likes.
    let is_own = |mount: &&MountEntry| mount.kind == "tmpfs" && mount.source.starts_with(OURS);
    let mounts: Vec<_> = all.iter().filter(is_own).cloned().collect();
    let mut unknown = Vec::new();
    let entries = match entries(registry) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            unknown.push(("which folders are in RAM, and whether they are kept", AS_ROOT));
            Vec::new()
        }
        entries => entries?,
    };
    if !user::is_root() {
        unknown.push(("which RAM folders the processes of other users see and write to", AS_ROOT));
    }
    let dead_pins = match runtime {
        Some(runtime) => super::pin::pinned(runtime)?.1,
        None => {
            unknown.push(("which folders are pinned", "set XDG_RUNTIME_DIR"));
            Vec::new()
        }
    };
    let ids = entries.iter().map(|entry| entry.id.clone());
    let noted = registry.events(None, usize::MAX).into_iter().map(|event| event.id);
    let known: BTreeSet<_> = ids.chain(noted).collect();
    let folders = entries.into_iter().map(|entry| FolderFacts {
        is_mounted: all
            .iter()
            .any(|mount| mount.source == entry.source() && mount.point == entry.path),
        is_kept: registry.process(&entry.id, Role::Keeper).is_some(),
        is_synced: registry.process(&entry.id, Role::Worker).is_some(),
        has_journal: os_path::exists(&entry.path.join(OWN)),
        path: entry.path,
    });
    let folders: Vec<_> = folders.collect();
    let mut journals = Vec::new();
    for folder in asked {
        let real = os_path::without_links(folder).context("find", folder)?;
        let is_known = folders.iter().any(|known| known.path == real);
        if !is_known && os_path::exists(&real.join(OWN)) {
            journals.push(real);
        }
    }
    Ok(Facts {
        unknown,
        features: kernel_features::features(),
        memory: memory_info::memory(),
        pressure: memory_info::pressure(),
        writers: writers(&mounts),
        stale: stale_mounts::stale(&all, &known),
        dead_pins,
        mounts,
        folders,
        journals,
    })
}

const AS_ROOT: &str = "ask as root";

/// Returns the entries of the registry, and those of before the last start.
fn entries(registry: &Registry) -> Result<Vec<RegistryEntry>> {
    let mut entries = registry.entries()?;
    entries.extend(registry.left_over()?);
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    entries.dedup_by(|one, other| one.path == other.path);
    Ok(entries)
}

/// The memory of a RAM folder counts for the control group of the one that writes.
fn writers(mounts: &[MountEntry]) -> Vec<(PathBuf, LimitingCgroup)> {
    let mut groups = BTreeMap::new();
    for mount in mounts {
        let holders = overmount::holders_of_mounts(&[std::process::id()], mount.device);
        for holder in holders.unwrap_or_default() {
            if let Some(group) = memory_info::group(Some(holder.process)) {
                groups.insert((mount.point.clone(), group.folder.clone()), group);
            }
        }
    }
    groups.into_iter().map(|((point, _), group)| (point, group)).collect()
}

/// Judges them: what is to be done first.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    facts.folders.iter().for_each(|folder| findings.extend(of_folder(folder)));
    findings.extend(facts.journals.iter().map(|folder| under_way(folder)));
    findings.extend(facts.stale.iter().map(|stale| {
        let Stale { process, point } = stale;
        let words = format!(
            "process {process} still sees, in {}, a RAM folder that was unmounted here: it reads \
             old content, and what it writes there is lost",
            point.display()
        );
        act("namespace", words, format!("restart process {process}"))
    }));
    findings.extend(facts.writers.iter().filter_map(|(point, group)| of_writers(point, group)));
    findings.push(swap(facts));
    findings.push(shortage(facts));
    findings.extend(of_kernel(facts));
    findings.extend(facts.dead_pins.iter().map(|socket| {
        let words = format!("the process that pinned a folder was killed: {}", socket.display());
        limits("pin", words, "pin the folder again with 'fsure ram pin', or remove that socket")
    }));
    findings.extend(
        facts
            .unknown
            .iter()
            .map(|(what, remedy)| limits("access", format!("not known: {what}"), *remedy)),
    );
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.state));
    findings
}

fn of_folder(folder: &FolderFacts) -> Option<Finding> {
    let shown = folder.path.display();
    match folder {
        FolderFacts { is_mounted: false, has_journal: true, .. } => Some(under_way(&folder.path)),
        FolderFacts { is_mounted: false, .. } => {
            let words = format!("{shown} was in RAM when the machine or its daemon stopped");
            Some(act(
                "folder",
                words,
                format!("run {}", shell_command("fsure ram recover", &folder.path)),
            ))
        }
        FolderFacts { is_synced: false, .. } => {
            let words = format!("{shown} is in RAM, and no process writes its changes to the disk");
            Some(act(
                "folder",
                words,
                format!("to restart it, run {}", shell_command("fsure ram sync", &folder.path)),
            ))
        }
        FolderFacts { is_kept: false, .. } => {
            let words = format!("{shown} has no process that restarts its daemon");
            Some(act(
                "folder",
                words,
                format!("to restart it, run {}", shell_command("fsure ram sync", &folder.path)),
            ))
        }
        _ => {
            let words = format!("{shown} is in RAM, and its changes are written to the disk");
            Some(fine("folder", words))
        }
    }
}

fn under_way(folder: &Path) -> Finding {
    let shown = folder.display();
    let words = format!("{shown} has a generation that a crash interrupted");
    let remedy =
        format!("before anything uses it, run {}", shell_command("fsure ram recover", folder));
    act("journal", words, remedy)
}

/// A group with less space than that is at its limit soon.
const GROUP_MEMORY_MIN: u64 = 64 * units::MIB;

fn of_writers(point: &Path, group: &LimitingCgroup) -> Option<Finding> {
    let (limit, available) = (group.limit?, group.available()?);
    let words = format!(
        "what is written into {} counts as memory of {}, which is limited to {} and has {} left: \
         at the limit its processes are killed, and the memory stays in use",
        point.display(),
        group.folder.display(),
        units::size(limit),
        units::size(available)
    );
    let remedy = "raise its limit (MemoryMax= of the unit), or write there from another control \
                  group";
    Some(if available < GROUP_MEMORY_MIN {
        act("group", words, remedy)
    } else {
        limits("group", words, remedy)
    })
}

fn swap(facts: &Facts) -> Finding {
    let disks = facts.memory.swap.iter();
    let mut open =
        disks.filter(|swap| swap.kind != SwapKind::Zram && swap.is_encrypted != Some(true));
    let Some(swap) = open.next() else {
        return fine("swap", "memory is not swapped to an unencrypted disk".to_owned());
    };
    let name = swap.name.display();
    let may = facts.mounts.iter().find(|mount| {
        mount.kind == "tmpfs" && !mount.own_options.iter().any(|option| option == "noswap")
    });
    match may {
        Some(mount) => {
            let point = mount.point.display();
            let words =
                format!("{point} can be swapped to {name}, which is not known to be encrypted");
            let remedy =
                "encrypt the swap, or use Linux 6.4 or later, where RAM folders are not swapped";
            act("swap", words, remedy)
        }
        None if facts.features.no_swap == Some(false) => {
            let words =
                format!("RAM folders can be swapped to {name}, which is not known to be encrypted");
            limits("swap", words, "encrypt the swap, or use Linux 6.4 or later")
        }
        None => fine("swap", format!("there is swap on {name}, and RAM folders are not swapped")),
    }
}

fn shortage(facts: &Facts) -> Finding {
    let Memory { total, available, shared, .. } = &facts.memory;
    let size = |bytes: &Option<u64>| bytes.map_or("?".to_owned(), units::size);
    let words = format!("{} of {} available", size(available), size(total));
    let is_short = available.zip(*total).is_some_and(|(of, all)| of < all / 20)
        || facts.pressure.is_some_and(|pressure| pressure.full >= 10.0);
    if is_short {
        let words = format!("{words}; {} are in RAM folders and shared memory", size(shared));
        return act("memory", words, "unbind a RAM folder, or destroy a RAM disk");
    }
    fine("memory", words)
}

fn of_kernel(facts: &Facts) -> Vec<Finding> {
    let Features { detached_mount, no_swap, huge_pages, file_system_marks, .. } = &facts.features;
    let Features { user_namespaces, zram, xfs, type_format, .. } = &facts.features;
    let has_pressure = Some(facts.pressure.is_some());
    let rows = [
        (detached_mount, "RAM folders that are mounted atomically", "Linux 5.2 for bind"),
        (
            file_system_marks,
            "changes reported by folder and name",
            "Linux 5.17; otherwise fsure scans whole folders",
        ),
        (no_swap, "RAM folders that are not swapped", "Linux 6.4"),
        (huge_pages, "RAM folders in huge pages", "CONFIG_TRANSPARENT_HUGEPAGE"),
        (zram, "compressed disks in memory", "CONFIG_ZRAM, for --backend zram-xfs"),
        (xfs, "XFS with mkfs.xfs", "the package xfsprogs, for --backend zram-xfs"),
        (type_format, "BTF for fsure hot", "CONFIG_DEBUG_INFO_BTF; otherwise hot uses fanotify"),
        (
            &has_pressure,
            "memory pressure (PSI)",
            "CONFIG_PSI and psi=1; otherwise fsure uses MemAvailable",
        ),
    ];
    let mut findings: Vec<_> = rows
        .into_iter()
        .map(|(has, what, needs)| match has {
            Some(true) => fine("kernel", what.to_owned()),
            Some(false) => limits("kernel", format!("no {what}"), format!("needs {needs}")),
            None => limits("kernel", format!("not known: {what}"), AS_ROOT),
        })
        .collect();
    findings.push(match user_namespaces {
        Some(Ok(())) => fine("kernel", "user namespaces, for ram run without root".to_owned()),
        Some(Err(why)) => {
            let words = format!("no user namespaces for ram run: {why}");
            limits(
                "kernel",
                words,
                "allow them (sysctl, or the rules of the container), or run it as root",
            )
        }
        None => limits("kernel", "no user namespaces".to_owned(), "ram run needs Linux"),
    });
    findings
}

fn fine(about: &'static str, words: String) -> Finding {
    Finding { about, state: FindingState::Fine, words, remedy: None }
}

fn limits(about: &'static str, words: String, remedy: impl Into<String>) -> Finding {
    Finding { about, state: FindingState::Limits, words, remedy: Some(remedy.into()) }
}

fn act(about: &'static str, words: String, remedy: impl Into<String>) -> Finding {
    Finding { about, state: FindingState::Act, words, remedy: Some(remedy.into()) }
}

#[cfg(test)]
mod tests {
    use fsure_os::memory_info::Swap;

    use super::*;

    const GIB: u64 = 1 << 30;

    /// A machine that has everything.
    fn well() -> Facts {
        let yes = Some(true);
        Facts {
            features: Features {
                detached_mount: yes,
                no_swap: yes,
                huge_pages: yes,
                file_system_marks: yes,
                user_namespaces: Some(Ok(())),
                zram: yes,
                xfs: yes,
                type_format: yes,
                fuse: yes,
            },
            memory: Memory { total: Some(16 * GIB), available: Some(8 * GIB), ..Memory::default() },
            pressure: Some(Pressure { some: 0.0, full: 0.0 }),
            ..Facts::default()
        }
    }

    /// The first finding, which is the gravest.
    fn first(facts: &Facts) -> (&'static str, FindingState, String) {
        let finding = judge(facts).swap_remove(0);
        (finding.about, finding.state, finding.words + " | " + &finding.remedy.unwrap_or_default())
    }

    #[test]
    fn where_all_is_well_nothing_is_to_be_done() {
        let findings = judge(&well());
        assert!(findings.iter().all(|one| one.state == FindingState::Fine), "{findings:?}");
        assert!(findings.iter().all(|one| one.remedy.is_none()));
    }

    #[test]
    fn what_is_to_be_done_comes_first_with_its_remedy() {
        let folder = FolderFacts { path: "/srv/a".into(), ..FolderFacts::default() };
        let bound =
            FolderFacts { is_mounted: true, is_kept: true, is_synced: true, ..folder.clone() };
        for (folder, about, remedy) in [
            (FolderFacts { has_journal: true, ..folder.clone() }, "journal", "ram recover /srv/a"),
            (folder.clone(), "folder", "ram recover /srv/a"),
            (FolderFacts { is_synced: false, ..bound.clone() }, "folder", "ram sync /srv/a"),
            (FolderFacts { is_kept: false, ..bound.clone() }, "folder", "ram sync /srv/a"),
        ] {
            let (is, state, words) = first(&Facts { folders: vec![folder], ..well() });
            assert_eq!((is, state), (about, FindingState::Act), "{words}");
            assert!(words.contains(remedy), "{words}");
        }
        let facts = Facts { folders: vec![bound], ..well() };
        assert_eq!(first(&facts).1, FindingState::Fine);
        let facts = Facts { journals: vec!["/srv/b".into()], ..well() };
        assert!(first(&facts).2.contains("ram recover /srv/b"));
        let stale = vec![Stale { process: 7, point: "/srv".into() }];
        assert!(first(&Facts { stale, ..well() }).2.contains("restart process 7"));
    }

    #[test]
    fn unknown_facts_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new(&folder.path().join("run"), &folder.path().join("var"));
        let facts = gather(&registry, None, &[]).unwrap();
        let findings = judge(&facts);
        let access: Vec<_> = findings.iter().filter(|one| one.about == "access").collect();
        assert_eq!(access.len(), if user::is_root() { 1 } else { 2 }, "{access:?}");
        assert!(access.iter().any(|one| one.remedy.as_deref() == Some("set XDG_RUNTIME_DIR")));
    }

    #[test]
    fn swap_matters_if_a_ram_folder_can_be_swapped_out() {
        let swap = |kind, is_encrypted| Memory {
            swap: vec![Swap { name: "/dev/x".into(), kind, total: GIB, used: 0, is_encrypted }],
            ..well().memory
        };
        let state = |memory, options: &[&str]| {
            let own_options = options.iter().map(ToString::to_string).collect();
            let mount =
                MountEntry { kind: "tmpfs".to_owned(), own_options, ..MountEntry::default() };
            first(&Facts { memory, mounts: vec![mount], ..well() }).1
        };
        assert_eq!(state(swap(SwapKind::Disk, None), &["size=1k"]), FindingState::Act);
        assert_eq!(state(swap(SwapKind::Disk, None), &["noswap"]), FindingState::Fine);
        assert_eq!(state(swap(SwapKind::Disk, Some(true)), &[]), FindingState::Fine);
        assert_eq!(state(swap(SwapKind::Zram, None), &[]), FindingState::Fine);
        assert_eq!(state(swap(SwapKind::File, None), &[]), FindingState::Act);
    }

    #[test]
    fn a_group_at_its_limit_kills_its_writers() {
        let group = |limit, current| {
            let group = LimitingCgroup { folder: "/sys/fs/cgroup/x".into(), limit, current };
            first(&Facts { writers: vec![("/srv".into(), group)], ..well() }).1
        };
        assert_eq!(group(None, GIB), FindingState::Fine);
        assert_eq!(group(Some(4 * GIB), GIB), FindingState::Limits);
        assert_eq!(group(Some(GIB), GIB - 1), FindingState::Act);
    }

    #[test]
    fn what_a_kernel_lacks_is_a_limit_and_no_fault() {
        let none = Some(false);
        let features = Features {
            no_swap: none,
            user_namespaces: Some(Err("x = 0".to_owned())),
            ..well().features
        };
        let facts = Facts { features, pressure: None, ..well() };
        let lacks = judge(&facts);
        let lacks: Vec<_> = lacks.iter().filter(|one| one.state == FindingState::Limits).collect();
        assert_eq!(lacks.len(), 3, "{lacks:?}");
        assert!(lacks.iter().all(|one| one.remedy.is_some()));
        let short = Memory { available: Some(GIB / 2), ..well().memory };
        assert_eq!(first(&Facts { memory: short, ..well() }).0, "memory");
    }
}
