//! Healing beside: a whole new file, proved on the medium before it gets the
//! name of the damaged one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use fsure_os::Stat;
use fsure_os::opener::Opener;
use fsure_os::repair_write::{AttributesCopied, Draft, Model};

use super::heal_task::{HealTask, require_as_found};
use super::replaced_folder::{Kept, ReplacedFolder};
use super::source_reader::{
    HealAttempt, HealFailure, OrUnhealed as _, SourceErrors, SourceFile, SourceReader,
};
use crate::model::{HealResult, HealSource};
use fsure_core::{Clock, RelPath};

/// Prefix of the name of a draft; 32 hexadecimal digits follow.
const DRAFT: &[u8] = b".fsure-heal-";

/// Pieces of nothing but zeros of this length are left to be holes.
const HOLE: usize = 64 << 10;

/// Returns a random name that no other file has.
pub(super) fn draft_name() -> Vec<u8> {
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

/// A whole file that is to take the name of a damaged or missing one.
pub(super) struct Replacement<'a> {
    pub(super) opener: &'a Opener,
    pub(super) task: &'a HealTask<'a>,
    /// Path of the draft.
    pub(super) draft: &'a RelPath,
}

impl Replacement<'_> {
    /// Makes the file and gives it its name. Returns its metadata, and the time of
    /// its proof in nanoseconds since 1970.
    pub(super) fn make_and_place(
        &self,
        reader: &mut SourceReader<'_>,
        replaced: &mut ReplacedFolder<'_>,
        remedy: &mut HealResult,
    ) -> HealAttempt<(Stat, i64)> {
        let (root, task) = (self.opener.root(), self.task);
        let draft = Draft::create(root, self.draft.as_bytes()).or_unhealed("write beside it")?;
        self.fill(reader, &draft)?;
        self.dress(&draft, remedy)?;
        draft.writing().flush().or_unhealed("write what was healed")?;
        let written = draft.writing().stat().or_unhealed("examine what was written")?;
        let proved_ns = Clock::default().now_ns();
        self.prove(reader)?;
        let name = task.finding.path.name();
        match &task.damaged {
            None => draft.publish(name).or_unhealed("give the file its name")?,
            Some(_) => {
                let path = &task.finding.path;
                let now = root.stat(path.as_bytes()).or_unhealed("examine it")?;
                require_as_found(&now, task.finding)?;
                let kept = task.keeps_original.then(|| replaced.keep(path, &now, remedy));
                match kept.transpose()? {
                    Some(Kept::Moved) => publish(draft, path, replaced, remedy)?,
                    _ => draft.replace(name).or_unhealed("put it in its place")?,
                }
            }
        }
        Ok((written, proved_ns))
    }

    fn fill(&self, reader: &mut SourceReader<'_>, draft: &Draft) -> HealAttempt<()> {
        let task = self.task;
        let writing = draft.writing();
        writing.set_size(task.plan.size).or_unhealed("write beside it")?;
        let mut put = |offset: u64, content: &[u8]| {
            for (piece, start) in content.chunks(HOLE).zip((offset..).step_by(HOLE)) {
                if piece.iter().any(|byte| *byte != 0) {
                    writing.write_at(piece, start).or_unhealed("write beside it")?;
                }
            }
            Ok(())
        };
        if task.recorded.is_by_blocks() {
            for block in 0..task.recorded.pieces() {
                let range = task.recorded.range(block, task.plan.size);
                task.read_block(reader, block)?;
                put(range.start, reader.last(range.end - range.start))?;
            }
            return Ok(());
        }
        let Some(place) = task.plan.from.get(&0) else { return Ok(()) };
        let wanted = task.recorded.row.record.digests.algorithms();
        let read = reader.digests(&task.candidates[*place], task.plan.size, wanted, &mut put);
        match read? {
            Ok(Some(digests)) if task.recorded.proves(&digests) => Ok(()),
            Err(error) => Err(HealFailure::Unhealed(format!("the copy: {error}"))),
            Ok(_) => Err(HealFailure::Unhealed("the copy changed while it was read".to_owned())),
        }
    }

    /// Gives the draft what a file has besides its bytes.
    fn dress(&self, draft: &Draft, remedy: &mut HealResult) -> HealAttempt<()> {
        let task = self.task;
        let then = &task.recorded.row.record.entry;
        let itself = task.damaged.is_some();
        let model = match itself {
            true => Some(Model::open(self.opener.root(), task.finding.path.as_bytes())),
            false => {
                let sources = task.plan.from.values().map(|place| &task.candidates[*place]);
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
            remedy.reason = Some(
                "not all of its owner, permissions and attributes could be taken from a copy"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Reads what was written from the medium, and compares it with the record.
    fn prove(&self, reader: &mut SourceReader<'_>) -> HealAttempt<()> {
        let task = self.task;
        let written = SourceFile::open(HealSource::Itself, self.opener, self.draft.as_bytes());
        let written = written.or_unhealed("read what was written")?;
        let mut troubles = SourceErrors::default();
        let is_proved = written.stat.size == task.plan.size
            && reader.has_whole(&task.recorded, &written, &mut troubles)?;
        if is_proved {
            return Ok(());
        }
        let reported = troubles.summary();
        Err(HealFailure::Unhealed(format!("what was written reads back differently ({reported})")))
    }
}

/// Gives a draft the name that was freed for it, or puts back what had it.
fn publish(
    draft: Draft,
    path: &RelPath,
    replaced: &ReplacedFolder<'_>,
    remedy: &mut HealResult,
) -> HealAttempt<()> {
    draft.publish(path.name()).or_unhealed("put it in its place").inspect_err(|_| {
        if let Some(kept) = remedy.kept.take() {
            replaced.put_back(&kept, path);
        }
    })
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
