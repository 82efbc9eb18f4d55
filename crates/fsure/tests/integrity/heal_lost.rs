//! Most of a small folder is gone: that is what a heal is for, where the root is
//! surely the recorded one. And a lost folder is one line for a person, however
//! many files were in it.
#![cfg(target_os = "linux")]

use crate::support::{EXT4, Image, Mounted, Recorded, Tree, content, or_skip, path_verdicts};

struct Setting {
    tree: Tree,
    replica: Tree,
    beside: Tree,
}

impl Setting {
    fn new(files: &[&str]) -> Self {
        let (tree, replica, beside) = (Tree::new(), Tree::new(), Tree::new());
        for (seed, file) in (1..).zip(files) {
            tree.write(file, content(5000, seed));
            tree.age(file);
            replica.write(file, content(5000, seed));
        }
        Self { tree, replica, beside }
    }

    fn inside(&self) -> Recorded {
        Recorded::inside(self.tree.root())
    }

    fn outside(&self) -> Recorded {
        Recorded::outside(self.tree.root(), &self.beside.path("catalog.db"))
    }

    fn from(&self) -> [&str; 2] {
        ["--from", self.replica.root().to_str().expect("text")]
    }
}

#[test]
fn a_folder_of_which_most_is_gone_is_healed_where_it_surely_is_that_folder() {
    for (is_inside, lost) in [(true, 2), (true, 3), (false, 2)] {
        let set = Setting::new(&["a", "b", "c"]);
        let recorded = if is_inside { set.inside() } else { set.outside() };
        recorded.record();
        for name in &["a", "b", "c"][..lost] {
            std::fs::remove_file(set.tree.path(name)).expect("remove");
        }
        let case = format!("inside: {is_inside}, {lost} lost");
        for command in ["verify", "update"] {
            let report = recorded.run(command, &[""; 0]);
            assert_eq!(report.code, 5, "{case}, {command}: {report:?}");
        }
        let report = recorded.run("heal", &set.from());
        assert_eq!(report.code, 1, "{case}: {report:?}");
        let report = recorded.run("heal", &[&set.from()[..], &["--yes"]].concat());
        assert_eq!((report.code, &report.summary()["healed"]), (7, &lost.into()), "{case}");
        let report = recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
    }
}

/// Nothing is left of it, but the folder on a file system that has an identity.
#[test]
fn a_folder_that_is_empty_is_healed_where_it_surely_is_that_folder() {
    let test = "a_folder_that_is_empty_is_healed";
    let Some(image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    let set = Setting::new(&["a", "b"]);
    for name in ["a", "b"] {
        std::fs::write(image.root().join(name), set.replica.read(name)).expect("write");
    }
    let recorded = Recorded::outside(image.root(), &set.beside.path("catalog.db"));
    recorded.record();
    for name in ["a", "b"] {
        std::fs::remove_file(image.root().join(name)).expect("remove");
    }
    assert_eq!(recorded.verify().code, 5);
    let report = recorded.run("heal", &[&set.from()[..], &["--yes"]].concat());
    assert_eq!(report.code, 7, "{report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
}

#[test]
fn another_disk_in_its_place_is_not_healed() {
    let set = Setting::new(&["a", "b", "c"]);
    let recorded = set.outside();
    recorded.record();
    let mounted = Mounted::tmpfs(set.tree.root(), 1000);
    let Some(_mounted) = or_skip("another_disk_in_its_place", mounted) else { return };
    let report = recorded.run("heal", &[&set.from()[..], &["--yes"]].concat());
    assert_eq!(report.code, 5, "{report:?}");
    assert_eq!(std::fs::read_dir(set.tree.root()).expect("list").count(), 0);
}

#[test]
fn a_lost_folder_is_one_line_and_hides_no_damage() {
    const FILES: u64 = 200;
    let set = Setting::new(&["kept 1", "kept 2", "damaged"]);
    for number in 0..FILES {
        let name = format!("lost/deep/{number:03}");
        set.tree.write(&name, content(1000, 100 + number));
        set.replica.write(&name, content(1000, 100 + number));
        set.tree.write(format!("kept {number:03}"), content(100, 400 + number));
    }
    let recorded = set.inside();
    recorded.record();
    std::fs::remove_dir_all(set.tree.path("lost")).expect("remove");
    std::fs::remove_file(set.tree.path("kept 1")).expect("remove");
    set.tree.flip("damaged", 5);
    let about = |text: &str, what: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    };
    for command in ["status", "verify"] {
        let text = recorded.text(command, &[""; 0]).stdout;
        let lost = about(&text, "lost");
        assert_eq!(lost.len(), 1, "{command}: {text}");
        let below = "and all below it: 200 files of 195.3 KiB, 1 folder";
        let head = format!("missing      {}/lost  folder", recorded.root.display());
        assert!(lost[0].starts_with(&head), "{command}: {text}");
        assert!(lost[0].ends_with(below), "{command}: {text}");
        assert_eq!(about(&text, "kept 1").len(), 1, "{command}: {text}");
        let all = recorded.text(command, &["--all"]).stdout;
        assert_eq!(about(&all, "lost").len() as u64, FILES + 2, "{command}: {all}");
        // A program gets every name.
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(
            report.findings().count() as u64,
            FILES + if command == "verify" { 4 } else { 3 }
        );
    }
    for more in [&[][..], &["--yes"]] {
        let text = recorded.text("heal", &[&set.from()[..], more].concat()).stdout;
        let lost = about(&text, "lost");
        assert_eq!(lost.len(), 1, "{more:?}: {text}");
        assert!(lost[0].contains("200 files"), "{more:?}: {text}");
        assert_eq!(about(&text, "kept 1").len(), 1, "{more:?}: {text}");
        assert!(!about(&text, "damaged").is_empty(), "{more:?}: {text}");
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, path_verdicts(&[])), "{report:?}");
}
