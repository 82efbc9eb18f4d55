//! The readers of lists, given what is nearly a list: each text of `fuzz/corpus` as it is, and
//! with random bytes changed, removed, doubled, or taken from another of the same form. The
//! fuzzers, which look for new ways through the code, are part of a campaign (`.ci/fuzz`).

#[allow(unreachable_pub)]
#[path = "../../../../fuzz/src/lib.rs"]
mod reader_promises;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::support::{campaign, content};
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

/// Random numbers, the same in every run.
struct Dice(Vec<u8>);

impl Dice {
    /// Returns a number below `end`; 0 if there is none.
    fn below(&mut self, end: usize) -> usize {
        let bytes = self.0.split_off(self.0.len() - 4);
        let number = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        number as usize % end.max(1)
    }

    fn change(&mut self, text: &mut Vec<u8>, all: &[Vec<u8>]) {
        let start = self.below(text.len());
        let end = (start + self.below(40)).min(text.len());
        match self.below(5) {
            0 if start < text.len() => text[start] ^= 1 << self.below(8),
            1 if start < text.len() => text[start] = b"/\\.\n\r\0 \t*\"<>&-\xff:"[self.below(16)],
            2 => drop(text.drain(start..end)),
            3 => {
                let part = text[start..end].to_vec();
                drop(text.splice(start..start, part));
            }
            _ => {
                let other = &all[self.below(all.len())];
                let from = self.below(other.len());
                let part = other[from..(from + self.below(80)).min(other.len())].to_vec();
                drop(text.splice(start..end, part));
            }
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
        let mutations = campaign(MUTATIONS) as usize;
        // A change takes five numbers at most.
        let mut dice = Dice(content(mutations * (2 + CHANGES_MAX * 6) * 4, seed));
        for _ in 0..mutations {
            let mut text = all[dice.below(all.len())].clone();
            for _ in 0..=dice.below(CHANGES_MAX) {
                dice.change(&mut text, &all);
            }
            assert_promises_kept(name, *format, &text);
        }
    }
}
