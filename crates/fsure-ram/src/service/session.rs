//! One RAM folder, as the process has it that keeps it, until it goes out of RAM
//! ([`super::unbind`]). Whatever fails, the folder stays as it was: in RAM and writable, or on the
//! disk.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fsure_os::overmount::{self, Detached, DetachedView, HoldKind, Holder, MountEntry};

use super::change_tracker::ChangeTracker;
use super::cleanup::clear;
use super::ram_device::{self, FreezeControl};
use super::registry::{Registry, RegistryEntry};
use super::request_handler::Reply;
use crate::write_back::{
    Activity, CompareDepth, Engine, Freeze, Generation, NoTracker, OWN, SideDifference,
};
use fsure_core::{Error, ExitCode, IoContext as _, RelPath, Result};

/// Attempts to copy a folder that is written to meanwhile.
const POPULATE_ATTEMPTS_MAX: u32 = 3;
/// Between two attempts at what is in use.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Longest wait until no file is open for writing, when a bind that failed is undone.
const UNDO_BIND_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of names in a message.
pub(super) const NAMES_SHOWN_MAX: usize = 5;

/// A RAM folder, and the engine that has it.
pub(super) struct Session {
    pub(super) registry: Registry,
    pub(super) entry: RegistryEntry,
    /// `None` after a failure, until it could be taken over again.
    pub(super) engine: Option<Engine>,
    /// The RAM side as the engine sees it: what another process mounts in it is not there,
    /// and what that covers is kept.
    pub(super) bare: Option<DetachedView>,
    /// `None` where all is to be looked at with the next generation.
    pub(super) tracker: Option<ChangeTracker>,
    /// The current step, for other threads to read.
    pub(super) doing: Activity,
    /// Has comparisons end, of which each holds it.
    pub(super) no_comparison: Arc<AtomicBool>,
}

impl Session {
    /// Puts a folder into RAM, or takes over one that is there; says which.
    pub(super) fn begin(
        registry: &Registry,
        entry: RegistryEntry,
        stop: &AtomicUsize,
    ) -> Result<(Self, bool)> {
        let place = place(&entry)?;
        let is_there = place.is_some();
        let registry = registry.clone();
        let (engine, bare, tracker) = (None, None, None);
        let (doing, no_comparison) = (Activity::default(), Arc::default());
        let mut session = Self { registry, entry, engine, bare, tracker, doing, no_comparison };
        if let Some(place) = place {
            if place != session.entry.path {
                session.move_to(place)?;
            }
            session.engine()?;
        } else {
            session.fill(stop)?;
        }
        Ok((session, is_there))
    }

    /// Returns the path by which the disk side can be reached.
    pub(super) fn disk(&self) -> PathBuf {
        self.registry.disk(&self.entry.id)
    }

    /// The RAM side's mount; an error where it is covered or gone.
    pub(super) fn mount(&self) -> Result<MountEntry> {
        let path = &self.entry.path;
        let mount = overmount::mount_at(path).context("find what is mounted at", path)?;
        if mount.point == *path && mount.source == self.entry.source() {
            return Ok(mount);
        }
        Err(Error::FailedPrecondition {
            message: format!("something else is mounted over {}", path.display()),
            hint: Some("unmount that first, with 'umount' and never with 'umount -l'".to_owned()),
        })
    }

    /// Goes on where the RAM side is by now: both sides are held by descriptor, and
    /// nothing is lost. Fails where that cannot be noted for those who come later.
    pub(super) fn move_to(&mut self, place: PathBuf) -> Result<()> {
        self.entry.path = place;
        // It may know folders by where they were.
        self.tracker = None;
        self.registry.put(&self.entry)
    }

    /// The engine; taken over where a failure has ended the one before.
    pub(super) fn engine(&mut self) -> Result<&mut Engine> {
        if self.engine.is_none() {
            self.mount()?;
            ram_device::thaw_left_frozen(&self.entry)?;
            self.tracker = None;
            self.adopt()?;
            // A worker that ended before might have left it so.
            self.set_read_only(false)?;
        }
        self.engine.as_mut().ok_or_else(|| Error::Internal("no engine".to_owned()))
    }

    /// Takes both sides over, as they are.
    pub(super) fn adopt(&mut self) -> Result<&mut Engine> {
        let ram = self.bare()?;
        self.doing.begin("read both sides, to take them over");
        let adopted = Engine::adopt(&self.disk(), &ram);
        self.doing.end();
        let engine = self.engine.insert(adopted?);
        engine.set_activity(&self.doing);
        engine.set_max_loss(self.entry.max_loss);
        Ok(engine)
    }

    /// A way to the RAM side that leads into no other mount.
    fn bare(&mut self) -> Result<PathBuf> {
        if let Some(bare) = &self.bare {
            return Ok(bare.path());
        }
        let (device, path) = (self.mount()?.device, &self.entry.path);
        let bare = DetachedView::of(path, device).context("open the disk side of", path)?;
        Ok(self.bare.insert(bare).path())
    }

    /// Copies the folder into memory and puts that over it.
    fn fill(&mut self, stop: &AtomicUsize) -> Result<()> {
        let (disk, path) = (self.disk(), self.entry.path.clone());
        let place = overmount::mount_at(&disk).context("access", &disk)?;
        if place.point != disk {
            let clone = Detached::clone_of(&path).context("open the disk side again of", &path)?;
            clone.publish_privately(&disk).context("mount", &disk)?;
        }
        let filled = self.populate_without_changes(stop);
        if filled.is_err() && !is_mounted(&self.entry)? {
            (self.engine, self.bare) = (None, None);
            clear(&self.registry, &self.entry)?;
        }
        filled
    }

    /// Copies until no process has written meanwhile.
    fn populate_without_changes(&mut self, stop: &AtomicUsize) -> Result<()> {
        let (disk, path) = (self.disk(), self.entry.path.clone());
        let survey = || overmount::survey(&disk, OWN).context("list", &path);
        let mut changed = Vec::new();
        for _ in 0..POPULATE_ATTEMPTS_MAX {
            let before = survey()?;
            let detached = ram_device::make(&self.registry, &mut self.entry, &disk)?;
            let mut engine = Engine::fill(&disk, &detached.path(), &mut |_, _| match stop
                .load(Ordering::Relaxed)
            {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(ExitCode::Interrupted),
            })?;
            let after = survey()?;
            changed = after.differences(&before, NAMES_SHOWN_MAX);
            if !changed.is_empty() {
                continue;
            }
            refuse_holders(&path, &after)?;
            self.registry.publish(&self.entry.id)?;
            detached.publish(&path).context("mount over", &path)?;
            let ram = self.bare()?;
            engine.reach(&ram)?;
            self.tracker = Some(ChangeTracker::begin(&ram));
            engine.set_activity(&self.doing);
            engine.set_max_loss(self.entry.max_loss);
            self.engine = Some(engine);
            // Between the last look and the mount another process might have begun.
            let published = survey()?;
            changed = published.differences(&after, NAMES_SHOWN_MAX);
            let held = refuse_holders(&path, &published);
            if changed.is_empty() && held.is_ok() {
                return Ok(());
            }
            // Writes to either side are on the disk after this.
            self.unbind(UNDO_BIND_TIMEOUT, false, &mut |_| {})?;
            held?;
            break;
        }
        let named: Vec<_> = changed.iter().map(|path| path.display().to_string()).collect();
        Err(Error::FailedPrecondition {
            message: format!(
                "{} is written to while it is copied: {}",
                path.display(),
                named.join(", ")
            ),
            hint: Some("stop the program that writes to it, and restart it afterwards".to_owned()),
        })
    }

    /// Files, and the bytes in them.
    pub(super) fn size(&self) -> (u64, u64) {
        let size = self.engine.as_ref().map(Engine::size);
        size.map_or((0, 0), |(files, bytes)| (files as u64, bytes))
    }

    /// The last generation.
    pub(super) fn generation(&self) -> u64 {
        self.engine.as_ref().map_or(0, Engine::generation)
    }

    /// Brings the disk side up to date.
    pub(super) fn sync(&mut self, depth: CompareDepth) -> Result<Generation> {
        // Covered by something else, that would be held still.
        let pause = self.mount().ok().and_then(|_| FreezeControl::of(&self.entry, &self.registry));
        let pause = pause.as_ref().map(|pause| pause as &dyn Freeze);
        self.engine()?;
        if self.tracker.is_none() {
            self.tracker = self.bare().ok().map(|ram| ChangeTracker::begin(&ram));
            // Changes before that are found by a full scan.
            self.engine()?.force_full_scan();
        }
        let Some(mut tracker) = self.tracker.take() else {
            return self.engine()?.sync(&mut NoTracker, depth, pause);
        };
        let done = self.engine()?.sync(&mut tracker, depth, pause);
        self.tracker = Some(tracker);
        done
    }

    /// Takes what has been reported until now, for the generation to come.
    pub(super) fn gather(&mut self) {
        self.tracker.iter_mut().for_each(ChangeTracker::gather);
    }

    /// Finds files whose changes are not reported.
    pub(super) fn look_for_disks(&mut self) {
        // If that is not known now, it is in a second.
        let Ok(mount) = self.mount() else { return };
        let Ok(files) = overmount::block_devices_on(&|device, _| device == mount.device) else {
            return;
        };
        if let Some(tracker) = &mut self.tracker {
            tracker.silent(&files, &self.entry.path);
        }
    }

    /// Returns the method by which changes are found, as text.
    pub(super) fn tracking(&self) -> &'static str {
        self.tracker.as_ref().map_or("all of it, each time", ChangeTracker::words)
    }

    /// Returns the current step, for other threads to read.
    pub(super) fn doing(&self) -> &Activity {
        &self.doing
    }

    /// Returns the names that differ between the sides. The RAM side must not be written
    /// to meanwhile.
    pub(super) fn verify(&mut self) -> Result<Vec<SideDifference>> {
        self.engine()?;
        self.doing.begin("read both sides and compare them");
        let different = self.engine()?.verify();
        self.doing.end();
        different
    }

    /// Both sides, to be compared while generations go on.
    pub(super) fn comparison(&mut self) -> Result<Reply> {
        let (ram, stop) = (self.bare()?, self.no_comparison.clone());
        let comparison = self.engine()?.comparison(&ram, &stop)?;
        Ok(Reply::Comparison(Box::new(comparison)))
    }

    /// Returns the entries that the last generation has for these names.
    pub(super) fn known(&mut self, paths: &BTreeSet<RelPath>) -> Result<Reply> {
        Ok(Reply::Known(self.engine()?.known(paths)))
    }

    /// Makes the RAM side read-only or writable, for all processes that see it anywhere.
    /// Fails with `ResourceBusy` while a process has a file open for writing.
    pub(super) fn set_read_only(&self, is: bool) -> Result<()> {
        self.mount()?;
        let path = &self.entry.path;
        let doing = if is { "make read-only" } else { "make writable" };
        overmount::set_read_only(path, is).context(doing, path)
    }

    /// Returns true if it is read-only; false if its mount cannot be seen.
    pub(super) fn is_read_only(&self) -> bool {
        self.mount().is_ok_and(|mount| mount.own_options.iter().any(|option| option == "ro"))
    }
}

/// Returns true if the RAM side of an entry is mounted.
pub(super) fn is_mounted(entry: &RegistryEntry) -> Result<bool> {
    Ok(place(entry)?.is_some())
}

/// Returns the mount point of the RAM side of an entry; `None` if it is not mounted.
pub(super) fn place(entry: &RegistryEntry) -> Result<Option<PathBuf>> {
    let mounts = overmount::mounts(None).context("find what is mounted at", &entry.path)?;
    Ok(entry.place(&mounts))
}

/// Refuses if another process would go on with the disk side unseen.
fn refuse_holders(path: &Path, survey: &overmount::Survey) -> Result<()> {
    let is_meant =
        |device: u64, inode: u64| device == survey.device && survey.inodes.contains(&inode);
    let holders = overmount::holders(&[std::process::id()], &is_meant)
        .context("find the processes that use", path)?;
    let disks =
        overmount::block_devices_on(&is_meant).context("find loop devices and swap in", path)?;
    if let Some(first) = disks.first() {
        let (path, first) = (path.display(), first.display());
        return Err(Error::FailedPrecondition {
            message: format!("{path} is in use: a loop device or swap uses {first}"),
            hint: Some("detach it with 'losetup -d' or 'swapoff' first".to_owned()),
        });
    }
    let writes = |holder: &Holder| holder.how != HoldKind::Reads;
    let Some(first) = holders.into_iter().find(writes) else { return Ok(()) };
    Err(Error::FailedPrecondition {
        message: format!("{} is in use: {first}", path.display()),
        hint: Some("end it, and restart it when the folder is in RAM".to_owned()),
    })
}
