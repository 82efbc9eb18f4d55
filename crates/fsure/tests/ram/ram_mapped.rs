//! Tests stores through a memory map, which leave neither a date on the RAM side nor an
//! event. They must reach the disk all the same, including the last store before the
//! file is unmapped.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::skip;
use fsure_ram::write_back::{CompareDepth, Engine, NoTracker};

/// Maps a file, stores a number for every line of its input and reports it, and stores a
/// `z` before it ends.
const MAPPER: &str = "
import mmap, sys
file = open(sys.argv[1], 'r+b')
page = mmap.mmap(file.fileno(), 0)
file.close()
for number, line in enumerate(sys.stdin):
    page[5:6] = str(number).encode()
    print(number, flush=True)
page[5:6] = b'z'
";

/// Brings the disk side up to date until it has this byte: what is mapped is asked
/// for 5 % of the time at most.
fn comes(engine: &mut Engine, disk: &Path, byte: u8) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(300) {
        engine.sync(&mut NoTracker, CompareDepth::Dates, None).expect("a generation");
        if std::fs::read(disk).expect("read it")[5] == byte {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{byte} never came to the disk");
}

#[test]
fn stores_through_a_map_come_to_the_disk() {
    let name = "stores_through_a_map_come_to_the_disk";
    let folder = match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => folder,
        Err(error) => return skip(name, &format!("no folder in memory: {error}")),
    };
    let sides = ["disk", "ram"].map(|side| folder.path().join(side));
    sides.iter().for_each(|side| std::fs::create_dir(side).expect("make a side"));
    let [disk, ram] = sides.each_ref().map(|side| side.join("mapped"));
    std::fs::write(&disk, vec![b'.'; 5000]).expect("write a file");
    let go_on = &mut |_: &_, _| ControlFlow::Continue(());
    let mut engine = Engine::fill(&sides[0], &sides[1], go_on).expect("fill it");
    let mut command = Command::new("python3");
    command.arg("-c").arg(MAPPER).arg(&ram).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut mapper = match command.spawn() {
        Ok(mapper) => mapper,
        Err(error) => return skip(name, &format!("python3: {error}")),
    };
    let mut lines = BufReader::new(mapper.stdout.take().expect("a pipe")).lines();
    let mut report = mapper.stdin.take().expect("a pipe");
    let mut dates = Vec::new();
    for number in b'0'..b'5' {
        report.write_all(b"\n").expect("tell it");
        lines.next().expect("an answer").expect("a line");
        let there = std::fs::metadata(&ram).expect("look at it");
        dates.push((there.mtime(), there.mtime_nsec()));
        comes(&mut engine, &disk, number);
    }
    drop(report);
    assert!(mapper.wait().expect("wait").success());
    comes(&mut engine, &disk, b'z');
    assert_eq!(engine.verify().expect("read both"), []);
    dates.dedup();
    assert!(dates.len() < 5, "every store moved the date: nothing is shown by this");
}
