//! The lines of `fsure crash --json`. They are an interface: `docs/crash.md`
//! says what each means.

use serde::{Deserialize, Serialize};

/// State after a cut, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutState {
    /// All that was acknowledged is there, and consistent.
    Survived,
    /// Consistent, and something acknowledged is not there.
    Lost,
    /// The check says that what is there is not consistent.
    Corrupt,
    /// The file system does not mount.
    Unmountable,
    /// Nothing is known.
    HarnessBroken,
}

impl CutState {
    /// All of them, the worst last.
    pub const ALL: [Self; 5] =
        [Self::Survived, Self::Lost, Self::Corrupt, Self::Unmountable, Self::HarnessBroken];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Survived => "survived",
            Self::Lost => "lost",
            Self::Corrupt => "corrupt",
            Self::Unmountable => "unmountable",
            Self::HarnessBroken => "harness-broken",
        }
    }

    /// Returns true if the cut has shown that something is gone.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Lost | Self::Corrupt | Self::Unmountable)
    }
}

/// A sync that a program left out: had it been made just before the cut, the check would
/// have found nothing wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MissingSync {
    /// `folder` or `file`.
    pub of: String,
    /// Its path from the top of the file system, which is `.`.
    pub path: String,
    /// Some of the names in a folder that were lost without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// One cut and what it left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutMade {
    /// The workload, if it is a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Its number on this drive, from 1.
    pub n: u64,
    /// The drive, as the command line names it.
    pub drive: String,
    /// The file system, or `folder`.
    pub fs: String,
    /// The variant of the cut, which determines which writes survived.
    pub variant: String,
    /// The highest number acknowledged before the cut; 0: none.
    pub acked: u64,
    /// The acknowledgements a second from the first one to the cut; absent if that is less than
    /// a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_per_second: Option<f64>,
    /// Acknowledged and not there; `null` where the check did not say.
    pub lost: Option<u64>,
    /// The age at the cut of the oldest acknowledgement that does not hold, in
    /// milliseconds.
    pub oldest_lost_ms: Option<u64>,
    /// State after the cut, as far as it is known.
    pub state: CutState,
    /// True if it is one of the twin's cuts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twin: bool,
    /// Message of the check or of `mount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The file in which the image was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The fewest syncs that were found with which nothing would have been lost; none,
    /// where no sync would have helped. Absent where they were not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_syncs: Option<Vec<MissingSync>>,
}

/// Results of all cuts of one program on one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveTried {
    /// The drive, as the command line names it.
    pub drive: String,
    /// The file system, or `folder`.
    pub fs: String,
    /// Options with which the file system is mounted; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mount_options: String,
    /// Time that the drive takes for a flush of nothing, in milliseconds; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_ms: Option<f64>,
    /// Longest time from the first acknowledgement after a check to the next cut, in milliseconds;
    /// absent if each flush is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_max_ms: Option<f64>,
    /// Cuts made; those of the twin do not count.
    pub cuts: u64,
    /// Of them, by what is known.
    pub survived: u64,
    /// See [`CutState::Lost`].
    pub lost: u64,
    /// See [`CutState::Corrupt`].
    pub corrupt: u64,
    /// See [`CutState::Unmountable`].
    pub unmountable: u64,
    /// See [`CutState::HarnessBroken`].
    pub harness_broken: u64,
    /// The most that was acknowledged before a cut and not there.
    pub most_lost: u64,
    /// The greatest age of a lost acknowledgement, in milliseconds.
    pub oldest_lost_ms: Option<u64>,
    /// The highest number acknowledged before any cut.
    pub acked: u64,
    /// The acknowledgements a second until that cut; absent if that is less than a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_per_second: Option<f64>,
    /// True if the same run on a lying drive showed a loss; `null` if the run was ended
    /// before.
    pub twin_lost: Option<bool>,
    /// The disturbance by another process that ended the cuts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// The highest number acknowledged before any of the twin's cuts. It is not reported.
    #[serde(skip)]
    pub twin_acked: u64,
}

impl DriveTried {
    /// Counts a cut.
    pub fn add(&mut self, cut: &CutMade) {
        self.cuts += 1;
        *match cut.state {
            CutState::Survived => &mut self.survived,
            CutState::Lost => &mut self.lost,
            CutState::Corrupt => &mut self.corrupt,
            CutState::Unmountable => &mut self.unmountable,
            CutState::HarnessBroken => &mut self.harness_broken,
        } += 1;
        if cut.acked > self.acked {
            (self.acked, self.acked_per_second) = (cut.acked, cut.acked_per_second);
        }
        if cut.state.is_loss() {
            self.most_lost = self.most_lost.max(cut.lost.unwrap_or(0));
            self.oldest_lost_ms = self.oldest_lost_ms.max(cut.oldest_lost_ms);
        }
    }

    /// Returns true if nothing could be lost although the program does acknowledge: the
    /// twin has shown a loss, and here there was none to notice.
    pub fn owed_nothing(&self) -> bool {
        self.acked == 0 && self.twin_acked > 0
    }

    /// Cuts that have shown a loss.
    pub fn losses(&self) -> u64 {
        self.lost + self.corrupt + self.unmountable
    }
}

/// The content that is found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentSeen {
    /// The content from before the failed write.
    Old,
    /// The content that was to be written.
    New,
    /// Something else, or it cannot be read.
    #[default]
    Neither,
}

/// A call, and what it returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// `write`, `fsync`, `open`.
    pub call: String,
    /// The descriptor by which it was called.
    pub by: String,
    /// `ok`, or the error.
    pub result: String,
}

/// Behaviour of a file system after one write that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushAfterError {
    /// The file system.
    pub fs: String,
    /// Calls after the failure, in order.
    pub calls: Vec<Call>,
    /// Content that the program read after those calls.
    pub in_memory: ContentSeen,
    /// Content after a cut.
    pub after_cut: ContentSeen,
    /// True if a flush reported success although the content is not on the medium: a
    /// program that flushes again gets a wrong answer.
    pub forgets: bool,
    /// True if any flush reported the failure.
    pub reported: bool,
}

impl FlushAfterError {
    /// Derives `forgets` and `reported` from the calls and the contents.
    pub fn new(fs: &str, calls: Vec<Call>, in_memory: ContentSeen, after_cut: ContentSeen) -> Self {
        let mut flushes = calls.iter().filter(|call| call.call == "fsync");
        let forgets = after_cut != ContentSeen::New && flushes.any(|call| call.result == "ok");
        let mut flushes = calls.iter().filter(|call| call.call == "fsync");
        let reported = flushes.any(|call| call.result != "ok");
        Self { fs: fs.to_owned(), calls, in_memory, after_cut, forgets, reported }
    }
}

/// A cell of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrashCell {
    /// The workload.
    pub workload: String,
    /// Results of all cuts.
    #[serde(flatten)]
    pub tried: DriveTried,
    /// The expected result, in words.
    pub expected: String,
    /// True if the result is the expected one.
    pub as_expected: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum CrashLine {
    /// A cut.
    Cut(CutMade),
    /// All cuts of a drive.
    Drive(DriveTried),
    /// The same, of a cell of the matrix.
    Cell(CrashCell),
    /// Behaviour of a file system after one write that failed.
    FlushAfterError(FlushAfterError),
    /// Something a person should know.
    Warning {
        /// The sentence.
        words: String,
    },
    /// The last line.
    Summary(CrashSummary),
}

impl CrashLine {
    /// The line, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text")
    }
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrashSummary {
    /// Seed of the random choices.
    pub seed: u64,
    /// Cuts, without those of twins.
    pub cuts: u64,
    /// Of them, those that have shown a loss.
    pub losses: u64,
    /// Of them, those of which nothing is known.
    pub harness_broken: u64,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Cuts a minute, those of twins included, each with its check.
    pub cuts_per_minute: f64,
    /// Of the matrix: cells that were filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<u64>,
    /// Of the matrix: cells that did not come out as was to be expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected: Option<u64>,
    /// The exit code that the run ended with.
    pub exit_code: u8,
}
