//! Facts of this build for `fsure --version --verbose`. None of them is a date, a host or a path:
//! two builds of one commit are equal byte for byte.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=FSURE_COMMIT");
    println!("cargo::rustc-env=FSURE_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rustc-env=FSURE_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=FSURE_PROFILE={}", profile().unwrap_or_else(|| variable("PROFILE")));
    let compiler = output(Command::new(variable("RUSTC")).arg("--version"));
    println!("cargo::rustc-env=FSURE_COMPILER={}", compiler.unwrap_or_default());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Returns the commit: what a packager says, or what cargo kept in a published crate, or what git
/// has.
fn commit() -> Option<String> {
    if let Ok(given) = env::var("FSURE_COMMIT") {
        return Some(given);
    }
    println!("cargo::rerun-if-changed=.cargo_vcs_info.json");
    if let Ok(info) = std::fs::read_to_string(".cargo_vcs_info.json") {
        let hash = info.split('"').skip_while(|part| *part != "sha1").nth(2)?;
        return Some(hash.to_owned());
    }
    // The branch, and what it is at. A change that is in no commit is not looked for: it would
    // make every build begin with this one again.
    let root = Path::new("../..");
    let head = std::fs::read_to_string(root.join(".git/HEAD")).ok()?;
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    if let Some(branch) = head.trim().strip_prefix("ref: ") {
        println!("cargo::rerun-if-changed=../../.git/{branch}");
    }
    output(Command::new("git").args(["-C", "../..", "rev-parse", "HEAD"]))
}

/// Returns the profile, which cargo has in the name of the folder of the build only.
fn profile() -> Option<String> {
    let folder = variable("OUT_DIR");
    let name = Path::new(&folder).ancestors().nth(3)?.file_name()?.to_str()?;
    Some(if name == "debug" { "dev" } else { name }.to_owned())
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
