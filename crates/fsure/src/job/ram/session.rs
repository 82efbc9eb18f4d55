//! One RAM folder, from its filling to its end, as the process has it that keeps
//! it. Whatever fails, the folder stays as it was: in RAM and writable, or on the
//! disk.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fsure_os::ramfs::{self, Bare, Detached, Holder, How, Mounted};

use super::backend::{self, Pause};
use super::left::clear;
use super::registry::{Entry, Registry};
use super::told::Ended;
use super::tracker::Changing;
use crate::ram::{Depth, Engine, Generation, How as Differs, OWN, Stillness, Unequal, Untracked};
use crate::words::{Error, ExitCode, IoContext as _, Result};

/// How often a folder is copied that is written to meanwhile.
const ATTEMPTS: u32 = 3;
/// Between two attempts at what is in use.
const PAUSE: Duration = Duration::from_millis(5);
/// How long an unmount may take that the whole rest was done for.
const UNMOUNT: Duration = Duration::from_secs(2);
/// At most so many are named.
const NAMED: usize = 5;

/// A RAM folder, and the engine that has it.
pub(super) struct Session {
    pub(super) registry: Registry,
    pub(super) entry: Entry,
    /// `None` after a failure, until it could be taken over again.
    engine: Option<Engine>,
    /// The RAM side as the engine sees it: what somebody mounts in it is not there, and
    /// what that covers is kept.
    bare: Option<Bare>,
    /// `None` where all is to be looked at with the next generation.
    tracker: Option<Changing>,
}

impl Session {
    /// Puts a folder into RAM, or takes over one that is there; says which.
    pub(super) fn begin(
        registry: &Registry,
        entry: Entry,
        stop: &AtomicUsize,
    ) -> Result<(Self, bool)> {
        let place = place(&entry)?;
        let is_there = place.is_some();
        let registry = registry.clone();
        let mut session = Self { registry, entry, engine: None, bare: None, tracker: None };
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

    /// Where the disk side is to be reached.
    fn disk(&self) -> PathBuf {
        self.registry.disk(&self.entry.id)
    }

    /// The RAM side's mount; an error where it is covered or gone.
    pub(super) fn mount(&self) -> Result<Mounted> {
        let path = &self.entry.path;
        let mount = ramfs::mount_at(path).doing("look what is mounted at", path)?;
        if mount.point == *path && mount.source == self.entry.source() {
            return Ok(mount);
        }
        Err(Error::Usage {
            message: format!("something else is mounted over {}", path.display()),
            hint: Some("unmount that first, and plainly: never with 'umount -l'".to_owned()),
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
    fn engine(&mut self) -> Result<&mut Engine> {
        if self.engine.is_none() {
            self.mount()?;
            backend::let_go(&self.entry)?;
            self.tracker = None;
            let ram = self.bare()?;
            self.engine = Some(Engine::adopt(&self.disk(), &ram)?);
            // What ended before this may have left it so.
            self.set_read_only(false)?;
        }
        self.engine.as_mut().ok_or_else(|| Error::Internal("no engine".to_owned()))
    }

    /// A way to the RAM side that leads into no other mount.
    fn bare(&mut self) -> Result<PathBuf> {
        if let Some(bare) = &self.bare {
            return Ok(bare.path());
        }
        let (device, path) = (self.mount()?.device, &self.entry.path);
        let bare = Bare::of(path, device).doing("reach by itself", path)?;
        Ok(self.bare.insert(bare).path())
    }

    /// Copies the folder into memory and puts that over it.
    fn fill(&mut self, stop: &AtomicUsize) -> Result<()> {
        let (disk, path) = (self.disk(), self.entry.path.clone());
        let place = ramfs::mount_at(&disk).doing("look at", &disk)?;
        if place.point != disk {
            let clone = Detached::clone_of(&path).doing("reach a second time", &path)?;
            clone.publish_privately(&disk).doing("mount", &disk)?;
        }
        let filled = self.fill_still(stop);
        if filled.is_err() && !is_mounted(&self.entry)? {
            (self.engine, self.bare) = (None, None);
            self.leave()?;
        }
        filled
    }

    /// Copies until nobody has written meanwhile.
    fn fill_still(&mut self, stop: &AtomicUsize) -> Result<()> {
        let (disk, path) = (self.disk(), self.entry.path.clone());
        let survey = || ramfs::survey(&disk, OWN).doing("look through", &path);
        let mut changed = Vec::new();
        for _ in 0..ATTEMPTS {
            let before = survey()?;
            let detached = backend::make(&self.registry, &mut self.entry, &disk)?;
            let mut engine = Engine::fill(&disk, &detached.path(), &mut |_, _| match stop
                .load(Ordering::Relaxed)
            {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(ExitCode::Interrupted),
            })?;
            let after = survey()?;
            changed = after.differences(&before, NAMED);
            if !changed.is_empty() {
                continue;
            }
            refuse_holders(&path, &after)?;
            self.registry.publish(&self.entry.id)?;
            detached.publish(&path).doing("mount over", &path)?;
            engine.reach(&self.bare()?)?;
            self.engine = Some(engine);
            // Between the last look and the mount somebody may have begun.
            let published = survey()?;
            changed = published.differences(&after, NAMED);
            let held = refuse_holders(&path, &published);
            if changed.is_empty() && held.is_ok() {
                return Ok(());
            }
            // What went either way is on the disk after this.
            self.unbind(UNMOUNT, false)?;
            held?;
            break;
        }
        let named: Vec<_> = changed.iter().map(|path| path.display().to_string()).collect();
        Err(Error::Usage {
            message: format!(
                "{} is written to while it is copied: {}",
                path.display(),
                named.join(", ")
            ),
            hint: Some("stop what writes to it, and start that again afterwards".to_owned()),
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
    pub(super) fn sync(&mut self, depth: Depth) -> Result<Generation> {
        // Covered by something else, that would be held still.
        let pause = self.mount().ok().and_then(|_| Pause::of(&self.entry, &self.registry));
        let pause = pause.as_ref().map(|pause| pause as &dyn Stillness);
        if let Some(mut tracker) = self.tracker.take() {
            let done = self.engine()?.sync(&mut tracker, depth, pause);
            self.tracker = Some(tracker);
            return done;
        }
        // What changed before it was listened to is found by looking.
        self.engine()?;
        let tracker = self.bare().ok().map(|ram| Changing::begin(&ram));
        let done = self.engine()?.sync(&mut Untracked, depth, pause)?;
        self.tracker = tracker;
        Ok(done)
    }

    /// Looks for files of which no changes are told.
    pub(super) fn look_for_disks(&mut self) {
        // Where that cannot be told now it is in a second.
        let Ok(mount) = self.mount() else { return };
        let Ok(files) = ramfs::block_devices_on(&|device, _| device == mount.device) else {
            return;
        };
        if let Some(tracker) = &mut self.tracker {
            tracker.silent(&files, &self.entry.path);
        }
    }

    /// How changes are heard of, in words.
    pub(super) fn tracking(&self) -> &'static str {
        self.tracker.as_ref().map_or("all of it, each time", Changing::words)
    }

    /// What differs between the sides.
    pub(super) fn verify(&mut self) -> Result<Vec<Unequal>> {
        self.engine()?.verify()
    }

    /// Makes the RAM side read-only or writable, for all who see it anywhere. Fails
    /// with `ResourceBusy` while somebody has a file open for writing.
    pub(super) fn set_read_only(&self, is: bool) -> Result<()> {
        self.mount()?;
        let path = &self.entry.path;
        let doing = if is { "make read-only" } else { "make writable" };
        ramfs::set_read_only(path, is).doing(doing, path)
    }

    /// Whether it is, as far as can be seen.
    pub(super) fn is_read_only(&self) -> bool {
        self.mount().is_ok_and(|mount| mount.own_options.iter().any(|option| option == "ro"))
    }

    /// Takes the folder out of RAM: read-only, the last generation with every file
    /// hashed, a comparison, a plain unmount. Where anything of this fails it is
    /// writable again, and in RAM. `is_proven`: nothing may be on the disk side that
    /// is not in RAM.
    pub(super) fn unbind(&mut self, patience: Duration, is_proven: bool) -> Result<Ended> {
        self.refuse_users()?;
        self.sync(Depth::Dates)?;
        self.hold_still(patience)?;
        let ended = self.last_generation(is_proven).and_then(|ended| self.uncover(ended));
        if ended.is_err() && is_mounted(&self.entry).unwrap_or(true) {
            // Taken over again where the engine is gone; tried with every
            // generation to come where it fails here.
            let _ = self.engine().map(drop);
            let _ = self.set_read_only(false);
        }
        ended
    }

    /// Who works in it or has a folder of it open is not gone in a moment, and
    /// nobody is kept from writing for that.
    fn refuse_users(&self) -> Result<()> {
        let inside = self.mounted_inside()?;
        if let Some(first) = inside.first() {
            let named: Vec<_> =
                inside.iter().take(NAMED).map(|it| it.display().to_string()).collect();
            return Err(Error::Usage {
                message: format!(
                    "{} is in use: something else is mounted in it, on {}",
                    self.entry.path.display(),
                    named.join(", ")
                ),
                hint: Some(format!("'umount {}', and try again", first.display())),
            });
        }
        let lasting = |holder: &Holder| ![How::Reads, How::Writes].contains(&holder.how);
        let users: Vec<_> = self.users()?.into_iter().filter(lasting).collect();
        if users.is_empty() { Ok(()) } else { Err(self.in_use(&users)) }
    }

    /// Where somebody has mounted something in it: it cannot be unmounted then.
    fn mounted_inside(&self) -> Result<Vec<PathBuf>> {
        let (mount, path) = (self.mount()?, &self.entry.path);
        let all = ramfs::mounts(None).doing("look what is mounted in", path)?;
        let inside = all.into_iter().filter(|one| one.parent == mount.id && one.id != mount.id);
        Ok(inside.map(|one| one.point).collect())
    }

    /// Who holds the RAM side.
    fn users(&self) -> Result<Vec<Holder>> {
        let device = self.mount()?.device;
        let path = &self.entry.path;
        ramfs::holders_of_mounts(&[std::process::id()], device).doing("look who uses", path)
    }

    fn in_use(&self, users: &[Holder]) -> Error {
        let named: Vec<_> = users.iter().take(NAMED).map(ToString::to_string).collect();
        let path = self.entry.path.display();
        let (who, hint) = if named.is_empty() {
            let who = "no process is seen that does: a disk made of a file in it (losetup -a), \
                       swap, an exported folder, or something mounted in it";
            (who.to_owned(), "end that, and try again")
        } else {
            (named.join("; "), "end these, or have them work elsewhere, and try again")
        };
        Error::Usage { message: format!("{path} is in use: {who}"), hint: Some(hint.to_owned()) }
    }

    /// Makes it read-only as soon as nobody writes.
    fn hold_still(&self, patience: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.set_read_only(true) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ResourceBusy => {}
                other => return other,
            }
            if began.elapsed() >= patience {
                let users = self.users()?;
                let writes = |user: &Holder| user.how == How::Writes;
                let writers: Vec<_> = users.into_iter().filter(writes).collect();
                return Err(self.in_use(&writers));
            }
            sleep(PAUSE);
        }
    }

    /// The last generation, and the proof that it is all.
    fn last_generation(&mut self, is_proven: bool) -> Result<Ended> {
        let (mut done, mut warnings) = (self.sync(Depth::Everything)?, Vec::new());
        let path = self.entry.path.clone();
        if let Some(first) = done.unsettled.first() {
            let message = format!("{} cannot be read whole: {}", path.display(), first.shown());
            return Err(Error::Usage { message, hint: Some("look what it is".to_owned()) });
        }
        let mut different = if is_proven { self.verify()? } else { Vec::new() };
        let is_stray = |one: &Unequal| one.how == Differs::OnlyOnDisk;
        if !different.is_empty() && !different.iter().any(is_stray) {
            warnings.extend(self.keep_changed(&different)?);
            done = self.sync(Depth::Everything)?;
            different = self.verify()?;
        }
        let Some(first) = different.iter().find(|one| is_stray(one)).or(different.first()) else {
            return Ok(Ended { generation: done.number, warnings, ..Ended::default() });
        };
        let (count, shown) = (different.len(), first.path.shown());
        let hint = match first.how {
            Differs::OnlyOnDisk => format!(
                "somebody wrote to the covered disk side: move what was not in RAM out of {}",
                self.disk().display()
            ),
            _ => "'fsure ram verify' names all: it stays in RAM until they agree".to_owned(),
        };
        Err(Error::Usage {
            message: format!("{count} names differ between memory and disk, {shown} among them"),
            hint: Some(hint),
        })
    }

    /// The disk side was changed behind our back, or has rotted: what is in memory is what
    /// programs saw, and is to be brought to it once more. What was there is kept, and said.
    fn keep_changed(&mut self, different: &[Unequal]) -> Result<Option<String>> {
        (self.engine, self.tracker) = (None, None);
        let changed = different.iter().filter(|one| one.how == Differs::Content);
        let changed: Vec<_> = changed.map(|one| one.path.clone()).collect();
        let ram = self.bare()?;
        let engine = self.engine.insert(Engine::adopt(&self.disk(), &ram)?);
        if changed.is_empty() {
            return Ok(None);
        }
        let trash = engine.keep(&changed)?;
        let named: Vec<_> =
            changed.iter().take(NAMED).map(|path| path.shown().to_string()).collect();
        Ok(Some(format!(
            "{} changed on the disk side by another than fsure, or rotten: as in memory now, and \
             what was there is kept in {}; {} among them",
            changed.len(),
            self.uncovered(&trash.display().to_string()),
            named.join(", ")
        )))
    }

    /// A path on the disk side as it is called when that is uncovered.
    pub(super) fn uncovered(&self, path: &str) -> String {
        path.replace(&*self.disk().to_string_lossy(), &self.entry.path.to_string_lossy())
    }

    /// Lets go of both sides and unmounts, plainly.
    fn uncover(&mut self, mut ended: Ended) -> Result<Ended> {
        let (mount, path) = (self.mount()?, self.entry.path.clone());
        let elsewhere = ramfs::mounted_elsewhere(mount.device).doing("look who sees", &path)?;
        self.tracker = None;
        if let Some(engine) = self.engine.take() {
            ended.trash = engine.close()?.map(|trash| trash.display().to_string());
        }
        self.bare = None;
        // The trash is found below the folder again.
        ended.trash = ended.trash.map(|trash| self.uncovered(&trash));
        if let Err(error) = patiently(|| ramfs::unmount(&path)) {
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

    /// Somebody has unmounted it, lazily: what programs still write there is brought
    /// to the disk once more, and that was all.
    pub(super) fn abandon(&mut self) -> Ended {
        let mut ended = Ended { generation: self.generation(), ..Ended::default() };
        ended.warnings.push(format!(
            "{} was unmounted by somebody else: what programs go on writing to files that they \
             had open is lost",
            self.entry.path.display()
        ));
        self.tracker = None;
        let Some(mut engine) = self.engine.take() else { return ended };
        let last = engine.sync(&mut Untracked, Depth::Everything, None);
        let closed = last.map(|last| ended.generation = last.number).and_then(|()| engine.close());
        self.bare = None;
        let left = closed.and_then(|_| self.leave());
        ended.warnings.extend(left.err().map(|error| error.to_string()));
        ended
    }

    /// Nothing is in RAM any more: what is ours goes, too.
    fn leave(&self) -> Result<()> {
        clear(&self.registry, &self.entry)
    }
}

/// Who still sees the RAM side after it was unmounted: those that have mounts of
/// their own, read-only.
fn still_seen(elsewhere: &[ramfs::Elsewhere], device: u64) -> Vec<String> {
    // Most hear of the unmounting.
    let now = ramfs::mounted_elsewhere(device).unwrap_or_else(|_| elsewhere.to_vec());
    let warning = |one: &ramfs::Elsewhere| {
        let ramfs::Elsewhere { process, command, point } = one;
        format!(
            "process {process} ({command}) has mounts of its own and still sees the RAM side at \
             {}, as it was and read-only: start it again",
            point.display()
        )
    };
    now.iter().map(warning).collect()
}

/// Whether the RAM side of an entry is mounted.
pub(super) fn is_mounted(entry: &Entry) -> Result<bool> {
    Ok(place(entry)?.is_some())
}

/// Where the RAM side of an entry is mounted.
pub(super) fn place(entry: &Entry) -> Result<Option<PathBuf>> {
    let mounts = ramfs::mounts(None).doing("look what is mounted at", &entry.path)?;
    Ok(entry.place(&mounts))
}

/// Again and again where it is in use, for a while: who only looks is gone in a moment.
pub(super) fn patiently(mut act: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    let began = Instant::now();
    loop {
        match act() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && began.elapsed() < UNMOUNT => {}
            other => return other,
        }
        sleep(PAUSE);
    }
}

/// Refuses where somebody would go on with the disk side unseen.
fn refuse_holders(path: &Path, survey: &ramfs::Survey) -> Result<()> {
    let is_meant =
        |device: u64, inode: u64| device == survey.device && survey.inodes.contains(&inode);
    let holders = ramfs::holders(&[std::process::id()], &is_meant).doing("look who uses", path)?;
    let disks = ramfs::block_devices_on(&is_meant).doing("look what disks are in", path)?;
    if let Some(first) = disks.first() {
        let (path, first) = (path.display(), first.display());
        return Err(Error::Usage {
            message: format!("{path} is in use: a disk or swap is made of {first}"),
            hint: Some("'losetup -d' or 'swapoff' first".to_owned()),
        });
    }
    let writes = |holder: &Holder| holder.how != How::Reads;
    let Some(first) = holders.into_iter().find(writes) else { return Ok(()) };
    Err(Error::Usage {
        message: format!("{} is in use: {first}", path.display()),
        hint: Some("end it, and start it again when the folder is in RAM".to_owned()),
    })
}
