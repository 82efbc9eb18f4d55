//! Tests the size of RAM folders: a folder with `--size auto` grows ahead of writers at full
//! speed, in bytes and in names, up to its share of the memory; a given size stays.
//! The amount of memory is read from `/proc/meminfo`, which is covered for the test.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::support::ram_machine::{Disk, available, on_own_machine, ram, status, until};
use crate::support::ram_run_folders::{Place, users, words};

const MIB: usize = 1 << 20;
/// Returns the reserve of the machine in KiB: a twentieth of its memory, at least 128 MiB.
fn reserve_kib() -> u64 {
    let table = fs::read_to_string("/proc/meminfo").expect("read");
    let total = table.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("a total");
    let total: u64 = total.trim_end_matches("kB").trim().parse().expect("a number");
    (total / 20).max(128 << 10)
}

/// Makes so many MiB of memory available beside the reserve.
fn beside_reserve(mib: u64) {
    available(reserve_kib() + (mib << 10));
}

/// A folder that is bound, and of which no generation is made while it is filled.
fn bound(disk: &Disk, size: &str) -> std::path::PathBuf {
    let folder = disk.0.join("work");
    fs::create_dir(&folder).expect("make");
    let run = ram(&["bind", "--max-loss", "1h", "--size", size], &folder);
    assert_eq!(run.code, 0, "{run:?}");
    folder
}

/// Writes a file of `mib` MiB at full speed; fails with the kind of the first write error.
fn fill(file: &Path, mib: usize) -> Result<(), ErrorKind> {
    let mut file = File::create(file).expect("make");
    let block = vec![1; MIB];
    (0..mib).try_for_each(|_| file.write_all(&block)).map_err(|error| error.kind())
}

fn limit_mib(folder: &Path) -> u64 {
    status(folder).1["bytes"].as_u64().expect("a limit") / MIB as u64
}

#[test]
fn bytes_at_full_speed_find_space_up_to_the_share() {
    let _alone = crate::support::serial::alone();
    on_own_machine(module_path!(), "bytes_at_full_speed_find_space_up_to_the_share", 64, |disk| {
        // Half of it is the share, and a folder that is alone begins with all of it.
        available(3 << 20);
        let folder = bound(disk, "auto");
        let first = limit_mib(&folder);
        assert!((1440..=1536).contains(&first), "{first} MiB at first");
        assert_eq!(fill(&folder.join("much"), 1400), Ok(()), "{first} MiB at first");
        assert!(limit_mib(&folder) >= 1400);
        // Other processes take the memory: nothing is ahead any more.
        beside_reserve(0);
        until(&folder, |_, state| state["bytes"].as_u64() < Some(1410 * MIB as u64));
        assert_eq!(fill(&folder.join("more"), 200), Err(ErrorKind::StorageFull));
        // It is there again.
        available(3 << 20);
        until(&folder, |_, state| state["bytes"].as_u64() > Some(1600 * MIB as u64));
        assert_eq!(fill(&folder.join("more"), 200), Ok(()));
    });
}

#[test]
fn beside_another_folder_the_limit_moves_on_with_use() {
    let _alone = crate::support::serial::alone();
    on_own_machine(
        module_path!(),
        "beside_another_folder_the_limit_moves_on_with_use",
        64,
        |disk| {
            available(5 << 20);
            let other = disk.0.join("other");
            fs::create_dir(&other).expect("make");
            assert_eq!(ram(&["bind", "--max-loss", "1h"], &other).code, 0);
            let folder = bound(disk, "auto");
            let first = limit_mib(&folder);
            assert!((1100..=1280).contains(&first), "half of the share: {first} MiB at first");
            assert_eq!(fill(&folder.join("much"), 900), Ok(()));
            until(&folder, |_, state| state["bytes"].as_u64() > Some(1400 * MIB as u64));
            assert_eq!(fill(&folder.join("more"), 400), Ok(()));
            // The other one is ahead by no more than the share has left.
            until(&other, |_, state| state["bytes"].as_u64() < Some(2000 * MIB as u64));
            assert_eq!(ram(&["unbind"], &other).code, 0);
        },
    );
}

#[test]
fn names_at_full_speed_find_space() {
    let _shared = crate::support::serial::shared();
    on_own_machine(module_path!(), "names_at_full_speed_find_space", 64, |disk| {
        beside_reserve(600);
        let folder = bound(disk, "auto");
        // More than a nearly empty folder has, in many directories.
        for number in 0..150_000 {
            if number % 1000 == 0 {
                fs::create_dir(folder.join(format!("{}", number / 1000))).expect("make");
            }
            let path = folder.join(format!("{}/{number}", number / 1000));
            File::create(path).unwrap_or_else(|error| panic!("name {number}: {error}"));
        }
    });
}

#[test]
fn a_size_that_was_stated_is_kept() {
    let _shared = crate::support::serial::shared();
    on_own_machine(module_path!(), "a_size_that_was_stated_is_kept", 64, |disk| {
        let folder = bound(disk, "32M");
        assert_eq!(limit_mib(&folder), 32);
        assert_eq!(fill(&folder.join("much"), 40), Err(ErrorKind::StorageFull));
        let full = "32.0 MiB of 32.0 MiB are taken, and that size was given";
        support::ram_machine::wait_while(|| !ram(&["status"], &folder).stdout.contains(full));
        assert_eq!(limit_mib(&folder), 32);
    });
}

#[test]
fn a_nearly_full_folder_is_reported_once() {
    let _shared = crate::support::serial::shared();
    on_own_machine(module_path!(), "a_nearly_full_folder_is_reported_once", 64, |disk| {
        let folder = bound(disk, "32M");
        let reported = || fs::read_to_string("/var/lib/fsure/ram/told").unwrap_or_default();
        let count = || reported().lines().filter(|line| line.contains("are taken")).count();
        // A file that is made anew is empty for a moment, and a look then would find space: so
        // the large file stays and a small one changes.
        let much = folder.join("much");
        let changes = |times: usize| {
            for number in 0..times {
                fs::write(folder.join("more"), vec![1; number * 10_000]).expect("write");
                std::thread::sleep(std::time::Duration::from_millis(300));
            }
        };
        assert_eq!(fill(&much, 30), Ok(()));
        changes(10);
        assert_eq!(count(), 1, "{}", reported());
        assert_eq!(fill(&much, 20), Ok(()));
        changes(10);
        assert_eq!(fill(&much, 30), Ok(()));
        support::ram_machine::wait_while(|| {
            changes(1);
            count() < 2
        });
        changes(5);
        assert_eq!(count(), 2, "{}", reported());
    });
}

#[test]
fn a_command_finds_space_as_well() {
    let _alone = crate::support::serial::alone();
    on_own_machine(module_path!(), "a_command_finds_space_as_well", 64, |_: &Disk| {
        available(3 << 20);
        for user in users("a_command_finds_space_as_well") {
            let place = Place::new(user);
            let script = "head -c 1400M /dev/zero > much && stat -c %s much; rm much";
            let output = place.run(&["--max-loss", "1h"], script).output().expect("run");
            let written = String::from_utf8_lossy(&output.stdout);
            assert_eq!(written, "1468006400\n", "{user:?}: {}", words(&output));
            place.assert_clean();
        }
    });
}

/// By the plan of another folder: a command sees the memory of the machine, and not the table
/// that covers it for the test.
#[test]
fn what_a_command_takes_is_taken_of_the_share() {
    let _alone = crate::support::serial::alone();
    on_own_machine(module_path!(), "what_a_command_takes_is_taken_of_the_share", 64, |disk| {
        beside_reserve(1024);
        let planned = || {
            let run = ram(&["bind", "--plan", "--json"], &disk.folder());
            let line = run.stdout.lines().nth(1).expect("a second line");
            let plan: serde_json::Value = serde_json::from_str(line).expect("JSON");
            plan["ram_bytes"].as_u64().expect("a size") / MIB as u64
        };
        let (place, before) = (Place::new(support::ram_run_folders::User::Own), planned());
        let mut command =
            place.run(&["--max-loss", "1h"], "head -c 1000M /dev/zero > much; read x");
        let mut command = command.stdin(std::process::Stdio::piped()).spawn().expect("start");
        // The table does not change, so that the share is less by half of what these take.
        let expected = before - 300;
        support::ram_machine::wait_while(|| {
            // Each plan is a process.
            std::thread::sleep(std::time::Duration::from_millis(200));
            planned() > expected
        });
        drop(command.stdin.take());
        command.wait().expect("wait");
        assert_eq!(planned(), before, "the note is gone with the command");
        place.assert_clean();
    });
}

#[test]
fn what_is_planned_is_what_is_bound() {
    let _alone = crate::support::serial::alone();
    on_own_machine(module_path!(), "what_is_planned_is_what_is_bound", 64, |disk| {
        let folder = disk.folder();
        fs::hard_link(folder.join("below/7"), folder.join("also-7")).expect("link");
        for size in ["auto", "200M"] {
            let options = ["--json", "--size", size];
            let plan = ram(&[&["bind", "--plan"], &options[..]].concat(), &folder);
            let bound = ram(&[&["bind"], &options[..]].concat(), &folder);
            let of = |run: &support::Run| -> serde_json::Value {
                serde_json::from_str(run.stdout.lines().nth(1).expect("a second line"))
                    .expect("JSON")
            };
            let (plan, bound) = (of(&plan), of(&bound));
            assert_eq!(
                [&plan["files"], &plan["content_bytes"]],
                [&bound["files"], &bound["content"]],
                "{plan} {bound}"
            );
            let [planned, is] = [&plan["ram_bytes"], &bound["bytes"]].map(|it| it.as_f64());
            // Beside other work the memory that is available changes from moment to moment.
            let differs = (planned.expect("a size") / is.expect("a size") - 1.0).abs();
            assert!(differs < if size == "auto" { 0.3 } else { 1e-9 }, "{plan} {bound}");
            assert_eq!(ram(&["unbind"], &folder).code, 0);
        }
    });
}
