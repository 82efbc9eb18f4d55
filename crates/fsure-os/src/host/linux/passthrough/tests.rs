//! What is seen through the view is what is below, both ways.

use super::super::file::did_not_run;
use super::*;
use std::io::{Read as _, Seek as _, Write as _};

/// Both views of a fresh folder: what is below, what is above.
fn views(test: &str) -> Vec<(bool, Passthrough, tempfile::TempDir, tempfile::TempDir)> {
    let mut all = Vec::new();
    for in_kernel in [false, true] {
        let [below, above] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        match Passthrough::mount(below.path(), above.path(), in_kernel) {
            Ok(view) => all.push((in_kernel, view, below, above)),
            Err(error) => did_not_run(test, &format!("no FUSE: {error}")),
        }
    }
    all
}

#[test]
fn what_is_written_above_is_below() {
    for (in_kernel, view, below, above) in views("what_is_written_above_is_below") {
        let data: Vec<u8> = (0..300_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
        let [up, down] = [above.path(), below.path()].map(|top| top.join("d/file"));
        std::fs::create_dir(above.path().join("d")).unwrap();
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).open(&up).unwrap();
        file.write_all(&data).unwrap();
        file.sync_all().unwrap();
        File::open(above.path().join("d")).unwrap().sync_all().unwrap();
        assert_eq!(std::fs::read(&down).unwrap(), data);
        let (mut back, mut second) = (Vec::new(), File::open(&up).unwrap());
        file.rewind().unwrap();
        file.read_to_end(&mut back).unwrap();
        assert_eq!(back, data);
        drop(file);
        back.clear();
        second.read_to_end(&mut back).unwrap();
        assert_eq!(back, data, "by whoever has it open");
        let (above_stat, below_stat) = (up.metadata().unwrap(), down.metadata().unwrap());
        assert_eq!(above_stat.len(), below_stat.len());
        assert_eq!(above_stat.modified().unwrap(), below_stat.modified().unwrap());
        std::fs::rename(&up, above.path().join("other")).unwrap();
        assert_eq!(std::fs::read(above.path().join("other")).unwrap(), data);
        assert!(!down.exists() && below.path().join("other").exists());
        std::fs::remove_file(above.path().join("other")).unwrap();
        std::fs::remove_dir(above.path().join("d")).unwrap();
        assert_eq!(std::fs::read_dir(below.path()).unwrap().count(), 0);
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(view.handed_over() > 0, in_kernel && is_root, "Linux 6.9");
    }
}

#[test]
fn names_and_errors_are_those_below() {
    for (_, _view, below, above) in views("names_and_errors_are_those_below") {
        for number in 0..300 {
            std::fs::write(above.path().join(format!("file {number}")), "x").unwrap();
        }
        let names = |top: &Path| {
            let all = std::fs::read_dir(top).unwrap().map(|entry| entry.unwrap().file_name());
            let mut all: Vec<_> = all.collect();
            all.sort();
            all
        };
        assert_eq!(names(above.path()), names(below.path()));
        assert_eq!(names(above.path()).len(), 300);
        let gone = std::fs::read(above.path().join("none")).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        let error = File::create_new(above.path().join("file 7")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
}
