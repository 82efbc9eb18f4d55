//! A machine that has no memory left, as the kernel tells it (`/proc/meminfo`, covered
//! for the test): RAM folders go back to the disk, the one that does least first, with
//! all that was written, and say so.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use crate::support::ram_machine::{
    available, bind, is_bound, on_own_machine, ram, sh, until, wait_while,
};
use crate::support::{Run, fsure};

/// Runs `ram status`, which reports recent events.
fn reported() -> Run {
    fsure(&["ram", "status"])
}

fn on_disk(folder: &Path, name: &str) -> String {
    assert!(!is_bound(folder));
    fs::read_to_string(folder.join(name)).expect("it is on the disk")
}

#[test]
fn without_memory_the_one_that_does_least_goes_first_and_all_are_whole() {
    let _alone = crate::support::serial::alone();
    on_own_machine(
        module_path!(),
        "without_memory_the_one_that_does_least_goes_first_and_all_are_whole",
        128,
        |disk| {
            let [busy, idle] = ["busy", "idle"].map(|name| disk.0.join(name));
            for folder in [&busy, &idle] {
                fs::create_dir(folder).expect("make");
                bind(folder);
            }
            for number in 0..50 {
                fs::write(busy.join(number.to_string()), "x").expect("write");
            }
            until(&busy, |_, state| state["changed"].as_u64() >= Some(50));
            fs::write(idle.join("last"), "of idle").expect("write");
            fs::write(busy.join("last"), "of busy").expect("write");
            available(1000);
            wait_while(|| is_bound(&busy) && is_bound(&idle));
            assert!(!is_bound(&idle), "busy went first");
            wait_while(|| is_bound(&busy));
            assert_eq!(on_disk(&idle, "last"), "of idle");
            assert_eq!(on_disk(&busy, "last"), "of busy");
            let run = ram(&["bind"], &idle);
            assert!(run.code == 2 && run.stderr.contains("memory"), "{run:?}");
            let run = reported();
            let shows = |words| run.stdout.contains(&format!("{}: {words}", idle.display()));
            assert!(
                shows("out of RAM: only 1000.0 KiB") && shows("out of RAM; generation"),
                "{run:?}"
            );
            let run = ram(&["status"], &idle);
            assert!(
                run.code == 2 && run.stderr.contains("its last message: out of RAM"),
                "{run:?}"
            );
            sh("umount /proc/meminfo");
            bind(&idle);
            assert_eq!(ram(&["unbind"], &idle).code, 0);
        },
    );
}

#[test]
fn a_process_in_the_way_is_waited_for_and_goes_on() {
    let _alone = crate::support::serial::alone();
    on_own_machine(module_path!(), "a_process_in_the_way_is_waited_for_and_goes_on", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        let open = fs::File::options().append(true).open(folder.join("below/1")).expect("open");
        available(1000);
        wait_while(|| !reported().stdout.contains("it stays in RAM"));
        // Writable whenever it is not just being tried.
        wait_while(|| fs::write(folder.join("late"), "written").is_err());
        assert!(is_bound(&folder));
        until(&folder, |code, _| code == 0);
        drop(open);
        wait_while(|| is_bound(&folder));
        assert_eq!(on_disk(&folder, "late"), "written");
    });
}
