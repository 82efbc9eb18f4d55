//! A machine of a test's own, on which folders are put into RAM. The test starts itself
//! once more below a process of fsure that takes everything with it when the test ends
//! in any way: no mount, no loop device and no daemon is left.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::noise::send_flushes;
use super::{Run, fsure, full_test_name, skip};

const INSIDE: &str = "FSURE_TEST_RAM_BIND";
/// The program.
pub const FSURE: &str = env!("CARGO_BIN_EXE_fsure");

/// Runs the body of a test where it can mount what it likes, with a disk of its own of
/// so many MiB.
pub fn on_own_machine(module: &str, test: &str, mib: u64, body: fn(&Disk)) {
    if std::env::var_os(INSIDE).is_some() {
        return body(&Disk::mount(mib));
    }
    for (program, arguments) in [("mkfs.ext4", "-V"), ("losetup", "--version")] {
        if Command::new(program).arg(arguments).output().is_err() {
            return skip(test, &format!("{program} is not there"));
        }
    }
    if !rustix::process::geteuid().is_root() {
        return skip(test, "needs root, to mount");
    }
    let status = Command::new(FSURE)
        .args(["family", "outer", &std::process::id().to_string(), "/", "--"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", &full_test_name(module, test), "--nocapture", "--test-threads=1"])
        .env(INSIDE, "yes")
        .status()
        .expect("start");
    assert!(status.success(), "{test}: {status}");
}

/// Runs a command of the shell, which succeeds.
pub fn sh(command: &str) {
    let status = Command::new("sh").args(["-c", command]).status().expect("a shell");
    assert!(status.success(), "{command}");
}

/// An ext4 that takes what is in it, and a machine without RAM folders.
pub struct Disk(pub PathBuf);

impl Disk {
    fn mount(mib: u64) -> Self {
        sh("mount -t tmpfs test /run && mount -t tmpfs test /var/lib");
        // In memory, which goes with its mount, as the loop device does.
        let [image, disk] = ["image", "disk"].map(|name| Path::new("/var/lib").join(name));
        fs::create_dir(&disk).expect("make");
        fs::File::create(&image).and_then(|file| file.set_len(mib << 20)).expect("an image");
        sh(&format!("mkfs.ext4 -q {}", image.display()));
        sh(&format!("mount -o loop {} {}", image.display(), disk.display()));
        let device = Command::new("findmnt").args(["-no", "MAJ:MIN"]).arg(&disk).output();
        let device = String::from_utf8(device.expect("findmnt").stdout).expect("a number");
        send_flushes(&Path::new("/sys/dev/block").join(device.trim()));
        Self(disk.canonicalize().expect("the disk"))
    }

    /// A folder with files in it.
    pub fn folder(&self) -> PathBuf {
        let folder = self.0.join("work");
        fs::create_dir_all(folder.join("below")).expect("make");
        for number in 0..20 {
            fs::write(folder.join(format!("below/{number}")), vec![number; 5000]).expect("write");
        }
        folder
    }
}

/// Has the kernel say that so much memory is available, in KiB.
pub fn available(kib: u64) {
    static COVERS: AtomicU32 = AtomicU32::new(0);
    let table = fs::read_to_string("/proc/meminfo").expect("read");
    let line = |line: &str| match line.split_once(':') {
        Some(("MemAvailable", _)) => format!("MemAvailable: {kib} kB\n"),
        _ => format!("{line}\n"),
    };
    // Another file each time: a daemon reads the one before again and again.
    let cover = format!("/var/lib/meminfo-{}", COVERS.fetch_add(1, Ordering::Relaxed));
    fs::write(&cover, table.lines().map(line).collect::<String>()).expect("write");
    sh(&format!("mount --bind {cover} /proc/meminfo"));
}

/// Runs `fsure ram`.
pub fn ram(arguments: &[&str], folder: &Path) -> Run {
    let folder = folder.to_str().expect("text");
    fsure(&[&["ram"], arguments, &[folder]].concat())
}

/// Binds a folder.
pub fn bind(folder: &Path) {
    let run = ram(&["bind", "--max-loss", "300ms"], folder);
    assert!(run.code == 0 && run.stdout.contains("is NOT durable"), "{run:?}");
}

/// Unbinds a folder: nothing of it is left.
pub fn unbind(folder: &Path) {
    let run = ram(&["unbind"], folder);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!is_bound(folder));
    let left: Vec<_> = fs::read_dir("/run/fsure/ram").expect("list").collect();
    assert_eq!(left.len(), 1, "nothing but the lock: {left:?}");
}

/// Returns true if the folder is in RAM.
pub fn is_bound(folder: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the mount table");
    let is = |line: &str| line.contains(" fsure:") || line.contains(" /dev/zram");
    table.lines().any(|line| line.contains(&format!(" {} ", folder.display())) && is(line))
}

/// Returns the registry folder of the only folder in RAM.
pub fn home() -> PathBuf {
    let homes = fs::read_dir("/run/fsure/ram").expect("list").map(|one| one.expect("one").path());
    homes.into_iter().find(|path| path.is_dir()).expect("a folder in RAM")
}

/// The process that has a role, once there is one other than `than`.
#[track_caller]
pub fn process(role: &str, than: u64) -> u64 {
    let mut found = None;
    wait_while(|| {
        let text = fs::read(home().join(format!("{role}.json"))).unwrap_or_default();
        let number = serde_json::from_slice(&text).ok().and_then(|it: Value| it["number"].as_u64());
        found = number.filter(|number| *number != than);
        found.is_none()
    });
    found.expect("a number")
}

/// Kills processes, all at once, and waits until they are gone. The keeper is to be
/// the first: it would start a worker before its own turn comes.
#[track_caller]
pub fn kill(processes: &[u64]) {
    let numbers: Vec<_> = processes.iter().map(ToString::to_string).collect();
    sh(&format!("kill -9 {}", numbers.join(" ")));
    wait_while(|| processes.iter().any(|process| is_there(*process)));
}

/// Returns true if a process has not ended: it has files open until its last thread ends.
pub fn is_there(process: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    !stat.is_empty() && (threads > 1 || !stat.contains(") Z "))
}

/// Kills keepers and workers, and what they have started of each other in between.
/// None has a file open when this returns: the command line is gone before that.
pub fn kill_daemons() {
    let mut killed = BTreeSet::new();
    wait_while(|| {
        let running = daemons();
        for number in &running {
            // It may just have ended.
            let _ = kill_process(*number, Signal::KILL);
        }
        killed.extend(
            running.iter().map(|number| u64::from(number.as_raw_nonzero().get().unsigned_abs())),
        );
        !running.is_empty()
    });
    wait_while(|| killed.iter().any(|process| is_there(*process)));
}

fn daemons() -> Vec<Pid> {
    let all = fs::read_dir("/proc").expect("list").filter_map(|entry| {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = fs::read(format!("/proc/{number}/cmdline")).ok()?;
        let mut words = words.split(|byte| *byte == 0);
        let is_fsure_ram = words.next()?.ends_with(b"/fsure") && words.next()? == b"ram";
        let is_daemon = matches!(words.next()?, b"keep" | b"work");
        (is_fsure_ram && is_daemon).then(|| Pid::from_raw(number))?
    });
    all.collect()
}

/// Far longer than anything takes that comes at all: a test that waits for what does
/// not come is to say where.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits as long as it is so.
#[track_caller]
pub fn wait_while(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while is_so() {
        assert!(began.elapsed() < PATIENCE, "waited for in vain");
        pause();
    }
}

/// A moment.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Returns the exit code and the line of `ram status --json` for a folder.
pub fn status(folder: &Path) -> (i32, Value) {
    let run = ram(&["status", "--json"], folder);
    let line = run.stdout.lines().nth(1).unwrap_or_default();
    (run.code, serde_json::from_str(line).unwrap_or_else(|_| panic!("{run:?}")))
}

/// Waits until `is` is true of the status of a folder, and returns that status.
#[track_caller]
pub fn until(folder: &Path, is: impl Fn(i32, &Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let (code, state) = status(folder);
        if is(code, &state) {
            return state;
        }
        assert!(began.elapsed() < PATIENCE, "waited for in vain: {code}, {state}");
        pause();
    }
}

/// A shell that has done something and does nothing more.
pub struct Shell(Child);

impl Shell {
    /// Waits until it has done it.
    pub fn new(does: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{does}; echo; read -r end")]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().expect("a shell");
        shell.stdout.as_mut().expect("its output").read_exact(&mut [0]).expect("a word");
        Self(shell)
    }

    /// Returns the text that names it in messages to the user.
    pub fn id(&self) -> String {
        format!("process {} (", self.0.id())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.0.kill().expect("kill");
        self.0.wait().expect("wait");
    }
}
