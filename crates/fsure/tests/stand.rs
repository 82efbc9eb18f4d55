//! A real file system on a simulated drive: what is flushed is on the medium,
//! a cut leaves what its kind says, and nothing is left mounted, whoever ends.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use fsure::crash::Live;
use fsure::drive::{Cut, Image, Personality, Random, Traits};
use fsure_os::family::{Ended, Family, Task};
use fsure_os::stand::{FileSystem, MountError, Site, Stand, format};
use support::or_skip;

const SIZE: u64 = 320 << 20;

fn site(folder: &Path) -> Arc<Site> {
    Site::create(folder, Path::new(env!("CARGO_BIN_EXE_fsure"))).unwrap()
}

fn live(personality: Personality, image: Image) -> Arc<Live> {
    Arc::new(Live::new(Traits::new(personality), image))
}

/// A drive with an empty file system on it.
fn formatted(site: &Arc<Site>, system: FileSystem) -> Result<Image, String> {
    let drive = live(Personality::Protected, Image::new(SIZE));
    format(site, drive.clone(), system).map_err(|error| error.to_string())?;
    Ok(drive.cut(Cut::None, &mut Random::new(1)))
}

/// Starts a line of `sh`, whose output is kept.
fn shell(stand: &Stand, line: &str) -> (Family, Arc<Mutex<String>>) {
    let said = Arc::new(Mutex::new(String::new()));
    let keep = |said: &Arc<Mutex<String>>| {
        let said = Arc::clone(said);
        Box::new(move |line: &[u8]| {
            let mut said = said.lock().unwrap();
            said.push_str(&String::from_utf8_lossy(line));
            said.push('\n');
        })
    };
    let task = Task {
        command: ["sh", "-c", line].map(Into::into).to_vec(),
        environment: vec![],
        folder: stand.place().to_owned(),
    };
    (stand.spawn(&task, keep(&said), keep(&said)).unwrap(), said)
}

fn run(stand: &Stand, line: &str) -> (Ended, String) {
    let (mut family, said) = shell(stand, line);
    let ended = loop {
        if let Some(ended) = family.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let said = said.lock().unwrap().clone();
    (ended, said)
}

/// Mounts in a folder, as this process sees them.
fn mounts_in(folder: &Path) -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(folder.to_str().unwrap())).count()
}

/// Loop devices over files in a folder.
fn loops_in(folder: &Path) -> usize {
    let devices = std::fs::read_dir("/sys/block").unwrap();
    let file = |device: std::fs::DirEntry| {
        std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default()
    };
    let files = devices.map(|device| file(device.unwrap()));
    files.filter(|file| Path::new(file).starts_with(folder)).count()
}

#[test]
fn what_is_flushed_is_there_after_a_cut_and_what_is_not_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    for system in FileSystem::ALL {
        let name = format!("a stand with {}", system.name());
        let Some(image) = or_skip(&name, formatted(&site, system)) else { continue };
        let drive = live(Personality::Honest, image);
        let stand = match Stand::mount(&site, drive.clone(), system, "") {
            Ok(stand) => stand,
            Err(error) => {
                or_skip::<()>(&name, Err(error.to_string()));
                continue;
            }
        };
        let (ended, said) =
            run(&stand, "echo one > flushed; sync flushed .; echo two > other; pwd");
        assert_eq!(ended, Ended::Code(0), "{said}");
        assert_eq!(said.trim(), stand.place().to_str().unwrap());
        let left_behind = drive.cut(Cut::None, &mut Random::new(1));
        drop(stand);
        let after = live(Personality::Honest, left_behind);
        let after = Stand::mount(&site, after, system, "").unwrap();
        let (ended, said) = run(&after, "cat flushed; test ! -s other");
        assert_eq!((ended, said.as_str()), (Ended::Code(0), "one\n"), "{}", system.name());
        assert_eq!(mounts_in(folder.path()), 0, "seen by others");
    }
}

#[test]
fn what_is_no_file_system_is_told_from_what_cannot_be_done() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    if or_skip("an image that does not mount", formatted(&site, FileSystem::Ext4)).is_none() {
        return;
    }
    let empty = live(Personality::Honest, Image::new(SIZE));
    let error = Stand::mount(&site, empty, FileSystem::Ext4, "").unwrap_err();
    assert!(
        matches!(&error, MountError::Unmountable(words) if words.contains("bad superblock")
        || words.contains("wrong fs type")),
        "{error}"
    );
}

#[test]
fn all_that_a_program_starts_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path());
    let name = "all that a program starts ends with it";
    let Some(image) = or_skip(name, formatted(&site, FileSystem::Ext4)) else { return };
    let drive = live(Personality::Honest, image);
    let stand = Stand::mount(&site, drive, FileSystem::Ext4, "").unwrap();
    // A daemon that works on the file system, in a session of its own.
    let daemon = "setsid sh -c 'exec 3>open; sleep 1000' >/dev/null 2>&1 & sleep 0.2; echo up";
    let (ended, said) = run(&stand, daemon);
    assert_eq!((ended, said.as_str()), (Ended::Code(0), "up\n"));
    // With the daemon alive this would be busy.
    let (ended, said) = run(&stand, "kill -9 $$");
    assert_eq!(ended, Ended::Signal(9), "{said}");
    assert_eq!(run(&stand, "exec no-such-program").0, Ended::Code(127));
    let (family, _) = shell(&stand, "exec 3>open; sleep 1000");
    assert_eq!(loops_in(folder.path()), 1, "while it is there");
    drop(family);
    drop(stand);
    assert_eq!(loops_in(folder.path()), 0, "held by somebody");
    drop(site);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left behind");
}
