//! Healing in place: a journal first, then the file. What comes after the
//! journal is the same whether it was written just now or by a run that was
//! killed.

use std::io;

use fsure_os::Stat;
use fsure_os::path as os_path;
use fsure_os::repair_write::{self, Writing};
use fsure_os::root_dir::{is_gone, is_other_kind};

use super::healer::{HealTask, Healer, require_as_found};
use super::journal::{self, Journal, JournalHeader, PAGE, Piece};
use super::keep_replaced::KeptJournal;
use super::proof::RecordProof;
use super::source_reader::{HealAttempt, HealFailure, OrUnhealed as _, SourceErrors, SourceFile};
use crate::catalog::{Catalog, PageStart, Row, StoredRow};
use crate::model::{HealResult, HealSource};
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

impl Healer<'_> {
    /// Writes into a damaged file what is wrong in it.
    pub(super) fn patch(
        &mut self,
        work: &HealTask<'_>,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let path = &work.finding.path;
        if os_path::exists(&self.journal()) {
            return Err(HealFailure::Unhealed(format!(
                "the journal of another file is still needed: '{} --yes' goes on with that one \
                 first",
                self.place.command("heal")
            )));
        }
        let before = self.root.stat(path.as_bytes()).or_unhealed("look at it")?;
        require_as_found(&before, work.finding)?;
        // A file that must not be written to needs no journal.
        repair_write::patch(&self.root, path.as_bytes()).or_unhealed("write into it")?;
        self.write_journal(work, before.inode)?;
        let now = self.root.stat(path.as_bytes()).or_unhealed("look at it")?;
        if let Err(busy) = require_as_found(&now, work.finding) {
            self.remove_journal();
            return Err(busy);
        }
        let header = self.read_journal()?;
        let (healed, proved_ns) = self.carry_out(&header, &work.recorded)?;
        self.record(&work.recorded.row, path, &healed, proved_ns)?;
        self.catalog.commit()?;
        if self.must_keep_original(work.finding) {
            match self.keep_journal(path)? {
                KeptJournal::Below(kept) => remedy.kept = Some(kept),
                KeptJournal::Beside(kept) => {
                    let kept = kept.display();
                    remedy.reason = Some(format!("the bytes that were replaced are in {kept}"));
                }
            }
        } else {
            self.remove_journal();
        }
        self.patched.insert((before.device, before.inode));
        Ok(())
    }

    fn write_journal(&mut self, work: &HealTask<'_>, inode: u64) -> HealAttempt<()> {
        let then = &work.recorded.row.record;
        let damaged = work.damaged.as_ref().map_or(0, |stat| stat.mtime_ns);
        let is_elsewhere = |place: &usize| work.candidates[*place].origin != HealSource::Itself;
        let from = work.plan.from.iter().filter(|(_, place)| is_elsewhere(place));
        let pieces: Vec<u64> = from.map(|(piece, _)| *piece).collect();
        let header = JournalHeader {
            path: work.finding.path.clone(),
            inode,
            size_before: work.damaged.as_ref().map_or(0, |stat| stat.size),
            size_after: work.plan.size,
            mtime_before_ns: damaged,
            mtime_after_ns: if then.entry.is_undated() { damaged } else { then.entry.mtime_ns },
            blake3: then.digests.blake3.unwrap_or_default(),
            pieces: pieces.len() as u64,
        };
        let itself = work.candidates.first().filter(|first| first.origin == HealSource::Itself);
        let mut journal = Journal::create(&self.journal(), &header)?;
        for piece in pieces {
            let range = work.recorded.range(piece, work.plan.size);
            self.read_piece(work, piece)?;
            let new = self.reader.last(range.end - range.start).to_vec();
            let mut old = match itself {
                Some(itself) => self.look_at_piece(itself, range.start, new.len()),
                None => Piece { offset: range.start, old: vec![], readable: [0; 32], new: vec![] },
            };
            old.new = new;
            journal.push(&old)?;
        }
        Ok(journal.finish()?)
    }

    /// Reads what a piece is to be, and proves it.
    fn read_piece(&mut self, work: &HealTask<'_>, piece: u64) -> HealAttempt<()> {
        if work.recorded.is_by_blocks() {
            return self.read_block(work, piece);
        }
        let candidate = &work.candidates[work.plan.from[&piece]];
        let mut troubles = SourceErrors::default();
        // At most a block, which stays where it was read to.
        if self.reader.has_whole(&work.recorded, candidate, &mut troubles)? {
            return Ok(());
        }
        Err(HealFailure::Unhealed(format!("the copy cannot be had any more ({})", troubles.told())))
    }

    /// Reads a piece of a file as it is now, as far as it can be read; its pages that
    /// cannot be read are marked.
    fn look_at_piece(&mut self, itself: &SourceFile, offset: u64, length: usize) -> Piece {
        let mut piece = Piece { offset, old: Vec::new(), readable: [0xff; 32], new: Vec::new() };
        if let Ok(content) = self.reader.read(itself, offset, length as u64) {
            piece.old = content.to_vec();
            return piece;
        }
        let there = itself.stat.size.saturating_sub(offset).min(length as u64) as usize;
        piece.old = vec![0; there];
        let (step, mut failures) = ((itself.grain() as usize).max(PAGE), 0);
        for at in (0..there).step_by(step) {
            let end = (at + step).min(there);
            let read = (failures < FAILURES_MAX)
                .then(|| self.reader.read(itself, offset + at as u64, (end - at) as u64).ok())
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

    /// Returns the header of the journal; a damaged journal is put aside.
    fn read_journal(&self) -> HealAttempt<JournalHeader> {
        match journal::read::<HealFailure>(&self.journal(), &mut |_, _| Ok(())) {
            Err(HealFailure::Unhealed(why)) => Err(self.set_aside(&why)),
            other => other,
        }
    }

    /// Carries out the journal, or takes it back. Returns the metadata of the file
    /// then, and the time of the proof in nanoseconds since 1970.
    fn carry_out(
        &mut self,
        header: &JournalHeader,
        recorded: &RecordProof,
    ) -> HealAttempt<(Stat, i64)> {
        let path = header.path.as_bytes();
        let itself = match SourceFile::open(HealSource::Itself, &self.opener, path) {
            Err(error) if is_no_file(&error) => {
                return Err(self.set_aside("the file is not there any more"));
            }
            other => other.or_unhealed("read it")?,
        };
        let mut is_ours = itself.stat.inode == header.inode;
        journal::read::<HealFailure>(&self.journal(), &mut |_, piece| {
            let length = piece.new.len().max(piece.old.len());
            let now = self.look_at_piece(&itself, piece.offset, length);
            is_ours = is_ours && piece.is_ours(&now);
            Ok(())
        })?;
        if !is_ours {
            return Err(self.set_aside("somebody has written to the file meanwhile"));
        }
        let writing = repair_write::patch(&self.root, path).or_unhealed("write into it")?;
        let mut written = None;
        let proved = self.write_new(header, &writing, recorded, &mut written);
        let is_as_written = |then: Stat| {
            let now = writing.stat();
            now.is_ok_and(|now| (now.mtime_ns, now.size) == (then.mtime_ns, then.size))
        };
        // Neither a date nor what was there before is put over what others wrote.
        if !written.is_none_or(is_as_written) {
            return Err(self.set_aside("somebody has written to the file while it was healed"));
        }
        match proved {
            Ok(proved_ns) => Ok((self.cut_and_date(header, &writing)?, proved_ns)),
            Err(HealFailure::Unhealed(why)) => Err(self.roll_back(header, &writing, &why)),
            Err(other) => Err(other),
        }
    }

    /// Writes and proves. Returns the time of the proof in nanoseconds since 1970;
    /// `written` is set to the metadata of the file once it was written.
    fn write_new(
        &mut self,
        header: &JournalHeader,
        writing: &Writing,
        recorded: &RecordProof,
        written: &mut Option<Stat>,
    ) -> HealAttempt<i64> {
        journal::read::<HealFailure>(&self.journal(), &mut |_, piece| {
            writing.write_at(&piece.new, piece.offset).or_unhealed("write into it")
        })?;
        writing.flush().or_unhealed("write into it")?;
        *written = Some(writing.stat().or_unhealed("look at it")?);
        let proved_ns = Clock::default().now_ns();
        self.prove_in_place(header, recorded)?;
        Ok(proved_ns)
    }

    /// Last, since what is beyond the recorded end is in no journal.
    fn cut_and_date(&self, header: &JournalHeader, writing: &Writing) -> HealAttempt<Stat> {
        let set = || {
            writing.set_size(header.size_after)?;
            writing.set_date(header.mtime_after_ns)?;
            writing.flush()?;
            writing.stat()
        };
        set().or_unhealed("its content is proven, but not its size and date; the next heal goes on")
    }

    /// Reads from the medium what was written, and all around it.
    fn prove_in_place(
        &mut self,
        header: &JournalHeader,
        recorded: &RecordProof,
    ) -> HealAttempt<()> {
        let path = header.path.as_bytes();
        let written =
            SourceFile::open(HealSource::Itself, &self.opener, path).or_unhealed("read it")?;
        let mut is_proved = true;
        journal::read::<HealFailure>(&self.journal(), &mut |_, piece| {
            let length = piece.new.len() as u64;
            let read = self.reader.read(&written, piece.offset, length);
            is_proved &= read.is_ok_and(|content| content == piece.new);
            Ok(())
        })?;
        let mut troubles = SourceErrors::default();
        is_proved &= self.reader.has_whole(recorded, &written, &mut troubles)?;
        let why = "what was written does not come back as it was";
        if is_proved { Ok(()) } else { Err(HealFailure::Unhealed(why.to_owned())) }
    }

    /// Puts back what was there before, as far as it could be read.
    fn roll_back(&mut self, header: &JournalHeader, writing: &Writing, why: &str) -> HealFailure {
        let put_back = || -> io::Result<()> {
            journal::read::<io::Error>(&self.journal(), &mut |_, piece| {
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

    /// Goes on where a run was killed. Returns the path of the file, for a person.
    pub(super) fn finish_patch(&mut self) -> HealAttempt<String> {
        let header = self.read_journal()?;
        // It may be of another record that was kept here, and prove nothing now.
        let Some(row) = self.row_of(&header)? else {
            return Err(self.set_aside("nothing of this content is recorded"));
        };
        let recorded = RecordProof::of(row, self.catalog)?;
        let (healed, proved_ns) = self.carry_out(&header, &recorded)?;
        self.record(&recorded.row, &header.path, &healed, proved_ns)?;
        self.catalog.commit()?;
        // Under another date than recorded it may have been an edit.
        let may_be_edit = header.mtime_before_ns != header.mtime_after_ns;
        match self.options.discards_replaced && !may_be_edit {
            true => self.remove_journal(),
            false => drop(self.keep_journal(&header.path)?),
        }
        Ok(header.path.display().to_string())
    }

    /// Returns the row of the record for the content that a journal is to bring
    /// about: under the file's name, or under another one if the file was renamed.
    fn row_of(&mut self, header: &JournalHeader) -> HealAttempt<Option<Row>> {
        let is_it = |row: &Row| row.record.digests.blake3.unwrap_or_default() == header.blake3;
        match self.catalog.get(&header.path)? {
            Some(StoredRow::Sound(row)) => return Ok(Some(row).filter(is_it)),
            Some(StoredRow::Bad(_)) => {
                return Err(HealFailure::Unhealed("its row of the record is bad".to_owned()));
            }
            None if header.blake3 == [0; 32] => return Ok(None),
            None => {}
        }
        let mut after = Vec::new();
        loop {
            let page = self.catalog.page(&PageStart::After(&after), None)?;
            let Some(last) = page.last() else { return Ok(None) };
            after = last.path().as_bytes().to_vec();
            for stored in page {
                match stored {
                    StoredRow::Sound(row) if is_it(&row) => return Ok(Some(row)),
                    _ => {}
                }
            }
        }
    }

    /// Keeps a journal that cannot be used out of the way.
    fn set_aside(&self, why: &str) -> HealFailure {
        let journal = self.journal();
        let free = os_path::free_numbered(&journal, ".");
        let kept = match os_path::rename(&journal, &free) {
            Ok(()) => format!("its journal is kept as {}", free.display()),
            Err(error) => format!("its journal could not be put aside: {error}"),
        };
        HealFailure::Unhealed(format!("{why}: it was left alone, and {kept}"))
    }

    pub(super) fn journal(&self) -> std::path::PathBuf {
        Catalog::journal_file(&self.place.catalog)
    }

    fn remove_journal(&self) {
        // One that comes back after a power cut finds its work done.
        os_path::remove(&self.journal(), false);
    }
}
