//! Mounts of this process that no other process sees, and that are gone with this one,
//! however it ends.
//!
//! A mount namespace belongs to a thread and to those that it starts. So one
//! thread is started for it and does nothing but mount and unmount; all others
//! stay where they are, and reach a mount by its descriptor: [`Mount::path`] is
//! good in every thread and in every process of this user, and leads nowhere
//! once the mount is dropped. Without root it is a process in a user namespace.
//!
//! Linux only; elsewhere [`Namespace::new`] fails with `Unsupported`.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use crate::host::private_mounts::{Mount, Namespace};

/// The time for which something may be in use before it is left mounted.
const BUSY_MAX: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Does something again and again while the system says that what it is about is in use:
/// a process that only looks at a mount is gone in a moment.
pub fn retry_while_busy(mut act: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match act() {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && began.elapsed() < BUSY_MAX => {}
            other => return other,
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The kind of a mount, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// A folder in memory.
    Ram {
        /// Bytes that it takes at most.
        bytes: u64,
        /// `huge=within_size`: in huge pages, as far as a file fills them.
        huge: bool,
    },
    /// A folder at a second place.
    Bind(PathBuf),
    /// One folder over another, which stays as it is.
    Overlay {
        /// The one that is read.
        lower: PathBuf,
        /// The one that receives changes.
        upper: PathBuf,
        /// Room on the file system of `upper`.
        work: PathBuf,
    },
    /// A block device.
    Device {
        /// Its node.
        node: PathBuf,
        /// Its file system: `ext4`.
        kind: &'static str,
    },
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::host::did_not_run;

    /// Returns the mount table of this thread.
    fn mounted() -> String {
        fs::read_to_string("/proc/self/mountinfo").unwrap()
    }

    fn make(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir(&path).unwrap();
        path
    }

    /// As root, and as a user who is not.
    fn spaces(test: &str) -> Vec<Namespace> {
        let spaces = [Namespace::new(), Namespace::of_process()];
        let available = spaces.into_iter().filter_map(|space| {
            space.inspect_err(|error| did_not_run(test, &error.to_string())).ok()
        });
        available.collect()
    }

    #[test]
    fn no_other_process_sees_them_and_all_with_the_path_use_them() {
        spaces("no_other_process_sees_them").iter().for_each(see_a_ram_disk);
    }

    fn see_a_ram_disk(space: &Namespace) {
        let folder = tempfile::tempdir().unwrap();
        let place = make(folder.path(), "ram");
        for huge in [false, true] {
            let ram = space.mount(&MountKind::Ram { bytes: 1 << 24, huge }, &place).unwrap();
            fs::write(ram.path().join("file"), "content").unwrap();
            let path = ram.path();
            let read = std::thread::spawn(move || fs::read(path.join("file")).unwrap());
            assert_eq!(read.join().unwrap(), b"content");
            assert!(!place.join("file").exists(), "visible outside");
            assert!(!mounted().contains(place.to_str().unwrap()));
            let cat = std::process::Command::new("cat").arg(ram.path().join("file")).output();
            assert_eq!(cat.unwrap().stdout, b"content");
            assert!(fs::write(ram.path().join("large"), vec![1; 1 << 25]).is_err(), "no limit");
            ram.unmount().unwrap();
        }
    }

    #[test]
    fn a_bind_and_an_overlay_show_what_is_below() {
        spaces("a_bind_and_an_overlay").iter().for_each(see_a_bind_and_an_overlay);
    }

    fn see_a_bind_and_an_overlay(space: &Namespace) {
        let folder = tempfile::tempdir().unwrap();
        let [ram, bound, over, lower] =
            ["ram", "bound", "over", "lower"].map(|name| make(folder.path(), name));
        fs::write(lower.join("old"), "below").unwrap();
        let ram = space.mount(&MountKind::Ram { bytes: 1 << 24, huge: false }, &ram).unwrap();
        let bound = space.mount(&MountKind::Bind(ram.path()), &bound).unwrap();
        fs::write(bound.path().join("file"), "content").unwrap();
        assert_eq!(fs::read(ram.path().join("file")).unwrap(), b"content");
        let [upper, work] = ["upper", "work"].map(|name| make(&ram.path(), name));
        let what = MountKind::Overlay { lower: lower.clone(), upper: upper.clone(), work };
        let over = space.mount(&what, &over).unwrap();
        assert_eq!(fs::read(over.path().join("old")).unwrap(), b"below");
        fs::write(over.path().join("old"), "above").unwrap();
        assert_eq!(fs::read(lower.join("old")).unwrap(), b"below");
        assert_eq!(fs::read(upper.join("old")).unwrap(), b"above");
        let open = fs::File::open(bound.path().join("file")).unwrap();
        // Never lazily: what is in use stays mounted, and says so.
        assert!(bound.unmount().is_err());
        drop(open);
        over.unmount().unwrap();
    }

    #[test]
    fn the_missing_feature_is_named() {
        for space in spaces("the_missing_feature_is_named") {
            let folder = tempfile::tempdir().unwrap();
            let error =
                space.mount(&MountKind::Bind("/nonexistent".into()), folder.path()).unwrap_err();
            assert!(error.to_string().contains("/nonexistent"), "{error}");
        }
    }

    #[test]
    fn without_root_a_device_is_refused_and_nothing_is_left_behind() {
        let space = match Namespace::of_process() {
            Ok(space) => space,
            Err(error) => return did_not_run("without_root_a_device", &error.to_string()),
        };
        let folder = tempfile::tempdir().unwrap();
        let what = MountKind::Device { node: "/dev/null".into(), kind: "ext4" };
        let error = space.mount(&what, folder.path()).unwrap_err();
        assert!(error.to_string().starts_with("needs root"), "{error}");
        let ram =
            space.mount(&MountKind::Ram { bytes: 1 << 20, huge: false }, folder.path()).unwrap();
        // Another test may open a descriptor of the same number at once, of a file system that
        // gets the same device number.
        let file = ram.path().join("of this test");
        fs::write(&file, "content").unwrap();
        assert!(file.exists());
        drop((space, ram));
        assert!(!file.exists());
    }
}
