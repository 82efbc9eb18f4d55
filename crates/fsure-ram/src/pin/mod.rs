//! `ram pin`: the files of a folder held in memory by a process of its own, one
//! for each folder.

mod control_socket;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::memory_info::{self, LimitingCgroup, Memory, Pressure};
use fsure_os::mlock::{Held, Pin, Refused};
use serde::{Deserialize, Serialize};

use self::control_socket::{PinSocket, leave_word, real};
pub use self::control_socket::{pinned, unpin, word};
use fsure_core::{Error, Result, json_path, json_path_and_bytes, units};

/// Part of the available memory that can be held: one of so many.
const PINNED_SHARE_DIVISOR: u64 = 2;
/// It is let go of when less than this part of the memory is available,
const AVAILABLE_MIN_DIVISOR: u64 = 20;
/// or when nothing but waiting for memory was done in this many percent of the
/// last ten seconds.
const STALL_PERCENT_MAX: f64 = 10.0;
/// Interval between checks of the memory.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay before a signal or a request is noticed.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Changes come in crowds: what follows within this time is taken up together.
const CHANGE_BATCH_TIME: Duration = Duration::from_millis(100);
/// Largest number of left-out names that are reported; all are counted.
const NAMES_SHOWN_MAX: usize = 100;

/// State of a process that holds a folder, as it reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredPin", into = "StoredPin")]
pub struct Pinned {
    /// The folder.
    pub folder: PathBuf,
    /// True if files are still being read into memory for the first time.
    pub is_filling: bool,
    /// The process that holds it.
    pub process: u32,
    /// Files that are held.
    pub files: u64,
    /// Bytes that are held, in whole pages.
    pub bytes: u64,
    /// The first of the files that are not held, by their paths in the folder, and the reason
    /// for each.
    pub left_out: Vec<(PathBuf, String)>,
    /// Number of files that are not held.
    pub left_out_count: u64,
}

/// The form in which it is reported, to programs too.
#[derive(Serialize, Deserialize)]
struct StoredPin {
    folder: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder_bytes: Option<String>,
    state: PinState,
    process: u32,
    files: u64,
    bytes: u64,
    left_out: Vec<LeftOut>,
    left_out_count: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PinState {
    Filling,
    Held,
}

#[derive(Serialize, Deserialize)]
struct LeftOut {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    why: String,
}

impl From<StoredPin> for Pinned {
    fn from(stored: StoredPin) -> Self {
        let StoredPin { process, files, bytes, left_out_count, .. } = stored;
        let path = |text, bytes| fsure_os::path::from_bytes(&json_path(text, bytes)).into_owned();
        let left_out = stored.left_out.into_iter();
        Self {
            folder: path(stored.folder, stored.folder_bytes),
            is_filling: matches!(stored.state, PinState::Filling),
            process,
            files,
            bytes,
            left_out: left_out.map(|out| (path(out.path, out.path_bytes), out.why)).collect(),
            left_out_count,
        }
    }
}

impl From<Pinned> for StoredPin {
    fn from(pinned: Pinned) -> Self {
        let Pinned { process, files, bytes, left_out_count, .. } = pinned;
        let parts = |path: &Path| json_path_and_bytes(&fsure_os::path::bytes(path));
        let (folder, folder_bytes) = parts(&pinned.folder);
        let left_out = pinned.left_out.into_iter().map(|(path, why)| {
            let (path, path_bytes) = parts(&path);
            LeftOut { path, path_bytes, why }
        });
        let state = if pinned.is_filling { PinState::Filling } else { PinState::Held };
        let left_out = left_out.collect();
        Self { folder, folder_bytes, state, process, files, bytes, left_out, left_out_count }
    }
}

/// Reasons why a folder is no longer held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseReason {
    /// It was requested.
    Asked,
    /// The folder is gone.
    Gone,
    /// It has another path now.
    Moved,
    /// Memory became short; the text says how.
    Short(String),
}

/// Holds a folder in memory until it is to be let go of: asked at its door, by
/// `is_over`, by the folder's end or because memory is short. `runtime` is the
/// folder for sockets; `pinned` is called once all is in memory.
pub fn pin(
    folder: &Path,
    runtime: &Path,
    pinned: &dyn Fn(&Pinned),
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<ReleaseReason> {
    let folder = real(folder)?;
    let door = PinSocket::open(&folder, runtime)?;
    let most = most(&memory_info::memory(), memory_info::group(None).as_ref());
    let pin = Pin::new(&folder).map_err(|refused| refusal(&folder, refused, most))?;
    let filling = Pinned { is_filling: true, ..describe(&folder, &Held::default()) };
    let now = Mutex::new(filling);
    let (is_asked, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let answer = |line: Option<&str>| {
        if line == Some("end") {
            is_asked.store(true, Ordering::Relaxed);
        }
        serde_json::to_string(&*locked(&now)).expect("numbers and text under fixed names")
    };
    let is_over = || is_over() || is_asked.load(Ordering::Relaxed);
    let report = |held: &Held| {
        let before = std::mem::replace(&mut *locked(&now), describe(&folder, held));
        if before.is_filling {
            pinned(&locked(&now));
        }
    };
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| door.serve(&answer, &|| has_ended.load(Ordering::Relaxed)));
        let ended = keep(pin, &folder, most, &is_over, &report);
        has_ended.store(true, Ordering::Relaxed);
        ended
    });
    let ended = ended.map_err(|refused| refusal(&folder, refused, most));
    let word = match &ended {
        Ok(ReleaseReason::Asked | ReleaseReason::Gone) => None,
        Ok(ReleaseReason::Moved) => Some("the path now leads to another folder".to_owned()),
        Ok(ReleaseReason::Short(how)) => Some(how.clone()),
        // Until all is held, the process that started this one hears the error.
        Err(_) if locked(&now).is_filling => None,
        Err(error) => Some(error.to_string()),
    };
    if let Some(how) = word {
        leave_word(&folder, runtime, &how);
    }
    // The door goes last: who finds it gone knows that nothing is held.
    ended
}

/// Fills the memory, keeps up with the folder, and watches how much memory others
/// have. Nothing is held any more when this returns.
fn keep(
    mut pin: Pin,
    folder: &Path,
    most: u64,
    is_over: &dyn Fn() -> bool,
    report: &dyn Fn(&Held),
) -> std::result::Result<ReleaseReason, Refused> {
    let lock_files = |pin: &mut Pin| match pin.lock_files(most, is_over) {
        Err(Refused::Over) => Ok(()),
        other => other.map(|held| report(&held)),
    };
    lock_files(&mut pin)?;
    let mut looked = Instant::now();
    while !is_over() {
        let is_time = looked.elapsed() >= MEMORY_CHECK_INTERVAL;
        if pin.wait(SIGNAL_POLL_INTERVAL)? || is_time && pin.has_trouble() {
            std::thread::sleep(CHANGE_BATCH_TIME);
            pin.wait(Duration::ZERO)?;
            lock_files(&mut pin)?;
            if pin.is_gone() {
                return Ok(ReleaseReason::Gone);
            }
        }
        if is_time {
            looked = Instant::now();
            if !pin.is_at(folder) {
                return Ok(if pin.is_gone() { ReleaseReason::Gone } else { ReleaseReason::Moved });
            }
            let (memory, group) = (memory_info::memory(), memory_info::group(None));
            if let Some(how) = is_short(&memory, memory_info::pressure(), group.as_ref()) {
                return Ok(ReleaseReason::Short(how));
            }
        }
    }
    Ok(ReleaseReason::Asked)
}

fn describe(folder: &Path, held: &Held) -> Pinned {
    Pinned {
        folder: folder.to_owned(),
        is_filling: false,
        process: std::process::id(),
        files: held.files,
        bytes: held.bytes,
        left_out: held.left_out.iter().take(NAMES_SHOWN_MAX).cloned().collect(),
        left_out_count: held.left_out.len() as u64,
    }
}

fn locked(now: &Mutex<Pinned>) -> MutexGuard<'_, Pinned> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of bytes that can be held: other processes need memory, too. What
/// is read counts for the control group of the process that reads it.
fn most(memory: &Memory, group: Option<&LimitingCgroup>) -> u64 {
    let available = memory.available.or(memory.total).unwrap_or(0);
    available.min(group.and_then(LimitingCgroup::available).unwrap_or(u64::MAX))
        / PINNED_SHARE_DIVISOR
}

/// Returns the reason, as text, if other processes are short of the memory that is held.
fn is_short(
    memory: &Memory,
    pressure: Option<Pressure>,
    group: Option<&LimitingCgroup>,
) -> Option<String> {
    let part = |of: u64, all: u64| {
        let words = || format!("{} of {} are available", units::size(of), units::size(all));
        (of < all / AVAILABLE_MIN_DIVISOR).then(words)
    };
    let by_machine = memory.available.zip(memory.total).and_then(|(of, all)| part(of, all));
    let by_group = || {
        let (available, limit) = (group?.available()?, group?.limit?);
        Some(format!("in its control group {}", part(available, limit)?))
    };
    let by_waiting = || {
        let share = pressure?.full;
        let words = format!("all tasks waited for memory for {share:.0} % of the last ten seconds");
        (share >= STALL_PERCENT_MAX).then_some(words)
    };
    by_machine.or_else(by_group).or_else(by_waiting)
}

fn refusal(folder: &Path, refused: Refused, most: u64) -> Error {
    let shown = folder.display();
    let (message, hint) = match refused {
        Refused::TooLarge { files, bytes } => (
            format!(
                "{shown} has {} in {files} files, and fsure pins at most {}: half of the available \
                 memory",
                units::size(bytes),
                units::size(most)
            ),
            "pin the folders below it that are read most".to_owned(),
        ),
        Refused::Limit { limit, bytes } => (
            format!(
                "{shown} has {}, and RLIMIT_MEMLOCK allows {}",
                units::size(bytes),
                units::size(limit)
            ),
            "raise it (LimitMEMLOCK= of a systemd unit, 'memlock' in limits.conf), or run this as \
             root"
                .to_owned(),
        ),
        Refused::TooManyFiles { files } => (
            format!("{shown} has {files} files, more than vm.max_map_count lets a process map"),
            format!("'sysctl vm.max_map_count={}'", (files * 2).next_power_of_two()),
        ),
        Refused::TooManyFolders { limit } => (
            format!(
                "{shown} has more folders than fs.inotify.max_user_watches lets a user watch{}",
                limit.map_or(String::new(), |limit| format!(" ({limit})"))
            ),
            format!(
                "'sysctl fs.inotify.max_user_watches={}'",
                (limit.unwrap_or(0) * 8).next_power_of_two().max(1 << 19)
            ),
        ),
        Refused::Over => {
            (format!("{shown} was unpinned"), "pin it again with 'fsure ram pin'".to_owned())
        }
        Refused::Io(source) => {
            return Error::Io { doing: "pin", path: folder.to_owned(), source };
        }
    };
    Error::Usage { message, hint: Some(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn memory(available: u64) -> Memory {
        Memory { total: Some(16 * GIB), available: Some(available), ..Memory::default() }
    }

    fn group(limit: u64, current: u64) -> LimitingCgroup {
        LimitingCgroup { folder: PathBuf::new(), limit: Some(limit), current }
    }

    #[test]
    fn others_keep_half_of_what_there_is() {
        assert_eq!(most(&memory(8 * GIB), None), 4 * GIB);
        assert_eq!(most(&memory(8 * GIB), Some(&group(3 * GIB, GIB))), GIB);
        assert_eq!(most(&Memory::default(), None), 0);
    }

    #[test]
    fn memory_is_short_in_one_of_three_ways() {
        let calm = Some(Pressure { some: 50.0, full: 9.9 });
        assert_eq!(is_short(&memory(GIB), calm, Some(&group(GIB, GIB / 2))), None);
        assert_eq!(is_short(&Memory::default(), None, None), None);
        let short = |of, pressure, group| is_short(&memory(of), pressure, group).unwrap();
        assert_eq!(short(GIB / 2, calm, None), "512.0 MiB of 16.0 GiB are available");
        let full = group(GIB, GIB - 1024);
        assert!(short(GIB, calm, Some(&full)).contains("control group"));
        let still = Some(Pressure { some: 50.0, full: 10.0 });
        assert!(short(GIB, still, None).contains("waited for memory for 10 %"));
    }

    #[test]
    fn messages_stay_short_and_exact() {
        let folder = fsure_os::path::from_bytes(b"/srv/\xff\n").into_owned();
        let left_out = |n: u32| (PathBuf::from(format!("f{n}\u{1b}")), "no room".to_owned());
        let held = Held { left_out: (0..300).map(left_out).collect(), ..Held::default() };
        let pinned = describe(&folder, &held);
        assert_eq!((pinned.left_out.len(), pinned.left_out_count), (100, 300));
        let line = serde_json::to_value(&pinned).unwrap();
        assert_eq!(
            (&line["folder_bytes"], &line["state"]),
            (&"L3Nydi//Cg==".into(), &"held".into())
        );
        assert_eq!(line["left_out"][7]["path"], "f7\u{1b}");
        assert_eq!(serde_json::from_value::<Pinned>(line).unwrap(), pinned);
    }
}
