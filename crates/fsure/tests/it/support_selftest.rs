//! Proves the tools that the other tests rely on: that the damage they do is
//! there, is where it should be, and leaves the traces it should leave.
#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::settled::{fill, settle};
use crate::support::{EXT4, Fault, FaultyFs, How, Image, Report, Run, Tree, or_skip};
use rustix::process::{Pid, Signal, kill_process};

const PAGE: u64 = 4096;
const MIB: usize = 1 << 20;

/// Content without two equal blocks.
fn content(length: usize) -> Vec<u8> {
    let words = (0..length.div_ceil(8) as u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

/// Returns the fields that a record compares: size, inode, modification and change time.
fn stat(path: &Path) -> (u64, u64, (i64, i64), (i64, i64)) {
    let s = std::fs::symlink_metadata(path).expect("stat");
    (s.size(), s.ino(), (s.mtime(), s.mtime_nsec()), (s.ctime(), s.ctime_nsec()))
}

fn open_direct(path: &Path) -> File {
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path).expect("open with O_DIRECT")
}

/// Reads `length` bytes at `offset`; an error by its number.
fn read_at(file: &File, offset: u64, length: usize) -> Result<Vec<u8>, i32> {
    let mut data = vec![0; length];
    let number = |error: io::Error| error.raw_os_error().expect("an error of the system");
    file.read_exact_at(&mut data, offset).map(|()| data).map_err(number)
}

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

#[test]
fn a_tree_keeps_given_dates() {
    let tree = Tree::new();
    let path = tree.write("a/b", "hello");
    tree.set_mtime("a/b", 1_234_567_890_123_456_789);
    assert_eq!(tree.mtime("a/b"), 1_234_567_890_123_456_789);
    tree.set_mtime("a", -1);
    assert_eq!(tree.mtime("a"), -1, "a folder, before 1970");
    tree.age("a/b");
    assert_eq!(tree.mtime("a/b"), 1_234_564_290_123_456_789);
    let before = stat(&path);
    std::thread::sleep(Duration::from_millis(20));
    tree.flip("a/b", 4);
    let after = stat(&path);
    assert_eq!(tree.read("a/b"), b"hell\x90");
    assert_eq!((before.0, before.1, before.2), (after.0, after.1, after.2));
    assert_ne!(before.3, after.3, "the change time must move");
}

#[test]
fn an_image_rots_without_a_trace() {
    let Some(mut image) = or_skip("an_image_rots_without_a_trace", Image::new(&EXT4, 32)) else {
        return;
    };
    assert_eq!(std::fs::read_dir(image.root()).expect("list").count(), 0, "empty at first");
    let root = image.root().to_owned();
    let path = root.join("file");
    let mut data = content(3 * MIB);
    std::fs::write(&path, &data).expect("write");
    let before = stat(&path);
    image.flip_in_image(&data[2 * MIB..2 * MIB + 64], 7);
    assert_eq!(stat(&path), before);
    let damaged = std::fs::read(&path).expect("read");
    data[2 * MIB + 7] ^= 0xFF;
    assert!(damaged == data, "exactly one byte flipped");
    drop(image);
    assert!(!root.exists(), "unmounted and removed");
}

#[test]
fn images_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for number in 0..4_u8 {
            scope.spawn(move || {
                let image = Image::new(&EXT4, 16);
                let Some(mut image) = or_skip("images_do_not_disturb_each_other", image) else {
                    return;
                };
                let path = image.root().join("file");
                let mut data = vec![number; MIB];
                data[5000..5008].copy_from_slice(b"marker!!");
                std::fs::write(&path, &data).expect("write");
                for _ in 0..3 {
                    image.flip_in_image(b"marker!!", 100);
                    data[5100] ^= 0xFF;
                    assert!(std::fs::read(&path).expect("read") == data);
                }
            });
        }
    });
}

fn view_of(test: &str, length: usize) -> Option<(Tree, FaultyFs, Vec<u8>)> {
    let tree = Tree::new();
    let data = content(length);
    tree.write("dir/file", &data);
    tree.write("good", &data);
    let view = or_skip(test, FaultyFs::new(tree.root()))?;
    Some((tree, view, data))
}

#[test]
fn a_view_shows_its_source_as_it_is() {
    let test = "a_view_shows_its_source_as_it_is";
    let Some((tree, view, data)) = view_of(test, 3 * MIB + 5) else {
        return;
    };
    tree.set_mtime("good", -1_234_567_890_123_456_789);
    std::os::unix::fs::symlink("dir/file", tree.path("link")).expect("link");
    for number in 0..1000 {
        tree.write(format!("many/{number}"), "");
    }
    for path in ["", "dir", "dir/file", "good", "link", "many/7"] {
        let name = |root: &Path| {
            if path.is_empty() { root.to_owned() } else { root.join(path) }
        };
        assert_eq!(stat(&name(view.root())), stat(&name(tree.root())), "{path}");
    }
    let count = |path| std::fs::read_dir(view.root().join(path)).expect("list").count();
    assert_eq!((count(""), count("many")), (4, 1000));
    assert_eq!(std::fs::read_link(view.root().join("link")).expect("link"), Path::new("dir/file"));
    assert!(std::fs::read(view.root().join("link")).expect("read") == data);
    let refused = std::fs::write(view.root().join("new"), "").expect_err("read-only");
    assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem);
    // A date set below is seen at once.
    tree.set_mtime("good", 7);
    assert_eq!(stat(&view.root().join("good")), stat(&tree.path("good")));
    let root = view.root().to_owned();
    drop(view);
    assert!(!root.exists(), "unmounted and removed");
}

/// Reads in blocks; says which of them failed.
fn failing(file: &File, data: &[u8], block: usize) -> Vec<usize> {
    let fails =
        |(number, good): (usize, &[u8])| match read_at(file, (number * block) as u64, good.len()) {
            Ok(read) => {
                assert!(read == good, "block {number} has other bytes");
                None
            }
            Err(error) => {
                assert_eq!(error, EIO);
                Some(number)
            }
        };
    data.chunks(block).enumerate().filter_map(fails).collect()
}

#[test]
fn eio_stays_in_its_range() {
    let Some((_tree, view, data)) = view_of("eio_stays_in_its_range", 4 * MIB + 5) else {
        return;
    };
    let bad = 300 * PAGE..302 * PAGE;
    view.set([Fault::eio("dir/file", bad.clone())]);
    let path = view.root().join("dir/file");
    let page = PAGE as usize;
    let buffered = File::open(&path).expect("open");
    assert_eq!(failing(&buffered, &data, page), [300, 301], "buffered, page by page");
    assert_eq!(failing(&buffered, &data, MIB), [1], "buffered, large blocks");
    let direct = open_direct(&path);
    view.take_requests();
    assert_eq!(failing(&direct, &data, page), [300, 301], "O_DIRECT, page by page");
    assert_eq!(view.take_requests().len(), 4 * MIB / page + 1, "one request for one read");
    assert_eq!(failing(&direct, &data, MIB), [1], "O_DIRECT, large blocks");
    view.take_requests();
    view.faults.lock().expect("lock").direct_io = true;
    let direct = File::open(&path).expect("open");
    assert_eq!(failing(&direct, &data, MIB), [1], "FOPEN_DIRECT_IO");
    let requests = view.take_requests();
    assert!(requests.iter().all(|request| request.path == Path::new("dir/file")));
    let failed = |range: &std::ops::Range<u64>| range.start < bad.end && bad.start < range.end;
    assert!(requests.iter().all(|r| r.fault.is_some() == failed(&r.range)), "{requests:?}");
    assert!(std::fs::read(view.root().join("good")).expect("other files are well") == data);
    view.set([]);
    assert!(std::fs::read(&path).expect("well again") == data);
}

#[test]
fn faults_may_pass() {
    let Some((_tree, view, data)) = view_of("faults_may_pass", MIB) else {
        return;
    };
    let path = view.root().join("dir/file");
    view.set([Fault::eio("dir/file", 5000..5001).times(2)]);
    let direct = open_direct(&path);
    let outcomes: Vec<_> = (0..3).map(|_| failing(&direct, &data, MIB).len()).collect();
    assert_eq!(outcomes, [1, 1, 0]);
    view.take_requests();
    view.set([Fault::flip("dir/file", 5000..5002).times(1)]);
    let first = read_at(&direct, 4096, 8192).expect("read");
    let differing: Vec<_> = (0..8192).filter(|at| first[*at] != data[4096 + at]).collect();
    assert_eq!(differing, [904, 905]);
    assert!(failing(&direct, &data, MIB).is_empty(), "the second read is well");
    assert_eq!(view.take_requests()[0].fault, Some(How::Flip));
}

#[test]
fn a_folder_may_refuse_to_be_listed() {
    let Some((_tree, view, _)) = view_of("a_folder_may_refuse_to_be_listed", 1) else {
        return;
    };
    view.set([Fault::eio("dir", 0..1)]);
    let list = || std::fs::read_dir(view.root().join("dir"))?.collect::<io::Result<Vec<_>>>();
    assert_eq!(list().expect_err("must fail").raw_os_error(), Some(EIO));
    view.set([]);
    assert_eq!(list().expect("list").len(), 1);
}

#[test]
fn a_report_is_read_from_its_lines() {
    let stdout = r#"{"type":"finding","path":"a","verdict":"rotten"}
{"type":"summary","verdicts":{"ok":3}}
"#;
    let report = Report::new(Run { code: 3, stdout: stdout.into(), stderr: String::new() });
    assert_eq!(report.verdict("a").as_deref(), Some("rotten"));
    assert_eq!((report.verdict("b"), report.findings().count()), (None, 1));
    assert_eq!((report.code, report.count("ok"), report.count("rotten")), (3, 3, 0));
}

#[test]
fn a_process_is_settled_once_its_pipe_is_full_and_its_signal_is_handled() {
    let mut writes = Command::new("yes").stdout(Stdio::piped()).spawn().expect("start yes");
    let pipe = writes.stdout.take().expect("a pipe");
    fill(&writes, &pipe);
    let there = rustix::io::ioctl_fionread(&pipe).expect("ask");
    let capacity = rustix::pipe::fcntl_getpipe_size(&pipe).expect("ask");
    assert_eq!(usize::try_from(there), Ok(capacity));
    writes.kill().and_then(|()| writes.wait()).expect("kill");

    let script = "trap 'kill $!; echo handled' USR1; sleep 1000 & echo there; wait; wait";
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("start sh");
    let mut output = BufReader::new(shell.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("read");
    kill_process(Pid::from_child(&shell), Signal::USR1).expect("send a signal");
    settle(&shell);
    let there = rustix::io::ioctl_fionread(output.get_ref()).expect("ask");
    assert_eq!(there, "handled\n".len() as u64, "after {line}");
    shell.wait().expect("wait");
}
