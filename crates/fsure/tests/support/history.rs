//! A directory whose every state is known: each system call that changes it is logged, so
//! that a copy of it can be compared with the states that it had, and with no other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The value of a name: the content of a file as a number, or a directory.
type Value = u64;
const DIRECTORY: Value = 1;
/// A write takes effect page by page.
const PAGE: usize = 4096;
/// Names and their values.
pub type Tree = BTreeMap<String, Value>;

/// Since 1970, so that it is the same in every process.
pub type Moment = Duration;

/// Now.
pub fn now() -> Moment {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970")
}

/// One system call, with the moments between which it took effect.
#[derive(Debug, Serialize, Deserialize)]
struct Operation {
    before: Moment,
    after: Moment,
    changes: Vec<(String, Option<Value>)>,
    /// The intermediate values of a file while it is written, as a reader would see them.
    partial: Option<(String, Vec<Value>)>,
}

/// A directory and all that was done to it, by one thread.
#[derive(Debug, Serialize, Deserialize)]
pub struct History {
    root: PathBuf,
    tree: Tree,
    operations: Vec<Operation>,
    initial: Tree,
    /// Sleeps that long after an operation.
    pub pause: Duration,
}

/// The result of comparing a copy with the states that the directory had.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// It is one of them; `loss` is the age of the oldest operation that it lacks.
    Instant { loss: Duration },
    /// It is none of them. Its names are of moments that are at least `spread` apart.
    Mixture { spread: Duration, names: Vec<String>, loss: Duration },
    /// A name holds what it never held, or not lately.
    Never { names: Vec<String> },
}

fn value_of(content: &[u8]) -> Value {
    let digest = blake3::hash(content);
    Value::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight bytes")) | 2
}

fn hash_of(path: &str, value: Value) -> u64 {
    value_of(path.as_bytes()).wrapping_mul(value.rotate_left(17) ^ 0x9e37_79b9_7f4a_7c15)
}

/// The names below a directory, without those of fsure.
pub fn tree(root: &Path) -> Tree {
    let (mut tree, mut waiting) = (Tree::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("list") {
            let path = entry.expect("list").path();
            let name = path.strip_prefix(root).expect("below").to_str().expect("text").to_owned();
            if name == ".fsure-ram" {
                continue;
            }
            let value = if path.is_dir() {
                waiting.push(path);
                DIRECTORY
            } else {
                value_of(&fs::read(&path).expect("read"))
            };
            tree.insert(name, value);
        }
    }
    tree
}

impl History {
    /// Begins with a directory as it is.
    pub fn new(root: &Path) -> Self {
        let tree = tree(root);
        let (initial, operations) = (tree.clone(), Vec::new());
        Self { root: root.to_owned(), tree, operations, initial, pause: Duration::ZERO }
    }

    /// The names that are there.
    pub fn names(&self, below: &str) -> Vec<String> {
        let names = self.tree.keys().filter(|name| name.starts_with(below));
        names.cloned().collect()
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    fn act(&mut self, call: impl FnOnce(&Path), changes: Vec<(String, Option<Value>)>) {
        let before = now();
        call(&self.root);
        let after = now();
        for (path, value) in &changes {
            match value {
                Some(value) => self.tree.insert(path.clone(), *value),
                None => self.tree.remove(path),
            };
        }
        self.operations.push(Operation { before, after, changes, partial: None });
        if !self.pause.is_zero() {
            std::thread::sleep(self.pause);
        }
    }

    /// Makes a file with this content, by two calls.
    pub fn create(&mut self, path: &str, content: &[u8]) {
        let mut file = None;
        let made = |root: &Path| file = Some(File::create_new(root.join(path)).expect("create"));
        self.act(made, vec![(path.to_owned(), Some(value_of(b"")))]);
        let write = |_: &Path| file.expect("a file").write_all(content).expect("write");
        self.act(write, vec![(path.to_owned(), Some(value_of(content)))]);
        let pages = (PAGE..content.len()).step_by(PAGE).map(|length| value_of(&content[..length]));
        let last = self.operations.last_mut().expect("just done");
        last.partial = Some((path.to_owned(), pages.collect()));
    }

    /// Appends to a file whose content is known.
    pub fn append(&mut self, path: &str, content: &mut Vec<u8>, line: &[u8]) {
        content.extend(line);
        let write = |root: &Path| {
            let file = File::options().append(true).open(root.join(path));
            file.and_then(|mut file| file.write_all(line)).expect("append");
        };
        self.act(write, vec![(path.to_owned(), Some(value_of(content)))]);
    }

    /// Renames a file or a directory, in the place of what has the name.
    pub fn rename(&mut self, from: &str, to: &str) {
        let below = format!("{from}/");
        let moved = self.tree.iter().filter(|(name, _)| *name == from || name.starts_with(&below));
        let moved: Vec<_> = moved.map(|(name, value)| (name.clone(), *value)).collect();
        let gone = moved.iter().map(|(name, _)| (name.clone(), None));
        let there = moved.iter().map(|(name, value)| {
            let name = format!("{to}{}", &name[from.len()..]);
            (name, Some(*value))
        });
        let changes = gone.chain(there).collect();
        self.act(|root| fs::rename(root.join(from), root.join(to)).expect("rename"), changes);
    }

    /// Gives a file a second name.
    pub fn link(&mut self, from: &str, to: &str) {
        let value = self.tree[from];
        let link = |root: &Path| fs::hard_link(root.join(from), root.join(to)).expect("link");
        self.act(link, vec![(to.to_owned(), Some(value))]);
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        let remove = |root: &Path| fs::remove_file(root.join(path)).expect("remove");
        self.act(remove, vec![(path.to_owned(), None)]);
    }

    /// Makes a directory.
    pub fn make_dir(&mut self, path: &str) {
        let make = |root: &Path| fs::create_dir(root.join(path)).expect("make");
        self.act(make, vec![(path.to_owned(), Some(DIRECTORY))]);
    }

    /// Removes an empty directory.
    pub fn remove_dir(&mut self, path: &str) {
        let remove = |root: &Path| fs::remove_dir(root.join(path)).expect("remove");
        self.act(remove, vec![(path.to_owned(), None)]);
    }

    /// Gives a file the date of another time, which changes neither name nor content.
    pub fn date(&mut self, path: &str, seconds: u64) {
        let set = |root: &Path| -> io::Result<()> {
            let date = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
            File::options().write(true).open(root.join(path))?.set_modified(date)
        };
        self.act(|root| set(root).expect("set the date"), Vec::new());
    }

    /// Every state that it had, to be looked up.
    pub fn states(&self) -> States<'_> {
        let hashes = self.initial.iter().map(|(path, value)| hash_of(path, *value));
        let mut hash = hashes.fold(0, u64::wrapping_add);
        let (mut tree, mut by_hash) = (self.initial.clone(), HashMap::new());
        by_hash.insert(hash, vec![0]);
        for (at, operation) in self.operations.iter().enumerate() {
            for (path, value) in operation
                .partial
                .iter()
                .flat_map(|(path, values)| values.iter().map(move |value| (path, *value)))
            {
                let old = hash_of(path, tree[path]);
                let partial = hash.wrapping_sub(old).wrapping_add(hash_of(path, value));
                by_hash.entry(partial).or_insert_with(Vec::new).push(at);
            }
            for (path, value) in &operation.changes {
                let old = match value {
                    Some(value) => tree.insert(path.clone(), *value),
                    None => tree.remove(path),
                };
                hash = hash.wrapping_sub(old.map_or(0, |old| hash_of(path, old)));
                hash = hash.wrapping_add(value.map_or(0, |value| hash_of(path, value)));
            }
            by_hash.entry(hash).or_insert_with(Vec::new).push(at + 1);
        }
        States { history: self, by_hash }
    }
}

/// All states of a directory.
pub struct States<'a> {
    history: &'a History,
    by_hash: HashMap<u64, Vec<usize>>,
}

/// Older than this nothing may be that a copy has.
const LATELY: Duration = Duration::from_secs(10);

impl States<'_> {
    /// Judges a copy that was made at a moment.
    pub fn judge(&self, found: &Tree, cut: Moment) -> Judgement {
        let hash = found.iter().map(|(path, value)| hash_of(path, *value));
        let hash = hash.fold(0, u64::wrapping_add);
        let is_before = |state: &&usize| **state == 0 || self.operation(**state).before <= cut;
        let states = self.by_hash.get(&hash).into_iter().flatten();
        match states.filter(is_before).max() {
            Some(state) => Judgement::Instant { loss: self.loss(*state, cut) },
            None => self.mixture(found, cut),
        }
    }

    /// The operation that led to a state.
    fn operation(&self, state: usize) -> &Operation {
        &self.history.operations[state - 1]
    }

    /// Returns the age of the first operation that a state lacks at the cut; zero if it lacks
    /// none.
    fn loss(&self, state: usize, cut: Moment) -> Duration {
        let next = self.history.operations.get(state);
        next.map_or(Duration::ZERO, |next| cut.saturating_sub(next.after))
    }

    /// Judges a copy that is none of the states, with the least spread of the moments of
    /// its names.
    fn mixture(&self, found: &Tree, cut: Moment) -> Judgement {
        let last = self.history.operations.iter().take_while(|one| one.before <= cut).count();
        let lives = self.lives(found, last);
        let mut never: Vec<String> = lives
            .iter()
            .filter(|(_, spans)| spans.is_empty())
            .map(|(name, _)| (*name).into())
            .collect();
        never.extend(found.keys().filter(|name| !lives.contains_key(&***name)).cloned());
        if !never.is_empty() {
            return Judgement::Never { names: never };
        }
        let first_lost = lives.values().filter_map(|spans| spans.last()).map(|(_, to)| *to).min();
        let loss = first_lost.map_or(Duration::ZERO, |state| self.loss(state - 1, cut));
        let starts: BTreeSet<_> = lives.values().flatten().map(|(from, _)| *from).collect();
        let is_late = |state: &&usize| {
            **state > 0 && cut.saturating_sub(self.operation(**state).before) < LATELY
        };
        let apart = starts.iter().rev().take_while(is_late).filter_map(|state| {
            let (mut spread, mut names) = (Duration::ZERO, Vec::new());
            for (name, spans) in &lives {
                let (_, to) = spans.iter().rev().find(|(from, _)| from <= state)?;
                if to <= state {
                    // From when it was no longer so, until the state began.
                    let until = self.operation(*to).after;
                    spread = spread.max(self.operation(*state).before.saturating_sub(until));
                    names.push((*name).to_owned());
                }
            }
            Some((spread, names))
        });
        let (spread, names) = apart.min().unwrap_or((LATELY, Vec::new()));
        Judgement::Mixture { spread, names, loss }
    }

    /// For each name the spans of states in which it was as it was found, the end excluded.
    fn lives(&self, found: &Tree, last: usize) -> BTreeMap<&str, Vec<(usize, usize)>> {
        let mut versions: BTreeMap<&str, Vec<(usize, Option<Value>)>> = BTreeMap::new();
        for (name, value) in &self.history.initial {
            versions.insert(name, vec![(0, Some(*value))]);
        }
        for (at, operation) in self.history.operations.iter().take(last).enumerate() {
            for (name, value) in &operation.changes {
                versions.entry(name).or_insert_with(|| vec![(0, None)]).push((at + 1, *value));
            }
        }
        let spans = |(name, versions): (&'_ str, Vec<(usize, Option<Value>)>)| {
            let ends = versions.iter().skip(1).map(|(state, _)| *state).chain([last + 1]);
            let spans = versions
                .iter()
                .zip(ends)
                .filter(|((from, value), to)| *value == found.get(name).copied() && from < to);
            spans.map(|((from, _), to)| (*from, to)).collect()
        };
        let mut lives: BTreeMap<&str, Vec<_>> =
            versions.into_iter().map(|(name, all)| (name, spans((name, all)))).collect();
        // What a file holds while it is written is of the moment of that operation.
        for (at, operation) in self.history.operations.iter().take(last).enumerate() {
            let Some((name, values)) = &operation.partial else { continue };
            if found.get(name).is_some_and(|value| values.contains(value)) {
                lives.entry(name).or_default().push((at, at + 1));
            }
        }
        lives.values_mut().for_each(|spans| spans.sort_unstable());
        lives
    }
}
