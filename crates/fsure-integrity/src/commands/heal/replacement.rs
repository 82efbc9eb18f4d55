//! Healing beside: a whole new file, proved on the medium before it gets the
//! name of the damaged one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use fsure_os::Stat;
use fsure_os::repair_write::{AttributesCopied, Draft, Model};
use fsure_os::root_dir::is_gone;

use super::healer::{HealTask, Healer, require_as_found};
use super::keep_replaced::Kept;
use super::source_reader::{HealAttempt, HealFailure, OrUnhealed as _, SourceErrors, SourceFile};
use crate::model::{HealResult, HealSource};
use fsure_core::{Clock, RelPath};

/// Prefix of the name of a draft; 32 hexadecimal digits follow.
const DRAFT: &[u8] = b".fsure-heal-";

/// Pieces of nothing but zeros of this length are left to be holes.
const HOLE: usize = 64 << 10;

/// Returns a random name that no other file has.
fn draft_name() -> Vec<u8> {
    let random = || RandomState::new().build_hasher().finish();
    [DRAFT, format!("{:016x}{:016x}", random(), random()).as_bytes()].concat()
}

/// Returns true if a name can only be that of a draft.
pub(crate) fn is_draft_name(name: &[u8]) -> bool {
    name.strip_prefix(DRAFT).is_some_and(|digits| {
        digits.len() == 32
            && digits.iter().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit))
    })
}

impl Healer<'_> {
    /// Puts a whole file in the place of a damaged or missing one.
    pub(super) fn put_draft(
        &mut self,
        work: &HealTask<'_>,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let path = &work.finding.path;
        let folder = path.parent().unwrap_or_default();
        if work.damaged.is_none() {
            self.make_parents(&folder)?;
        }
        let draft = folder.join(&draft_name());
        self.catalog.note_draft(path, &draft)?;
        self.catalog.commit()?;
        let placed = self.make_and_place(work, &draft, remedy);
        let recorded = placed.and_then(|(healed, proved_ns)| {
            self.record(&work.recorded.row, path, &healed, proved_ns)
        });
        // Noted for as long as there is anything to be removed.
        if self.root.stat(draft.as_bytes()).is_err_and(|error| is_gone(&error)) {
            self.catalog.forget_draft(path)?;
            self.catalog.commit()?;
        }
        recorded
    }

    /// Makes the file and gives it its name. Returns its metadata, and the time of
    /// its proof in nanoseconds since 1970.
    fn make_and_place(
        &mut self,
        work: &HealTask<'_>,
        path: &RelPath,
        remedy: &mut HealResult,
    ) -> HealAttempt<(Stat, i64)> {
        let draft = Draft::create(&self.root, path.as_bytes()).or_unhealed("write beside it")?;
        self.fill(work, &draft)?;
        self.dress(work, &draft, remedy)?;
        draft.writing().flush().or_unhealed("write what was healed")?;
        let written = draft.writing().stat().or_unhealed("look at what was written")?;
        let proved_ns = Clock::default().now_ns();
        self.prove(work, path)?;
        let name = work.finding.path.name();
        match &work.damaged {
            None => draft.publish(name).or_unhealed("give the file its name")?,
            Some(_) => {
                let now = self.root.stat(work.finding.path.as_bytes()).or_unhealed("look at it")?;
                require_as_found(&now, work.finding)?;
                let is_kept = self.must_keep_original(work.finding);
                match is_kept.then(|| self.keep(&work.finding.path, &now, remedy)).transpose()? {
                    Some(Kept::Moved) => self.publish(draft, &work.finding.path, remedy)?,
                    _ => draft.replace(name).or_unhealed("put it in its place")?,
                }
            }
        }
        Ok((written, proved_ns))
    }

    /// Gives a draft the name that was freed for it, or puts back what had it.
    fn publish(&self, draft: Draft, path: &RelPath, remedy: &mut HealResult) -> HealAttempt<()> {
        draft.publish(path.name()).or_unhealed("put it in its place").inspect_err(|_| {
            if let Some(kept) = remedy.kept.take() {
                self.put_back(&kept, path);
            }
        })
    }

    fn fill(&mut self, work: &HealTask<'_>, draft: &Draft) -> HealAttempt<()> {
        let writing = draft.writing();
        writing.set_size(work.plan.size).or_unhealed("write beside it")?;
        let mut put = |offset: u64, content: &[u8]| {
            for (piece, start) in content.chunks(HOLE).zip((offset..).step_by(HOLE)) {
                if piece.iter().any(|byte| *byte != 0) {
                    writing.write_at(piece, start).or_unhealed("write beside it")?;
                }
            }
            Ok(())
        };
        if work.recorded.is_by_blocks() {
            for block in 0..work.recorded.pieces() {
                let range = work.recorded.range(block, work.plan.size);
                self.read_block(work, block)?;
                put(range.start, self.reader.last(range.end - range.start))?;
            }
            return Ok(());
        }
        let Some(place) = work.plan.from.get(&0) else { return Ok(()) };
        let wanted = work.recorded.row.record.digests.algorithms();
        let read = self.reader.digests(&work.candidates[*place], work.plan.size, wanted, &mut put);
        match read? {
            Ok(Some(digests)) if work.recorded.proves(&digests) => Ok(()),
            Err(error) => Err(HealFailure::Unhealed(format!("the copy: {error}"))),
            Ok(_) => Err(HealFailure::Unhealed("the copy changed while it was read".to_owned())),
        }
    }

    /// Reads a block from the candidate where it was found, or from any other that
    /// has it.
    pub(super) fn read_block(&mut self, work: &HealTask<'_>, block: u64) -> HealAttempt<()> {
        self.reader.go_on()?;
        let first = work.plan.from.get(&block).copied().unwrap_or(0);
        let others = (0..work.candidates.len()).filter(|place| *place != first);
        let mut troubles = SourceErrors::default();
        for place in std::iter::once(first).chain(others) {
            let candidate = &work.candidates[place];
            if self.reader.has_block(&work.recorded, candidate, block, &mut troubles) {
                return Ok(());
            }
        }
        let told = troubles.told();
        Err(HealFailure::Unhealed(format!("block {block} cannot be had any more ({told})")))
    }

    /// Gives the draft what a file has besides its bytes.
    fn dress(
        &self,
        work: &HealTask<'_>,
        draft: &Draft,
        remedy: &mut HealResult,
    ) -> HealAttempt<()> {
        let then = &work.recorded.row.record.entry;
        let itself = work.damaged.is_some();
        let model = match itself {
            true => Some(Model::open(&self.root, work.finding.path.as_bytes())),
            false => {
                let sources = work.plan.from.values().map(|place| &work.candidates[*place]);
                let place = sources.filter_map(|source| source.place.as_ref()).next();
                place.map(|(root, path)| Model::open(root, path))
            }
        };
        let model = model.transpose().or_unhealed("see its owner and attributes")?;
        let date = then.exact_mtime_ns();
        let resembles = match &model {
            Some(model) => {
                draft.resemble(model, date, itself).or_unhealed("keep its owner and attributes")?
            }
            None => {
                if let Some(date) = date {
                    draft.writing().set_date(date).or_unhealed("set its date")?;
                }
                AttributesCopied::InPart
            }
        };
        if resembles == AttributesCopied::InPart {
            remedy.reason =
                Some("its owner, permissions or attributes are not all those of a copy".to_owned());
        }
        Ok(())
    }

    /// Reads what was written from the medium, and compares it with the record.
    fn prove(&mut self, work: &HealTask<'_>, path: &RelPath) -> HealAttempt<()> {
        let written = SourceFile::open(HealSource::Itself, &self.opener, path.as_bytes());
        let written = written.or_unhealed("read what was written")?;
        let mut troubles = SourceErrors::default();
        let is_proved = written.stat.size == work.plan.size
            && self.reader.has_whole(&work.recorded, &written, &mut troubles)?;
        if is_proved {
            return Ok(());
        }
        let told = troubles.told();
        Err(HealFailure::Unhealed(format!(
            "what was written does not come back as it was ({told})"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_draft_has_the_name_of_one() {
        let name = draft_name();
        assert!(is_draft_name(&name));
        assert_ne!(name, draft_name());
        assert!(!is_draft_name(&name[..name.len() - 1]));
        assert!(!is_draft_name(&[&name[..], b"0"].concat()));
        assert!(!is_draft_name(&[DRAFT, &[b'g'; 32]].concat()));
    }
}
