//! `ram disk` as its users meet it, in a mount namespace that ends with the test.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use crate::support::{code, skip};
use tempfile::TempDir;

/// Shell function for commands that must fail: `set -e` ignores a failure of `!`.
const NO: &str = r#"no() { if "$@"; then echo "it succeeded: $*"; exit 1; fi; }"#;

/// One that works in a folder, and its end, however the script ends.
const SLEEPER: &str = r#"
    sleeper=
    is_asleep() { test "$(cat /proc/$sleeper/comm)" = sleep; }
    works_in() { (cd "$1"; exec sleep 1000) & sleeper=$!; until is_asleep; do sleep 0.01; done; }
    end_it() { if test "$sleeper"; then kill $sleeper; wait $sleeper || true; fi; sleeper=; }
    trap end_it EXIT
"#;

/// Runs a script in a mount namespace of its own: `$F` is the command, `$D` an
/// empty folder. Every line of it must succeed.
fn privately(test: &str, script: &str) {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-euc",
            &format!("{NO}\n{SLEEPER}\n{script}"),
        ])
        .env("F", env!("CARGO_BIN_EXE_fsure"))
        .env("D", &place)
        .current_dir(folder.path())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return skip(test, &format!("unshare: {error}")),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.starts_with("unshare:") {
        return skip(test, &stderr);
    }
    let reported = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code(output.status), 0, "{reported}{stderr}");
    assert!(Path::new(&place).exists());
}

#[test]
fn one_is_made_listed_and_destroyed() {
    privately(
        "one_is_made_listed_and_destroyed",
        r#"
        chmod 751 "$D"; chown 12:34 "$D"
        $F ram disk create "$D" --size 8M
        test "$(stat -c %a:%u:%g "$D")" = 751:12:34
        test "$(stat -f -c %T "$D")" = tmpfs
        grep -q " $D .* - tmpfs fsure:disk:place .*size=8192k" /proc/self/mountinfo
        head -c 1000000 /dev/zero > "$D/file"
        no sh -c 'head -c 9000000 /dev/zero > "$D/large"'
        rm "$D/large"
        $F --json ram disk list | grep -q '"name":"place".*"bytes":8388608,"used":1003520'
        # Files go only with a word; who uses it is named; what is not ours is not touched.
        no $F ram disk destroy "$D" 2> said
        grep -q "holds 980.0 KiB that exist nowhere else" said
        works_in "$D"
        no $F ram disk destroy "$D" --discard 2> said
        grep -q "is in use: process $sleeper (sleep) works in" said
        end_it
        $F ram disk destroy place --discard
        no grep -q " $D " /proc/self/mountinfo
        no $F ram disk destroy "$D" 2> said
        grep -q "not a RAM disk that fsure made" said
        mount -t tmpfs tmpfs "$D"
        no $F ram disk destroy "$D" 2> said
        no $F ram disk create "$D" --size 8M 2> said
        grep -q "tmpfs is mounted on $D already" said
        "#,
    );
}

#[test]
fn a_named_one_has_a_folder_of_its_own() {
    privately(
        "a_named_one_has_a_folder_of_its_own",
        r#"
        name=test-$$
        $F ram disk create $name --size 1M
        # Ours is no name that begins in some way.
        echo x > /run/fsure/disk/$name/.fsure-disk-notes
        no $F ram disk destroy $name 2> said
        grep -q "that exist nowhere else" said
        rm /run/fsure/disk/$name/.fsure-disk-notes
        # It can be written to as before.
        echo x > /run/fsure/disk/$name/file
        no $F ram disk create $name --size 1M 2> said
        grep -q "a RAM disk $name exists already" said
        rm /run/fsure/disk/$name/file
        $F ram disk destroy $name
        no test -e /run/fsure/disk/$name
        # What others still see takes no files that would be lost unseen.
        $F ram disk create "$D" --size 1M
        unshare --mount --propagation private sleep 1000 & sleeper=$!
        until is_asleep; do sleep 0.01; done
        no nsenter -t $sleeper -m test -e "$D/file"
        $F ram disk destroy "$D" 2> said || grep -q "mounted elsewhere" said
        no nsenter -t $sleeper -m touch "$D/file"
        end_it
        "#,
    );
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    privately(
        "what_cannot_be_is_refused",
        r#"
        refused() { words=$1; shift; no $F ram disk create "$@" 2> said; grep -q "$words" said; }
        refused "more than the available memory" "$D" --size 1000T
        refused "the minimum is 64K" "$D" --size 1K
        refused "is not a folder" "$D/none" --size 1M
        works_in "$D"
        refused "is in use: process $sleeper (sleep) works in" "$D" --size 1M
        end_it
        touch "$D/file"
        refused "is not empty" "$D" --size 1M
        no grep -q fsure:disk: /proc/self/mountinfo
        "#,
    );
}
