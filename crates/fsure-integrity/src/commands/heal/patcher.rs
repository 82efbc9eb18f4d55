//! Healing in place: a journal first, then the file. What comes after the
//! journal is the same whether it was written just now or by a run that was
//! killed.

use std::io;
use std::path::PathBuf;

use fsure_os::Stat;
use fsure_os::opener::Opener;
use fsure_os::path as os_path;
use fsure_os::repair_write::{self, Writing};
use fsure_os::root_dir::{is_gone, is_other_kind};

use super::heal_task::{HealTask, require_as_found};
use super::journal::{self, Journal, JournalHeader, PAGE, Piece};
use super::proof::RecordProof;
use super::source_reader::{
    HealAttempt, HealFailure, OrUnhealed as _, SourceErrors, SourceFile, SourceReader,
};
use crate::catalog::{Catalog, RootLocation};
use crate::model::HealSource;
use fsure_core::Clock;
use fsure_core::block_hash::BLOCK;

/// Failed reads spent on what a block was made of before. It is wanted only to
/// be put back if the medium refuses what is proven.
const FAILURES_MAX: usize = 16;

/// Returns true if the parts of a file that are to change can be located.
pub(super) fn can_patch(recorded: &RecordProof) -> bool {
    recorded.is_by_blocks() || recorded.size().is_some_and(|size| size <= BLOCK)
}

/// Returns true if an error means that there is no file of that name any more.
fn is_no_file(error: &io::Error) -> bool {
    is_gone(error) || is_other_kind(error) || error.kind() == io::ErrorKind::InvalidInput
}

impl From<io::Error> for HealFailure {
    fn from(error: io::Error) -> Self {
        Self::Unhealed(format!("its journal: {error}"))
    }
}

/// A file that was written in place, and proved.
pub(super) struct Patched {
    /// Device and inode.
    pub(super) file: (u64, u64),
    pub(super) stat: Stat,
    /// The time of the proof, in nanoseconds since 1970.
    pub(super) proved_ns: i64,
}

/// Writes into the damaged files of one root, one after the other: there is one journal.
pub(super) struct Patcher<'a> {
    place: &'a RootLocation,
    opener: &'a Opener,
    journal: PathBuf,
}

impl<'a> Patcher<'a> {
    pub(super) fn new(place: &'a RootLocation, opener: &'a Opener) -> Self {
        Self { place, opener, journal: Catalog::journal_file(&place.catalog) }
    }

    /// Returns true if there is a journal, be it that of a run before this one.
    pub(super) fn has_journal(&self) -> bool {
        os_path::exists(&self.journal)
    }

    /// Writes into a damaged file what is wrong in it. The journal stays: until the
    /// record has the healed file, a run that is killed has to be gone on with.
    pub(super) fn patch(
        &self,
        reader: &mut SourceReader<'_>,
        task: &HealTask<'_>,
    ) -> HealAttempt<Patched> {
        let (root, path) = (self.opener.root(), &task.finding.path);
        if self.has_journal() {
            return Err(HealFailure::Unhealed(format!(
                "the journal of another file is still needed: '{} --yes' finishes that one first",
                self.place.command("heal")
            )));
        }
        let before = root.stat(path.as_bytes()).or_unhealed("examine it")?;
        require_as_found(&before, task.finding)?;
        // A file that must not be written to needs no journal.
        repair_write::patch(root, path.as_bytes()).or_unhealed("write into it")?;
        self.write_journal(reader, task, before.inode)?;
        let now = root.stat(path.as_bytes()).or_unhealed("examine it")?;
        if let Err(busy) = require_as_found(&now, task.finding) {
            self.remove_journal();
            return Err(busy);
        }
        let header = self.read_journal()?;
        let (stat, proved_ns) = self.carry_out(reader, &header, &task.recorded)?;
        Ok(Patched { file: (before.device, before.inode), stat, proved_ns })
    }

    fn write_journal(
        &self,
        reader: &mut SourceReader<'_>,
        task: &HealTask<'_>,
        inode: u64,
    ) -> HealAttempt<()> {
        let then = &task.recorded.row.record;
        let damaged = task.damaged.as_ref().map_or(0, |stat| stat.mtime_ns);
        let is_elsewhere = |place: &usize| task.candidates[*place].origin != HealSource::Itself;
        let from = task.plan.from.iter().filter(|(_, place)| is_elsewhere(place));
        let pieces: Vec<u64> = from.map(|(piece, _)| *piece).collect();
        let header = JournalHeader {
            path: task.finding.path.clone(),
            inode,
            size_before: task.damaged.as_ref().map_or(0, |stat| stat.size),
            size_after: task.plan.size,
            mtime_before_ns: damaged,
            mtime_after_ns: if then.entry.is_undated() { damaged } else { then.entry.mtime_ns },
            blake3: then.digests.blake3.unwrap_or_default(),
            pieces: pieces.len() as u64,
        };
        let itself = task.candidates.first().filter(|first| first.origin == HealSource::Itself);
        let mut journal = Journal::create(&self.journal, &header)?;
        for piece in pieces {
            let range = task.recorded.range(piece, task.plan.size);
            task.read_piece(reader, piece)?;
            let new = reader.last(range.end - range.start).to_vec();
            let mut old = match itself {
                Some(itself) => look_at_piece(reader, itself, range.start, new.len()),
                None => Piece { offset: range.start, old: vec![], readable: [0; 32], new: vec![] },
            };
            old.new = new;
            journal.push(&old)?;
        }
        Ok(journal.finish()?)
    }

    /// Returns the header of the journal; a damaged journal is put aside.
    pub(super) fn read_journal(&self) -> HealAttempt<JournalHeader> {
        match journal::read::<HealFailure>(&self.journal, &mut |_, _| Ok(())) {
            Err(HealFailure::Unhealed(why)) => Err(self.set_aside(&why)),
            other => other,
        }
    }

    /// Carries out the journal, or takes it back. Returns the metadata of the file
    /// then, and the time of the proof in nanoseconds since 1970.
    pub(super) fn carry_out(
        &self,
        reader: &mut SourceReader<'_>,
        header: &JournalHeader,
        recorded: &RecordProof,
    ) -> HealAttempt<(Stat, i64)> {
        let path = header.path.as_bytes();
        let itself = match SourceFile::open(HealSource::Itself, self.opener, path) {
            Err(error) if is_no_file(&error) => {
                return Err(self.set_aside("the file is not there any more"));
            }
            other => other.or_unhealed("read it")?,
        };
        let mut is_from_heal = itself.stat.inode == header.inode;
        journal::read::<HealFailure>(&self.journal, &mut |_, piece| {
            let length = piece.new.len().max(piece.old.len());
            let now = look_at_piece(reader, &itself, piece.offset, length);
            is_from_heal = is_from_heal && piece.is_from_heal(&now);
            Ok(())
        })?;
        if !is_from_heal {
            return Err(self.set_aside("another process wrote to the file in the meantime"));
        }
        let writing = repair_write::patch(self.opener.root(), path).or_unhealed("write into it")?;
        let mut written = None;
        let proved = self.write_new(reader, header, &writing, recorded, &mut written);
        let is_as_written = |then: Stat| {
            let now = writing.stat();
            now.is_ok_and(|now| (now.mtime_ns, now.size) == (then.mtime_ns, then.size))
        };
        // Neither a date nor what was there before is put over what others wrote.
        if !written.is_none_or(is_as_written) {
            return Err(
                self.set_aside("another process wrote to the file while it was being healed")
            );
        }
        match proved {
            Ok(proved_ns) => Ok((cut_and_date(header, &writing)?, proved_ns)),
            Err(HealFailure::Unhealed(why)) => Err(self.roll_back(header, &writing, &why)),
            Err(other) => Err(other),
        }
    }

    /// Writes and proves. Returns the time of the proof in nanoseconds since 1970;
    /// `written` is set to the metadata of the file once it was written.
    fn write_new(
        &self,
        reader: &mut SourceReader<'_>,
        header: &JournalHeader,
        writing: &Writing,
        recorded: &RecordProof,
        written: &mut Option<Stat>,
    ) -> HealAttempt<i64> {
        journal::read::<HealFailure>(&self.journal, &mut |_, piece| {
            writing.write_at(&piece.new, piece.offset).or_unhealed("write into it")
        })?;
        writing.flush().or_unhealed("write into it")?;
        *written = Some(writing.stat().or_unhealed("examine it")?);
        let proved_ns = Clock::default().now_ns();
        self.prove_in_place(reader, header, recorded)?;
        Ok(proved_ns)
    }

    /// Reads from the medium what was written, and all around it.
    fn prove_in_place(
        &self,
        reader: &mut SourceReader<'_>,
        header: &JournalHeader,
        recorded: &RecordProof,
    ) -> HealAttempt<()> {
        let path = header.path.as_bytes();
        let written =
            SourceFile::open(HealSource::Itself, self.opener, path).or_unhealed("read it")?;
        let mut is_proved = true;
        journal::read::<HealFailure>(&self.journal, &mut |_, piece| {
            let length = piece.new.len() as u64;
            let read = reader.read(&written, piece.offset, length);
            is_proved &= read.is_ok_and(|content| content == piece.new);
            Ok(())
        })?;
        let mut troubles = SourceErrors::default();
        is_proved &= reader.has_whole(recorded, &written, &mut troubles)?;
        let why = "what was written reads back differently";
        if is_proved { Ok(()) } else { Err(HealFailure::Unhealed(why.to_owned())) }
    }

    /// Puts back what was there before, as far as it could be read.
    fn roll_back(&self, header: &JournalHeader, writing: &Writing, why: &str) -> HealFailure {
        let put_back = || -> io::Result<()> {
            journal::read::<io::Error>(&self.journal, &mut |_, piece| {
                piece.readable_pages().try_for_each(|(at, bytes)| writing.write_at(bytes, at))
            })?;
            writing.set_size(header.size_before)?;
            writing.set_date(header.mtime_before_ns)?;
            writing.flush()
        };
        match put_back() {
            Ok(()) => {
                self.remove_journal();
                HealFailure::Unhealed(format!("{why}; what was there before was put back"))
            }
            Err(error) => HealFailure::Unhealed(format!(
                "{why}; what was there before could not be put back ({error}): the journal is \
                 kept, and the next heal goes on"
            )),
        }
    }

    /// Keeps a journal that cannot be used out of the way.
    pub(super) fn set_aside(&self, why: &str) -> HealFailure {
        let journal = &self.journal;
        let free = os_path::free_numbered(journal, ".");
        let kept = match os_path::rename(journal, &free) {
            Ok(()) => format!("its journal is kept as {}", free.display()),
            Err(error) => format!("its journal could not be moved away: {error}"),
        };
        HealFailure::Unhealed(format!("{why}: it was left alone, and {kept}"))
    }

    pub(super) fn remove_journal(&self) {
        // One that comes back after a power cut finds its work done.
        os_path::remove(&self.journal, false);
    }
}

/// Reads a piece of a file as it is now, as far as it can be read; its pages that
/// cannot be read are marked.
fn look_at_piece(
    reader: &mut SourceReader<'_>,
    itself: &SourceFile,
    offset: u64,
    length: usize,
) -> Piece {
    let mut piece = Piece { offset, old: Vec::new(), readable: [0xff; 32], new: Vec::new() };
    if let Ok(content) = reader.read(itself, offset, length as u64) {
        piece.old = content.to_vec();
        return piece;
    }
    let there = itself.stat.size.saturating_sub(offset).min(length as u64) as usize;
    piece.old = vec![0; there];
    let (step, mut failures) = ((itself.grain() as usize).max(PAGE), 0);
    for at in (0..there).step_by(step) {
        let end = (at + step).min(there);
        let read = (failures < FAILURES_MAX)
            .then(|| reader.read(itself, offset + at as u64, (end - at) as u64).ok())
            .flatten()
            .filter(|content| content.len() == end - at);
        match read {
            Some(content) => piece.old[at..end].copy_from_slice(content),
            None => {
                failures += 1;
                for page in at / PAGE..end.div_ceil(PAGE) {
                    piece.readable[page / 8] &= !(1 << (page % 8));
                }
            }
        }
    }
    piece
}

/// Sets the size and the date: last, since what is beyond the recorded end is in no
/// journal.
fn cut_and_date(header: &JournalHeader, writing: &Writing) -> HealAttempt<Stat> {
    let set = || {
        writing.set_size(header.size_after)?;
        writing.set_date(header.mtime_after_ns)?;
        writing.flush()?;
        writing.stat()
    };
    set().or_unhealed("its content is proven, but its size and date are not; the next heal goes on")
}
