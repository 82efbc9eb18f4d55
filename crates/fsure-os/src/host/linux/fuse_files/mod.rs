//! A file system of fsure in a folder: who serves it, and who sees it. See
//! [`crate::fuse_files`].

mod copy;
mod fuse;
mod global_mount;
mod guard;
mod namespace;
mod view;

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, Session, SessionACL};

use crate::fuse_files::{Clocked, VirtualFs};
pub(crate) use copy::copy_out;
pub(super) use fuse::{Kind, mount_by_right};
pub(super) use global_mount::{Public, require_unused};
use namespace::{Space, enter};
use view::FuseView;

const REMEDY: &str = "a simulated folder needs /dev/fuse, and one of: root; user namespaces and a \
                      /dev/fuse that this user can open (chmod 666 /dev/fuse); or fusermount3 \
                      (package fuse3)";

pub(crate) struct ServedFs {
    place: PathBuf,
    seen: MountVisibility,
}

/// By whom it is seen.
enum MountVisibility {
    /// By those who are in a name space, which is ended before the session is
    /// joined.
    By(Option<Space>, Option<BackgroundSession>),
    ByAll {
        _mount: Public,
    },
}

impl fmt::Debug for ServedFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Front").field(&self.place).finish()
    }
}

impl ServedFs {
    pub(crate) fn private(files: Arc<Clocked<impl VirtualFs>>, at: &Path) -> io::Result<Self> {
        let place = at.canonicalize()?;
        let (space, device) = match Space::with_mount(&place) {
            Ok(made) => made,
            // Even a user name space is refused: the last that may mount.
            Err(first) => {
                return Self::shown(files, "fsure", &place)
                    .map_err(|last| refused(&format!("{first}; {last}")));
            }
        };
        let mut config = Config::default();
        config.acl = if space.is_for_all() { SessionACL::All } else { SessionACL::Owner };
        let session = Session::from_fd(FuseView::new(files), device, config.acl, config.clone());
        let session = session.and_then(Session::spawn)?;
        Ok(Self { place, seen: MountVisibility::By(Some(space), Some(session)) })
    }

    pub(crate) fn public(
        files: Arc<Clocked<impl VirtualFs>>,
        source: &str,
        at: &Path,
    ) -> io::Result<Self> {
        let place = at.canonicalize()?;
        require_unused(&place)?;
        Self::shown(files, source, &place).map_err(|error| refused(&error.to_string()))
    }

    fn shown(files: Arc<Clocked<impl VirtualFs>>, source: &str, place: &Path) -> io::Result<Self> {
        let (acl, options) = if rustix::process::geteuid().is_root() {
            (SessionACL::All, ",default_permissions,allow_other")
        } else {
            (SessionACL::Owner, ",default_permissions")
        };
        let kind = Kind { source, name: "files", options };
        let _mount = Public::new(FuseView::new(files), place, kind, acl)?;
        Ok(Self { place: place.to_owned(), seen: MountVisibility::ByAll { _mount } })
    }

    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    pub(crate) fn start(&self, mut command: Command) -> io::Result<Child> {
        // Not in the folder yet: until its exec the child has a copy of the descriptor
        // by which that is served. If this process were killed then, the child would wait
        // for ever for what it alone could answer.
        if let MountVisibility::By(Some(space), _) = &self.seen {
            let spaces = space.spaces();
            // SAFETY: between fork and exec only system calls are made, on
            // descriptors that are open as long as this is borrowed.
            unsafe { command.pre_exec(move || enter(spaces)) };
        }
        command.spawn()
    }
}

/// Returns the error for a mount that is not permitted, with a remedy. It is not about
/// permission to a path, so its kind is not `PermissionDenied`.
pub(in crate::host::linux) fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{REMEDY}; here: {}", why.trim()))
}

impl Drop for ServedFs {
    fn drop(&mut self) {
        let MountVisibility::By(space, session) = &mut self.seen else { return };
        let is_ended = space.take().is_none_or(|space| space.end().is_ok());
        if let Some(session) = session.take().filter(|_| is_ended) {
            // If it is in use, it is served as long as this process lives.
            let _ = session.join();
        }
    }
}
