//! The command as its users meet it: a process with arguments, two streams
//! and an exit code.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

/// The result of one call of the command.
#[derive(Clone, Debug)]
pub struct Run {
    /// The exit code, or 128 + the signal that ended it.
    pub code: i32,
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

/// Runs `fsure` with these arguments and waits for it.
pub fn fsure(args: &[impl AsRef<OsStr>]) -> Run {
    fsure_of(Path::new(NO_HOME), args)
}

/// The home of a user who has neither a configuration nor a memory.
const NO_HOME: &str = "/nonexistent";

/// Runs `fsure` in a folder.
pub fn fsure_in(folder: &Path, args: &[impl AsRef<OsStr>]) -> Run {
    ended(command(Path::new(NO_HOME)).current_dir(folder).args(args))
}

/// Runs a line of `sh` in a folder, as a person types it who has `fsure`.
pub fn typed(folder: &Path, line: &str) -> Run {
    let binary = Path::new(env!("CARGO_BIN_EXE_fsure"));
    let path = std::env::var("PATH").expect("a PATH");
    let path = format!("{}:{path}", binary.parent().expect("a folder").display());
    let mut shell = Command::new("sh");
    shell.env("XDG_CONFIG_HOME", NO_HOME).env("XDG_STATE_HOME", NO_HOME).env("PATH", path);
    ended(shell.args(["-c", line]).current_dir(folder))
}

/// Runs `fsure` for a user whose own files lie in `home`.
pub fn fsure_of(home: &Path, args: &[impl AsRef<OsStr>]) -> Run {
    ended(command(home).args(args))
}

/// Runs `fsure` with one more variable in its environment.
pub fn fsure_with((name, value): (&str, &OsStr), args: &[impl AsRef<OsStr>]) -> Run {
    ended(command(Path::new(NO_HOME)).env(name, value).args(args))
}

fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.env("XDG_CONFIG_HOME", home.join("config")).env("XDG_STATE_HOME", home.join("state"));
    command
}

/// Runs a command without input and waits for it.
pub fn ended(command: &mut Command) -> Run {
    let output = command.stdin(Stdio::null()).output().expect("start fsure");
    Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs of `fsure crash` that another process disturbs each time.
const DISTURBED_MAX: u32 = 5;

/// Runs `fsure crash --json` with mount points in `folder`; `None`, and said so, where this
/// machine cannot. Where another process has changed loop devices all the time, it is run
/// once more.
pub fn crash(test: &str, folder: &Path, args: &[&str]) -> Option<Report> {
    let mut all = [&["crash", "--json"], args].concat();
    if args.contains(&"--cuts") && !args.contains(&"--pause") {
        // Until a cut the program writes as fast as it can. A shorter time shows the same.
        all.splice(2..2, ["--pause", "0.15s"]);
    }
    let mut runs = 0;
    loop {
        let run = fsure_with(("TMPDIR", folder.as_os_str()), &all);
        if cannot_crash(&run) {
            super::skip(test, run.stderr.trim());
            return None;
        }
        runs += 1;
        if run.code != 70 || runs == DISTURBED_MAX {
            return Some(Report::new(run));
        }
        super::report_retry(test, "another process changed loop devices meanwhile");
    }
}

/// Returns true if `fsure crash` reported that this machine lacks what it needs.
pub fn cannot_crash(run: &Run) -> bool {
    let cannot = ["needs root", "needs FUSE", "cannot start mkfs", "no loop device is available"];
    cannot.iter().any(|why| run.stderr.contains(why))
}

/// Returns true, and reports a skip, if a cut has torn the superblock of a btrfs, which has
/// 4 KiB and is written with every commit, or of an ext4, which has 1 KiB: then it does not
/// mount, and the cut shows nothing about a program.
pub fn is_torn_superblock(fs: &str, cut: &Value) -> bool {
    // mount's words for EBADMSG: ext4 refuses a superblock with a wrong checksum by that.
    let is_wrong_checksum =
        cut["detail"].as_str().is_some_and(|d| d.contains("probably corrupted"));
    let is_of_kind = fs == "btrfs" || fs == "ext4" && is_wrong_checksum;
    let is = is_of_kind && cut["variant"] == "torn" && cut["state"] == "unmountable";
    if is {
        super::skip(
            &format!("one torn cut on {fs}"),
            &format!("its superblock was torn: {}", cut["detail"]),
        );
    }
    is
}

/// The exit code of a process, or 128 + the signal that ended it.
pub fn code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().expect("an exit code")
}

/// The output of one call with `--json`.
#[derive(Clone)]
pub struct Report {
    /// The exit code, or 128 + the signal that ended it.
    pub code: i32,
    /// The first line, which names the command; null if there is none.
    pub start: Value,
    /// The other lines of standard output.
    pub lines: Vec<Value>,
    /// Standard error.
    pub stderr: String,
}

/// Every line but those of single roots, without zeros and nothings: what a
/// failed test is to show.
impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit code {}", self.code)?;
        for line in self.lines.iter().filter(|line| line["type"] != "root") {
            writeln!(f, "{}", without_nothings(line))?;
        }
        f.write_str(&self.stderr)
    }
}

fn without_nothings(value: &Value) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let fields = fields.iter().map(|(name, value)| (name.clone(), without_nothings(value)));
    let is_something = |value: &Value| {
        !value.is_null() && *value != 0 && value.as_object().is_none_or(|o| !o.is_empty())
    };
    Value::Object(fields.filter(|(_, value)| is_something(value)).collect())
}

/// Runs `fsure` with these arguments and `--json`.
///
/// # Panics
/// If a line of standard output is not JSON.
pub fn fsure_json(args: &[impl AsRef<OsStr>]) -> Report {
    let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).chain([OsStr::new("--json")]).collect();
    Report::new(fsure(&args))
}

impl Report {
    /// Reads what a run with `--json` has said.
    ///
    /// # Panics
    /// If a line of standard output is not JSON.
    pub fn new(run: Run) -> Self {
        let parse = |line: &str| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("not JSON ({error}): {line}\n{}", run.stderr))
        };
        let mut lines: Vec<Value> = run.stdout.lines().map(parse).collect();
        let is_named = lines.first().is_some_and(|line| line["type"] == "start");
        let start = if is_named { lines.remove(0) } else { Value::Null };
        Self { code: run.code, start, lines, stderr: run.stderr }
    }

    /// All findings: the lines with a path and a verdict.
    pub fn findings(&self) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(|line| line["path"].is_string() && line["verdict"].is_string())
    }

    /// The finding on this path, if it has one.
    ///
    /// # Panics
    /// If there are several: a path has exactly one verdict.
    pub fn finding(&self, path: &str) -> Option<Value> {
        let mut all = self.findings().filter(|line| line["path"] == path);
        let first = all.next().cloned();
        assert!(all.next().is_none(), "several findings on {path}: {self:?}");
        first
    }

    /// The verdict on this path, if there is a finding on it.
    pub fn verdict(&self, path: &str) -> Option<String> {
        Some(self.finding(path)?["verdict"].as_str()?.to_owned())
    }

    /// All verdicts that were reported, by the exact bytes of the path.
    ///
    /// # Panics
    /// If a path has several, or bytes that do not decode.
    pub fn verdicts(&self) -> BTreeMap<Vec<u8>, String> {
        let mut all = BTreeMap::new();
        for finding in self.findings() {
            let path = path_of(finding);
            let verdict = finding["verdict"].as_str().expect("a verdict").to_owned();
            let second = all.insert(path, verdict);
            assert!(second.is_none(), "several findings on one path: {finding}");
        }
        all
    }

    /// The verdicts that were reported, as pairs of text, in the order of paths.
    pub fn path_verdicts(&self) -> Vec<(String, String)> {
        let text = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
        self.verdicts().into_iter().map(|(path, verdict)| (text(path), verdict)).collect()
    }

    /// The last line.
    ///
    /// # Panics
    /// If it is not the summary.
    pub fn summary(&self) -> &Value {
        match self.lines.last() {
            Some(line) if line["type"] == "summary" => line,
            last => panic!("the last line is no summary: {last:?}\n{}", self.stderr),
        }
    }

    /// Returns the number of files with this verdict in the summary.
    ///
    /// # Panics
    /// If the summary has no verdicts or this one's count is not a number.
    pub fn count(&self, verdict: &str) -> u64 {
        let verdicts = &self.summary()["verdicts"];
        assert!(verdicts.is_object(), "no verdicts in {:#}", self.summary());
        verdicts.get(verdict).map_or(0, |count| {
            count.as_u64().unwrap_or_else(|| panic!("not a count: {verdict}: {count}"))
        })
    }
}

/// The exact bytes of a finding's path.
///
/// # Panics
/// If it has none.
pub fn path_of(finding: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let text = finding["path"].as_str().expect("a path");
    match finding["path_bytes"].as_str() {
        Some(bytes) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(bytes);
            let bytes = bytes.expect("base64");
            assert_eq!(String::from_utf8_lossy(&bytes), text, "path and path_bytes differ");
            bytes
        }
        None => text.into(),
    }
}

/// Findings as [`Report::path_verdicts`] gives them.
pub fn path_verdicts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(path, verdict)| ((*path).to_owned(), (*verdict).to_owned())).collect()
}
