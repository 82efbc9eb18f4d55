//! A RAM folder: numbered generations of a few files, written in memory, and
//! brought to the disk side by the engine of [`fsure_ram::write_back`].
//!
//! The files of a generation are written one after the other, so that what the
//! RAM side was at any one moment is known: their numbers never rise from one to
//! the next, and the last is at most one behind the first. Anything else on the
//! disk side is a mixture that never was.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::durable_write::{self, Method, Names, Writer};
use fsure_os::overmount::{Detached, Ram};
use fsure_os::{path as os_path, user_file};

use super::payload::{self, PayloadCheck};
use super::{AckWriter, LastIntact, read};
use fsure_core::{IoContext as _, Result};
use fsure_ram::write_back::{CompareDepth, Engine, Freeze, NoTracker, OWN, SyncSchedule, recover};

/// The disk side.
const DISK: &str = "disk";
/// The files of a generation, in the order in which they are written.
const FILES: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// Prefix of the name that holds the number of the last complete generation: names have
/// to be of one moment, too.
const MARK: &str = "mark-";
const NEW: &str = "new";
/// Bytes in memory, and names, of which a few are used.
const ROOM: (u64, u64) = (64 << 20, 1000);
/// Longest time whose changes may be lost.
const MAX_LOSS: Duration = Duration::from_millis(300);
/// Pause between two files: some 60 generations a second.
const WRITE_INTERVAL: Duration = Duration::from_millis(3);

/// Moment at which a generation is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acknowledges {
    /// Once it was brought to the disk side.
    Synced,
    /// Once it is in memory, where any program that uses the folder considers it safe.
    InMemory,
}

pub(super) fn run(
    acknowledges: Acknowledges,
    folder: &Path,
    acks: &mut AckWriter<'_>,
) -> Result<()> {
    let disk = folder.join(DISK);
    os_path::make_folder(&disk).context("make", &disk)?;
    Names::open(folder).and_then(|names| names.flush()).context("flush the folder", folder)?;
    let (bytes, inodes) = ROOM;
    let source = "fsure:workload".to_owned();
    // Without a place, so that it is gone with this process.
    let ram = Detached::ram(&Ram { source, bytes, inodes, huge: true }, &disk);
    let ram = ram.context("make a folder in memory like", &disk)?;
    let place = ram.path();
    let mut engine = Engine::fill(&disk, &place, &mut |_, _| ControlFlow::Continue(()))?;
    match acknowledges {
        Acknowledges::Synced => {
            for number in 1.. {
                write_generation(&place, number)?;
                engine.sync(&mut NoTracker, CompareDepth::Dates, None)?;
                if acks.acknowledge(number).is_break() {
                    break;
                }
            }
            Ok(())
        }
        Acknowledges::InMemory => report_generations(&mut engine, &place, acks),
    }
}

/// Writes generations in one thread at its own pace, and keeps the disk side up to date
/// in another.
fn report_generations(engine: &mut Engine, place: &Path, acks: &mut AckWriter<'_>) -> Result<()> {
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = (1..).try_for_each(|number| {
                write(place, number, &gate).map_err(Err)?;
                if acks.acknowledge(number).is_break() { Err(Ok(())) } else { Ok(()) }
            });
            written.err().unwrap_or(Ok(()))
        });
        let mut pace = SyncSchedule::new(MAX_LOSS, Instant::now());
        while !writer.is_finished() {
            match pace.next().checked_duration_since(Instant::now()) {
                // Not at once: the writer may end.
                Some(early) => std::thread::sleep(early.min(WRITE_INTERVAL)),
                None => {
                    pace.done(&engine.sync(&mut NoTracker, CompareDepth::Dates, Some(&gate))?);
                }
            }
        }
        writer.join().unwrap_or(Ok(()))
    })
}

/// Writes all files of a generation.
pub fn write_generation(folder: &Path, number: u64) -> Result<()> {
    for at in 0..=FILES.len() {
        write_file(folder, number, at)?;
    }
    Ok(())
}

fn write(folder: &Path, number: u64, gate: &Gate) -> Result<()> {
    for at in 0..=FILES.len() {
        std::thread::sleep(WRITE_INTERVAL);
        let _open = gate.pass();
        write_file(folder, number, at)?;
    }
    Ok(())
}

fn write_file(folder: &Path, number: u64, at: usize) -> Result<()> {
    let mark = |number: u64| folder.join(format!("{MARK}{number}"));
    let Some(name) = FILES.get(at) else {
        if number > 1 {
            let (old, new) = (mark(number - 1), mark(number));
            return durable_write::rename(&old, &new).context("give the next name to", &old);
        }
        return Writer::create(&mark(1), Method::WriteOnly).map(drop).context("make", &mark(1));
    };
    let (new, path) = (folder.join(NEW), folder.join(name));
    let mut data = vec![0; size(number, at)];
    payload::fill(&mut data, number);
    let written =
        Writer::create(&new, Method::WriteOnly).and_then(|writer| writer.commit(&data, 0));
    written.context("write", &new)?;
    durable_write::rename(&new, &path).context("put a new file in the place of", &path)
}

/// Returns the size of a file in bytes. The first file always has the same size: only its
/// date shows a copy that it has changed.
fn size(number: u64, at: usize) -> usize {
    let growth = if at == 0 { 0 } else { number * 37 * at as u64 % 9000 };
    100 + usize::try_from(growth).unwrap_or(0)
}

pub(super) fn check(folder: &Path) -> LastIntact {
    let disk = folder.join(DISK);
    if !os_path::exists(&disk) {
        return Ok(0);
    }
    // Before recovery, too, each file is whole.
    numbers(&disk)?;
    recover(&disk).map_err(|error| format!("cannot be recovered: {error}"))?;
    if os_path::exists(&disk.join(OWN)) {
        return Err(format!("{OWN} is left behind"));
    }
    let numbers = numbers(&disk)?;
    let is_moment = numbers.windows(2).all(|pair| pair[0] >= pair[1])
        && numbers.first().zip(numbers.last()).is_none_or(|(first, last)| first - last <= 1);
    if !is_moment {
        return Err(format!("a mixture of generations: {numbers:?}"));
    }
    Ok(numbers.last().copied().unwrap_or(0))
}

/// Returns the generation of each file, and of the mark.
fn numbers(disk: &Path) -> std::result::Result<Vec<u64>, String> {
    let mut numbers = Vec::new();
    for (at, name) in FILES.iter().enumerate() {
        let number = match read(&disk.join(name))? {
            None => 0,
            Some(data) => match payload::look(&data, data.len()) {
                PayloadCheck::Whole(number) if data.len() == size(number, at) => number,
                other => return Err(format!("{name} is not whole: {other:?}")),
            },
        };
        numbers.push(number);
    }
    let names = user_file::names(disk).map_err(|error| error.to_string())?;
    let marks = names.iter().filter_map(|name| name.strip_prefix(MARK.as_bytes()));
    let marks: Vec<u64> =
        marks.filter_map(|number| std::str::from_utf8(number).ok()?.parse().ok()).collect();
    match marks[..] {
        [] => numbers.push(0),
        [mark] => numbers.push(mark),
        // Between the commit and its end there may be two; recovery leaves one.
        _ if os_path::exists(&disk.join(OWN)) => {}
        _ => return Err(format!("marks of several generations: {marks:?}")),
    }
    Ok(numbers)
}

/// Lets the writer pass until it has to wait.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<WriterState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WriterState {
    is_closed: bool,
    is_inside: bool,
}

/// The writer while it writes.
struct Inside<'a>(&'a Gate);

impl Gate {
    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, blocks: impl Fn(&WriterState) -> bool) -> MutexGuard<'_, WriterState> {
        let waited = self.changed.wait_while(self.state(), |state| blocks(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self) -> Inside<'_> {
        self.wait(|state| state.is_closed).is_inside = true;
        Inside(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.state().is_inside = false;
        self.0.changed.notify_all();
    }
}

impl Freeze for Gate {
    fn freeze(&self) -> std::io::Result<()> {
        self.state().is_closed = true;
        drop(self.wait(|state| state.is_inside));
        Ok(())
    }

    fn thaw(&self) -> std::io::Result<()> {
        self.state().is_closed = false;
        self.changed.notify_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_is_distinguished_from_a_moment() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join(DISK);
        assert_eq!(check(folder.path()), Ok(0));
        os_path::make_folder(&disk).unwrap();
        for number in 1..=3 {
            write_generation(&disk, number).unwrap();
            assert_eq!(check(folder.path()), Ok(number));
        }
        // The next one, as far as it has come.
        for at in 0..FILES.len() {
            write_file(&disk, 4, at).unwrap();
            assert_eq!(check(folder.path()), Ok(3));
        }
        write_file(&disk, 4, FILES.len()).unwrap();
        assert_eq!(check(folder.path()), Ok(4));
        for (number, at) in [(3, 0), (5, 3), (3, 4)] {
            write_file(&disk, number, at).unwrap();
            assert!(check(folder.path()).unwrap_err().contains("a mixture"), "{number} {at}");
            write_file(&disk, 4, at).unwrap();
        }
        std::fs::write(disk.join("second"), "half").unwrap();
        assert!(check(folder.path()).unwrap_err().contains("second is not whole"));
        write_file(&disk, 4, 1).unwrap();
        std::fs::write(disk.join("mark-3"), "").unwrap();
        assert!(check(folder.path()).unwrap_err().contains("marks of several"));
    }
}
