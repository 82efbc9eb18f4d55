//! A file system made to hold still: its writers wait, and what is read from it is of
//! one moment. Only one with a device can (xfs, ext4, btrfs), a folder in memory not.
//!
//! A process that freezes a file system and dies leaves every program that writes to it
//! waiting for ever. So a guard process is there before anything is frozen: it thaws
//! when this process has ended, in whatever way. What was left frozen without a guard is
//! thawed by [`FreezeGuard::of`], and by [`thaw`].
//!
//! Linux only; elsewhere [`FreezeGuard::of`] fails with `Unsupported`.

use std::io;
use std::path::Path;

use crate::host;

/// A file system that can be frozen. Dropping it thaws.
#[derive(Debug)]
pub struct FreezeGuard(host::freeze::FreezeGuard);

impl FreezeGuard {
    /// The file system of a folder, thawed if it is frozen, and a guard for it. Waits
    /// until the guard of one before it has ended, which has the same file locked: one
    /// that no other user can open, and that is made if it is not there. Fails with
    /// `TimedOut` if it stays locked.
    pub fn of(folder: &Path, lock: &Path) -> io::Result<Self> {
        host::freeze::FreezeGuard::of(folder, lock).map(Self)
    }

    /// Freezes the file system: from here on nothing changes. Processes that write
    /// wait, this one too, which cannot be killed then. Fails with `Unsupported` if
    /// the file system cannot be frozen.
    pub fn freeze(&self) -> io::Result<()> {
        self.0.freeze()
    }

    /// Lets the writers go on. Fails where it is not frozen.
    pub fn thaw(&self) -> io::Result<()> {
        self.0.thaw()
    }
}

/// Thaws the file system of a folder, and returns true if it was frozen.
pub fn thaw(folder: &Path) -> io::Result<bool> {
    host::freeze::thaw(folder)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::os::unix::process::CommandExt as _;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::host::did_not_run;
    use crate::private_mounts::Namespace;
    use crate::scratch_dir::Scratch;
    use crate::zram::Zram;
    use crate::zram::tests::turn;

    /// The timeout of the tests: an event that takes longer never comes.
    const EVENT_TIMEOUT: Duration = Duration::from_secs(60);
    /// The environment variable with the folder that the test program is to
    /// freeze, before it is killed.
    const FROZEN: &str = "FSURE_TEST_FREEZE";
    const MARKER: &str = "FSURE_TEST_FROZEN";
    const LOCK: &str = "FSURE_TEST_LOCK";

    fn zram(test: &str, folder: &Path) -> Option<(Zram, Arc<Scratch>)> {
        let scratch = Arc::new(Scratch::create(folder, None).unwrap());
        let at = scratch.path().join("zram");
        fs::create_dir(&at).unwrap();
        let made = Namespace::new()
            .and_then(|space| Zram::create(&scratch, &space, (64 << 20, 96 << 20), &at));
        match made {
            Ok(zram) => Some((zram, scratch)),
            Err(error) => {
                did_not_run(test, &error.to_string());
                None
            }
        }
    }

    /// Starts a thread that writes to a file, and then sends a message.
    fn writer(file: PathBuf) -> std::sync::mpsc::Receiver<()> {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            fs::write(file, "1").unwrap();
            let _ = done.send(());
        });
        is_done
    }

    #[test]
    fn writers_wait_and_go_on() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let Some((zram, _scratch)) = zram("writers_wait_and_go_on", folder.path()) else { return };
        let still = FreezeGuard::of(&zram.path(), &folder.path().join("lock")).unwrap();
        assert!(still.thaw().is_err(), "it was not frozen");
        for round in 0..3 {
            still.freeze().unwrap();
            let file = zram.path().join(format!("file{round}"));
            let written = writer(file.clone());
            written.recv_timeout(Duration::from_millis(100)).unwrap_err();
            assert!(!file.exists(), "it is frozen");
            still.thaw().unwrap();
            written.recv_timeout(EVENT_TIMEOUT).expect("it was thawed");
        }
        still.freeze().unwrap();
        drop(still);
        writer(zram.path().join("last")).recv_timeout(EVENT_TIMEOUT).expect("it was thawed");
    }

    #[test]
    fn a_kill_while_it_is_frozen_leaves_no_process_waiting() {
        if let Some(folder) = std::env::var_os(FROZEN) {
            let lock = std::env::var_os(LOCK).unwrap();
            let still = FreezeGuard::of(Path::new(&folder), Path::new(&lock)).unwrap();
            still.freeze().unwrap();
            // Said by a name, and then killed. One that writes there itself could not be:
            // who waits for a thaw takes no signal.
            fs::write(std::env::var_os(MARKER).unwrap(), "").unwrap();
            loop {
                std::thread::park();
            }
        }
        let (test, _turn) = ("a_kill_while_it_is_frozen_leaves_no_process_waiting", turn());
        let folder = tempfile::tempdir().unwrap();
        let Some((zram, _scratch)) = zram(test, folder.path()) else { return };
        let [marker, lock] = ["frozen", "lock"].map(|name| folder.path().join(name));
        for _ in 0..5 {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([
                "--exact",
                "freeze::tests::a_kill_while_it_is_frozen_leaves_no_process_waiting",
            ]);
            command.env(FROZEN, zram.path()).env(MARKER, &marker).env(LOCK, &lock);
            let mut child = command.process_group(0).spawn().unwrap();
            let began = Instant::now();
            while !marker.exists() {
                assert!(child.try_wait().unwrap().is_none(), "it ended");
                assert!(began.elapsed() < EVENT_TIMEOUT, "it was never frozen");
                std::thread::sleep(Duration::from_millis(1));
            }
            let written = writer(zram.path().join("file"));
            written.recv_timeout(Duration::from_millis(50)).unwrap_err();
            child.kill().unwrap();
            child.wait().unwrap();
            written.recv_timeout(EVENT_TIMEOUT).expect("its guard thaws");
            fs::remove_file(&marker).unwrap();
            // The next one waits for the guard.
            let still = FreezeGuard::of(&zram.path(), &lock).unwrap();
            still.freeze().unwrap();
            assert!(thaw(&zram.path()).unwrap());
            assert!(!thaw(&zram.path()).unwrap());
        }
    }

    #[test]
    fn a_lock_on_the_folder_is_in_nobodys_way() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let test = "a_lock_on_the_folder_is_in_nobodys_way";
        let Some((zram, _scratch)) = zram(test, folder.path()) else { return };
        // As any user can who may open it.
        let theirs = fs::File::open(zram.path()).unwrap();
        theirs.lock().unwrap();
        let lock = folder.path().join("lock");
        let (done, is_done) = std::sync::mpsc::channel();
        let (path, own_lock) = (zram.path(), lock.clone());
        std::thread::spawn(move || {
            let still = FreezeGuard::of(&path, &own_lock).unwrap();
            still.freeze().and_then(|()| still.thaw()).unwrap();
            drop(still);
            let _ = done.send(());
        });
        is_done.recv_timeout(EVENT_TIMEOUT).expect("it waits for who has the folder locked");
        drop(theirs);
        let held = fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        let error = FreezeGuard::of(&zram.path(), &lock).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }

    #[test]
    fn a_file_system_that_cannot_freeze_returns_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let Ok(still) = FreezeGuard::of(Path::new("/dev/shm"), &folder.path().join("lock")) else {
            return did_not_run(
                "a_file_system_that_cannot_freeze_returns_an_error",
                "needs root and /dev/shm",
            );
        };
        assert_eq!(still.freeze().unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
