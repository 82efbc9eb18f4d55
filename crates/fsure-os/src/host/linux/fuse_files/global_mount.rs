//! A mount of FUSE's that all processes see, from its making to its end.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fuser::{BackgroundSession, Config, Filesystem, Session, SessionACL};

use super::fuse::{Kind, mount_for_all};
use super::guard::{Guard, mount_id};

/// A FUSE mount that all processes see. A process that is in it when it ends stays in it,
/// and is served as long as this process lives: the end does not wait for it.
pub(in crate::host::linux) struct Public {
    /// First: what is not mounted any more is not looked at any more.
    _guard: Guard,
    _session: BackgroundSession,
}

impl Public {
    pub(in crate::host::linux) fn new(
        filesystem: impl Filesystem,
        place: &Path,
        kind: Kind<'_>,
        acl: SessionACL,
    ) -> io::Result<Self> {
        let guard = Guard::new(place)?;
        let device = mount_for_all(place, kind)?;
        guard.mounted()?;
        let session = Session::from_fd(filesystem, device, acl, Config::default())?;
        Ok(Self { _guard: guard, _session: session.spawn()? })
    }
}

/// That a folder of the user's can be mounted over with nothing lost to sight.
pub(in crate::host::linux) fn require_unused(place: &Path) -> io::Result<()> {
    let id = |path: &Path| -> io::Result<u64> {
        Ok(mount_id(&CString::new(path.as_os_str().as_bytes())?)?)
    };
    let above = place.parent().unwrap_or(place);
    if id(place)? != id(above)? {
        let why = "something is mounted there already: unmount it, or name an empty folder";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    if std::fs::read_dir(place)?.next().is_some() {
        let why = "there are files in it, which the mount would hide: name an empty folder";
        return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, why));
    }
    Ok(())
}
