//! Rot, made as rot is: a byte of an ext4 image flipped while it is not
//! mounted. Size, dates and inode are as recorded and no system call ever
//! wrote it; `update` without `--full` cannot see it, and nothing may make it
//! the new truth.
#![cfg(target_os = "linux")]

use crate::support;
use crate::support::{EXT4, Image, Recorded, content, flip_byte, or_skip, path_verdicts};
use serde_json::json;

const MIB: u64 = 1 << 20;

/// File, its size, where it rots, and the range that must be named.
const CASES: &[(&str, u64, u64, [u64; 2])] = &[
    ("tiny", 5000, 0, [0, 5000]),
    ("small", 200_000, 199_000, [0, 200_000]),
    ("block", MIB, 700_000, [0, MIB]),
    ("first", 5 * MIB + 123, 17, [0, MIB]),
    ("middle", 5 * MIB + 123, 3 * MIB - 100, [2 * MIB, 3 * MIB]),
    ("last", 5 * MIB + 123, 5 * MIB + 1, [5 * MIB, 5 * MIB + 123]),
];

fn content_of(number: usize) -> Vec<u8> {
    content(CASES[number].1 as usize, number as u64 + 1)
}

#[test]
fn rot_is_named_by_block_and_never_recorded() {
    let Some(mut image) = or_skip("rot_is_named_by_block", Image::new(&EXT4, 96)) else { return };
    for (number, case) in CASES.iter().enumerate() {
        std::fs::write(image.root().join(case.0), content_of(number)).expect("write");
    }
    std::fs::write(image.root().join("good"), content(3 * MIB as usize, 99)).expect("write");
    let recorded = Recorded::inside(image.root());
    recorded.record();
    recorded.age_records();
    let clean = recorded.run("verify", &["--all"]);
    assert_eq!((clean.code, clean.count("ok")), (0, 7), "{clean:?}");
    let rows = recorded.rows();
    let stats = || CASES.iter().map(|case| stat(&image, case.0)).collect::<Vec<_>>();
    let before = stats();
    for (number, (name, _, at, _)) in CASES.iter().enumerate() {
        // The 32 bytes from there on are nowhere else in the image.
        let start = (*at as usize).min(content_of(number).len() - 32);
        let pattern = &content_of(number)[start..start + 32];
        image.flip_in_image(pattern, at - start as u64);
        assert!(image.root().join(name).exists(), "{name} is still there");
    }
    let stats = || CASES.iter().map(|case| stat(&image, case.0)).collect::<Vec<_>>();
    assert_eq!(stats(), before, "no stat can tell");

    let report = recorded.run("verify", &["--all"]);
    assert_rotten(&report);
    assert_eq!(report.verdict("good").as_deref(), Some("ok"));
    assert_eq!(report.count("ok"), 1, "{report:?}");

    // Nothing in the stat says that there is anything to read, but the record does.
    assert_remembered(&recorded.status());
    assert_rotten(&recorded.update());
    let report = recorded.run("update", &["--full"]);
    assert_rotten(&report);
    for (name, ..) in CASES {
        assert_eq!(recorded.row(name), rows[name.as_bytes()], "{name} was recorded");
    }
    assert_rotten(&recorded.verify());
}

/// Known damage is reported with its date and its exit code, and nothing was read.
fn assert_remembered(report: &support::Report) {
    assert_eq!((report.code, report.count("rotten")), (3, CASES.len() as u64), "{report:?}");
    for (name, ..) in CASES {
        let finding = report.finding(name).unwrap_or_else(|| panic!("{name} was not told"));
        assert_eq!(finding["known"]["verdict"], "rotten", "{finding:#}");
        assert_eq!(finding["known"]["read_now"], false, "{finding:#}");
    }
    assert_eq!(report.summary()["hashed"], 0, "{report:?}");
}

fn assert_rotten(report: &support::Report) {
    assert_eq!(report.code, 3, "{report:?}");
    assert_eq!(report.count("rotten"), CASES.len() as u64, "{report:?}");
    for (name, _, _, range) in CASES {
        let finding = report.finding(name).unwrap_or_else(|| panic!("{name} was not told"));
        assert_eq!(finding["verdict"], "rotten", "{name}: {finding:#}");
        assert_eq!(finding["blocks"], json!([range]), "{name}: {finding:#}");
    }
}

fn stat(image: &Image, name: &str) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt as _;
    let stat = std::fs::metadata(image.root().join(name)).expect("stat");
    [stat.ino() as i64, stat.size() as i64, stat.mtime_nsec(), stat.ctime_nsec()]
}

#[test]
fn several_rotten_blocks_of_one_file_are_all_named() {
    let Some(mut image) = or_skip("several_rotten_blocks", Image::new(&EXT4, 64)) else { return };
    let data = content(9 * MIB as usize, 5);
    std::fs::write(image.root().join("file"), &data).expect("write");
    let recorded = Recorded::inside(image.root());
    recorded.record();
    recorded.age_records();
    let places = [MIB, 4 * MIB + 5, 5 * MIB + 6, 9 * MIB - 1].map(|at| at as usize);
    image.unmounted(|_| ());
    for at in places {
        let start = at.min(data.len() - 32);
        image.flip_in_image(&data[start..start + 32], (at - start) as u64);
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (3, path_verdicts(&[("file", "rotten")])));
    let ranges = json!([[MIB, 2 * MIB], [4 * MIB, 6 * MIB], [8 * MIB, 9 * MIB]]);
    assert_eq!(report.finding("file").expect("told")["blocks"], ranges);
    assert_eq!(report.summary()["damaged_blocks"], 4, "{report:?}");
}

#[test]
fn accepted_rot_is_ok_from_then_on_and_a_repair_is_reported() {
    let Some(mut image) = or_skip("accepted_rot_is_ok_from_then_on", Image::new(&EXT4, 32)) else {
        return;
    };
    let data = content(2 * MIB as usize, 5);
    let path = image.root().join("file");
    std::fs::write(&path, &data).expect("write");
    let recorded = Recorded::inside(image.root());
    recorded.record();
    recorded.age_records();
    let at = image.flip_in_image(&data[1000..1032], 0);
    let accept = ["--full".as_ref(), "--accept".as_ref(), path.as_os_str()];
    let report = recorded.run("update", &accept);
    assert_eq!(
        (report.code, report.path_verdicts()),
        (0, path_verdicts(&[("file", "rotten")])),
        "{report:?}"
    );
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    recorded.age_records();
    image.unmounted(|image| flip_byte(image, at));
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("file", "rotten")])),
        "what is not as recorded is not well, even if it once was: {report:?}"
    );
}
