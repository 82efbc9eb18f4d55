//! Attributes on Linux. There are no calls that take a folder's descriptor and
//! a name before Linux 6.13; through `/proc/self/fd` the folder is the one that
//! was opened, whatever it is called now, and the last component is not
//! followed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use crate::host::root_dir::c_string;

/// True if access lists (ACLs) can be read on this system.
pub const HAS_ACCESS_LISTS: bool = true;

/// The way to a name.
pub(crate) struct Reach {
    path: CString,
    /// Open for as long as the path is used.
    _folder: Option<OwnedFd>,
}

impl Reach {
    pub(crate) fn to(
        root: BorrowedFd<'_>,
        folder: Option<OwnedFd>,
        name: CString,
    ) -> io::Result<Self> {
        let number = folder.as_ref().map_or(root.as_raw_fd(), |folder| folder.as_raw_fd());
        let start = format!("/proc/self/fd/{number}/").into_bytes();
        let path = c_string(&[start, name.into_bytes()].concat())?;
        Ok(Self { path, _folder: folder })
    }

    pub(crate) fn list(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match buffer {
            [] => rustix::fs::llistxattr_query(&*self.path),
            _ => rustix::fs::llistxattr(&*self.path, buffer),
        }
        .map_err(without_proc)
    }

    pub(crate) fn get(&self, name: &CStr, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match buffer {
            [] => rustix::fs::lgetxattr_query(&*self.path, name),
            _ => rustix::fs::lgetxattr(&*self.path, name, buffer),
        }
        .map_err(without_proc)
    }

    pub(crate) fn set(
        &self,
        name: &CStr,
        value: &[u8],
        flags: XattrFlags,
    ) -> rustix::io::Result<()> {
        rustix::fs::lsetxattr(&*self.path, name, value, flags).map_err(without_proc)
    }

    pub(crate) fn remove(&self, name: &CStr) -> rustix::io::Result<()> {
        rustix::fs::lremovexattr(&*self.path, name).map_err(without_proc)
    }
}

/// Without `/proc` nothing is found, which must not pass for a file that is
/// gone.
fn without_proc(error: Errno) -> Errno {
    let is_mounted = || rustix::fs::access("/proc/self/fd", rustix::fs::Access::EXISTS).is_ok();
    if error == Errno::NOENT && !is_mounted() { Errno::NOSYS } else { error }
}

/// The mode, with the bits for its kind.
pub(crate) fn mode_of(stat: &rustix::fs::Stat) -> u32 {
    stat.st_mode
}

/// Returns true if the error means that the file does not have the attribute, or that
/// there are no attributes at all.
pub(crate) fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NODATA | Errno::OPNOTSUPP)
}

/// Returns true if this process sees attributes of the namespace `trusted`. For other
/// processes they do not seem to exist.
pub fn sees_trusted() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

#[cfg(test)]
mod tests {
    use crate::file_attributes::Node;
    use crate::host::linux::file::did_not_run;
    use crate::root_dir::Root;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn attributes_are_the_name_s_own() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::open(tree.path()).unwrap();
        std::fs::create_dir(tree.path().join("d")).unwrap();
        std::fs::write(tree.path().join("d/f"), "x").unwrap();
        symlink("d/f", tree.path().join("l")).unwrap();
        std::fs::set_permissions(tree.path().join("d/f"), PermissionsExt::from_mode(0o640))
            .unwrap();
        let file = Node::at(&root, b"d/f").unwrap();
        assert_eq!(file.ownership().unwrap().mode, 0o640);
        assert_eq!(file.attribute(b"user.none").unwrap(), None);
        if let Err(error) = file.set_attribute(b"user.a", b"\xff\0") {
            return did_not_run("attributes_are_the_name_s_own", &error.to_string());
        }
        let long = vec![7; 3000];
        file.set_attribute(b"user.b", &long).unwrap();
        let mut names = file.attribute_names().unwrap();
        names.retain(|name| name.starts_with(b"user."));
        names.sort();
        assert_eq!(names, [b"user.a", b"user.b"]);
        assert_eq!(file.attribute(b"user.a").unwrap().unwrap(), b"\xff\0");
        assert_eq!(file.attribute(b"user.b").unwrap().unwrap(), long);
        // The link's own, of which it can have none of these.
        let link = Node::at(&root, b"l").unwrap();
        assert_eq!(link.ownership().unwrap().mode, 0o777);
        assert_eq!(link.attribute(b"user.a").unwrap(), None);
        assert!(link.set_attribute(b"user.a", b"").is_err());
        file.remove_attribute(b"user.a").unwrap();
        file.remove_attribute(b"user.a").unwrap();
        assert_eq!(file.attribute(b"user.a").unwrap(), None);
        assert!(crate::root_dir::is_gone(
            &Node::at(&root, b"none").and_then(|n| n.ownership()).unwrap_err()
        ));
        assert!(Node::at(&root, b"l/f").is_err(), "through a link");
    }
}
