//! The files of a folder held in memory: mapped and locked, so that the page
//! cache cannot drop them. There is no second copy and nothing to lose: a write to such a
//! file goes to the disk as usual.
//!
//! Changes in the folder are followed: a new, replaced or grown file is
//! mapped, too, and a deleted one is unmapped at once, because its space on the disk is
//! held as long as it is mapped. The kernel unmaps all of them when the process ends.
//!
//! Linux only; elsewhere [`Pin::new`] fails with `Unsupported`.

use std::io;
use std::path::PathBuf;

pub use crate::host::mlock::Pin;

/// The files that are held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Files.
    pub files: u64,
    /// Bytes, in whole pages.
    pub bytes: u64,
    /// Files that are not held, and folders that cannot be followed, by their paths
    /// below the folder, and the reasons.
    pub left_out: Vec<(PathBuf, String)>,
}

/// The reason for which nothing is held.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is more than may be held.
    #[error("{bytes} bytes in {files} files are more than fsure may pin")]
    TooLarge {
        /// Files in the folder.
        files: u64,
        /// Their bytes, in whole pages.
        bytes: u64,
    },
    /// The user cannot lock that much.
    #[error("RLIMIT_MEMLOCK is {limit} bytes")]
    Limit {
        /// Bytes that the user may lock.
        limit: u64,
        /// Bytes to be locked.
        bytes: u64,
    },
    /// A process cannot have that many mappings.
    #[error("vm.max_map_count is less than {files} files need")]
    TooManyFiles {
        /// Files to be mapped.
        files: u64,
    },
    /// The user cannot watch that many folders.
    #[error("fs.inotify.max_user_watches is {limit:?}")]
    TooManyFolders {
        /// Folders that all programs of the user may watch; `None` if that is not known.
        limit: Option<u64>,
    },
    /// It was to end before all was held.
    #[error("it ended before all was in memory")]
    Over,
    /// The system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::host::did_not_run;
    use crate::opener::Opener;
    use crate::read::ReadMode;
    use crate::root_dir::Root;

    const PAGE: u64 = 4096;
    const PLENTY: u64 = 1 << 30;
    const NEVER: fn() -> bool = || false;

    /// A folder on a disk; what is in memory anyway cannot be let go of.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    /// Bytes of a file in memory after the system was asked to let go of it.
    fn kept(file: &Path) -> Option<u64> {
        fs::File::open(file).unwrap().sync_all().unwrap();
        let root = Arc::new(Root::open(file.parent().unwrap()).unwrap());
        let name = file.file_name().unwrap().as_encoded_bytes();
        let (source, _) = Opener::new(root, ReadMode::Cached).open(name, true).unwrap();
        source.evict();
        source.in_memory()
    }

    fn lock_files(pin: &mut Pin) -> Held {
        pin.lock_files(PLENTY, &NEVER).unwrap()
    }

    /// Settles until it is so: an event may be on its way.
    fn until(pin: &mut Pin, is_so: impl Fn(&Held) -> bool) -> Held {
        let begun = Instant::now();
        loop {
            pin.wait(Duration::from_millis(10)).unwrap();
            let held = lock_files(pin);
            if is_so(&held) {
                return held;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{held:?}");
        }
    }

    fn write(file: &Path, pages: u64) {
        fs::write(file, vec![b'x'; usize::try_from(pages * PAGE).unwrap()]).unwrap();
    }

    /// Returns the KiB of a file that this process has locked, by the kernel's own count.
    fn locked_kib(file: &Path) -> u64 {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let name = file.to_str().unwrap();
        let mut lines = maps.lines().skip_while(|line| !line.ends_with(name));
        let line = lines.find_map(|line| line.strip_prefix("Locked:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
    }

    #[test]
    fn what_is_pinned_stays_and_what_is_not_goes() {
        let folder = folder();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        write(&one, 8);
        write(&two, 8);
        fs::write(folder.path().join("empty"), "").unwrap();
        if kept(&one) != Some(0) {
            let why = "this file system keeps what it is asked to let go of";
            return did_not_run("what_is_pinned_stays", why);
        }
        let mut pin = Pin::new(folder.path()).unwrap();
        assert!(matches!(
            pin.lock_files(15 * PAGE, &NEVER),
            Err(Refused::TooLarge { files: 2, bytes }) if bytes == 16 * PAGE
        ));
        drop(pin);
        let mut pin = Pin::new(folder.path()).unwrap();
        let held = lock_files(&mut pin);
        assert_eq!((held.files, held.bytes, held.left_out.len()), (2, 16 * PAGE, 0));
        assert_eq!(locked_kib(&one), 32, "locked, and not just in memory");
        assert_eq!((kept(&one), kept(&two)), (Some(8 * PAGE), Some(8 * PAGE)));
        drop(pin);
        assert_eq!((kept(&one), kept(&two)), (Some(0), Some(0)));
    }

    #[test]
    fn what_is_rewritten_in_place_is_held_again() {
        let folder = folder();
        let file = folder.path().join("file");
        write(&file, 8);
        if kept(&file) != Some(0) {
            let why = "this file system keeps what it is asked to let go of";
            return did_not_run("what_is_rewritten_in_place", why);
        }
        let mut pin = Pin::new(folder.path()).unwrap();
        lock_files(&mut pin);
        // Of the same size, and at once: its dates may be the same, too.
        for _ in 0..5 {
            write(&file, 8);
            assert!(pin.wait(Duration::ZERO).unwrap());
            assert_eq!(lock_files(&mut pin).bytes, 8 * PAGE);
            assert_eq!(kept(&file), Some(8 * PAGE));
        }
    }

    /// Does `work` as a user to whom the file system does not open everything.
    fn as_nobody<T>(work: impl FnOnce() -> T) -> T {
        let become_user = |user: libc::uid_t| {
            // SAFETY: a call with a number, which is about this thread alone.
            unsafe { libc::setfsuid(user) };
        };
        become_user(65_534);
        let done = work();
        become_user(rustix::process::geteuid().as_raw());
        done
    }

    #[test]
    fn what_cannot_be_listed_is_held_on_to() {
        let folder = folder();
        let mode = |path: &Path, mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(path, mode).unwrap();
        };
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        write(&below.join("file"), 2);
        let mut pin = Pin::new(folder.path()).unwrap();
        assert_eq!(lock_files(&mut pin).files, 1);
        for (shut, name) in [(&*below, "below"), (folder.path(), ".")] {
            write(&shut.join("new"), 1);
            mode(shut, 0);
            pin.wait(Duration::ZERO).unwrap();
            let held = as_nobody(|| lock_files(&mut pin));
            assert!(held.bytes >= 2 * PAGE, "{held:?}");
            assert_eq!(held.left_out.len(), 1, "{held:?}");
            assert_eq!(held.left_out[0].0, Path::new(name));
            assert!(held.left_out[0].1.contains("denied"), "{held:?}");
            assert!(pin.has_trouble());
            mode(shut, 0o755);
            let held = lock_files(&mut pin);
            assert_eq!(held.left_out, []);
            assert!(!pin.has_trouble());
        }
        assert_eq!(lock_files(&mut pin).bytes, 4 * PAGE);
        // A folder that cannot be entered is named, too, and entered later.
        let new = folder.path().join("new folder");
        fs::create_dir(&new).unwrap();
        write(&new.join("file"), 1);
        mode(&new, 0);
        pin.wait(Duration::ZERO).unwrap();
        let held = as_nobody(|| lock_files(&mut pin));
        assert_eq!(held.left_out[0].0, Path::new("new folder"), "{held:?}");
        mode(&new, 0o755);
        assert_eq!(lock_files(&mut pin).bytes, 5 * PAGE);
    }

    #[test]
    fn it_ends_between_files() {
        let folder = folder();
        write(&folder.path().join("file"), 1);
        let mut pin = Pin::new(folder.path()).unwrap();
        assert!(matches!(pin.lock_files(PLENTY, &|| true), Err(Refused::Over)));
    }

    #[test]
    fn a_folder_is_known_under_its_path() {
        let folder = folder();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        fs::create_dir(&one).unwrap();
        let pin = Pin::new(&one).unwrap();
        assert!(pin.is_at(&one));
        fs::rename(&one, &other).unwrap();
        assert!(!pin.is_at(&one) && pin.is_at(&other) && !pin.is_gone());
        fs::create_dir(&one).unwrap();
        assert!(!pin.is_at(&one), "another one");
    }

    #[test]
    fn changes_are_followed() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        write(&at("file"), 1);
        let mut pin = Pin::new(folder.path()).unwrap();
        assert_eq!(lock_files(&mut pin).bytes, PAGE);
        // New, in a new folder, which may have been there before its watch was.
        fs::create_dir_all(at("a/b")).unwrap();
        write(&at("a/b/deep"), 2);
        let held = until(&mut pin, |held| held.bytes == 3 * PAGE);
        assert_eq!(held.files, 2);
        // Grown by one that holds it open, and shorter again.
        let mut log = fs::OpenOptions::new().append(true).open(at("file")).unwrap();
        log.write_all(&[b'y'; 4096 * 3]).unwrap();
        until(&mut pin, |held| held.bytes == 6 * PAGE);
        assert!(kept(&at("file")).is_none_or(|bytes| bytes >= 4 * PAGE));
        log.set_len(PAGE).unwrap();
        until(&mut pin, |held| held.bytes == 3 * PAGE);
        // Replaced.
        write(&at("new"), 5);
        fs::rename(at("new"), at("file")).unwrap();
        until(&mut pin, |held| held.bytes == 7 * PAGE && held.files == 2);
        assert!(kept(&at("file")).is_none_or(|bytes| bytes == 5 * PAGE));
        // A folder that moves, and one that goes.
        fs::rename(at("a/b"), at("c")).unwrap();
        write(&at("c/more"), 1);
        until(&mut pin, |held| held.bytes == 8 * PAGE && held.files == 3);
        fs::remove_dir_all(at("c")).unwrap();
        until(&mut pin, |held| held.bytes == 5 * PAGE && held.files == 1);
        assert!(!pin.is_gone());
        fs::remove_dir_all(folder.path()).unwrap();
        until(&mut pin, |held| held.files == 0);
        assert!(pin.is_gone());
    }

    #[test]
    fn the_space_of_a_deleted_file_is_freed() {
        let folder = folder();
        let file = folder.path().join("file");
        write(&file, 1);
        let held_open = fs::File::open(&file).unwrap();
        let mut pin = Pin::new(folder.path()).unwrap();
        lock_files(&mut pin);
        let maps = |name: &str| fs::read_to_string("/proc/self/maps").unwrap().contains(name);
        let name = file.to_str().unwrap();
        assert!(maps(name));
        fs::remove_file(&file).unwrap();
        until(&mut pin, |held| held.files == 0);
        assert!(!maps(name), "a deleted file is still mapped");
        drop(held_open);
    }

    #[test]
    fn more_than_may_be_held_is_left_out() {
        let folder = folder();
        write(&folder.path().join("first"), 2);
        let mut pin = Pin::new(folder.path()).unwrap();
        assert_eq!(pin.lock_files(4 * PAGE, &NEVER).unwrap().bytes, 2 * PAGE);
        write(&folder.path().join("more"), 3);
        let begun = Instant::now();
        loop {
            pin.wait(Duration::from_millis(10)).unwrap();
            let held = pin.lock_files(4 * PAGE, &NEVER).unwrap();
            assert_eq!(held.bytes, 2 * PAGE);
            if let [(path, why)] = &held.left_out[..] {
                assert_eq!(path, Path::new("more"));
                assert_eq!(why, "there is not enough memory for it");
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{held:?}");
        }
    }

    #[test]
    fn no_link_is_followed() {
        let (folder, outside) = (folder(), folder());
        write(&outside.path().join("file"), 1);
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("file"), folder.path().join("f")).unwrap();
        let mut pin = Pin::new(folder.path()).unwrap();
        assert_eq!(lock_files(&mut pin), Held::default());
    }
}
