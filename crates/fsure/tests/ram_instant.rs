//! The disk side of a RAM folder under programs that rename and delete all the time: the
//! image of its file system is copied at random moments, as a power cut would leave it, the
//! copy is mounted (which replays its journal) and recovered, and what is there is held
//! against all states that the folder had. It is one of them, or the generation says by how
//! much it is not.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::bound::{Disk, alone, ram, sh, unbind};
use support::history::{History, Judgement, Tree, tree};

/// Cuts of all file systems and programs together. By hand with more: `FSURE_CUTS=1000`.
const CUTS: u32 = 25;
/// Cuts of one mount; then another program writes on another file system.
const CUTS_PER_RUN: u32 = 5;
const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];
const MAX_LOSS: Duration = Duration::from_millis(300);
const HOST: &str = "/var/lib/host";
const DISK: &str = "/var/lib/cut-disk";
const COPY: &str = "/var/lib/cut-copy";

/// A program that changes a directory all the time.
type Program = fn(&mut History, u64);
const PROGRAMS: [(&str, Program); 5] =
    [("replace", replace), ("git", git), ("maildir", maildir), ("rsync", rsync), ("log", log)];
/// Between two operations: at full speed, and as a busy program.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_micros(300)];

fn content(number: u64) -> Vec<u8> {
    let length = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize;
    format!("{number} ").repeat(length / 8 + 1).into_bytes()
}

/// Files are replaced by renaming, and older versions are deleted.
fn replace(history: &mut History, number: u64) {
    if number == 0 {
        ["d0", "d1", "d2"].iter().for_each(|name| history.make_dir(name));
    }
    let file = format!("d{}/file-{}", number % 3, number % 7);
    history.create("new", &content(number));
    history.rename("new", &file);
    let version = format!("d{}/version-{number}", number % 3);
    history.create(&version, &content(number + 1));
    if let Some(old) = number.checked_sub(9) {
        history.remove(&format!("d{}/version-{old}", old % 3));
    }
}

/// Objects are linked and unlinked, references are locked and renamed, and packed from time
/// to time.
fn git(history: &mut History, number: u64) {
    if number == 0 {
        ["objects", "objects/pack", "refs"].iter().for_each(|name| history.make_dir(name));
        history.create("HEAD", b"ref: refs/main");
    }
    let directory = format!("objects/{:02x}", number * 37 % 23);
    if !history.names(&directory).contains(&directory) {
        history.make_dir(&directory);
    }
    let temporary = format!("{directory}/tmp_obj_{number}");
    history.create(&temporary, &content(number));
    let object = format!("{directory}/{number:038x}");
    history.link(&temporary, &object);
    history.remove(&temporary);
    history.create("refs/main.lock", object.as_bytes());
    history.rename("refs/main.lock", "refs/main");
    if number % 40 == 39 {
        let pack = format!("objects/pack/pack-{number}");
        history.create(&format!("{pack}.tmp"), &content(number).repeat(9));
        history.rename(&format!("{pack}.tmp"), &format!("{pack}.pack"));
        for name in history.names("objects/").into_iter().rev() {
            if name.starts_with("objects/pack") {
                let is_old = !name.contains(&number.to_string()) && name.ends_with(".pack");
                is_old.then(|| history.remove(&name));
            } else if name.len() > "objects/00".len() {
                history.remove(&name);
            } else {
                history.remove_dir(&name);
            }
        }
    }
}

/// A mail is delivered, seen and deleted.
fn maildir(history: &mut History, number: u64) {
    if number == 0 {
        ["tmp", "new", "cur"].iter().for_each(|name| history.make_dir(name));
    }
    history.create(&format!("tmp/{number}"), &content(number));
    history.rename(&format!("tmp/{number}"), &format!("new/{number}"));
    if let Some(seen) = number.checked_sub(5) {
        history.rename(&format!("new/{seen}"), &format!("cur/{seen}:2,S"));
    }
    if let Some(gone) = number.checked_sub(60) {
        history.remove(&format!("cur/{gone}:2,S"));
    }
}

/// Files come under a temporary name, are dated and renamed; directories are replaced as a
/// whole.
fn rsync(history: &mut History, number: u64) {
    if number == 0 {
        ["a", "b"].iter().for_each(|name| history.make_dir(name));
    }
    let directory = if number % 2 == 0 { "a" } else { "b" };
    let temporary = format!("{directory}/.file.{number:06}");
    history.create(&temporary, &content(number));
    history.date(&temporary, 1_000_000_000 + number);
    history.rename(&temporary, &format!("{directory}/file{}", number % 11));
    if number % 25 == 24 {
        history.make_dir("b.new");
        (0..5).for_each(|at| history.create(&format!("b.new/file{at}"), &content(number * at)));
        history.rename("b", "b.old");
        history.rename("b.new", "b");
        history.names("b.old/").iter().for_each(|name| history.remove(name));
        history.remove_dir("b.old");
    }
}

/// A log says what is done, before and after it.
fn log(history: &mut History, number: u64) {
    let name = format!("log.{}", number / 200);
    let mut lines: Vec<u8> = (number / 200 * 200..number)
        .flat_map(|line| format!("begin {line}\nend {line}\n").into_bytes())
        .collect();
    if number % 200 == 0 {
        history.create(&name, b"");
    }
    history.append(&name, &mut lines, format!("begin {number}\n").as_bytes());
    history.create(&format!("made-{number}"), &content(number));
    if let Some(old) = number.checked_sub(3) {
        history.remove(&format!("made-{old}"));
    }
    history.append(&name, &mut lines, format!("end {number}\n").as_bytes());
    if number % 200 == 199 && number > 200 {
        history.remove(&format!("log.{}", number / 200 - 1));
    }
}

/// What came of all cuts.
#[derive(Debug, Default)]
struct Sum {
    cuts: u32,
    instants: u32,
    spread: u32,
    wrong: Vec<String>,
    losses: Vec<Duration>,
    operations: usize,
}

#[test]
fn every_generation_is_a_state_that_the_folder_had() {
    alone("every_generation_is_a_state_that_the_folder_had", 64, |_: &Disk| {
        let asked = std::env::var("FSURE_CUTS").ok().and_then(|number| number.parse().ok());
        let cuts: u32 = asked.unwrap_or(CUTS);
        // A file system that copies an image in one moment, in memory.
        sh(&format!(
            "truncate -s 8G {HOST}.image && mkfs.xfs -q -m reflink=1 {HOST}.image && mkdir {HOST} \
             {DISK} {COPY} && mount -o loop {HOST}.image {HOST}"
        ));
        let mut sum = Sum::default();
        for run in 0.. {
            if sum.cuts >= cuts {
                break;
            }
            // Every combination has its turn, since no two of these numbers have a divisor.
            let (name, program) = PROGRAMS[run % PROGRAMS.len()];
            let format = FILE_SYSTEMS[run % FILE_SYSTEMS.len()];
            let pause = PAUSES[run % PAUSES.len()];
            let what = format!("{name} on {format}, {pause:?}");
            let count = CUTS_PER_RUN.min(cuts - sum.cuts);
            Run::new(format).cut(program, pause, count).judge(&what, &mut sum);
        }
        sum.losses.sort_unstable();
        let (median, worst) = (sum.losses.get(sum.losses.len() / 2), sum.losses.last());
        say(&format!(
            "{} cuts under {} operations: {} instants, {} spread, {} wrong; lost {median:?} at \
             the median, {worst:?} at most",
            sum.cuts,
            sum.operations,
            sum.instants,
            sum.spread,
            sum.wrong.len()
        ));
        assert!(sum.wrong.is_empty(), "{:#?}", sum.wrong);
    });
}

fn say(text: &str) {
    writeln!(std::io::stdout(), "{text}").expect("write it");
}

/// One file system, a RAM folder on it, and copies of its image.
struct Run {
    image: PathBuf,
    copies: Vec<(PathBuf, Instant)>,
    history: Option<History>,
}

impl Run {
    fn new(format: &str) -> Self {
        let image = Path::new(HOST).join("image");
        let make = match format {
            "ext4" => "mkfs.ext4 -q -F",
            "xfs" => "mkfs.xfs -q -f",
            _ => "mkfs.btrfs -q -f",
        };
        let shown = image.display();
        sh(&format!("truncate -s 400M {shown} && {make} {shown} && mount -o loop {shown} {DISK}"));
        Self { image, copies: Vec::new(), history: None }
    }

    /// Cuts the power under a program so often.
    fn cut(mut self, program: Program, pause: Duration, count: u32) -> Self {
        let folder = Path::new(DISK).join("work");
        fs::create_dir(&folder).expect("make");
        (0..50)
            .for_each(|at| fs::write(folder.join(format!("still-{at}")), "still").expect("write"));
        // The folder itself is there before anything is cut.
        sh(&format!("sync -f {DISK}"));
        let max_loss = format!("{}ms", MAX_LOSS.as_millis());
        let run = ram(&["bind", "--max-loss", &max_loss, "--size", "512M"], &folder);
        assert_eq!(run.code, 0, "{run:?}");
        let is_over = AtomicBool::new(false);
        let mut history = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut history = History::new(&folder);
                history.pause = pause;
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    program(&mut history, number);
                    number += 1;
                }
                history
            });
            std::thread::sleep(MAX_LOSS);
            for number in 0..count {
                std::thread::sleep(Duration::from_millis(30 + u64::from(number) * 61 % 170));
                let copy = self.image.with_file_name(format!("copy-{number}"));
                let (from, to) = (File::open(&self.image), File::create(&copy));
                rustix::fs::ioctl_ficlone(to.expect("make"), from.expect("open")).expect("copy");
                self.copies.push((copy, Instant::now()));
            }
            is_over.store(true, Ordering::Relaxed);
            writer.join().expect("the writer")
        });
        unbind(&folder);
        history.pause = Duration::ZERO;
        let last = self.judge_one(&history, &tree(&folder), Instant::now());
        assert!(matches!(last, Judgement::Instant { .. }), "the last state: {last:?}");
        self.history = Some(history);
        sh(&format!("umount {DISK} && rm {}", self.image.display()));
        self
    }

    fn judge_one(&self, history: &History, found: &Tree, cut: Instant) -> Judgement {
        history.states().judge(found, cut)
    }

    /// Mounts and recovers every copy, and judges it.
    fn judge(self, what: &str, sum: &mut Sum) {
        let history = self.history.expect("a writer");
        let states = history.states();
        let (mut instants, mut spread, mut wrong) = (0, Duration::ZERO, 0);
        let mut losses = Vec::new();
        for (copy, cut) in &self.copies {
            sh(&format!("mount -o loop {} {COPY}", copy.display()));
            let folder = Path::new(COPY).join("work");
            let run = ram(&["recover", "--json"], &folder);
            assert_eq!(run.code, 0, "{run:?}");
            let line = run.stdout.lines().next().unwrap_or_default();
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let marked = Duration::from_secs_f64(line["spread_ms"].as_f64().unwrap_or(0.0) / 1e3);
            let judgement = states.judge(&tree(&folder), *cut);
            sh(&format!("umount {COPY} && rm {}", copy.display()));
            match judgement {
                Judgement::Instant { loss } => {
                    instants += 1;
                    losses.push(loss);
                }
                Judgement::Mixture { spread: found, loss, .. } if found <= marked => {
                    spread = spread.max(found);
                    sum.spread += 1;
                    losses.push(loss);
                }
                Judgement::Mixture { spread, names, loss } => {
                    wrong += 1;
                    let (count, first) = (names.len(), names.first());
                    sum.wrong.push(format!(
                        "{what}: {spread:?} apart, marked {marked:?}: {count} names, {first:?}"
                    ));
                    losses.push(loss);
                }
                Judgement::Never { names } => {
                    wrong += 1;
                    sum.wrong.push(format!("{what}: never held: {:?}", names.first()));
                }
            }
        }
        losses.sort_unstable();
        say(&format!(
            "{what}: {} operations; of {} cuts {instants} instants, {wrong} wrong; at most \
             {spread:?} spread; lost {:?}",
            history.len(),
            self.copies.len(),
            losses.last()
        ));
        sum.cuts += self.copies.len() as u32;
        sum.instants += instants;
        sum.operations += history.len();
        sum.losses.extend(losses);
    }
}
