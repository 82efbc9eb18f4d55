//! `rotten` says that no system call wrote what is there, and so is said only where
//! that is proved. An edit in the same tick as the record moves no date, on file
//! systems that keep dates by the second for a whole second; a store through a
//! memory map moves none as long as its page is dirty. Either is `altered` at
//! most, `update` sees the edit, and `heal` keeps what it replaces.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{
    EXT3, EXT4, EXT4_SMALL_INODES, Faults, FaultyFs, Format, Image, Mounted, Recorded, Tree,
    content, or_skip, skip,
};

const SIZE: usize = 5000;

/// Waits for the first part of a second, so that a record and an edit are in one.
/// The clock that dates files runs some milliseconds behind.
fn begin_second() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    std::thread::sleep(Duration::from_nanos(1_020_000_000 - u64::from(now.subsec_nanos())));
}

/// A file that is recorded and edited in one second, without another stat. `None`
/// where the machine was too slow for that ten times in a row.
fn edited_in_its_second(test: &str, recorded: &Recorded) -> Option<(Vec<u8>, Vec<u8>)> {
    let path = recorded.root.join("file");
    for attempt in 0..10 {
        begin_second();
        let before = content(SIZE, attempt);
        fs::write(&path, &before).expect("write");
        assert_eq!(recorded.update().code, 0);
        let stat = |path: &Path| {
            let stat = fs::metadata(path).expect("stat");
            [stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec()]
        };
        let then = stat(&path);
        let mut edited = before.clone();
        edited[100] ^= 1;
        fs::write(&path, &edited).expect("edit");
        if stat(&path) == then {
            return Some((before, edited));
        }
    }
    skip(test, "no record and edit within one second in ten attempts");
    None
}

fn an_edit_in_the_second_of_the_record(test: &str, format: &'static Format) {
    let Some(image) = or_skip(test, Image::new(format, 32)) else { return };
    let beside = Tree::new();
    let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
    let Some((before, edited)) = edited_in_its_second(test, &recorded) else { return };
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.verdict("file").as_deref()),
        (3, Some("altered")),
        "{report:?}"
    );
    // Seconds later, too, `update` reads what was recorded in its own second.
    std::thread::sleep(Duration::from_secs(3));
    let report = recorded.update();
    assert_eq!(
        (report.code, report.verdict("file").as_deref()),
        (3, Some("altered")),
        "{report:?}"
    );
    beside.write("copy/file", &before);
    let copy = beside.path("copy");
    let heal = recorded.run("heal", &["--from".as_ref(), copy.as_os_str(), "--yes".as_ref()]);
    assert_eq!(heal.code, 7, "{heal:?}");
    assert!(fs::read(image.root().join(".fsure/replaced/1/file")).expect("kept") == edited);
}

#[test]
fn an_edit_in_the_second_of_the_record_on_small_inodes() {
    an_edit_in_the_second_of_the_record("an_edit_on_small_inodes", &EXT4_SMALL_INODES);
}

#[test]
fn an_edit_in_the_second_of_the_record_on_ext3() {
    an_edit_in_the_second_of_the_record("an_edit_on_ext3", &EXT3);
}

/// Another file that gets the inode in that second is not the recorded one.
#[test]
fn another_file_with_the_inode_has_not_moved() {
    let test = "another_file_with_the_inode_has_not_moved";
    let Some(image) = or_skip(test, Image::new(&EXT4_SMALL_INODES, 32)) else { return };
    let beside = Tree::new();
    let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
    let (one, other) = (image.root().join("one"), image.root().join("other"));
    fs::write(image.root().join("good"), "x").expect("write");
    fs::write(image.root().join("better"), "y").expect("write");
    let stat = |path: &Path| {
        let stat = fs::metadata(path).expect("stat");
        [stat.ino() as i64, stat.size() as i64, stat.mtime(), stat.ctime()]
    };
    for attempt in 0..10 {
        let _ = fs::remove_file(&other);
        begin_second();
        fs::write(&one, content(SIZE, attempt)).expect("write");
        assert_eq!(recorded.update().code, 0);
        let then = stat(&one);
        fs::remove_file(&one).expect("remove");
        fs::write(&other, content(SIZE, 100 + attempt)).expect("write");
        if stat(&other) != then {
            continue;
        }
        let report = recorded.update();
        assert_eq!(report.code, 0, "{report:?}");
        assert_eq!(report.verdict("one").as_deref(), Some("missing"), "{report:?}");
        let digest = blake3::hash(&content(SIZE, 100 + attempt)).as_bytes().to_vec();
        assert_eq!(support::bytes(&recorded.row("other")["blake3"]), digest, "what is there");
        assert_eq!(recorded.verify().code, 0);
        return;
    }
    skip(test, "no other file got the inode within one second in ten attempts");
}

/// A FUSE file system that keeps dates by the minute.
#[test]
fn dates_by_the_minute() {
    let test = "dates_by_the_minute";
    let source = Tree::new();
    source.write("file", content(SIZE, 1));
    let faults = Faults { date_unit_ns: 60_000_000_000, ..Faults::default() };
    let view = FaultyFs::with(source.root(), std::sync::Arc::new(faults.into()));
    let Some(view) = or_skip(test, view) else { return };
    let beside = Tree::new();
    let recorded = Recorded::outside(view.root(), &beside.path("catalog.db"));
    assert_eq!(recorded.update().code, 0);
    let mut edited = content(SIZE, 1);
    edited[7] ^= 1;
    source.write("file", &edited);
    // Unless a minute ended in between, no date has moved.
    let report = recorded.verify();
    let verdict = report.verdict("file");
    assert!(["altered", "modified"].contains(&verdict.as_deref().unwrap_or("none")), "{report:?}");
    let update = recorded.update();
    assert!(update.verdict("file").is_some(), "{update:?}");
}

/// A program that maps a file and stores into it when it is told to, as
/// libtorrent 2 and LMDB with `MDB_WRITEMAP` do.
struct Mapper {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Mapper {
    fn start(path: &Path, close: bool) -> Result<Self, String> {
        let script = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
area = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
if sys.argv[2] == 'close':
    os.close(fd)
for line in sys.stdin:
    area[int(line)] ^= 255
    print('stored', flush=True)
";
        let close = if close { "close" } else { "keep" };
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(path)
            .arg(close)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("python3: {error}"))?;
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Ok(Self { child, input, output })
    }

    fn store(&mut self, at: usize) {
        writeln!(self.input, "{at}").expect("tell it");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("hear it");
        assert_eq!(line, "stored\n");
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stores before and after the record, while the page is dirty, so that no date
/// moves; then with the writer still there, and gone.
fn a_mapped_writer_is_not_rot(test: &str, root: &Path, close: bool) {
    let path = root.join("file");
    fs::write(&path, content(SIZE, 1)).expect("write");
    let beside = Tree::new();
    let recorded = Recorded::outside(root, &beside.path("catalog.db"));
    let Some(mut mapper) = or_skip(test, Mapper::start(&path, close)) else { return };
    mapper.store(10);
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(recorded.update().code, 0);
    let before = fs::read(&path).expect("read");
    let stat = || {
        let stat = fs::metadata(&path).expect("stat");
        [stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec()]
    };
    let then = stat();
    mapper.store(20);
    if stat() != then {
        return skip(test, "the page was written back between the record and the store");
    }
    let report = recorded.verify();
    let finding = report.finding("file").unwrap_or_else(|| panic!("{report:?}"));
    assert_eq!((report.code, &finding["verdict"]), (3, &"altered".into()), "{report:?}");
    let reason = finding["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("mmap"), "{reason}");
    drop(mapper);
    let report = recorded.verify();
    assert_eq!(report.verdict("file").as_deref(), Some("altered"), "{report:?}");
    beside.write("copy/file", &before);
    let stored = fs::read(&path).expect("read");
    let copy = beside.path("copy");
    let heal = recorded.run("heal", &["--from".as_ref(), copy.as_os_str(), "--yes".as_ref()]);
    assert_eq!(heal.code, 7, "{heal:?}");
    assert!(fs::read(root.join(".fsure/replaced/1/file")).expect("kept") == stored);
}

#[test]
fn what_a_program_stores_through_a_map_is_not_rot() {
    let test = "what_a_program_stores_through_a_map_is_not_rot";
    let Some(image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    a_mapped_writer_is_not_rot(test, image.root(), false);
}

#[test]
fn a_map_whose_descriptor_is_closed_is_not_rot() {
    let test = "a_map_whose_descriptor_is_closed_is_not_rot";
    let Some(image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    a_mapped_writer_is_not_rot(test, image.root(), true);
}

/// There, no page is ever written back, and a map takes stores for ever.
#[test]
fn in_memory_nothing_proves_rot() {
    let test = "in_memory_nothing_proves_rot";
    let folder = Tree::new();
    let at = folder.path("memory");
    fs::create_dir(&at).expect("make a folder");
    let Some(_mounted) = or_skip(test, Mounted::tmpfs(&at, 8192)) else { return };
    a_mapped_writer_is_not_rot(test, &at, false);
}

/// A file that is open for writing is not rotten, however old its record is; one
/// that is only read is.
#[test]
fn a_file_that_is_open_for_writing_is_not_rotten() {
    let test = "a_file_that_is_open_for_writing_is_not_rotten";
    let Some(mut image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    let data = content(SIZE, 3);
    fs::write(image.root().join("file"), &data).expect("write");
    let recorded = Recorded::inside(image.root());
    recorded.record();
    recorded.age_records();
    image.flip_in_image(&data[64..96], 5);
    let path = image.root().join("file");
    let writer = fs::OpenOptions::new().append(true).open(&path).expect("open");
    let report = recorded.verify();
    let finding = report.finding("file").expect("told");
    assert_eq!(finding["verdict"], "altered", "{finding:#}");
    assert!(finding["reason"].as_str().is_some_and(|why| why.contains("open for writing")));
    drop(writer);
    let reader = fs::File::open(&path).expect("open");
    let report = recorded.verify();
    assert_eq!(report.verdict("file").as_deref(), Some("rotten"), "{report:?}");
    drop(reader);
}

/// A file written while the clock was wrong is not read again by every `update`
/// until that date.
#[test]
fn a_change_time_in_the_future_is_not_racy_until_then() {
    let test = "a_change_time_in_the_future_is_not_racy_until_then";
    let Some(mut image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    fs::write(image.root().join("file"), content(SIZE, 3)).expect("write");
    let recorded = Recorded::inside(image.root());
    let inode = fs::metadata(image.root().join("file")).expect("stat").ino();
    let image_file = image.image().to_owned();
    let set = image.unmounted(|_| {
        let request = format!("set_inode_field <{inode}> ctime 20991231235959");
        Command::new("debugfs").args(["-w", "-R", &request]).arg(&image_file).output()
    });
    if let Err(error) = set {
        return skip(test, &format!("debugfs: {error}"));
    }
    let ctime = fs::metadata(image.root().join("file")).expect("stat").ctime();
    assert!(ctime > 4_000_000_000, "{ctime}");
    let report = recorded.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert!(report.stderr.contains("change time in the future"), "{}", report.stderr);
    let report = recorded.update();
    assert_eq!((report.code, &report.summary()["hashed"]), (0, &0.into()), "{report:?}");
}
