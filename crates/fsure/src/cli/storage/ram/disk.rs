//! `fsure ram disk`.

use std::path::{Path, PathBuf};

use crate::report::storage::disk as report;
use clap::{Args, Subcommand};
use fsure_core::{ExitCode, Result, units};

use super::super::OutputArgs;
use super::super::screen::Screen;

/// Folder of the RAM disks that are created by a name and not in a folder.
const HOME: &str = "/run/fsure/disk";

/// A plain RAM disk: what is in it is in no other place
#[derive(Args)]
pub(super) struct DiskArgs {
    #[command(subcommand)]
    what: DiskCommand,
}

#[derive(Subcommand)]
enum DiskCommand {
    /// Make one
    Create {
        /// An empty folder, whose owner and mode it gets; or a name, of which one is
        /// made in /run/fsure/disk
        #[arg(value_name = "NAME|DIR")]
        what: PathBuf,
        /// Memory that it takes at most; none is taken before it is filled
        #[arg(long, value_name = "SIZE", value_parser = size)]
        size: u64,
    },
    /// Show those that are there
    List,
    /// Take one away
    Destroy {
        /// Its name or its folder
        #[arg(value_name = "NAME|DIR")]
        what: PathBuf,
        /// Also with the files in it, which are in no other place
        #[arg(long)]
        discard: bool,
    },
}

fn size(text: &str) -> std::result::Result<u64, String> {
    units::size_option(text, "a size such as 500M or 2G")
}

/// Runs the command.
pub(super) fn run(args: &DiskArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let home = Path::new(HOME);
    match &args.what {
        DiskCommand::Create { what, size } => {
            let disk = fsure_ram::create_disk(what, home, *size)?;
            print_result(output, screen, report::json_line("created", &disk), report::made(&disk));
        }
        DiskCommand::List => {
            let disks = fsure_ram::disks()?;
            if output.json {
                disks.iter().for_each(|disk| screen.print(&report::json_line("disk", disk)));
                screen.print(&report::summary_line(disks.len()));
            } else {
                screen.print(&report::text(&disks));
            }
        }
        DiskCommand::Destroy { what, discard } => {
            let done = fsure_ram::destroy_disk(what, home, *discard)?;
            if let Some(words) = report::kept(&done) {
                screen.warn(&words);
            }
            let line = report::json_line("destroyed", &done.disk);
            print_result(output, screen, line, report::destroyed(&done));
        }
    }
    Ok(ExitCode::Clean)
}

fn print_result(output: &OutputArgs, screen: &Screen, line: String, words: String) {
    if output.json {
        screen.print(&line);
    } else if !output.quiet {
        screen.print(&words);
    }
}
