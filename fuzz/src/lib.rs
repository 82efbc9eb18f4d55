//! What holds of every reader of a list, whatever it is given: nothing ends it
//! but an error, nothing but a plain path below the root gets through, and what
//! was read can be written and read again. A target for each reader is in
//! `fuzz_targets`, what was found worth keeping in `corpus`.

use std::path::Path;

use fsure_core::{Algorithm, RelPath};
use fsure_integrity::manifest::{
    ManifestEntry, ManifestFormat, ManifestHeader, ManifestItem, read, writer,
};

/// Reads bytes as a list of that form.
///
/// # Panics
/// If the reader does not keep its promises.
pub fn list(format: ManifestFormat, data: &[u8]) {
    let mut entries = Vec::new();
    let mut take = |item| {
        if let ManifestItem::Listed(listed) = item {
            let variants = listed.path_variants();
            for path in std::iter::once(&listed.path).chain(&listed.others).chain(&variants) {
                assert_plain(path);
            }
            entries.push(listed);
        }
        Ok(())
    };
    read(format, Path::new("list"), &mut &data[..], &mut take).expect("memory can be read");
    // Only lists that no program writes have these.
    entries.retain(|entry| entry.digests.get(Algorithm::Crc32).is_none());
    assert_eq!(again(&entries), entries.into_iter().map(essence).collect::<Vec<_>>());
}

fn assert_plain(path: &RelPath) {
    let mut components = path.as_bytes().split(|byte| *byte == b'/');
    assert!(components.all(|name| !matches!(name, b"" | b"." | b"..")));
    assert!(!path.as_bytes().contains(&0));
}

type Essence = (RelPath, fsure_core::Digests, Option<u64>, Option<i64>);

fn essence(listed: ManifestEntry) -> Essence {
    let modified = listed.modified.map(|modified| modified.time_ns);
    (listed.path, listed.digests, listed.size, modified)
}

/// The entries, written in the form that holds all, and read again.
fn again(entries: &[ManifestEntry]) -> Vec<Essence> {
    let mut text = Vec::new();
    let mut out =
        writer(ManifestFormat::Json, &ManifestHeader::default(), &mut text).expect("memory");
    for entry in entries {
        out.put(entry).expect("memory");
    }
    out.finish().expect("memory");
    let mut again = Vec::new();
    let mut take = |item| {
        match item {
            ManifestItem::Listed(listed) => again.push(essence(listed)),
            ManifestItem::Problem(problem) => panic!("{problem:?}"),
        }
        Ok(())
    };
    read(ManifestFormat::Json, Path::new("list"), &mut &text[..], &mut take).expect("memory");
    again
}
