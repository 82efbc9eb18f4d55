//! Recovery data: what is promised can be repaired, one shard more is reported and
//! nothing touched; rotten recovery data are seen; only what changed is made
//! anew; and nothing that is not as recorded is ever protected as if it were.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{FaultyFs, Mounted, Recorded, Report, Tree, content, flip_byte, or_skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const SHARD: u64 = 16 << 10;

/// A recorded tree that is protected.
struct Setting {
    tree: Tree,
    recorded: Recorded,
    beside: Tree,
    contents: BTreeMap<String, Vec<u8>>,
}

impl Setting {
    fn new(files: &[(&str, u64)], redundancy: &str) -> Self {
        let (tree, beside) = (Tree::new(), Tree::new());
        let contents: BTreeMap<_, _> = (1..)
            .zip(files)
            .map(|(seed, (path, size))| ((*path).to_owned(), content(*size as usize, seed)))
            .collect();
        for (path, content) in &contents {
            tree.write(path, content);
            tree.age(path);
        }
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        recorded.record();
        let setting = Self { tree, recorded, beside, contents };
        let report = setting.protect(&["--redundancy", redundancy]);
        assert_eq!(report.code, 0, "{report:?}");
        setting
    }

    fn protect(&self, more: &[&str]) -> Report {
        self.recorded.run("protect", more)
    }

    fn heal(&self) -> Report {
        self.recorded.run("heal", &["--yes"])
    }

    fn folder(&self) -> PathBuf {
        self.beside.path("catalog.db.parity")
    }

    /// The groups with that ending, each with its inode.
    fn groups(&self, ending: &str) -> BTreeMap<PathBuf, u64> {
        let entries = std::fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap());
        let groups = entries.filter(|entry| entry.file_name().to_str().unwrap().ends_with(ending));
        groups.map(|entry| (entry.path(), entry.metadata().unwrap().ino())).collect()
    }

    /// Damages so many shards of a file, one byte in each.
    fn damage(&self, path: &str, shards: impl IntoIterator<Item = u64>) {
        for shard in shards {
            self.tree.flip(path, shard * SHARD + shard % 1000);
        }
    }

    fn assert_whole(&self) {
        for (path, content) in &self.contents {
            assert!(self.tree.read(path) == *content, "{path}");
        }
        let report = self.recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    }
}

fn flip(path: &PathBuf, at: u64) {
    flip_byte(&mut std::fs::File::options().read(true).write(true).open(path).unwrap(), at);
}

fn reason(report: &Report, path: &str) -> String {
    let remedy = report.lines.iter().find(|l| l["type"] == "remedy" && l["path"] == path);
    let remedy = remedy.unwrap_or_else(|| panic!("no remedy for {path}: {report:?}"));
    remedy["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn as_much_as_promised_is_repaired_and_one_shard_more_touches_nothing() {
    // 321 shards at 5 %: 17 of them.
    let set = Setting::new(&[("f", 5 * MIB + 123)], "5%");
    let spread = |count| (0..count).map(|number| number * 18 + 3);
    set.damage("f", spread(17));
    let report = set.heal();
    assert_eq!(report.code, 7, "{report:?}");
    set.assert_whole();
    set.damage("f", spread(18));
    let before = set.tree.read("f");
    let report = set.heal();
    assert_eq!(report.code, 3, "{report:?}");
    let why = reason(&report, "f");
    assert!(why.contains("18 of 321 shards are bad, and 17 of 17 recovery"), "{why}");
    assert!(set.tree.read("f") == before);
    // A replica with nothing but one of the blocks brings it within reach again.
    let copy = set.beside.path("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("f"), &set.contents["f"][..MIB as usize]).unwrap();
    let from = ["--yes", "--from", copy.to_str().unwrap()];
    let report = set.recorded.run("heal", &from);
    assert_eq!(report.code, 7, "{report:?}");
    set.assert_whole();
}

#[test]
fn small_files_share_a_group_and_large_ones_have_several() {
    let names: Vec<String> = (0..40).map(|number| format!("dir/{number:02}")).collect();
    let mut files: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 5000)).collect();
    files.extend([("large", 66 * MIB + 5), ("mega", MIB), ("tiny", 1), ("empty", 0)]);
    let set = Setting::new(&files, "10%");
    let pools = set.groups(".pool").len();
    assert_eq!((set.groups(".own").len(), pools), (2, 1));
    for lost in ["dir/07", "dir/31", "tiny", "empty"] {
        std::fs::remove_file(set.tree.path(lost)).unwrap();
    }
    set.damage("large", [0, 1, 64 * 64 + 2]);
    set.tree.flip("dir/20", 4999);
    let report = set.heal();
    assert_eq!(report.code, 7, "{report:?}");
    assert_eq!(report.summary()["healed"], 6, "{report:?}");
    set.assert_whole();
}

#[test]
fn rotten_recovery_data_are_erasures_and_are_made_anew() {
    let set = Setting::new(&[("f", 5 * MIB)], "5%");
    let (group, _) = set.groups(".own").into_iter().next().unwrap();
    let length = group.metadata().unwrap().len();
    // One recovery shard of 16, and the first header.
    flip(&group, length / 2);
    flip(&group, 40);
    set.damage("f", 0..15);
    assert_eq!(set.heal().code, 7);
    set.assert_whole();
    set.damage("f", 0..16);
    let report = set.heal();
    assert_eq!(report.code, 3, "{report:?}");
    let why = reason(&report, "f");
    assert!(why.contains("15 of 16 recovery shards are good"), "{why}");
    // What is damaged in the tree is not a source for new recovery data.
    let before = std::fs::read(&group).unwrap();
    let report = set.protect(&[]);
    assert_eq!((report.code, &report.summary()["left_out"]), (5, &json!(1)), "{report:?}");
    assert!(std::fs::read(&group).unwrap() == before, "it is all there is");
    std::fs::write(set.tree.path("f"), &set.contents["f"]).unwrap();
    let report = set.protect(&[]);
    assert_eq!((report.code, &report.summary()["groups_damaged"]), (7, &json!(1)), "{report:?}");
    assert_eq!(report.summary()["groups_made"], 1, "{report:?}");
    let report = set.protect(&[]);
    assert_eq!((report.code, &report.summary()["groups_kept"]), (0, &json!(1)), "{report:?}");
    // Both headers: nothing can be said of it, and nothing is done by it.
    flip(&group, 40);
    flip(&group, length - 100);
    set.recorded.update();
    flip(&group, 40);
    flip(&group, length - 100);
    set.tree.flip("f", 9);
    let report = set.heal();
    assert_eq!(report.code, 3, "{report:?}");
}

fn parity(report: &Report) -> Value {
    report.summary()["parity"].clone()
}

#[test]
fn one_damaged_group_of_several_is_made_anew_by_itself() {
    let set = Setting::new(&[("f", 130 * MIB)], "1%");
    let groups: Vec<_> = set.groups(".own").into_keys().collect();
    assert_eq!(groups.len(), 3);
    let second = groups.iter().find(|group| group.to_str().unwrap().contains("-1.")).unwrap();
    flip(second, second.metadata().unwrap().len() / 2);
    let report = set.protect(&[]);
    let done = report.summary();
    assert_eq!(
        [&done["groups_kept"], &done["groups_made"], &done["bytes_read"], &done["bytes"]],
        [&json!(2), &json!(1), &json!(64 * MIB), &json!(130 * MIB)],
        "{report:?}"
    );
    assert_eq!(report.code, 7, "{report:?}");
}

#[test]
fn update_reads_and_writes_only_what_changed() {
    let files =
        [("a/large", 3 * MIB), ("b/large", 4 * MIB), ("gone/large", 2 * MIB), ("small", 9000)];
    let set = Setting::new(&files, "5%");
    let before = set.groups("");
    let report = set.recorded.update();
    let nothing = json!({"kept": 4, "made": 0, "deleted": 0, "damaged": 0, "left_out": 0,
                         "bytes_read": 0, "bytes_written": 0});
    assert_eq!((report.code, parity(&report)), (0, nothing), "{report:?}");
    assert_eq!(set.groups(""), before);

    set.tree.write("b/large", content(5 * MIB as usize, 50));
    std::fs::remove_dir_all(set.tree.path("gone")).unwrap();
    let report = set.recorded.update();
    let done = parity(&report);
    assert_eq!(
        [&done["kept"], &done["made"], &done["deleted"], &done["bytes_read"]],
        [&json!(2), &json!(1), &json!(1), &json!(5 * MIB)],
        "{report:?}"
    );
    // 16 recovery shards, and two headers with 336 checksums.
    let written = done["bytes_written"].as_u64().unwrap();
    assert!((16 * SHARD..17 * SHARD).contains(&written), "{written}");
    let unchanged = set.groups("");
    let unchanged = unchanged.iter().filter(|(path, inode)| before.get(*path) == Some(inode));
    assert_eq!(unchanged.count(), 3, "two groups and the setting");

    set.tree.write("another", content(100, 51));
    let report = set.recorded.update();
    let done = parity(&report);
    assert_eq!(
        [&done["kept"], &done["made"], &done["deleted"], &done["bytes_read"]],
        [&json!(2), &json!(1), &json!(1), &json!(9100)],
        "the pool: {report:?}"
    );
    set.damage("b/large", [3, 99]);
    std::fs::remove_file(set.tree.path("another")).unwrap();
    assert_eq!(set.heal().code, 7);
    assert!(set.tree.read("b/large") == content(5 * MIB as usize, 50));
    assert!(set.tree.read("another") == content(100, 51));
}

#[test]
fn what_heals_a_damaged_file_stays_when_its_neighbours_change() {
    let names: Vec<String> = (0..50).map(|number| format!("{number:02}")).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, 20_000)).collect();
    let set = Setting::new(&files, "20%");
    set.tree.flip("10", 7);
    set.tree.write("40", "edited");
    let report = set.recorded.update();
    assert_eq!(report.code, 3, "{report:?}");
    assert_eq!(parity(&report)["left_out"], 1, "{report:?}");
    assert_eq!(set.groups(".pool").len(), 2, "the old one is all there is for 10");
    let report = set.recorded.update();
    assert_eq!(report.code, 3, "{report:?}");
    let report = set.heal();
    assert_eq!(report.code, 7, "{report:?}");
    assert!(set.tree.read("10") == set.contents["10"]);
    let report = set.recorded.update();
    assert_eq!((report.code, set.groups(".pool").len()), (0, 1), "{report:?}");
}

/// A file is in two pools, and only one of them has enough of it.
#[test]
fn where_several_pools_hold_a_file_any_will_do() {
    for name in ["0000000000000000.pool", "ffffffffffffffff.pool"] {
        let set = Setting::new(&[("a", 200_000), ("b", 200_000), ("c", 200_000)], "50%");
        let (old, _) = set.groups(".pool").pop_first().unwrap();
        let date = set.tree.mtime("a");
        set.tree.write("a", content(200_000, 70));
        set.tree.set_mtime("a", date);
        set.tree.write("b", content(200_000, 71));
        assert_eq!(set.recorded.update().code, 3);
        assert_eq!(set.groups(".pool").len(), 2, "the old one is all there is for a");
        std::fs::rename(old, set.folder().join(name)).unwrap();
        std::fs::remove_file(set.tree.path("c")).unwrap();
        let report = set.heal();
        let reported = format!("{:?}", report.lines);
        assert!(reported.contains("shards are bad"), "{report:?}");
        assert!(set.tree.read("c") == set.contents["c"], "{name}: {report:?}");
    }
}

#[test]
fn without_block_values_too_and_with_another_redundancy() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("f", content(3 * MIB as usize + 1, 1));
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    assert_eq!(recorded.run("update", &["--digest", "sha256"]).code, 0);
    for (redundancy, made) in [("1%", 1), ("1%", 0), ("50%", 1)] {
        let report = recorded.run("protect", &["--redundancy", redundancy]);
        assert_eq!(report.summary()["groups_made"], made, "{redundancy}: {report:?}");
    }
    let date = tree.mtime("f");
    let bad = [vec![0; MIB as usize], content(3 * MIB as usize + 1, 1)[MIB as usize..].to_vec()];
    tree.write("f", bad.concat());
    tree.set_mtime("f", date);
    let report = recorded.run("heal", &["--yes"]);
    assert_eq!(report.code, 7, "{report:?}");
    assert!(tree.read("f") == content(3 * MIB as usize + 1, 1));
}

#[test]
fn a_lack_of_sources_is_reported() {
    let tree = Tree::new();
    tree.write("dir/f", "x");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let report = recorded.run("heal", &[""; 0]);
    assert_eq!(report.code, 2, "{report:?}");
    assert!(report.stderr.contains("fsure protect"), "{report:?}");
    let below = tree.path("dir");
    let report = support::fsure_json(&["protect".as_ref(), below.as_os_str()]);
    assert_eq!(report.code, 2, "{report:?}");
    assert_eq!(recorded.run("protect", &["--redundancy", "0"]).code, 2);
    assert_eq!(recorded.run("protect", &[""; 0]).code, 0);
    assert_eq!(recorded.run("heal", &[""; 0]).code, 0);
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (0, vec![]),
        "it is never recorded: {report:?}"
    );
}

#[test]
fn a_digest_from_a_list_alone_is_not_protected_and_reported() {
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("f", content(5000, 1));
    tree.write("empty", "");
    let list = beside.path("list");
    let digest = blake3::hash(&content(5000, 1)).to_hex();
    std::fs::write(&list, format!("{digest}  f\n")).unwrap();
    let import = ["import".as_ref(), list.as_os_str(), "--format".as_ref(), "b3sum".as_ref()];
    let root = ["--root".as_ref(), tree.root().as_os_str()];
    let report = support::fsure_json(&[&import[..], &root].concat());
    assert_eq!(report.code, 0, "{report:?}");
    let recorded = Recorded::inside(tree.root());
    let report = recorded.run("protect", &[""; 0]);
    assert_eq!((report.code, &report.summary()["left_out"]), (5, &json!(1)), "{report:?}");
    let report = recorded.update();
    assert_eq!((report.code, &parity(&report)["made"]), (0, &json!(1)), "{report:?}");
}

#[test]
fn a_full_disk_is_reported_and_leaves_the_old_recovery_data() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(beside.root(), 1500);
    let Some(_mounted) = or_skip("a_full_disk_is_reported", mounted) else { return };
    tree.write("f", content(4 * MIB as usize, 1));
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    assert_eq!(recorded.run("protect", &["--redundancy", "10%"]).code, 0);
    let report = recorded.run("protect", &["--redundancy", "100%"]);
    assert_eq!(report.code, 5, "{report:?}");
    assert!(report.stderr.contains("No space left"), "{report:?}");
    tree.flip("f", 5);
    assert_eq!(recorded.run("heal", &["--yes"]).code, 7);
    tree.write("g", content(5 * MIB as usize, 2));
    let report = recorded.update();
    assert_eq!(report.code, 5, "{report:?}");
    assert!(parity(&report)["stale"].as_str().unwrap().contains("No space left"), "{report:?}");
    let update = recorded.text("update", &[""; 0]);
    assert!(update.stdout.contains("NOT UP TO DATE"), "{}", update.stdout);
}

#[test]
fn a_killed_protect_is_made_good_by_the_next() {
    let names: Vec<String> = (0..30).map(|number| format!("{number:02}")).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, MIB + MIB / 2)).collect();
    let set = Setting::new(&files, "5%");
    let dice = content(8 * 15, 3);
    for (round, bytes) in dice.as_chunks::<8>().0.iter().enumerate() {
        let redundancy = format!("{}%", 6 + round);
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(set.recorded.arguments("protect", &["--redundancy", &redundancy]));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(u64::from_le_bytes(*bytes) % 300_000));
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
        let name = &names[round * 2];
        set.damage(name, [3, 70]);
        let report = set.heal();
        assert_eq!(report.code, 7, "round {round}: {report:?}");
    }
    let report = set.protect(&[]);
    assert_eq!((report.code, &report.summary()["files"]), (0, &json!(30)), "{report:?}");
    assert_eq!(set.groups("").len(), 31, "nothing is left of the killed");
    set.assert_whole();
}

/// Many files of one pool are damaged: the pool is rebuilt once for all of them,
/// and not read as a whole for each.
#[test]
fn a_pool_is_read_once_for_all_that_it_heals() {
    const FILES: usize = 200;
    let files: Vec<_> = (0..FILES).map(|number| format!("{number:03}")).collect();
    let all: Vec<_> = files.iter().map(|name| (name.as_str(), 20_000)).collect();
    let set = Setting::new(&all, "100%");
    let Some(view) = or_skip("a_pool_is_read_once", FaultyFs::new(set.tree.root())) else { return };
    let reads_to_heal = |count: usize| {
        for name in &files[..count] {
            set.tree.write(name, &set.contents[name]);
            set.tree.age(name);
        }
        let viewed = Recorded::outside(view.root(), &set.beside.path("viewed.db"));
        std::fs::remove_dir_all(set.beside.path("viewed.db.parity")).ok();
        viewed.forget();
        viewed.record();
        assert_eq!(viewed.run("protect", &["--redundancy", "100%"]).code, 0);
        files[..count].iter().for_each(|name| set.tree.flip(name, 77));
        view.take_requests();
        let report = viewed.run("heal", &[""; 0]);
        let can = report.lines.iter().filter(|line| line["cure"] == "healable").count();
        assert_eq!((report.code, can), (3, count), "{report:?}");
        view.take_requests().len()
    };
    let (few, many) = (reads_to_heal(2), reads_to_heal(FILES / 2));
    // Each file is read to be judged, the damaged ones some times more.
    assert!(many < few + 10 * FILES, "{few} reads to heal 2 files, {many} to heal 100");
}

#[test]
fn damage_is_reported_with_the_heal_that_recovery_data_allow() {
    let set = Setting::new(&[("f", 3 * MIB)], "5%");
    set.damage("f", [5]);
    let (root, catalog) = (set.tree.root().display(), set.recorded.catalog.display());
    let heal = format!("fsure heal {root} --catalog {catalog}");
    for (command, before) in [("verify", "from the recovery data:\n    "), ("log", "run '")] {
        let run = set.recorded.text(command, &[""; 0]);
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.stdout.contains(&format!("{before}{heal}")), "{run:?}");
    }
    let parity = set.recorded.catalog.with_extension("db.parity");
    std::fs::remove_dir_all(parity).unwrap();
    for command in ["verify", "log"] {
        let run = set.recorded.text(command, &[""; 0]);
        assert!(run.stdout.contains(&format!("{heal} --from COPY")), "{run:?}");
        assert!(!run.stdout.contains("recovery data"), "{run:?}");
    }
}
