//! The moment of which a generation of a RAM folder is: what changes while it is looked at
//! is in it or not as a whole, and where that cannot be had it says so.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::sides::{Both, Reports, paths, view, write};
use fsure_ram::write_back::{CompareDepth, Paths, ReportedChanges, Tracker, recover};

/// Changes something between two looks, and reports it.
struct Meanwhile<F>(u32, F);

impl<F: FnMut(u32) -> ReportedChanges> Tracker for Meanwhile<F> {
    fn take(&mut self) -> ReportedChanges {
        self.0 += 1;
        (self.1)(self.0)
    }
}

#[test]
fn a_generation_is_of_the_moment_before_the_last_look() {
    let mut both = Both::new(|root| write(root.join("a"), "0"));
    let (ram, disk) = (both.ram(), both.disk());
    both.sync();
    // What was looked at changes, and then something else does.
    let mut takes = Meanwhile(0, |take: u32| {
        write(ram.join("a"), take.to_string());
        match take {
            1 | 2 => paths(&["a"], &[]),
            _ => {
                write(ram.join("b"), "later");
                std::fs::rename(ram.join("b"), ram.join("c")).unwrap();
                paths(&["b", "c"], &[])
            }
        }
    });
    let done = both.engine().sync(&mut takes, CompareDepth::Dates, None).unwrap();
    assert_eq!((done.spread, takes.0), (None, 3));
    assert_eq!(std::fs::read(disk.join("a")).unwrap(), b"2");
    assert!(!disk.join("c").exists(), "it was made after that moment");
    // It comes with the next one, without being reported again.
    let mut none = Reports(Vec::new());
    both.engine().sync(&mut none, CompareDepth::Dates, None).unwrap();
    assert_eq!(std::fs::read(disk.join("c")).unwrap(), b"later");
}

/// These changes, and the time that every change after this moment has at least.
fn until_now(changes: ReportedChanges) -> ReportedChanges {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ReportedChanges::Known(paths) = changes else { panic!("known") };
    let changed_from = i64::try_from(now.as_nanos()).ok();
    ReportedChanges::Known(Paths { changed_from, ..paths })
}

#[test]
fn what_is_seen_before_it_is_reported_is_not_of_the_moment_before() {
    let mut both = Both::new(|root| write(root.join("a"), "0"));
    let (ram, disk) = (both.ram(), both.disk());
    both.sync();
    let mut takes = Meanwhile(0, |take: u32| {
        // More than a tick of the clock that gives files their times.
        let wait = || std::thread::sleep(Duration::from_millis(30));
        match take {
            1 => {
                let changes = until_now(paths(&["a"], &[]));
                wait();
                write(ram.join("b"), "before");
                write(ram.join("a"), "after");
                wait();
                changes
            }
            2 => until_now(paths(&["b"], &[])),
            // The writer was stopped behind its write.
            _ => until_now(paths(&["a"], &[])),
        }
    });
    let done = both.engine().sync(&mut takes, CompareDepth::Dates, None).unwrap();
    assert_eq!(std::fs::read(disk.join("a")).unwrap(), b"after");
    assert!(disk.join("b").exists(), "the folder never had 'a' without it");
    assert_eq!((done.spread, takes.0), (None, 3));
}

#[test]
fn names_go_with_their_folder_also_if_another_has_its_place() {
    let mut both = Both::new(|root| {
        write(root.join("d/a"), "1");
        // No file, which would be read in its turn.
        std::fs::create_dir(root.join("d/b")).unwrap();
    });
    let ram = both.ram();
    both.sync();
    let mut takes = Meanwhile(0, |take: u32| match take {
        1 => {
            std::fs::remove_dir_all(ram.join("d")).unwrap();
            write(ram.join("d/new"), "3");
            paths(&["d/a"], &[])
        }
        // That 'd/b' was removed is not known by name: its folder was gone by then.
        2 => paths(&["d", "d/new"], &[]),
        _ => ReportedChanges::none(),
    });
    let done = both.engine().sync(&mut takes, CompareDepth::Dates, None).unwrap();
    assert_eq!(done.spread, None);
    assert_eq!(view(&both.disk()), view(&both.ram()));
}

#[test]
fn a_generation_of_no_single_moment_reports_its_spread() {
    let mut both = Both::new(|root| write(root.join("a"), "0"));
    let ram = both.ram();
    both.sync();
    both.engine().set_max_loss(Duration::from_millis(100));
    let mut always = Meanwhile(0, |take: u32| {
        write(ram.join("a"), take.to_string());
        paths(&["a"], &[])
    });
    let before = Instant::now();
    let done = both.engine().sync(&mut always, CompareDepth::Dates, None).unwrap();
    let spread = done.spread.expect("it is of no single moment");
    assert!(spread <= before.elapsed() && always.0 > 2, "{spread:?}, {}", always.0);
    drop(both.engine.take());
    // And it is noted where it lies.
    let recovery = recover(&both.disk()).unwrap();
    assert_eq!((recovery.generation, recovery.spread), (Some(done.number), Some(spread)));
}
