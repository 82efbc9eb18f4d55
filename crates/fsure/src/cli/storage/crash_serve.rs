//! `fsure crash --serve`: a simulated drive by itself.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fsure_core::{Error, ExitCode, Monitor, Result};
use fsure_crash::{ServeFront, ServeOptions, serve};
use fsure_simdrive::files::Mode;
use fsure_simdrive::{Behavior, Latency};

use super::screen::Screen;

/// Arguments of `--serve`, besides those that it shares with a run.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Instead of running a program: serve one drive, and take requests as lines of
    /// JSON on this socket
    #[arg(long, value_name = "SOCKET", conflicts_with_all = [
        "fs", "mount_options", "error_after", "cuts", "variant", "every_flush", "pause", "seed",
        "prepare", "check", "keep", "error", "command", "workload", "matrix", "save",
    ])]
    serve: Option<PathBuf>,
    /// Initial content of the drive
    #[arg(long, value_name = "FILE", requires = "serve")]
    image: Option<PathBuf>,
    /// Show the drive to other programs, at '--at'
    #[arg(long, value_enum, value_name = "KIND", requires_all = ["serve", "at"])]
    front: Option<Front>,
    /// An empty folder
    #[arg(long, value_name = "FOLDER", requires = "front")]
    at: Option<PathBuf>,
}

/// A form in which other programs see a drive.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Front {
    /// As the file 'disk' in that folder
    File,
    /// As that folder, which keeps what POSIX promises
    Folder,
    /// The same, but a sync makes all names durable, as one journal does
    FolderJournal,
}

impl ServeArgs {
    /// Returns true if a drive is to be served instead of running a program.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.serve.is_some()
    }

    /// Serves a drive until a request or a signal ends it.
    pub(crate) fn run(
        &self,
        screen: &Screen,
        json: bool,
        (drives, latency, size): (&[Behavior], Latency, u64),
    ) -> Result<ExitCode> {
        let (Some(socket), &[drive]) = (&self.serve, drives) else {
            return Err(Error::Usage {
                message: "one drive is served at a time".to_owned(),
                hint: Some("start another for each, with a socket of its own".to_owned()),
            });
        };
        let options = ServeOptions {
            socket: socket.clone(),
            drive,
            latency,
            size,
            image: self.image.clone(),
            front: self.shown(),
            history_folder: fsure_os::unnamed_file::folder(),
        };
        serve(&options, &Listening(screen), &|place: Option<&Path>| {
            let (name, socket) = (drive.to_string(), socket.display());
            screen.print_now(&match place {
                _ if json => {
                    let place = place.map(|place| place.to_string_lossy());
                    let socket = socket.to_string();
                    serde_json::json!({
                        "type": "serving", "drive": name, "socket": socket, "place": place,
                    })
                    .to_string()
                }
                Some(place) => format!("{name}: {}; ask on {socket}", place.display()),
                None => format!("{name}: ask on {socket}"),
            });
        })?;
        Ok(screen.stop_requested().unwrap_or(ExitCode::Clean))
    }

    fn shown(&self) -> ServeFront {
        match (self.front, self.at.clone()) {
            (Some(Front::File), Some(at)) => ServeFront::File(at),
            (Some(Front::Folder), Some(at)) => ServeFront::Folder(at, Mode::Strict),
            (Some(Front::FolderJournal), Some(at)) => ServeFront::Folder(at, Mode::Journal),
            _ => ServeFront::Nowhere,
        }
    }
}

/// The monitor of a drive that is served: shows its warnings and passes on signals to
/// stop.
struct Listening<'a>(&'a Screen);

impl Monitor for Listening<'_> {
    fn warn(&self, message: &str) {
        self.0.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.0.stop_requested()
    }
}
