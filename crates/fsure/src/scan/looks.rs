//! What a content that was read says, beside its record: once, and where that
//! would be damage, on a second look.

use std::rc::Rc;

use super::LISTED_SIZE;
use super::compare::{
    Comparison, FirstLook, Looks, are_proven, compare, look_again, nothing_to_compare, ranges,
};
use super::entries::{granularity_ns, known};
use super::ledger::Settled;
use super::reader::{Content, Reading};
use super::weigh::{Pending, Weigher};
use crate::catalog::Stored;
use crate::words::{Evidence, Found, Known, Result, judge};

impl Weigher<'_> {
    /// Weighs a content that was read.
    pub(super) fn weigh_content(
        &mut self,
        id: u64,
        mut pending: Box<Pending>,
        content: Rc<Content>,
    ) -> Result<()> {
        if pending.first.as_ref().is_some_and(|first| !is_same_file(&first.content, &content)) {
            // Two looks at two contents say nothing of either.
            return self.weigh_failure(id, pending, Reading::Changed);
        }
        if pending.part.is_some() && !content.stat.is_unchanged_from(&pending.stat) {
            // What was read of it earlier was read of another state.
            return self.weigh_failure(id, pending, Reading::Changed);
        }
        pending.stat = content.stat.clone();
        pending.entry = self.entry(&pending.path, &content.stat, pending.device)?;
        let granularity_ns =
            granularity_ns(self.ledger.catalog, pending.stored.as_ref(), &pending.entry);
        let known = known(pending.stored.as_ref(), &pending.entry, granularity_ns);
        let (Known::Sound(record), Some(Stored::Sound(row))) = (known, &pending.stored) else {
            return self.settle_one_look(pending, nothing_to_compare(&content), content);
        };
        if let Some(first) = pending.first.take() {
            let error = content.error.as_ref().or(first.content.error.as_ref());
            let reason = error.map(ToString::to_string);
            let looks = look_again(record, first, &content);
            return self.settle_looks(pending, looks, reason);
        }
        let recorded = if let Some(part) = &pending.part {
            part.recorded().to_vec()
        } else if record.digests.agree(&content.digests) == Some(true) {
            Vec::new()
        } else {
            let values = self.ledger.blocks(row)?;
            if are_proven(record, &values) { values } else { Vec::new() }
        };
        let comparison = match &pending.part {
            Some(part) => part.compare(&content),
            None => compare(record, &recorded, &content),
        };
        let is_listed_size = !self.plan.is_list
            || record.verified_s & LISTED_SIZE == 0
            || record.entry.size == pending.entry.size;
        let is_same = matches!(comparison.evidence, Evidence::Same | Evidence::SameOnSecondRead);
        if is_same && !is_listed_size {
            let comparison = Comparison { evidence: Evidence::Different, ..comparison };
            let reason = Some("its digest is the listed one, and its size is not".to_owned());
            let unreadable = content.unreadable.clone();
            return self.settle_looks(
                pending,
                Looks { comparison, unreadable, content: Some(content) },
                reason,
            );
        }
        let found = Found::Present(&pending.entry, comparison.evidence);
        let verdict = judge(known, found, granularity_ns);
        if verdict.is_suspicious() && record.entry.size == pending.entry.size {
            // Nothing is called damaged on one look.
            let first = FirstLook { content, comparison, recorded };
            let blocks = first.blocks(pending.entry.size);
            pending.first = Some(first);
            self.send(id, pending, blocks, Vec::new());
            return Ok(());
        }
        self.settle_one_look(pending, comparison, content)
    }

    fn settle_one_look(
        &mut self,
        pending: Box<Pending>,
        comparison: Comparison,
        content: Rc<Content>,
    ) -> Result<()> {
        let second = || "it could only be read at the second attempt".to_owned();
        let reason = content.error.as_ref().map(ToString::to_string);
        let reason = reason.or_else(|| content.needed_second_read.then(second));
        let unreadable = content.unreadable.clone();
        self.settle_looks(pending, Looks { comparison, unreadable, content: Some(content) }, reason)
    }

    fn settle_looks(
        &mut self,
        mut pending: Box<Pending>,
        looks: Looks,
        reason: Option<String>,
    ) -> Result<()> {
        let part = pending.part.take();
        let Looks { comparison, unreadable, content } = looks;
        let verdict = self.judge(pending.stored.as_ref(), &pending.entry, comparison.evidence);
        let mut settled = Settled::new(pending.path, pending.stored, Some(pending.entry), verdict);
        // Where the date explains the change, the blocks that differ are an edit.
        if verdict.is_suspicious() {
            settled.damaged_blocks = comparison.damaged.len() as u64;
            settled.damaged = ranges(&comparison.damaged, settled.longest_size());
        }
        let unstable = || "its content came out differently each time".to_owned();
        settled.unreadable = unreadable;
        settled.reason = reason.or_else(|| content.is_none().then(unstable));
        settled.was_read = true;
        settled.content = content;
        match part {
            Some(part) => self.settle_part(part, settled, comparison.evidence),
            None => self.settle_read(settled),
        }
    }
}

/// Whether two readings are of one state of one file.
fn is_same_file(one: &Content, other: &Content) -> bool {
    other.stat.is_unchanged_from(&one.stat)
}
