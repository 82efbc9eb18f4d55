//! `defer`: a command whose `fsync` returns at once, on file systems whose order was
//! checked before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::write_ordering::{self, Order};
use fsure_os::defer::{Backend, Deferred, MountedFs, mount_of, run};

use fsure_core::{Error, Result};

/// Options of `defer`.
#[derive(Clone, Debug)]
pub struct DeferOptions {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Folders on the file systems to defer for.
    pub folders: Vec<PathBuf>,
    /// Maximum age of the changes that are lost.
    pub longest: Duration,
    /// The backend; `None` for the one that suits the program.
    pub backend: Option<Backend>,
    /// Run also if the order is not kept.
    pub force_unordered: bool,
    /// A program that flushes if this process is killed, see
    /// [`fsure_os::defer::outlive`].
    pub heir: Option<PathBuf>,
}

/// Limits of the age: below the first, most of the time would be flushes; above the
/// second, it is not a useful bound.
const LONGEST: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(3_600)];

/// Runs the command. `warn` is called before it starts with what is done only because
/// it was forced, and with the processes that it waits for when it was asked to end.
/// Fails if the command was not started.
pub fn defer(options: &DeferOptions, warn: &dyn Fn(&str)) -> Result<Deferred> {
    let [least, most] = LONGEST;
    if !(least..=most).contains(&options.longest) {
        return Err(Error::Usage {
            message: format!("a '--max-loss' of {:?} is out of range", options.longest),
            hint: Some(format!("give a time from {least:?} to {} h", most.as_secs() / 3_600)),
        });
    }
    let mut folders = Vec::new();
    for folder in &options.folders {
        let mounted = mount_of(folder).map_err(|error| refused(folder, &error))?;
        accept(&mounted, options.force_unordered, warn)?;
        let path = fsure_os::path::without_links(folder);
        folders.push(path.map_err(|error| refused(folder, &error))?);
    }
    let options = fsure_os::defer::Options {
        command: options.command.clone(),
        folders,
        longest: options.longest,
        backend: options.backend,
        heir: options.heir.clone(),
    };
    run(&options, warn).map_err(|error| Error::Usage { message: error.to_string(), hint: None })
}

fn refused(folder: &Path, error: &std::io::Error) -> Error {
    Error::FailedPrecondition {
        message: format!("cannot defer in {}: {error}", folder.display()),
        hint: None,
    }
}

/// Refuses a file system that does not keep the order, unless that was forced.
fn accept(mounted: &MountedFs, force: bool, warn: &dyn Fn(&str)) -> Result<()> {
    let (kind, point) = (&mounted.kind, &mounted.point);
    match write_ordering::order(mounted) {
        Order::Kept => Ok(()),
        Order::NotKept { why, .. } if force => {
            warn(&format!(
                "CORRUPTION RISK: {kind} at {point}: {why}. A power cut can leave a database that \
                 does not recover: 8 of 40 did on ext4 with data=ordered, 4 of 20 on xfs"
            ));
            Ok(())
        }
        Order::NotKept { why, remedy } => Err(Error::FailedPrecondition {
            message: format!("{kind} at {point} does not keep the order of writes: {why}"),
            hint: Some(format!("{remedy}; or '--force-unordered', with a CORRUPTION RISK")),
        }),
        Order::Pointless { why, remedy } => Err(Error::FailedPrecondition {
            message: format!("{kind} at {point}: {why}"),
            hint: Some(remedy),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_forced_run_is_reported_and_a_pointless_one_is_not_started() {
        let reported = RefCell::new(Vec::new());
        let warn = |words: &str| reported.borrow_mut().push(words.to_owned());
        let mounted = |kind: &str, options: &str| MountedFs {
            kind: kind.to_owned(),
            source: "/dev/sdb1".to_owned(),
            point: "/srv".to_owned(),
            options: vec![options.to_owned()],
            in_place: false,
            is_encrypted: false,
            held_flushes: None,
        };
        accept(&mounted("ext4", "data=journal"), false, &warn).unwrap();
        assert!(reported.borrow().is_empty());
        let error = accept(&mounted("ext4", "rw"), false, &warn).unwrap_err();
        assert_eq!(error.exit_code().number(), 2);
        assert!(error.hint().unwrap().contains("--force-unordered"));
        accept(&mounted("ext4", "rw"), true, &warn).unwrap();
        assert!(reported.borrow()[0].starts_with("CORRUPTION RISK: ext4 at /srv"));
        accept(&mounted("tmpfs", "rw"), true, &warn).unwrap_err();
    }
}
