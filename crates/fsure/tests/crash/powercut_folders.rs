//! `fsure powercut` and the folders of runs: it removes its own only, and judges by
//! none but the right one.
#![cfg(target_os = "linux")]

use std::path::Path;

use crate::support::fsure_of;
use crate::support::powercut::{Place, check, summary, witness};

/// fsure removes only its own files, even if another user can write to the folder, and
/// even if a user has set a run's files aside.
#[test]
fn only_what_a_writer_has_made_is_removed() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let write = || {
        let args = ["powercut", "write", place.disk(), "--witness", &address, "--for", "0.1s"];
        fsure_of(place.home(), &args)
    };
    let (run, victim) = ("00112233445566778899aabbccddeeff", place.home().join("victim"));
    let fill = |folder: &Path| {
        std::fs::create_dir(folder).expect("make a folder");
        for name in ["checked", "00000001"] {
            std::fs::write(folder.join(name), "").expect("write it");
        }
    };
    fill(&victim);
    let refused = |name: &str| {
        let result = write();
        let is_refused = result.code == 2 && result.stderr.contains(name);
        let words = "looks like the folder of a run, but it is not yours";
        assert!(is_refused && result.stderr.contains(words), "{result:?}");
    };
    let at = |name: &str| place.disk.join(name);
    let name = format!("fsure-powercut-{run}");
    std::os::unix::fs::symlink(&victim, at(&name)).expect("plant a link");
    refused(&name);
    std::fs::remove_file(at(&name)).expect("remove the link");
    let kept = format!("{name}.kept");
    fill(&at(&kept));
    refused(&kept);
    for folder in [&victim, &at(&kept)] {
        assert_eq!(folder.read_dir().expect("list it").count(), 2, "{}", folder.display());
    }
    std::fs::rename(at(&kept), at(&name)).expect("give it back its name");
    std::fs::write(at(&name).join("notes"), "").expect("write it");
    std::os::unix::fs::symlink(&victim, at(&name).join("00000002")).expect("a link");
    assert_eq!(write().code, 0);
    let left: Vec<_> = at(&name).read_dir().unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(left.len() == 2 && left.contains(&"notes".into()), "{left:?}");
    assert_eq!(victim.read_dir().expect("list it").count(), 2);
}

/// This happens if the clock was set back, or if several folders had one name.
#[test]
fn of_another_runs_folder_nothing_is_judged() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let folder = place.write(&address, &[]);
    let other = "00112233445566778899aabbccddeeff";
    std::fs::rename(folder, place.disk.join(format!("fsure-powercut-{other}"))).expect("move it");
    let (lines, code) = check(place.home(), &place.disk, &address, &[]);
    let why = summary(&lines)["why"].as_str().expect("words");
    assert!(code == 5 && why.contains(&format!("add '--run {other}'")), "{lines:?}");
}
