//! Memory control groups by their files. See [`crate::memory_cgroup`].

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::mountinfo;
use super::scratch_dir::release;
use crate::scratch_dir::{Resource, Scratch};

/// A control group made by fsure. Dropping it puts this process back into its former
/// group and removes the new one.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    /// The group that this process was in before.
    home: PathBuf,
    scratch: Arc<Scratch>,
}

/// The hierarchy in which groups with a memory limit are made, with the file name of its
/// cgroup version.
pub(super) struct Hierarchy {
    /// The group of this process.
    pub(super) home: PathBuf,
    /// The group in which a new one can be made.
    pub(super) parent: PathBuf,
    limit: &'static str,
}

impl Hierarchy {
    /// Returns true if a part of the tree can be handed to a user: in version 2.
    pub(super) fn is_delegable(&self) -> bool {
        self.limit == "memory.max"
    }
}

impl Group {
    /// Makes a group without processes that may have `bytes` of memory.
    pub fn create(scratch: &Arc<Scratch>, bytes: u64) -> io::Result<Self> {
        let hierarchy = hierarchy()?;
        let name = scratch.path().file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let folder = hierarchy.parent.join(name.trim_start_matches('.'));
        let group = Self { folder, home: hierarchy.home, scratch: Arc::clone(scratch) };
        scratch.register(&group.resource())?;
        let made = std::fs::create_dir(&group.folder);
        made.map_err(|error| cannot(&error, "make a control group in", &hierarchy.parent))?;
        let limit = group.folder.join(hierarchy.limit);
        std::fs::write(&limit, bytes.to_string()).map_err(|error| cannot(&error, "set", &limit))?;
        Ok(group)
    }

    /// Puts a process into it, with all its threads: what it reads from now on
    /// counts.
    pub fn take(&self, process: u32) -> io::Result<()> {
        put(&self.folder, process)
    }

    fn resource(&self) -> Resource {
        Resource::Group(self.folder.clone())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let own = std::process::id();
        let is_in = |line: &str| line.parse() == Ok(own);
        let processes = std::fs::read_to_string(self.folder.join("cgroup.procs"));
        if processes.is_ok_and(|processes| processes.lines().any(is_in)) {
            // If it fails, the group stays until the process ends.
            let _ = put(&self.home, own);
        }
        if release(&self.resource()).is_ok() {
            let _ = self.scratch.released(&self.resource());
        }
    }
}

/// Puts a process into a group, with all its threads.
pub(super) fn put(group: &Path, process: u32) -> io::Result<()> {
    let file = group.join("cgroup.procs");
    std::fs::write(&file, process.to_string()).map_err(|error| cannot(&error, "write to", &file))
}

/// Returns the error with the operation that failed, the file, and a remedy if there is one.
pub(super) fn cannot(error: &io::Error, doing: &str, what: &Path) -> io::Error {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => ", which needs root",
        io::ErrorKind::ReadOnlyFilesystem => ", which this container does not allow",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot {doing} {}{remedy}: {error}", what.display()))
}

/// Finds version 2 where it has the memory, else version 1: one controller is in one
/// of them only.
pub(super) fn hierarchy() -> io::Result<Hierarchy> {
    let own = std::fs::read_to_string("/proc/self/cgroup")?;
    let mounts = mountinfo::read(None)?;
    second(&own, &mounts).or_else(|| first(&own, &mounts)).ok_or_else(|| {
        let why = "no control group can limit memory here: cgroup version 2 must be mounted, with \
                   'memory' in the cgroup.subtree_control above this process's group";
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

/// A group with processes in it has none below it that limit memory, so that a
/// new one stands beside that of this process, and below it only at the root.
fn second(own: &str, mounts: &[u8]) -> Option<Hierarchy> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let top = mounted(mounts, |kind, _| kind == "cgroup2")?;
    let home = top.join(path.trim_start_matches('/'));
    let parent = if home == top { top } else { home.parent()?.to_owned() };
    let controllers = std::fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
    let has_memory = controllers.split_whitespace().any(|name| name == "memory");
    has_memory.then_some(Hierarchy { home, parent, limit: "memory.max" })
}

fn first(own: &str, mounts: &[u8]) -> Option<Hierarchy> {
    let has_memory = |controllers: &str| controllers.split(',').any(|name| name == "memory");
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        has_memory(controllers).then_some(path)
    })?;
    let top = mounted(mounts, |kind, options| kind == "cgroup" && has_memory(options))?;
    let home = top.join(path.trim_start_matches('/'));
    Some(Hierarchy { parent: home.clone(), home, limit: "memory.limit_in_bytes" })
}

/// Returns the mount point of the first file system whose type and options satisfy
/// `is_so`; `None` if there is none.
fn mounted(mounts: &[u8], is_so: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    let found = mountinfo::lines(mounts).find(|line| is_so(&line.kind, &line.own_options))?;
    Some(PathBuf::from(OsString::from_vec(found.point)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::did_not_run;

    #[test]
    fn a_process_in_it_has_no_more_memory_than_that() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Arc::new(Scratch::create(folder.path(), None).unwrap());
        let group = match Group::create(&scratch, 32 << 20) {
            Ok(group) => group,
            Err(error) => return did_not_run("a_process_in_it", &error.to_string()),
        };
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        group.take(child.id()).unwrap();
        let limits = ["memory.max", "memory.limit_in_bytes"];
        let limit =
            limits.iter().find_map(|name| std::fs::read_to_string(group.folder.join(name)).ok());
        assert_eq!(limit.unwrap().trim(), (32 << 20).to_string());
        let processes = std::fs::read_to_string(group.folder.join("cgroup.procs")).unwrap();
        assert_eq!(processes.trim(), child.id().to_string());
        let own = std::fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
        let name = group.folder.file_name().unwrap().to_str().unwrap();
        assert!(own.contains(name), "{own}");
        drop(child.stdin.take());
        child.wait().unwrap();
        let made = group.folder.clone();
        drop(group);
        assert!(!made.exists());
    }

    #[test]
    fn hierarchies_are_found() {
        let mounts = b"30 23 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/a/b\n0::/\n";
        let found = first(own, mounts).unwrap();
        assert_eq!(found.parent, Path::new("/sys/fs/cgroup/memory/a/b"));
        assert!(first("0::/\n", mounts).is_none());
        assert_eq!(
            mounted(mounts, |kind, _| kind == "cgroup2").unwrap(),
            Path::new("/sys/fs/cgroup/unified")
        );
    }
}
