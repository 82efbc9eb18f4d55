//! Random edits of a small tree against a model so naive that it is surely
//! right: a map from path to content and date. Whatever order things are
//! written, dated back, deleted, put back, recorded and judged in, the command
//! says of each path what the model says.
#![cfg(unix)]

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::support::{Recorded, Tree, content};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const PATHS: [&str; 6] = ["a", "a-b", "dir/a", "dir/b", "dir/sub/c", "z"];
const SIZES: [usize; 4] = [0, 1, 4097, (2 << 20) + 3];
const START_NS: i64 = 1_700_000_000_000_000_000;
const HOUR_NS: i64 = 3_600_000_000_000;

/// One step of a script.
#[derive(Clone, Debug)]
enum Step {
    /// Write this content and set this date, in place or by another inode.
    Write {
        path: usize,
        size: usize,
        seed: u64,
        hour: i64,
        in_place: bool,
    },
    /// Flip a byte and put the date back.
    Flip {
        path: usize,
    },
    /// Set this date.
    Date {
        path: usize,
        hour: i64,
    },
    Delete {
        path: usize,
    },
    /// Give it another name, whatever had that one.
    Rename {
        from: usize,
        to: usize,
    },
    Update {
        full: bool,
    },
    Accept {
        path: usize,
    },
    Verify,
}

fn step() -> impl Strategy<Value = Step> {
    let path = 0..PATHS.len();
    let file = (path.clone(), 0..SIZES.len(), 0..3_u64, 0..4_i64, any::<bool>());
    prop_oneof![
        4 => file.prop_map(|(path, size, seed, hour, in_place)| {
            Step::Write { path, size, seed, hour, in_place }
        }),
        2 => path.clone().prop_map(|path| Step::Flip { path }),
        2 => (path.clone(), 0..4_i64).prop_map(|(path, hour)| Step::Date { path, hour }),
        2 => path.clone().prop_map(|path| Step::Delete { path }),
        3 => (path.clone(), path.clone()).prop_map(|(from, to)| Step::Rename { from, to }),
        3 => any::<bool>().prop_map(|full| Step::Update { full }),
        1 => path.prop_map(|path| Step::Accept { path }),
        2 => Just(Step::Verify),
    ]
}

/// A file as the model sees it. `inode` and `change` count what the system
/// would: files made, and changes of any kind.
#[derive(Clone, Debug, PartialEq)]
struct File {
    content: Vec<u8>,
    date: i64,
    inode: u64,
    change: u64,
}

/// Old names and new names.
type Moves = Vec<(&'static str, &'static str)>;

#[derive(Clone, Debug)]
struct Kept {
    file: File,
    is_gone: bool,
}

struct World {
    tree: Tree,
    recorded: Recorded,
    files: BTreeMap<&'static str, File>,
    record: BTreeMap<&'static str, Kept>,
    clock: u64,
    /// Number of times that each verdict was predicted.
    predicted: BTreeMap<&'static str, u32>,
}

impl World {
    fn new() -> Self {
        let tree = Tree::new();
        // Folders that stay, so that a root is never empty.
        std::fs::create_dir_all(tree.path("dir/sub")).expect("make folders");
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        let (files, record, predicted) = Default::default();
        Self { tree, recorded, files, record, clock: 0, predicted }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Write { path, size, seed, hour, in_place } => {
                let (path, date) = (PATHS[path], START_NS + hour * HOUR_NS);
                let content = content(SIZES[size], seed);
                if !in_place {
                    // Beside the old one first, so that its inode is another.
                    self.tree.write("dir/beside", &content);
                    std::fs::rename(self.tree.path("dir/beside"), self.tree.path(path))
                        .expect("rename");
                } else {
                    self.tree.write(path, &content);
                }
                self.tree.set_mtime(path, date);
                let change = self.tick();
                let inode = match self.files.get(path) {
                    Some(file) if in_place => file.inode,
                    _ => change,
                };
                self.files.insert(path, File { content, date, inode, change });
            }
            Step::Flip { path } => {
                let change = self.tick();
                let Some(file) = self.files.get_mut(PATHS[path]) else { return };
                if let Some(byte) = file.content.last_mut() {
                    *byte = !*byte;
                    file.change = change;
                    self.tree.flip(PATHS[path], file.content.len() as u64 - 1);
                }
            }
            Step::Date { path, hour } => {
                let change = self.tick();
                let Some(file) = self.files.get_mut(PATHS[path]) else { return };
                (file.date, file.change) = (START_NS + hour * HOUR_NS, change);
                self.tree.set_mtime(PATHS[path], file.date);
            }
            Step::Delete { path } => {
                if self.files.remove(PATHS[path]).is_some() {
                    std::fs::remove_file(self.tree.path(PATHS[path])).expect("delete");
                }
            }
            Step::Rename { from, to } => {
                let change = self.tick();
                let (from, to) = (PATHS[from], PATHS[to]);
                let Some(file) = self.files.remove(from) else { return };
                // A file renamed to itself, or not: its change time may move.
                self.files.insert(to, File { change, ..file });
                std::fs::rename(self.tree.path(from), self.tree.path(to)).expect("rename");
            }
            Step::Update { .. } | Step::Accept { .. } | Step::Verify => {}
        }
    }

    /// Predicts the verdict on a path as if no file were ever renamed; `None` if the path
    /// is neither in the tree nor in the record, or only as a tombstone.
    fn verdict(&self, path: &str) -> Option<&'static str> {
        let kept = self.record.get(path);
        let Some(now) = self.files.get(path) else {
            return kept.filter(|kept| !kept.is_gone).map(|_| "missing");
        };
        let Some(Kept { file: then, is_gone }) = kept else { return Some("new") };
        if *is_gone && (now.content.len() != then.content.len() || now.date != then.date) {
            return Some("new");
        }
        Some(compared(then, now))
    }

    fn paths_with(&self, verdict: &str) -> Vec<&'static str> {
        PATHS.into_iter().filter(|path| self.verdict(path) == Some(verdict)).collect()
    }

    /// Recorded files under another name: old and new, where there is one of
    /// each that could be the other and neither is taken.
    fn pairs(&self, taken: &Moves, fits: impl Fn(&File, &File) -> bool) -> Moves {
        let is_free = |path: &&str| !taken.iter().any(|(old, new)| old == path || new == path);
        let gone: Vec<_> = self.paths_with("missing").into_iter().filter(is_free).collect();
        let came: Vec<_> = self.paths_with("new").into_iter().filter(is_free).collect();
        let is_pair = |old: &str, new: &str| fits(&self.record[old].file, &self.files[new]);
        let news = |old: &str| came.iter().filter(|new| is_pair(old, new)).count();
        let olds = |new: &str| gone.iter().filter(|old| is_pair(old, new)).count();
        let all = gone.iter().flat_map(|old| came.iter().map(move |new| (*old, *new)));
        all.filter(|(old, new)| is_pair(old, new) && news(old) == 1 && olds(new) == 1).collect()
    }

    fn moved_by_inode(&self) -> Moves {
        self.pairs(&Moves::new(), |then, now| {
            then.inode == now.inode
                && then.date == now.date
                && then.content.len() == now.content.len()
        })
    }

    fn moved_by_content(&self, taken: &Moves) -> Moves {
        self.pairs(taken, |then, now| !now.content.is_empty() && then.content == now.content)
    }

    /// Predicts the verdict on each path, and returns the pairs of old and new names.
    fn verdicts(&self) -> (BTreeMap<&'static str, &'static str>, Moves) {
        let by_inode = self.moved_by_inode();
        let by_content = self.moved_by_content(&by_inode);
        let named = PATHS.into_iter().filter_map(|path| Some((path, self.verdict(path)?)));
        let mut verdicts: BTreeMap<_, _> = named.collect();
        for (old, new) in &by_inode {
            let verdict = compared(&self.record[old].file, &self.files[new]);
            verdicts.insert(new, if verdict == "ok" { "moved" } else { verdict });
            verdicts.remove(old);
        }
        for (old, new) in &by_content {
            verdicts.insert(new, "moved");
            verdicts.remove(old);
        }
        (verdicts, by_inode.into_iter().chain(by_content).collect())
    }

    /// Returns true if so many files are gone that the root is reported as offline, by
    /// `update` too. A file that only its content shows to have moved counts as gone.
    fn is_offline(&self) -> bool {
        let live = self.record.values().filter(|kept| !kept.is_gone).count();
        let missing = self.paths_with("missing").len() - self.moved_by_inode().len();
        2 * missing > live
    }

    fn judge(&mut self, command: &str, more: &[&str], accept: Option<&str>) -> Result<(), String> {
        let mut arguments = vec!["--all".into()];
        arguments.extend(more.iter().map(std::path::PathBuf::from));
        if let Some(accept) = accept {
            arguments.extend(["--accept".into(), self.tree.path(accept)]);
        }
        if command != "status" {
            // Any number of readers finds the same.
            let readers = 1 + self.predicted.values().sum::<u32>() % 8;
            arguments.extend(["--threads".into(), readers.to_string().into()]);
        }
        let report = self.recorded.run(command, &arguments);
        #[cfg(target_os = "linux")]
        if command == "update" && self.recorded.catalog.exists() {
            // The inode of a file that was recorded in the tick of its change proves nothing.
            self.recorded.age_records();
        }
        if self.is_offline() {
            *self.predicted.entry("offline").or_default() += 1;
            let is_right = report.code == 5 && !report.summary()["offline"].is_null();
            return if is_right { Ok(()) } else { Err(format!("not offline: {report:?}")) };
        }
        let (expected, moves) = self.verdicts();
        for verdict in expected.values() {
            *self.predicted.entry(verdict).or_default() += 1;
        }
        let is_file = |finding: &&serde_json::Value| finding["kind"] == "file";
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        let reported: BTreeMap<String, String> = report
            .findings()
            .filter(is_file)
            .map(|finding| (text(&finding["path"]), text(&finding["verdict"])))
            .collect();
        let reported: BTreeMap<_, _> =
            reported.iter().map(|(path, verdict)| (path.as_str(), verdict.as_str())).collect();
        if reported != expected {
            return Err(format!("{command} {arguments:?}: {expected:?} expected, {report:?}"));
        }
        let is_unknown =
            |path: &str| !self.files.contains_key(path) && !self.record.contains_key(path);
        let code = match exit_code(&expected, command == "update", accept) {
            0 | 1 if accept.is_some_and(is_unknown) => 5,
            code => code,
        };
        if report.code != code {
            return Err(format!("{command} {arguments:?}: {code} expected, {report:?}"));
        }
        if command == "update" {
            self.keep(&expected, &moves, accept);
        }
        Ok(())
    }

    /// The rules of `update`.
    fn keep(
        &mut self,
        verdicts: &BTreeMap<&'static str, &str>,
        moves: &Moves,
        accept: Option<&str>,
    ) {
        for (path, verdict) in verdicts {
            let is_damage = ["altered", "damaged-copy"].contains(verdict);
            if is_damage && accept != Some(path) {
                continue;
            }
            for (old, _) in moves.iter().filter(|(_, new)| new == path) {
                self.record.remove(old);
            }
            match self.files.get(path) {
                Some(file) => {
                    let kept = Kept { file: file.clone(), is_gone: false };
                    self.record.insert(path, kept);
                }
                None => self.record.get_mut(path).expect("missing").is_gone = true,
            }
        }
    }
}

/// A file beside its record.
fn compared(then: &File, now: &File) -> &'static str {
    match (now.content == then.content, now.date.cmp(&then.date)) {
        (true, std::cmp::Ordering::Equal) => "ok",
        (true, _) => "touched",
        (false, std::cmp::Ordering::Greater) => "modified",
        (false, std::cmp::Ordering::Less) => "reverted",
        (false, _) if now.inode == then.inode => "altered",
        (false, _) => "damaged-copy",
    }
}

fn exit_code(verdicts: &BTreeMap<&str, &str>, is_update: bool, accept: Option<&str>) -> i32 {
    let open = verdicts.iter().filter(|(path, _)| !(is_update && accept == Some(**path)));
    let code = |(_, verdict): (_, &&str)| match *verdict {
        "altered" | "damaged-copy" => 3,
        "ok" | "touched" => 0,
        _ => i32::from(!is_update),
    };
    open.map(code).max().unwrap_or(0)
}

/// Plays a script; returns how often each verdict was foretold, and came true.
fn play(script: &[Step]) -> Result<BTreeMap<&'static str, u32>, String> {
    let mut world = World::new();
    for (number, step) in script.iter().enumerate() {
        world.take(step);
        let judged = match step {
            Step::Update { full: true } => world.judge("update", &["--full"], None),
            Step::Update { full: false } => world.judge("update", &[], None),
            Step::Accept { path } => world.judge("update", &[], Some(PATHS[*path])),
            Step::Verify => world.judge("verify", &[], None),
            _ => Ok(()),
        };
        judged.map_err(|why| format!("step {number}, {step:?}: {why}"))?;
    }
    world.judge("verify", &[], None)?;
    Ok(world.predicted)
}

#[test]
fn the_command_agrees_with_the_model() {
    // The same scripts every time.
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: 50, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, random);
    let scripts = proptest::collection::vec(step(), 1..40);
    let all = RefCell::new(BTreeMap::<_, u32>::new());
    let result = runner.run(&scripts, |script| {
        for (verdict, count) in play(&script).map_err(TestCaseError::fail)? {
            *all.borrow_mut().entry(verdict).or_default() += count;
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    let all = all.into_inner();
    for verdict in [
        "ok",
        "touched",
        "modified",
        "reverted",
        "altered",
        "damaged-copy",
        "missing",
        "moved",
        "new",
        "offline",
    ] {
        let count = all.get(verdict).copied().unwrap_or(0);
        assert!(count >= 10, "{verdict} came up only {count} times: {all:?}");
    }
}
