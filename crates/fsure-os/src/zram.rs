//! Compressed disks in memory: a zram device of fsure with a file system on it.
//!
//! It is a device of the whole machine. So [`Zram`], with ext4 and for measuring, is
//! registered with the guard of the scratch folder before it is used, and nothing is
//! mounted where others would see it. What is to stay when this process ends is
//! made by [`add_zram`], [`make_xfs`] and [`crate::overmount::Detached::xfs`]; it is known by
//! its number and by its label, since a number can be another's later.
//!
//! Linux only; elsewhere everything here fails with `Unsupported`.

use std::path::PathBuf;

pub use crate::host::overmount::{add_zram, can_make_xfs, is_xfs_of, make_xfs, remove_zram};
pub use crate::host::zram::Zram;

/// `mkfs.xfs` makes none that is smaller. What is not used takes no memory.
pub const XFS_LEAST: u64 = 300 << 20;

/// The device of a number.
pub fn node(number: u32) -> PathBuf {
    format!("/dev/zram{number}").into()
}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::host::did_not_run;
    use crate::overmount::Detached;

    /// A test's turn: the number of a device that is gone is the next one's.
    pub(crate) struct Turn(fs::File);

    /// Waits for all tests before that have a device, in other processes, too.
    pub(crate) fn turn() -> Turn {
        let path = std::env::temp_dir().join("fsure-test-zram");
        let mut options = fs::File::options();
        let file = options.create(true).append(true).open(path).unwrap();
        file.lock().unwrap();
        Turn(file)
    }

    impl Drop for Turn {
        /// Said aloud, for what is being started has a copy.
        fn drop(&mut self) {
            let _ = self.0.unlock();
        }
    }

    /// Removed, whatever becomes of the test.
    struct TestZram(u32);

    impl Drop for TestZram {
        fn drop(&mut self) {
            let _ = remove_zram(self.0, "test");
        }
    }

    /// Tries again for a while: who looks what is on a new device may have it open.
    fn at_last(remove: impl Fn() -> std::io::Result<()>) {
        let begun = Instant::now();
        while let Err(error) = remove() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_device_of_fsure_is_recognised_by_its_label() {
        let (test, _turn) = ("a_device_of_fsure_is_recognised_by_its_label", turn());
        if let Err(error) = can_make_xfs() {
            return did_not_run(test, &error.to_string());
        }
        let device = TestZram(add_zram().unwrap());
        make_xfs(device.0, XFS_LEAST, "test").unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o2751)).unwrap();
        let mounted = Detached::xfs(device.0, folder.path()).unwrap();
        assert_eq!(fs::metadata(mounted.path()).unwrap().permissions().mode() & 0o7777, 0o2751);
        assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 0);
        fs::write(mounted.path().join("file"), "1").unwrap();
        let error = remove_zram(device.0, "test").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy, "it is mounted");
        drop(mounted);
        assert!(is_xfs_of(device.0, "test").unwrap() && !is_xfs_of(device.0, "other").unwrap());
        let error = remove_zram(device.0, "other").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "it is another's");
        assert!(node(device.0).exists());
        at_last(|| remove_zram(device.0, "test"));
        assert!(!node(device.0).exists());
        assert!(!is_xfs_of(device.0, "test").unwrap_or(false), "it is gone");
        remove_zram(device.0, "test").unwrap();
    }

    #[test]
    fn a_device_is_fsure_s_as_long_as_nothing_is_on_it() {
        let _turn = turn();
        let number = match add_zram() {
            Ok(number) => number,
            Err(error) => {
                let test = "a_device_is_fsure_s_as_long_as_nothing_is_on_it";
                return did_not_run(test, &error.to_string());
            }
        };
        remove_zram(number, "test").unwrap();
        assert!(!node(number).exists(), "it has no size");
        let number = add_zram().unwrap();
        fs::write(format!("/sys/block/zram{number}/disksize"), "1M").unwrap();
        let disk = fs::File::options().write(true).open(node(number)).unwrap();
        // Where a btrfs begins.
        disk.write_all_at(&[1; 4096], 1 << 16).unwrap();
        disk.sync_all().unwrap();
        drop(disk);
        let refused = remove_zram(number, "test").map_err(|error| error.kind());
        at_last(|| fs::write("/sys/class/zram-control/hot_remove", number.to_string()));
        assert_eq!(refused, Err(ErrorKind::AlreadyExists));
    }
}
