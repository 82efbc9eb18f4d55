//! Cuts of the power of one simulated drive, and what each of them took.

/// Rules by which some of the writes survive a cut, and their meaning.
pub(super) const VARIANTS: [(&str, &str); 5] = [
    ("prefix", "those before a moment"),
    ("epoch", "all before a flush, some up to the next, so that flushes keep their order"),
    ("random", "some, in no order"),
    (TORN, "parts of 512 bytes of some"),
    ("torn-4k", "parts of 4 KiB of some"),
];
const TORN: &str = "torn";
/// Those of them by which a later write may survive a cut, and an earlier one not.
const BREAK_ORDER: [&str; 3] = ["random", TORN, "torn-4k"];
/// Cells with words in a row, and rows of them; more cuts than these hold are counted.
pub(super) const WORDED: usize = 6;
const WORDED_ROWS: usize = 2;

/// State of what was acknowledged, after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutState {
    /// All of it is there.
    Kept,
    /// Some of it is gone, and what is there is sound.
    Lost,
    /// The data is damaged.
    Damaged,
    /// The file system cannot be mounted.
    Unmountable,
    /// Nothing is known of it.
    Unknown,
}

impl CutState {
    pub(super) const ALL: [Self; 5] =
        [Self::Kept, Self::Lost, Self::Damaged, Self::Unmountable, Self::Unknown];

    /// The state in a word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Kept => "safe",
            Self::Lost => "lost",
            Self::Damaged => "damaged",
            Self::Unmountable => "gone",
            Self::Unknown => "unknown",
        }
    }

    /// A sign in place of the word, where that has no room.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Kept => "+",
            Self::Lost => "-",
            Self::Damaged => "x",
            Self::Unmountable => "!",
            Self::Unknown => "?",
        }
    }

    /// The class of its colour.
    pub(super) fn style(self) -> &'static str {
        match self {
            Self::Kept => "tile good",
            Self::Lost => "tile warn",
            Self::Damaged => "tile bad",
            Self::Unmountable => "tile gone",
            Self::Unknown => "tile plain",
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Kept => "safe: all that was acknowledged is there",
            Self::Lost => "lost: the last writes are gone, the rest is sound",
            Self::Damaged => "damaged: the check fails",
            Self::Unmountable => "gone: the file system does not mount",
            Self::Unknown => "nothing is known",
        }
    }
}

/// One cut.
#[derive(Clone, Debug, PartialEq)]
pub struct CutCell {
    /// State after it.
    pub state: CutState,
    /// Age of the oldest acknowledged write that was lost, in milliseconds; `None` for none.
    pub oldest_lost_ms: Option<f64>,
    /// Rule by which writes survived it.
    pub variant: String,
}

impl CutCell {
    /// Returns true if a later write may survive the cut, and an earlier one not.
    pub(super) fn breaks_order(&self) -> bool {
        BREAK_ORDER.contains(&&*self.variant)
    }
}

/// The cuts of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct CutRun {
    /// Name of the drive, or of the result.
    pub label: String,
    /// Acknowledgements a second, and the same in words; empty if not measured.
    pub rate: (f64, String),
    /// Age of the oldest write that a cut took, in milliseconds, and the same in words.
    pub oldest_lost: (f64, String),
    /// The cuts, in their order.
    pub cuts: Vec<CutCell>,
    /// Result of all cuts, in words.
    pub outcome: String,
    /// The file system on the drive, with its options.
    pub filesystem: String,
    /// Behavior of the simulated drive, in words.
    pub drive: String,
    /// Time that it takes for a flush, in words; empty for none, or if not recorded.
    pub flush: String,
    /// Longest time from the first write after a cut to the next cut, in words; empty if not
    /// recorded.
    pub pause_max: String,
    /// True if the superblock of its file system is longer than 512 bytes.
    pub has_long_superblock: bool,
}

impl CutRun {
    pub(super) fn is_worded(&self) -> bool {
        self.cuts.len() <= WORDED * WORDED_ROWS
    }

    /// Returns true if its rate, or its oldest loss, is a bar: beside bars of counts, it would be
    /// taken for one of them.
    pub(super) fn has_bar(&self) -> bool {
        self.is_worded() && !self.rate.1.is_empty()
    }

    /// Returns the result of all cuts in words, and how many of those that can do damage did.
    pub(super) fn result(&self) -> String {
        let breaking = || self.cuts.iter().filter(|cut| cut.breaks_order());
        let is_damaged =
            |cut: &&CutCell| matches!(cut.state, CutState::Damaged | CutState::Unmountable);
        let (all, damaged) = (breaking().count(), breaking().filter(is_damaged).count());
        match all {
            0 => self.outcome.clone(),
            _ => {
                format!("{}; {damaged} of {all} cuts that break the order did damage", self.outcome)
            }
        }
    }

    /// Returns true if the superblock alone may be what a cut took: only cuts that
    /// tear writes into sectors of 512 bytes left nothing to mount.
    pub(super) fn may_lose_superblock(&self) -> bool {
        let unmountable = || self.cuts.iter().filter(|cut| cut.state == CutState::Unmountable);
        self.has_long_superblock
            && unmountable().count() > 0
            && unmountable().all(|cut| cut.variant == TORN)
    }
}
