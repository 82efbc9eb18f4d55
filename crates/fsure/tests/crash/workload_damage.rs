//! Each check on damage made by hand: every verdict is told apart, and none
//! says that more is there than is.

#![cfg(target_os = "linux")]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fsure::workload::{Ended, WORKLOADS, check, run, workload};
use fsure_powercut::BLOCK;
use tempfile::TempDir;

/// All up to a number is there, or what is wrong.
type Last = Result<u64, String>;

/// Runs a workload until so many acknowledgements, and returns the folder that it leaves.
fn run_until(name: &str, acks: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(workload(name).unwrap(), folder.path(), &mut |number| {
        if number < acks { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(ended.unwrap(), Ended::Stopped, "{name}");
    folder
}

fn last(name: &str, folder: &TempDir) -> Last {
    let checked = check(workload(name).unwrap(), folder.path());
    match (checked.last, checked.corrupt) {
        (Some(last), None) => Ok(last),
        (None, Some(why)) => Err(why),
        other => panic!("{name}: {other:?}"),
    }
}

#[track_caller]
fn assert_corrupt(last: &Last, words: &str) {
    let why = last.as_ref().expect_err("it is corrupt");
    assert!(why.contains(words), "{words:?} is not in {why:?}");
}

/// Changes a file.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut data = fs::read(path).unwrap();
    change(&mut data);
    fs::write(path, data).unwrap();
}

fn with(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

#[test]
fn a_run_without_a_fault_keeps_everything() {
    for each in WORKLOADS {
        let folder = run_until(each.name, 25);
        let there = last(each.name, &folder);
        let most = if each.protocol() == "catalog" { 40 } else { 25 };
        // The last 300 ms are its to lose: no more than these were reported in that time.
        let least = if each.name == "ram:told" { 1 } else { 25 };
        let is_there = there.as_ref().is_ok_and(|last| (least..=most).contains(last));
        assert!(is_there, "{each:?}: {there:?}");
    }
}

#[test]
fn a_name_is_one_workload_s_and_a_protocol_is_its_first() {
    for (place, each) in WORKLOADS.iter().enumerate() {
        assert_eq!(workload(each.name).unwrap().name, each.name);
        assert!(WORKLOADS[..place].iter().all(|before| before.name != each.name));
    }
    for (protocol, first) in [
        ("append", "append:fsync"),
        ("overwrite", "overwrite:fsync"),
        ("rename", "rename:full"),
        ("sqlite", "sqlite:wal-full"),
        ("catalog", "catalog:committed"),
    ] {
        assert_eq!(workload(protocol).unwrap().name, first);
    }
    assert!(workload("").is_none() && workload("append:").is_none());
}

#[test]
fn nothing_there_is_nothing_done() {
    for each in WORKLOADS {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last(each.name, &folder), Ok(0), "{each:?}");
    }
}

/// A cut that loses all commits leaves what was there before the first one: no
/// file, an empty one, or one in which only the journal mode is set.
#[test]
fn a_database_without_its_tables_is_one_of_which_all_is_lost() {
    let name = "sqlite:wal-full";
    let folder = tempfile::tempdir().unwrap();
    let path = with(&folder, "bank.db");
    fs::write(&path, "").unwrap();
    assert_eq!(last(name, &folder), Ok(0));
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(database);
    assert!(fs::metadata(&path).unwrap().len() > 0);
    assert_eq!(last(name, &folder), Ok(0));
    fs::write(&path, [7; 8192]).unwrap();
    assert_corrupt(&last(name, &folder), "not a database");
}

#[test]
fn a_log_is_as_long_as_it_is_whole() {
    let name = "append:fsync";
    let folder = run_until(name, 50);
    let log = with(&folder, "log");
    let whole = fs::read(&log).unwrap();
    for length in (0..=whole.len()).rev().step_by(37) {
        fs::write(&log, &whole[..length]).unwrap();
        assert_eq!(last(name, &folder), Ok(length as u64 / 100), "{length} bytes");
    }
    // A tail of zeros: the file's size was durable and its data were not.
    fs::write(&log, &whole).unwrap();
    edit(&log, |data| data[4000..].fill(0));
    assert_eq!(last(name, &folder), Ok(40));
    // One bit of the last: half written.
    fs::write(&log, &whole).unwrap();
    edit(&log, |data| data[4950] ^= 1);
    assert_eq!(last(name, &folder), Ok(49));
    for (change, words) in [
        ((|data| data[2050] ^= 1) as fn(&mut Vec<u8>), "record 21 is missing, and record 22"),
        (|data| data[1000..1512].fill(0), "record 11 is missing, and record 17"),
        (|data| data.copy_within(0..100, 300), "record 1 stands in the place of record 4"),
        (|data| drop(data.drain(100..200)), "record 3 stands in the place of record 2"),
    ] {
        fs::write(&log, &whole).unwrap();
        edit(&log, change);
        assert_corrupt(&last(name, &folder), words);
    }
}

#[test]
fn a_slot_counts_by_its_oldest_sector() {
    let name = "overwrite:fdatasync";
    let folder = run_until(name, 300);
    let slots = with(&folder, "slots");
    let whole = fs::read(&slots).unwrap();
    assert_eq!(last(name, &folder), Ok(300));
    let before = fs::read(with(&run_until(name, 299), "slots")).unwrap();
    // 300 is in slot 43.
    for range in [43 * BLOCK..44 * BLOCK, 43 * BLOCK + 512..43 * BLOCK + 1024] {
        edit(&slots, |data| data[range.clone()].copy_from_slice(&before[range.clone()]));
        assert_eq!(last(name, &folder), Ok(299), "{range:?}");
        fs::write(&slots, &whole).unwrap();
    }
    // Never written: 10 is in slot 9, and then 266.
    edit(&slots, |data| data[9 * BLOCK..10 * BLOCK].fill(0));
    assert_eq!(last(name, &folder), Ok(9));
    fs::write(&slots, &whole[..200 * BLOCK]).unwrap();
    assert_eq!(last(name, &folder), Ok(200));
    for (change, words) in [
        ((|data| data[9 * BLOCK + 700] ^= 1) as fn(&mut Vec<u8>), "data that no write made"),
        (|data| data.copy_within(0..BLOCK, BLOCK), "data of byte 0"),
        (|data| data[BLOCK..][..512].fill(7), "data that no write made, at byte 4096"),
    ] {
        fs::write(&slots, &whole).unwrap();
        edit(&slots, change);
        assert_corrupt(&last(name, &folder), words);
    }
}

#[test]
fn a_renamed_file_is_the_old_one_or_the_new_one() {
    let name = "rename:full";
    let folder = run_until(name, 7);
    let file = with(&folder, "file-0000");
    let new = fs::read(&file).unwrap();
    let old = fs::read(with(&run_until(name, 6), "file-0000")).unwrap();
    fs::write(&file, &old).unwrap();
    assert_eq!(last(name, &folder), Ok(6));
    // What was never renamed is of no account.
    fs::write(with(&folder, "new"), "half").unwrap();
    assert_eq!(last(name, &folder), Ok(6));
    for (data, words) in [
        (vec![], "file-0000 is empty"),
        (vec![0; 4012], "file-0000 is 4012 zeros"),
        (new[..4000].to_vec(), "neither"),
        ([&new[..512], &old[512..]].concat(), "neither"),
    ] {
        fs::write(&file, data).unwrap();
        assert_corrupt(&last(name, &folder), words);
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(last(name, &folder), Ok(0));
}

#[test]
fn of_many_names_each_counts() {
    let name = "rename:file-new";
    let folder = run_until(name, 1030);
    assert_eq!(last(name, &folder), Ok(1030));
    let file = |slot: u64| with(&folder, &format!("file-{slot:04}"));
    let newest = fs::read(file(5)).unwrap();
    fs::remove_file(file(100)).unwrap();
    assert_eq!(last(name, &folder), Ok(100));
    fs::write(file(100), &newest).unwrap();
    assert_corrupt(&last(name, &folder), "file-0100 is write 1030, which has another name");
}

#[test]
fn a_database_is_judged_by_its_transfers() {
    for (name, acks) in [("sqlite:wal-full", 40), ("sqlite:delete-extra", 40), ("sqlite:off", 40)] {
        let folder = run_until(name, acks);
        let path = with(&folder, "bank.db");
        assert_eq!(last(name, &folder), Ok(acks), "{name}");
        let whole = fs::read(&path).unwrap();
        for (sql, words) in [
            ("DELETE FROM transfer WHERE n = 7", "1 commits below number 40 are missing"),
            ("UPDATE account SET balance = balance + 1 WHERE id = 3", "the balances are 100001"),
            (
                "UPDATE account SET balance = balance + iif(id = 3, 1, -1) WHERE id IN (3, 4)",
                "2 balances do not follow",
            ),
            ("DROP TABLE transfer", "no such table"),
        ] {
            rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
            assert_corrupt(&last(name, &folder), words);
            fs::write(&path, &whole).unwrap();
        }
        for (change, words) in [
            ((|data| data[..100].fill(7)) as fn(&mut Vec<u8>), "not a database"),
            (|data| data.truncate(4096), ""),
            (|data| data[4096..8192].fill(0), ""),
        ] {
            edit(&path, change);
            assert_corrupt(&last(name, &folder), words);
            fs::write(&path, &whole).unwrap();
        }
        assert_eq!(last(name, &folder), Ok(acks), "{name}");
    }
}

#[test]
fn an_older_database_has_fewer_commits() {
    let name = "sqlite:delete-extra";
    let (folder, before) = (run_until(name, 30), run_until(name, 20));
    fs::copy(with(&before, "bank.db"), with(&folder, "bank.db")).unwrap();
    assert_eq!(last(name, &folder), Ok(20));
}

#[test]
fn a_record_of_fsure_is_judged_by_what_it_records() {
    let name = "catalog:committed";
    let folder = run_until(name, 60);
    let catalog = with(&folder, "tree/.fsure/catalog.db");
    let there = last(name, &folder).unwrap();
    assert!((60..=80).contains(&there), "{there}");
    let file = with(&folder, "tree/round-00001/000003");
    let whole = fs::read(&catalog).unwrap();
    // New and not recorded: it was under way.
    fs::write(with(&folder, "tree/round-00003/more"), "more").unwrap();
    assert_eq!(last(name, &folder), Ok(there));
    let aside = with(&folder, "aside");
    fs::rename(&file, &aside).unwrap();
    assert_corrupt(&last(name, &folder), "000003 is missing");
    fs::rename(&aside, &file).unwrap();
    assert_eq!(last(name, &folder), Ok(there));
    edit(&catalog, |data| {
        let middle = data.len() / 2;
        data[middle..middle + 4096].fill(0);
    });
    assert_corrupt(&last(name, &folder), "the record ");
    fs::write(&catalog, &whole[..4096]).unwrap();
    assert_corrupt(&last(name, &folder), "the record ");
    // Sound as a database, and not what was recorded.
    fs::write(&catalog, &whole).unwrap();
    let less = "DELETE FROM record WHERE path = CAST('round-00002/000030' AS BLOB)";
    rusqlite::Connection::open(&catalog).unwrap().execute_batch(less).unwrap();
    assert_corrupt(&last(name, &folder), "it has");
    fs::write(&catalog, &whole).unwrap();
    edit(&file, |data| data.truncate(50));
    assert_corrupt(&last(name, &folder), "000003 is modified");
    fs::remove_file(&catalog).unwrap();
    assert_corrupt(&last(name, &folder), "the record cannot be opened");
    fs::remove_file(catalog.with_extension("db.backup")).unwrap();
    assert_eq!(last(name, &folder), Ok(0), "all of it is lost");
}

#[test]
fn an_older_record_has_fewer_files() {
    let name = "catalog:told";
    let folder = run_until(name, 20);
    let old = fs::read(with(&folder, "tree/.fsure/catalog.db")).unwrap();
    assert_eq!(last(name, &folder), Ok(20));
    let later = run_until(name, 60);
    assert_eq!(last(name, &later), Ok(60));
    // Each file of the later ones is new to it: the record of a copy.
    fs::write(with(&later, "tree/.fsure/catalog.db"), old).unwrap();
    let there = last(name, &later);
    assert!(there.is_err() || there == Ok(20), "{there:?}");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(200))]

    /// However the bytes of a write are damaged, the check does not report it as there.
    #[test]
    fn no_check_finds_what_was_harmed(
        which in 0..3_usize,
        place in 0.0..1.0,
        length in 1..3000_usize,
        zeros in proptest::bool::ANY,
    ) {
        let (name, file, size) = [
            ("append:none", "log", 100),
            ("overwrite:fdatasync", "slots", 4096),
            ("rename:bare-new", "file-0007", 4012),
        ][which];
        let folder = run_until(name, 60);
        let path = with(&folder, file);
        let mut first = usize::MAX;
        edit(&path, |data| {
            let written = data.len().min(60 * size);
            let start = (place * written as f64) as usize;
            let end = (start + length).min(written);
            for (at, byte) in data.iter_mut().enumerate().take(end).skip(start) {
                let harmed = if zeros { 0 } else { *byte ^ 0x55 };
                if harmed != *byte {
                    first = first.min(at / size);
                }
                *byte = harmed;
            }
        });
        let harmed = if which == 2 { 8 } else { (first as u64).saturating_add(1) };
        match last(name, &folder) {
            Ok(60) => assert_eq!(first, usize::MAX),
            Ok(there) => assert!(there < harmed, "{name}: {there}, and {harmed} was harmed"),
            Err(_) => {}
        }
    }
}
