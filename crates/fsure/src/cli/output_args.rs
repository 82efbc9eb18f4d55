//! The options for the output that every command has, and the screen they make.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use clap::{Args, ValueEnum};
use fsure_integrity::UserConfig;
use fsure_integrity::model::Verdict;

use super::screen::{Color, Screen, ScreenSettings};

/// Options for the output of results.
#[derive(Args)]
pub(super) struct OutputArgs {
    /// Print one JSON object per line; the last has "type":"summary"
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print findings only: no progress and no summary
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Colour the verdicts [default: auto]
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    color: Option<When>,
    /// The user's own defaults for all of the command line.
    #[arg(skip)]
    pub(super) user: UserConfig,
}

/// A setting for coloured output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl OutputArgs {
    /// Sets the user's own defaults.
    pub(super) fn set_user(&mut self, user: UserConfig) {
        self.user = user;
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

    /// The screen for a command that is asked to stop by `stop`.
    pub(super) fn screen_on(
        &self,
        stop: Arc<AtomicUsize>,
        all: bool,
        hide: &'static [Verdict],
    ) -> Screen {
        let settings = ScreenSettings {
            json: self.json,
            quiet: self.quiet,
            color: match self
                .color
                .or_else(|| When::from_str(self.user.color.as_ref()?, false).ok())
            {
                None | Some(When::Auto) => Color::Auto,
                Some(When::Always) => Color::Always,
                Some(When::Never) => Color::Never,
            },
            all,
            hide,
        };
        Screen::new(settings, stop)
    }
}
