//! The planner and the evaluation beside a naive model of them, over random records, files and
//! readings. No disk and no catalog take part.

use std::cell::Cell;
use std::rc::Rc;

use fsure_os::{Kind, Stat};
use proptest::prelude::*;

use super::candidate::Candidate;
use super::evaluate::{EvaluateLookup, Evaluation, evaluate, finish_held_edit};
use super::path_result::PathResult;
use super::planner::{PlanLookup, PlanState, Planned, plan_path};
use super::read_queue::PendingRead;
use super::read_request::ReadContent;
use super::{Purpose, UpdateRules};
use crate::catalog::{Row, StoredRow};
use crate::model::{DateRules, Entry, EntryKind, FileSystemId, Record, Verdict};
use fsure_core::block_hash::BlockValue;
use fsure_core::{Algorithm, AlgorithmSet, Digests, RelPath, Result};

const DAY_NS: i64 = 86_400_000_000_000;
const RECORDED_NS: i64 = 1_700_000_000_000_000_000;

/// A file in one of few states, so that equal ones are met often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    content: u8,
    size: u64,
    day: i64,
    inode: u64,
}

fn file_states() -> impl Strategy<Value = FileState> {
    (0..2_u8, 1..3_u64, 0..3_i64, 1..3_u64).prop_map(|(content, size, day, inode)| FileState {
        content,
        size,
        day,
        inode,
    })
}

impl FileState {
    fn stat(self) -> Stat {
        Stat {
            kind: Kind::File,
            size: self.size,
            mtime_ns: RECORDED_NS + self.day * DAY_NS,
            ctime_ns: RECORDED_NS + self.day * DAY_NS,
            birth_ns: None,
            inode: self.inode,
            device: 1,
            links: 1,
            allocated: self.size,
            place: None,
        }
    }

    fn entry(self) -> Entry {
        Entry {
            kind: EntryKind::File,
            size: self.size,
            mtime_ns: RECORDED_NS + self.day * DAY_NS,
            ctime_ns: Some(RECORDED_NS + self.day * DAY_NS),
            birth_ns: None,
            inode: Some(self.inode),
            file_system: FileSystemId(1),
            target: None,
        }
    }

    fn digests(self) -> Digests {
        let mut digests = Digests::default();
        digests.insert(Algorithm::Blake3, &[self.content; 32]);
        digests
    }

    fn record(self) -> Record {
        Record {
            path: RelPath::from_bytes(*b"file"),
            entry: self.entry(),
            digests: self.digests(),
            // Long after the last change: nothing is racy.
            hashed_ns: RECORDED_NS + 10 * DAY_NS,
            verified_s: (RECORDED_NS + 10 * DAY_NS) / 1_000_000_000,
            gone_s: None,
        }
    }

    fn read(self) -> Rc<ReadContent> {
        Rc::new(ReadContent {
            digests: self.digests(),
            blocks: Vec::new(),
            unreadable: Vec::new(),
            error: None,
            needed_second_read: false,
            stat: self.stat(),
            hashed_ns: RECORDED_NS + 20 * DAY_NS,
        })
    }

    fn candidate(self, recorded: Option<Self>) -> Candidate {
        let stored = recorded.map(|state| StoredRow::Sound(Row::of_record(state.record())));
        let path = RelPath::from_bytes(*b"file");
        Candidate::new(path, stored, self.entry(), (self.stat(), 1), 1)
    }
}

/// Answers that no file of these tests depends on, but for the dates.
#[derive(Default)]
struct Lookup {
    dates_are_in_doubt: bool,
    dates_explain_nothing: bool,
    block_lists_asked: Cell<u32>,
}

impl EvaluateLookup for Lookup {
    fn block_values(&mut self, _row: &Row) -> Result<Vec<BlockValue>> {
        self.block_lists_asked.set(self.block_lists_asked.get() + 1);
        Ok(Vec::new())
    }

    fn are_dates_in_doubt(&mut self) -> Result<bool> {
        Ok(self.dates_are_in_doubt)
    }

    fn date_rules(&self, file: &Candidate) -> DateRules {
        file.date_rules(self.dates_explain_nothing)
    }

    fn doubt_of_rot(&self, _file: &Candidate) -> Option<String> {
        None
    }
}

impl PlanLookup for Lookup {
    fn digests_of_missed(&self, _entry: &Entry) -> Result<Option<AlgorithmSet>> {
        Ok(None)
    }

    fn is_own_change(&self, _path: &RelPath, _entry: &Entry) -> Result<bool> {
        Ok(false)
    }
}

/// Reads a file as often as the evaluation asks for, each time with the next of the contents.
fn run(file: Candidate, contents: [FileState; 2], lookup: &mut Lookup) -> (PathResult, usize) {
    let mut pending = Box::new(PendingRead::new(file, AlgorithmSet::of(&[Algorithm::Blake3])));
    for (readings, state) in (1..).zip(contents) {
        match evaluate(false, pending, state.read(), lookup).expect("no error") {
            Evaluation::Done(read) => return (read.result, readings),
            Evaluation::ReadAgain(again) => pending = again,
            Evaluation::Hold(held) => {
                lookup.dates_are_in_doubt = false;
                let read = finish_held_edit(held, lookup).expect("it was read");
                return (read.result, readings);
            }
            Evaluation::Changed(_) => panic!("both readings are of one state"),
        }
    }
    panic!("a third reading was asked for");
}

/// The verdict by the promises, written down once more and as plainly as can be.
fn naive_verdict(then: FileState, now: FileState, second: u8) -> (Verdict, usize) {
    let differs = |content: u8| content != then.content;
    let date_moved = now.day != then.day;
    match (differs(now.content), date_moved) {
        (false, false) => (Verdict::Ok, 1),
        (false, true) => (Verdict::Touched, 1),
        (true, true) if now.day > then.day => (Verdict::Modified, 1),
        (true, true) => (Verdict::Reverted, 1),
        (true, false) => {
            let readings = if then.size == now.size { 2 } else { 1 };
            if readings == 2 && !differs(second) {
                return (Verdict::Flaky, 2);
            }
            let is_same_file = then.inode == now.inode;
            (if is_same_file { Verdict::Rotten } else { Verdict::DamagedCopy }, readings)
        }
    }
}

proptest! {
    #[test]
    fn a_content_is_judged_as_the_naive_model_judges_it(
        then in file_states(), now in file_states(), second in 0..2_u8,
    ) {
        // A change of the size is one of the content.
        let now = if then.size == now.size { now } else { FileState { content: 2, ..now } };
        let mut lookup = Lookup::default();
        let contents = [now, FileState { content: second, ..now }];
        let (result, readings) = run(now.candidate(Some(then)), contents, &mut lookup);
        let expected = naive_verdict(then, now, second);
        // Another size under the same date is not written by rot: it is looked at as altered.
        let is_expected = (result.verdict, readings) == expected
            || then.size != now.size && result.verdict.is_suspicious()
                && expected.0.is_suspicious();
        prop_assert!(is_expected, "{:?}, {readings} instead of {expected:?}", result.verdict);
        prop_assert!(result.was_read);
        let agrees = then.content == now.content;
        prop_assert!(!agrees || lookup.block_lists_asked.get() == 0, "intact files cost no query");
    }

    #[test]
    fn a_held_edit_gets_the_verdict_that_the_dates_allow(
        then in file_states(), content in 2..4_u8, explain_nothing: bool,
    ) {
        let now = FileState { content, day: then.day + 1, ..then };
        let mut lookup = Lookup {
            dates_are_in_doubt: true, dates_explain_nothing: explain_nothing, ..Lookup::default()
        };
        let (result, _) = run(now.candidate(Some(then)), [now, now], &mut lookup);
        let expected = if explain_nothing { Verdict::DamagedCopy } else { Verdict::Modified };
        prop_assert_eq!(result.verdict, expected);
    }

    #[test]
    fn what_is_read_and_what_waits_is_as_the_naive_model_says(
        then in proptest::option::of(file_states()), now in file_states(),
        full: bool, names_wait: bool,
    ) {
        let state = PlanState { names_wait, dates_explain_nothing: false };
        let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
        let update = Purpose::Update(UpdateRules { full, ..UpdateRules::new(digests) });
        let same_stat = then.is_some_and(|then| FileState { content: now.content, ..then } == now);
        for (purpose, reads) in [
            (Purpose::Status, false),
            (Purpose::Verify, then.is_some()),
            (update, then.is_none() || full || !same_stat),
        ] {
            let planned = plan_path(&purpose, state, now.candidate(then), &Lookup::default());
            let is_expected = match planned.expect("no error") {
                Planned::WaitsForNames(_) => names_wait && then.is_none(),
                Planned::Read(..) => reads && !(names_wait && then.is_none()),
                Planned::Done(result) => !reads && !result.was_read,
                Planned::Nothing | Planned::Folder(_) => false,
            };
            prop_assert!(is_expected, "{purpose:?}");
        }
    }
}
