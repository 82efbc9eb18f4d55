//! The readers of lists, given what is nearly a list: each text of `fuzz/corpus` as it is, and
//! with random bytes changed, removed, doubled, or taken from another of the same form. The
//! fuzzers, which look for new ways through the code, are part of a campaign (`.ci/fuzz`).

#[allow(unreachable_pub)]
#[path = "../../../../fuzz/src/lib.rs"]
mod reader_promises;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::support::campaign;
use fsure_core::Random;
use fsure_integrity::manifest::ManifestFormat;

/// Changed texts of each form.
const MUTATIONS: u32 = 10_000;
/// Most changes of one text.
const CHANGES_MAX: usize = 4;

const FORMATS: &[(&str, ManifestFormat)] = &[
    ("ascmhl", ManifestFormat::AscMhl),
    ("b3sum", ManifestFormat::B3sum),
    ("bagit", ManifestFormat::Bagit),
    ("chkbit", ManifestFormat::Chkbit),
    ("hashdeep", ManifestFormat::Hashdeep),
    ("json", ManifestFormat::Json),
    ("mtree", ManifestFormat::Mtree),
    ("rclone", ManifestFormat::Rclone),
    ("sfv", ManifestFormat::Sfv),
    ("sums", ManifestFormat::Sha256sums),
];

/// Bytes that mean something in some form.
const SPECIAL: &[u8] = b"/\\.\n\r\0 \t*\"<>&-\xff:";

fn below(random: &mut Random, end: usize) -> usize {
    random.below(end as u64) as usize
}

/// Makes one change to a text; `all` are the texts of the same form.
fn change(random: &mut Random, text: &mut Vec<u8>, all: &[Vec<u8>]) {
    let start = below(random, text.len());
    let end = (start + below(random, 40)).min(text.len());
    match below(random, 5) {
        0 if start < text.len() => text[start] ^= 1 << below(random, 8),
        1 if start < text.len() => text[start] = SPECIAL[below(random, SPECIAL.len())],
        2 => drop(text.drain(start..end)),
        3 => {
            let part = text[start..end].to_vec();
            drop(text.splice(start..start, part));
        }
        _ => {
            let other = &all[below(random, all.len())];
            let from = below(random, other.len());
            let part = other[from..(from + below(random, 80)).min(other.len())].to_vec();
            drop(text.splice(start..end, part));
        }
    }
}

fn assert_promises_kept(name: &str, format: ManifestFormat, text: &[u8]) {
    let is_kept = catch_unwind(AssertUnwindSafe(|| reader_promises::list(format, text))).is_ok();
    assert!(is_kept, "{name}: {}", text.escape_ascii());
}

#[test]
fn a_reader_keeps_its_promises_whatever_it_is_given() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    assert_eq!(fs::read_dir(&corpora).expect("list").count(), FORMATS.len(), "all are here");
    for (seed, (name, format)) in (1..).zip(FORMATS) {
        let files = fs::read_dir(corpora.join(name)).expect("list");
        let mut paths: Vec<_> = files.map(|file| file.expect("list").path()).collect();
        paths.sort();
        let all: Vec<_> = paths.iter().map(|path| fs::read(path).expect("read")).collect();
        for text in &all {
            assert_promises_kept(name, *format, text);
        }
        let mut random = Random::new(seed);
        for _ in 0..campaign(MUTATIONS) {
            let mut text = all[below(&mut random, all.len())].clone();
            for _ in 0..=below(&mut random, CHANGES_MAX) {
                change(&mut random, &mut text, &all);
            }
            assert_promises_kept(name, *format, &text);
        }
    }
}
