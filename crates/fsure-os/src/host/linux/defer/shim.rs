//! The library to preload, as a file. Its path stays in the environment of
//! daemons that outlive fsure, and of all that they start, as root too: so it must
//! never come to mean another file. It lies where only root or the user whose
//! command it is can put one, for as long as the system runs.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// Empty where it could not be built.
const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// Many systems let nothing be executed in the first.
const HOMES_OF_ROOT: [&str; 2] = ["/run/fsure", "/var/lib/fsure"];
const RUNTIME: &str = "XDG_RUNTIME_DIR";

const OF_OTHERS: u32 = 0o022;
/// Programs of other users load it, too, if the command starts them.
const FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// The file, which is made where it is not there. Fails where this machine has no
/// place for it.
pub(super) fn file() -> io::Result<PathBuf> {
    if SHIM.is_empty() {
        let why = "built without the library to preload: use '--backend seccomp'";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let mut reasons = Vec::new();
    for home in homes() {
        match prepare(&home).and_then(|home| file_in(&home)) {
            Ok(file) => return Ok(file),
            Err(error) => reasons.push(format!("{}: {error}", home.display())),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!("{RUNTIME} is not set"));
    }
    let reasons = reasons.join("; ");
    let why = format!("no place for the library to preload ({reasons}): use '--backend seccomp'");
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn homes() -> Vec<PathBuf> {
    if user() == 0 {
        return HOMES_OF_ROOT.map(PathBuf::from).to_vec();
    }
    let runtime = std::env::var_os(RUNTIME).map(PathBuf::from);
    runtime.filter(|path| path.is_absolute()).map(|path| path.join("fsure")).into_iter().collect()
}

/// Makes a folder, and makes sure that it is the right one: only root and this user can
/// change the way to it, a loader can be pointed to it, and what is in it can be executed.
fn prepare(home: &Path) -> io::Result<PathBuf> {
    let refused = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let mut builder = std::fs::DirBuilder::new();
    match builder.mode(FOLDER_MODE).create(home) {
        Ok(()) => std::fs::set_permissions(home, Permissions::from_mode(FOLDER_MODE))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let home = std::fs::canonicalize(home)?;
    // A loader parts its list there, and puts other things in the place of a '$'.
    let parts = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b':' | b'$');
    if home.as_os_str().as_bytes().iter().any(parts) {
        return Err(refused("the dynamic loader cannot load a file of that name".to_owned()));
    }
    for folder in home.ancestors() {
        if !is_changed_by_this_user_alone(&std::fs::symlink_metadata(folder)?, user()) {
            return Err(refused(format!(
                "other users can change the content of {}",
                folder.display()
            )));
        }
    }
    if rustix::fs::statvfs(&home)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(refused("mounted with 'noexec'".to_owned()));
    }
    Ok(home)
}

/// Returns true if only root and this user can change a file or folder. A folder to which
/// other users can only add is not enough: they might own the replacement of a name that
/// was removed.
fn is_changed_by_this_user_alone(it: &Metadata, user: u32) -> bool {
    (it.uid() == 0 || it.uid() == user) && it.mode() & OF_OTHERS == 0
}

/// The file in its folder, which only root and this user can change: so what is not as it
/// should be was left half made.
fn file_in(home: &Path) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    SHIM.hash(&mut hasher);
    let name = format!("shim-{:016x}.so", hasher.finish());
    let path = home.join(&name);
    if is_the_shim(&path) {
        return Ok(path);
    }
    let making = home.join(format!("{name}.making-{}", std::process::id()));
    let _ = std::fs::remove_file(&making);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&making)?;
    let made = file
        .write_all(SHIM)
        .and_then(|()| file.set_permissions(Permissions::from_mode(FILE_MODE)))
        .and_then(|()| std::fs::rename(&making, &path));
    made.inspect_err(|_| drop(std::fs::remove_file(&making)))?;
    Ok(path)
}

fn is_the_shim(path: &Path) -> bool {
    let is = || {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let meta = file.metadata()?;
        let is_right = meta.is_file() && meta.mode() & 0o7777 == FILE_MODE;
        if !is_right
            || !is_changed_by_this_user_alone(&meta, user())
            || meta.len() != SHIM.len() as u64
        {
            return Ok(false);
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        io::Result::Ok(content == SHIM)
    };
    is().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Duration;

    use super::super::shared::Shared;
    use super::super::shared_page::{FAILED, OPEN, OWNER_DIED};
    use super::super::{PAGE, PRELOAD};
    use super::*;

    #[test]
    fn what_is_not_the_library_is_replaced_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_in(folder.path()).unwrap();
        let number = || std::fs::metadata(&path).unwrap().ino();
        let first = number();
        assert_eq!((file_in(folder.path()).unwrap(), number()), (path.clone(), first), "as it is");
        let other = folder.path().join("other");
        let spoil: [&dyn Fn(); 4] = [
            &|| std::fs::write(&path, &SHIM[..SHIM.len() / 2]).unwrap(),
            &|| std::fs::write(&path, vec![b'x'; SHIM.len()]).unwrap(),
            &|| std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap(),
            &|| {
                std::fs::rename(&path, &other).unwrap();
                std::os::unix::fs::symlink(&other, &path).unwrap();
            },
        ];
        for (case, spoil) in spoil.iter().enumerate() {
            spoil();
            assert!(!is_the_shim(&path), "{case}");
            assert_eq!(file_in(folder.path()).unwrap(), path);
            assert!(is_the_shim(&path), "{case}");
        }
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "it and the other: nothing half made is left");
    }

    #[test]
    fn a_folder_in_which_others_can_write_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        std::fs::create_dir(&open).unwrap();
        // As /tmp: what is there stays its owner's, and its name does not.
        std::fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        let error = prepare(&open.join("fsure")).unwrap_err();
        assert!(error.to_string().contains("other users can change the content of"), "{error}");
        let spaced = prepare(&folder.path().join("a b")).unwrap_err();
        assert!(
            spaced.to_string().contains("the dynamic loader cannot load a file of that name"),
            "{spaced}"
        );
        let meta = std::fs::metadata(folder.path()).unwrap();
        assert!(
            is_changed_by_this_user_alone(&meta, user())
                && (user() == 0 || !is_changed_by_this_user_alone(&meta, 0))
        );
    }

    /// Runs a program that calls `fdatasync` with a page that is found at `place`;
    /// how many of its calls went by that page.
    fn met(shim: &Path, place: &std::ffi::OsStr, page: &Shared) -> u64 {
        let file = shim.with_file_name("data");
        std::fs::write(&file, "data").unwrap();
        let before = page.passed.load(SeqCst);
        let mut run = Command::new("sync");
        run.arg("-d").arg(&file).env(PAGE, place).env(PRELOAD, shim);
        let output = run.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        page.passed.load(SeqCst) - before
    }

    /// The path to the page outlives the process in it, whose number another process
    /// gets: what is found there then is not believed.
    #[test]
    fn only_the_page_of_this_run_and_of_this_user_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let shim = file_in(folder.path()).unwrap();
        let page = Shared::new(Duration::from_secs(3_600), &[]).unwrap();
        page.become_(OPEN);
        let place = page.place();
        assert_eq!(met(&shim, &place, &page), 0, "nobody flushes");
        page.owner.store(1, SeqCst);
        assert_eq!(met(&shim, &place, &page), 1);
        page.owner.store(1 | OWNER_DIED, SeqCst);
        assert_eq!(met(&shim, &place, &page), 0, "who flushed is gone");
        page.state.store(FAILED, SeqCst);
        assert_eq!(met(&shim, &place, &page), 1, "because a flush has failed");
        page.state.store(OPEN, SeqCst);
        page.owner.store(1, SeqCst);
        let number = page.number.swap(7, SeqCst);
        assert_eq!(met(&shim, &place, &page), 0, "of another run");
        page.number.store(number, SeqCst);
        let magic = page.magic.swap(7, SeqCst);
        assert_eq!(met(&shim, &place, &page), 0, "of another version");
        page.magic.store(magic, SeqCst);
        let plain = &place.to_str().unwrap()[super::super::shared_page::DIGITS..];
        assert_eq!(met(&shim, plain.as_ref(), &page), 0, "without a number");
        // A file with the same content, which another process could make shorter.
        let copy = folder.path().join("copy");
        std::fs::copy(plain, &copy).unwrap();
        let mut named = place.to_str().unwrap()[..super::super::shared_page::DIGITS].to_owned();
        named.push_str(copy.to_str().unwrap());
        let before = std::fs::read(&copy).unwrap();
        assert_eq!(met(&shim, named.as_ref(), &page), 0);
        assert_eq!(std::fs::read(&copy).unwrap(), before, "nor written to");
        assert_eq!(met(&shim, &place, &page), 1);
        if user() == 0 {
            std::os::unix::fs::chown(plain, Some(65_534), None).unwrap();
            assert_eq!(met(&shim, &place, &page), 0, "of another user");
        }
    }
}
