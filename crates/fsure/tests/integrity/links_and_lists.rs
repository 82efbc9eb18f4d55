//! Slips with links, lists and mounts that must not pass for a good result: what was not read is
//! said, and a list of another folder is not recorded.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use super::next_steps::{another_user, commands, photos, type_it};
use crate::support::{EXT4, Image, Mounted, content, or_skip, typed};

#[test]
fn a_list_of_another_folder_is_recorded_in_none() {
    let tree = photos();
    typed(
        tree.root(),
        "cd photos && sha256sum *.raw > ../SUMS; mkdir ../empty ../other; touch ../other/x",
    );
    for folder in ["empty", "other"] {
        let run = typed(tree.root(), &format!("cd {folder} && fsure import - < ../SUMS"));
        assert_eq!(run.code, 2, "{folder}: {run:?}");
        assert!(run.stderr.contains("nothing was recorded"), "{folder}: {run:?}");
        assert!(!tree.path(folder).join(".fsure").exists(), "{folder}");
    }
    // Below a recorded folder, a typo would put files into its record that never were there.
    typed(tree.root(), "fsure update photos");
    let before = fs::read(tree.path("photos/.fsure/catalog.db")).expect("read");
    let run = typed(tree.root(), "fsure import SUMS --root photos/2062");
    assert_eq!(run.code, 2, "{run:?}");
    let is_named = run.stderr.contains("there is no folder") && run.stderr.contains("photos/2062");
    assert!(is_named, "{run:?}");
    assert!(fs::read(tree.path("photos/.fsure/catalog.db")).expect("read") == before);
}

#[test]
fn a_list_of_lost_files_is_recorded_if_that_is_asked_for_and_verified_as_printed() {
    let tree = photos();
    typed(
        tree.root(),
        "cd photos && sha256sum *.raw > ../SUMS; mkdir ../empty ../other; touch ../other/x",
    );
    for folder in ["empty", "other"] {
        let line = format!("fsure import SUMS --root {folder} --allow-missing");
        let run = typed(tree.root(), &line);
        assert!(run.stdout.contains("2 files of them missing"), "{folder}: {run:?}");
        let verified = type_it(&tree, &run);
        assert_eq!((run.code, verified.code), (0, 1), "{folder}: {verified:?}");
        assert!(verified.stdout.contains("missing      2 files"), "{folder}: {verified:?}");
    }
}

#[test]
fn a_link_in_a_recorded_folder_leads_to_the_file_that_can_be_verified() {
    let tree = photos();
    typed(tree.root(), "cd photos; ln -s a.raw la; ln -s nowhere dang; ln -s /etc/passwd out");
    typed(tree.root(), "fsure update photos");
    let run = typed(tree.root(), "fsure verify photos/la");
    assert!(run.stdout.contains("NO FILE WAS READ"), "{run:?}");
    assert_eq!(commands(&run), ["fsure verify photos/a.raw"], "{run:?}");
    assert!(type_it(&tree, &run).stdout.contains("1 file is as recorded."), "{run:?}");
    let run = typed(tree.root(), "fsure verify photos/dang");
    assert!(run.stdout.contains("photos/nowhere, which is not there"), "{run:?}");
    let run = typed(tree.root(), "fsure verify photos/out");
    assert!(run.stdout.contains("out of the recorded folder, to /etc/passwd"), "{run:?}");
}

#[test]
fn a_dry_run_over_a_read_only_disk_judges_the_files() {
    let image = Image::new(&EXT4, 64);
    let test = "a_dry_run_over_a_read_only_disk_judges_the_files";
    let Some(image) = or_skip(test, image) else { return };
    let root = image.root();
    fs::write(root.join("file"), "content").expect("write");
    typed(root, "fsure update .");
    assert_eq!(typed(root, "mount -o remount,ro .").code, 0);
    for command in ["verify", "scrub"] {
        let run = typed(root, &format!("fsure {command} -n ."));
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stderr.contains("would not be saved without -n"), "{run:?}");
    }
    // What would write refuses, as the run itself does.
    assert_eq!(typed(root, "fsure update -n .").code, 5);
    assert_eq!(typed(root, "mount -o remount,rw .").code, 0);
}

#[test]
fn root_is_not_advised_to_be_root() {
    let tree = photos();
    let test = "root_is_not_advised_to_be_root";
    typed(tree.root(), "chmod -R a+rX .; mkdir -m 777 mnt");
    let Some(user) = or_skip(test, another_user(&tree)) else { return };
    let mounted = typed(tree.root(), &format!("{user} bindfs --no-allow-other photos mnt"));
    if mounted.code != 0 {
        crate::support::skip(test, &mounted.stderr);
        return;
    }
    let run = typed(tree.root(), "fsure verify mnt");
    typed(tree.root(), "umount mnt");
    assert!(run.stderr.contains("FUSE mount of another user"), "{run:?}");
    assert!(!run.stderr.contains("sudo"), "{run:?}");
}

#[test]
fn a_comparison_with_a_link_to_the_same_folder_reads_it_once() {
    let tree = photos();
    // What is recorded in the tick of its change is read, and needs no other command. A tick has
    // at most 10 ms.
    typed(tree.root(), "sleep 0.1; fsure update photos; ln -s photos link");
    let run = typed(tree.root(), "fsure compare photos link");
    assert_eq!(commands(&run), ["fsure verify photos"], "{run:?}");
}

#[test]
fn a_pattern_that_leaves_out_nothing_is_said_to() {
    let tree = photos();
    let said = "no name fits the patterns of the command line: nothing was left out";
    let run = typed(tree.root(), "touch a.tmp; fsure update photos --exclude *.tmp");
    assert!(run.stderr.contains(said), "{run:?}");
    let run = typed(tree.root(), "touch photos/b.tmp; fsure update photos --exclude '*.tmp'");
    assert!(!run.stderr.contains(said), "{run:?}");
}

#[test]
fn the_folder_that_holds_a_record_is_answered_with_the_file_in_it() {
    let tree = photos();
    typed(tree.root(), "mkdir records; fsure update photos --catalog records/catalog.db");
    let run = typed(tree.root(), "fsure verify photos --catalog records");
    assert_eq!(run.code, 2, "{run:?}");
    let (_, option) = run.stderr.split_once("in that folder: ").expect("an option");
    let again = typed(tree.root(), &format!("fsure verify photos {}", option.trim()));
    assert_eq!(again.code, 0, "{again:?}");
}

#[test]
fn a_dry_run_over_an_offline_root_advises_a_dry_run() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog c.db; mv photos away; mkdir photos");
    let run = typed(tree.root(), "fsure update photos --catalog c.db --dry-run");
    assert!(run.stdout.contains("OFFLINE"), "{run:?}");
    let again = type_it(&tree, &run);
    assert!(again.stdout.contains("Dry run: nothing was written."), "{again:?}");
}

#[test]
fn the_record_of_a_folder_below_is_not_new_to_a_list_of_the_folder_above() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; sha256sum photos/*.raw photos/2026/* > ../SUMS");
    let run = typed(tree.root(), "fsure verify . --against - < ../SUMS; rm ../SUMS");
    assert!(run.stdout.contains("ok           3 files") && !run.stdout.contains("new"), "{run:?}");
    // One that is listed is judged.
    typed(tree.root(), "find photos -type f -print0 | xargs -0 sha256sum > ../ALL");
    let run = typed(tree.root(), "fsure verify . --against - < ../ALL; rm ../ALL");
    assert!(run.stdout.contains("ok           6 files"), "{run:?}");
}

#[test]
fn a_list_of_another_folder_is_called_so_by_verify() {
    let tree = photos();
    typed(tree.root(), "cd photos && sha256sum *.raw > ../SUMS; mkdir ../other; touch ../other/x");
    for line in ["verify other --against SUMS", "verify other --against - < SUMS"] {
        let run = typed(tree.root(), &format!("fsure {line}"));
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("name the one that the list was made in"), "{run:?}");
    }
}

#[test]
fn a_catalog_in_a_folder_that_is_gone_may_be_on_a_disk_that_is_not_mounted() {
    let tree = photos();
    let run = typed(tree.root(), "fsure update photos --catalog records/c.db");
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("its disk may not be mounted, or it was moved"), "{run:?}");
    assert!(run.stderr.contains("mkdir -p"), "{run:?}");
}

#[test]
fn a_name_that_is_not_text_is_offered_as_a_shell_takes_it() {
    let tree = photos();
    let name = OsStr::from_bytes(b"photos/latin-\xe9.txt");
    fs::write(tree.root().join(name), "x").expect("write");
    typed(tree.root(), "fsure update photos");
    for name in ["photos/latin-\\xe9.txt", "photos/latin-\u{e9}.txt"] {
        let run = typed(tree.root(), &format!("fsure verify '{name}'"));
        let (_, word) = run.stderr.split_once("did you mean ").expect("a name");
        let (word, _) = word.split_once("? Otherwise").expect("a name");
        // Only some shells take it.
        let again = typed(tree.root(), &format!("bash <<'END'\nfsure verify {word}\nEND"));
        assert_eq!((run.code, again.code), (5, 0), "{again:?}");
    }
}

#[test]
fn another_file_system_below_is_said_to_be_left_out_and_recorded_as_printed() {
    let tree = photos();
    let test = "another_file_system_below_is_said_to_be_left_out_and_recorded_as_printed";
    fs::create_dir(tree.path("photos/disk")).expect("make a folder");
    let mounted = Mounted::new("tmpfs", &tree.path("photos/disk"), "");
    let Some(_mounted) = or_skip(test, mounted) else { return };
    tree.write("photos/disk/x", "content");
    let run = typed(tree.root(), "fsure update photos");
    assert!(run.stdout.contains("photos/disk is another file system"), "{run:?}");
    let command = commands(&run).remove(0);
    assert_eq!(command, "fsure update photos --cross-file-systems");
    assert!(typed(tree.root(), &command).stdout.contains("new          1 file"), "{run:?}");
    assert_eq!(typed(tree.root(), "fsure verify photos/disk/x").code, 0);
}

#[test]
fn a_comparison_with_a_file_that_is_not_a_list_reads_no_folder() {
    let tree = photos();
    typed(tree.root(), "echo nonsense > garbage");
    for line in ["fsure compare photos garbage", "fsure compare garbage photos"] {
        let run = typed(tree.root(), line);
        assert_eq!(run.code, 6, "{run:?}");
        assert!(run.stdout.contains("Read: 0 B") && !run.stdout.contains("only-"), "{run:?}");
    }
}

#[test]
fn a_comparison_heals_the_side_that_is_known_to_be_damaged() {
    let tree = photos();
    typed(tree.root(), "cp -a photos copy; fsure update photos copy");
    tree.flip("copy/a.raw", 7);
    assert_eq!(typed(tree.root(), "fsure verify copy").code, 3);
    for line in ["fsure compare photos copy", "fsure compare copy photos"] {
        let run = typed(tree.root(), line);
        assert_eq!(commands(&run), ["fsure heal copy --from photos"], "{run:?}");
    }
}

#[test]
fn a_heal_advises_to_record_no_loss_and_keeps_the_options() {
    let tree = photos();
    typed(tree.root(), "cp -a photos copy; fsure update photos --catalog c.db; rm -r photos/*");
    let line = "fsure heal photos --catalog c.db --from copy --allow-empty";
    let run = typed(tree.root(), line);
    let expected = "fsure heal photos --catalog c.db --allow-empty --from copy --yes";
    assert_eq!(commands(&run), [expected], "{run:?}");
    assert_eq!(type_it(&tree, &run).code, 7);
}

#[test]
fn damage_on_a_read_only_disk_says_first_that_its_record_cannot_be_written() {
    let image = Image::new(&EXT4, 64);
    let test = "damage_on_a_read_only_disk_says_first_that_its_record_cannot_be_written";
    let Some(image) = or_skip(test, image) else { return };
    let root = image.root();
    fs::write(root.join("file"), "content").expect("write");
    typed(root, "fsure update .; echo more > new; mount -o remount,ro .");
    let run = typed(root, "fsure verify .");
    assert_eq!(typed(root, "mount -o remount,rw .").code, 0);
    let at = |text: &str| run.stdout.find(text).unwrap_or_else(|| panic!("{text}: {run:?}"));
    assert!(at("The record CANNOT BE WRITTEN") < at("fsure update ."), "{run:?}");
}

#[test]
fn the_files_of_a_record_in_a_list_of_paths_are_left_out() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    let run = typed(tree.root(), "find photos -type f | fsure verify --files-from -");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("ok           3 files"), "{run:?}");
}

#[test]
fn several_digests_are_one_value() {
    let tree = photos();
    let run = typed(tree.root(), "fsure update photos --digest sha256 sha512");
    assert!(run.stderr.contains("--digest sha256,sha512"), "{run:?}");
}

#[test]
fn a_recorded_file_that_a_pattern_leaves_out_is_not_called_new() {
    let tree = photos();
    let line = "fsure update photos; fsure update photos --exclude '*.raw'";
    let run = typed(tree.root(), line);
    assert!(run.stdout.contains("2 recorded files were LEFT OUT"), "{run:?}");
    assert!(!run.stdout.contains("verify calls them new"), "{run:?}");
}

#[test]
fn a_record_of_root_kept_elsewhere_is_made_the_users_as_printed() {
    let tree = photos();
    let test = "a_record_of_root_kept_elsewhere_is_made_the_users_as_printed";
    typed(
        tree.root(),
        "mkdir own; chown 1000 own; chmod -R a+rX .; fsure update photos --catalog own/c.db",
    );
    let Some(user) = or_skip(test, another_user(&tree)) else { return };
    let update = format!("{user} fsure update photos --catalog own/c.db");
    let run = typed(tree.root(), &update);
    assert_eq!(run.code, 5, "{run:?}");
    let (_, files) = run.stderr.split_once("sudo chown -R \"$(id -un)\" ").expect("a command");
    assert_eq!(typed(tree.root(), &format!("chown -R 1000 {}", files.trim())).code, 0);
    assert_eq!(typed(tree.root(), &update).code, 0, "{run:?}");
}

#[test]
fn recovery_data_of_root_are_made_the_users_as_printed() {
    let tree = photos();
    let test = "recovery_data_of_root_are_made_the_users_as_printed";
    typed(
        tree.root(),
        "fsure update photos; chown -R 1000 photos; chmod a+rx .; fsure protect photos",
    );
    let Some(user) = or_skip(test, another_user(&tree)) else { return };
    let update = format!("{user} fsure update photos");
    typed(tree.root(), "touch photos/a.raw");
    tree.write("photos/d.raw", content(70_000, 9));
    let run = typed(tree.root(), &format!("chown 1000 photos/d.raw; {update}"));
    assert_eq!(run.code, 5, "{run:?}");
    let (_, own) = run.stdout.split_once("sudo chown -R \"$(id -un)\" ").expect("a command");
    let own = own.split(')').next().unwrap_or_default();
    typed(tree.root(), &format!("chown -R 1000 {own}"));
    assert_eq!(typed(tree.root(), &update).code, 0, "{run:?}");
}
