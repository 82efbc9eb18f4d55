//! The pictures of `docs/experiments.md` are those that fsure draws of the results beside them.
//!
//! `docs/experiments/NAME/*.jsonl` are results as `--save` wrote them, and
//! `docs/images/experiments/NAME/*.svg` those of the charts that the page shows. `FSURE_BLESS=1
//! cargo test -p fsure --test it experiments` draws them again: look at them before you commit.

use crate::support::fsure;
use std::fs;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the paths in a folder, in order.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the results of all experiments in a folder.
pub(crate) fn results(folder: &Path) -> Vec<PathBuf> {
    listed(folder).iter().flat_map(|experiment| listed(experiment)).collect()
}

#[test]
fn every_picture_is_drawn_again_as_it_is() {
    let drawn = tempfile::tempdir().unwrap();
    let mut different = Vec::new();
    for experiment in listed(&docs().join("experiments")) {
        let name = experiment.file_name().unwrap().to_str().unwrap();
        let charts = drawn.path().join(name);
        let page = drawn.path().join(format!("{name}.html"));
        let mut words = vec!["report".into(), "--anonymous".into(), "--svg".into()];
        words.extend([charts.clone().into_os_string(), "-o".into(), page.into_os_string()]);
        words.extend(listed(&experiment).into_iter().map(PathBuf::into_os_string));
        let run = fsure(&words);
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let pictures = listed(&docs().join("images/experiments").join(name));
        assert!(!pictures.is_empty(), "{name}: no picture");
        for picture in pictures {
            let new = charts.join(picture.file_name().unwrap());
            let new = fs::read(&new).unwrap_or_else(|error| panic!("{new:?}: {error}"));
            if new == fs::read(&picture).unwrap() {
                continue;
            }
            if std::env::var_os("FSURE_BLESS").is_some() {
                fs::write(&picture, new).unwrap();
            } else {
                different.push(picture);
            }
        }
    }
    assert!(different.is_empty(), "FSURE_BLESS=1 draws these again: {different:?}");
}
