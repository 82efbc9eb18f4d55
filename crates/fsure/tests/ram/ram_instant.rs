//! The disk side of a RAM folder under programs that rename and delete all the time: the
//! image of its file system is copied at random moments, as a power cut would leave it, the
//! copy is mounted (which replays its journal) and recovered, and what is there is held
//! against all states that the folder had. It is one of them, or the generation says by how
//! much it is not.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::campaign;
use crate::support::full_test_name;
use crate::support::history::{History, Judgement, Moment, Tree, now, tree};
use crate::support::ram_machine::{Disk, FSURE, on_own_machine, ram, sh, status, unbind};
use crate::support::ram_run_folders::{NOBODY, User, users};
use crate::support::skip;

const TEST: &str = "every_generation_is_a_state_that_the_folder_had";
/// Cuts of all file systems and programs together.
const CUTS: u32 = 6;
/// Cuts of one mount; then another program writes on another file system.
const CUTS_PER_RUN: u32 = 2;
const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];
const MAX_LOSS: Duration = Duration::from_millis(300);
const HOST: &str = "/var/lib/host";
const DISK: &str = "/var/lib/cut-disk";
const COPY: &str = "/var/lib/cut-copy";
/// File to which a writing program logs its operations.
const LOG: &str = "/var/lib/log/history";
/// Environment variable that makes a process of this test a writer: the numbers of its
/// program in `PROGRAMS` and of its pause in `PAUSES`, and the folder.
const WRITER: &str = "FSURE_TEST_WRITER";

/// The command that puts the folder of the program into memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Bind,
    Run(User),
}

const MODES: [Mode; 7] = [
    Mode::Bind,
    Mode::Run(User::Nobody),
    Mode::Bind,
    Mode::Bind,
    Mode::Run(User::Own),
    Mode::Bind,
    Mode::Bind,
];

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
    let directory = if number.is_multiple_of(2) { "a" } else { "b" };
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
    if number.is_multiple_of(200) {
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

/// Writes as it is asked to, until its input ends, and logs that.
fn write(asked: &str) {
    let mut words = asked.splitn(3, ' ');
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).expect("a number");
    let ((_, program), pause) = (PROGRAMS[number()], PAUSES[number()]);
    let mut history = History::new(Path::new(words.next().expect("a folder")));
    history.pause = pause;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::io::stdin().read_to_end(&mut Vec::new()).expect("wait");
            is_over.store(true, Ordering::Relaxed);
        });
        for number in 0.. {
            program(&mut history, number);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    let log = serde_json::to_vec(&history).expect("JSON");
    fs::write(LOG, log).expect("log");
}

/// The results of all cuts.
#[derive(Debug, Default)]
struct Sum {
    cuts: u32,
    instants: u32,
    spread: u32,
    wrong: Vec<String>,
    losses: Vec<Duration>,
    operations: usize,
    /// Generations, and those that `status` counts as spread.
    generations: u64,
    spread_generations: u64,
}

#[test]
fn every_generation_is_a_state_that_the_folder_had() {
    if let Ok(asked) = std::env::var(WRITER) {
        return write(&asked);
    }
    for (program, package) in [("mkfs.xfs", "xfsprogs"), ("mkfs.btrfs", "btrfs-progs")] {
        if Command::new(program).arg("-V").output().is_err() {
            return skip(TEST, &format!("{program} is not there: install {package}"));
        }
    }
    on_own_machine(module_path!(), TEST, 64, |_: &Disk| {
        let cuts = campaign(CUTS);
        // A file system that copies an image in one moment, in memory.
        sh(&format!(
            "truncate -s 8G {HOST}.image && mkfs.xfs -q -m reflink=1 {HOST}.image && mkdir -m 777 \
             {HOST} {DISK} {COPY} /var/lib/log && mount -o loop {HOST}.image {HOST}"
        ));
        let (mut sum, users) = (Sum::default(), users(TEST));
        for run in 0.. {
            if sum.cuts >= cuts {
                break;
            }
            // Every combination has its turn, since no two of these numbers have a divisor.
            let [program, pause] = [PROGRAMS.len(), PAUSES.len()].map(|count| run % count);
            let format = FILE_SYSTEMS[run % FILE_SYSTEMS.len()];
            let mode = match MODES[run % MODES.len()] {
                Mode::Run(user) if !users.contains(&user) => Mode::Bind,
                mode => mode,
            };
            let what =
                format!("{} on {format}, {:?}, {mode:?}", PROGRAMS[program].0, PAUSES[pause]);
            let count = CUTS_PER_RUN.min(cuts - sum.cuts);
            let run = Run::new(format, mode).cut((program, pause), count, &mut sum);
            run.judge(&what, &mut sum);
        }
        sum.losses.sort_unstable();
        let (median, worst) = (sum.losses.get(sum.losses.len() / 2), sum.losses.last());
        print_line(&format!(
            "{} cuts under {} operations: {} instants, {} spread, {} wrong; {} of {} generations \
             counted as spread; lost {median:?} at the median, {worst:?} at most",
            sum.cuts,
            sum.operations,
            sum.instants,
            sum.spread,
            sum.wrong.len(),
            sum.spread_generations,
            sum.generations,
        ));
        assert!(sum.wrong.is_empty(), "{:#?}", sum.wrong);
        // What is marked all the time would show nothing. How many are instants depends on the
        // processor time that the folder gets: 901 of 1,000 cuts, 12 of 25 beside a build.
        assert!(sum.instants >= (sum.instants + sum.spread) / 5, "too few are instants");
    });
}

fn print_line(text: &str) {
    writeln!(std::io::stdout(), "{text}").expect("write it");
}

/// One file system, a RAM folder on it, and copies of its image.
struct Run {
    image: PathBuf,
    mode: Mode,
    copies: Vec<(PathBuf, Moment)>,
    history: Option<History>,
}

impl Run {
    fn new(format: &str, mode: Mode) -> Self {
        let image = Path::new(HOST).join("image");
        let make = match format {
            "ext4" => "mkfs.ext4 -q -F",
            "xfs" => "mkfs.xfs -q -f",
            _ => "mkfs.btrfs -q -f",
        };
        let shown = image.display();
        sh(&format!("truncate -s 400M {shown} && {make} {shown} && mount -o loop {shown} {DISK}"));
        Self { image, mode, copies: Vec::new(), history: None }
    }

    /// Cuts the power under a program so often.
    fn cut(mut self, (program, pause): (usize, usize), count: u32, sum: &mut Sum) -> Self {
        let folder = Path::new(DISK).join("work");
        fs::create_dir(&folder).expect("make");
        (0..50)
            .for_each(|at| fs::write(folder.join(format!("still-{at}")), "still").expect("write"));
        if self.mode == Mode::Run(User::Nobody) {
            let all = fs::read_dir(&folder).expect("list").map(|entry| entry.expect("list").path());
            let give = |path: PathBuf| chown(path, Some(NOBODY), Some(NOBODY)).expect("give");
            all.chain([folder.clone()]).for_each(give);
        }
        // The folder itself is there before anything is cut.
        sh(&format!("sync -f {DISK}"));
        let mut writer = self.begin(&folder, &format!("{program} {pause} {}", folder.display()));
        std::thread::sleep(2 * MAX_LOSS);
        for number in 0..count {
            std::thread::sleep(Duration::from_millis(30 + u64::from(number) * 61 % 170));
            let copy = self.image.with_file_name(format!("copy-{number}"));
            let (from, to) = (File::open(&self.image), File::create(&copy));
            rustix::fs::ioctl_ficlone(to.expect("make"), from.expect("open")).expect("copy");
            self.copies.push((copy, now()));
        }
        drop(writer.stdin.take());
        let ended = writer.wait().expect("wait");
        assert!(ended.success(), "{:?}: {ended}", self.mode);
        if self.mode == Mode::Bind {
            let (_, state) = status(&folder);
            let count = |field: &str| state[field].as_u64().expect("a count");
            sum.generations += count("generations");
            sum.spread_generations += count("spread_generations");
            unbind(&folder);
        }
        let log = fs::read(LOG).expect("a log");
        fs::remove_file(LOG).expect("remove");
        let history: History = serde_json::from_slice(&log).expect("JSON");
        let last = history.states().judge(&tree(&folder), now());
        assert!(matches!(last, Judgement::Instant { .. }), "the last state: {last:?}");
        self.history = Some(history);
        sh(&format!("umount {DISK} && rm {}", self.image.display()));
        self
    }

    /// Puts the folder into RAM, and has a program write there.
    fn begin(&self, folder: &Path, asked: &str) -> Child {
        let max_loss = format!("{}ms", MAX_LOSS.as_millis());
        let options = ["--max-loss", &max_loss, "--size", "512M"];
        let own = std::env::current_exe().expect("this program");
        let mut command = match self.mode {
            Mode::Bind => {
                let run = ram(&[&["bind"], &options[..]].concat(), folder);
                assert_eq!(run.code, 0, "{run:?}");
                Command::new(own)
            }
            Mode::Run(user) => {
                let mut command = Command::new(FSURE);
                command.args(["ram", "run"]).args(options).arg(folder).arg("--").arg(own);
                if user == User::Nobody {
                    command.uid(NOBODY).gid(NOBODY);
                }
                command
            }
        };
        let test = full_test_name(module_path!(), TEST);
        command.args(["--exact", &test, "--nocapture"]).env(WRITER, asked).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("start")
    }

    /// Mounts and recovers every copy, and judges it.
    fn judge(self, what: &str, sum: &mut Sum) {
        let history = self.history.expect("a writer");
        let states = history.states();
        let (mut instants, mut wrong, mut losses) = (0, 0, Vec::new());
        let (mut spread, mut marks) = (Duration::ZERO, Vec::new());
        for (copy, cut) in &self.copies {
            let (found, marked) = recovered(copy);
            marks.extend((!marked.is_zero()).then_some(marked));
            match states.judge(&found, *cut) {
                Judgement::Instant { loss } => {
                    instants += 1;
                    losses.push(loss);
                }
                Judgement::Mixture { spread: apart, loss, .. } if apart <= marked => {
                    spread = spread.max(apart);
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
        print_line(&format!(
            "{what}: {} operations; of {} cuts {instants} instants, {wrong} wrong; marked \
             {marks:?}, {spread:?} found; lost {:?}",
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

/// Returns the content of a copy of an image after `recover`, and the spread that
/// `recover` reports.
fn recovered(copy: &Path) -> (Tree, Duration) {
    sh(&format!("mount -o loop {} {COPY}", copy.display()));
    let folder = Path::new(COPY).join("work");
    // As the user who put it into RAM: root does not finish what another user has left. And in
    // the group of that user, or the owner of a folder that recovery makes could not be set.
    let owner = fs::metadata(&folder).expect("it is there");
    let mut recover = Command::new(FSURE);
    let recover = recover.args(["ram", "recover", "--json"]).arg(&folder);
    let run = recover.uid(owner.uid()).gid(owner.gid()).output();
    let run = run.expect("start");
    assert!(run.status.success(), "{run:?}");
    let line = String::from_utf8_lossy(&run.stdout);
    let line = line.lines().nth(1).expect("a second line");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let marked = Duration::from_secs_f64(line["spread_ms"].as_f64().unwrap_or(0.0) / 1e3);
    let found = tree(&folder);
    sh(&format!("umount {COPY} && rm {}", copy.display()));
    (found, marked)
}
