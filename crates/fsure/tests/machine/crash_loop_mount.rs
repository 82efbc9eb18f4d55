//! A real file system on a simulated drive: what is flushed is on the medium,
//! a cut leaves what its kind says, and nothing is left mounted, whichever process ends.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::noise::undisturbed;
use crate::support::or_skip;
use fsure_core::Random;
use fsure_os::loop_device::Reliance;
use fsure_os::loop_mount::{FileSystem, LoopMount, MountArea, MountError, format};
use fsure_os::process_tree::{Ended, ProcessTree, Task};
use fsure_simdrive::LiveDrive;
use fsure_simdrive::{Behavior, CutVariant, Image, Traits};

const SIZE: u64 = 320 << 20;

pub(super) fn site(folder: &Path) -> Arc<MountArea> {
    MountArea::create(folder, Path::new(env!("CARGO_BIN_EXE_fsure"))).unwrap()
}

fn live(behavior: Behavior, image: Image) -> Arc<LiveDrive> {
    Arc::new(LiveDrive::new(Traits::new(behavior), image))
}

/// A drive with an empty file system on it.
pub(super) fn formatted(
    site: &Arc<MountArea>,
    system: FileSystem,
    size: u64,
) -> Result<Image, String> {
    let drive = live(Behavior::Protected, Image::new(size));
    format(site, drive.clone(), system).map_err(|error| error.to_string())?;
    Ok(drive.cut(CutVariant::None, &mut Random::new(1)))
}

/// Starts a line of `sh`, whose output is kept.
fn shell(stand: &LoopMount, line: &str) -> (ProcessTree, Arc<Mutex<String>>) {
    let output = Arc::new(Mutex::new(String::new()));
    let keep = |output: &Arc<Mutex<String>>| {
        let output = Arc::clone(output);
        Box::new(move |line: &[u8]| {
            let mut output = output.lock().unwrap();
            output.push_str(&String::from_utf8_lossy(line));
            output.push('\n');
        })
    };
    let task = Task {
        command: ["sh", "-c", line].map(Into::into).to_vec(),
        environment: vec![],
        folder: stand.place().to_owned(),
    };
    (stand.spawn(&task, keep(&output), keep(&output)).unwrap(), output)
}

pub(super) fn run(stand: &LoopMount, line: &str) -> (Ended, String) {
    let (mut family, output) = shell(stand, line);
    let ended = loop {
        if let Some(ended) = family.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let output = output.lock().unwrap().clone();
    (ended, output)
}

/// Mounts in a folder, as this process sees them.
fn mounts_in(folder: &Path) -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(folder.to_str().unwrap())).count()
}

/// Loop devices over files in a folder.
fn loops_in(folder: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().map(Result::unwrap);
    let file = |device: &std::fs::DirEntry| {
        std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default()
    };
    let devices = devices.filter(|device| Path::new(&file(device)).starts_with(folder));
    devices.map(|device| device.file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_flushed_is_there_after_a_cut_and_what_is_not_is_gone() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    for system in FileSystem::ALL {
        let name = format!("a stand with {}", system.name());
        undisturbed(&name, || {
            let Some(image) = or_skip(&name, formatted(&site, system, SIZE)) else { return };
            let drive = live(Behavior::Honest, image);
            let stand = LoopMount::mount(&site, drive.clone(), system, "");
            let stand = stand.map_err(|error| error.to_string());
            let Some(stand) = or_skip(&name, stand) else { return };
            let (ended, output) =
                run(&stand, "echo one > flushed; sync flushed .; echo two > other; pwd");
            assert_eq!(ended, Ended::Code(0), "{output}");
            assert_eq!(output.trim(), stand.place().to_str().unwrap());
            let left_behind = drive.cut(CutVariant::None, &mut Random::new(1));
            drop(stand);
            let after = live(Behavior::Honest, left_behind);
            let after = LoopMount::mount(&site, after, system, "").unwrap();
            let (ended, output) = run(&after, "cat flushed; test ! -s other");
            assert_eq!((ended, output.as_str()), (Ended::Code(0), "one\n"), "{}", system.name());
            assert_eq!(mounts_in(folder.path()), 0, "seen by others");
        });
    }
}

#[test]
fn a_bad_image_is_distinguished_from_an_impossible_mount() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    if or_skip("an image that does not mount", formatted(&site, FileSystem::Ext4, SIZE)).is_none() {
        return;
    }
    let empty = live(Behavior::Honest, Image::new(SIZE));
    let error = LoopMount::mount(&site, empty, FileSystem::Ext4, "").unwrap_err();
    assert!(
        matches!(&error, MountError::Unmountable(words) if words.contains("bad superblock")
        || words.contains("wrong fs type")),
        "{error}"
    );
}

#[test]
fn all_that_a_program_starts_ends_with_it() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    let name = "all that a program starts ends with it";
    let Some(image) = or_skip(name, formatted(&site, FileSystem::Ext4, SIZE)) else { return };
    let drive = live(Behavior::Honest, image);
    let stand = LoopMount::mount(&site, drive, FileSystem::Ext4, "").unwrap();
    // A daemon that works on the file system, in a session of its own.
    let daemon = "setsid sh -c 'exec 3>open; sleep 1000' >/dev/null 2>&1 & sleep 0.2; echo up";
    let (ended, output) = run(&stand, daemon);
    assert_eq!((ended, output.as_str()), (Ended::Code(0), "up\n"));
    // With the daemon alive this would be busy.
    let (ended, output) = run(&stand, "kill -9 $$");
    assert_eq!(ended, Ended::Signal(9), "{output}");
    assert_eq!(run(&stand, "exec no-such-program").0, Ended::Code(127));
    let (family, _) = shell(&stand, "exec 3>open; sleep 1000");
    assert_eq!(loops_in(folder.path()).len(), 1, "while it is there");
    drop(family);
    drop(stand);
    assert_eq!(loops_in(folder.path()).len(), 0, "held by somebody");
    drop(site);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left behind");
}

/// Runs a line of `sh` outside of a stand, where `$D` is the name of its device.
fn outside(device: &str, line: &str) {
    let status = std::process::Command::new("sh").args(["-ec", line]).env("D", device).status();
    assert!(status.unwrap().success(), "{line}");
}

/// A stand with ext4, and the name of its device; `None`, and said so, where this machine
/// cannot.
fn mounted(test: &str, folder: &Path) -> Option<(LoopMount, String)> {
    let site = site(folder);
    let image = or_skip(test, formatted(&site, FileSystem::Ext4, SIZE))?;
    let drive = live(Behavior::Honest, image);
    let stand = LoopMount::mount(&site, drive, FileSystem::Ext4, "").unwrap();
    let device = loops_in(folder).pop().unwrap();
    Some((stand, device))
}

const SYNCS: &str = "n=0; while [ $n -lt 40 ]; do n=$((n+1)); echo $n >> file; sync file; done";

/// As the kernel tells it, but for a setting that was changed by way of another sysfs, of
/// which only the flushes tell that are missing.
#[test]
fn what_another_process_does_to_its_device_is_noticed() {
    let _alone = crate::support::serial::alone();
    let through = "echo 'write through' > /sys/block/$D/queue/write_cache";
    let back = "echo 'write back' > /sys/block/$D/queue/write_cache";
    let elsewhere = |value: &str| {
        let set = format!("echo '{value}' > $T/block/$D/queue/write_cache");
        format!("T=$(mktemp -d); unshare -n -m sh -ec \"mount -t sysfs x $T; {set}\"; rmdir $T")
    };
    let [hidden, restored] = ["write through", "write back"].map(elsewhere);
    let both = format!("{through}; {back}");
    // Before the program, after it, what is said, and whether the content is another one.
    for (before, after, words, is_content) in [
        (through, "true", "another process wrote to /sys/block/", false),
        (&both, "true", "another process wrote to /sys/block/", false),
        (&hidden, &restored, "commits with a flush each", false),
        ("blockdev --setro /dev/$D", "true", "it is read-only", true),
        ("blockdev --setro /dev/$D", "blockdev --setrw /dev/$D", "", false),
        (
            "dd if=/dev/$D of=/dev/$D bs=4096 count=1 conv=notrunc 2>/dev/null",
            "true",
            "another process wrote to /dev/loop",
            true,
        ),
        ("losetup /dev/$D; blkid -p /dev/$D; losetup -d /dev/$D", "true", "", false),
    ] {
        undisturbed("what is done to a device", || {
            let folder = tempfile::tempdir().unwrap();
            let Some((stand, device)) = mounted("what is done to a device", folder.path()) else {
                return;
            };
            outside(&device, before);
            run(&stand, SYNCS);
            outside(&device, after);
            let disturbance =
                |reliance| stand.check(reliance).map_err(|error| error.to_string()).err();
            let [flushes, content] = [Reliance::Flushes, Reliance::Content].map(disturbance);
            let expected = |is: bool| is.then_some(words.to_owned());
            let is_as_expected =
                |disturbance: &Option<String>, expected: Option<String>| match expected {
                    Some(words) => {
                        disturbance.as_ref().is_some_and(|disturbance| disturbance.contains(&words))
                    }
                    None => disturbance.is_none(),
                };
            assert!(is_as_expected(&flushes, expected(!words.is_empty())), "{before}: {flushes:?}");
            assert!(is_as_expected(&content, expected(is_content)), "{before}: {content:?}");
            // Both settings outlive what is attached now.
            outside(&device, &format!("{back}; blockdev --setrw /dev/$D"));
        });
    }
}

/// By a process that is long gone: the next who gets the device has the settings as they
/// have to be.
#[test]
fn a_device_that_was_left_changed_is_put_right() {
    let _alone = crate::support::serial::alone();
    let test = "a device that was left changed";
    undisturbed(test, || {
        let folder = tempfile::tempdir().unwrap();
        let Some((stand, device)) = mounted(test, folder.path()) else { return };
        outside(&device, "echo 'write through' > /sys/block/$D/queue/write_cache");
        outside(&device, "blockdev --setro /dev/$D");
        drop(stand);
        // Others may have taken it meanwhile: then it is none of this test's.
        let Some((stand, next)) = mounted(test, folder.path()) else { return };
        run(&stand, SYNCS);
        stand.check(Reliance::Flushes).unwrap();
        if next != device {
            outside(&device, "echo 'write back' > /sys/block/$D/queue/write_cache");
            outside(&device, "blockdev --setrw /dev/$D");
        }
    });
}

/// Each file system has more flushes than it counts commits, however it is used.
#[test]
fn as_many_flushes_arrive_as_a_file_system_must_have_sent() {
    let _alone = crate::support::serial::alone();
    for (system, options) in [
        (FileSystem::Ext4, ""),
        (FileSystem::Ext4, "data=journal"),
        (FileSystem::Xfs, ""),
        (FileSystem::Btrfs, "notreelog"),
    ] {
        undisturbed("flushes of a file system", || {
            let folder = tempfile::tempdir().unwrap();
            let site = site(folder.path());
            let name = format!("flushes of {}", system.name());
            let Some(image) = or_skip(&name, formatted(&site, system, SIZE)) else { return };
            let drive = live(Behavior::Honest, image);
            let stand = LoopMount::mount(&site, drive.clone(), system, options).unwrap();
            let many = "while [ $(ls | wc -l) -lt 60 ]; do echo > $(ls | wc -l); sync .; done";
            for line in [SYNCS, "dd if=/dev/zero of=large bs=1M count=30 2>&1; sync large", many] {
                let (ended, output) = run(&stand, line);
                assert_eq!(ended, Ended::Code(0), "{output}");
                stand.check(Reliance::Flushes).unwrap();
            }
            assert!(drive.counts().flushes > 100, "{:?}", drive.counts());
            assert!(stand.sync_file().unwrap() > 0);
        });
    }
}
