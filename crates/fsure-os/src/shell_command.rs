//! A command of the user's own, as the system's shell understands it.

use std::io;
use std::process::{Child, Command, Stdio};

/// A command under way. It is ended when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a command line, with no input and its output on standard error: the
    /// results of fsure are on standard output.
    pub fn start(line: &str) -> io::Result<Self> {
        let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let mut command = Command::new(shell);
        command.args([option, line]).stdin(Stdio::null()).stdout(io::stderr());
        command.spawn().map(Self)
    }

    /// Returns `None` while it runs; once it has ended, true if it reports success.
    pub fn ended(&mut self) -> io::Result<Option<bool>> {
        Ok(self.0.try_wait()?.map(|status| status.success()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be ended again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_well_or_badly_or_with_the_caller() {
        let mut asks = [("true", true), ("exit 3", false)]
            .map(|(line, is_well)| (Running::start(line).unwrap(), is_well));
        for (running, is_well) in &mut asks {
            let ended = loop {
                if let Some(ended) = running.ended().unwrap() {
                    break ended;
                }
                std::thread::yield_now();
            };
            assert_eq!(ended, *is_well);
        }
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mut running =
            Running::start(&format!("exec sleep 1000 > '{}'", pipe.display())).unwrap();
        assert_eq!(running.ended().unwrap(), None);
        drop(running);
    }
}
