//! Tests that operations for which a ring is full or without a name are all reported.

use std::path::Path;
use std::process::Command;

use super::tests::{begin, on_a_disk, turn};
use super::*;

/// Returns what was seen of a shell's work in a folder; `None` if there is no tracer. While
/// the shell works, the names are not taken from the ring.
fn seen(test: &str, path: &Path, script: &str) -> Option<TraceReport> {
    let _turn = turn();
    let mut tracer = begin(test, path, TraceSource::Ebpf)?;
    let done = Command::new("sh").args(["-euc", script]).current_dir(path).status().unwrap();
    assert!(done.success(), "{script}");
    tracer.watch(Duration::ZERO).unwrap();
    Some(tracer.end(None).unwrap())
}

#[test]
fn folders_that_are_used_once_are_all_reported() {
    const FOLDERS: usize = 3000;
    let test = "folders_that_are_used_once_are_all_reported";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    for number in 0..FOLDERS {
        std::fs::create_dir(path.join(format!("f{number}"))).unwrap();
    }
    let script = "for folder in f*; do echo x > $folder/file; done";
    let Some(seen) = seen(test, &path, script) else { return };
    let named = seen.folders.iter().filter(|folder| {
        matches!(&folder.place, TracedFolder::At(at) if at.parent() == Some(&path))
            && folder.counts.bytes_written == 2
    });
    assert_eq!(named.count(), FOLDERS, "{:?}", seen.lost);
}

#[test]
fn a_deep_folder_is_reported_or_counted_as_lost() {
    let test = "a_deep_folder_is_reported_or_counted_as_lost";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    let script = "for depth in 100 300; do
            (at=0; while test $at -lt $depth; do mkdir -p a; cd -P a; at=$((at + 1)); done
            echo $depth > file)
        done";
    let Some(seen) = seen(test, &path, script) else { return };
    let far = path.join("a/".repeat(100));
    let reported = seen.folders.iter().find(|folder| folder.place == TracedFolder::At(far.clone()));
    assert_eq!(reported.map(|folder| folder.counts.bytes_written), Some(4), "{:?}", seen.folders);
    let lost = seen.lost.iter().find(|(what, _)| what.contains("path is too long"));
    assert!(lost.is_some_and(|(_, count)| *count >= 1), "{:?}", seen.lost);
}

/// Its calls have other numbers: 24 asks for the user there, and gives way here.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_programs_of_32_bits_are_counted_as_lost() {
    const CALLER: &str = "FSURE_TEST_HOT_32_BITS";
    let test = "calls_of_programs_of_32_bits_are_counted_as_lost";
    if std::env::var_os(CALLER).is_some() {
        for _ in 0..100 {
            // SAFETY: a call that takes nothing and changes no memory.
            unsafe {
                std::arch::asm!("int 0x80", inout("eax") 24 => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _);
            }
        }
        return;
    }
    let Some((_folder, path)) = on_a_disk(test) else { return };
    let _turn = turn();
    let Some(tracer) = begin(test, &path, TraceSource::Ebpf) else { return };
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("host::linux::io_trace::lost_event_tests::{test}");
    if !command.args(["--exact", &name]).env(CALLER, "1").output().unwrap().status.success() {
        return crate::host::did_not_run(test, "the kernel runs no programs of 32 bits");
    }
    let lost = tracer.end(None).unwrap().lost;
    let calls = lost.iter().find(|(what, _)| what.contains("32 bits"));
    assert!(calls.is_some_and(|(_, count)| *count >= 100), "{lost:?}");
}
