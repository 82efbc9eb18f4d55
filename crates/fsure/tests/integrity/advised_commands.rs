//! A command that a message names works as it is printed, in any folder: it names the
//! root. Each is typed here in another folder than the root, whose name needs quotes.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs;
use std::path::Path;

use crate::support::signable::make_keys;
use crate::support::{Recorded, Run, Tree, content, fsure, typed};

/// A recorded folder with a name that has to be quoted.
fn recorded() -> (Tree, Recorded) {
    let tree = Tree::new();
    for name in ["a", "b"] {
        tree.write(Path::new("it's mine").join(name), content(3000, 1));
    }
    let recorded = Recorded::inside(&tree.path("it's mine"));
    recorded.record();
    (tree, recorded)
}

/// Types each command of `fsure` that is quoted in what was said, has a line of its own or ends a
/// hint, and expects that it makes sense and is about that root.
fn type_all(run: &Run, expected: &[&str]) {
    let printed = format!("{}{}", run.stdout, run.stderr);
    let quoted: Vec<_> = printed
        .lines()
        .map(|line| match line.strip_prefix("    fsure ") {
            Some(rest) => format!("'fsure {rest}'"),
            None => match line.rsplit_once(": fsure ") {
                Some((why, rest)) => format!("{why}: 'fsure {rest}'"),
                None => line.to_owned(),
            },
        })
        .collect();
    let printed = quoted.join("\n");
    let mut left = &printed[..];
    let mut names = Vec::new();
    while let Some(start) = left.find("'fsure ") {
        left = &left[start + 1..];
        let root = "it'\\''s mine'";
        let in_root = left.find(root).unwrap_or_else(|| panic!("it names no root: {printed}"));
        let rest = in_root + root.len();
        let end = rest + left[rest..].find('\'').expect("an end");
        let command = &left[..end];
        names.push(command.split(' ').nth(1).expect("a name").to_owned());
        left = &left[end + 1..];
        let done = typed(Path::new("/"), command);
        // A key that is to be put in is not a file.
        let is_whole = done.code != 2 && !done.stderr.contains("no record of");
        assert!(is_whole || command.ends_with(" KEY"), "{command}: {done:?}");
    }
    assert_eq!(names, expected, "{printed}");
}

#[test]
fn a_message_about_a_bad_record_names_its_root() {
    let (tree, recorded) = recorded();
    let list = tree.write("list", format!("{}  a\n", "0".repeat(64)));
    make_keys(&tree, "mine");
    let key = tree.path("mine.key");
    let (root, home) = (recorded.root.as_os_str(), tree.path("home"));
    recorded.edit("UPDATE record SET size = size + 1 WHERE path = CAST('a' AS BLOB)");
    let import = ["import".as_ref(), list.as_os_str(), "--root".as_ref(), root];
    type_all(&fsure(&import), &["verify"]);
    type_all(&fsure(&["protect".as_ref(), root]), &["verify"]);
    let seal = ["seal".as_ref(), root, "--sign".as_ref(), key.as_os_str()];
    type_all(&support::fsure_of(&home, &seal), &["verify", "update"]);
}

#[test]
fn a_message_about_an_interrupted_heal_names_its_root() {
    let (_tree, recorded) = recorded();
    fs::write(recorded.catalog.with_extension("db.healing"), "no journal").expect("write");
    type_all(&recorded.text("update", &[""; 0]), &["heal"]);
    let (_tree, recorded) = self::recorded();
    fs::write(recorded.catalog.with_extension("db.healing"), "no journal").expect("write");
    type_all(&recorded.text("verify", &[""; 0]), &["heal"]);
}

#[test]
fn the_last_line_of_an_import_names_its_root() {
    let tree = Tree::new();
    tree.write("it's mine/a", "");
    let list = tree.write("it's mine/list", format!("{}  a\n", "0".repeat(64)));
    type_all(&fsure(&["import".as_ref(), list.as_os_str()]), &["verify"]);
}

#[test]
fn messages_of_recover_name_their_root() {
    let (_tree, recorded) = recorded();
    fs::remove_file(recorded.catalog.with_extension("db.backup")).expect("remove");
    // One page is left, which has rows and not how many there were.
    let whole = recorded.catalog_bytes();
    let runs = whole.chunks(4096).enumerate().skip(1).map(|(number, page)| {
        let mut bytes = vec![0; whole.len()];
        bytes[number * 4096..][..4096].copy_from_slice(page);
        fs::write(&recorded.catalog, bytes).expect("damage");
        recorded.text("recover", &[""; 0])
    });
    let run = runs.into_iter().find(|run| run.code == 5).expect("a page of rows");
    assert!(run.stdout.contains("NOT PROVED"), "{run:?}");
    type_all(&run, &["update", "verify"]);
}

/// Types the command that a hint has behind `before`, up to the end of it.
fn type_hint(run: &Run, before: &str, end: &str) -> Run {
    let (_, rest) = run.stderr.split_once(before).unwrap_or_else(|| panic!("{run:?}"));
    let command = rest.split(end).next().expect("a command");
    typed(Path::new("/"), command.trim_end())
}

#[test]
fn recover_is_advised_with_the_root_of_a_catalog_that_is_kept_elsewhere() {
    let tree = Tree::new();
    tree.write("photos/a", content(3000, 1));
    let recorded = Recorded::outside(&tree.path("photos"), &tree.path("cat.db"));
    recorded.record();
    fs::remove_file(&recorded.catalog).expect("remove");
    let run = recorded.text("verify", &[""; 0]);
    assert_eq!(run.code, 6, "{run:?}");
    assert!(run.stderr.contains("if it was moved, name its new place"), "{run:?}");
    let done = type_hint(&run, "from its backup instead, run: ", "\n");
    assert_eq!(done.code, 5, "not proved to be whole: {done:?}");
    assert!(recorded.catalog.exists());
    // Nor is it forgotten if all of it was moved.
    for end in ["db", "db.backup"] {
        fs::rename(tree.path(format!("cat.{end}")), tree.path(format!("new.{end}"))).expect("move");
    }
    let run = recorded.text("verify", &[""; 0]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("if it was moved, name its new place"), "{run:?}");
}

#[test]
fn a_catalog_needs_its_folder() {
    let tree = Tree::new();
    tree.write("photos/a", "a");
    let recorded = Recorded::outside(&tree.path("photos"), &tree.path("cat.db"));
    recorded.record();
    for command in ["verify", "status", "scrub", "update"] {
        let run = fsure(&[command.as_ref(), "--catalog".as_ref(), recorded.catalog.as_os_str()]);
        assert_eq!(run.code, 2, "{run:?}");
        let (_, advised) = run.stderr.split_once("current one: ").expect("a command");
        assert_eq!(typed(&recorded.root, advised.trim_end()).code, 0, "{advised}");
    }
}

#[test]
fn a_record_of_which_nothing_is_left_can_be_begun_anew() {
    let tree = Tree::new();
    tree.write("photos/a", content(3000, 1));
    let photos = tree.path("photos");
    let outside = Recorded::outside(&photos, &tree.path("cat.db"));
    for recorded in [Recorded::inside(&photos), outside] {
        recorded.record();
        for file in [recorded.catalog.clone(), recorded.catalog.with_extension("db.backup")] {
            fs::write(file, "no record").expect("write");
        }
        let run = recorded.text("recover", &[""; 0]);
        assert_eq!(run.code, 6, "{run:?}");
        assert!(run.stderr.contains("damage from before is not detected any more"), "{run:?}");
        let done = type_hint(&run, "can be begun: '", "'. It takes");
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(recorded.text("verify", &[""; 0]).code, 0);
    }
}

#[test]
fn a_folder_without_any_record_is_recovered_from_a_backup_kept_elsewhere() {
    let tree = Tree::new();
    tree.write("photos/a", content(3000, 1));
    let recorded = Recorded::inside(&tree.path("photos"));
    recorded.record();
    let backup = tree.path("kept.backup");
    fs::rename(recorded.catalog.with_extension("db.backup"), &backup).expect("move");
    fs::remove_dir_all(tree.path("photos/.fsure")).expect("remove");
    let run = recorded.text("recover", &[""; 0]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("no record of"), "{run:?}");
    assert!(!tree.path("photos/.fsure").exists());
    let run = recorded.text("recover", &["--from".as_ref(), backup.as_os_str()]);
    assert_eq!(run.code, 5, "not proved to be whole: {run:?}");
    assert_eq!(recorded.text("verify", &[""; 0]).code, 0);
    // What is no backup leaves nothing behind.
    fs::remove_dir_all(tree.path("photos/.fsure")).expect("remove");
    let bad = tree.write("bad", "no backup");
    let run = recorded.text("recover", &["--from".as_ref(), bad.as_os_str()]);
    assert_eq!(run.code, 6, "{run:?}");
    assert!(!tree.path("photos/.fsure").exists());
}

#[test]
fn a_heal_without_a_record_says_how_to_get_one() {
    let tree = Tree::new();
    tree.write("photos/a", "damaged");
    tree.write("copy/a", "sound!!");
    let run = typed(tree.root(), "fsure heal photos");
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("'fsure compare photos COPY'"), "{run:?}");
    let run = typed(tree.root(), "fsure heal photos --from copy");
    assert_eq!(run.code, 5, "{run:?}");
    for command in ["fsure compare photos copy", "fsure update copy", "cp -r copy/.fsure photos"] {
        assert!(run.stderr.contains(&format!("'{command}'")), "{command}: {run:?}");
        let code = typed(tree.root(), command).code;
        assert!(code < 2, "{command}: {code}");
    }
    let run = typed(tree.root(), "fsure heal photos --from copy --yes");
    assert_eq!(run.code, 7, "{run:?}");
    assert_eq!(tree.read("photos/a"), b"sound!!");
}
