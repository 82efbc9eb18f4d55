//! A generation on its way to the disk side. What is staged counts when the journal
//! has its name, and not before; from then on it is done again and again until all
//! of it is done. `docs/ram.md` is the format.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use fsure_os::file_attributes::Ownership;
use fsure_os::root_dir::{is_denied, is_gone, is_other_kind};
use fsure_os::tree_copy::{NodeKind, Side};
use serde::{Deserialize, Serialize};

use super::disk_side::{DiskSide, JOURNAL, JOURNAL_NEW, LAST, OWN, staged, trash};
use super::journal_step::JournalStep;
use fsure_core::digest::hex;
use fsure_core::{Error, IoContext as _, RelPath, Result};

const VERSION: u32 = 1;
/// Staged name under which an object that is not a regular file is made before it gets
/// its own name.
const MAKING: &str = "making";

/// A generation that is committed.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) generation: u64,
    /// The most that the moments are apart of which it is; `None` for an instant.
    pub(super) spread: Option<Duration>,
    pub(super) steps: Vec<JournalStep>,
}

/// Result of applying a journal.
#[derive(Debug, Default)]
pub(super) struct JournalDone {
    /// Folders that could not be removed because another process put something there, and
    /// names whose file is not there any more.
    pub(super) kept: Vec<RelPath>,
    /// Names that were not as the last generation left them: whatever is known of the
    /// disk side may be wrong.
    pub(super) changed: Vec<RelPath>,
}

#[derive(Serialize, Deserialize)]
struct First {
    r#type: String,
    version: u32,
    generation: u64,
    steps: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread_ns: Option<u64>,
}

impl Journal {
    /// Writes it, under a name by which it does not count. What is staged must have
    /// been written by then.
    pub(super) fn write(&self, disk: &DiskSide) -> Result<()> {
        let path = disk.path.join(JOURNAL_NEW);
        disk.forget(JOURNAL_NEW)?;
        let mut file = disk.side.create(JOURNAL_NEW.as_bytes()).context("make", &path)?;
        file.write_all(self.text().as_bytes()).context("write", &path)?;
        // With it comes the drive's own cache, and so all that was staged before.
        file.sync_all().context("flush", &path)
    }

    /// Gives it its name: when this returns, the generation is on the medium and
    /// counts. After an error it is not known if it counts, and the caller must do it again.
    pub(super) fn publish(&self, disk: &DiskSide) -> Result<()> {
        let path = disk.path.join(JOURNAL_NEW);
        match disk.side.rename(JOURNAL_NEW.as_bytes(), JOURNAL.as_bytes()) {
            Err(error) if is_gone(&error) => {}
            other => other.context("name", &path)?,
        }
        disk.side.flush(OWN.as_bytes()).context("flush", &disk.path.join(OWN))
    }

    fn text(&self) -> String {
        let (generation, steps) = (self.generation, self.steps.len());
        let nanoseconds = |spread: Duration| u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX);
        let spread_ns = self.spread.map(nanoseconds);
        let r#type = "ram-journal".to_owned();
        let first = First { r#type, version: VERSION, generation, steps, spread_ns };
        let mut text = serde_json::to_string(&first).expect("plain data") + "\n";
        for step in &self.steps {
            text += &step.line();
            text.push('\n');
        }
        let last = last_line(&text);
        text + &last + "\n"
    }

    /// Returns the journal of a text; `None` if it is not whole. Fails if it is of a version
    /// that this fsure does not know: it may well be whole.
    fn parse(text: &[u8]) -> io::Result<Option<Self>> {
        let Ok(text) = std::str::from_utf8(text) else { return Ok(None) };
        let Some(body) = text.strip_suffix('\n') else { return Ok(None) };
        let Some(cut) = body.rfind('\n') else { return Ok(None) };
        let (before, end) = (&text[..=cut], &body[cut + 1..]);
        if end != last_line(before) {
            return Ok(None);
        }
        let mut lines = before.lines();
        let first = lines.next().and_then(|line| serde_json::from_str::<First>(line).ok());
        let steps: Option<Vec<_>> = lines.map(JournalStep::parse).collect();
        match (first, steps) {
            (Some(first), Some(steps))
                if first.version == VERSION && first.steps == steps.len() =>
            {
                let spread = first.spread_ns.map(Duration::from_nanos);
                Ok(Some(Self { generation: first.generation, spread, steps }))
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its version is newer than this fsure: use a newer fsure",
            )),
        }
    }

    /// The one on the disk side that is committed, if any.
    pub(super) fn read(disk: &DiskSide) -> Result<Option<Self>> {
        let path = disk.path.join(JOURNAL);
        let Some(text) = content(&disk.side, JOURNAL).context("read", &path)? else {
            return Ok(None);
        };
        Self::parse(&text).context("read", &path)
    }

    /// The last generation that was applied, if there is one.
    pub(super) fn last_applied(disk: &DiskSide) -> Result<Option<Self>> {
        let text = content(&disk.side, LAST).context("read", &disk.path.join(LAST))?;
        Ok(text.and_then(|text| Self::parse(&text).ok().flatten()))
    }

    /// Fails if a staged file is not what was staged. The drive then lost data that it
    /// reported as written, and only the generation before is left.
    pub(super) fn check_stage(&self, disk: &DiskSide) -> Result<()> {
        for step in &self.steps {
            let (path, stage, size, digest) = match step {
                JournalStep::Put { path, stage, size, digest } => (path, stage, *size, digest),
                JournalStep::Append { path, stage, from, size, digest } => {
                    (path, stage, size - from, digest)
                }
                _ => continue,
            };
            let file = match disk.side.read(staged(stage).as_bytes()) {
                // It has its name by now.
                Err(error) if is_gone(&error) => continue,
                other => other.context("read", &disk.path.join(staged(stage)))?,
            };
            let found = super::content_digest::digest(&file, size);
            if found.context("read", &disk.path.join(staged(stage)))? != Some(*digest) {
                return Err(Error::Io {
                    doing: "complete the last generation of",
                    path: disk.path.clone(),
                    source: io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!(
                            "what was staged for {} is damaged, although the drive acknowledged it",
                            path.display()
                        ),
                    ),
                });
            }
        }
        Ok(())
    }

    /// Does all of it and waits until it is on the medium.
    pub(super) fn apply(&self, disk: &DiskSide) -> Result<JournalDone> {
        let done = self.do_all(disk)?;
        disk.side.flush_all().context("flush", &disk.path)?;
        let name = disk.path.join(LAST);
        disk.side.rename(JOURNAL.as_bytes(), LAST.as_bytes()).context("name", &name)?;
        Ok(done)
    }

    /// Does all of it, whether or not some of it was done before. What another process
    /// has put in the way is moved to the trash: a generation that counts must be one
    /// that can be done.
    pub(super) fn do_all(&self, disk: &DiskSide) -> Result<JournalDone> {
        let mut done = JournalDone::default();
        for step in &self.steps {
            let path = step.path();
            let mut result = self.do_once(&disk.side, step);
            if result.as_ref().is_err_and(is_denied) && allow(&disk.side, step).is_ok() {
                result = self.do_once(&disk.side, step);
            }
            if result.as_ref().is_err_and(is_in_the_way) {
                result = self.do_otherwise(&disk.side, step);
                done.changed.push(path.clone());
            }
            if !result.context("change", &disk.path.join(path_of(path)))? {
                done.kept.push(path.clone());
            }
        }
        Ok(done)
    }

    /// A step that finds the disk side not as it was left. False where there is
    /// nothing to do it to.
    fn do_otherwise(&self, side: &Side, step: &JournalStep) -> io::Result<bool> {
        match step {
            JournalStep::Put { path, stage, .. } => {
                self.clear_way(side, path, false)?;
                match side.rename(staged(stage).as_bytes(), path.as_bytes()) {
                    // It had its name before, and was removed.
                    Err(error) if is_gone(&error) => Ok(false),
                    other => other.map(|()| true),
                }
            }
            JournalStep::Make { path, kind, .. } => {
                self.clear_way(side, path, *kind == NodeKind::Folder)?;
                self.do_once(side, step)
            }
            JournalStep::Append { .. } | JournalStep::Meta { .. } | JournalStep::Remove { .. } => {
                Ok(false)
            }
        }
    }

    /// Makes the folders that a path is in, and moves what is of another kind away.
    fn clear_way(&self, side: &Side, path: &RelPath, is_folder: bool) -> io::Result<()> {
        let mut at = RelPath::root();
        for name in path.as_bytes().split(|byte| *byte == b'/') {
            at = at.join(name);
            let is_above = at != *path;
            let is_missing = match side.facts(at.as_bytes()) {
                Err(error) if is_gone(&error) => true,
                other => {
                    let is_other = (other?.kind == NodeKind::Folder) != (is_above || is_folder);
                    if is_other {
                        self.discard(side, &at)?;
                    }
                    is_other
                }
            };
            if is_missing && is_above {
                side.make(at.as_bytes(), NodeKind::Folder, b"")?;
            }
        }
        Ok(())
    }

    /// Moves a name to this generation's trash.
    fn discard(&self, side: &Side, path: &RelPath) -> io::Result<()> {
        let mut target = make_trash(side, self.generation, path)?;
        // One that was discarded before by the same name.
        while side.facts(target.as_bytes()).is_ok_and(|facts| facts.kind == NodeKind::Folder) {
            target = RelPath::from_bytes([target.as_bytes(), b"~"].concat());
        }
        side.rename(path.as_bytes(), target.as_bytes())
    }

    fn do_once(&self, side: &Side, step: &JournalStep) -> io::Result<bool> {
        match step {
            JournalStep::Remove { path, is_folder, to_trash } => {
                return self.remove(side, path, *is_folder, *to_trash);
            }
            JournalStep::Put { path, stage, .. } => {
                match side.rename(staged(stage).as_bytes(), path.as_bytes()) {
                    Err(error) if is_gone(&error) => {
                        side.facts(path.as_bytes())?;
                    }
                    // Between names of one file it does nothing: the stage is emptied later.
                    other => other?,
                }
            }
            JournalStep::Append { path, stage, from, size, .. } => {
                let tail = side.read(staged(stage).as_bytes())?;
                let file = side.write(path.as_bytes())?;
                // Not the one whose tail this is.
                if !(*from..=*size).contains(&file.metadata()?.len()) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                super::content_digest::append(&tail, size - from, &file, *from)?;
                file.set_len(*size)?;
            }
            JournalStep::Make { path, kind: NodeKind::Folder, .. } => {
                match side.make(path.as_bytes(), NodeKind::Folder, b"") {
                    Err(error)
                        if error.kind() == io::ErrorKind::AlreadyExists
                            && side.facts(path.as_bytes())?.kind == NodeKind::Folder => {}
                    other => other?,
                }
            }
            JournalStep::Make { path, kind, target, meta } => {
                let making = staged(MAKING);
                forget(side, making.as_bytes())?;
                side.make(making.as_bytes(), *kind, target)?;
                let (mtime, attributes) = (Some(meta.mtime_ns), &meta.attributes);
                side.set(making.as_bytes(), *kind, meta.ownership, mtime, attributes)?;
                side.rename(making.as_bytes(), path.as_bytes())?;
            }
            JournalStep::Meta { path, kind, meta } => {
                let (mtime, attributes) = (Some(meta.mtime_ns), &meta.attributes);
                side.set(path.as_bytes(), *kind, meta.ownership, mtime, attributes)?;
            }
        }
        Ok(true)
    }

    /// False where a folder stays, because something is in it that the RAM side
    /// never had.
    fn remove(
        &self,
        side: &Side,
        path: &RelPath,
        is_folder: bool,
        to_trash: bool,
    ) -> io::Result<bool> {
        match side.facts(path.as_bytes()) {
            Err(error) if is_gone(&error) => return Ok(true),
            // The entry that took its place came later in this journal.
            Ok(facts) if (facts.kind == NodeKind::Folder) != is_folder => return Ok(true),
            other => other?,
        };
        if to_trash && !is_folder {
            return self.discard(side, path).map(|()| true);
        }
        match side.remove(path.as_bytes(), is_folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            other => other.map(|()| true),
        }
    }
}

/// The line that says that all lines before it are there, as they were written.
fn last_line(before: &str) -> String {
    let blake3 = hex(blake3::hash(before.as_bytes()).as_bytes());
    format!(r#"{{"type":"end","blake3":"{blake3}"}}"#)
}

impl JournalStep {
    fn path(&self) -> &RelPath {
        match self {
            Self::Remove { path, .. }
            | Self::Put { path, .. }
            | Self::Append { path, .. }
            | Self::Make { path, .. }
            | Self::Meta { path, .. } => path,
        }
    }
}

/// A path for a message.
pub(super) fn path_of(path: &RelPath) -> std::borrow::Cow<'_, std::path::Path> {
    fsure_os::path::from_bytes(path.as_bytes())
}

/// Lets its owner do a step: change the folder, or write the file, that was made
/// read-only. Its mode comes later in every such journal.
fn allow(side: &Side, step: &JournalStep) -> io::Result<()> {
    let add = |path: &RelPath, kind, mode| {
        let facts = side.facts(path.as_bytes())?;
        let ownership = Ownership { mode: facts.ownership.mode | mode, ..facts.ownership };
        let attributes = side.attributes(path.as_bytes())?;
        side.set(path.as_bytes(), kind, ownership, None, &attributes)
    };
    let path = step.path();
    add(&path.parent().unwrap_or_default(), NodeKind::Folder, 0o700)?;
    if let JournalStep::Append { .. } = step {
        add(path, NodeKind::File, 0o600)?;
    }
    Ok(())
}

/// Returns true if an error means that the disk side is not as the last generation left
/// it.
fn is_in_the_way(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory};
    is_gone(error)
        || is_other_kind(error)
        || [AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory].contains(&error.kind())
}

/// Returns the place of a path in the trash of a generation, and makes the folders above
/// it.
pub(super) fn make_trash(side: &Side, generation: u64, path: &RelPath) -> io::Result<RelPath> {
    let trash = RelPath::from_bytes(trash(generation).into_bytes());
    let names = path.as_bytes().split(|byte| *byte == b'/');
    let target = names.fold(trash, |at, name| at.join(name));
    make_folders(side, &target)?;
    Ok(target)
}

/// Makes the folders that a path is in.
fn make_folders(side: &Side, path: &RelPath) -> io::Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else { return Ok(()) };
    match side.make(parent.as_bytes(), NodeKind::Folder, b"") {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if is_gone(&error) => {
            make_folders(side, &parent)?;
            side.make(parent.as_bytes(), NodeKind::Folder, b"")
        }
        other => other,
    }
}

pub(super) fn forget(side: &Side, path: &[u8]) -> io::Result<()> {
    match side.remove(path, false) {
        Err(error) if is_gone(&error) => Ok(()),
        other => other,
    }
}

fn content(side: &Side, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut file = match side.read(name.as_bytes()) {
        Err(error) if is_gone(&error) => return Ok(None),
        other => other?,
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_is_not_whole_was_never_committed() {
        let remove = |name: &[u8]| JournalStep::Remove {
            path: RelPath::from_bytes(name.to_vec()),
            is_folder: false,
            to_trash: false,
        };
        let steps = vec![remove(b"a"), remove(b"b")];
        let journal = Journal { generation: 3, spread: None, steps };
        let text = journal.text().into_bytes();
        let whole = Journal::parse(&text).unwrap().expect("it is whole");
        assert_eq!((whole.generation, &whole.steps, whole.spread), (3, &journal.steps, None));
        let spread = Some(Duration::from_micros(1500));
        let spread = Journal { spread, ..whole }.text();
        assert_eq!(
            Journal::parse(spread.as_bytes()).unwrap().unwrap().spread.unwrap().as_micros(),
            1500
        );
        // As it was written before generations noted it.
        assert!(!journal.text().contains("spread") && spread.contains("\"spread_ns\":1500000"));
        for length in 0..text.len() {
            assert!(Journal::parse(&text[..length]).unwrap().is_none(), "{length} bytes");
        }
        for at in 0..text.len() - 1 {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            assert!(Journal::parse(&damaged).unwrap().is_none(), "byte {at}");
        }
    }
}
