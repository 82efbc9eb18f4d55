//! Every path's way to its verdict: what has to be read for it, what the
//! reading says, when to look a second time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use fsure_os::folder::is_denied;
use fsure_os::{Kind, Stat};

use super::alias::Listed;
use super::compare::FirstLook;
use super::entries::{Entries, granularity_ns, known};
use super::ledger::{Ledger, Settled};
use super::links::{Link, LinkKey, Links};
use super::merge::{Case, Seen};
use super::moves::Moves;
use super::reader::{Content, Order, Reading};
use super::{From, Plan, Purpose};
use crate::catalog::{Catalog, Stored, UnfinishedBlocks};
use crate::words::{
    AlgorithmSet, Entry, EntryKind, Error, Evidence, Found, Known, Outcome, RelPath, Result, Stop,
    Verdict, judge, no_answer,
};

/// How often a file is read anew because it changed in the meantime.
const ATTEMPTS_MAX: u32 = 3;

/// Files from this size on keep the values of finished parts, so that a run
/// that is cut off goes on inside them. Below it, reading anew takes seconds.
pub(super) const KEEP_PARTS_MIN: u64 = 256 << 20;

/// A file that is being read.
pub(super) struct Pending {
    pub(super) path: RelPath,
    pub(super) stored: Option<Stored>,
    pub(super) entry: Entry,
    /// What it was when it was last asked for.
    pub(super) stat: Stat,
    pub(super) device: u64,
    pub(super) algorithms: AlgorithmSet,
    pub(super) link: Option<LinkKey>,
    /// How often it was found changed while it was read.
    pub(super) attempt: u32,
    /// Whether it is to be read by itself: a reader got stuck at it or at one
    /// of those it was read with.
    pub(super) alone: bool,
    /// What the first look said, while the second is under way.
    pub(super) first: Option<FirstLook>,
}

/// The one who decides.
pub(super) struct Weigher<'a> {
    pub(super) plan: &'a Plan,
    pub(super) ledger: Ledger<'a>,
    /// Orders to be sent to the workers.
    pub(super) orders: Vec<Order>,
    /// By order. Boxed: they are large, and go from hand to hand.
    pending: BTreeMap<u64, Box<Pending>>,
    links: Links,
    pub(super) moves: Moves,
    pub(super) entries: Entries,
    pub(super) listed: Listed,
    /// Folders whose names the walk has not come to yet.
    pub(super) folders: HashMap<RelPath, (Option<Stored>, Entry)>,
    next_id: u64,
    /// Orders that nobody waits for any more: their answers come too late.
    given_up: HashSet<u64>,
    /// The file ordered last.
    current: Option<u64>,
}

impl<'a> Weigher<'a> {
    pub(super) fn new(plan: &'a Plan, ledger: Ledger<'a>) -> Result<Self> {
        Ok(Self {
            plan,
            moves: Moves::new(ledger.catalog)?,
            ledger,
            orders: Vec::new(),
            pending: BTreeMap::new(),
            links: Links::default(),
            entries: Entries::default(),
            listed: Listed::default(),
            folders: HashMap::new(),
            next_id: 0,
            given_up: HashSet::new(),
            current: None,
        })
    }

    pub(super) fn catalog(&mut self) -> &mut Catalog {
        self.ledger.catalog
    }

    pub(super) fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Files judged, and bytes: those of the files judged, and of the
    /// `hashed` ones those that belong to files still being read.
    pub(super) fn judged(&self, hashed: u64) -> (u64, u64) {
        let under_way = hashed.saturating_sub(self.ledger.bytes_read_and_judged);
        let outcome = &self.ledger.outcome;
        (outcome.files.total(), outcome.bytes_judged + under_way)
    }

    pub(super) fn current(&self) -> Option<&RelPath> {
        let ordered = self.current.and_then(|id| self.pending.get(&id));
        let pending = ordered.or_else(|| self.pending.values().next());
        pending.map(|pending| &pending.path)
    }

    pub(super) fn stop(&mut self, stop: Stop) {
        self.ledger.stop(stop);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.ledger.is_stopped()
    }

    pub(super) fn open_gate(&mut self) -> Result<bool> {
        self.ledger.open_gate()
    }

    pub(super) fn commit_if_due(&mut self) -> Result<()> {
        self.ledger.commit_if_due()
    }

    pub(super) fn finish(&mut self) -> Result<Outcome> {
        self.ledger.finish()
    }

    /// Takes a path from the merge: settles it or orders its content.
    pub(super) fn take(&mut self, case: Case) -> Result<()> {
        let Case { path, stored, seen } = case;
        match seen {
            Seen::Entry(stat, device) => self.take_entry(path, stored, &stat, device),
            Seen::LeftOut(kind, why) => self.take_left_out(path, stored, kind, why),
            Seen::BelowLeftOut(why) => {
                if let Some(stored) = stored {
                    self.ledger.leave_out_recorded(path, stored, why)?;
                }
                Ok(())
            }
            Seen::Unlisted(true) => self.settle_unseen(path, stored, Found::Forbidden, None),
            Seen::Unlisted(false) => self.settle_unseen(path, stored, Found::Unlisted, None),
            Seen::Unseen(error) => {
                let found = if is_denied(&error) { Found::Forbidden } else { Found::Unlisted };
                self.settle_unseen(path, stored, found, Some(error.to_string()))
            }
            Seen::Absent => self.take_absent(path, stored),
            Seen::NamesKnown => self.settle_folder(&path, None),
            Seen::NamesUnknown(error) => match self.folders.contains_key(&path) {
                true => self.settle_folder(&path, Some(&error)),
                false => {
                    self.ledger.root_unlisted(path, &error);
                    Ok(())
                }
            },
            Seen::PatternsUnread(error) => {
                self.ledger.warn(&format!("{}: {error}: nothing is left out for it", path.shown()));
                Ok(())
            }
        }
    }

    pub(super) fn take_entry(
        &mut self,
        path: RelPath,
        stored: Option<Stored>,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        let mut entry = self.entry(&path, stat, device)?;
        match entry.kind {
            EntryKind::File => return self.take_file(path, stored, entry, stat, device),
            EntryKind::Special => {
                self.ledger.outcome.special += 1;
                if matches!(known(stored.as_ref(), &entry, 1), Known::Nothing) {
                    return Ok(());
                }
            }
            EntryKind::Link if self.plan.is_list && stored.is_none() => return Ok(()),
            EntryKind::Link => match self.plan.root.link_target(path.as_bytes()) {
                Ok(target) => entry.target = Some(target.into_boxed_slice()),
                Err(error) => {
                    let found = if is_denied(&error) { Found::Forbidden } else { Found::Unlisted };
                    return self.settle_unseen(path, stored, found, Some(error.to_string()));
                }
            },
            // Its verdict waits for its names.
            EntryKind::Folder => {
                self.folders.insert(path, (stored, entry));
                return Ok(());
            }
        }
        if entry.kind == EntryKind::Link
            && self.lets_wait(&path, stored.as_ref(), &entry, device)?
        {
            return Ok(());
        }
        let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
        self.settle(Settled::new(path, stored, Some(entry), verdict))
    }

    fn take_file(
        &mut self,
        path: RelPath,
        stored: Option<Stored>,
        entry: Entry,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        if self.lets_wait(&path, stored.as_ref(), &entry, device)? {
            return Ok(());
        }
        let granularity_ns = granularity_ns(self.ledger.catalog, stored.as_ref(), &entry);
        let known = known(stored.as_ref(), &entry, granularity_ns);
        let wanted = match (&self.plan.purpose, known) {
            // A link or a folder has become this file: nothing to compare with.
            (Purpose::Verify, Known::Sound(record)) if record.entry.kind != EntryKind::File => None,
            (Purpose::Update(rules), Known::Sound(record))
                if record.entry.kind != EntryKind::File =>
            {
                rules.accept.covers(&path).then_some(rules.digests)
            }
            (Purpose::Status, _) | (Purpose::Verify, Known::Bad) => None,
            (Purpose::Verify, Known::Nothing) => self.moves.wants(&entry)?,
            (Purpose::Verify, Known::Sound(record)) => Some(record.digests.algorithms()),
            (Purpose::Update(rules), Known::Nothing) => {
                (!rules.only_completes).then_some(rules.digests)
            }
            (Purpose::Update(rules), Known::Bad) => {
                rules.accept.covers(&path).then_some(rules.digests)
            }
            (Purpose::Update(rules), Known::Sound(record)) => {
                let has = record.digests.algorithms();
                let is_racy = record.is_racy(granularity_ns)
                    && !self.ledger.catalog.is_own_change(&path, &record.entry)?;
                let is_as_recorded = record.entry.same_stat(&entry)
                    && !is_racy
                    && record.gone_s.is_none()
                    && has.covers(rules.digests);
                let is_wanted = match rules.only_completes {
                    true => !has.covers(rules.digests),
                    false => rules.full || !is_as_recorded,
                };
                is_wanted.then_some(has.union(rules.digests))
            }
        };
        let Some(algorithms) = wanted else {
            let verdict = judge(known, Found::Present(&entry, Evidence::StatOnly), granularity_ns);
            return self.settle(Settled::new(path, stored, Some(entry), verdict));
        };
        self.order_or_wait(Box::new(Pending {
            path,
            stored,
            entry,
            stat: stat.clone(),
            device,
            algorithms,
            link: LinkKey::of(stat, algorithms),
            attempt: 0,
            alone: false,
            first: None,
        }))
    }

    /// Orders a file to be read, unless another name of it is or was.
    fn order_or_wait(&mut self, pending: Box<Pending>) -> Result<()> {
        let id = self.new_id();
        if let Some(key) = pending.link {
            match self.links.get(&key) {
                Some(Link::Reading(waiting)) => {
                    waiting.push(id);
                    self.pending.insert(id, pending);
                    return Ok(());
                }
                Some(Link::Read(content, _)) if content.stat.is_unchanged_from(&pending.stat) => {
                    let content = Rc::clone(content);
                    self.links.pass(&key);
                    return self.weigh_content(id, pending, content);
                }
                Some(Link::Silent) => {
                    let failed = Reading::Unopened(no_answer(self.plan.effort.patience));
                    return self.weigh_failure(id, pending, failed);
                }
                // Another file by now, or a number used again.
                Some(Link::Read(..)) => {}
                None => self.links.begin(key),
            }
        }
        let kept = self.kept_parts(&pending)?;
        self.send(id, pending, Vec::new(), kept);
        Ok(())
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn kept_parts(&mut self, pending: &Pending) -> Result<Vec<UnfinishedBlocks>> {
        if self.keeps_parts(pending) {
            return self.catalog().unfinished(&pending.path, &pending.entry);
        }
        Ok(Vec::new())
    }

    fn keeps_parts(&self, pending: &Pending) -> bool {
        matches!(self.plan.purpose, Purpose::Update(_))
            && pending.first.is_none()
            && pending.stat.size >= KEEP_PARTS_MIN
    }

    pub(super) fn send(
        &mut self,
        id: u64,
        pending: Box<Pending>,
        blocks: Vec<u64>,
        kept: Vec<UnfinishedBlocks>,
    ) {
        self.current = Some(id);
        self.orders.push(Order {
            id,
            path: pending.path.clone(),
            stat: pending.stat.clone(),
            algorithms: pending.algorithms,
            // A second look is for the medium, whatever the first one saw.
            uses_cache: self.plan.reads_from == From::Cache && pending.first.is_none(),
            blocks,
            kept,
            keeps_parts: self.keeps_parts(&pending),
            attempt: pending.attempt,
            alone: pending.alone,
        });
        self.pending.insert(id, pending);
    }

    /// Orders a file again, by itself: a reader that had it in hand with
    /// others got stuck at one of them.
    pub(super) fn ask_again(&mut self, id: u64) {
        let Some(mut pending) = self.pending.remove(&id) else { return };
        self.given_up.insert(id);
        pending.alone = true;
        let blocks = pending.first.as_ref().map(|first| first.blocks(pending.entry.size));
        let id = self.new_id();
        self.send(id, pending, blocks.unwrap_or_default(), Vec::new());
    }

    /// Gives up a file for which the storage does not answer.
    pub(super) fn give_up(&mut self, id: u64, patience: Duration) -> Result<()> {
        let Some(pending) = self.pending.remove(&id) else { return Ok(()) };
        self.given_up.insert(id);
        let mut all = vec![(id, pending)];
        // Its other names would only get stuck in turn.
        if let Some(key) = all[0].1.link.filter(|_| all[0].1.first.is_none()) {
            let waiting = self.links.give_up(&key);
            all.extend(waiting.iter().filter_map(|id| Some((*id, self.pending.remove(id)?))));
        }
        for (id, pending) in all {
            self.weigh_failure(id, pending, Reading::Unopened(no_answer(patience)))?;
        }
        Ok(())
    }

    /// Keeps the values of a part of a large file that is being read.
    pub(super) fn keep(&mut self, id: u64, stat: &Stat, blocks: &UnfinishedBlocks) -> Result<()> {
        let Some((path, device)) = self.pending.get(&id).map(|p| (p.path.clone(), p.device)) else {
            return Ok(());
        };
        let entry = self.entry(&path, stat, device)?;
        self.ledger.keep(&path, &entry, blocks)
    }

    /// Takes a worker's answer.
    pub(super) fn weigh(&mut self, order: Order, reading: Reading) -> Result<()> {
        let Some(pending) = self.pending.remove(&order.id) else {
            if self.given_up.contains(&order.id) {
                return Ok(());
            }
            return Err(Error::Internal("an answer nobody asked for".to_owned()));
        };
        match reading {
            Reading::Read(content) => {
                let content = Rc::from(content);
                self.serve_waiting(&pending, Some(&content))?;
                self.weigh_content(order.id, pending, content)
            }
            Reading::Stopped => Ok(()),
            failed => {
                self.serve_waiting(&pending, None)?;
                self.weigh_failure(order.id, pending, failed)
            }
        }
    }

    /// Gives a content to the other names of its inode that wait for it, or,
    /// without one, has them look for themselves.
    fn serve_waiting(&mut self, pending: &Pending, content: Option<&Rc<Content>>) -> Result<()> {
        let Some(key) = pending.link.filter(|_| pending.first.is_none()) else {
            return Ok(());
        };
        for id in self.links.finish(&key, content) {
            let Some(mut other) = self.pending.remove(&id) else {
                continue;
            };
            match content {
                Some(content) => self.weigh_content(id, other, Rc::clone(content))?,
                None => {
                    other.link = None;
                    self.send(id, other, Vec::new(), Vec::new());
                }
            }
        }
        Ok(())
    }

    pub(super) fn weigh_failure(
        &mut self,
        id: u64,
        mut pending: Box<Pending>,
        failed: Reading,
    ) -> Result<()> {
        match failed {
            Reading::Changed if pending.attempt + 1 < ATTEMPTS_MAX => {
                pending.first = None;
                pending.link = None;
                pending.attempt += 1;
                self.send(id, pending, Vec::new(), Vec::new());
                Ok(())
            }
            Reading::Changed => self.settle_changed(pending),
            Reading::Gone => {
                // Between the walk and the reading; the record decides.
                self.take_absent(pending.path, pending.stored)
            }
            Reading::Denied(error) => {
                self.settle_unread(pending, Evidence::Denied, Some(error.to_string()))
            }
            Reading::Unopened(error) | Reading::NoMeans(error) => {
                let evidence = Evidence::Partial { rest_differs: false };
                self.settle_unread(pending, evidence, Some(error.to_string()))
            }
            Reading::Read(_) | Reading::Stopped => unreachable!("no failures"),
        }
    }

    /// It changed at every attempt: busy, or no file at all any more.
    fn settle_changed(&mut self, pending: Box<Pending>) -> Result<()> {
        match self.plan.root.stat(pending.path.as_bytes()) {
            Ok(stat) if stat.kind != Kind::File => {
                self.take_entry(pending.path, pending.stored, &stat, pending.device)
            }
            _ => {
                let reason = format!("it changed during each of {ATTEMPTS_MAX} attempts");
                self.settle_unread(pending, Evidence::Busy, Some(reason))
            }
        }
    }

    fn settle_unread(
        &mut self,
        pending: Box<Pending>,
        evidence: Evidence,
        reason: Option<String>,
    ) -> Result<()> {
        let verdict = self.judge(pending.stored.as_ref(), &pending.entry, evidence);
        let mut settled = Settled::new(pending.path, pending.stored, Some(pending.entry), verdict);
        if matches!(evidence, Evidence::Partial { .. }) {
            settled.unreadable = std::iter::once(0..settled.size()).collect();
        }
        settled.reason = reason;
        self.settle(settled)
    }

    pub(super) fn entry(&mut self, path: &RelPath, stat: &Stat, device: u64) -> Result<Entry> {
        self.entries.entry(&self.plan.root, self.ledger.catalog, path, stat, device)
    }

    pub(super) fn judge(
        &self,
        stored: Option<&Stored>,
        entry: &Entry,
        evidence: Evidence,
    ) -> Verdict {
        let granularity_ns = granularity_ns(self.ledger.catalog, stored, entry);
        let known = known(stored, entry, granularity_ns);
        judge(known, Found::Present(entry, evidence), granularity_ns)
    }
}
