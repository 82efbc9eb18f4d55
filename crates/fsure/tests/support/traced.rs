//! The command under `strace`: to see what it asks the system for, and to have
//! the system refuse something to it alone.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::run::{Run, code};

/// The result of a call of the command, and all its system calls, one a line.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Its result.
    pub run: Run,
    /// The calls, as `strace -f -y` writes them.
    pub log: String,
}

/// Runs `fsure` with these arguments under `strace` with these options.
///
/// # Errors
/// Why this machine cannot do that: meant for `or_skip`.
pub fn traced(options: &[&str], args: &[impl AsRef<OsStr>]) -> Result<Traced, String> {
    let log = tempfile::NamedTempFile::new().expect("make a temporary file");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "signal=none", "-o"]).arg(log.path()).args(options);
    command.arg(env!("CARGO_BIN_EXE_fsure")).args(args).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("strace: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let run = Run {
        code: code(output.status),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    };
    if run.stderr.starts_with("strace:") {
        return Err(run.stderr);
    }
    Ok(Traced { run, log: text(&std::fs::read(log.path()).expect("read the log")) })
}

impl Traced {
    /// The calls, each with its name and the line it begins on.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.log.lines().filter_map(|line| {
            let call = line.split_once(' ')?.1.trim_start();
            let (name, _) = call.split_once('(')?;
            // Not the second half of a call, nor the end of a thread.
            name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some((name, call))
        })
    }
}
