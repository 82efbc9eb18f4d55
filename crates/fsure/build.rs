//! Facts of this build for `fsure --version --verbose`. None of them is a date, a host or a path:
//! two builds of one commit are equal byte for byte.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
const ROOT: &str = "../..";

/// The files of a crate that get into the program.
const COMPILED: [&str; 5] = ["Cargo.toml", "bpf", "build.rs", "shim", "src"];

fn main() {
    println!("cargo::rerun-if-env-changed=FSURE_COMMIT");
    let given = env::var("FSURE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(published_commit).or_else(commit_of_repository);
    println!("cargo::rustc-env=FSURE_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rustc-env=FSURE_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=FSURE_PROFILE={}", profile().unwrap_or_else(|| variable("PROFILE")));
    let compiler = output(Command::new(variable("RUSTC")).arg("--version"));
    println!("cargo::rustc-env=FSURE_COMPILER={}", compiler.unwrap_or_default());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Returns a commit, and that the sources are not quite those of the commit.
fn marked(commit: &str, is_modified: bool) -> String {
    format!("{commit}{}", if is_modified { "-modified" } else { "" })
}

/// Returns the commit that cargo kept in a published crate.
fn published_commit() -> Option<String> {
    let info = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let commit = info.split('"').skip_while(|part| *part != "sha1").nth(2)?;
    let info: String = info.split_whitespace().collect();
    Some(marked(commit, info.contains(r#""dirty":true"#)))
}

/// Returns the commit of the repository whose root is that of the workspace: one around it is
/// of another project, such as a distribution's.
fn commit_of_repository() -> Option<String> {
    let way_up = git(&["rev-parse", "--show-cdup"])?;
    let commit = git(&["rev-parse", "HEAD"]).filter(|_| way_up.is_empty())?;
    let mut watched = vec![git_path("HEAD"), git_path("packed-refs")];
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        // A branch without a file of its own gets one in the folder at the next commit.
        let file = git_path(&branch);
        let there = file.as_deref().and_then(|file| file.ancestors().find(|path| path.exists()));
        watched.push(there.map(Path::to_owned));
    }
    let sources = sources();
    let watched = watched.into_iter().flatten();
    let all = watched.chain(sources.iter().map(|source| Path::new(ROOT).join(source)));
    // Cargo takes a path that does not exist for one that has changed.
    for path in all.filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let status = ["--no-optional-locks", "status", "--porcelain", "--"];
    let status = git(&status.into_iter().chain(sources.iter().map(|s| &**s)).collect::<Vec<_>>());
    Some(marked(&commit, status.is_none_or(|changes| !changes.is_empty())))
}

/// Returns the files and folders that get into the program, from the root. A change of any other
/// one does not build it anew.
fn sources() -> Vec<String> {
    let mut sources = vec!["Cargo.toml".to_owned(), "Cargo.lock".to_owned()];
    let crates = std::fs::read_dir(Path::new(ROOT).join("crates")).into_iter().flatten().flatten();
    let names = crates.filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| name != "xtask") {
        sources.extend(COMPILED.iter().map(|part| format!("crates/{name}/{part}")));
    }
    sources.sort();
    sources
}

/// Returns the place of a file of the repository; a second work tree shares some of them.
fn git_path(name: &str) -> Option<PathBuf> {
    Some(Path::new(ROOT).join(git(&["rev-parse", "--git-path", name])?))
}

fn git(args: &[&str]) -> Option<String> {
    output(Command::new("git").args(["-C", ROOT]).args(args))
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
