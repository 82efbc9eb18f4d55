//! Completions for shells.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::{Command, ValueEnum as _};
use clap_complete::{Shell, generate_to};

/// Writes a file for each shell into a folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    for shell in Shell::value_variants() {
        let file = generate_to(*shell, &mut fsure::cli::command(), "fsure", folder)?;
        if *shell == Shell::Fish {
            let text = std::fs::read_to_string(&file)?;
            std::fs::write(&file, text + &fish_arguments(&fsure::cli::command()))?;
        }
    }
    Ok(())
}

/// Completes the arguments of commands in fish, for which `clap_complete` completes options only.
fn fish_arguments(command: &Command) -> String {
    let mut lines = String::new();
    for sub in command.get_subcommands() {
        for arg in sub.get_positionals() {
            let values: Vec<_> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            if !values.is_empty() {
                let (name, values) = (sub.get_name(), values.join(" "));
                let _ = writeln!(
                    lines,
                    "complete -c fsure -n \"__fish_fsure_using_subcommand {name}\" -f -a \"{values}\""
                );
            }
        }
    }
    lines
}
