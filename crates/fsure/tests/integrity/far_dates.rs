//! Dates that nanoseconds in 64 bits do not hold: file systems keep them, some by
//! mistake. An edit between two of them is an edit, none is taken for a record
//! without a date, and `heal` puts back none that is not the file's own.
#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::support::{EXT4, Image, Mounted, Recorded, Tree, content, or_skip, path_verdicts};
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT, futimens};

/// Seconds since 1970: in 2400, in 2300, and in 1601 as ntfs has it.
const YEAR_2400: i64 = 13_569_465_600;
const YEAR_2300: i64 = 10_413_792_000;
const YEAR_1601: i64 = -11_644_473_600;
/// A date that has wrapped around, in seconds since 1970.
const WRAPPED: i64 = -1 << 40;

fn set_date(path: &Path, seconds: i64) {
    let file = File::open(path).expect("open");
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: 5 },
    };
    futimens(&file, &times).expect("set the date");
    assert_eq!(file.metadata().expect("stat").mtime(), seconds, "{}", path.display());
}

#[test]
fn an_edit_between_two_far_dates_is_an_edit() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(tree.root(), 1 << 10);
    let Some(_mounted) = or_skip("an_edit_between_two_far_dates", mounted) else { return };
    let dates = [("future", YEAR_2300, YEAR_2400), ("past", YEAR_1601, WRAPPED)];
    for (name, then, _) in dates {
        tree.write(name, content(5000, 1));
        set_date(&tree.path(name), then);
        tree.write(format!("{name} of equal content"), content(5000, 2));
        set_date(&tree.path(format!("{name} of equal content")), then);
    }
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    for command in ["status", "verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{command}: {report:?}");
    }
    for (name, _, now) in dates {
        tree.write(name, content(5000, 3));
        set_date(&tree.path(name), now);
        set_date(&tree.path(format!("{name} of equal content")), now);
    }
    let modified = path_verdicts(&[("future", "modified"), ("past", "modified")]);
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (1, modified.clone()), "{report:?}");
    let report = recorded.update();
    assert_eq!((report.code, report.path_verdicts()), (0, modified), "{report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    // A list has no date rather than a wrong one.
    let list = recorded.text("export", &["--format", "mtree"]);
    assert!(list.stdout.contains("future") && !list.stdout.contains("time="), "{list:?}");
}

#[test]
fn a_healed_file_has_its_own_date_however_far_it_is() {
    let image = Image::new(&EXT4, 64);
    let Some(mut image) = or_skip("a_healed_file_has_its_own_date", image) else { return };
    let (replica, beside) = (Tree::new(), Tree::new());
    for (name, seed) in [("rotten", 1), ("lost", 2)] {
        let path = image.root().join(name);
        std::fs::write(&path, content(5000, seed)).expect("write");
        set_date(&path, YEAR_2300);
        replica.write(name, content(5000, seed));
        set_date(&replica.path(name), YEAR_2300);
    }
    let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
    recorded.record();
    recorded.age_records();
    image.flip_in_image(&content(5000, 1)[100..132], 0);
    std::fs::remove_file(image.root().join("lost")).expect("remove");
    let report = recorded.verify();
    assert_eq!(
        report.path_verdicts(),
        path_verdicts(&[("lost", "missing"), ("rotten", "rotten")]),
        "{report:?}"
    );
    let from = replica.root().to_str().expect("text");
    let report = recorded.run("heal", &["--from", from, "--yes", "--in-place", "--force"]);
    assert!(format!("{report:?}").contains("'--in-place' cannot restore a date"), "{report:?}");
    let report = recorded.run("heal", &["--from", from, "--yes", "--force"]);
    assert_eq!(report.code, 7, "{report:?}");
    for (name, seed) in [("rotten", 1), ("lost", 2)] {
        let path = image.root().join(name);
        let stat = std::fs::metadata(&path).expect("stat");
        assert_eq!((stat.mtime(), stat.mtime_nsec()), (YEAR_2300, 5), "{name}");
        assert!(std::fs::read(&path).expect("read") == content(5000, seed), "{name}");
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    // Edited under a date that cannot be told from the recorded one.
    let mut file = OpenOptions::new().write(true).open(image.root().join("rotten")).expect("open");
    file.write_all(b"edited").expect("write");
    set_date(&image.root().join("rotten"), YEAR_2400);
    let report = recorded.run("heal", &["--from", from, "--yes"]);
    assert_eq!(
        (report.code, report.path_verdicts()),
        (1, path_verdicts(&[("rotten", "modified")])),
        "{report:?}"
    );
    assert!(std::fs::read(image.root().join("rotten")).expect("read").starts_with(b"edited"));
}
