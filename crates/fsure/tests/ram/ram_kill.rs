//! A RAM folder whose process is killed at any moment: its disk side is exactly one
//! generation, every file whole, and not older than was agreed on. The same harness
//! finds what rsync loses, with the flags of those who use it for this; so it can
//! see a loss.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::campaign;
use crate::support::slowness::slowest;
use crate::support::{or_skip, skip};
use fsure::workload::{Checked, check, workload, write_generation};
use tempfile::TempDir;

/// Most of the time of a kill is spent waiting.
const THREADS: u32 = 8;
/// The loss that the workload agrees to.
const AGREED: Duration = Duration::from_millis(300);

/// The acknowledgements of a program until it was killed, with their times.
struct Writing {
    acked: Vec<(u64, Instant)>,
}

impl Writing {
    /// Runs a workload and kills it some time after its first acknowledgement.
    /// `Err` if this machine cannot.
    fn killed(name: &str, folder: &Path, after: Duration) -> Result<Self, String> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(["workload", "run", name])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let number = |line: String| line.strip_prefix("ACK ").unwrap().parse::<u64>().unwrap();
        let Some(first) = lines.next().map(number) else {
            let mut why = String::new();
            let stderr = child.stderr.take().unwrap();
            std::io::Read::read_to_string(&mut { stderr }, &mut why).unwrap();
            child.wait().unwrap();
            return Err(why);
        };
        let mut acked = vec![(first, Instant::now())];
        let process = rustix::process::Pid::from_child(&child);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(after);
                rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
            });
            acked.extend(lines.map(|line| (number(line), Instant::now())));
        });
        child.wait().unwrap();
        Ok(Self { acked })
    }

    fn highest(&self) -> u64 {
        self.acked.last().unwrap().0
    }
}

/// No two kills at the same moment: spread evenly over a range, in no order.
fn moment(number: u32, range: &Range<Duration>) -> Duration {
    let part = f64::from(number) * 0.618_034;
    range.start + (range.end - range.start).mul_f64(part.fract())
}

/// Kills a workload so often, each time at another moment after its first
/// acknowledgement; `judge` gets what was acknowledged and what is there.
fn kills(
    name: &str,
    count: u32,
    range: Range<Duration>,
    judge: &(dyn Fn(&Writing, &Checked) + Sync),
) {
    let test = format!("kills of {name}");
    let probe = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(_) = or_skip(&test, Writing::killed(name, probe.path(), Duration::ZERO)) else {
        return;
    };
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && number < count
                {
                    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
                    let after = moment(number, &range);
                    let writing = Writing::killed(name, folder.path(), after).unwrap();
                    let of = workload(name).unwrap();
                    let found = check(of, folder.path());
                    assert_eq!(found.corrupt, None, "kill {number} after {after:?}");
                    judge(&writing, &found);
                }
            });
        }
    });
}

#[test]
fn what_was_synced_is_there_after_kills() {
    let range = Duration::ZERO..Duration::from_millis(80);
    kills("ram:synced", campaign(40), range, &|writing, found| {
        let (last, acked) = (found.last.unwrap(), writing.highest());
        assert!(last >= acked, "{last} of {acked}");
        // At most the one that was under way.
        assert!(last <= acked + 1, "{last} of {acked}");
    });
}

#[test]
fn what_is_older_than_agreed_on_is_there_whatever_is_killed() {
    let range = Duration::from_millis(100)..Duration::from_millis(1800);
    let ages = Mutex::new(Vec::new());
    let ((), slowest) = slowest(|| {
        kills("ram:told", campaign(12), range, &|writing, found| {
            let (last, killed) = (found.last.unwrap(), writing.acked.last().unwrap().1);
            let lost = writing.acked.iter().find(|(number, _)| *number > last);
            ages.lock().unwrap().push(lost.map_or(Duration::ZERO, |(_, at)| killed - *at));
        });
    });
    // A generation waits for the disk four times, and the first that finds it slower
    // than those before could not have begun earlier.
    let bound = AGREED + 4 * slowest;
    let ages = ages.into_inner().unwrap();
    let (worst, all) = (ages.iter().max(), ages.len());
    let sum = format!("{all} kills: {worst:?} lost at most; agreed {AGREED:?}, with {bound:?}");
    writeln!(std::io::stdout(), "{sum}").expect("write it");
    assert!(worst.is_none_or(|worst| *worst <= bound), "{sum}");
}

/// Generations in quick succession, each brought over by rsync, which is killed
/// under the last; what is there is looked at by the same check.
fn rsync(flags: &[&str], generations: u64, kill: Option<Duration>) -> (u64, Checked) {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [ram, disk] = ["ram", "disk"].map(|name| folder.path().join(name));
    std::fs::create_dir(&ram).unwrap();
    let mut acked = 0;
    for number in 1..=generations {
        write_generation(&ram, number).unwrap();
        // As if all of them were of one second, however slow this machine is.
        for entry in std::fs::read_dir(&ram).unwrap() {
            let file = std::fs::File::open(entry.unwrap().path()).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        }
        let mut rsync = Command::new("rsync");
        rsync.args(flags).arg(ram.join("")).arg(&disk).stderr(Stdio::null());
        let mut child = rsync.spawn().unwrap();
        if let Some(after) = kill.filter(|_| number == generations) {
            std::thread::sleep(after);
            child.kill().unwrap();
        }
        if child.wait().unwrap().success() {
            acked = number;
        }
    }
    (acked, check(workload("ram:synced").unwrap(), folder.path()))
}

#[test]
fn the_harness_sees_what_rsync_loses() {
    if Command::new("rsync").arg("--version").output().is_err() {
        return skip("the_harness_sees_what_rsync_loses", "rsync is not installed");
    }
    let asd = ["-aX", "--delete-after"];
    let log2ram = ["-aXv", "--inplace", "--no-whole-file", "--delete-after", "-q"];
    for (who, flags) in [("anything-sync-daemon", &asd[..]), ("log2ram", &log2ram)] {
        let (mut mixed, mut lost, all) = (0, 0, 20);
        for run in 0..all {
            let kill = Duration::from_millis(2 * (run % 10));
            let (acked, found) = rsync(flags, 4, Some(kill).filter(|_| run % 2 == 0));
            mixed += u32::from(found.corrupt.is_some());
            lost += u32::from(found.last.is_some_and(|last| last < acked));
        }
        let sum = format!("rsync as {who} uses it, {all} runs: {mixed} mixtures, {lost} lost");
        writeln!(std::io::stdout(), "{sum}").expect("write it");
        assert!(mixed + lost > 0, "the harness sees nothing: {sum}");
    }
}
