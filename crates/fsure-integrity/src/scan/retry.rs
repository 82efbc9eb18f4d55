//! Handles an order that did not bring a content: the file is ordered again, or
//! its path is settled by what is known without one.

use std::time::Duration;

use fsure_os::Kind;

use super::evaluator::{ATTEMPTS_MAX, Evaluator, PendingRead};
use super::file_read::ReadOutcome;
use super::result_recorder::PathResult;
use crate::model::{Basis, Evidence};
use fsure_core::{Result, timeout_error};

impl Evaluator<'_> {
    /// Orders a file again, by itself: a reader that had it in hand with
    /// others got stuck at one of them.
    pub(super) fn retry_alone(&mut self, id: u64) {
        let Some(mut pending) = self.pending.remove(&id) else { return };
        self.given_up.insert(id);
        pending.alone = true;
        let blocks = match (&pending.first, &pending.part) {
            (Some(first), _) => first.blocks(pending.entry.size),
            (None, Some(part)) => part.ordered.clone(),
            (None, None) => Vec::new(),
        };
        self.budget.refund(pending.charged, pending.is_again);
        let id = self.new_id();
        self.queue_read(id, pending, blocks, Vec::new());
    }

    /// Gives up a file for which the storage does not respond.
    pub(super) fn abandon(&mut self, id: u64, patience: Duration) -> Result<()> {
        let Some(pending) = self.pending.remove(&id) else { return Ok(()) };
        self.given_up.insert(id);
        let mut all = vec![(id, pending)];
        // Its other names would only get stuck in turn.
        if let Some(key) = all[0].1.link.filter(|_| all[0].1.first.is_none()) {
            let waiting = self.links.give_up(&key);
            all.extend(waiting.iter().filter_map(|id| Some((*id, self.pending.remove(id)?))));
        }
        for (id, pending) in all {
            self.handle_read_failure(id, pending, ReadOutcome::Unopened(timeout_error(patience)))?;
        }
        Ok(())
    }

    pub(super) fn handle_read_failure(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        failed: ReadOutcome,
    ) -> Result<()> {
        if !matches!(failed, ReadOutcome::Changed) && pending.first.is_none() {
            // Nothing of it was read.
            self.budget.refund(pending.charged, pending.is_again);
        }
        match failed {
            ReadOutcome::Changed
                if pending.attempt + 1 < ATTEMPTS_MAX && self.may_retry(&pending) =>
            {
                pending.first = None;
                pending.link = None;
                pending.attempt += 1;
                pending.is_retry = true;
                if pending.part.take().is_some() {
                    return self.order_anew(pending);
                }
                self.queue_read(id, pending, Vec::new(), Vec::new());
                Ok(())
            }
            ReadOutcome::Changed => self.settle_changed(pending),
            ReadOutcome::Gone if self.is_back(&pending) => {
                // Renamed away and back: an attempt as any other, or a name that
                // comes and goes all the time would be ordered without end.
                self.handle_read_failure(id, pending, ReadOutcome::Changed)
            }
            ReadOutcome::Gone => {
                // Between the walk and the reading; the record decides.
                self.process_missing(pending.path, pending.stored)
            }
            ReadOutcome::Denied(error) => {
                self.settle_unread(pending, Evidence::Denied, Some(error.to_string()))
            }
            ReadOutcome::Unopened(error) | ReadOutcome::NoMeans(error) => {
                let evidence = Evidence::Partial { rest_differs: false };
                self.settle_unread(pending, evidence, Some(error.to_string()))
            }
            ReadOutcome::Read(_) | ReadOutcome::Stopped | ReadOutcome::CutOff(_) => {
                unreachable!("no failures")
            }
        }
    }

    /// Returns true if a file that was gone when it was to be read is there
    /// again under the name that decides about it.
    fn is_back(&mut self, pending: &PendingRead) -> bool {
        let path = &pending.path;
        let decides = pending.stored.as_ref().is_none_or(|stored| stored.path() == path);
        let stat = self.plan.root.stat(path.as_bytes()).ok().filter(|_| decides);
        stat.is_some_and(|stat| {
            stat.kind == Kind::File && !self.listed.is_alias(&self.plan.root, path, &stat)
        })
    }

    /// It changed at every attempt: busy, or no file at all any more.
    fn settle_changed(&mut self, pending: Box<PendingRead>) -> Result<()> {
        match self.plan.root.stat(pending.path.as_bytes()) {
            Ok(stat) if stat.kind != Kind::File => {
                self.process_entry(pending.path, pending.stored, &stat, pending.device)
            }
            _ => {
                let reason = match pending.attempt + 1 {
                    1 => "it changed while it was read, and the budget is used up".to_owned(),
                    attempts => format!("it changed during each of {attempts} attempts"),
                };
                self.settle_unread(pending, Evidence::Busy, Some(reason))
            }
        }
    }

    fn settle_unread(
        &mut self,
        pending: Box<PendingRead>,
        evidence: Evidence,
        reason: Option<String>,
    ) -> Result<()> {
        let verdict = self.judge(pending.stored.as_ref(), &pending.entry, evidence);
        let mut settled =
            PathResult::new(pending.path, pending.stored, Some(pending.entry), verdict);
        if matches!(evidence, Evidence::Partial { .. }) {
            settled.unreadable = std::iter::once(0..settled.size()).collect();
        }
        settled.reason = reason;
        settled.basis = Basis::Content;
        self.settle(settled)
    }
}
