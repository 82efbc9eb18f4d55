//! `ram`, among mounts that no other process sees and that end with the script.
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::json_schema::Printed;
use crate::support::ram_machine::FSURE;
use crate::support::{Run, code};

/// All kinds of lines of `ram`.
const KINDS: [&str; 18] = [
    "preset",
    "plan",
    "bound",
    "ram_folder",
    "told",
    "ram_summary",
    "synced",
    "ram_verified",
    "unbound",
    "recovered",
    "pinned",
    "unpinned",
    "disk",
    "disk_created",
    "disk_destroyed",
    "disk_summary",
    "doctor_finding",
    "doctor_summary",
];

/// Ends with another code than 0 only if a command does that must not: `status`, `verify` and
/// `doctor` report what is wrong by their codes.
const SCRIPT: &str = r#"
mount -t tmpfs test /run
mount -t tmpfs test /var/lib
cd /var/lib
mkdir disk
truncate -s 64M image
mkfs.ext4 -q image
mount -o loop image disk
# No name in UTF-8.
work=$(printf 'disk/w\377rk')
mkdir "$work"
echo old > "$work/file"
ram() { "$FSURE" --json ram "$@"; }
ram doctor || true
ram bind /etc --plan || true
ram bind "$work" --plan
mkdir -p home/.cache
HOME=$PWD/home SUDO_UID= ram bind --preset caches --plan || true
ram bind "$work"
echo new > "$work/file"
ram status "$work" || true
ram sync "$work"
ram verify "$work" || true
ram recover "$work"
ram unbind "$work"
ram status
ram pin "$work"
ram unpin "$work"
ram disk create fast --size 1M
ram disk list
ram disk destroy fast
"#;

/// Runs the commands.
pub(crate) fn print() -> Printed {
    let mut printed = Printed::default();
    if !rustix::process::geteuid().is_root() {
        printed.excuse(&KINDS, "needs root, to mount");
        return printed;
    }
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if let Some(lacking) = ["mkfs.ext4", "mount"].into_iter().find(|program| !has(program)) {
        printed.excuse(&KINDS, &format!("{lacking} is not there"));
        return printed;
    }
    let output = Command::new(FSURE)
        .args(["family", "outer", &std::process::id().to_string(), "/", "--", "sh", "-euc", SCRIPT])
        .env("FSURE", FSURE)
        .output()
        .expect("start fsure");
    let run = Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    printed.keep("ram", &run);
    printed.excuse(&["told"], "no daemon of a RAM folder had anything to report");
    printed
}
