//! RAM folders without any mount: the engine over two plain folders. What is compared
//! is what users see: names, content, modes, dates, hard links.
#![cfg(target_os = "linux")]

use crate::support;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt, symlink};
use std::path::Path;

use crate::support::sides::{Both, Reports, paths, tree, view, write};
use fsure_core::RelPath;
use fsure_ram::write_back::{CompareDepth, Engine, OWN, Recovered, recover};

#[test]
fn every_kind_of_change_comes_to_the_disk() {
    let mut both = Both::new(tree);
    let ram = both.ram();
    let first = both.brings();
    assert_eq!((first.number, first.changed, first.removed), (0, 0, 0), "nothing had changed");
    write(ram.join("a"), "ONE");
    write(ram.join("new/deep/file"), "x");
    std::fs::remove_file(ram.join("empty")).unwrap();
    std::fs::remove_dir(ram.join("d/nothing")).unwrap();
    std::fs::set_permissions(ram.join("d/e"), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::remove_file(ram.join("link")).unwrap();
    symlink("elsewhere", ram.join("link")).unwrap();
    let done = both.brings();
    assert_eq!((done.number, done.removed, done.spread), (1, 2, None));
    assert!(done.unsettled.is_empty() && done.trash.is_none());
    assert_eq!(both.brings().number, 1);
    // What becomes of another kind.
    std::fs::remove_file(ram.join("a")).unwrap();
    write(ram.join("a/inside"), "folder now");
    std::fs::remove_dir_all(ram.join("d/e")).unwrap();
    write(ram.join("d/e"), "file now");
    std::fs::remove_file(ram.join("sparse")).unwrap();
    symlink("a", ram.join("sparse")).unwrap();
    assert_eq!(both.brings().number, 2);
}

#[test]
fn renames_cost_no_writing_and_hard_links_stay_hard_links() {
    let mut both = Both::new(tree);
    let ram = both.ram();
    std::fs::rename(ram.join("d"), ram.join("moved")).unwrap();
    std::fs::rename(ram.join("a"), ram.join("moved/a")).unwrap();
    let done = both.brings();
    assert_eq!((done.written, done.trash), (0, None));
    write(ram.join("moved/b"), "both names");
    both.brings();
    let disk = both.disk();
    assert_eq!(std::fs::read(disk.join("moved/also-b")).unwrap(), b"both names");
    // Cut apart, and one of them changed: the other must not follow.
    std::fs::copy(ram.join("moved/b"), ram.join("x")).unwrap();
    std::fs::rename(ram.join("x"), ram.join("moved/b")).unwrap();
    both.brings();
    std::fs::set_permissions(ram.join("moved/b"), PermissionsExt::from_mode(0o600)).unwrap();
    both.brings();
    std::fs::hard_link(ram.join("moved/b"), ram.join("third")).unwrap();
    both.brings();
    // Two that change places.
    std::fs::rename(ram.join("third"), ram.join("t")).unwrap();
    std::fs::rename(ram.join("moved/a"), ram.join("third")).unwrap();
    std::fs::rename(ram.join("t"), ram.join("moved/a")).unwrap();
    both.brings();
}

#[test]
fn a_file_that_was_renamed_is_not_the_one_that_took_its_place() {
    let mut both = Both::new(|disk| write(disk.join("new"), "same"));
    let ram = both.ram();
    for name in ["first", "second"] {
        std::fs::rename(ram.join("new"), ram.join(name)).unwrap();
        write(ram.join("new"), "same");
        // Dates are compared, and so is how many names each has.
        both.brings();
    }
    write(ram.join("new"), "other");
    both.brings();
}

#[test]
fn what_is_written_again_within_a_tick_is_not_missed() {
    let mut both = Both::new(|root| write(root.join("f"), "0000"));
    for number in 1..40 {
        write(both.ram().join("f"), format!("{number:04}"));
        both.sync();
        write(both.ram().join("f"), format!("{number:03}x"));
        both.sync();
        let expected = format!("{number:03}x").into_bytes();
        assert_eq!(std::fs::read(both.disk().join("f")).unwrap(), expected);
    }
}

#[test]
fn much_that_is_deleted_is_kept_and_can_be_put_back() {
    let mut both = Both::new(|root| {
        for number in 0..20 {
            write(root.join(format!("d{}/f{number}", number % 3)), format!("{number}"));
        }
    });
    let before = view(&both.disk());
    for number in 0..9 {
        std::fs::remove_file(both.ram().join(format!("d{}/f{number}", number % 3))).unwrap();
    }
    assert_eq!(both.brings().trash, None, "nine of twenty");
    for entry in both.ram().read_dir().unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    let done = both.brings();
    let trash = done.trash.expect("all of them");
    for (path, (kind, content, ..)) in &before {
        if *kind == 'f' && path.to_str().unwrap().rsplit('f').next().unwrap().len() > 1 {
            assert_eq!(std::fs::read(trash.join(path)).unwrap(), *content, "{path:?}");
        }
    }
    let kept = both.engine.take().unwrap().close().unwrap();
    assert_eq!(kept, Some(both.disk().join(".fsure-ram/trash")));
    assert_eq!(recover(&both.disk()).unwrap().found, Recovered::Nothing);
    assert!(trash.exists(), "only its owner removes it");
}

/// A hard link in the trash would be changed with the file, and the next bind would refuse it.
#[test]
fn what_is_deleted_and_has_another_name_is_not_kept_twice() {
    let mut both = Both::new(|root| {
        for number in 0..20 {
            write(root.join(format!("d/{number}")), format!("{number}"));
        }
        write(root.join("renamed.new"), "renamed");
        write(root.join("d/linked"), "linked");
        std::fs::hard_link(root.join("d/linked"), root.join("link")).unwrap();
    });
    let ram = both.ram();
    std::fs::remove_dir_all(ram.join("d")).unwrap();
    std::fs::rename(ram.join("renamed.new"), ram.join("renamed")).unwrap();
    let trash = both.brings().trash.expect("most of them");
    assert_eq!(std::fs::read(trash.join("d/7")).unwrap(), b"7");
    for name in ["renamed.new", "d/linked"] {
        assert!(!trash.join(name).exists(), "{name}");
    }
    for (name, content) in [("renamed", "renamed"), ("link", "linked")] {
        let file = both.disk().join(name);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        assert_eq!(file.metadata().unwrap().nlink(), 1, "{name}");
    }
}

#[test]
fn what_is_cleaned_again_and_again_does_not_fill_the_disk() {
    let mut both = Both::new(|root| write(root.join("kept"), "k"));
    let mut last = None;
    for round in 0..7 {
        for number in 0..20 {
            write(both.ram().join(format!("build/o/{number}")), format!("{round}"));
        }
        both.brings();
        std::fs::remove_dir_all(both.ram().join("build")).unwrap();
        last = both.brings().trash;
    }
    assert_eq!(both.disk().join(".fsure-ram/trash").read_dir().unwrap().count(), 4);
    assert_eq!(std::fs::read(last.unwrap().join("build/o/7")).unwrap(), b"6");
}

#[test]
fn nothing_of_fsure_is_left_when_it_ends() {
    let mut both = Both::new(tree);
    write(both.ram().join("a"), "changed");
    both.brings();
    let (ram, disk) = (both.ram(), both.disk());
    let go_on = &mut |_: &_, _| ControlFlow::Continue(());
    let second = Engine::fill(&disk, &ram, go_on).err().expect("refused");
    assert!(second.to_string().contains("already in RAM"), "{second}");
    assert_eq!(both.engine.take().unwrap().close().unwrap(), None);
    assert!(!disk.join(OWN).exists());
    assert_eq!(view(&disk), view(&ram));
}

#[test]
fn a_worker_that_takes_over_goes_on_where_the_other_was() {
    let mut both = Both::new(tree);
    write(both.ram().join("a"), "changed");
    both.brings();
    both.engine = None;
    // No engine has synced this.
    write(both.ram().join("d/b"), "while nobody looked");
    std::fs::remove_file(both.ram().join("empty")).unwrap();
    write(both.ram().join("new"), "n");
    both.engine = Some(Engine::adopt(&both.disk(), &both.ram()).unwrap());
    assert_eq!(both.engine().generation(), 1);
    assert_eq!(both.brings().number, 2);
}

#[test]
fn of_a_log_that_grows_only_the_new_lines_are_written() {
    let line = vec![b'l'; 1000];
    let mut both = Both::new(|root| write(root.join("log"), line.repeat(400)));
    let ram = both.ram().join("log");
    let append = || {
        use std::io::Write as _;
        std::fs::File::options().append(true).open(&ram).unwrap().write_all(&line).unwrap();
    };
    for _ in 0..3 {
        append();
        let done = both.brings();
        assert!(done.written <= 1000, "{done:?}");
    }
    // Not only appended to.
    append();
    std::fs::File::options().write(true).open(&ram).unwrap().write_all_at(b"x", 5).unwrap();
    assert!(both.brings().written > 400_000);
    // Appended to as another file, while the old one stays under another name.
    std::fs::hard_link(&ram, both.ram().join("old")).unwrap();
    both.brings();
    std::fs::copy(&ram, both.ram().join("new")).unwrap();
    std::fs::rename(both.ram().join("new"), &ram).unwrap();
    append();
    both.brings();
    std::fs::set_permissions(&ram, PermissionsExt::from_mode(0o444)).unwrap();
    both.brings();
    std::fs::File::options().write(true).open(&ram).unwrap().set_len(300_000).unwrap();
    both.brings();
}

#[test]
fn a_tracker_is_relied_on_but_not_when_something_went_wrong() {
    let mut both = Both::new(tree);
    let mut none = Reports(Vec::new());
    // No tracker knows what changed before it was asked first.
    write(both.ram().join("d/b"), "first");
    assert_eq!(both.engine().sync(&mut none, CompareDepth::Dates, None).unwrap().changed, 2);
    std::thread::sleep(std::time::Duration::from_millis(50));
    both.engine().sync(&mut none, CompareDepth::Dates, None).unwrap();
    for (name, report) in
        [("one", paths(&["d/nothing/one"], &[])), ("other", paths(&[], &["d/nothing"]))]
    {
        let [in_ram, on_disk] =
            [both.ram(), both.disk()].map(|side| side.join("d/nothing").join(name));
        write(in_ram.clone(), "second");
        // Hashing some files in their turn does not look at this one, nor into a folder.
        both.engine().sync(&mut none, CompareDepth::Dates, None).unwrap();
        assert!(!on_disk.exists(), "it was not reported");
        let done =
            both.engine().sync(&mut Reports(vec![report]), CompareDepth::Dates, None).unwrap();
        assert_eq!((done.unsettled, done.spread), (vec![], None));
        assert_eq!(view(&both.disk()), view(&both.ram()));
    }
    // One that is gone is reported by its name.
    std::fs::remove_file(both.ram().join("d/nothing/one")).unwrap();
    let mut gone = Reports(vec![paths(&["d/nothing/one"], &[])]);
    both.engine().sync(&mut gone, CompareDepth::Dates, None).unwrap();
    assert_eq!(view(&both.disk()), view(&both.ram()));
    // What it has reported in vain it does not report again.
    write(both.ram().join("d/nothing/deep/new"), "third");
    let stage = both.disk().join(".fsure-ram/stage");
    std::fs::remove_dir(&stage).unwrap();
    let report = paths(&["d/nothing/deep"], &[]);
    assert!(both.engine().sync(&mut Reports(vec![report]), CompareDepth::Dates, None).is_err());
    std::fs::create_dir(&stage).unwrap();
    both.engine().sync(&mut none, CompareDepth::Dates, None).unwrap();
    assert_eq!(view(&both.disk()), view(&both.ram()));
}

#[test]
fn a_name_of_fsure_is_reserved() {
    let mut both = Both::new(tree);
    write(both.ram().join(OWN).join("x"), "theirs");
    let done = both.sync();
    assert_eq!(done.unsettled, [RelPath::from_bytes(OWN.as_bytes())]);
    assert!(!both.disk().join(OWN).join("x").exists());
    // Nor if a tracker tells of what was changed in there.
    let mode = |of: &Path| of.metadata().unwrap().permissions().mode();
    let (own, below) = (both.disk().join(OWN), format!("{OWN}/below"));
    let before = mode(&own);
    std::fs::create_dir(both.ram().join(&below)).unwrap();
    std::fs::set_permissions(both.ram().join(OWN), PermissionsExt::from_mode(0o777)).unwrap();
    for report in [paths(&[OWN, &below], &[]), paths(&[], &[OWN, &below])] {
        let done =
            both.engine().sync(&mut Reports(vec![report]), CompareDepth::Dates, None).unwrap();
        assert_eq!(done.unsettled, [RelPath::from_bytes(OWN.as_bytes())]);
        assert!(mode(&own) == before && !both.disk().join(&below).exists());
    }
}

#[test]
fn root_does_not_do_what_another_user_has_left_to_be_done() {
    if !rustix::process::geteuid().is_root() {
        return support::skip("what another user has left", "only root can be somebody else");
    }
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(OWN);
    std::fs::create_dir(&own).unwrap();
    for path in [folder.path(), &own] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    }
    let error = recover(folder.path()).unwrap_err();
    assert!(error.to_string().contains("left by user 65534"), "{error}");
    assert_eq!(own.read_dir().unwrap().count(), 0, "nothing is made there");
    // Nor where a link leads.
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::remove_dir(&own).unwrap();
    symlink(elsewhere.path(), &own).unwrap();
    assert!(recover(folder.path()).is_err());
    assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0, "nothing is made there");
}

#[test]
fn a_file_that_never_holds_still_keeps_its_last_whole_version() {
    let mut both = Both::new(|root| write(root.join("busy"), vec![0; 1 << 20]));
    let file = std::fs::File::options().write(true).open(both.ram().join("busy")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u8;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                number = number.wrapping_add(1);
                for block in 0..256 {
                    file.write_all_at(&[number; 4096], block * 4096).unwrap();
                }
            }
        });
        let versions: Vec<_> = (0..5)
            .map(|_| {
                both.sync();
                std::fs::read(both.disk().join("busy")).unwrap()
            })
            .collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for version in versions {
            // Of one moment: the new number up to a place, and the one before behind it.
            let mut runs: Vec<_> = version.chunks(4096).map(|block| block[0]).collect();
            runs.dedup();
            let is_whole = matches!(runs[..], [_])
                || matches!(runs[..], [new, old] if new == old.wrapping_add(1));
            assert!(is_whole && version.len() == 1 << 20, "{runs:?}");
        }
    });
    both.brings();
}

#[test]
fn what_always_has_one_of_two_names_is_in_every_generation() {
    let mut both = Both::new(|root| {
        write(root.join("a/old"), "o");
        write(root.join("b/f"), "file");
        write(root.join("b/d/e/g"), "below");
        write(root.join("gone"), "g");
    });
    let (ram, disk) = (both.ram(), both.disk());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::fs::remove_file(ram.join("gone")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                let (from, to) = if number % 2 == 0 { ("b", "a") } else { ("a", "b") };
                for name in ["f", "d"] {
                    let [from, to] = [from, to].map(|folder| ram.join(folder).join(name));
                    std::fs::rename(from, to).unwrap();
                }
                write(ram.join("small"), number.to_string());
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        let lost = (0..150).find(|_| {
            both.sync();
            let is_there = |name| ["a", "b"].iter().any(|one| disk.join(one).join(name).exists());
            !is_there("f") || !is_there("d/e/g")
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(lost, None, "of 150 generations");
        assert!(!disk.join("gone").exists(), "what is gone goes, though names move all the time");
    });
    both.brings();
}

/// Random changes, in RAM and in a model that is the RAM side itself: after each
/// generation both sides are equal.
#[test]
fn whatever_is_done_comes_to_the_disk() {
    let mut both = Both::new(tree);
    let ram = both.ram();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for step in 0..250 {
        let names = ["a", "b", "c", "d", "d/e", "d/e/f", "d/b", "x y", "d/e/g"];
        let one = ram.join(names[next(names.len() as u64) as usize]);
        let other = ram.join(names[next(names.len() as u64) as usize]);
        // What cannot be done is not done.
        let _ = match next(9) {
            0 | 1 => std::fs::write(&one, vec![step as u8; next(70_000) as usize]),
            2 => std::fs::create_dir(&one),
            3 => std::fs::remove_file(&one),
            4 => std::fs::remove_dir_all(&one),
            5 => std::fs::rename(&one, &other),
            6 => std::fs::hard_link(&one, &other),
            7 => symlink(&other, &one),
            _ => {
                let mode = 0o700 + next(64) as u32;
                std::fs::symlink_metadata(&one).and_then(|meta| match meta.is_symlink() {
                    true => Ok(()),
                    false => std::fs::set_permissions(&one, PermissionsExt::from_mode(mode)),
                })
            }
        };
        if next(4) == 0 {
            both.brings();
        }
        if next(60) == 0 {
            both.engine = None;
            both.engine = Some(Engine::adopt(&both.disk(), &both.ram()).unwrap());
        }
    }
    both.brings();
}
