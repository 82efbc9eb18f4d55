//! Takes a RAM folder out of RAM. If anything fails, the folder stays in RAM, writable
//! and kept.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fsure_os::overmount::{self, HoldKind, Holder};
use fsure_os::private_mounts::retry_while_busy;

use super::cleanup::clear;
use super::protocol::UnbindReport;
use super::session::{NAMES_SHOWN_MAX, RETRY_INTERVAL, Session, is_mounted};
use crate::write_back::{
    CompareDepth, DifferenceKind as Differs, Generation, NoTracker, SideDifference,
};
use fsure_core::{Error, IoContext as _, Result, shell_command};

impl Session {
    /// Takes the folder out of RAM: read-only, the last generation with every file
    /// hashed, a comparison, a plain unmount. Where anything of this fails it is
    /// writable again, and in RAM. `is_proven`: nothing may be on the disk side that
    /// is not in RAM. `on_generation` receives each generation.
    pub(super) fn unbind(
        &mut self,
        timeout: Duration,
        is_proven: bool,
        on_generation: &mut dyn FnMut(&Generation),
    ) -> Result<UnbindReport> {
        self.refuse_users()?;
        on_generation(&self.sync(CompareDepth::Dates)?);
        self.hold_still(timeout, on_generation)?;
        let ended =
            self.last_generation(is_proven, on_generation).and_then(|ended| self.uncover(ended));
        if ended.is_err() && is_mounted(&self.entry).unwrap_or(true) {
            // Taken over again where the engine is gone; tried with every
            // generation to come where it fails here.
            let _ = self.engine().map(drop);
            let _ = self.set_read_only(false);
        }
        ended
    }

    /// Refuses if something is mounted in the folder, or if a process has its working
    /// directory in it or has a folder of it open. Such a process will not be gone in a
    /// moment, so writers are not held up for it.
    fn refuse_users(&self) -> Result<()> {
        let inside = self.mounted_inside()?;
        if let Some(first) = inside.first() {
            let named: Vec<_> =
                inside.iter().take(NAMES_SHOWN_MAX).map(|it| it.display().to_string()).collect();
            return Err(Error::FailedPrecondition {
                message: format!(
                    "{} is in use: something else is mounted in it, on {}",
                    self.entry.path.display(),
                    named.join(", ")
                ),
                hint: Some(format!("first run {}", shell_command("umount", first))),
            });
        }
        let lasting = |holder: &Holder| ![HoldKind::Reads, HoldKind::Writes].contains(&holder.how);
        let users: Vec<_> = self.users()?.into_iter().filter(lasting).collect();
        if users.is_empty() { Ok(()) } else { Err(self.in_use(&users)) }
    }

    /// Returns the mount points of other mounts in the folder. While there is one, the
    /// folder cannot be unmounted.
    fn mounted_inside(&self) -> Result<Vec<PathBuf>> {
        let (mount, path) = (self.mount()?, &self.entry.path);
        let all = overmount::mounts(None).context("find what is mounted in", path)?;
        let inside = all.into_iter().filter(|one| one.parent == mount.id && one.id != mount.id);
        Ok(inside.map(|one| one.point).collect())
    }

    /// Returns the processes that hold the RAM side.
    fn users(&self) -> Result<Vec<Holder>> {
        let device = self.mount()?.device;
        let path = &self.entry.path;
        overmount::holders_of_mounts(&[std::process::id()], device)
            .context("find the processes that use", path)
    }

    fn in_use(&self, users: &[Holder]) -> Error {
        let named: Vec<_> = users.iter().take(NAMES_SHOWN_MAX).map(ToString::to_string).collect();
        let path = self.entry.path.display();
        let (who, hint) = if named.is_empty() {
            let who = "no process was found: it can be a loop device on a file in it ('losetup \
                       -a'), swap, an exported folder, or something mounted in it";
            (who.to_owned(), "end that use, and run the same command again")
        } else {
            (
                named.join("; "),
                "end these processes, or let them change their folder, and run the same command \
                 again",
            )
        };
        Error::FailedPrecondition {
            message: format!("{path} is in use: {who}"),
            hint: Some(hint.to_owned()),
        }
    }

    /// Makes it read-only as soon as no process writes. A process that is waited for goes
    /// on writing, and that comes to the disk in time.
    fn hold_still(
        &mut self,
        timeout: Duration,
        on_generation: &mut dyn FnMut(&Generation),
    ) -> Result<()> {
        let (began, mut safe) = (Instant::now(), Instant::now());
        loop {
            match self.set_read_only(true) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ResourceBusy => {}
                other => return other,
            }
            if began.elapsed() >= timeout {
                let users = self.users()?;
                let writes = |user: &Holder| user.how == HoldKind::Writes;
                let writers: Vec<_> = users.into_iter().filter(writes).collect();
                return Err(self.in_use(&writers));
            }
            if safe.elapsed() >= self.entry.max_loss / 2 {
                let done = self.sync(CompareDepth::Dates)?;
                safe = done.began;
                on_generation(&done);
            }
            sleep(RETRY_INTERVAL);
        }
    }

    /// The last generation, and the proof that it is all.
    fn last_generation(
        &mut self,
        is_proven: bool,
        on_generation: &mut dyn FnMut(&Generation),
    ) -> Result<UnbindReport> {
        // At once what was written until now: to hash everything can take minutes.
        on_generation(&self.sync(CompareDepth::Dates)?);
        let (mut done, mut warnings) = (self.sync(CompareDepth::Everything)?, Vec::new());
        let path = self.entry.path.clone();
        if let Some(first) = done.unsettled.first() {
            let (path, first) = (path.display(), first.display());
            let message = format!("{path} cannot be written to the disk in full: {first}");
            let hint = "fsure cannot read it, or it does not fit the disk's file system: too \
                        large, too many attributes, or a link target that is too long";
            return Err(Error::FailedPrecondition { message, hint: Some(hint.to_owned()) });
        }
        let mut different = if is_proven { self.verify()? } else { Vec::new() };
        let is_stray = |one: &SideDifference| one.how == Differs::OnlyOnDisk;
        if !different.is_empty() && !different.iter().any(is_stray) {
            warnings.extend(self.keep_changed(&different)?);
            done = self.sync(CompareDepth::Everything)?;
            different = self.verify()?;
        }
        let Some(first) = different.iter().find(|one| is_stray(one)).or(different.first()) else {
            return Ok(UnbindReport {
                generation: done.number,
                warnings,
                ..UnbindReport::default()
            });
        };
        let (count, shown) = (different.len(), first.path.display());
        let hint = match first.how {
            Differs::OnlyOnDisk => format!(
                "another process wrote to the covered disk side: move what was not in RAM out \
                 of {}",
                self.disk().display()
            ),
            _ => "'fsure ram verify' lists them; the folder stays in RAM until both sides agree"
                .to_owned(),
        };
        Err(Error::FailedPrecondition {
            message: format!("{count} names differ between memory and disk, {shown} among them"),
            hint: Some(hint),
        })
    }

    /// Keeps files of the disk side that another process has changed there or that have
    /// rotted, and says so. What is in memory is what programs saw, and is to be brought to
    /// the disk side once more.
    fn keep_changed(&mut self, different: &[SideDifference]) -> Result<Option<String>> {
        (self.engine, self.tracker) = (None, None);
        let changed = different.iter().filter(|one| one.how == Differs::Content);
        let changed: Vec<_> = changed.map(|one| one.path.clone()).collect();
        let engine = self.adopt()?;
        if changed.is_empty() {
            return Ok(None);
        }
        let trash = engine.keep(&changed)?;
        let named: Vec<_> =
            changed.iter().take(NAMES_SHOWN_MAX).map(|path| path.display().to_string()).collect();
        Ok(Some(format!(
            "{} changed on the disk side by another process or by bit rot: the disk side now has \
             the content of the RAM side, and the other content is kept in {}; {} among them",
            changed.len(),
            self.uncovered(&trash.display().to_string()),
            named.join(", ")
        )))
    }

    /// A path on the disk side as it is called when that is uncovered.
    pub(super) fn uncovered(&self, path: &str) -> String {
        path.replace(&*self.disk().to_string_lossy(), &self.entry.path.to_string_lossy())
    }

    /// Ends comparisons: waits until no thread has the sides in use to compare them.
    fn end_comparisons(&mut self) {
        self.no_comparison.store(true, Ordering::Relaxed);
        self.doing.begin("wait for a comparison to end");
        while Arc::strong_count(&self.no_comparison) > 1 {
            sleep(RETRY_INTERVAL);
        }
        self.doing.end();
        self.no_comparison = Arc::default();
    }

    /// Lets go of both sides and unmounts, plainly.
    fn uncover(&mut self, mut ended: UnbindReport) -> Result<UnbindReport> {
        let (mount, path) = (self.mount()?, self.entry.path.clone());
        let elsewhere = overmount::mounted_elsewhere(mount.device)
            .context("find the processes that see", &path)?;
        self.tracker = None;
        self.end_comparisons();
        if let Some(engine) = self.engine.take() {
            ended.trash = engine.close()?.map(|trash| trash.display().to_string());
        }
        self.bare = None;
        // The trash is found below the folder again.
        ended.trash = ended.trash.map(|trash| self.uncovered(&trash));
        if let Err(error) = retry_while_busy(|| overmount::unmount(&path)) {
            self.refuse_users()?;
            let users = self.users()?;
            return Err(match error.kind() {
                ErrorKind::ResourceBusy => self.in_use(&users),
                _ => Error::Io { doing: "unmount", path, source: error },
            });
        }
        ended.warnings.extend(still_seen(&elsewhere, mount.device));
        ended.warnings.extend(self.leave().err().map(|error| error.to_string()));
        Ok(ended)
    }

    /// Gives up a folder that another process has unmounted, lazily: what programs still
    /// write there is brought to the disk once more, and that was all.
    pub(super) fn give_up_unmounted(&mut self) -> UnbindReport {
        let mut ended = UnbindReport { generation: self.generation(), ..UnbindReport::default() };
        ended.warnings.push(format!(
            "{} was unmounted by another process: what programs still write to files that they had \
             open is lost",
            self.entry.path.display()
        ));
        self.tracker = None;
        self.end_comparisons();
        let Some(mut engine) = self.engine.take() else { return ended };
        let last = engine.sync(&mut NoTracker, CompareDepth::Everything, None);
        let closed = last.map(|last| ended.generation = last.number).and_then(|()| engine.close());
        self.bare = None;
        let left = closed.and_then(|_| self.leave());
        ended.warnings.extend(left.err().map(|error| error.to_string()));
        ended
    }

    /// Removes what is fsure's own, because nothing is in RAM any more.
    fn leave(&self) -> Result<()> {
        clear(&self.registry, &self.entry)
    }
}

/// Returns a warning for each process that still sees the RAM side after it was
/// unmounted. Such a process has mounts of its own and sees it read-only.
fn still_seen(elsewhere: &[overmount::Elsewhere], device: u64) -> Vec<String> {
    // Most hear of the unmounting.
    let now = overmount::mounted_elsewhere(device).unwrap_or_else(|_| elsewhere.to_vec());
    let warning = |one: &overmount::Elsewhere| {
        let overmount::Elsewhere { process, command, point } = one;
        format!(
            "process {process} ({command}) has mounts of its own and still sees the old RAM side, \
             read-only, at {}: restart it",
            point.display()
        )
    };
    now.iter().map(warning).collect()
}
