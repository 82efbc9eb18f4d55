//! Each test has a thread with mounts of its own, on which it does what a daemon
//! does on a machine.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::*;
use crate::host::did_not_run;
use crate::tree_copy::Side;

/// Runs a test where no other process sees what it mounts. Says so if it cannot.
fn alone(name: &'static str, test: fn(&Path)) {
    let thread = std::thread::spawn(move || {
        // SAFETY: the thread is the test's own, and no descriptors are unshared.
        if let Err(errno) = unsafe { unshare_unsafe(UnshareFlags::NEWNS) } {
            return did_not_run(name, &format!("needs root, for mounts of its own: {errno}"));
        }
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        let folder = tempfile::tempdir().unwrap();
        test(&folder.path().canonicalize().unwrap());
    });
    thread.join().unwrap();
}

fn ram(bytes: u64) -> Ram {
    Ram { source: "fsure:test".to_owned(), bytes, inodes: 1000, huge: true }
}

fn make(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir(&path).unwrap();
    path
}

/// Unmounts. A process that another test is just starting has a copy of the descriptors
/// of this process until its `exec`, and so long the mount is in use.
fn away(at: &Path) {
    let began = Instant::now();
    while let Err(error) = unmount(at) {
        assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
        assert!(began.elapsed() < Duration::from_secs(60), "in use for ever: {}", at.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A shell that has done something and waits until it is killed.
struct Shell(Child);

impl Shell {
    fn new(does: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{does}; echo; read -r end")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(shell)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_folder_is_covered_at_one_stroke_and_uncovered_by_a_plain_unmount() {
    alone("a_folder_is_covered", |folder| {
        let (dir, place) = (make(folder, "dir"), make(folder, "place"));
        fs::write(dir.join("file"), "disk").unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o1770)).unwrap();
        let disk = Detached::clone_of(&dir).unwrap();
        disk.publish_privately(&place).unwrap();
        let detached = Detached::ram(&ram(1 << 24), &dir).unwrap();
        fs::write(detached.path().join("file"), "memory").unwrap();
        assert_eq!(fs::read(dir.join("file")).unwrap(), b"disk", "seen before its time");
        detached.publish(&dir).unwrap();
        assert_eq!(fs::read(dir.join("file")).unwrap(), b"memory");
        assert_eq!(fs::read(place.join("file")).unwrap(), b"disk");
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o1770);
        let mount = mount_at(&dir).unwrap();
        assert_eq!((&*mount.source, &*mount.kind, &mount.point), ("fsure:test", "tmpfs", &dir));
        assert_eq!(mount.device, fs::metadata(&dir).unwrap().dev());
        assert_eq!(space(&dir).unwrap().bytes, 1 << 24);
        Top::open(&dir).unwrap().resize(1 << 25, 2000).unwrap();
        let now = space(&dir).unwrap();
        assert_eq!((now.bytes, now.inodes), (1 << 25, 2000));
        away(&dir);
        assert_eq!(fs::read(dir.join("file")).unwrap(), b"disk");
        away(&place);
    });
}

#[test]
fn what_is_open_for_writing_anywhere_is_not_made_read_only() {
    alone("what_is_open_for_writing", |folder| {
        let dir = make(folder, "dir");
        Detached::ram(&ram(1 << 24), &dir).unwrap().publish(&dir).unwrap();
        let path = dir.display();
        // In a namespace that hears of nothing that happens here.
        let unshare = "unshare -m --propagation private sh -c";
        let shell = Shell::new(&format!("exec 3>{path}/open"));
        assert_eq!(set_read_only(&dir, true).unwrap_err().kind(), ErrorKind::ResourceBusy);
        drop(shell);
        let device = mount_at(&dir).unwrap().device;
        let mut elsewhere = Command::new("sh");
        elsewhere.args(["-c", &format!("{unshare} 'echo; read -r go; echo x > {path}/late'")]);
        elsewhere.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut elsewhere = elsewhere.spawn().unwrap();
        elsewhere.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        set_read_only(&dir, true).unwrap();
        let there = mounted_elsewhere(device).unwrap();
        assert!(there.iter().any(|one| one.point == dir), "{there:?}");
        assert!(fs::write(dir.join("file"), "x").is_err());
        drop(elsewhere.stdin.take());
        assert!(!elsewhere.wait().unwrap().success(), "written behind our back");
        set_read_only(&dir, false).unwrap();
        fs::write(dir.join("file"), "x").unwrap();
        away(&dir);
    });
}

#[test]
fn the_holders_of_a_folder_are_found() {
    alone("the_holders_of_a_folder_are_found", |folder| {
        let dir = make(folder, "dir");
        Detached::ram(&ram(1 << 24), &dir).unwrap().publish(&dir).unwrap();
        let device = mount_at(&dir).unwrap().device;
        let path = dir.display();
        fs::write(dir.join("read"), "x").unwrap();
        for (does, how) in [
            (format!("cd {path}"), HoldKind::Works),
            (format!("exec 3>{path}/file"), HoldKind::Writes),
            (format!("exec 3<{path}/read"), HoldKind::Reads),
            (format!("exec 3<{path}"), HoldKind::Folder),
        ] {
            let shell = Shell::new(&does);
            let held = holders_of_mounts(&[std::process::id()], device).unwrap();
            assert_eq!(held.len(), 1, "{does}: {held:?}");
            assert_eq!((held[0].process, held[0].how), (shell.0.id(), how), "{does}");
            assert_eq!(unmount(&dir).unwrap_err().kind(), ErrorKind::ResourceBusy);
        }
        assert_eq!(holders_of_mounts(&[std::process::id()], device).unwrap(), []);
        away(&dir);
    });
}

/// Its first thread has ended, and another has a file open and mapped.
const HEADLESS: &str = "
import ctypes, mmap, sys, threading, time
file = open(sys.argv[1], 'r+b')
mapped = mmap.mmap(file.fileno(), 4096)
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)
";

#[test]
fn a_process_without_its_first_thread_holds_what_it_held() {
    alone("a_process_without_its_first_thread", |folder| {
        let file = folder.join("file");
        fs::write(&file, [0; 4096]).unwrap();
        let mut command = Command::new("python3");
        command.arg("-c").arg(HEADLESS).arg(&file).stdin(Stdio::piped());
        let Ok(child) = command.spawn() else {
            return did_not_run("a_process_without_its_first_thread", "no python3");
        };
        let (process, began) = (Shell(child), Instant::now());
        let stat = format!("/proc/{}/stat", process.0.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            assert!(began.elapsed() < Duration::from_secs(60), "its first thread goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        let is = fs::metadata(&file).unwrap();
        let (device, inode) = (is.dev(), is.ino());
        let held = holders(&[], &|on, of| (on, of) == (device, inode)).unwrap();
        let found = held.iter().map(|holder| (holder.process, holder.how));
        assert!(found.eq([(process.0.id(), HoldKind::Writes)]), "{held:?}");
        assert!(Side::open(folder).unwrap().mapped().unwrap().contains(&inode));
    });
}

#[test]
fn a_survey_finds_what_does_not_go_into_memory() {
    alone("a_survey", |folder| {
        let (dir, other) = (make(folder, "dir"), make(folder, "other"));
        let below = make(&dir, "below");
        make(&dir, ".mine");
        fs::write(dir.join(".mine/file"), "x").unwrap();
        fs::write(dir.join("file"), vec![1; 5000]).unwrap();
        fs::hard_link(dir.join("file"), below.join("same")).unwrap();
        fs::write(below.join("leaves"), "x").unwrap();
        fs::hard_link(below.join("leaves"), other.join("outside")).unwrap();
        fs::File::create(dir.join("hole")).unwrap().set_len(1 << 30).unwrap();
        drop(std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap());
        let nested = make(&dir, "nested");
        Detached::ram(&ram(1 << 20), &nested).unwrap().publish(&nested).unwrap();
        let before = survey(&dir, ".mine").unwrap();
        assert_eq!(before.bytes, 8192 + 4096);
        assert_eq!(before.content, (4, 2 * 5000 + 1 + (1 << 30)));
        assert_eq!(before.linked_outside, [below.join("leaves")]);
        assert_eq!(before.sockets, [dir.join("socket")]);
        assert_eq!(before.mounts, std::slice::from_ref(&nested));
        assert!(before.differences(&survey(&dir, ".mine").unwrap(), 9).is_empty());
        fs::write(below.join("leaves"), "y").unwrap();
        fs::remove_file(dir.join("hole")).unwrap();
        let changed = survey(&dir, ".mine").unwrap().differences(&before, 9);
        assert_eq!(changed, [Path::new("below/leaves"), Path::new("hole")]);
        away(&nested);
    });
}

#[test]
fn what_is_mounted_in_it_is_not_there() {
    alone("what_is_mounted_in_it_is_not_there", |folder| {
        // As on most machines: what is mounted comes to all clones of where it is.
        let tree = make(folder, "tree");
        Detached::ram(&ram(1 << 20), folder).unwrap().publish(&tree).unwrap();
        mount_change(&tree, MountPropagationFlags::SHARED).unwrap();
        let dir = make(&tree, "dir");
        Detached::ram(&ram(1 << 24), &dir).unwrap().publish(&dir).unwrap();
        let device = mount_at(&dir).unwrap().device;
        let below = make(&dir, "below");
        fs::write(below.join("file"), "ours").unwrap();
        assert!(DetachedView::of(&tree, device).is_err(), "another file system");
        let bare = DetachedView::of(&dir, device).unwrap();
        let plain = Side::open(&dir).unwrap();
        Detached::ram(&ram(1 << 20), &below).unwrap().publish(&below).unwrap();
        fs::write(below.join("file"), "somebody else's").unwrap();
        assert_eq!(fs::read(bare.path().join("below/file")).unwrap(), b"ours");
        let side = Side::open(&bare.path()).unwrap();
        assert_eq!(side.list(b"").unwrap().len(), 1);
        assert_eq!(side.list(b"below").unwrap()[0].1.size, 4);
        // Without it, nothing of that is taken for the folder's own.
        let error = plain.list(b"").unwrap_err();
        assert!(error.to_string().contains("mounted on below"), "{error}");
        assert!(plain.facts(b"below").is_err() && plain.facts(b"below/file").is_err());
        assert!(plain.list(b"below").is_err() && plain.read(b"below/file").is_err());
        away(&below);
        assert_eq!(plain.list(b"below").unwrap()[0].1.size, 4);
        drop((side, plain));
        assert_eq!(unmount(&dir).unwrap_err().kind(), ErrorKind::ResourceBusy, "it is held");
        drop(bare);
        away(&dir);
        away(&tree);
    });
}

#[test]
fn a_file_that_is_a_disk_is_found_under_any_name() {
    alone("a_file_that_is_a_disk", |folder| {
        let [dir, other] = ["dir", "other"].map(|name| make(folder, name));
        let tree = make(folder, "tree");
        Detached::ram(&ram(1 << 24), folder).unwrap().publish(&tree).unwrap();
        // Attached by a name that is not text, and in another place.
        rustix::mount::mount_bind(&tree, &dir).unwrap();
        let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"a \xff b");
        for name in [name, "not".as_ref()] {
            fs::File::create(tree.join(name)).unwrap().set_len(1 << 20).unwrap();
        }
        let disks = |of: &Path| {
            let is = fs::metadata(of).unwrap();
            let is_meant = |device, inode| (device, inode) == (is.dev(), is.ino());
            block_devices_on(&is_meant).unwrap()
        };
        assert!(disks(&tree.join(name)).is_empty());
        let mut attach = Command::new("losetup");
        let attach = attach.args(["--find", "--show"]).arg(dir.join(name)).output();
        let Some(attached) = attach.ok().filter(|it| it.status.success()) else {
            away(&dir);
            away(&tree);
            return did_not_run("a_file_that_is_a_disk", "losetup makes no disk");
        };
        let found = [disks(&tree.join(name)), disks(&tree.join("not")), disks(&other)];
        let node = String::from_utf8(attached.stdout).unwrap();
        let detached = Command::new("losetup").args(["-d", node.trim()]).status().unwrap();
        assert!(detached.success());
        assert_eq!(found.each_ref().map(Vec::len), [1, 0, 0], "{found:?}");
        away(&dir);
        away(&tree);
    });
}
