//! `fsure speed --tree`.

use std::path::PathBuf;
use std::time::Duration;

use crate::report::storage::speed_tree as report;
use crate::tree_reader::OwnTreeReader;
use clap::Args;
use fsure_core::{Clock, ExitCode, Result, units};
use fsure_integrity::scan::THREADS_MAX;
use fsure_measure::{TREE_MEMORY_MIN, TreeOptions, tree};

use super::measurement_screen::Measuring;
use super::screen::Screen;

/// Counted runs of each way.
const RUNS: usize = 3;

/// Options of `--tree`.
#[derive(Args)]
pub(crate) struct TreeArgs {
    /// Read the files of each DIR past the page cache, through it and out of it, all DIRs at
    /// once, and report what caching costs; nothing is written but a small file that is gone
    /// afterwards. The files are those of the record, or else all of them
    #[arg(long, help_heading = HEADING,
          conflicts_with_all = ["size", "data", "rungs", "cache", "pv", "io"])]
    tree: bool,
    /// Bytes of each DIR that a run reads; several are measured one after the other
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "4G",
          value_parser = bytes, requires = "tree", help_heading = HEADING)]
    bytes: Vec<u64>,
    /// Readers for each device; several are measured one after the other [default: what
    /// suits it]
    #[arg(short = 'j', long, value_name = "N", value_delimiter = ',', requires = "tree",
          value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64),
          help_heading = HEADING)]
    threads: Vec<u16>,
    /// Have only so much memory for fsure and the page cache, as root, to see what happens
    /// when it is full
    #[arg(long, value_name = "SIZE", value_parser = memory, requires = "tree",
          help_heading = HEADING)]
    memory: Option<u64>,
    /// Also read while the page cache of the whole machine is emptied every second, as root:
    /// all programs lose what they have there
    #[arg(long, requires = "tree", help_heading = HEADING)]
    purge: bool,
}

const HEADING: &str = "Options of --tree";

fn bytes(text: &str) -> std::result::Result<u64, String> {
    const FORM: &str = "a size of at least 1M, such as 4G, or several: 1G,16G";
    let size = units::size_option(text, FORM)?;
    if size < units::MIB { Err(FORM.to_owned()) } else { Ok(size) }
}

fn memory(text: &str) -> std::result::Result<u64, String> {
    let least = units::size(TREE_MEMORY_MIN);
    let form = format!("a size of at least {least}, such as 2G");
    let size = units::size_option(text, &form)?;
    if size < TREE_MEMORY_MIN { Err(form) } else { Ok(size) }
}

/// The options that `--tree` shares with the ladder.
pub(super) struct Shared<'a> {
    /// The folders.
    pub(super) folders: Vec<PathBuf>,
    /// Counted runs, if the user has set them.
    pub(super) runs: Option<u16>,
    /// Time for all of it.
    pub(super) budget: Duration,
    /// The listener.
    pub(super) measuring: Measuring<'a>,
}

impl TreeArgs {
    /// Returns true if this is what is to be measured.
    pub(super) fn is_wanted(&self) -> bool {
        self.tree
    }

    /// Measures.
    pub(super) fn measure(&self, shared: Shared<'_>, screen: &Screen) -> Result<ExitCode> {
        let options = TreeOptions {
            program: concat!("fsure ", env!("CARGO_PKG_VERSION")).to_owned(),
            volumes: shared.folders,
            bytes: self.bytes.clone(),
            readers: self.threads.iter().copied().map(usize::from).collect(),
            runs: shared.runs.map_or(RUNS, usize::from),
            budget: shared.budget,
            purges: self.purge,
            memory: self.memory,
            spare_folder: std::env::temp_dir(),
            guard: std::env::current_exe().ok(),
            clock: Clock::default(),
        };
        let measuring = shared.measuring;
        let prints_lines = measuring.prints_lines;
        let ended = tree(&options, &OwnTreeReader, &measuring);
        let code = ended.as_ref().map_or_else(fsure_core::Error::exit_code, |code| *code);
        let (lines, code) = measuring.end(code);
        if !prints_lines {
            screen.print(&report::text(&lines));
        }
        ended.map(|_| code)
    }
}
