//! Tasks of the repository, run as `cargo xtask TASK`: what packagers need and what the program
//! itself does not have to carry.
#![forbid(unsafe_code)]

mod completions;
mod man;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask man DIR            write a manual page for each command into DIR
       cargo xtask completions DIR    write completions for each shell into DIR
";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let done = match &args[..] {
        [task, folder] if task == "man" => write_into(folder.as_ref(), man::write),
        [task, folder] if task == "completions" => write_into(folder.as_ref(), completions::write),
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If this fails, there is no output left to report it on.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn write_into(folder: &Path, write: fn(&Path) -> io::Result<()>) -> io::Result<()> {
    std::fs::create_dir_all(folder).and_then(|()| write(folder)).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot write into {}: {error}", folder.display()))
    })
}
