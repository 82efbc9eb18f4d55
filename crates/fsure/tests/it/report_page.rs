//! `fsure report`: what stands on the page, that names stay text, and what is
//! refused.

use crate::support;
use std::path::{Path, PathBuf};

use crate::support::fsure;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/results").join(name)
}

fn all() -> Vec<String> {
    let names = ["speed.jsonl", "flush-cut.jsonl", "verify.jsonl", "age.jsonl"];
    names.map(|name| data(name).to_string_lossy().into_owned()).into()
}

fn report(results: &[String], page: &Path) -> support::Run {
    let mut args = vec!["report".to_owned()];
    args.extend_from_slice(results);
    args.extend(["-o".to_owned(), page.to_string_lossy().into_owned()]);
    fsure(&args)
}

#[test]
fn the_page_shows_everything_and_names_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let run = report(&all(), &page);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg ").count(), 10);
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("data-verdict=").count(), 44);
    for part in [
        "default-src 'none'",
        "void",
        "memory copy",
        "bindfs is not installed",
        "verify would run at 98.2 % of this device",
        "CUT OFF",
        "FREE_FLUSH",
        "SUSPICIOUS files",
        "damaged bytes 1048576-3145728",
        "bad\\xff",
        "\\u{202e}",
        "Verified longest ago: 2023-01-05 10:00:00, 2009&#x2f;a.tif",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for part in ["<b>&", "alert(1)</script>", "\u{202e}", "\u{1b}", "NaN", "http:", "https:"] {
        assert!(!html.contains(part), "{part}");
    }
}

#[test]
fn only_a_page_is_replaced_and_only_results_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    assert_eq!(report(&all(), &page).code, 0);
    assert_eq!(report(&all()[..1], &page).code, 0, "a page is replaced");
    let other = folder.path().join("other");
    std::fs::write(&other, "mine").unwrap();
    let run = report(&all(), &other);
    assert!(run.code == 2 && run.stderr.contains("was not made by"), "{}", run.stderr);
    assert_eq!(std::fs::read(&other).unwrap(), b"mine");
    let results = [other.to_string_lossy().into_owned()];
    let run = report(&results, &page);
    assert!(run.code == 5 && run.stderr.contains("is no result"), "{}", run.stderr);
    assert_eq!(report(&["/nonexistent".to_owned()], &page).code, 5);
}

#[test]
fn several_roots_are_shown_apart_and_not_only_added_up() {
    let (bad, good) = (support::Tree::new(), support::Tree::new());
    for tree in [&bad, &good] {
        tree.write("a", "a");
        assert_eq!(fsure(&["update".as_ref(), tree.root().as_os_str()]).code, 0);
    }
    bad.flip("a", 0);
    let run = fsure(
        &["verify".as_ref(), bad.root(), good.root(), "--json".as_ref()]
            .map(|word: &Path| word.as_os_str()),
    );
    assert_eq!(run.code, 3, "{run:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let (results, page) = (folder.path().join("v.json"), folder.path().join("page.html"));
    std::fs::write(&results, &run.stdout).expect("write");
    assert_eq!(report(&[results.to_str().expect("text").to_owned()], &page).code, 0);
    let page = std::fs::read_to_string(&page).expect("read");
    let each = page.split_once("Each root").expect("told apart").1;
    let each = each.split_once("All of them").expect("and together").0;
    assert!(each.contains("exit code 3: 1 altered"), "{each}");
    assert!(each.contains("exit code 0: 1 ok"), "{each}");
}
