//! A witness as its users start it, and what the three commands say.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Run, fsure_of};

/// A process that has said something in its first line, and is killed when this is
/// dropped.
pub struct Talking {
    pub child: Child,
    pub first_line: Value,
    lines: BufReader<ChildStdout>,
}

impl Talking {
    /// Starts `fsure powercut` with `--json`, and waits for its first line.
    pub fn start(home: &Path, args: &[&str]) -> Self {
        Self::try_start(home, args).expect("a first line")
    }

    /// The same; `None` where it says nothing.
    pub fn try_start(home: &Path, args: &[&str]) -> Option<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(["powercut", "--json"]).args(args);
        command.env("XDG_CONFIG_HOME", home).env("XDG_STATE_HOME", home.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start fsure");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut talking = Self { child, first_line: Value::Null, lines };
        talking.first_line = talking.next()?;
        if talking.first_line["type"] == "start" {
            talking.first_line = talking.next()?;
        }
        Some(talking)
    }

    /// Its next line; `None` where it has ended.
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("read a line");
        (!line.is_empty()).then(|| serde_json::from_str(&line).expect("JSON"))
    }

    /// Kills it as a power cut would, with no chance to say anything.
    pub fn kill(mut self) {
        self.child.kill().expect("kill it");
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A witness of this machine without a token; where it listens is the answer, too.
pub fn witness(home: &Path, listen: &str) -> (Talking, String) {
    try_witness(home, listen).expect("a first line")
}

/// Starts a witness where another was: another process may have its port for a moment.
pub fn witness_again(home: &Path, listen: &str) -> Talking {
    loop {
        if let Some((talking, _)) = try_witness(home, listen) {
            return talking;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn try_witness(home: &Path, listen: &str) -> Option<(Talking, String)> {
    let folder = home.join("witness");
    let args = ["witness", "--listen", listen, "--dir", folder.to_str().expect("UTF-8")];
    let talking = Talking::try_start(home, &args)?;
    let address = talking.first_line["address"].as_str().expect("an address").to_owned();
    Some((talking, address))
}

/// Returns the number of writes that were reported as durable to a witness of that home,
/// by its log: a check takes so long that the writer has removed its first files by then.
pub fn witnessed_writes(home: &Path, run: &str) -> usize {
    let log = std::fs::read(home.join("witness").join(format!("{run}.log"))).unwrap_or_default();
    let (mut rest, mut acked) = (log.get(28..).unwrap_or_default(), 0);
    while let Some(length) = rest.first_chunk() {
        let Some(entry) = rest.get(8..8 + u32::from_le_bytes(*length) as usize) else { break };
        rest = &rest[8 + entry.len()..];
        // Behind the time: the kind, and of records the number of the first.
        let mut records = if entry[8] == 2 { &entry[17..] } else { &[] };
        while let [kind, ..] = records {
            acked += usize::from(*kind == 2);
            records = &records[[0, 25, 9, 5, 1][usize::from(*kind)]..];
        }
    }
    acked
}

/// A home with a folder to write to. Not in memory, where nothing is written.
pub struct Place {
    home: tempfile::TempDir,
    pub disk: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder");
        let disk = home.path().join("disk");
        std::fs::create_dir(&disk).expect("make a folder");
        Self { disk, home }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn disk(&self) -> &str {
        self.disk.to_str().expect("UTF-8")
    }

    /// Writes for a while, and is killed in the middle. The folder of the run.
    pub fn write(&self, address: &str, more: &[&str]) -> PathBuf {
        let args = [&["write", self.disk(), "--witness", address, "--methods", "fsync"], more];
        let writer = Talking::start(self.home(), &args.concat());
        let folder = PathBuf::from(writer.first_line["folder"].as_str().expect("a folder"));
        let run = writer.first_line["run"].as_str().expect("a name");
        while witnessed_writes(self.home(), run) < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        writer.kill();
        folder
    }
}

/// Runs a check and returns its lines and its exit code.
pub fn check(home: &Path, disk: &Path, address: &str, more: &[&str]) -> (Vec<Value>, i32) {
    let disk = disk.to_str().expect("UTF-8");
    let args = [&["powercut", "check", "--json", disk, "--witness", address], more].concat();
    let run = fsure_of(home, &args);
    (lines(&run), run.code)
}

/// The lines of a run with `--json`.
pub fn lines(run: &Run) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{run:?}"));
    run.stdout.lines().map(parse).filter(|line: &Value| line["type"] != "start").collect()
}

/// Writes acknowledged, as a check has them of all methods.
pub fn acked(lines: &[Value]) -> u64 {
    lines.last().expect("a summary")["acked"].as_u64().expect("a number")
}

/// A sum over the methods of a check.
pub fn sum(lines: &[Value], what: &str) -> u64 {
    let methods = lines.iter().filter(|line| line["type"] == "method");
    methods.map(|line| line[what].as_u64().expect("a number")).sum()
}

/// The last line of a check.
pub fn summary(lines: &[Value]) -> &Value {
    lines.last().expect("a summary")
}
