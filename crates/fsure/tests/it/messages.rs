//! Keeps `docs/messages.md` complete: it has a row for each message that the sources can
//! print, and none that no source has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::message_literals::literals;

/// The shortest part of a row that is enough to find its message.
const PART_MIN: usize = 6;

/// Returns the messages in the first column of the page's tables.
fn rows(page: &str) -> Vec<String> {
    let cell = |line: &str| {
        let (first, _) = line.strip_prefix("| `")?.split_once("` |")?;
        Some(first.replace("\\|", "|"))
    };
    page.lines().filter_map(cell).collect()
}

/// Returns true if the parts of a row around its placeholders are in a text, in order.
fn is_from(row: &str, text: &str) -> bool {
    let mut rest = text;
    row.split('…').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Returns all faults of a page about these sources, by their paths.
fn faults(sources: &BTreeMap<String, String>, page: &str) -> Vec<String> {
    let rows = rows(page);
    let listed: BTreeSet<_> = rows.iter().map(String::as_str).collect();
    let (mut faults, mut texts, mut needed) = (vec![], vec![], BTreeMap::new());
    for (path, source) in sources {
        for literal in literals(source) {
            if literal.is_message(path.contains("fsure-ram/")) {
                needed.entry(literal.text.clone()).or_insert(path);
            }
            texts.push(literal.text);
        }
    }
    for (text, path) in needed {
        if !listed.contains(text.as_str()) {
            faults.push(format!("not on the page: `{text}` ({path})"));
        }
    }
    for (at, row) in rows.iter().enumerate() {
        let is_short = row.split('…').all(|part| part.len() < PART_MIN);
        if is_short || !texts.iter().any(|text| is_from(row, text)) {
            faults.push(format!("in no source: `{row}`"));
        }
        if rows[..at].contains(row) {
            faults.push(format!("twice on the page: `{row}`"));
        }
    }
    faults
}

/// Reads the sources of all crates, without their tests.
fn sources() -> BTreeMap<String, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut sources, mut folders) = (BTreeMap::new(), vec![crates.clone()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("list a folder") {
            let path = entry.expect("list a folder").path();
            let name = path.strip_prefix(&crates).expect("below").to_str().expect("UTF-8");
            let is_test = name.split('/').any(|part| {
                let stem = part.trim_end_matches(".rs");
                stem == "tests" || stem.ends_with("_tests") || stem == "xtask"
            });
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if name.ends_with(".rs") && name.contains("/src/") && !is_test {
                let source = std::fs::read_to_string(&path).expect("read a source");
                sources.insert(name.to_owned(), source);
            }
        }
    }
    assert!(sources.len() > 100, "only {} sources are read", sources.len());
    sources
}

#[test]
fn every_message_is_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/messages.md");
    let page = std::fs::read_to_string(page).expect("read docs/messages.md");
    let faults = faults(&sources(), &page);
    assert!(faults.is_empty(), "docs/messages.md:\n{}", faults.join("\n"));
}

/// A source with a message in each kind of place, and literals that are none.
const PLANTED: &str = r##"
// warn("a comment is no message")
#[error("the record {} has format version {version}")]
fn f(c: char) -> Result<()> {
    if c == '"' || c == '\'' { monitor.warn(&format!("{}: cannot be read \
        \"in full\"", name)); }
    let quiet = "a literal in another place";
    let why = "a reason of a refusal";
    Err(Error::Usage { message: "there is {{nothing}} to do".to_owned(), hint: None })
}
#[cfg(test)]
mod tests { fn g() { warn("of a test only"); } }
"##;

const PAGE: &str = "# Messages\n\n| message | what it means |\n|---|---|\n\
                    | `the record … has format version …` | x |\n\
                    | `…: cannot be read \"in full\"` | x |\n\
                    | `there is {nothing} to do` | x |\n\
                    | `in another place` | a row can be a part of a longer text |\n";

/// The faults of a page about [`PLANTED`], as a source of a crate.
fn planted(name: &str, page: &str) -> Vec<String> {
    faults(&BTreeMap::from([(format!("{name}/src/lib.rs"), PLANTED.to_owned())]), page)
}

#[test]
fn a_planted_fault_is_found() {
    assert_eq!(planted("a", PAGE), Vec::<String>::new());
    let lacking = PAGE.replace("| `there is", "| there is");
    assert_eq!(
        planted("a", &lacking),
        ["not on the page: `there is {nothing} to do` (a/src/lib.rs)"]
    );
    let reason = "not on the page: `a reason of a refusal` (fsure-ram/src/lib.rs)";
    assert_eq!(planted("fsure-ram", PAGE), [reason]);
    let stale = format!("{PAGE}| `of a test only` | x |\n| `… to …` | x |\n");
    let expected = ["in no source: `of a test only`", "in no source: `… to …`"];
    assert_eq!(planted("a", &stale), expected);
    let twice = format!("{PAGE}| `in another place` | x |\n");
    assert_eq!(planted("a", &twice), ["twice on the page: `in another place`"]);
}
