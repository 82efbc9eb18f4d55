//! Examines what a cut has left: it is mounted again, on an honest drive, and the check
//! program runs on it.

use std::sync::{Arc, Mutex};

use fsure_os::loop_device::Reliance;
use fsure_os::loop_mount::{MountArea, MountError};
use fsure_os::process_tree::Ended;

use super::backend::{DriveConfig, MountedMedium, OfflineDrive};
use super::disturbed::undisturbed;
use super::program::{Program, ProgramCommand, locked};
use super::{CrashMonitor, CrashOptions};
use crate::CutState;
use fsure_core::{Error, Monitor, Result};

/// First word of the line in which a check reports the number up to which everything is
/// there.
const LAST: &str = "LAST";

/// Writes 4 MiB, as much as the log of SQLite has by default.
const WRITE_A_FILE: &str = "export LC_ALL=C; head -c 4194304 /dev/zero > \"$MNT/.fsure-room\" && \
                            sync \"$MNT/.fsure-room\"";
/// Words of the C locale for `ENOSPC`.
const NO_SPACE: &str = "No space left on device";

/// Description of a cut whose check had no room.
const NO_ROOM: &str = "the check failed, and the file system is full: name a larger drive with \
                       '--size'";

/// Result of an examination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImageState {
    /// `None`: the run was asked to end before anything was known.
    pub(super) state: Option<CutState>,
    /// Everything up to this number is there; `None` if the check did not report one.
    pub(super) last: Option<u64>,
    /// Description in words.
    pub(super) detail: Option<String>,
}

impl ImageState {
    fn new(state: CutState, detail: impl Into<String>) -> Self {
        Self { state: Some(state), detail: Some(detail.into()), last: None }
    }
}

impl ImageState {
    /// Returns how many of the acknowledged numbers are lost; `None` if that is not
    /// known.
    pub(super) fn lost(&self, state: CutState, acked: u64) -> Option<u64> {
        match (state, self.last) {
            (CutState::HarnessBroken, _) => None,
            (CutState::Unmountable, _) => Some(acked),
            (_, Some(last)) => Some(acked.saturating_sub(last)),
            (CutState::Survived, None) => Some(0),
            (_, None) => None,
        }
    }
}

/// Examines what a cut has left, without changing it.
pub(super) fn examine(
    options: &CrashOptions,
    site: &Arc<MountArea>,
    left: &OfflineDrive,
    acked: u64,
    listener: &dyn CrashMonitor,
) -> Result<ImageState> {
    undisturbed(listener, "a check", || {
        let mounted = match mount(options, site, left) {
            Ok(mounted) => mounted,
            Err(MountError::Unmountable(words)) => {
                return Ok(ImageState::new(CutState::Unmountable, words));
            }
            Err(MountError::Disturbed(why)) => return Err(Error::HarnessBroken { why }),
            Err(MountError::Refused(error)) => {
                return Ok(ImageState::new(CutState::HarnessBroken, error.to_string()));
            }
        };
        let found = look(options, &mounted, acked, listener);
        // A write by another process during the check is not a loss.
        if found.state.is_some_and(CutState::is_loss) {
            mounted.check(Reliance::Content)?;
        }
        Ok(found)
    })
}

/// Turns a survived cut into a broken harness if the twin has shown that the check
/// notices no loss.
pub(super) fn twin_found_no_loss(state: CutState, has_teeth: bool) -> CutState {
    if state == CutState::Survived && !has_teeth { CutState::HarnessBroken } else { state }
}

/// Runs the check on what is mounted.
fn look(
    options: &CrashOptions,
    mounted: &MountedMedium,
    acked: u64,
    monitor: &dyn Monitor,
) -> ImageState {
    let check_output = Arc::<Mutex<CheckOutput>>::default();
    let keep = Arc::clone(&check_output);
    let output = move |line: &[u8]| locked(&keep).add_line(line);
    let command = ProgramCommand { words: &options.check, acked: Some(acked) };
    let started = Program::start(mounted, &command, Box::new(output));
    let mut check = match started {
        Ok(check) => check,
        Err(error) => return ImageState::new(CutState::HarnessBroken, error.to_string()),
    };
    let ended = match check.wait(monitor) {
        Ok(Some(ended)) => ended,
        Ok(None) => return ImageState::default(),
        Err(error) => return ImageState::new(CutState::HarnessBroken, error.to_string()),
    };
    let check_output = locked(&check_output).clone();
    let found = judge(ended, &check_output, acked, check.last_words().pop());
    let is_failed = matches!(ended, Ended::Signal(_)) || found.state == Some(CutState::Corrupt);
    match is_failed && !has_room(mounted, monitor) {
        true => ImageState::new(CutState::HarnessBroken, NO_ROOM),
        false => found,
    }
}

/// Returns false if what is mounted has no room for a file. A check that recovers a database then
/// fails for want of room, which says nothing about the data. It is mounted from a copy of the
/// image. Any other error, as of a file system that has become read-only, is not want of room.
fn has_room(mounted: &MountedMedium, monitor: &dyn Monitor) -> bool {
    let words = ["sh", "-c", WRITE_A_FILE].map(Into::into);
    let command = ProgramCommand { words: &words, acked: None };
    let Ok(mut program) = Program::start(mounted, &command, Box::new(|_| {})) else { return true };
    let ended = program.wait(monitor);
    let has_failed = matches!(ended, Ok(Some(Ended::Code(code))) if code != 0);
    !(has_failed && program.last_words().iter().any(|line| line.contains(NO_SPACE)))
}

/// Output of a check, as far as it matters.
#[derive(Clone, Debug, Default)]
struct CheckOutput {
    last: Option<u64>,
    /// Message about a `LAST` line that has no number.
    unclear: Option<String>,
}

impl CheckOutput {
    fn add_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(LAST) || !text.starts_with(LAST) {
            return;
        }
        match (words.next().and_then(|number| number.parse().ok()), words.next()) {
            (Some(number), None) => self.last = Some(number),
            _ => {
                self.unclear = Some(format!("the check printed no number: '{}'", text.trim_end()));
            }
        }
    }
}

/// Mounts what a cut has left. There is a second attempt in case the first one failed by
/// chance: the verdict that an image does not mount is too grave for one attempt.
fn mount(
    options: &CrashOptions,
    site: &Arc<MountArea>,
    left: &OfflineDrive,
) -> std::result::Result<MountedMedium, MountError> {
    let mount = || left.switch_on(DriveConfig::HONEST).mount(site, &options.front);
    mount().or_else(|_| mount())
}

/// Derives the result from the end of a check and from its output.
fn judge(ended: Ended, output: &CheckOutput, acked: u64, words: Option<String>) -> ImageState {
    let last = output.last;
    let (state, detail) = match ended {
        // As printed by `echo LAST $(cat file)` if the file is gone: it must not pass for
        // a check that reports no number.
        Ended::Code(0) if output.unclear.is_some() => {
            (CutState::HarnessBroken, output.unclear.clone())
        }
        Ended::Code(0) if last.is_some_and(|last| last < acked) => (CutState::Lost, None),
        Ended::Code(0) => (CutState::Survived, None),
        Ended::Code(code @ (126 | 127)) => {
            let words = words.unwrap_or_else(|| format!("exit code {code}"));
            (CutState::HarnessBroken, Some(format!("the check could not be run: {words}")))
        }
        Ended::Code(code) => (
            CutState::Corrupt,
            Some(words.unwrap_or_else(|| format!("the check ended with {code}"))),
        ),
        Ended::Signal(signal) => {
            (CutState::HarnessBroken, Some(format!("signal {signal} ended the check")))
        }
    };
    ImageState { state: Some(state), last, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_a_check_has_its_meaning() {
        let state = |ended, last, acked| {
            judge(ended, &CheckOutput { last, unclear: None }, acked, None).state.unwrap()
        };
        assert_eq!(state(Ended::Code(0), None, 9), CutState::Survived);
        assert_eq!(state(Ended::Code(0), Some(9), 9), CutState::Survived);
        assert_eq!(state(Ended::Code(0), Some(12), 9), CutState::Survived, "more than is owed");
        assert_eq!(state(Ended::Code(0), Some(8), 9), CutState::Lost);
        assert_eq!(state(Ended::Code(0), Some(0), 0), CutState::Survived, "nothing is owed");
        assert_eq!(state(Ended::Code(1), Some(9), 9), CutState::Corrupt);
        assert_eq!(state(Ended::Code(125), None, 0), CutState::Corrupt);
        for broken in [Ended::Code(126), Ended::Code(127), Ended::Signal(11)] {
            assert_eq!(state(broken, Some(9), 9), CutState::HarnessBroken);
        }
    }
    #[test]
    fn a_last_without_a_number_is_no_word_for_it() {
        let judged = |lines: &[&str]| {
            let mut output = CheckOutput::default();
            lines.iter().for_each(|line| output.add_line(line.as_bytes()));
            judge(Ended::Code(0), &output, 9, None)
        };
        for line in ["LAST", "LAST ", "LAST -1", "LAST 9 8", "LAST x", "LAST 18446744073709551616"]
        {
            assert_eq!(judged(&[line]).state, Some(CutState::HarnessBroken), "{line}");
            assert_eq!(judged(&["LAST 9", line]).state, Some(CutState::HarnessBroken), "{line}");
        }
        for line in ["LAST 9\r", "LAST  9 ", "LASTING", " LAST", "at LAST 3", ""] {
            assert_eq!(judged(&[line]).state, Some(CutState::Survived), "{line}");
        }
        assert_eq!(judged(&["LAST 8"]).state, Some(CutState::Lost));
    }
}
