//! Mistakes that a newcomer makes on purpose, and what the answer advises: each command in it is
//! typed as it is printed, and does what the answer says.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{Mounted, Recorded, Run, Tree, content, fsure, fsure_with, or_skip, typed};

/// A folder `photos` of a user, not recorded.
pub(crate) fn photos() -> Tree {
    let tree = Tree::new();
    for (number, name) in ["photos/a.raw", "photos/b.raw", "photos/2026/c.jpg"].iter().enumerate() {
        tree.write(name, content(3000, number as u64));
        tree.age(name);
    }
    tree
}

/// The commands that were printed: on lines of their own, and at the end of a hint or warning.
pub(crate) fn commands(run: &Run) -> Vec<String> {
    let own = run.stdout.lines().filter_map(|line| line.strip_prefix("    fsure "));
    let hints = run.stderr.lines().filter_map(|line| line.rsplit_once(": fsure "));
    own.chain(hints.map(|(_, command)| command)).map(|words| format!("fsure {words}")).collect()
}

/// Types the only command that was printed.
pub(crate) fn type_it(tree: &Tree, run: &Run) -> Run {
    let [command] = &commands(run)[..] else { panic!("not one command: {run:?}") };
    typed(tree.root(), command)
}

/// Types the first command that was printed.
fn type_it_first(tree: &Tree, run: &Run) -> Run {
    typed(tree.root(), &commands(run)[0])
}

#[test]
fn a_single_file_is_recorded_with_its_folder() {
    let tree = photos();
    for command in ["update", "verify"] {
        let run = typed(tree.root(), &format!("fsure {command} photos/2026/c.jpg"));
        assert_eq!(run.code, 5, "{run:?}");
        assert!(run.stderr.contains("a file is recorded with its folder"), "{run:?}");
        assert_eq!(type_it(&tree, &run).code, 0);
        assert!(tree.path("photos/2026/.fsure").exists() && !tree.path("photos/.fsure").exists());
        fs::remove_dir_all(tree.path("photos/2026/.fsure")).expect("remove");
    }
}

/// Damages what a record says of its file system, and removes the backup, which says it, too.
fn lose_file_system(recorded: &Recorded) {
    recorded.edit("UPDATE file_system SET kind = 'other'");
    fs::remove_file(recorded.catalog.with_extension("db.backup")).expect("remove");
}

#[test]
fn a_record_that_is_kept_elsewhere_is_verified_after_recover_as_printed() {
    let tree = photos();
    let recorded = Recorded::outside(&tree.path("photos"), &tree.path("c.db"));
    recorded.record();
    lose_file_system(&recorded);
    let run = typed(tree.root(), "fsure recover photos --catalog c.db");
    assert!(!run.stdout.contains("--allow-other-disk"), "a file proves the folder: {run:?}");
    let verified = type_it(&tree, &run);
    assert_eq!(verified.code, 0, "{verified:?}");
    // Of a copy, nothing proves it, and the command says so.
    typed(tree.root(), "cp -a photos copy; rm c.db*; fsure update photos --catalog c.db");
    lose_file_system(&recorded);
    let run = typed(tree.root(), "fsure recover copy --catalog c.db");
    assert!(
        run.stdout.contains("does not tell whether this folder is the recorded one"),
        "{run:?}"
    );
    for command in commands(&run) {
        assert!(command.ends_with(" --allow-other-disk"), "{command}");
        assert_eq!(typed(tree.root(), &command).code, 0, "{command}");
    }
}

#[test]
fn a_catalog_needs_its_folder_in_every_command() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog c.db");
    for line in ["recover", "log", "dupes", "export --format b3sum"] {
        let run = typed(tree.root(), &format!("fsure {line} --catalog c.db"));
        assert_eq!((run.code, run.stderr.contains("needs PATH")), (2, true), "{run:?}");
        assert!(commands(&run)[0].contains(" . --catalog c.db"), "{run:?}");
    }
}

#[test]
fn files_moved_away_before_a_new_record_are_not_taken_for_the_users() {
    let tree = photos();
    let catalog = tree.write("photos/c.db", content(9000, 5));
    let run = typed(tree.root(), "fsure recover photos --catalog photos/c.db");
    let (_, rest) = run.stderr.split_once("can be begun: '").expect("a command");
    let (command, _) = rest.split_once("'. ").expect("an end");
    let begun = typed(tree.root(), command);
    assert!(begun.stdout.contains("Recorded: 3 files and 1 folder new."), "{begun:?}");
    assert!(catalog.with_extension("db.damaged-1").exists());
}

#[test]
fn a_backup_moved_away_before_a_new_record_is_not_taken_for_the_users() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog photos/c.db; rm photos/c.db");
    let run = typed(tree.root(), "fsure update photos --catalog photos/c.db");
    let (_, rest) = run.stderr.split_once("move the backup away: ").expect("a command");
    let (command, rest) = rest.split_once("; ").expect("an end");
    assert!(rest.contains("instead, run: fsure recover "), "{run:?}");
    typed(tree.root(), command);
    let begun = typed(tree.root(), "fsure update photos --catalog photos/c.db");
    assert!(begun.stdout.contains("Recorded: 3 files and 1 folder new."), "{begun:?}");
}

#[test]
fn a_full_disk_asks_for_room() {
    let tree = Tree::new();
    let at = tree.path("disk");
    fs::create_dir(&at).expect("make");
    for options in ["size=64k,nr_inodes=100", "nr_inodes=4", "nr_inodes=5", "nr_inodes=6"] {
        let mounted = or_skip("a_full_disk_asks_for_room", Mounted::new("tmpfs", &at, options));
        let Some(_mounted) = mounted else { return };
        tree.write("disk/photos/a", "a");
        if options.starts_with("size") {
            let _ = fs::write(at.join("full"), vec![1; 1 << 17]);
        }
        let run = typed(tree.root(), "fsure update disk/photos");
        assert_eq!(run.code, 5, "{options}: {run:?}");
        assert!(run.stderr.contains("make room there"), "{options}: {run:?}");
        assert!(!run.stderr.contains("sudo"), "{options}: {run:?}");
    }
}

#[test]
fn a_read_only_folder_is_recorded_elsewhere_as_printed() {
    let tree = photos();
    let at = tree.path("ro");
    fs::create_dir(&at).expect("make");
    let test = "a_read_only_folder_is_recorded_elsewhere_as_printed";
    let Some(_bound) = or_skip(test, Mounted::bind(&tree.path("photos"), &at)) else { return };
    let remounted = typed(tree.root(), "mount -o remount,bind,ro ro");
    let remounted = (remounted.code == 0).then_some(()).ok_or(remounted.stderr);
    let Some(()) = or_skip(test, remounted) else { return };
    for command in ["verify", "update", "status"] {
        let run = typed(tree.root(), &format!("fsure {command} ro"));
        let [advised] = &commands(&run)[..] else { panic!("{run:?}") };
        assert!(advised.ends_with("ro --catalog ~/ro.catalog.db"), "{advised}");
        let home = tree.path("home");
        let _ = fs::create_dir(&home);
        let line = format!("HOME={}; {advised}", home.display());
        assert_eq!(typed(tree.root(), &line).code, 0, "{line}");
        assert!(home.join("ro.catalog.db").exists());
        fs::remove_dir_all(home).expect("remove");
    }
}

#[test]
fn an_empty_list_is_not_compared_as_an_empty_folder() {
    let tree = photos();
    tree.write("empty", "");
    for (line, list) in [("photos empty", "empty"), ("empty photos", "empty")] {
        let run = typed(tree.root(), &format!("fsure compare {line}"));
        assert_eq!(run.code, 6, "{run:?}");
        assert!(run.stderr.contains(&format!("{list} names no file")), "{run:?}");
        assert!(run.stdout.contains("CANNOT BE TRUSTED: it names no file"), "{run:?}");
    }
}

#[test]
fn a_list_of_paths_replaces_only_such_a_list() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    tree.write("photo.raw", content(3000, 9));
    tree.write("diary.txt", "Dear diary\n");
    tree.write("figures.csv", "1.5,2.5\n2.5,3.5\n");
    for file in ["photo.raw", "diary.txt", "figures.csv"] {
        let before = tree.read(file);
        let run = typed(tree.root(), &format!("fsure verify photos --paths missing={file}"));
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains("is not a list of paths, so it is not replaced"), "{run:?}");
        assert_eq!(tree.read(file), before, "{file}");
    }
    // What it has written itself it replaces, wherever that is read from.
    fs::remove_file(tree.path("photos/a.raw")).expect("remove");
    for (folder, line) in [
        (".", "fsure verify photos --paths missing=list"),
        (".", "fsure verify photos --paths missing=list"),
        ("photos", "fsure verify --paths missing=../list"),
        ("photos", "fsure verify --paths missing=../list"),
        (".", "fsure verify photos --paths missing,ok=list0 --print0"),
        (".", "fsure verify photos --paths missing,ok=list0 --print0"),
    ] {
        let run = typed(&tree.path(folder), line);
        assert_eq!((run.code, &*run.stderr), (1, ""), "{line}: {run:?}");
    }
    assert_eq!(tree.read("list"), b"a.raw\n");
}

#[test]
fn an_export_warns_of_files_that_are_no_longer_as_recorded() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    let fresh = typed(tree.root(), "fsure export photos --format b3sum");
    assert_eq!((fresh.code, &*fresh.stderr), (0, ""), "{fresh:?}");
    tree.write("photos/a.raw", "edited");
    fs::remove_file(tree.path("photos/b.raw")).expect("remove");
    let run = typed(tree.root(), "fsure export photos --format b3sum");
    assert!(run.stderr.contains("1 file has another size or date than recorded"), "{run:?}");
    assert!(run.stderr.contains("1 file is not there"), "{run:?}");
    assert_eq!(run.stdout, fresh.stdout, "the list has what was recorded");
    // A digest is computed only of what is as recorded, and the cause is said.
    let run = typed(tree.root(), "fsure export photos --format sha256sums -o list");
    assert_eq!(run.code, 5, "{run:?}");
    let cause = "a.raw: left out, its record has no sha256, and the file has another size or date";
    assert!(run.stderr.contains(cause), "{run:?}");
    let shown = type_it(&tree, &run);
    assert_eq!(commands(&shown), ["fsure update photos"], "{shown:?}");
    type_it(&tree, &shown);
    let run = typed(tree.root(), "fsure export photos --format sha256sums -o list");
    assert_eq!((run.code, &*run.stderr), (0, ""), "{run:?}");
    assert_eq!(String::from_utf8_lossy(&tree.read("list")).lines().count(), 2);
}

#[test]
fn a_list_in_its_own_folder_is_recorded_as_printed() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    let run = typed(tree.root(), "fsure export photos --format sha256sums -o photos/list");
    type_it(&tree, &run);
    assert_eq!(typed(tree.root(), "fsure verify photos").code, 0);
}

#[test]
fn a_comparison_says_how_to_find_the_damaged_side() {
    let tree = photos();
    typed(tree.root(), "cp -a photos copy && fsure update photos");
    tree.flip("photos/a.raw", 7);
    for line in ["fsure compare photos copy", "fsure compare copy photos"] {
        let run = typed(tree.root(), line);
        assert_eq!(commands(&run), ["fsure heal photos --from copy"], "{run:?}");
        let shown = type_it(&tree, &run);
        assert!(shown.stdout.contains("healable     photos/a.raw"), "{shown:?}");
    }
    typed(tree.root(), "cd copy && sha256sum *.raw > ../list");
    let run = typed(tree.root(), "fsure compare photos list");
    assert_eq!(commands(&run), ["fsure verify photos --against list"], "{run:?}");
    assert_eq!(type_it(&tree, &run).code, 3);
}

#[test]
fn a_folder_or_a_record_in_place_of_a_list_is_answered_with_the_command_for_it() {
    let tree = photos();
    typed(tree.root(), "cp -a photos copy; fsure update photos; fsure update copy --catalog c.db");
    for (line, advised) in [
        ("verify photos --against copy", "fsure compare photos copy"),
        ("import copy --root photos", "fsure compare photos copy"),
        ("verify copy --against photos/.fsure/catalog.db", "fsure verify photos"),
        ("verify copy --against c.db", "fsure verify copy --catalog c.db"),
        ("import c.db --root copy", "fsure verify copy --catalog c.db"),
    ] {
        let run = typed(tree.root(), &format!("fsure {line}"));
        assert_eq!((run.code, commands(&run)), (2, vec![advised.to_owned()]), "{run:?}");
        assert_eq!(type_it(&tree, &run).code, 0, "{line}");
    }
}

#[test]
fn a_list_or_a_copy_that_is_not_there_is_answered_with_the_one_beside_it() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; fsure export photos --format b3sum -o lists");
    for (line, meant) in [
        ("fsure verify photos --against list", "did you mean "),
        ("fsure import list", "did you mean "),
        ("fsure heal photos --from nowhere", "check the spelling; if it is on a disk"),
        ("fsure compare photos nowhere", "check the spelling; if it is on a disk"),
    ] {
        let run = typed(tree.root(), line);
        assert_eq!(run.code, 5, "{run:?}");
        assert!(run.stderr.contains(&format!("fsure: hint: {meant}")), "{run:?}");
        assert_eq!(run.stderr.contains("/lists?"), meant == "did you mean ", "{run:?}");
    }
}

#[test]
fn what_overrides_a_check_comes_last_and_on_a_line_of_its_own() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; mv photos/*.raw .; mv photos/2026/c.jpg .");
    let run = typed(tree.root(), "fsure verify photos");
    assert_eq!(run.code, 5, "{run:?}");
    let (_, offline) = run.stdout.split_once("OFFLINE: ").expect("offline");
    assert!(offline.contains("mount it, and run the same command again. Only if"), "{offline}");
    assert_eq!(commands(&run), ["fsure verify photos --allow-missing"], "{run:?}");
    assert_eq!(type_it(&tree, &run).code, 1);
}

#[test]
fn one_file_that_is_not_protected_is_one() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    tree.flip("photos/a.raw", 7);
    let run = typed(tree.root(), "fsure protect photos");
    let sentence = "1 file is NOT PROTECTED, because its content differs from the record or cannot";
    assert!(run.stdout.contains(sentence), "{run:?}");
    assert_eq!(commands(&run), ["fsure verify photos"], "{run:?}");
    assert_eq!(type_it(&tree, &run).code, 3);
}

#[test]
fn a_place_where_no_file_can_be_made_does_not_ask_for_root() {
    let tree = photos();
    let run = typed(tree.root(), "fsure update photos --catalog /proc/c.db");
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("cannot write the record /proc/c.db"), "{run:?}");
    assert!(!run.stderr.contains("sudo") || !rustix::process::geteuid().is_root(), "{run:?}");
    assert!(run.stderr.contains("in a place of your choice"), "{run:?}");
}

#[test]
fn a_dry_run_that_another_user_may_not_write_says_that_it_is_one() {
    let tree = photos();
    let test = "a_dry_run_that_another_user_may_not_write_says_that_it_is_one";
    typed(tree.root(), "fsure update photos; chmod -R a+rX .");
    let Some(user) = or_skip(test, another_user(&tree)) else { return };
    let run = typed(tree.root(), &format!("{user} fsure update -n photos"));
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.starts_with("fsure: this is a dry run, and without -n"), "{run:?}");
    let run = typed(tree.root(), "fsure update -n photos");
    assert!(run.stdout.ends_with("Without -n, no file would be recorded anew.\n"), "{run:?}");
}

/// Returns the words that run a command as a user without rights, if that can be done here.
pub(crate) fn another_user(tree: &Tree) -> Result<&'static str, String> {
    let user = "setpriv --reuid 1000 --regid 1000 --clear-groups";
    let can = typed(tree.root(), &format!("{user} fsure --version"));
    if can.code == 0 { Ok(user) } else { Err(can.stderr) }
}

#[test]
fn a_record_that_is_closed_to_the_user_is_not_taken_for_none() {
    let tree = photos();
    let test = "a_record_that_is_closed_to_the_user_is_not_taken_for_none";
    typed(tree.root(), "fsure update photos; chmod -R a+rX .; chmod 700 photos/.fsure");
    typed(tree.root(), "mkdir -p priv; chmod 700 priv; cp -r photos photos2");
    let Some(user) = or_skip(test, another_user(&tree)) else { return };
    let others = ["export --format b3sum", "heal --from photos2"];
    for command in ["verify", "status", "update", "scrub", "log"].into_iter().chain(others) {
        let run = typed(tree.root(), &format!("{user} fsure {command} photos"));
        assert_eq!(run.code, 5, "{command}: {run:?}");
        assert!(!run.stderr.contains("no record"), "{command}: {run:?}");
        assert!(run.stderr.contains("the record belongs to another user"), "{command}: {run:?}");
        assert!(run.stderr.contains("sudo chown -R \"$(id -un)\" "), "{command}: {run:?}");
    }
    for path in ["priv", "priv/file"] {
        let run = typed(tree.root(), &format!("{user} fsure status {path}"));
        assert!(run.stderr.contains("run it as a user who may read it"), "{run:?}");
    }
}

#[test]
fn a_folder_below_the_recorded_one_is_not_held_against_its_record() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog c.db");
    for command in ["verify", "update", "status", "scrub"] {
        let run = typed(tree.root(), &format!("fsure {command} photos/2026 --catalog c.db"));
        assert_eq!(run.code, 2, "{command}: {run:?}");
        assert!(run.stderr.contains("PATH must be that folder"), "{command}: {run:?}");
        assert_eq!(type_it(&tree, &run).code, 0);
    }
}

#[test]
fn the_folder_of_a_record_is_not_moved_away_for_a_catalog() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    let run = typed(tree.root(), "fsure update photos --catalog photos/.fsure");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("without '--catalog', fsure finds it"), "{run:?}");
    assert!(!run.stderr.contains("mv "), "{run:?}");
}

#[test]
fn no_second_record_is_advised_where_there_is_one() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    let at = tree.path("ro");
    fs::create_dir(&at).expect("make");
    let test = "no_second_record_is_advised_where_there_is_one";
    let Some(_bound) = or_skip(test, Mounted::bind(&tree.path("photos"), &at)) else { return };
    let remounted = typed(tree.root(), "mount -o remount,bind,ro ro");
    let remounted = (remounted.code == 0).then_some(()).ok_or(remounted.stderr);
    let Some(()) = or_skip(test, remounted) else { return };
    for command in ["update ro", "heal ro --from photos --yes", "protect ro"] {
        let run = typed(tree.root(), &format!("fsure {command}"));
        assert!(run.stderr.contains("mount the disk so that it can be written"), "{run:?}");
        assert!(commands(&run).is_empty(), "what is damaged would be recorded: {run:?}");
    }
}

#[test]
fn other_slips_get_the_command_that_was_meant() {
    let tree = photos();
    let missing = typed(tree.root(), "fsure verify photos --catalog none/c.db");
    assert!(missing.stderr.contains("there is no folder "), "{missing:?}");
    assert!(commands(&missing).is_empty(), "{missing:?}");
    let capitals = typed(tree.root(), "fsure Verify photos");
    assert!(capitals.stderr.contains("did you mean: fsure verify photos"), "{capitals:?}");
    let folder = typed(tree.root(), "fsure report photos -o x.html");
    assert!(folder.stderr.contains("fsure verify photos --json > v.json"), "{folder:?}");
    let second = typed(tree.root(), "fsure update photos && fsure update photos --catalog c.db");
    assert!(second.stderr.contains("a second record is begun"), "{second:?}");
    let warned = commands(&second).pop().expect("a command");
    assert_eq!(typed(tree.root(), &warned).code, 0, "{second:?}");
    let known = typed(tree.root(), "fsure update photos --catalog c.db");
    assert!(known.stderr.is_empty(), "{known:?}");
    typed(tree.root(), "rm -r photos/.fsure c.db*");
    // The mount point of a disk that is not mounted.
    let empty = typed(tree.root(), "mkdir mnt; fsure verify mnt");
    assert!(empty.stderr.contains("mount it") && commands(&empty).is_empty(), "{empty:?}");
    if typed(tree.root(), "command -v b3sum && cd photos && b3sum a.raw > ../list").code == 0 {
        let taken = typed(tree.root(), "fsure verify photos --against list");
        assert!(taken.stderr.contains("is read as '--format b3sum'"), "{taken:?}");
        assert!(taken.code == 1 && taken.stdout.contains("ok           1 file"), "{taken:?}");
        // What the user has named is not put right, and the other form is named.
        let named = "fsure verify photos --against list --format sha256sums";
        let wrong = typed(tree.root(), named);
        assert!(wrong.stderr.contains("which may be wrong"), "{wrong:?}");
        let again = type_it_first(&tree, &wrong);
        assert!(again.code == 1 && again.stdout.contains("ok           1 file"), "{again:?}");
    }
    let age = typed(tree.root(), "fsure update photos --forget 90");
    assert!(age.stderr.contains("say 90d"), "{age:?}");
}

/// Runs a command on a terminal of 40 columns.
fn narrow(tree: &Tree, line: &str) -> Result<String, String> {
    let script = format!("script -qec 'stty cols 40 rows 24; {line}' /dev/null");
    let run = typed(tree.root(), &script);
    match run.stdout.is_empty() {
        true => Err(run.stderr),
        false => Ok(run.stdout.replace("\r\n", "\n")),
    }
}

#[test]
fn errors_and_the_first_steps_fit_into_40_columns() {
    let tree = photos();
    let test = "errors_and_the_first_steps_fit_into_40_columns";
    let folder = tree.path("birthday-of-grandmother");
    fs::rename(tree.path("photos"), &folder).expect("rename");
    let file = "fsure verify birthday-of-grandmother/a.raw";
    let Some(shown) = or_skip(test, narrow(&tree, file)) else { return };
    let is_long = |line: &&str| line.chars().count() > 40;
    let (long, rest): (Vec<_>, Vec<_>) = shown.lines().partition(is_long);
    let root = folder.canonicalize().expect("resolve");
    assert!(long.contains(&&*format!("    fsure update {}", root.display())), "{shown}");
    assert!(long.len() <= 2 && rest.len() > 5, "a path and a command stay whole: {shown}");
    let usage = narrow(&tree, "fsure verify photos --ignore x").expect("an answer");
    assert!(usage.contains("\n    fsure verify photos --exclude x\n"), "{usage}");
    for line in ["fsure", "fsure help exit-codes"] {
        let shown = narrow(&tree, line).expect("an answer");
        assert_eq!(shown.lines().filter(is_long).collect::<Vec<_>>(), [""; 0], "{shown}");
    }
    let columns = fsure_with(("COLUMNS", "40".as_ref()), &[""; 0]);
    assert!(columns.stdout.contains("\n  fsure update photos\n      record"), "{columns:?}");
    let wide = fsure(&[""; 0]);
    assert!(wide.stdout.contains("  fsure update photos             record"), "{wide:?}");
}

#[test]
fn a_dry_run_names_what_it_would_record() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    tree.write("photos/later.raw", content(10, 7));
    let dry = typed(tree.root(), "fsure update -n photos");
    assert!(dry.stdout.contains("new          photos/later.raw"), "{dry:?}");
    assert!(!typed(tree.root(), "fsure update photos").stdout.contains("later.raw"));
}

#[test]
fn a_new_record_is_called_new_and_says_how_to_verify_it() {
    let tree = photos();
    let run = typed(tree.root(), "fsure update photos --catalog c.db");
    assert!(run.stdout.contains("The record is new"), "{run:?}");
    assert_eq!(commands(&run), ["fsure verify photos --catalog c.db"]);
    assert_eq!(type_it(&tree, &run).code, 0);
    let again = typed(tree.root(), "fsure update photos --catalog c.db");
    assert!(!again.stdout.contains("The record is new"), "{again:?}");
}

#[test]
fn a_pattern_of_one_run_is_not_remembered_and_the_report_says_so() {
    let tree = photos();
    let run = typed(tree.root(), "fsure update photos --exclude '*.jpg'");
    assert!(run.stdout.contains("1 name was left out by '--exclude'"), "{run:?}");
    assert!(run.stdout.contains("put the patterns into photos/.fsureignore"), "{run:?}");
    tree.write("photos/.fsureignore", "*.jpg\n");
    let run = typed(tree.root(), "fsure update photos");
    assert!(!run.stdout.contains("left out by"), "{run:?}");
    assert_eq!(typed(tree.root(), "fsure verify photos").code, 0);
}

#[test]
fn an_accepted_path_that_is_not_there_leaves_the_run_incomplete() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    assert_eq!(typed(tree.root(), "fsure update --accept photos/nosuch").code, 5);
    let run = typed(tree.root(), "fsure update photos --accept a.raw");
    assert_eq!((run.code, run.stderr.contains("a path from the current folder")), (2, true));
}

/// Damages a page of a record that no command needs.
fn damage_a_page(recorded: &Recorded) {
    let connection = recorded.connect();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
    let page =
        number("SELECT rootpage FROM sqlite_master WHERE name = 'accepted'").expect("a page");
    let size = number("PRAGMA page_size").expect("a size");
    drop(connection);
    let mut bytes = fs::read(&recorded.catalog).expect("read");
    let start = ((page - 1) * size) as usize;
    bytes[start..start + 8].fill(0xff);
    fs::write(&recorded.catalog, bytes).expect("write");
}

#[test]
fn every_command_refuses_a_record_with_a_damaged_page_and_leads_to_recover() {
    let tree = photos();
    let recorded = Recorded::inside(&tree.path("photos"));
    recorded.record();
    recorded.verify();
    damage_a_page(&recorded);
    for line in [
        "status photos",
        "status --age photos",
        "update photos",
        "verify photos",
        "protect photos",
        "export photos --format b3sum",
        "export photos --format sha256sums",
        "dupes photos",
        "compare photos .",
    ] {
        let run = typed(tree.root(), &format!("fsure {line}"));
        let advised = commands(&run).iter().any(|command| command.starts_with("fsure recover "));
        assert_eq!((run.code, advised), (6, true), "{line}: {run:?}");
        assert!(!run.stdout.contains("\\n"), "{line}: {run:?}");
    }
    let run = typed(tree.root(), "fsure verify photos");
    assert_eq!(type_it(&tree, &run).code, 7);
    assert_eq!(typed(tree.root(), "fsure status photos").code, 0);
}

#[test]
fn a_digest_that_cannot_be_computed_is_explained_by_the_verdict() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    tree.flip("photos/a.raw", 3);
    let run = typed(tree.root(), "fsure export photos --format sha256sums");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("a.raw: left out, its record has no sha256, and the file is"));
    assert!(run.stdout.contains("b.raw"), "{run:?}");
}

#[test]
fn protect_of_an_empty_mount_point_is_offline_and_its_command_works() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog c.db; mv photos away; mkdir photos");
    let run = typed(tree.root(), "fsure protect photos --catalog c.db");
    assert_eq!((run.code, run.stderr.contains("OFFLINE")), (5, true), "{run:?}");
    let second = type_it(&tree, &run);
    assert!(!second.stderr.contains("OFFLINE"), "{second:?}");
}

#[test]
fn a_copy_that_is_an_empty_mount_point_is_named() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; mkdir mnt");
    let run = typed(tree.root(), "fsure heal photos --from mnt");
    assert!(run.stderr.contains("the replica mnt is empty"), "{run:?}");
}

#[test]
fn a_name_in_another_unicode_form_is_offered_as_it_is() {
    let tree = photos();
    tree.write("photos/cafe\u{301}.txt", content(10, 7));
    typed(tree.root(), "fsure update photos");
    let run = typed(tree.root(), "fsure verify photos/caf\u{e9}.txt");
    let (_, path) = run.stderr.split_once("can be copied: ").expect("a path");
    assert_eq!(typed(tree.root(), &format!("fsure verify {}", path.trim())).code, 0, "{run:?}");
}

#[test]
fn a_list_in_place_of_its_folder_changes_places() {
    let tree = photos();
    typed(tree.root(), "cd photos && sha256sum *.raw > ../SUMS");
    let run = typed(tree.root(), "fsure import photos SUMS");
    let (_, command) = run.stderr.split_once("is about: ").expect("a command");
    let imported = typed(tree.root(), command.lines().next().unwrap_or_default());
    assert!(imported.stdout.contains("Recorded 2 files"), "{imported:?}");
}

#[test]
fn a_link_to_nothing_is_named_with_what_it_leads_to() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; ln -s /nowhere/x dang");
    for line in [
        "verify dang",
        "verify photos --catalog dang",
        "import dang",
        "verify photos --against dang",
        "heal photos --from dang",
        "compare photos dang",
    ] {
        let run = typed(tree.root(), &format!("fsure {line}"));
        assert_eq!(run.code, 5, "{line}: {run:?}");
        assert!(run.stderr.contains("it leads to /nowhere/x, which does not exist"), "{run:?}");
    }
}

#[test]
fn what_reads_only_the_record_works_while_the_disk_is_away() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog c.db; mv photos away");
    for line in ["export --format b3sum", "log", "status --age"] {
        let run = typed(tree.root(), &format!("fsure {line} photos --catalog c.db"));
        assert_eq!(run.code, 0, "{line}: {run:?}");
    }
    assert_eq!(typed(tree.root(), "fsure verify photos --catalog c.db").code, 5);
}

#[test]
fn an_empty_mount_point_is_called_empty_and_one_command_goes_on() {
    let tree = photos();
    typed(tree.root(), "fsure update photos --catalog c.db; mv photos away; mkdir photos");
    let run = typed(tree.root(), "fsure verify photos --catalog c.db");
    assert!(run.stdout.contains("OFFLINE: nothing is here"), "{run:?}");
    let gone = type_it(&tree, &run);
    assert_eq!((run.code, gone.code), (5, 1), "{gone:?}");
    // What it advises keeps the options, or it would be OFFLINE again.
    assert_eq!(type_it(&tree, &gone).code, 0);
}

#[test]
fn a_copy_without_the_file_says_so() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; mkdir copy; echo x > copy/other");
    let run = typed(tree.root(), "fsure heal photos/a.raw --from copy");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("the replica copy has no file a.raw"), "{run:?}");
}

#[test]
fn a_status_beside_an_update_says_so() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    let line = "exec 9>photos/.fsure/catalog.db.lock; flock 9; fsure status photos";
    let run = typed(tree.root(), line);
    let is_told = run.stderr.contains("this is how it stands so far");
    assert_eq!((run.code, is_told), (0, true), "{run:?}");
}

#[test]
fn a_list_of_blake3_without_a_name_is_known_by_a_file_of_it() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; fsure export photos --format b3sum -o LIST");
    typed(tree.root(), "rm -r photos/.fsure; sed 's/^./0/' LIST > WRONG");
    for line in ["verify photos --against - < LIST", "import - --root photos < LIST"] {
        let run = typed(
            tree.root(),
            &format!(
                "cd photos && fsure {}",
                line.replace("photos", ".").replace("< LIST", "< ../LIST")
            ),
        );
        assert_eq!(run.code, 0, "{line}: {run:?}");
        assert!(run.stderr.contains("is read as '--format b3sum'"), "{line}: {run:?}");
    }
    assert_eq!(typed(tree.root(), "fsure verify photos").code, 0);
    // Of files that are away, nothing proves it, and a second import puts it right.
    typed(tree.root(), "mkdir away");
    let import = "cd away; fsure import ../LIST --root . --allow-missing --format";
    typed(tree.root(), &format!("{import} sha256sums"));
    let again = typed(tree.root(), &format!("{import} b3sum"));
    assert!(again.stdout.contains("Recorded 3 files"), "{again:?}");
    typed(tree.root(), "cp -r photos/* away");
    let run = typed(tree.root(), "fsure verify away");
    assert!(run.stdout.contains("ok           3 files"), "{run:?}");
}

#[test]
fn an_empty_pipe_is_said_to_be_one() {
    let tree = photos();
    for line in ["fsure import - --root photos", "fsure verify photos --against -"] {
        let run = typed(tree.root(), &format!("false | {line}"));
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(text.contains("is empty (did the command before it fail?)"), "{text}");
        assert_eq!(run.code, 6);
    }
}

#[test]
fn heal_advises_no_option_that_was_not_typed_and_fills_no_mount_point() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; fsure protect photos; rm photos/a.raw photos/b.raw");
    let run = typed(tree.root(), "fsure heal photos");
    assert!(!run.stdout.contains("--allow"), "{run:?}");
    typed(tree.root(), "mkdir mnt");
    let run = typed(tree.root(), "fsure heal mnt --from photos");
    assert!(run.stderr.contains("if a disk should be mounted there, mount it"), "{run:?}");
    assert!(!run.stderr.contains("cp -r"), "{run:?}");
    typed(tree.root(), "rm -r photos/.fsure/*.parity");
    let run = typed(tree.root(), "fsure heal photos/2026");
    // Two files are gone: recovery data are made of the rest.
    assert_eq!(type_it(&tree, &run).code, 5, "{run:?}");
}

#[test]
fn a_wrong_file_for_a_catalog_is_called_so_in_every_command() {
    let tree = photos();
    typed(tree.root(), "fsure update photos");
    for command in ["verify", "status", "log", "heal", "update", "export --format b3sum"] {
        let line = format!("fsure {command} photos --catalog photos/a.raw");
        let run = typed(tree.root(), &line);
        assert_eq!(run.code, 6, "{line}: {run:?}");
        assert!(run.stderr.contains("if '--catalog' names the wrong file"), "{line}: {run:?}");
    }
}
