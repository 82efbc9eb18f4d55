//! `fsure ram bind --backend zram-xfs`: each generation is one moment, whatever is written
//! meanwhile. A daemon that dies while the folder is frozen leaves no writer waiting.
//! Nothing is left of the zram device, which is one of the whole machine.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::ram_machine::{
    Disk, home, is_bound, kill, on_own_machine, pause, process, ram, sh, status, unbind, until,
    wait_while,
};
use crate::support::skip;
use serde_json::Value;

const MIB: usize = 1 << 20;
/// Size of the disk of a test in MiB; it is sparse.
const DISK: u64 = 1024;

/// Runs a test with a folder of its name, where xfs on zram can be made. A device that a
/// test leaves when it fails is removed: nothing of it has a mount any more.
fn with(test: &'static str, body: fn(&Disk)) {
    if let Err(why) = fsure_os::zram::can_make_xfs() {
        return skip(test, &why.to_string());
    }
    let ran = std::panic::catch_unwind(|| on_own_machine(module_path!(), test, DISK, body));
    let label = label_of(&folder_of(test));
    for number in 0..64 {
        let _ = has_label(number, &label) && fsure_os::zram::remove_zram(number, &label).is_ok();
    }
    if let Err(panic) = ran {
        std::panic::resume_unwind(panic);
    }
}

fn label_of(folder: &Path) -> String {
    let id = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    format!("fs{}", &id[..10])
}

fn has_label(number: u32, label: &str) -> bool {
    let mut found = [0; 12];
    let node = File::open(fsure_os::zram::node(number));
    node.is_ok_and(|node| node.read_exact_at(&mut found, 108).is_ok()) && found == label.as_bytes()
}

fn folder_of(test: &str) -> PathBuf {
    Path::new("/var/lib/disk").join(test)
}

/// A folder of the test's own with something in it.
fn folder(test: &str) -> PathBuf {
    let folder = folder_of(test);
    fs::create_dir(&folder).expect("make");
    fs::write(folder.join("one"), "1").expect("write");
    folder
}

fn bind(folder: &Path, max_loss: &str) {
    let run = ram(&["bind", "--backend", "zram-xfs", "--max-loss", max_loss], folder);
    assert!(run.code == 0 && run.stdout.contains("is in RAM: "), "{run:?}");
}

/// The number of the zram device of the folder that is bound.
fn device() -> u32 {
    let bound = fs::read(home().join("bound.json")).expect("its entry");
    let bound: Value = serde_json::from_slice(&bound).expect("JSON");
    bound["device"].as_u64().and_then(|number| u32::try_from(number).ok()).expect("a device")
}

/// Returns true if the zram device of a folder exists. Its label is checked: another
/// folder might have its number by now.
fn has(device: u32, folder: &Path) -> bool {
    has_label(device, &label_of(folder))
}

/// Ends a folder in RAM and asserts that nothing of it is left.
fn end(folder: &Path) {
    let device = device();
    let processes = [process("worker", 0), process("keeper", 0)];
    unbind(folder);
    assert!(!has(device, folder), "zram{device} is left");
    wait_while(|| {
        processes.iter().any(|process| Path::new(&format!("/proc/{process}/exe")).exists())
    });
}

/// Thaws, however the test ends: it could not be ended otherwise.
struct Thaws<'a>(&'a Path);

impl Drop for Thaws<'_> {
    fn drop(&mut self) {
        let _ = fsure_os::freeze::thaw(self.0);
    }
}

/// Rewrites 16 MiB all the time, a piece after the other, with the number of the round,
/// and says in another file when a round is over.
fn rewrite(folder: &Path, is_over: &AtomicBool) -> u64 {
    let [hot, finished] = ["hot", "finished"].map(|name| {
        File::options().write(true).open(folder.join(name)).expect("open, to rewrite it")
    });
    let mut round = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        round += 1;
        let piece = round.to_le_bytes().repeat(MIB / 8);
        for place in 0..16 {
            hot.write_all_at(&piece, place * MIB as u64).expect("write a piece");
        }
        finished.write_all_at(&round.to_le_bytes(), 0).expect("say it");
    }
    round
}

/// Both files of the disk side, of one generation whose number comes with them.
fn generation(than: u64) -> (u64, u64, Vec<u64>) {
    let disk = home().join("disk");
    let last = || {
        let own = disk.join(".fsure-ram");
        let text = fs::read_to_string(own.join("last")).ok()?;
        let head: Value = serde_json::from_str(text.lines().next()?).ok()?;
        let number = head["generation"].as_u64()?;
        (number > than && !own.join("journal").exists()).then_some(number)
    };
    let numbers = |name: &str| {
        let bytes = fs::read(disk.join(name)).ok()?;
        let numbers = bytes.chunks_exact(8).map(|one| u64::from_le_bytes(one.try_into().unwrap()));
        Some(numbers.collect::<Vec<_>>())
    };
    loop {
        let before = last();
        let found = (numbers("finished"), numbers("hot"));
        if let (Some(number), (Some(finished), Some(hot))) = (before, found)
            && last() == before
        {
            return (number, finished[0], hot);
        }
        pause();
    }
}

#[test]
fn every_generation_is_one_moment() {
    with("every_generation_is_one_moment", |_| {
        let folder = folder("every_generation_is_one_moment");
        sh(&format!("chown 7:8 {0} && chmod 2750 {0}", folder.display()));
        fs::hard_link(folder.join("one"), folder.join("two")).expect("link");
        fs::write(folder.join("hot"), vec![0; 16 * MIB]).expect("write");
        fs::write(folder.join("finished"), [0; 8]).expect("write");
        let before = fs::metadata(folder.join("one")).expect("look");
        bind(&folder, "200ms");
        let is = fs::metadata(&folder).expect("look");
        assert_eq!((is.uid(), is.gid(), is.permissions().mode() & 0o7777), (7, 8, 0o2750));
        let one = fs::metadata(folder.join("one")).expect("look");
        assert_eq!((one.nlink(), one.mtime_nsec()), (2, before.mtime_nsec()));
        assert_ne!(one.dev(), before.dev());
        assert!(ram(&["status"], &folder).stdout.contains("zram-xfs"));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| rewrite(&folder, &is_over));
            // However this ends, the writer does, too.
            let looked = std::panic::catch_unwind(|| {
                let (mut number, mut last_finished) = (0, 0);
                for _ in 0..25 {
                    let (next, finished, hot) = generation(number);
                    assert!(finished >= last_finished, "it went back");
                    (number, last_finished) = (next, finished);
                    let new = hot.iter().take_while(|found| **found == finished + 1).count();
                    let is_one = hot[new..].iter().all(|found| *found == finished);
                    assert!(is_one && new % (MIB / 8) == 0, "{finished}: {new} of the next round");
                    let state = status(&folder).1;
                    assert_eq!(state["unsettled"], serde_json::json!([]));
                    assert_eq!(state["spread_ms"], 0.0);
                }
                last_finished
            });
            is_over.store(true, Ordering::Relaxed);
            let written = writer.join().expect("the writer");
            let last_finished = looked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert!(last_finished > 0 && last_finished <= written);
        });
        end(&folder);
        assert_eq!(fs::metadata(folder.join("one")).expect("look").nlink(), 2);
    });
}

/// Writes a database all the time, once with a journal and once with a log.
const WRITER: &str = "
import sqlite3, sys
data = sqlite3.connect(sys.argv[1] + '/' + sys.argv[2])
data.execute('pragma journal_mode=' + sys.argv[2])
data.execute('create table if not exists t(a integer primary key, b int, c blob)')
data.execute('create index if not exists i on t(b)')
rows = 'with recursive n(x) as (select 1 union all select x + 1 from n where x < 20000)'
data.execute(rows + ' insert or ignore into t select x, random(), randomblob(900) from n')
data.commit()
print(flush=True)
some = '(select 1 + abs(random()) % 20000 from t limit 50)'
while True:
    data.execute('update t set b = random(), c = randomblob(900) where a in ' + some)
    data.commit()
";

#[test]
fn databases_are_whole_after_a_crash() {
    let test = "databases_are_whole_after_a_crash";
    if Command::new("sqlite3").arg("-version").stdout(Stdio::null()).status().is_err()
        || Command::new("python3").args(["-c", "import sqlite3"]).status().is_err()
    {
        return skip(test, "needs sqlite3 and python3");
    }
    with(test, |_| {
        let folder = folder("databases_are_whole_after_a_crash");
        for _ in 0..3 {
            bind(&folder, "100ms");
            let number = device();
            let mut writers = ["delete", "wal"].map(|mode| {
                let mut python = Command::new("python3");
                python.args(["-c", WRITER]).arg(&folder).arg(mode).current_dir("/");
                let mut python = python.stdout(Stdio::piped()).spawn().expect("python3");
                let read = python.stdout.as_mut().expect("its output").read_exact(&mut [0]);
                read.expect("it is filled");
                python
            });
            let before = status(&folder).1["generation"].as_u64().expect("a number");
            until(&folder, |_, state| state["generation"].as_u64() > Some(before + 5));
            kill(&[process("keeper", 0), process("worker", 0)]);
            for writer in &mut writers {
                writer.kill().expect("kill");
                writer.wait().expect("wait");
            }
            // As a crash of the machine leaves it: without what was in memory.
            wait_while(|| !Command::new("umount").arg(&folder).status().expect("umount").success());
            let run = ram(&["recover"], &folder);
            assert_eq!(run.code, 0, "{run:?}");
            assert!(!has(number, &folder) && !is_bound(&folder));
            for mode in ["delete", "wal"] {
                let mut check = Command::new("sqlite3");
                check.arg(folder.join(mode)).arg("pragma integrity_check; select count(*) from t");
                let check = check.output().expect("sqlite3");
                assert_eq!(
                    String::from_utf8_lossy(&check.stdout),
                    "ok\n20000\n",
                    "{mode}: {check:?}"
                );
            }
        }
    });
}

/// Stops the worker while it holds the folder still; a thread of the test waits to write
/// then.
fn stop_frozen(folder: &Path, worker: u64) -> std::sync::mpsc::Receiver<()> {
    loop {
        sh(&format!("kill -STOP {worker}"));
        let (sender, receiver) = std::sync::mpsc::channel();
        let (named, name) = std::sync::mpsc::channel();
        let file = folder.join("probe");
        std::thread::spawn(move || {
            named.send(fs::read_link("/proc/thread-self").expect("a name")).expect("a test");
            fs::write(file, "written").expect("write");
            let _ = sender.send(());
        });
        let stat = Path::new("/proc").join(name.recv().expect("a name")).join("stat");
        // On a busy machine a write may be late as well: one that is frozen sleeps where
        // no signal wakes it, and a guard process watches over the worker.
        let is_frozen = || {
            let sleeps = fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") D "));
            sleeps && guard(worker).is_some()
        };
        let is_written = || match receiver.recv_timeout(std::time::Duration::from_millis(10)) {
            Err(error) => error == std::sync::mpsc::RecvTimeoutError::Disconnected,
            Ok(()) => true,
        };
        let mut asked = 0;
        while !is_written() && asked < 30 {
            asked = if is_frozen() { asked + 1 } else { 0 };
        }
        if asked > 0 {
            return receiver;
        }
        sh(&format!("kill -CONT {worker}"));
        pause();
    }
}

/// The guard of a worker that has frozen something.
fn guard(worker: u64) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{worker}/task")).expect("its threads");
    let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let all: Vec<_> = tasks.filter_map(|task| children(task.ok()?)).collect();
    all.join(" ").split_whitespace().next().and_then(|one| one.parse().ok())
}

#[test]
fn a_kill_while_it_is_frozen_leaves_no_process_waiting() {
    with("a_kill_while_it_is_frozen_leaves_no_process_waiting", |_| {
        let folder = folder("a_kill_while_it_is_frozen_leaves_no_process_waiting");
        fs::write(folder.join("hot"), vec![0; 16 * MIB]).expect("write");
        fs::write(folder.join("finished"), [0; 8]).expect("write");
        bind(&folder, "100ms");
        let _thaws = Thaws(&folder);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| rewrite(&folder, &is_over));
            let tried = std::panic::catch_unwind(|| {
                // Alone, and with the guard.
                for is_guarded in [true, false] {
                    let (worker, keeper) = (process("worker", 0), process("keeper", 0));
                    let written = stop_frozen(&folder, worker);
                    let guard = guard(worker).expect("a guard");
                    written.try_recv().expect_err("it is frozen");
                    if is_guarded {
                        kill(&[keeper, worker]);
                        written.recv().expect("it goes on");
                    } else {
                        kill(&[guard]);
                        kill(&[keeper, worker]);
                        written.try_recv().expect_err("it is frozen still");
                    }
                    let wrong = status(&folder).1["wrong"].to_string();
                    assert!(wrong.contains("no process keeps it"), "{wrong}");
                    let run = ram(&["recover"], &folder);
                    assert!(run.stdout.contains("kept again"), "{run:?}");
                    if !is_guarded {
                        written.recv().expect("it goes on");
                    }
                    // It does for a slow build what it can: not in time.
                    let before = status(&folder).1["generation"].as_u64();
                    until(&folder, |_, state| state["generation"].as_u64() > before);
                }
            });
            is_over.store(true, Ordering::Relaxed);
            tried.unwrap_or_else(|panic| {
                let _ = fsure_os::freeze::thaw(&folder);
                std::panic::resume_unwind(panic)
            });
        });
        drop(_thaws);
        end(&folder);
        assert_eq!(fs::read(folder.join("probe")).expect("read"), b"written");
    });
}

#[test]
fn a_full_one_refuses_writers_and_goes_back_to_the_disk() {
    with("a_full_one_refuses_writers_and_goes_back_to_the_disk", |_| {
        let folder = folder("a_full_one_refuses_writers_and_goes_back_to_the_disk");
        let run = ram(&["bind", "--backend", "zram-xfs", "--size", "100M"], &folder);
        assert!(run.code == 0 && run.stderr.contains("at least 300.0 MiB"), "{run:?}");
        let number = device();
        // Each page of it takes more memory than it has bytes.
        let mut piece = vec![0; MIB];
        blake3::Hasher::new().finalize_xof().fill(&mut piece);
        let mut file = File::create(folder.join("full")).expect("create");
        let mut written = 0_u64;
        let error = loop {
            match file.write(&piece) {
                Ok(bytes) => written += bytes as u64,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        assert!(written > 200 << 20);
        // The file system is well. It stays as long as a process has a file open for writing.
        file.sync_all().expect("all of it is in memory");
        fs::remove_file(folder.join("one")).expect("remove");
        assert!(is_bound(&folder));
        file.set_len(written - 1).expect("shorten");
        file.write_all_at(b"end", 0).expect("write");
        drop(file);
        wait_while(|| {
            is_bound(&folder) || Path::new("/run/fsure/ram").read_dir().expect("list").count() > 1
        });
        assert!(!has(number, &folder));
        assert_eq!(fs::metadata(folder.join("full")).expect("look").len(), written - 1);
        assert!(!folder.join("one").exists());
    });
}

#[test]
fn what_became_of_others_is_left_alone() {
    with("what_became_of_others_is_left_alone", |_| {
        let folder = folder("what_became_of_others_is_left_alone");
        bind(&folder, "1s");
        let number = device();
        kill(&[process("keeper", 0), process("worker", 0)]);
        // It may have been frozen: the guard that thaws it then has to hear of the kill first.
        let path = folder.display();
        sh(&format!("until umount {path}; do sleep 0.02; done"));
        sh(&format!("mkfs.xfs -q -f -L another {}", fsure_os::zram::node(number).display()));
        let run = ram(&["recover"], &folder);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(fsure_os::zram::node(number).exists(), "it was another's");
        assert_eq!(fs::read(folder.join("one")).expect("read"), b"1");
        fsure_os::zram::remove_zram(number, "another").expect("remove");
    });
}
