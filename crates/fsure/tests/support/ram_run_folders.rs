//! Folders for `fsure ram run`, of the user that runs the tests and of the user `nobody`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::skip;

pub const NOBODY: u32 = 65_534;

/// The user that runs the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The user that runs the tests.
    Own,
    /// The user `nobody`, who needs a user name space.
    Nobody,
}

/// A folder of that user, on a disk.
pub struct Place {
    pub user: User,
    pub home: TempDir,
}

/// Returns the users that this machine can test; skips the others.
pub fn users(test: &str) -> Vec<User> {
    let is_root = rustix::process::geteuid().is_root();
    let mut users = vec![User::Own];
    if is_root {
        users.push(User::Nobody);
    } else {
        skip(test, "only root can be somebody else");
    }
    users.retain(|user| {
        let place = Place::new(*user);
        let output = match place.run(&[], "true").output() {
            // Where it was built may be a folder that only root sees.
            Err(error) if *user == User::Nobody && error.kind() == ErrorKind::PermissionDenied => {
                skip(test, &format!("{user:?} cannot start the program where it is"));
                return false;
            }
            output => output.unwrap(),
        };
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_able = !words.contains("namespaces") && !words.contains("already in memory");
        if !is_able {
            skip(test, &format!("{user:?}: {words}"));
        }
        is_able
    });
    users
}

impl Place {
    pub fn new(user: User) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = Self { user, home };
        fs::create_dir(place.folder()).unwrap();
        place.give(&place.folder());
        place
    }

    pub fn folder(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("hot")
    }

    pub fn give(&self, path: &Path) {
        if self.user == User::Nobody {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.folder().join(name);
        fs::write(&path, content).unwrap();
        self.give(&path);
    }

    /// The command, in the folder as it is in memory.
    pub fn run(&self, options: &[&str], script: &str) -> Command {
        self.run_in(&[&self.folder()], options, script)
    }

    pub fn run_in(&self, folders: &[&Path], options: &[&str], script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(["ram", "run"]).args(options).args(folders).args(["--", "sh", "-c"]);
        command.arg(format!("cd {} || exit 99\n{script}", folders[0].display()));
        command.current_dir(self.home.path()).stdin(Stdio::null());
        if self.user == User::Nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder().join(name)).ok()
    }

    /// Asserts that nothing of fsure is left.
    pub fn assert_clean(&self) {
        assert!(!self.folder().join(".fsure-ram").exists(), "something of ours is left");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.folder().to_str().unwrap()), "something is mounted");
    }
}

pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
