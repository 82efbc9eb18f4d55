//! The record of fsure itself: `update` of a tree that grows, over and over, with the
//! record in the tree and both on the drive, as most users have it. The files are flushed
//! before an update reads them, so that anything that does not hold after a cut is the
//! record's fault. Short updates commit at their end; each fourth is slowed down, so that
//! a cut comes between two of the commits that it makes a second apart; each eighth is
//! followed by a `verify`, which writes to every row.
//!
//! There are two promises, so there are two variants. What other programs can see to be
//! committed is there after a cut: another connection reads the record, as another
//! program would, and what it sees is acknowledged. And an update that is cut loses at
//! most about a second of its work: there a file is acknowledged when it is reported as
//! recorded, and the age of the oldest one lost is the amount of that work.
//!
//! Nothing else is flushed while an update runs: on a journalling file system that would
//! make the record's names durable, too, and hide that the record had not requested it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fsure_os::durable_write::{Method, Names, Writer};
use fsure_os::path as os_path;

use super::{AckWriter, LastIntact, payload, sqlite};
use fsure_core::{Error, ExitCode, IoContext as _, Monitor, RelPath, Result};
use fsure_integrity::catalog::{Audit, Catalog, OWN_CATALOG, RootLocation};
use fsure_integrity::model::{Finding, Outcome, ScanMonitor, StopReason, Verdict};
use fsure_integrity::scan::{IoOptions, RateLimiter};
use fsure_integrity::{Options, UpdateOptions, update, verify};

const TREE: &str = "tree";
const FILES: u64 = 20;
/// A slow update has files for three seconds, of 4.6 KB on average.
const SLOW_FILES: u64 = 150;
/// Bytes read in a second, then.
const SLOWNESS: u64 = 230_000;
/// Interval between two checks for commits.
const COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Files after which the workload ends, enough for a minute: a check reads them all.
const FILES_MAX: u64 = 3000;

/// The records that are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acknowledges {
    /// Records that another connection sees.
    Committed,
    /// Records as they are reported.
    Reported,
}

fn place(root: PathBuf) -> RootLocation {
    RootLocation { catalog: root.join(OWN_CATALOG), root, scope: RelPath::root(), parts: None }
}

pub(super) fn run(
    acknowledges: Acknowledges,
    folder: &Path,
    acks: &mut AckWriter<'_>,
) -> Result<()> {
    let folder = os_path::resolve(folder).context("find", folder)?;
    let root = folder.join(TREE);
    make_folder(&root, &folder)?;
    let place = place(root);
    let watch = AcknowledgingMonitor {
        acknowledges,
        acks: Mutex::new(acks),
        reported: AtomicU64::new(0),
        seen: AtomicU64::new(0),
        is_stopped: AtomicBool::new(false),
    };
    let mut files = 0;
    for round in 1.. {
        let is_slow = round % 4 == 0;
        let end = files + if is_slow { SLOW_FILES } else { FILES };
        add_files(&place.root, round, files..end)?;
        files = end;
        let updated = watch.update(&place, is_slow)?;
        if watch.is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        refuse_failure(&place, updated)?;
        if round % 8 == 0 {
            let verified = verify(&place, &Options::default(), &watch)?;
            if watch.is_stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            refuse_failure(&place, verified)?;
        }
        if files >= FILES_MAX {
            break;
        }
    }
    Ok(())
}

fn make_folder(folder: &Path, within: &Path) -> Result<()> {
    os_path::make_folder(folder).context("make", folder)?;
    flush_names(within)
}

fn flush_names(folder: &Path) -> Result<()> {
    let flushed = Names::open(folder).and_then(|names| names.flush());
    flushed.context("flush the folder", folder)
}

/// Creates files in a folder of their own, durable with their names.
fn add_files(root: &Path, round: u64, numbers: std::ops::Range<u64>) -> Result<()> {
    let folder = root.join(format!("round-{round:05}"));
    make_folder(&folder, root)?;
    let mut made = Vec::new();
    for number in numbers {
        let path = folder.join(format!("{number:06}"));
        // Of many sizes, some of them more than a block.
        let mut data = vec![0; 100 + (number * 997 % 9000) as usize];
        payload::fill(&mut data, number);
        let written = Writer::create(&path, Method::Fsync).and_then(|writer| {
            writer.write(&data, 0)?;
            Ok(writer)
        });
        made.push(written.context("write", &path)?);
    }
    made.iter().try_for_each(Writer::flush).context("flush the files in", &folder)?;
    flush_names(&folder)
}

/// Fails if an update or a verification stopped early: anything but new files is a fault
/// of the workload or of the record.
fn refuse_failure(place: &RootLocation, outcome: Outcome) -> Result<()> {
    match outcome.stopped {
        None => Ok(()),
        Some(StopReason::RecordFailed(why)) => Err(Error::RecordNotWritten {
            catalog: place.catalog.clone(),
            why,
            hint: "give the drive more room".to_owned(),
        }),
        Some(other) => Err(Error::Internal(format!("an update ended early: {other:?}"))),
    }
}

/// Listens to the updates, and acknowledges the records.
struct AcknowledgingMonitor<'a, 'b> {
    acknowledges: Acknowledges,
    acks: Mutex<&'a mut AckWriter<'b>>,
    reported: AtomicU64,
    seen: AtomicU64,
    is_stopped: AtomicBool,
}

impl AcknowledgingMonitor<'_, '_> {
    fn acknowledge(&self, number: u64) {
        let mut acks = self.acks.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped.load(Ordering::Relaxed)
            && acks.acknowledge(number) == ControlFlow::Break(())
        {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    fn update(&self, place: &RootLocation, is_slow: bool) -> Result<Outcome> {
        let rate = Arc::new(RateLimiter::new(is_slow.then_some(SLOWNESS)));
        let common =
            Options { effort: IoOptions { rate, ..IoOptions::default() }, ..Options::default() };
        let options = UpdateOptions { common, ..UpdateOptions::default() };
        if self.acknowledges == Acknowledges::Reported {
            return update(place, &options, self);
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    self.look(place);
                    std::thread::sleep(COMMIT_POLL_INTERVAL);
                }
                self.look(place);
            });
            let updated = update(place, &options, self);
            is_over.store(true, Ordering::Relaxed);
            updated
        })
    }

    /// Acknowledges what is committed; before the first commit there is nothing
    /// to open.
    fn look(&self, place: &RootLocation) {
        let files = Catalog::open(&place.catalog, None).map_or(0, |catalog| catalog.files());
        if files > self.seen.fetch_max(files, Ordering::Relaxed) {
            self.acknowledge(files);
        }
    }
}

impl Monitor for AcknowledgingMonitor<'_, '_> {
    fn stop_requested(&self) -> Option<ExitCode> {
        self.is_stopped.load(Ordering::Relaxed).then_some(ExitCode::Interrupted)
    }
}

impl ScanMonitor for AcknowledgingMonitor<'_, '_> {
    fn finding(&self, finding: &Finding) {
        if finding.verdict != Verdict::New || !finding.recorded_now {
            return;
        }
        let reported = self.reported.fetch_add(1, Ordering::Relaxed) + 1;
        if self.acknowledges == Acknowledges::Reported {
            self.acknowledge(reported);
        }
    }
}

/// Checks the record after a cut. If there is none, the state is that before the first
/// update: everything is lost, and nothing is damaged.
pub(super) fn check(folder: &Path) -> LastIntact {
    let place = place(folder.join(TREE));
    if !place.is_recorded() {
        return Ok(0);
    }
    match sqlite::objection(&place.catalog) {
        Ok((_, Some(why))) => return Err(format!("the record fails SQLite's {why}")),
        Err(error) => return Err(format!("the record cannot be opened: {error}")),
        Ok((_, None)) => {}
    }
    look(&place).unwrap_or_else(|error| Err(error.to_string()))
}

/// Verifies everything that is recorded. Files that are not recorded yet are new, and
/// nothing else may be reported.
fn look(place: &RootLocation) -> Result<LastIntact> {
    let strange = CheckMonitor::default();
    let outcome = verify(place, &Options::default(), &strange)?;
    if let Some(why) = outcome.record_untrusted {
        return Ok(Err(format!("the record cannot be trusted: {why}")));
    }
    if let Some(offline) = outcome.offline {
        return Ok(Err(format!("the tree looks offline: {offline:?}")));
    }
    if let Some(strange) = strange.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Ok(Err(strange));
    }
    let mut catalog = Catalog::open(&place.catalog, None)?;
    let audit = Audit::of(&mut catalog)?;
    if !audit.is_clean() {
        return Ok(Err(format!("the record fails its audit: {audit:?}")));
    }
    Ok(Ok(catalog.files()))
}

/// The first finding that must not occur.
#[derive(Default)]
struct CheckMonitor(Mutex<Option<String>>);

impl Monitor for CheckMonitor {}

impl ScanMonitor for CheckMonitor {
    fn finding(&self, finding: &Finding) {
        if matches!(finding.verdict, Verdict::Ok | Verdict::New | Verdict::Ignored) {
            return;
        }
        let path = os_path::from_bytes(finding.path.as_bytes());
        let reported = format!("{} is {}", path.display(), finding.verdict.name());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reported);
    }
}
