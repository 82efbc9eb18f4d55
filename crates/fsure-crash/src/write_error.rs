//! Tests what `fsync` reports after a failed write: whether a program that calls it again
//! is told that it succeeded when it did not ("fsyncgate", PostgreSQL's mailing list,
//! 2018).
//!
//! A child keeps two descriptors of a file open, writes to the file again and calls
//! `fsync` again and again, by each of them and by a third that was opened later. The
//! drive fails one write in between and none after it. Then it is cut, and the content of
//! the file is compared with what the calls reported to the child.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fsure_os::durable_write::Reopened;
use fsure_os::loop_device::Reliance;
use fsure_os::loop_mount::MountArea;
use fsure_os::process_tree::Ended;
use fsure_os::{path, user_file};

use super::backend::{BackendDrive, DriveConfig, MountedMedium};
use super::check_image::examine;
use super::disturbed::{undisturbed, unmounted};
use super::prepare::{prepared, site};
use super::program::{PROGRAM_POLL_INTERVAL, Program, ProgramCommand, describe_end, locked};
use super::{CrashMonitor, CrashOptions};
use crate::{Call, ContentSeen, CrashLine, CrashSummary, CutState, FlushAfterError};
use fsure_core::Random;
use fsure_core::{Error, ExitCode, IoContext as _, Result};
use fsure_simdrive::CutVariant;

const FILE: &str = "file";
const LENGTH: usize = 4096;
/// Byte that fills the file before the failure, and the byte that is written then.
const OLD_BYTE: u8 = b'A';
const NEW: u8 = b'B';
/// Line that the child prints when the next write is to fail.
const READY: &[u8] = b"READY";
/// Prefix of the line about a call: `CALL fsync, the descriptor that wrote: EIO`.
const CALL: &str = "CALL ";
/// Prefix of the line about the content of the file as the child reads it last: `SEEN B`.
const SEEN: &[u8] = b"SEEN ";

/// Runs the child, which passes each line to `print_line` as it comes. The next write is to fail
/// once the file `armed` exists.
pub fn ask_again_and_again(
    folder: &Path,
    armed: &Path,
    print_line: &mut dyn FnMut(&str),
) -> Result<()> {
    let file = folder.join(FILE);
    let open = || Reopened::open(&file).context("open", &file);
    let (mut writer, other) = (open()?, open()?);
    print_line("READY");
    while !path::exists(armed) {
        std::thread::sleep(PROGRAM_POLL_INTERVAL);
    }
    let mut record_result = |who: &str, call: &str, result: std::io::Result<()>| {
        let result = match result {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        print_line(&format!("{CALL}{call}, {who}: {result}"));
    };
    record_result("the descriptor that wrote", "write", writer.write(&[NEW; LENGTH]));
    for _ in 0..3 {
        record_result("the descriptor that wrote", "fsync", writer.flush());
    }
    for _ in 0..2 {
        record_result("another, opened before", "fsync", other.flush());
    }
    match Reopened::open(&file) {
        Ok(late) => record_result("another, opened after", "fsync", late.flush()),
        Err(error) => record_result("another, opened after", "open", Err(error)),
    }
    let mut seen = [0; LENGTH];
    if writer.read(&mut seen).is_ok() {
        print_line(&format!("SEEN {}", char::from(seen[0])));
    }
    Ok(())
}

/// Makes a write fail on a drive with the file system of the options while a child calls
/// for flushes. `child` is the command that runs [`ask_again_and_again`], without its two
/// arguments. The exit code is that of a difference if a flush was reported as a success
/// that had failed.
pub fn fail_a_write(
    options: &CrashOptions,
    child: &[OsString],
    listener: &dyn CrashMonitor,
) -> Result<ExitCode> {
    let began = options.clock.watch();
    let site = site(options)?;
    let line =
        undisturbed(listener, "the failing of a write", || fail(options, child, &site, listener))?;
    let code = match (line.reported, line.forgets) {
        (_, true) => ExitCode::Differences,
        (true, false) => ExitCode::Clean,
        // Nothing failed, or no call reported it.
        (false, false) => ExitCode::Incomplete,
    };
    listener.report(&CrashLine::FlushAfterError(line));
    let (seed, seconds) = (options.seed, began.elapsed().as_secs_f64());
    let summary =
        CrashSummary { seed, seconds, exit_code: code.number(), ..CrashSummary::default() };
    listener.report(&CrashLine::Summary(summary));
    Ok(code)
}

fn fail(
    options: &CrashOptions,
    child: &[OsString],
    site: &Arc<MountArea>,
    listener: &dyn CrashMonitor,
) -> Result<FlushAfterError> {
    let text = char::from(OLD_BYTE).to_string().repeat(LENGTH);
    let prepare = format!("printf %s {text} > {FILE} && sync {FILE} .");
    let prepare = ["sh", "-c", &prepare].map(Into::into).to_vec();
    let options = &CrashOptions { prepare, ..options.clone() };
    let drive = prepared(options, site, listener)?.switch_on(DriveConfig::HONEST);
    let mounted = drive.mount(site, &options.front);
    let mounted = mounted.map_err(|error| unmounted(options, error))?;
    let output = output_of(&mounted, options, child, (site, &drive), listener)?;
    mounted.check(Reliance::Flushes)?;
    let after = after_cut(options, site, &drive, listener)?;
    Ok(FlushAfterError::new(options.front.name(), output.calls, output.seen, after))
}

#[derive(Debug, Default)]
struct ProgramOutput {
    calls: Vec<Call>,
    seen: ContentSeen,
    is_ready: bool,
}

impl ProgramOutput {
    fn add_line(&mut self, line: &[u8]) {
        self.is_ready |= line == READY;
        if let Some(seen) = line.strip_prefix(SEEN) {
            self.seen = of(seen.first().copied());
        }
        let text = String::from_utf8_lossy(line);
        let call = text.strip_prefix(CALL).and_then(|rest| rest.split_once(": "));
        if let Some((call, result)) = call {
            let (call, by) = call.split_once(", ").unwrap_or((call, ""));
            let [call, by, result] = [call, by, result].map(str::to_owned);
            self.calls.push(Call { call, by, result });
        }
    }
}

fn of(byte: Option<u8>) -> ContentSeen {
    match byte {
        Some(NEW) => ContentSeen::New,
        Some(OLD_BYTE) => ContentSeen::Old,
        _ => ContentSeen::Neither,
    }
}

fn output_of(
    mounted: &MountedMedium,
    options: &CrashOptions,
    child: &[OsString],
    (site, drive): (&MountArea, &BackendDrive),
    listener: &dyn CrashMonitor,
) -> Result<ProgramOutput> {
    listener.under_way(&format!("{}: failing a write", options.front.name()), 0.5);
    let armed = site.folder().context("make a folder in", &options.folder)?.join("armed");
    let words = [child, &[mounted.place().into(), armed.clone().into()]].concat();
    let output = Arc::<Mutex<ProgramOutput>>::default();
    let collected = Arc::clone(&output);
    let add_line = move |line: &[u8]| locked(&collected).add_line(line);
    let command = ProgramCommand { words: &words, acked: None };
    let started = Program::start(mounted, &command, Box::new(add_line));
    let mut program = started.context("start a program at", mounted.place())?;
    let mut is_armed = false;
    let ended = loop {
        if let Some(ended) = program.ended().context("wait for", mounted.place())? {
            break ended;
        }
        if let Some(code) = listener.stop_requested() {
            return Err(Error::Interrupted(code));
        }
        if !is_armed && locked(&output).is_ready {
            drive.fail_after(0);
            user_file::create_new(&armed).map(drop).context("make", &armed)?;
            is_armed = true;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if ended != Ended::Code(0) {
        return Err(Error::Internal(describe_end(ended, &program.last_words())));
    }
    drop(program);
    Ok(std::mem::take(&mut *locked(&output)))
}

/// Returns what the file holds if the power is cut after all calls.
fn after_cut(
    options: &CrashOptions,
    site: &Arc<MountArea>,
    drive: &BackendDrive,
    listener: &dyn CrashMonitor,
) -> Result<ContentSeen> {
    let left = drive.cut(CutVariant::None, &mut Random::new(options.seed));
    let line = format!("head -c 1 {FILE} | grep -q {} && echo LAST 1", char::from(NEW));
    let line =
        format!("{line}; head -c 1 {FILE} | grep -q {} && echo LAST 2", char::from(OLD_BYTE));
    let check = ["sh", "-c", &format!("{line}; exit 0")].map(Into::into).to_vec();
    let found = examine(&CrashOptions { check, ..options.clone() }, site, &left, 0, listener)?;
    match (found.state, found.last) {
        (None, _) => Err(Error::Interrupted(ExitCode::Interrupted)),
        (Some(CutState::Survived), Some(1)) => Ok(ContentSeen::New),
        (Some(CutState::Survived), Some(2)) => Ok(ContentSeen::Old),
        _ => Ok(ContentSeen::Neither),
    }
}
