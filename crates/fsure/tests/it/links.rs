//! Follows the links of all pages, to files and to headings, since a link that leads nowhere is
//! noticed by readers only; and holds the pages of `docs/` against `docs/SUMMARY.md`, from which
//! mdBook makes the site: a page that is not in there is not on the site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Folders with pages, and pages in the root of the repository.
const PLACES: &[&str] = &["docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Links and headings of one page.
#[derive(Debug, Default, PartialEq)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    /// Reads links and headings outside of blocks and spans of code.
    fn parse(text: &str) -> Self {
        let (mut page, mut is_code) = (Self::default(), false);
        let mut prose = String::new();
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                if let Some(title) = line.strip_prefix('#') {
                    page.add_anchor(title.trim_start_matches('#'));
                }
                // A link may go on in the next line of its paragraph.
                prose.push_str(if line.is_empty() { "\n" } else { line });
                prose.push(' ');
            }
        }
        let outside_code = prose.lines().flat_map(|paragraph| paragraph.split('`').step_by(2));
        let outside_code: String = outside_code.collect();
        for rest in outside_code.split("](").skip(1) {
            let target = rest.split(')').next().expect("a first piece");
            page.links.push(target.split(' ').next().expect("a first piece").to_owned());
        }
        page
    }

    /// Adds the anchor that GitHub and mdBook give to a heading.
    fn add_anchor(&mut self, title: &str) {
        let is_kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
        let kept: String = title.trim().to_lowercase().chars().filter(is_kept).collect();
        let anchor = kept.replace(' ', "-");
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        let new = names.find(|name| !self.anchors.contains(name)).expect("endless names");
        self.anchors.insert(new);
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages of a place by their paths in the repository.
fn pages(place: &str) -> BTreeMap<String, Page> {
    let path = repository().join(place);
    if path.is_dir() {
        let entries = std::fs::read_dir(&path).expect("list a folder");
        let names = entries.map(|entry| entry.expect("list a folder").file_name());
        let names = names.map(|name| format!("{place}/{}", name.to_str().expect("UTF-8")));
        return names.flat_map(|name| pages(&name)).collect();
    }
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    let read = || Page::parse(&std::fs::read_to_string(&path).expect("read a page"));
    is_page.then(|| (place.to_owned(), read())).into_iter().collect()
}

/// Returns a path with its `..` resolved by their names.
fn resolved(path: &Path) -> String {
    let mut names: Vec<&str> = vec![];
    for component in path.components() {
        match component {
            Component::ParentDir => drop(names.pop()),
            Component::Normal(name) => names.push(name.to_str().expect("UTF-8")),
            _ => {}
        }
    }
    names.join("/")
}

/// Returns what is wrong with a link of a page; `None` if it leads somewhere.
fn fault(pages: &BTreeMap<String, Page>, from: &str, link: &str) -> Option<String> {
    if ["https:", "http:", "mailto:"].iter().any(|scheme| link.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(from).parent().expect("a folder");
    let target = if file.is_empty() { from.to_owned() } else { resolved(&folder.join(file)) };
    if !repository().join(&target).exists() {
        return Some(format!("{from}: {link} leads to no file"));
    }
    if from.starts_with("docs/") && !target.starts_with("docs/") {
        return Some(format!("{from}: {link} is not on the site, which is made of docs/"));
    }
    let is_heading = |page: &Page| page.anchors.contains(anchor);
    let is_wrong = !anchor.is_empty() && !pages.get(&target).is_some_and(is_heading);
    is_wrong.then(|| format!("{from}: {link} leads to no heading"))
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages: BTreeMap<_, _> = PLACES.iter().flat_map(|place| pages(place)).collect();
    assert!(pages.len() > 20, "only {} pages", pages.len());
    let links = |page: &'_ Page| page.links.clone();
    let faults: Vec<_> = pages
        .iter()
        .flat_map(|(from, page)| links(page).into_iter().map(move |link| (from, link)))
        .filter_map(|(from, link)| fault(&pages, from, &link))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_of_docs_is_on_the_site_once() {
    let summary = "docs/SUMMARY.md";
    let mut pages = pages("docs");
    let listed = pages.remove(summary).expect("docs/SUMMARY.md").links;
    let listed: Vec<_> = listed.iter().map(|link| format!("docs/{link}")).collect();
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), unique.len(), "{summary} lists a page twice");
    let all: BTreeSet<_> = pages.into_keys().collect();
    let missing: Vec<_> = all.symmetric_difference(&unique).collect();
    assert!(missing.is_empty(), "pages that only one of docs/ and {summary} has: {missing:?}");
}

#[test]
fn links_and_headings_are_read_as_the_site_reads_them() {
    let text = "# A `b` & c!\n[x](y.md#z) `[no](no)` [two\nlines](<u> \"t\")\n```\n[no](no)\n# no\n\
                ```\n## Same\n## Same\n";
    let page = Page::parse(text);
    assert_eq!(page.links, ["y.md#z", "<u>"]);
    let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["a-b--c", "same", "same-1"]);
    let pages = BTreeMap::from([("docs/README.md".to_owned(), page)]);
    let fault = |link: &str| fault(&pages, "docs/README.md", link).is_some();
    assert!(!fault("#same") && !fault("promises.md") && !fault("https://example.org/x"));
    assert!(fault("#other") && fault("none.md") && fault("../README.md"));
}
