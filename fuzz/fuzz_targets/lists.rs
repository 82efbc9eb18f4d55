//! Every reader of a list: the first byte chooses the form, the rest is the
//! list. Nothing may end it but an error, and nothing but a plain path below
//! the root may get through.
#![no_main]

use std::path::Path;

use fsure::exchange::{About, Format, Item, read, writer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, mut list)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(*first) % Format::ALL.len()];
    let mut entries = Vec::new();
    let mut take = |item| {
        if let Item::Listed(listed) = item {
            let paths = std::iter::once(&listed.path).chain(&listed.others);
            for path in paths {
                let mut components = path.as_bytes().split(|byte| *byte == b'/');
                assert!(components.all(|name| !matches!(name, b"" | b"." | b"..")));
                assert!(!path.as_bytes().contains(&0));
            }
            entries.push(listed);
        }
        Ok(())
    };
    read(format, Path::new("list"), &mut list, &mut take).expect("memory can be read");
    // What was read can be written and read again, in the form that holds all.
    let mut text = Vec::new();
    let mut out = writer(Format::Json, &About::default(), &mut text).expect("memory");
    for entry in &entries {
        out.put(entry).expect("memory");
    }
    out.finish().expect("memory");
    let mut again = Vec::new();
    let mut take = |item| {
        match item {
            Item::Listed(listed) => again.push((listed.path, listed.digests)),
            Item::Problem(problem) => panic!("{problem:?}"),
        }
        Ok(())
    };
    read(Format::Json, Path::new("list"), &mut &text[..], &mut take).expect("memory");
    let entries: Vec<_> = entries.into_iter().map(|e| (e.path, e.digests)).collect();
    assert_eq!(again, entries);
});
