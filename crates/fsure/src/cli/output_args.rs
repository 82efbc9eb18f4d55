//! The options for the output that every command has, and the screen they make.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, ValueEnum};
use fsure_core::{Error, NullMonitor, Result, open_output};
use fsure_integrity::UserConfig;
use fsure_integrity::model::Verdict;

use super::screen::{Color, ProgressMode, Screen, ScreenSettings};
use crate::report::text::SummaryForm;

/// Options for the output of results.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Print one JSON object per line; the first has "type":"start", the last "summary"
    #[arg(long, global = true, env = "FSURE_JSON", hide_env = true,
          value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub(super) json: bool,
    /// Write the lines of JSON to the open descriptor N instead of standard output
    #[arg(long, global = true, value_name = "N")]
    json_fd: Option<u32>,
    /// Print findings only: no progress and no summary
    #[arg(short, long, global = true, env = "FSURE_QUIET", hide_env = true,
          value_parser = FalseyValueParser::new(), action = ArgAction::SetTrue)]
    pub(super) quiet: bool,
    /// Show the progress: on a terminal always, else once a minute; never; or as
    /// lines of JSON, with warnings [default: auto]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        env = "FSURE_PROGRESS",
        hide_env = true
    )]
    progress: Option<ProgressMode>,
    /// Count by verdict, or show all counts, zeros included [default: short]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        env = "FSURE_SUMMARY",
        hide_env = true
    )]
    summary: Option<SummaryForm>,
    /// Colour the verdicts [default: auto]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        env = "FSURE_COLOR",
        hide_env = true
    )]
    color: Option<Color>,
    /// The user's own defaults for all of the command line.
    #[arg(skip)]
    pub(super) user: UserConfig,
    /// The command that the first line of JSON names; none for one with a form of its own.
    #[arg(skip)]
    command: Option<String>,
    /// The output for lines of JSON, if it is not standard output.
    #[arg(skip)]
    json_output: Mutex<Option<Box<dyn Write + Send>>>,
}

impl OutputArgs {
    /// Sets the name of the command for its first line of JSON.
    pub(super) fn set_command(&mut self, command: Option<String>) {
        self.command = command;
    }

    /// Takes the user's own defaults, opens the descriptor for lines of JSON if one is given,
    /// and refuses options that exclude each other.
    pub(super) fn prepare(&mut self, user: UserConfig) -> Result<()> {
        self.user = user;
        if let Some(number) = self.json_fd {
            self.json = true;
            // The descriptor that is open already, whatever is behind it.
            let path = format!("/dev/fd/{number}");
            let output = open_output(Path::new(&path), &NullMonitor)?;
            self.json_output = Mutex::new(Some(Box::new(output)));
        }
        if self.progress == Some(ProgressMode::Json) && !self.json {
            return Err(Error::Usage {
                message: "'--progress json' adds lines to those of JSON, and none were asked for"
                    .to_owned(),
                hint: Some("add '--json', or '--json-fd N'".to_owned()),
            });
        }
        Ok(())
    }

    /// Returns true if lines of JSON go to standard output.
    #[cfg(feature = "storage")]
    pub(super) fn prints_json(&self) -> bool {
        self.json && self.json_fd.is_none()
    }

    /// The screen for a command, which stops at the first signal and lets the
    /// second end the process at once.
    pub(super) fn screen(&self, all: bool, hide: &'static [Verdict]) -> Screen {
        self.screen_on(super::listen(), all, hide)
    }

    /// The screen for a command that has something to clear away when it stops.
    pub(super) fn patient_screen(&self) -> Screen {
        super::wait_long_for_the_end();
        self.screen(false, &[])
    }

    /// The screen for a command that runs a program: signals are for the program, and this
    /// process ends with it.
    #[cfg(feature = "storage")]
    pub(super) fn screen_beside_program(&self) -> Screen {
        self.screen_on(Arc::default(), false, &[])
    }

    /// The screen for a command that is asked to stop by `stop`.
    pub(super) fn screen_on(
        &self,
        stop: Arc<AtomicUsize>,
        all: bool,
        hide: &'static [Verdict],
    ) -> Screen {
        let color = self.color.or_else(|| Color::from_str(self.user.color.as_ref()?, false).ok());
        let settings = ScreenSettings {
            json: self.json,
            quiet: self.quiet,
            progress: self.progress.unwrap_or(ProgressMode::Auto),
            summary: self.summary.unwrap_or_default(),
            color: color.unwrap_or(Color::Auto),
            all,
            hide,
        };
        let screen = Screen::new(settings, stop);
        if let Some(command) = &self.command {
            screen.starts(command);
        }
        let output = self.json_output.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(output) = output {
            screen.print_to(output);
        }
        screen
    }
}
