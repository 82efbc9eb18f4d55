//! The whole pipeline over random trees. The order in which readers answer, the number of readers
//! and of listers, and the size of their batches must change no verdict and no row: a run that
//! takes them by chance is held against one with a single reader.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use fsure_os::filesystem_id;
use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::Root;
use proptest::prelude::*;

use super::driver::ScanDriver;
use super::progress_estimate::Estimate;
use super::reader_context::ReadCounters;
use super::reader_pool::Pool;
use super::reader_thread::ReaderEvent;
use super::scrub_budget::Deadline;
use super::{ContentSource, IoOptions, Purpose, ScanPlan, UpdateRules};
use crate::catalog::{Catalog, PageStart, RootSettings, StoredRow};
use crate::model::{Allowed, Finding, Record, ScanMonitor, VerdictCounts};
use fsure_core::{AlgorithmSet, Clock, Monitor, RelPath};

/// Names of files; two of them differ by case only, as after a copy from macOS.
const NAMES: [&str; 5] = ["a", "A", "b", "c", "d"];
const FOLDERS: [&str; 3] = ["", "one", "one/two"];
/// Sizes in bytes: none, within a page, and some pages. More than one has the same size, so
/// that files are taken for moved by content.
const SIZES: [usize; 4] = [0, 10, 10, 70_000];

/// One change to a tree. Files are numbered: folder, then name.
#[derive(Clone, Debug)]
enum Change {
    Write {
        file: usize,
        content: u8,
        size: usize,
    },
    /// Other content with the old date of modification.
    Rot {
        file: usize,
        content: u8,
    },
    Touch {
        file: usize,
    },
    Remove {
        file: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Link {
        from: usize,
        to: usize,
    },
    Copy {
        from: usize,
        to: usize,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let file = || 0..NAMES.len() * FOLDERS.len();
    prop_oneof![
        4 => (file(), 0..3_u8, 0..SIZES.len())
            .prop_map(|(file, content, size)| Change::Write { file, content, size: SIZES[size] }),
        2 => (file(), 0..3_u8).prop_map(|(file, content)| Change::Rot { file, content }),
        1 => file().prop_map(|file| Change::Touch { file }),
        2 => file().prop_map(|file| Change::Remove { file }),
        3 => (file(), file()).prop_map(|(from, to)| Change::Rename { from, to }),
        2 => (file(), file()).prop_map(|(from, to)| Change::Link { from, to }),
        1 => (file(), file()).prop_map(|(from, to)| Change::Copy { from, to }),
    ]
}

/// A tree and its catalog, which lies beside it.
struct TestTree {
    folder: tempfile::TempDir,
}

impl TestTree {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in FOLDERS {
            fs::create_dir_all(folder.path().join("tree").join(name)).expect("make a folder");
        }
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn file(&self, number: usize) -> PathBuf {
        self.root().join(FOLDERS[number / NAMES.len()]).join(NAMES[number % NAMES.len()])
    }

    /// Does a change, unless a file that it needs is not there.
    fn apply(&self, change: &Change) {
        match *change {
            Change::Write { file, content, size } => {
                fs::write(self.file(file), vec![content; size]).expect("write");
            }
            Change::Rot { file, content } => {
                let Ok(stat) = fs::metadata(self.file(file)) else { return };
                let size = usize::try_from(stat.len()).expect("small");
                fs::write(self.file(file), vec![content; size]).expect("write");
                self.set_mtime(file, stat.modified().expect("a date"));
            }
            Change::Touch { file } => {
                if self.file(file).exists() {
                    self.set_mtime(file, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
                }
            }
            Change::Remove { file } => {
                let _ = fs::remove_file(self.file(file));
            }
            Change::Rename { from, to } => {
                let _ = fs::rename(self.file(from), self.file(to));
            }
            Change::Link { from, to } => {
                let _ = fs::hard_link(self.file(from), self.file(to));
            }
            Change::Copy { from, to } => {
                if from != to {
                    let _ = fs::copy(self.file(from), self.file(to));
                }
            }
        }
    }

    fn set_mtime(&self, file: usize, time: SystemTime) {
        let open = File::options().write(true).open(self.file(file)).expect("open");
        open.set_times(FileTimes::new().set_modified(time)).expect("set the date");
    }

    fn open(&self) -> Arc<Root> {
        Arc::new(Root::open(&self.root()).expect("open the root"))
    }

    fn catalog(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn create_catalog(&self, now_ns: i64) -> PathBuf {
        let root = self.open();
        let volume = filesystem_id::of(&root, b"").expect("a file system");
        let inode = root.stat(b"").expect("a stat").inode;
        let settings = RootSettings {
            digests: AlgorithmSet::default().recordable(),
            cross_file_systems: false,
        };
        let file = self.catalog("recorded");
        Catalog::create(&file, settings, (volume, inode), now_ns / 1_000_000_000).expect("create");
        file
    }
}

/// The circumstances of a run that must not show in its results.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    readers: usize,
    batch: usize,
    listers: usize,
    /// Draws the order in which answers come; `None` for the order of the readers.
    order: Option<u64>,
}

const PLAIN: Circumstances = Circumstances { readers: 1, batch: 1, listers: 1, order: None };

fn circumstances() -> impl Strategy<Value = Circumstances> {
    (1..5_usize, 1..9_usize, 1..4_usize, any::<u64>()).prop_map(
        |(readers, batch, listers, order)| Circumstances {
            readers,
            batch,
            listers,
            order: Some(order | 1),
        },
    )
}

#[derive(Default)]
struct FindingMonitor(Mutex<Vec<Finding>>);

impl Monitor for FindingMonitor {}

impl ScanMonitor for FindingMonitor {
    fn finding(&self, finding: &Finding) {
        self.0.lock().expect("no panic").push(finding.clone());
    }
}

/// All that a run says and leaves.
#[derive(Debug, PartialEq)]
struct Results {
    findings: BTreeMap<RelPath, Finding>,
    counts: [VerdictCounts; 2],
    hashed: u64,
    bytes_judged: u64,
    records: Vec<Record>,
}

fn plan(root: Arc<Root>, purpose: Purpose, now_ns: i64, how: Circumstances) -> ScanPlan {
    let effort =
        IoOptions { threads: Some(how.readers), depth: Some(how.batch), ..IoOptions::default() };
    let mut plan = ScanPlan::new(root, purpose);
    plan.walk.listers = how.listers;
    plan.walk.borders.places = LocateFiles::IfCold;
    ScanPlan {
        reads_from: ContentSource::Cache,
        effort,
        may_write: true,
        allowed: Allowed::ALL,
        report_ok: true,
        clock: Clock::from_fn(move || now_ns),
        ..plan
    }
}

fn update(full: bool) -> Purpose {
    let digests = AlgorithmSet::default().recordable();
    Purpose::Update(UpdateRules { full, ..UpdateRules::new(digests) })
}

fn run(
    tree: &TestTree,
    catalog: &Path,
    purpose: Purpose,
    now_ns: i64,
    how: Circumstances,
) -> Results {
    let plan = plan(tree.open(), purpose, now_ns, how);
    let lock = Catalog::lock(catalog, |_| Ok(())).expect("the lock");
    let mut catalog = Catalog::open(catalog, Some(lock)).expect("open the catalog");
    let (monitor, meter) = (FindingMonitor::default(), Arc::new(ReadCounters::default()));
    let estimate = Estimate::new(&plan, &catalog);
    let mut pool = Pool::new(&plan, Arc::clone(&meter), Deadline::new(None, &plan.clock));
    if let Some(order) = how.order {
        pool.events = in_random_order(pool.events.clone(), order);
    }
    let driver = ScanDriver::new(&plan, &mut catalog, &monitor, (&meter, &estimate), pool);
    let outcome = driver.and_then(ScanDriver::finish).expect("a run");
    let findings = monitor.0.into_inner().expect("no panic");
    let number = findings.len();
    let findings: BTreeMap<_, _> =
        findings.into_iter().map(|finding| (finding.path.clone(), finding)).collect();
    assert_eq!(findings.len(), number, "one verdict for each path");
    let rows = catalog.page(&PageStart::After(b""), None).expect("rows");
    let records = rows.into_iter().map(|row| match row {
        StoredRow::Sound(row) => row.record,
        StoredRow::Bad(path) => panic!("{path:?} fails its seal"),
    });
    Results {
        findings,
        counts: [outcome.files, outcome.folders],
        hashed: outcome.hashed,
        bytes_judged: outcome.bytes_judged,
        records: records.collect(),
    }
}

/// Passes events on in an order drawn from `seed`: answers are taken out of their batches, and
/// held back until others have come.
fn in_random_order(events: Receiver<ReaderEvent>, seed: u64) -> Receiver<ReaderEvent> {
    let (passed, shuffled) = unbounded();
    let mut state = seed;
    // Marsaglia's xorshift64 ("Xorshift RNGs", 2003).
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("small")
    };
    std::thread::spawn(move || {
        let mut held = Vec::new();
        loop {
            let is_quiet = match events.recv_timeout(Duration::from_millis(1)) {
                Ok(ReaderEvent::Done(answers)) => {
                    held.extend(answers);
                    false
                }
                Ok(event) => {
                    let _ = passed.send(event);
                    false
                }
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            while !held.is_empty() && (is_quiet || draw(3) == 0) {
                let answer = held.swap_remove(draw(held.len()));
                if passed.send(ReaderEvent::Done(vec![answer])).is_err() {
                    return;
                }
            }
        }
    });
    shuffled
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_order_of_answers_changes_no_verdict_and_no_row(
        before in prop::collection::vec(change(), 5..25),
        after in prop::collection::vec(change(), 1..12),
        how in circumstances(),
    ) {
        const HOUR_NS: i64 = 3_600_000_000_000;
        let tree = TestTree::new();
        before.iter().for_each(|change| tree.apply(change));
        let now_ns = Clock::default().now_ns();
        let recorded = tree.create_catalog(now_ns);
        run(&tree, &recorded, update(false), now_ns, how);
        after.iter().for_each(|change| tree.apply(change));
        for purpose in [Purpose::Status, Purpose::Verify, update(false), update(true)] {
            let [plain, shuffled] = [("plain", PLAIN), ("shuffled", how)].map(|(name, how)| {
                let catalog = tree.catalog(name);
                fs::copy(&recorded, &catalog).expect("copy the catalog");
                run(&tree, &catalog, purpose.clone(), now_ns + HOUR_NS, how)
            });
            prop_assert_eq!(plain, shuffled, "{:?}", purpose);
        }
    }
}
