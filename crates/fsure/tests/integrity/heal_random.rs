//! A thousand trees, each damaged at random together with two replicas of it.
//! Afterwards every file has exactly the recorded content, or it is reported as not
//! healed and is byte for byte what it was; and what any of the three could
//! prove is healed. The oracle knows the contents and compares bytes.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::support::campaign;
use crate::support::{content, mtime_ns, set_mtime_ns};
use fsure_core::{ExitCode, Monitor, NullMonitor};
use fsure_integrity::catalog::locate;
use fsure_integrity::model::{Allowed, HealResult, HealSource, HealStatus, ScanMonitor, Verdict};
use fsure_integrity::{HealOptions, ProtectOptions, UpdateOptions, heal, protect, update, verify};
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const HOUR_NS: i64 = 3_600_000_000_000;
/// Random trees, half of them in each test.
const CASES: u32 = 150;

/// Small numbers that look random, the same for each seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

/// Keeps what was done about each finding.
#[derive(Default)]
struct Ear(Mutex<Vec<HealResult>>);

impl Monitor for Ear {}

impl ScanMonitor for Ear {
    fn remedy(&self, remedy: &HealResult) {
        self.0.lock().unwrap().push(remedy.clone());
    }
}

impl Ear {
    fn remedies(self) -> BTreeMap<PathBuf, HealResult> {
        let all = self.0.into_inner().unwrap().into_iter();
        all.map(|remedy| (PathBuf::from(remedy.path.as_text().unwrap()), remedy)).collect()
    }
}

/// A tree, its replicas, and what is recorded of it.
struct Case {
    folder: TempDir,
    recorded: BTreeMap<PathBuf, Vec<u8>>,
}

const PLACES: [&str; 3] = ["tree", "a", "b"];

impl Case {
    fn new(dice: &mut Dice, pool: &[u8], home: &Path) -> Self {
        let folder = tempfile::tempdir_in(home).unwrap();
        let mut recorded = BTreeMap::new();
        for number in 0..2 + dice.roll(4) {
            let size = [0, 1, 511, 4096, 70_000][dice.roll(5)] + dice.roll(3);
            let path = ["", "sub", "sub/deep"][dice.roll(3)];
            recorded.insert(Path::new(path).join(format!("small{number}")), size);
        }
        if dice.one_in(3) {
            let size = [MIB, MIB + 1, 2 * MIB, 2 * MIB + 77, 3 * MIB + 4096][dice.roll(5)];
            recorded.insert(Path::new("sub").join("large"), size);
        }
        let cut = |dice: &mut Dice, size: usize| {
            let at = dice.roll(pool.len() - size);
            pool[at..at + size].to_vec()
        };
        let recorded: BTreeMap<_, _> =
            recorded.into_iter().map(|(path, size)| (path, cut(dice, size))).collect();
        let case = Self { folder, recorded };
        for place in PLACES {
            for (path, content) in &case.recorded {
                let path = case.path(place, path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
        }
        case
    }

    fn path(&self, place: &str, path: &Path) -> PathBuf {
        self.folder.path().join(place).join(path)
    }

    fn read(&self, place: &str, path: &Path) -> Option<Vec<u8>> {
        std::fs::read(self.path(place, path)).ok()
    }

    /// Damages one file, its date kept; in the tree sometimes under a new inode.
    fn damage(&self, dice: &mut Dice, place: &str, path: &Path) {
        let file = self.path(place, path);
        let Ok(mut bytes) = std::fs::read(&file) else { return };
        let date = mtime_ns(&file);
        let (length, at) = (bytes.len(), dice.roll(bytes.len()));
        match dice.roll(7) {
            0 | 1 if length > 0 => bytes[at] ^= 1 << dice.roll(8),
            2 => bytes[at..(at + 5000).min(length)].fill(0),
            3 => bytes.truncate(at),
            4 => bytes.extend(vec![dice.roll(2) as u8; 1 + dice.roll(MIB + MIB / 2)]),
            // A block of the file in another one's place.
            5 if length > 2 * MIB => bytes.copy_within(MIB..2 * MIB, 0),
            6 => return std::fs::remove_file(&file).unwrap(),
            _ => return,
        }
        if dice.one_in(3) {
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, bytes).unwrap();
        set_mtime_ns(&file, date);
    }

    /// Returns true if the tree and its replicas together have every block of a file.
    fn can_be_healed(&self, path: &Path) -> bool {
        let wanted = &self.recorded[path];
        let sources: Vec<_> =
            PLACES.into_iter().filter_map(|place| self.read(place, path)).collect();
        let has = |from: usize, to: usize| {
            sources.iter().any(|source| source.get(from..to) == Some(&wanted[from..to]))
        };
        match wanted.len() {
            0 => true,
            length if length <= MIB => has(0, length),
            length => (0..length).step_by(MIB).all(|at| has(at, (at + MIB).min(length))),
        }
    }
}

/// Flips some bytes of recovery data.
fn spoil_recovery_data(dice: &mut Dice, tree: &Path) {
    let groups = std::fs::read_dir(tree.join(".fsure/catalog.db.parity")).unwrap();
    for group in groups.map(|entry| entry.unwrap().path()) {
        let mut bytes = std::fs::read(&group).unwrap();
        for _ in 0..dice.roll(4) {
            let at = dice.roll(bytes.len());
            bytes[at] ^= 1 << dice.roll(8);
        }
        std::fs::write(&group, bytes).unwrap();
    }
}

/// Damages files of all trees, and edits some of the first; those with their content.
fn damage_and_edit(dice: &mut Dice, case: &Case, seed: u64) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut edited = BTreeMap::new();
    for path in case.recorded.keys() {
        for damaged in PLACES {
            for _ in 0..dice.roll(3) {
                case.damage(dice, damaged, path);
            }
        }
        let file = case.folder.path().join("tree").join(path);
        if dice.one_in(9) && file.exists() {
            let date = mtime_ns(&file);
            std::fs::write(&file, content(100, seed)).unwrap();
            set_mtime_ns(&file, date + HOUR_NS);
            edited.insert(path.clone(), content(100, seed));
        }
    }
    edited
}

/// Runs one case and returns the number of files that were healed from recovery data.
fn run(seed: u64, pool: &[u8], home: &Path) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let case = Case::new(&mut dice, pool, home);
    let tree = case.folder.path().join("tree");
    let place = locate(&tree, None).unwrap();
    let outcome = update(&place, &UpdateOptions::default(), &NullMonitor).unwrap();
    assert_eq!(outcome.exit_code(), ExitCode::Clean, "seed {seed}");
    let is_protected = dice.one_in(3);
    if is_protected {
        let options = ProtectOptions { per_mille: Some(300), ..Default::default() };
        protect(&place, &options, &NullMonitor).unwrap();
    }
    let edited = damage_and_edit(&mut dice, &case, seed);
    if is_protected && dice.one_in(2) {
        spoil_recovery_data(&mut dice, &tree);
    }
    let before: BTreeMap<_, _> =
        case.recorded.keys().map(|path| (path.clone(), case.read("tree", path))).collect();
    let curable: BTreeMap<_, _> =
        case.recorded.keys().map(|path| (path.clone(), case.can_be_healed(path))).collect();
    let (in_place, discards_replaced) =
        [(true, true), (true, false), (false, true), (false, false)][dice.roll(4)];
    let options = HealOptions {
        replicas: ["a", "b"].map(|name| case.folder.path().join(name)).to_vec(),
        does: true,
        discards_replaced,
        in_place,
        common: fsure_integrity::Options { allowed: Allowed::ALL, ..Default::default() },
    };
    let ear = Ear::default();
    let outcome = heal(&place, &options, &ear).unwrap();
    let reported = ear.remedies();
    let mut left = 0;
    for (path, wanted) in &case.recorded {
        let context = format!("seed {seed}, {}: {:?}", path.display(), reported.get(path));
        let now = case.read("tree", path);
        let cure = reported.get(path).map(|remedy| remedy.cure);
        if edited.contains_key(path) {
            assert_eq!((now.as_ref(), cure), (edited.get(path), None), "{context}");
            continue;
        }
        assert_kept(reported.get(path), &tree, &before[path], &options, &context);
        if now.as_ref() == Some(wanted) {
            assert_ne!(cure, Some(HealStatus::Unhealed), "{context}");
            assert_eq!(cure.is_some(), before[path].as_ref() != Some(wanted), "{context}");
            continue;
        }
        left += 1;
        assert_eq!(cure, Some(HealStatus::Unhealed), "{context}");
        assert!(now == before[path], "it was touched: {context}");
        let length = |bytes: Option<&Vec<u8>>| bytes.map(Vec::len);
        let is_longer = length(before[path].as_ref()) > length(Some(wanted));
        let would_lose_its_end = is_longer && in_place && !discards_replaced;
        let verdict = reported.get(path).map(|remedy| remedy.verdict);
        let may_be_edit = verdict == Some(Verdict::DamagedCopy) && discards_replaced;
        let is_refused = would_lose_its_end || may_be_edit;
        assert!(!curable[path] || is_refused, "it could have been healed: {context}");
    }
    assert_clean(&case, seed, left, edited.len(), &outcome.exit_code());
    let is_rebuilt = |remedy: &&HealResult| {
        let mut taken = remedy.taken.iter();
        remedy.cure == HealStatus::Healed && taken.any(|(origin, _)| *origin == HealSource::Parity)
    };
    reported.values().filter(is_rebuilt).count()
}

/// Asserts that the replaced file is kept, unless the options discard it: the file itself,
/// or the journal of a heal in place.
fn assert_kept(
    remedy: Option<&HealResult>,
    tree: &Path,
    before: &Option<Vec<u8>>,
    options: &HealOptions,
    context: &str,
) {
    let Some(remedy) = remedy else { return };
    let was_healed = remedy.verdict != Verdict::Missing && remedy.cure == HealStatus::Healed;
    let is_kept = was_healed && !options.discards_replaced;
    let was_other_name = remedy.reason.as_deref() == Some("healed under another of its names");
    assert_eq!(remedy.kept.is_some(), is_kept && !was_other_name, "{context}");
    let kept = remedy.kept.as_ref().map(|kept| kept.as_text().unwrap());
    let kept = kept.map(|kept| std::fs::read(tree.join(kept)).unwrap());
    match options.in_place {
        true => assert!(kept.is_none_or(|kept| kept.starts_with(b"fsure heal 1\n")), "{context}"),
        false => assert!(kept.is_none() || kept == *before, "it was not kept: {context}"),
    }
}

/// The record and the tree hold nothing that a heal should not leave.
fn assert_clean(case: &Case, seed: u64, left: usize, edited: usize, code: &ExitCode) {
    let tree = case.folder.path().join("tree");
    if left == 0 {
        let codes = [ExitCode::Clean, ExitCode::Healed, ExitCode::Differences];
        assert!(codes.contains(code), "seed {seed}: {code:?}");
    } else {
        assert!([ExitCode::Damage, ExitCode::Differences].contains(code), "seed {seed}: {code:?}");
    }
    let place = locate(&tree, None).unwrap();
    let outcome = verify(&place, &fsure_integrity::Options::default(), &NullMonitor).unwrap();
    if left + edited == 0 {
        assert_eq!(outcome.exit_code(), ExitCode::Clean, "seed {seed}");
    }
    assert_eq!(
        outcome.files.of(fsure_integrity::model::Verdict::New),
        0,
        "seed {seed}: a draft is left"
    );
    let own: Vec<_> = std::fs::read_dir(tree.join(".fsure"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("healing"))
        .collect();
    assert!(own.is_empty(), "seed {seed}: {own:?}");
}

/// Memory, where there is such a place: flushing is not what is tested here.
fn home() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn run_every(nth: u64, of: u64) {
    let pool = content(8 * MIB, 1);
    let home = tempfile::tempdir_in(home()).unwrap();
    let seeds = (nth..campaign(CASES).into()).step_by(of as usize);
    let rebuilt: usize = seeds.map(|seed| run(seed, &pool, home.path())).sum();
    let least = campaign(CASES) as usize / 50;
    assert!(rebuilt > least, "only {rebuilt} files came from recovery data");
}

#[test]
fn every_file_is_whole_or_as_it_was_first_half() {
    run_every(0, 2);
}

#[test]
fn every_file_is_whole_or_as_it_was_second_half() {
    run_every(1, 2);
}
