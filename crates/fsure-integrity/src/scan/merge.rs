//! The walk and the record side by side, both in the order of paths: every
//! path of either comes out once, with what each of them says of it. Neither
//! is ever held in memory as a whole.

use std::collections::VecDeque;
use std::io;
use std::task::Poll;

use fsure_os::root_dir::is_denied;
use fsure_os::{Kind, Stat};

use crate::catalog::{Catalog, Claims, PAGE_ROWS, PageStart, StoredRow};
use crate::tree::{ExcludeReason, Walk, WalkEvent};
use fsure_core::{RelPath, Result};

/// The state of a path, as the walk found it.
#[derive(Debug)]
pub(super) enum WalkState {
    /// It is there; the device of its folder, or of itself if it is one.
    Entry(Stat, u64),
    /// It is left out.
    LeftOut(Kind, ExcludeReason),
    /// It lies below something that is left out.
    BelowLeftOut(ExcludeReason),
    /// It is there, but its stat is not available.
    Unseen(io::Error),
    /// Its folder could not be listed; true if for lack of permission.
    Unlisted(bool),
    /// The walk did not come across it.
    Absent,
    /// A folder whose names are all known, reported after its own entry.
    NamesKnown,
    /// A folder whose names are not all known, reported likewise.
    NamesUnknown(io::Error),
    /// A pattern file that the walk obeys, reported before its own entry.
    PatternsRead(Vec<u8>),
    /// A pattern file that could not be read, reported beside its own entry.
    PatternsUnread(io::Error),
}

/// A path with its row and its state in the walk.
#[derive(Debug)]
pub(super) struct MergedPath {
    pub(super) path: RelPath,
    pub(super) stored: Option<StoredRow>,
    pub(super) seen: WalkState,
    /// Its turn, if it is taken by a scrub.
    pub(super) turn: Option<ScrubTurn>,
}

/// The turn of a file in a scrub.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScrubTurn {
    /// True if it was not OK when it was last checked.
    pub(super) is_again: bool,
    /// The most bytes that may be read of it.
    pub(super) bytes_max: u64,
}

/// The next path, or the reason that there is none now.
// It goes from hand to hand once for each path, and is a path nearly always.
#[allow(clippy::large_enum_variant)]
pub(super) enum NextPath {
    Path(MergedPath),
    /// The storage has not responded yet, and was waited for a moment.
    Later,
    /// The files under way decide if there is more to take.
    AfterReads,
    None,
}

/// A folder below which nothing can be reported as missing.
struct UnlistedSubtree {
    folder: RelPath,
    why: UnlistedReason,
}

/// The reason that nothing can be reported as missing.
#[derive(Clone, Copy)]
enum UnlistedReason {
    LeftOut(ExcludeReason),
    /// It could not be listed; true if for lack of permission.
    Unlisted(bool),
}

/// The merge under way.
pub(super) struct Merge {
    walk: Walk,
    ahead: Option<WalkEvent>,
    rows: CatalogPages,
    shadows: Vec<UnlistedSubtree>,
}

impl Merge {
    /// With `claims`, they are those of all rows of the record, also those
    /// outside the scope.
    pub(super) fn new(walk: Walk, scope: &RelPath, claims: Option<Claims>) -> Self {
        Self { walk, ahead: None, rows: CatalogPages::new(scope, claims), shadows: Vec::new() }
    }

    /// Takes the claims of the rows that were handed out; `None` before all of them were.
    pub(super) fn claims(&mut self) -> Option<Claims> {
        self.rows.claims.take().filter(|_| self.rows.ranges.is_empty())
    }

    /// Returns true if the walk found that the storage does not respond.
    pub(super) fn is_silent(&self) -> bool {
        self.walk.is_silent()
    }

    /// Returns the next path of both.
    pub(super) fn next(&mut self, catalog: &mut Catalog) -> Result<NextPath> {
        loop {
            if self.ahead.is_none() {
                match self.walk.poll() {
                    Poll::Pending => return Ok(NextPath::Later),
                    Poll::Ready(step) => self.ahead = step.transpose()?,
                }
            }
            self.rows.fetch(catalog)?;
            let row = self.rows.page.front().map(StoredRow::path);
            let step = self.ahead.as_ref().map(WalkEvent::path);
            let (takes_row, takes_step) = match (row, step) {
                (None, None) => return Ok(NextPath::None),
                (Some(_), None) => (true, false),
                (None, Some(_)) => (false, true),
                (Some(row), Some(step)) => {
                    let order = row.cmp(step);
                    (order.is_le(), order.is_ge())
                }
            };
            // Reported beside an entry of the same path, and so without its row.
            let is_aside = takes_step
                && matches!(
                    self.ahead,
                    Some(
                        WalkEvent::Listed(_)
                            | WalkEvent::Unlisted(..)
                            | WalkEvent::PatternsRead(..)
                            | WalkEvent::PatternsUnread(..)
                    ) | Some(WalkEvent::LeftOut(_, _, ExcludeReason::NestedRoot))
                );
            let stored = (takes_row && !is_aside).then(|| self.rows.page.pop_front()).flatten();
            let step = takes_step.then(|| self.ahead.take()).flatten();
            if let Some(case) = self.case(stored, step) {
                return Ok(NextPath::Path(case));
            }
        }
    }

    fn case(&mut self, stored: Option<StoredRow>, step: Option<WalkEvent>) -> Option<MergedPath> {
        let (path, seen) = match step {
            None => {
                let path = stored.as_ref()?.path().clone();
                let seen = self.unmatched(&path);
                (path, seen)
            }
            Some(WalkEvent::Entry(path, stat, device)) => (path, WalkState::Entry(stat, device)),
            Some(WalkEvent::Unseen(path, error)) => {
                self.shade(&path, UnlistedReason::Unlisted(is_denied(&error)));
                (path, WalkState::Unseen(error))
            }
            Some(WalkEvent::LeftOut(path, kind, why)) => {
                self.shade(&path, UnlistedReason::LeftOut(why));
                (path, WalkState::LeftOut(kind, why))
            }
            Some(WalkEvent::Unlisted(path, error)) => {
                self.shade(&path, UnlistedReason::Unlisted(is_denied(&error)));
                (path, WalkState::NamesUnknown(error))
            }
            Some(WalkEvent::Listed(path)) => (path, WalkState::NamesKnown),
            Some(WalkEvent::PatternsRead(path, text)) => (path, WalkState::PatternsRead(text)),
            Some(WalkEvent::PatternsUnread(path, error)) => {
                (path, WalkState::PatternsUnread(error))
            }
        };
        Some(MergedPath { path, stored, seen, turn: None })
    }

    fn shade(&mut self, folder: &RelPath, why: UnlistedReason) {
        // What lies before this folder and not around it is over.
        self.shadows.retain(|shadow| {
            let (_, end) = shadow.folder.below();
            end.is_none_or(|end| folder.as_bytes() < &*end)
        });
        self.shadows.push(UnlistedSubtree { folder: folder.clone(), why });
    }

    /// Returns the state of a recorded path that the walk did not come across.
    fn unmatched(&self, path: &RelPath) -> WalkState {
        let shadow = self.shadows.iter().rev().find(|shadow| path.is_within(&shadow.folder));
        match shadow.map(|shadow| shadow.why) {
            None => WalkState::Absent,
            Some(UnlistedReason::LeftOut(why)) => WalkState::BelowLeftOut(why),
            Some(UnlistedReason::Unlisted(denied)) => WalkState::Unlisted(denied),
        }
    }
}

/// The recorded rows of a scope, page by page.
struct CatalogPages {
    page: VecDeque<StoredRow>,
    /// Ranges that are still to be fetched, in the order of paths.
    ranges: VecDeque<Range>,
    has_begun: bool,
    claims: Option<Claims>,
}

/// A part of the record.
struct Range {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    /// True if its rows are judged; false if they only count for the claims.
    is_judged: bool,
}

impl CatalogPages {
    fn new(scope: &RelPath, claims: Option<Claims>) -> Self {
        // A folder is two ranges, its own row and what lies below it.
        let (below, end) = scope.below();
        let mut bounds = vec![below];
        if !scope.is_root() {
            let own = scope.as_bytes().to_vec();
            let behind = [&own[..], b"\0"].concat();
            bounds.splice(0..0, [Vec::new(), own, behind]);
        }
        bounds.extend(end);
        let ends = bounds.iter().skip(1).cloned().map(Some).chain([None]);
        let is_judged = |start: &[u8]| start == scope.as_bytes() || start == scope.below().0;
        let ranges = bounds.iter().zip(ends).map(|(start, end)| Range {
            start: start.clone(),
            end,
            is_judged: is_judged(start),
        });
        let ranges = ranges.filter(|range| range.is_judged || claims.is_some()).collect();
        Self { page: VecDeque::new(), ranges, has_begun: false, claims }
    }

    fn fetch(&mut self, catalog: &mut Catalog) -> Result<()> {
        while self.page.is_empty()
            && let Some(range) = self.ranges.front_mut()
        {
            let start = &range.start;
            let from =
                if self.has_begun { PageStart::After(start) } else { PageStart::From(start) };
            let rows = catalog.page(&from, range.end.as_deref())?;
            let is_last = rows.len() < PAGE_ROWS;
            self.has_begun = true;
            if let Some(last) = rows.last() {
                range.start = last.path().as_bytes().to_vec();
            }
            if let Some(claims) = &mut self.claims {
                rows.iter().for_each(|stored| claims.add(stored));
            }
            if range.is_judged {
                self.page = rows.into();
            }
            if is_last {
                self.ranges.pop_front();
                self.has_begun = false;
            }
        }
        Ok(())
    }
}
