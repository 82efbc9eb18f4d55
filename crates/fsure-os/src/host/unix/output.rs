//! The end of a path: through links, to a descriptor of this process, a FIFO or a
//! device.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::io::IsTerminal as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, XattrFlags, fsetxattr, lgetxattr};

use crate::output_destination::{Destination, refused};
use crate::path::{FileKind, kind};

/// The most links in a row that Linux follows.
const LINKS_MAX: usize = 40;

/// See [`Destination::of`].
pub(crate) fn destination(path: &Path) -> io::Result<Destination> {
    // The system's own answer first: it refuses loops, and links that other users have
    // planted in a folder that all users share. Reading links by hand would follow those.
    let there = match std::fs::metadata(path) {
        Ok(there) => Some((there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(refused(FileKind::Folder));
    }
    let mut path = path.to_owned();
    for _ in 0..=LINKS_MAX {
        let Some(name) = path.file_name() else { return Err(refused(FileKind::Folder)) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
        if let Some(number) = descriptor(&folder, name.as_encoded_bytes()) {
            return Ok(Destination::Descriptor(number));
        }
        let entry = folder.join(name);
        match kind(&entry)? {
            None if there.is_none() => return Ok(Destination::File(entry)),
            Some(FileKind::File) if is(&entry, there) => return Ok(Destination::File(entry)),
            // A descriptor of another process can seem to link to such a path.
            None | Some(FileKind::File) => {
                let why = "the file that it leads to was renamed or deleted";
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            }
            Some(FileKind::Fifo) => return Ok(Destination::Fifo(entry)),
            Some(FileKind::CharacterDevice) => return Ok(Destination::Device(entry)),
            Some(FileKind::Link) => path = folder.join(std::fs::read_link(&entry)?),
            Some(kind) => return Err(refused(kind)),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many links in a row"))
}

/// Returns whether an entry is the file of that device and inode.
fn is(entry: &Path, there: Option<(u64, u64)>) -> bool {
    let entry = std::fs::symlink_metadata(entry).ok();
    entry.map(|entry| (entry.dev(), entry.ino())) == there
}

/// The number of the descriptor that a name in a folder stands for: these names are not
/// files, and what they seem to link to may have no name any more.
fn descriptor(folder: &Path, name: &[u8]) -> Option<i32> {
    let process = PathBuf::from(format!("/proc/{}", std::process::id()));
    let is_of_thread = || {
        let threads = folder.strip_prefix(process.join("task")).ok();
        threads.is_some_and(|rest| rest.components().count() == 2 && rest.ends_with("fd"))
    };
    let is_of_process = folder == Path::new("/dev/fd") || folder == process.join("fd");
    if !is_of_process && !is_of_thread() {
        return None;
    }
    str::from_utf8(name).ok()?.parse().ok().filter(|number| *number >= 0)
}

/// The number from which on descriptors are not standard streams.
const BEYOND_STANDARD: i32 = 3;

/// Makes a second descriptor of what one that this process was started with is open on.
/// One that fsure has opened itself is refused: that may be its own record.
pub(crate) fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: a call by number, which fails if nothing is open under it.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return Err(not_passed(number));
    }
    // An inherited descriptor has lost this flag on the way, and one that is opened here
    // has it.
    if number >= BEYOND_STANDARD && flags & libc::FD_CLOEXEC != 0 {
        return Err(not_passed(number));
    }
    // SAFETY: a call by number, which fails if nothing is open under it.
    let second = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if second < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made a moment ago, and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(second) }.into())
}

fn not_passed(number: i32) -> io::Error {
    let why = format!(
        "fsure was started without an open descriptor {number}; open one with '{number}>FILE' \
         or '{number}<FILE'"
    );
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Opens a FIFO or a device to write to it. A FIFO without a reader is not waited for.
pub(crate) fn open_stream(path: &Path, wanted: FileKind) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.write(true).custom_flags(flags).open(path)?;
    if FileKind::of(file.metadata()?.file_type()) != wanted {
        return Err(io::Error::other("it was replaced in the meantime"));
    }
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Returns whether a FIFO could not be opened because no program reads it.
pub(crate) fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
}

/// Returns whether it is a terminal, which has an end: the user types one.
pub(crate) fn is_terminal(file: &File) -> bool {
    file.is_terminal()
}

/// Makes a file that is created be for its owner alone.
pub(crate) fn owner_only(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// The attribute that holds an access list, on Linux.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The most bytes that an attribute has on Linux.
const ATTRIBUTE_BYTES_MAX: usize = 1 << 16;
/// Permissions of the group; the mask, where there is an access list.
const GROUP_BITS: u32 = 0o070;

/// Gives a file the owner, the group, the mode and the access list of another. What cannot
/// be given, by a user who is not root for example, is given to no other user instead.
pub(crate) fn copy_permissions(file: &File, model: &Path) -> io::Result<()> {
    let model_is = std::fs::symlink_metadata(model)?;
    let _ = fchown(file, Some(model_is.uid()), None);
    let has_group = fchown(file, None, Some(model_is.gid())).is_ok();
    let mut list = vec![0; ATTRIBUTE_BYTES_MAX];
    let has_list = match lgetxattr(model, ACCESS_LIST, &mut list[..]) {
        Ok(length) => fsetxattr(file, ACCESS_LIST, &list[..length], XattrFlags::empty()).is_ok(),
        // It has none.
        Err(_) => true,
    };
    let mode = model_is.mode() & 0o777;
    let mode = if has_group && has_list { mode } else { mode & !GROUP_BITS };
    file.set_permissions(Permissions::from_mode(mode))
}

/// True if descriptor 1 was open when this process was started.
static HAD_STANDARD_OUTPUT: AtomicBool = AtomicBool::new(true);

/// Called by the loader. Before `main` the standard library opens `/dev/null` under each
/// standard number that is closed, and from then on nothing tells the two apart.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static NOTE_STANDARD_OUTPUT: extern "C" fn() = {
    extern "C" fn note() {
        // SAFETY: a call by number, which fails if nothing is open under it.
        let is_open = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } >= 0;
        HAD_STANDARD_OUTPUT.store(is_open, Ordering::Relaxed);
    }
    note
};

/// See [`crate::output::standard_output`].
pub(crate) fn had_standard_output() -> bool {
    // A reference, so that no linker takes it for unused.
    let _ = std::hint::black_box(&NOTE_STANDARD_OUTPUT);
    HAD_STANDARD_OUTPUT.load(Ordering::Relaxed)
}
