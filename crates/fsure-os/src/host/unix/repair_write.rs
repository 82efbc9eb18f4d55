//! Writing below a root: the folder a name is in is opened beneath the root
//! first, and then everything is done by that one name in it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::root_dir::{Root, c_string};
use crate::attributes_copied::AttributesCopied;
use crate::host::system::repair_write::{copy_attributes, drop_cached};
use crate::host::system::root_dir::stat_descriptor;
use crate::opener::not_that_file;
use crate::{Kind, Stat};

/// For its owner alone, until it has what its model has.
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file open for writing.
#[derive(Debug)]
pub struct Writing(File);

impl Writing {
    /// Writes all of it there.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    /// Cuts the file, or makes it longer by a hole.
    pub fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    /// Sets the modification time; that of the last access stays.
    pub fn set_date(&self, mtime_ns: i64) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.0, &timestamps(keep(), mtime_ns))?)
    }

    /// Waits until all of it is on the medium, and lets go of what is in memory,
    /// so that reading it says something of the medium.
    pub fn flush(&self) -> io::Result<()> {
        self.0.sync_all()?;
        drop_cached(self.0.as_fd());
        Ok(())
    }

    /// Its stat.
    pub fn stat(&self) -> io::Result<Stat> {
        stat_descriptor(&self.0)
    }
}

/// The file or folder that another one is to resemble.
#[derive(Debug)]
pub struct Model(OwnedFd);

impl Model {
    /// A file or folder below a root.
    pub fn open(root: &Root, path: &[u8]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let model = root.open_at(path, flags)?;
        match stat_descriptor(&model)?.kind {
            Kind::File | Kind::Folder => Ok(Self(model)),
            _ => Err(not_that_file()),
        }
    }

    fn times(&self) -> io::Result<Timestamps> {
        let stat = rustix::fs::fstat(&self.0)?;
        let time = |seconds: i64, ns: i64| Timespec { tv_sec: seconds as _, tv_nsec: ns as _ };
        Ok(Timestamps {
            last_access: time(stat.st_atime as _, stat.st_atime_nsec as _),
            last_modification: time(stat.st_mtime as _, stat.st_mtime_nsec as _),
        })
    }
}

/// A file that does not have a name of the user's yet. One that is dropped is gone.
#[derive(Debug)]
pub struct Draft {
    folder: OwnedFd,
    name: CString,
    writing: Writing,
    has_name: bool,
}

impl Draft {
    /// Begins a draft; `path` is where it lies until it has its name.
    pub fn create(root: &Root, path: &[u8]) -> io::Result<Self> {
        let (folder, name) = place(root, path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&folder, &*name, flags | OFlags::CLOEXEC, PRIVATE_FILE)?;
        Ok(Self { folder, name, writing: Writing(File::from(file)), has_name: false })
    }

    /// The file, to be written.
    pub fn writing(&self) -> &Writing {
        &self.writing
    }

    /// Gives it owner, mode, attributes and time of access of its model, and a
    /// date or else that of the model. `must` says that what the system refuses is
    /// an error.
    pub fn resemble(
        &self,
        model: &Model,
        mtime_ns: Option<i64>,
        must: bool,
    ) -> io::Result<AttributesCopied> {
        let file = self.writing.0.as_fd();
        let resembles = copy_attributes(model.0.as_fd(), file, must)?;
        let times = match (model.times()?, mtime_ns) {
            (times, Some(mtime_ns)) => timestamps(times.last_access, mtime_ns),
            (times, None) => times,
        };
        rustix::fs::futimens(file, &times)?;
        Ok(resembles)
    }

    /// Gives it the place of the file of that name in its folder, durably.
    pub fn replace(mut self, name: &[u8]) -> io::Result<()> {
        let name = plain_name(name)?;
        rustix::fs::renameat(&self.folder, &*self.name, &self.folder, &*name)?;
        self.has_name = true;
        self.flush_folder()
    }

    /// Gives it that name in its folder, durably, if nothing has it: otherwise
    /// fails with `AlreadyExists`.
    pub fn publish(mut self, name: &[u8]) -> io::Result<()> {
        let name = plain_name(name)?;
        let (folder, draft) = (&self.folder, &*self.name);
        match rustix::fs::renameat_with(folder, draft, folder, &*name, RenameFlags::NOREPLACE) {
            // The file system does not know of it: a second name is as good.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(folder, draft, folder, &*name, AtFlags::empty())?;
                rustix::fs::unlinkat(folder, draft, AtFlags::empty())?;
            }
            other => other?,
        }
        self.has_name = true;
        self.flush_folder()
    }

    fn flush_folder(&self) -> io::Result<()> {
        File::from(self.folder.try_clone()?).sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.has_name {
            // Where it fails, the next heal finds it noted.
            let _ = rustix::fs::unlinkat(&self.folder, &*self.name, AtFlags::empty());
        }
    }
}

/// See [`crate::repair_write::patch`].
pub(crate) fn patch(root: &Root, path: &[u8]) -> io::Result<Writing> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = root.open_at(path, flags)?;
    match stat_descriptor(&file)?.kind {
        Kind::File => Ok(Writing(File::from(file))),
        _ => Err(not_that_file()),
    }
}

/// See [`crate::repair_write::make_folder`].
pub(crate) fn make_folder(
    root: &Root,
    path: &[u8],
    model: Option<&Model>,
) -> io::Result<AttributesCopied> {
    let (folder, name) = place(root, path)?;
    rustix::fs::mkdirat(&folder, &*name, Mode::RWXU)?;
    let resembles = match model {
        Some(model) => {
            let made = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
            copy_attributes(model.0.as_fd(), made.as_fd(), false)?
        }
        None => AttributesCopied::InPart,
    };
    File::from(folder).sync_all()?;
    Ok(resembles)
}

/// See [`crate::repair_write::make_link`].
pub(crate) fn make_link(
    root: &Root,
    path: &[u8],
    target: &[u8],
    mtime_ns: Option<i64>,
) -> io::Result<()> {
    let (folder, name) = place(root, path)?;
    rustix::fs::symlinkat(&*c_string(target)?, &folder, &*name)?;
    if let Some(mtime_ns) = mtime_ns {
        let times = timestamps(keep(), mtime_ns);
        rustix::fs::utimensat(&folder, &*name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    File::from(folder).sync_all()
}

/// See [`crate::repair_write::link_file`].
pub(crate) fn link_file(root: &Root, path: &[u8], second: &[u8]) -> io::Result<()> {
    let (from, name) = place(root, path)?;
    let (to, second) = place(root, second)?;
    rustix::fs::linkat(&from, &*name, &to, &*second, AtFlags::empty())?;
    File::from(to).sync_all()
}

/// See [`crate::repair_write::move_file`].
pub(crate) fn move_file(root: &Root, path: &[u8], to: &[u8]) -> io::Result<()> {
    let (from, name) = place(root, path)?;
    let (folder, new) = place(root, to)?;
    match rustix::fs::renameat_with(&from, &*name, &folder, &*new, RenameFlags::NOREPLACE) {
        // The file system does not know of it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            if root.stat(to).is_ok() {
                return Err(Errno::EXIST.into());
            }
            rustix::fs::renameat(&from, &*name, &folder, &*new)?;
        }
        other => other?,
    }
    File::from(folder).sync_all()?;
    File::from(from).sync_all()
}

/// See [`crate::repair_write::has_no_links`].
pub(crate) fn has_no_links(error: &io::Error) -> bool {
    let unsupported = [Errno::PERM, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS, Errno::MLINK];
    Errno::from_io_error(error).is_some_and(|error| unsupported.contains(&error))
}

/// See [`crate::repair_write::flush_folder`].
pub(crate) fn flush_folder(root: &Root, path: &[u8]) -> io::Result<()> {
    File::from(root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?).sync_all()
}

/// See [`crate::repair_write::set_folder_date`].
pub(crate) fn set_folder_date(root: &Root, path: &[u8], mtime_ns: i64) -> io::Result<()> {
    let folder = root.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok(rustix::fs::futimens(&folder, &timestamps(keep(), mtime_ns))?)
}

/// See [`crate::repair_write::remove_file`].
pub(crate) fn remove_file(root: &Root, path: &[u8]) -> io::Result<()> {
    match root.stat(path) {
        Err(error) if super::root_dir::is_gone(&error) => return Ok(()),
        Ok(stat) if stat.kind == Kind::File => {}
        other => return other.and_then(|_| Err(not_that_file())),
    }
    let (folder, name) = place(root, path)?;
    rustix::fs::unlinkat(&folder, &*name, AtFlags::empty())?;
    File::from(folder).sync_all()
}

/// The folder a name is in, open so that it can be flushed, and the name.
fn place(root: &Root, path: &[u8]) -> io::Result<(OwnedFd, CString)> {
    let cut = path.iter().rposition(|byte| *byte == b'/');
    let (folder, name) = cut.map_or((&b""[..], path), |cut| (&path[..cut], &path[cut + 1..]));
    let folder = root.open_at(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok((folder, plain_name(name)?))
}

/// A name that stays in its folder.
fn plain_name(name: &[u8]) -> io::Result<CString> {
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
        return Err(Errno::INVAL.into());
    }
    c_string(name)
}

fn keep() -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ }
}

fn timestamps(last_access: Timespec, mtime_ns: i64) -> Timestamps {
    const SECOND: i64 = 1_000_000_000;
    let last_modification = Timespec {
        tv_sec: mtime_ns.div_euclid(SECOND) as _,
        tv_nsec: mtime_ns.rem_euclid(SECOND) as _,
    };
    Timestamps { last_access, last_modification }
}

/// Copies the owner and the mode of a model. If some of it is refused, no user gets a
/// right by what is left: neither to run it as another user nor as a member of a group.
pub(crate) fn copy_owner_and_mode(
    model: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    must: bool,
    attributes: impl FnOnce() -> io::Result<AttributesCopied>,
) -> io::Result<AttributesCopied> {
    let (wanted, now) = (rustix::fs::fstat(model)?, rustix::fs::fstat(file)?);
    let mut mode = Mode::from_raw_mode(wanted.st_mode);
    let mut resembles = AttributesCopied::Fully;
    if (wanted.st_uid, wanted.st_gid) != (now.st_uid, now.st_gid) {
        let owner = rustix::fs::Uid::from_raw(wanted.st_uid);
        let group = rustix::fs::Gid::from_raw(wanted.st_gid);
        match rustix::fs::fchown(file, Some(owner), Some(group)) {
            Err(error) if must => return Err(error.into()),
            Err(_) => resembles = AttributesCopied::InPart,
            Ok(()) => {}
        }
    }
    if attributes()? == AttributesCopied::InPart {
        resembles = AttributesCopied::InPart;
    }
    if resembles == AttributesCopied::InPart {
        // Another group's rights, or, without its ACL, what that only limits.
        mode -= Mode::SUID | Mode::SGID | Mode::RWXG;
    }
    // Last: a change of owner takes bits away, and an ACL is part of the mode.
    rustix::fs::fchmod(file, mode)?;
    Ok(resembles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_draft_is_there_as_a_whole_or_not_at_all() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/file"), "old").unwrap();
        let root = Root::open(tree.path()).unwrap();
        let draft = |content: &[u8]| {
            let draft = Draft::create(&root, b"sub/draft").unwrap();
            draft.writing().write_at(content, 0).unwrap();
            draft.writing().flush().unwrap();
            draft
        };
        drop(draft(b"dropped"));
        assert_eq!(std::fs::read_dir(at("sub")).unwrap().count(), 1);
        let refused = draft(b"new").publish(b"file").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(at("sub/file")).unwrap(), b"old");
        draft(b"new").replace(b"file").unwrap();
        draft(b"more").publish(b"other").unwrap();
        assert_eq!(std::fs::read(at("sub/file")).unwrap(), b"new");
        assert_eq!(std::fs::read(at("sub/other")).unwrap(), b"more");
        assert_eq!(std::fs::read_dir(at("sub")).unwrap().count(), 2);
        assert!(Draft::create(&root, b"sub/file").is_err(), "nothing is opened that is there");
    }

    #[test]
    fn nothing_is_written_through_a_link_or_above_the_root() {
        let tree = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("file"), "precious").unwrap();
        symlink(outside.path(), tree.path().join("way")).unwrap();
        symlink(outside.path().join("file"), tree.path().join("file")).unwrap();
        std::fs::create_dir(tree.path().join("root")).unwrap();
        std::fs::write(tree.path().join("real"), "").unwrap();
        std::fs::write(tree.path().join("root/real"), "").unwrap();
        for root in ["", "root"].map(|root| Root::open(&tree.path().join(root)).unwrap()) {
            for path in [&b"way/file"[..], b"../file", b"..", b"file", b"", b"."] {
                assert!(patch(&root, path).is_err(), "{}", path.escape_ascii());
                // A link is not a file that it removes, and what is behind one is not there.
                let _ = remove_file(&root, path);
            }
            for path in [&b"way/x"[..], b"../x", b".."] {
                assert!(make_folder(&root, path, None).is_err());
                assert!(make_link(&root, path, b"t", None).is_err());
                assert!(link_file(&root, b"real", path).is_err());
                assert!(link_file(&root, path, b"second").is_err());
                assert!(Model::open(&root, path).is_err());
                assert!(Draft::create(&root, path).is_err());
            }
        }
        assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"precious");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_user_gains_rights_from_a_refused_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| std::fs::File::create(folder.path().join(name)).unwrap();
        let (model, copy) = (file("model"), file("copy"));
        model.set_permissions(std::fs::Permissions::from_mode(0o6775)).unwrap();
        let mode = || copy.metadata().unwrap().permissions().mode() & 0o7777;
        for (attributes, left) in
            [(AttributesCopied::Fully, 0o6775), (AttributesCopied::InPart, 0o705)]
        {
            let done = copy_owner_and_mode(model.as_fd(), copy.as_fd(), false, || Ok(attributes));
            assert_eq!((done.unwrap(), mode()), (attributes, left));
        }
    }

    #[test]
    fn it_is_like_its_model() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::write(at("model"), "").unwrap();
        std::fs::set_permissions(at("model"), std::fs::Permissions::from_mode(0o4741)).unwrap();
        let root = Root::open(tree.path()).unwrap();
        let model = Model::open(&root, b"model").unwrap();
        let draft = Draft::create(&root, b"draft").unwrap();
        assert_eq!(draft.resemble(&model, Some(-1), true).unwrap(), AttributesCopied::Fully);
        draft.publish(b"copy").unwrap();
        assert_eq!(std::fs::metadata(at("copy")).unwrap().permissions().mode() & 0o7777, 0o4741);
        assert_eq!(root.stat(b"copy").unwrap().mtime_ns, -1);
        make_link(&root, b"link", b"nowhere", Some(7)).unwrap();
        assert_eq!(root.stat(b"link").unwrap().mtime_ns, 7);
        make_folder(&root, b"folder", None).unwrap();
        link_file(&root, b"copy", b"folder/second").unwrap();
        link_file(&root, b"link", b"folder/second").unwrap_err();
        link_file(&root, b"link", b"folder/link").unwrap();
        flush_folder(&root, b"folder").unwrap();
        let inode = |path: &[u8]| root.stat(path).unwrap().inode;
        assert_eq!(inode(b"folder/second"), inode(b"copy"));
        assert_eq!(root.stat(b"folder/link").unwrap().kind, Kind::Link, "not what it leads to");
        set_folder_date(&root, b"folder", 9).unwrap();
        assert_eq!(root.stat(b"folder").unwrap().mtime_ns, 9);
    }
}
