//! `fsure generate`, hidden: shell completions and manual pages from the same
//! definitions that parse the command line. For packagers.

use std::io::{self, Write};

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use fsure_core::ExitCode;

use super::Cli;

/// Print a shell's completions or a manual page
#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Kind of output
    #[arg(value_enum)]
    what: GeneratedKind,
    /// The shell (bash, zsh, fish, elvish, powershell), or the page (fsure,
    /// fsure-update, ...)
    name: String,
}

/// A kind of output that can be generated.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GeneratedKind {
    Completions,
    Man,
}

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs) -> ExitCode {
    let printed = match args.what {
        GeneratedKind::Completions => completions(&args.name),
        GeneratedKind::Man => manual(&args.name),
    };
    let Some(text) = printed else {
        let _ = writeln!(io::stderr(), "fsure: there is no {} to generate", args.name);
        return ExitCode::Usage;
    };
    match io::stdout().write_all(&text) {
        Ok(()) => ExitCode::Clean,
        Err(_) => ExitCode::Incomplete,
    }
}

fn completions(shell: &str) -> Option<Vec<u8>> {
    let shell = Shell::from_str(shell, true).ok()?;
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fsure", &mut text);
    Some(text)
}

fn manual(page: &str) -> Option<Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    let man = match page.strip_prefix("fsure")? {
        "" => Man::new(command),
        sub => {
            let sub = command.find_subcommand(sub.strip_prefix('-')?)?.clone();
            Man::new(sub.display_name(page.to_owned()).bin_name(page.replacen('-', " ", 1)))
        }
    };
    let mut text = Vec::new();
    man.title(page.to_uppercase()).render(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_page_and_every_shell_its_completions() {
        for page in ["fsure", "fsure-update", "fsure-verify", "fsure-status"] {
            let text = String::from_utf8(manual(page).unwrap()).unwrap();
            assert!(text.contains(".TH") && text.contains("\\-\\-json"), "{page}: {text}");
        }
        assert!(manual("fsure-none").is_none());
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let text = String::from_utf8(completions(shell).unwrap()).unwrap();
            assert!(text.contains("verify"), "{shell}");
        }
    }
}
