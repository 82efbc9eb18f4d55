//! A command in namespaces of its own, as the user who runs the tests: root needs no user
//! name space, other users do. They take turns, since each is a copy of this process.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::*;
use crate::host::did_not_run;
use crate::process_tree::Ended;

/// The first process of one would hold the locks of another, as a copy of this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn enter(test: &str, place: &Path, script: &str) -> Option<MountSandbox> {
    let cover = Overlay { place: place.canonicalize().unwrap(), bytes: 1 << 24, names: 1000 };
    let command = ["sh", "-c", script, place.to_str().unwrap()].map(OsString::from);
    match MountSandbox::enter(&[cover], &command) {
        Ok(inside) => Some(inside),
        Err(error) => {
            did_not_run(test, &error.to_string());
            None
        }
    }
}

/// A keeper that writes what it finds in memory to the disk side when all is over.
/// Its arguments are the first process, the disk side and the memory.
const KEEPER: &str = "while read -r line < /proc/self/fdinfo/$0 && grep -q '^Pid:.[1-9]' \
    /proc/self/fdinfo/$0; do sleep 0.01; done; cp -r /proc/self/fd/$2/. /proc/self/fd/$1/";

#[test]
fn only_the_command_sees_memory() {
    let test = "only_the_command_sees_memory";
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    fs::set_permissions(place, fs::Permissions::from_mode(0o751)).unwrap();
    fs::write(place.join("disk"), "1").unwrap();
    let script = r#"cd "$0" && test ! -e disk && test $$ -lt 9 && test "$(stat -c %a .)" = 751 &&
        echo made > made && (sleep 1000 & echo later > later) && exit 7"#;
    let Some(inside) = enter(test, place, script) else { return };
    let mut keeper = inside.keep("sh".as_ref(), &["-c".into(), KEEPER.into()]).unwrap();
    assert_eq!(inside.run().unwrap().ended, Ended::Code(7));
    drop(inside);
    assert!(keeper.wait().unwrap().success());
    for (name, content) in [("disk", "1"), ("made", "made\n"), ("later", "later\n")] {
        assert_eq!(fs::read_to_string(place.join(name)).unwrap(), content);
    }
}

#[test]
fn the_end_of_the_command_is_returned() {
    let test = "the_end_of_the_command_is_returned";
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for (script, expected) in [
        ("exit 0", Ended::Code(0)),
        ("kill -TERM $$", Ended::Signal(15)),
        ("kill -9 $$", Ended::Signal(9)),
    ] {
        let Some(inside) = enter(test, folder.path(), script) else { return };
        assert_eq!(inside.run().unwrap().ended, expected, "{script}");
    }
    let cover =
        Overlay { place: folder.path().canonicalize().unwrap(), bytes: 1 << 24, names: 1000 };
    for command in ["/nonexistent/program", "fsure-that-is-nowhere", "/"] {
        // Free at once when the last one is dropped.
        let inside = MountSandbox::enter(std::slice::from_ref(&cover), &[command.into()]).unwrap();
        let error = inside.run().unwrap_err();
        assert!(error.to_string().contains("start the command"), "{error}");
        let second = MountSandbox::enter(std::slice::from_ref(&cover), &["true".into()]);
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

/// Processes that other threads start have copies of the locked descriptor until
/// their `exec`.
#[test]
fn it_is_free_at_once_whatever_is_started_meanwhile() {
    let test = "it_is_free_at_once_whatever_is_started_meanwhile";
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    if enter(test, folder.path(), "true").is_none() {
        return;
    }
    let cover =
        [Overlay { place: folder.path().canonicalize().unwrap(), bytes: 1 << 24, names: 1000 }];
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(std::process::Command::new("true").status().unwrap().success());
                }
            });
        }
        let locked = (0..100).find(|_| MountSandbox::enter(&cover, &["true".into()]).is_err());
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(locked, None, "of 100 times");
    });
}

#[test]
fn it_ends_with_its_parent() {
    let test = "it_ends_with_its_parent";
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(inside) = enter(test, folder.path(), "sleep 1000") else { return };
    let began = Instant::now();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| inside.run());
        std::thread::sleep(Duration::from_millis(100));
        inside.kill().unwrap();
        assert_eq!(running.join().unwrap().unwrap().ended, Ended::Signal(9));
    });
    assert!(began.elapsed() < Duration::from_secs(500));
}

#[test]
fn a_side_is_what_was_given_whatever_its_name_leads_to() {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let [given, moved] = ["given", "moved"].map(|name| folder.path().join(name));
    fs::create_dir(&given).unwrap();
    let open = fs::File::open(&given).unwrap();
    let (way, called) = (side(open.as_raw_fd()), name(open.as_raw_fd()));
    assert_eq!(called, Some(given.canonicalize().unwrap()));
    fs::rename(&given, &moved).and_then(|()| fs::create_dir(&given)).unwrap();
    assert_eq!(fs::metadata(way).unwrap().ino(), fs::metadata(moved).unwrap().ino());
}
