//! Completions for shells.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::{Arg, Command, ValueEnum as _, ValueHint};
use clap_complete::{Shell, generate_to};

/// Writes a file for each shell into a folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    for shell in Shell::value_variants() {
        let file = generate_to(*shell, &mut fsure::cli::command(), "fsure", folder)?;
        let text = std::fs::read_to_string(&file)?;
        match shell {
            Shell::Fish => std::fs::write(&file, text + &fish_arguments(&fsure::cli::command()))?,
            Shell::Bash => {
                let command = fsure::cli::command();
                std::fs::write(&file, bash_paths(text, &command, "fsure", 1))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Completes paths in bash: `clap_complete` offers nothing but options for the first argument.
/// `name` is that of the command in the script, and `depth` the number of words of it.
fn bash_paths(text: String, command: &Command, name: &str, depth: usize) -> String {
    command.get_subcommands().fold(text, |text, sub| {
        let name = format!("{name}__subcmd__{}", sub.get_name().replace('-', "__"));
        let text = bash_paths(text, sub, &name, depth + 1);
        let is_leaf = sub.get_subcommands().next().is_none();
        let hint = sub.get_positionals().map(Arg::get_value_hint).next();
        let list = match hint.filter(|_| is_leaf) {
            Some(ValueHint::DirPath) => "compgen -d",
            Some(ValueHint::AnyPath | ValueHint::FilePath) => "compgen -f",
            _ => return text,
        };
        with_paths(&text, &name, depth + 1, list)
    })
}

/// Has the part of a script for one command offer paths, and its options behind a dash only.
fn with_paths(text: &str, name: &str, depth: usize, list: &str) -> String {
    let begins = format!("        {name})\n            opts=");
    let start = text.find(&begins).unwrap_or_else(|| panic!("bash: no part for {name}"));
    let (before, rest) = text.split_at(start);
    let end = rest.find("\n            ;;\n").unwrap_or_else(|| panic!("bash: no end of {name}"));
    let (part, after) = rest.split_at(end);
    let options = format!(" || ${{COMP_CWORD}} -eq {depth} ]]");
    let last = "COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )\n            return 0";
    let paths = format!(
        "local IFS=$'\\n'\n            COMPREPLY=($({list} -- \"${{cur}}\"))\n            \
         if [[ \"${{BASH_VERSINFO[0]}}\" -ge 4 ]]; then compopt -o filenames; fi\n            \
         return 0"
    );
    let changed = part.replacen(&options, " ]]", 1);
    assert!(changed != part && changed.ends_with(last), "bash: another form of {name}");
    format!("{before}{}{paths}{after}", changed.strip_suffix(last).expect("its end"))
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
