//! The check after a cut: compares the record of the witness with what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fsure_os::buffer::Buffer;
use fsure_os::opener::Opener;
use fsure_os::read;
use fsure_os::root_dir::{Root, is_lost};
use fsure_os::storage_stack::{self, Stack};
use fsure_os::tcp::Stream;
use fsure_os::{path as os_path, user_file};

use super::messages::{self, CheckSummary, DriveHistory, Message, MethodResult, PowercutMonitor};
use super::protocol_records::{self, RunDescription, RunId, RunInfo, RunQuery};
use super::result_store::{self, StoredCut, kept};
use super::run_files;
use super::test_plan::Way;
use super::wire::{self, MessageKind, RESPONSE_TIMEOUT, Secret, broken};
use super::write::{no_witness, volume_of};
use super::{Acknowledged, BLOCK, FoundBlock, Judge, Judged, TestedDevice};
use fsure_core::{Clock, Error, ExitCode, IoContext as _, Result};

/// Options of a check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The folder that was written to.
    pub folder: PathBuf,
    /// The witness, `HOST:PORT`.
    pub witness: String,
    /// Secret that the witness requires.
    pub secret: Secret,
    /// Name of the run; `None` for the last one of that folder of this machine.
    pub run: Option<String>,
    /// File in which results are kept.
    pub results: PathBuf,
    /// Source of the time.
    pub clock: Clock,
}

/// Checks a run.
pub fn check(options: &CheckOptions, listener: &dyn PowercutMonitor) -> Result<ExitCode> {
    let folder = os_path::without_links(&options.folder).context("find", &options.folder)?;
    let summary = match Asking::ask(options, &folder)? {
        Ok(asking) => asking.check(options, listener, &folder)?,
        Err(why) => nothing(None, 0, 0, why),
    };
    let code = match summary.state {
        messages::CheckState::Passed => ExitCode::Clean,
        messages::CheckState::Failed => ExitCode::Damage,
        messages::CheckState::NothingShown => ExitCode::Incomplete,
    };
    listener.report(&Message::Summary(CheckSummary { exit_code: code.number(), ..summary }));
    Ok(code)
}

/// Returns a summary that shows nothing, with the reason.
fn nothing(run: Option<String>, acked: u64, heard_ms: u64, why: String) -> CheckSummary {
    CheckSummary {
        run,
        state: messages::CheckState::NothingShown,
        acked,
        failed: 0,
        heard_ms,
        read: "not read",
        device: None,
        cuts: None,
        why: Some(why),
        exit_code: 0,
    }
}

/// Report of the witness about a run.
struct Asking {
    run: RunId,
    run_info: RunInfo,
    owed: Vec<Acknowledged>,
}

impl Asking {
    /// Requests the report. The inner error is the message of the witness that there is
    /// no such run.
    fn ask(options: &CheckOptions, folder: &Path) -> Result<std::result::Result<Self, String>> {
        let no_answer = |error: io::Error| no_witness(&options.witness, &error.to_string());
        let stream = Stream::connect(&options.witness, RESPONSE_TIMEOUT).map_err(no_answer)?;
        let (mut sender, mut receiver) = wire::call(stream, &options.secret).map_err(no_answer)?;
        let asked = RunQuery {
            run: options.run.clone(),
            host: user_file::host(),
            folder: folder.to_string_lossy().into_owned(),
        };
        let asked =
            serde_json::to_vec(&asked).map_err(|error| Error::Internal(error.to_string()))?;
        sender.send(MessageKind::Ask, &asked).map_err(no_answer)?;
        // A long log takes a while to be read.
        let run_info =
            receiver.expect(MessageKind::Run, Some(Instant::now() + 60 * RESPONSE_TIMEOUT));
        let run_info = match run_info {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Err(error.to_string()));
            }
            run_info => run_info.map_err(no_answer)?,
        };
        let run_info: RunInfo = serde_json::from_slice(&run_info).map_err(|_| {
            no_answer(broken("the run that it sent is not the JSON of 'fsure powercut'"))
        })?;
        let run = protocol_records::run_of(&run_info.opened.run)
            .ok_or_else(|| no_answer(broken("the run that it sent has no valid name")))?;
        let mut owed = Vec::new();
        loop {
            match receiver
                .receive(Some(Instant::now() + 6 * RESPONSE_TIMEOUT))
                .map_err(no_answer)?
            {
                (MessageKind::Owed, body) => owed.extend(
                    protocol_records::owed(run, &body)
                        .ok_or_else(|| no_answer(broken("no writes")))?,
                ),
                (MessageKind::Done, _) => return Ok(Ok(Self { run, run_info, owed })),
                _ => return Err(no_answer(broken("an unexpected frame"))),
            }
        }
    }

    fn check(
        self,
        options: &CheckOptions,
        listener: &dyn PowercutMonitor,
        folder: &Path,
    ) -> Result<CheckSummary> {
        let acked = self.run_info.acked.values().sum();
        let RunInfo { opened, heard_ms, .. } = &self.run_info;
        let run = opened.run.clone();
        let nothing = |why: &str| Ok(nothing(Some(run.clone()), acked, *heard_ms, why.to_owned()));
        if self.run_info.is_ended {
            return nothing("the run ended, and the power was not cut before");
        }
        if self.owed.is_empty() {
            return nothing("no write was acknowledged");
        }
        let stack = Stack::of(folder).context("ask what is below", folder)?;
        let device = TestedDevice::below(&stack);
        let run_folder = run_files::folder_of(folder, &self.run);
        if let Some(why) = self.elsewhere(folder, &run_folder, device.as_ref().ok()) {
            return nothing(&why);
        }
        if run_files::is_ended(&run_folder) {
            run_files::mark_checked(&run_folder);
            return nothing("the writer ended by itself: the power was not cut before");
        }
        let is_being_written = run_files::is_being_written(&run_folder);
        let (judged, way) = self.read(&run_folder, listener)?;
        let failed = judged.values().map(Judged::faults).sum();
        let why_uncut = why_uncut(opened, storage_stack::life(folder), storage_stack::boot());
        self.report_methods(&judged, listener);
        let summary = CheckSummary {
            state: if failed > 0 {
                messages::CheckState::Failed
            } else {
                messages::CheckState::Passed
            },
            failed,
            read: way,
            why: None,
            ..nothing("")?
        };
        let shows_nothing = |why: &str| {
            let why = Some(why.to_owned());
            Ok(CheckSummary { state: messages::CheckState::NothingShown, why, ..summary.clone() })
        };
        // Files that the writer removes meanwhile are not lost, and its cut is still to come.
        if is_being_written {
            return shows_nothing("the run is still being written: the power was not cut");
        }
        if let Some(why) = why_uncut.filter(|_| failed == 0) {
            run_files::mark_checked(&run_folder);
            return shows_nothing(why);
        }
        let device = device.and_then(|device| match &opened.device {
            Some(then) if device.is_same(then) => Ok(device),
            Some(_) => {
                Err("the drive has another model or firmware than when the run began".to_owned())
            }
            None => Err("the drive was not known when the run began".to_owned()),
        });
        let summary = match device {
            Ok(device) => {
                let cuts = keep(options, &summary, &device)?;
                CheckSummary { device: Some(device), cuts: Some(cuts), ..summary }
            }
            Err(why) => {
                let why = format!("the drive is not identified, so the result is not kept: {why}");
                CheckSummary { why: Some(why), ..summary }
            }
        };
        // Not before it is kept: the next run removes the evidence.
        run_files::mark_checked(&run_folder);
        Ok(summary)
    }

    /// Returns the reason why the files are not those that were written, if that can be
    /// seen: otherwise all of them would be reported as lost.
    fn elsewhere(
        &self,
        folder: &Path,
        run_folder: &Path,
        device: Option<&TestedDevice>,
    ) -> Option<String> {
        let opened = &self.run_info.opened;
        if let Some(why) = other_volume(&opened.volume, &volume_of(folder)) {
            return Some(why);
        }
        let serial = |device: Option<&TestedDevice>| device.map(|device| device.serial.clone());
        if let Some(why) = other(&serial(opened.device.as_ref()), &serial(device), "drive") {
            return Some(why);
        }
        if !Root::open(run_folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return None;
        }
        // Those that it took the place of may be back: that is the drive's doing.
        let is_other = |run: &String| !opened.replaces.contains(run);
        // A folder that cannot be listed is not a reason: what is owed is requested by
        // name.
        let runs = run_files::earlier(folder).unwrap_or_default().runs;
        runs.into_iter().find(is_other).map(|run| {
            format!(
                "the folder of this run is missing, and that of another run is there: to check \
                 that one, add '--run {run}'"
            )
        })
    }

    /// Passes everything that is there to the judge.
    fn read(
        &self,
        folder: &Path,
        listener: &dyn PowercutMonitor,
    ) -> Result<(BTreeMap<u32, Judged>, &'static str)> {
        let mut judge = Judge::new(self.run, self.owed.iter().copied());
        let mut worst = read::ReadMode::Direct;
        let doing = "read what is left in";
        let root = there(Root::open(folder), "the folder", listener).context(doing, folder)?;
        if let Some(root) = root {
            let opener = Opener::new(Arc::new(root), read::ReadMode::Direct);
            let mut buffer = Buffer::new(1).context(doing, folder)?;
            let listed = there(user_file::names(folder), "its list of names", listener);
            let listed = listed.context(doing, folder)?.unwrap_or_default();
            // A folder that cannot be listed may still know a name.
            let owed = self.owed.iter().map(|write| write.stamp.file);
            let all: BTreeSet<u32> =
                owed.chain(listed.iter().filter_map(|name| run_files::file_of(name))).collect();
            for file in all {
                if let Some(code) = listener.stop_requested() {
                    return Err(Error::Interrupted(code));
                }
                listener.under_way(&format!("reading file {file}"));
                let shown = show(&opener, file, &mut buffer, &mut judge);
                let what = format!("file {file}");
                let way = there(shown, &what, listener).context(doing, folder)?;
                worst = worst.max(way.unwrap_or(read::ReadMode::Direct));
            }
        }
        let way = match worst {
            read::ReadMode::Direct => "direct",
            read::ReadMode::DontCache => "dontcache",
            read::ReadMode::Dropped => "dropped",
            read::ReadMode::Cached => "cached",
        };
        Ok((judge.judged(), way))
    }

    fn report_methods(&self, judged: &BTreeMap<u32, Judged>, listener: &dyn PowercutMonitor) {
        for (number, acked) in &self.run_info.acked {
            let judged = judged.get(number).copied().unwrap_or_default();
            let method = MethodResult::new(Way::name_of(*number), *acked, &judged);
            listener.report(&Message::Method(method));
        }
    }
}

/// Returns a message if another file system is there, or one without an identifier: if
/// the one that was written to is not mounted, all of it would be reported as lost.
fn other_volume(then: &Option<String>, now: &Option<String>) -> Option<String> {
    match (then, now) {
        (Some(then), None) => Some(format!(
            "this is not the file system that was written to ({then}): mount that one"
        )),
        _ => other(then, now, "file system"),
    }
}

/// Returns a message if something is not what it was; `None` unless both are known.
fn other(then: &Option<String>, now: &Option<String>, what: &str) -> Option<String> {
    match (then, now) {
        (Some(then), Some(now)) if then != now => Some(format!(
            "this is another {what} ({now}) than the one that was written to ({then}): mount that \
             one"
        )),
        _ => None,
    }
}

/// Returns the reason why the power was not cut, or might not have been: the file system
/// is still mounted as it was, or that is unknown and the system was not restarted.
fn why_uncut(
    opened: &RunDescription,
    life: Option<String>,
    boot: Option<String>,
) -> Option<&'static str> {
    if opened.life.is_some() && life.is_some() {
        let is_same = opened.life == life;
        return is_same
            .then_some("the file system is still mounted as it was: the power was not cut");
    }
    let is_restarted = opened.boot.is_some() && boot.is_some() && opened.boot != boot;
    (!is_restarted).then_some(
        "nothing shows that the power was cut: as far as is known this machine was not restarted, \
         and its kernel does not report whether the file system was mounted again; cut the power \
         of the whole machine, or use Linux 6.8 or later",
    )
}

/// Returns what is there. After a cut, it is a result if something is missing or cannot
/// be read (`None`). It is an error if this process lacks a permission or a resource.
fn there<T>(
    read: io::Result<T>,
    what: &str,
    listener: &dyn PowercutMonitor,
) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if !is_lost(&error) => Err(error),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                listener.warn(&format!("{what} cannot be read: {error}"));
            }
            Ok(None)
        }
    }
}

/// Passes one file to the judge; returns the way in which it was read.
fn show(
    opener: &Opener,
    file: u32,
    buffer: &mut Buffer,
    judge: &mut Judge,
) -> io::Result<read::ReadMode> {
    let (source, stat) = opener.open(run_files::name_of(file).as_bytes(), false)?;
    let (mut offset, mut worst) = (0, read::ReadMode::Direct);
    // After a cut a file may have any size; beyond the largest that is written nothing is
    // owed.
    let size = stat.size.min(run_files::LARGEST);
    while offset < size {
        let wanted = buffer.len().min((size - offset) as usize);
        let filled = source.read_at(buffer, offset, wanted)?;
        worst = worst.max(filled.way);
        for (place, block) in (0..).zip(buffer[..filled.bytes].chunks(BLOCK)) {
            judge.found(FoundBlock { file, offset: offset + place * BLOCK as u64, block });
        }
        if filled.bytes == 0 {
            break;
        }
        offset += filled.bytes as u64;
    }
    Ok(worst)
}

/// Keeps the result; returns everything that is kept of the drive.
fn keep(
    options: &CheckOptions,
    summary: &CheckSummary,
    device: &TestedDevice,
) -> Result<DriveHistory> {
    let run = summary.run.clone().unwrap_or_default();
    let checked = super::messages::timestamp(&options.clock);
    let cut = StoredCut::new(run, checked, device.clone(), summary.acked, summary.failed);
    result_store::keep(&options.results, &cut).context("keep the result in", &options.results)?;
    kept(&options.results, device).context("read", &options.results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_system_that_is_not_mounted_nothing_is_judged() {
        let mark = |mark: &str| Some(mark.to_owned());
        for (now, words) in [(mark("b"), "another file system"), (None, "not the file system")] {
            let why = other_volume(&mark("a"), &now).expect("words");
            assert!(why.contains(words) && why.contains("mount that"), "{why}");
        }
        assert_eq!(other_volume(&mark("a"), &mark("a")), None);
        assert_eq!(other_volume(&None, &mark("a")), None, "it was not known");
    }

    #[test]
    fn what_was_not_cut_is_no_pass() {
        let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        let why = |life: &str, boot: &str, life_now: &str, boot_now: &str| {
            let opened = format!(
                r#"{{"run":"","program":"","host":"","folder":"","device":null,"volume":null,
                "started":"","life":{},"boot":{}}}"#,
                serde_json::json!(word(life)),
                serde_json::json!(word(boot)),
            );
            let opened = serde_json::from_str(&opened).unwrap();
            why_uncut(&opened, word(life_now), word(boot_now))
        };
        assert!(why("b 1", "b", "b 1", "b").is_some_and(|why| why.contains("as it was")));
        assert_eq!(why("b 1", "b", "b 2", "b"), None, "the drive alone was cut");
        assert_eq!(why("b 1", "b", "c 1", "c"), None);
        assert_eq!(why("", "b", "", "c"), None);
        for (boot, boot_now) in [("b", "b"), ("", "b"), ("b", ""), ("", "")] {
            let why = why("", boot, "", boot_now).expect("no pass");
            assert!(why.contains("cut the power of the whole machine"), "{why}");
        }
    }

    #[test]
    fn a_run_without_a_boot_id_is_read() {
        let run_info = r#"{"run":"","program":"","host":"","folder":"","device":null,"volume":null,
            "life":null,"started":""}"#;
        assert_eq!(serde_json::from_str::<RunDescription>(run_info).unwrap().boot, None);
    }
}
