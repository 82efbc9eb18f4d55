//! A folder seen through FUSE is the same folder, whichever server serves it, and
//! what fsure says of the kernel's part in it is true.

#![cfg(target_os = "linux")]

use crate::support;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use fsure_os::passthrough::{Passthrough, Served, Server};
use fsure_os::private_mounts::{Mount, MountKind, Namespace};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fsure");

/// A RAM disk, and a folder in it seen through a server.
struct Seen {
    // In the order in which they have to go.
    through: Passthrough,
    ram: Mount,
    _folder: tempfile::TempDir,
}

impl Seen {
    fn new(test: &str, server: Server) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let [ram, at] = ["ram", "at"].map(|name| folder.path().join(name));
        fs::create_dir(&ram).and_then(|()| fs::create_dir(&at)).unwrap();
        let made = Namespace::new().and_then(|space| {
            let ram = space.mount(&MountKind::Ram { bytes: 64 << 20, huge: false }, &ram)?;
            let through =
                Passthrough::mount(&space, server, Path::new(PROGRAM), (&ram.path(), &at))?;
            Ok(Self { through, ram, _folder: folder })
        });
        support::or_skip(test, made.map_err(|error| format!("{server:?}: {error}")))
    }

    fn served(&mut self) -> Served {
        self.through.served().expect("an answer of the server")
    }
}

fn content() -> Vec<u8> {
    (0_u32..3 << 20).map(|at| (at / 5 + at % 253) as u8).collect()
}

/// Returns the part of a stat that is equal on both sides.
fn facts(path: &Path) -> impl PartialEq + std::fmt::Debug {
    let meta = fs::symlink_metadata(path).unwrap();
    let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    (meta.ino(), meta.mode(), meta.len(), meta.nlink(), meta.uid(), meta.blocks(), times)
}

#[test]
fn content_and_stat_are_equal_through_it() {
    let _shared = crate::support::serial::shared();
    for server in [Server::Plain, Server::Kernel, Server::Bindfs] {
        let Some(seen) = Seen::new("content_and_stat_are_equal", server) else { continue };
        let (above, below) = (seen.through.path(), seen.ram.path());
        fs::create_dir(above.join("folder")).unwrap();
        fs::write(above.join("folder/file"), content()).unwrap();
        symlink("folder/file", above.join("link")).unwrap();
        fs::hard_link(above.join("folder/file"), above.join("second")).unwrap();
        assert!(fs::read(below.join("folder/file")).unwrap() == content(), "{server:?}");
        assert!(fs::read(above.join("link")).unwrap() == content(), "{server:?}");
        fs::rename(above.join("second"), above.join("renamed")).unwrap();
        fs::remove_file(above.join("renamed")).unwrap();
        fs::File::options()
            .append(true)
            .open(above.join("folder/file"))
            .and_then(|mut file| file.write_all(b"more"))
            .unwrap();
        let longer = fs::read(below.join("folder/file")).unwrap();
        assert!(longer[content().len()..] == *b"more", "{server:?}");
        let file = fs::File::options().write(true).open(above.join("folder/file")).unwrap();
        file.set_len(1000).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::new(77, 5)).unwrap();
        drop(file);
        // What was believed for a second may be older than the last change.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        if server != Server::Bindfs {
            for name in ["folder", "folder/file", "link"] {
                let (up, down) = (above.join(name), below.join(name));
                assert_eq!(facts(&up), facts(&down), "{server:?} {name}");
            }
        }
        fs::remove_file(above.join("folder/file")).unwrap();
        fs::remove_dir(above.join("folder")).unwrap();
        assert_eq!(names(&below), [PathBuf::from("link")], "{server:?}");
    }
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into()).collect();
    names.sort();
    names
}

#[test]
fn a_tree_is_copied_into_it() {
    let _shared = crate::support::serial::shared();
    let Some(seen) = Seen::new("a_tree_is_copied_into_it", Server::Plain) else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/workload");
    let copied = Command::new("cp").arg("-rp").arg(&source).arg(seen.through.path()).output();
    let copied = copied.unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let copy = seen.ram.path().join("workload");
    assert_eq!(names(&copy), names(&source));
    for name in names(&source) {
        let (from, to) = (source.join(&name), copy.join(&name));
        assert!(fs::read(&from).unwrap() == fs::read(&to).unwrap(), "{name:?}");
        let times = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(times(&from), times(&to), "{name:?}");
    }
    let many = seen.through.path().join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..2000 {
        fs::write(many.join(number.to_string()), "x").unwrap();
    }
    assert_eq!(names(&many).len(), 2000);
}

#[test]
fn what_comes_to_the_server_is_counted_and_a_flush_arrives() {
    let _shared = crate::support::serial::shared();
    let test = "what_comes_to_the_server_is_counted";
    let Some(mut seen) = Seen::new(test, Server::Plain) else { return };
    let file = seen.through.path().join("file");
    fs::write(&file, content()).unwrap();
    let written = seen.served();
    assert!(written.writes > 0 && written.opened == 1 && !written.is_by_kernel(), "{written:?}");
    assert_eq!(written.flushes, 0);
    fs::File::options().write(true).open(&file).unwrap().sync_all().unwrap();
    assert_eq!(seen.served().flushes, 1);
    fs::File::open(seen.through.path()).unwrap().sync_all().unwrap();
    assert_eq!(seen.served().flushes, 2);
}

#[test]
fn a_takeover_by_the_kernel_is_reported_truly() {
    let _shared = crate::support::serial::shared();
    let test = "a_takeover_by_the_kernel_is_reported_truly";
    let Some(mut seen) = Seen::new(test, Server::Kernel) else { return };
    let file = seen.through.path().join("file");
    fs::write(&file, content()).unwrap();
    assert!(fs::read(&file).unwrap() == content());
    let served = seen.served();
    assert_eq!(served.opened, 2);
    if served.backed == 0 {
        assert!(served.reads > 0 && served.writes > 0 && !served.is_by_kernel(), "{served:?}");
        return support::skip(test, "this kernel takes nothing over (before Linux 6.9)");
    }
    assert!(served.is_by_kernel(), "{served:?}");
}
