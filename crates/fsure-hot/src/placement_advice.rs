//! Advice on a folder that is in use: a pure function of the use that was measured
//! and of what is in it.
//!
//! Memory saves the time for which programs wait for the device: flushes, writes
//! that go through at once, and reads of what is not in memory. All other reads
//! and writes are already served from memory, by the page cache, however many there
//! are. Changes of metadata (files that are made, truncated, renamed or removed) take time
//! on a disk and in memory, so that only a trial tells what of it is saved.

use fsure_core::units;

/// The kind of content of a folder, as far as its loss would matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Nothing in it identifies its kind.
    #[default]
    Unknown,
    /// Files that its programs can make again.
    Cache,
    /// Lines that matter most after a crash.
    Log,
    /// Work of a user.
    Source,
    /// Files of a database, whose flushes are promises to others.
    Database,
}

impl Risk {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Cache => "cache",
            Self::Log => "log",
            Self::Source => "source",
            Self::Database => "database",
        }
    }
}

/// The action advised for a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// `fsure ram bind`: flushes cost nothing then, and hold a little later.
    Bind,
    /// `fsure ram pin`: reads come from memory, and nothing can be lost.
    Pin,
    /// `fsure ram try`: the command takes long for what may take less in memory.
    Try,
    /// Nothing: there is not enough to gain.
    Leave,
    /// Not into memory, although there is something to gain.
    Exclude,
}

impl Advice {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::Pin => "pin",
            Self::Try => "try",
            Self::Leave => "leave",
            Self::Exclude => "exclude",
        }
    }
}

/// The answer of the system when the contents of a folder were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderAccess {
    /// It can be read, or was not looked at.
    #[default]
    Allowed,
    /// This user must not read all of it.
    Denied,
    /// It is not there any more.
    Gone,
}

/// The programs that were watched, which decides how much waiting is worth an advice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All programs of the machine. Most of them pause, so that a small share of the time can be
    /// a large one of the time at which a program works.
    #[default]
    Machine,
    /// One command, from its start to its end: the share of its time is what memory can save.
    Command,
}

impl Scope {
    /// Returns the seconds per hour from which on waiting is worth an advice.
    ///
    /// The limit for a machine is 10 s, 0.3 % of the time, which a user does not notice. The limit
    /// for a command is a tenth of its time: of the commands that were tried in memory, each
    /// that waited for more than that was faster, and of those that waited for less only what
    /// writes much or makes many names (`docs/experiments.md`). The same limit is that of its
    /// waiting and its changes of metadata together, from which on a trial is advised.
    pub fn worth_s_per_hour(self) -> f64 {
        match self {
            Self::Machine => 10.0,
            Self::Command => 360.0,
        }
    }
}

/// The known facts about a folder and all that is below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FolderUse {
    /// The programs that were watched.
    pub scope: Scope,
    /// Seconds per hour for which programs wait for writes to be durable.
    pub durable: f64,
    /// Seconds per hour for which they wait for reads from the device.
    pub missed: f64,
    /// Seconds per hour that the command's changes of metadata take in all folders; 0 if they
    /// were not counted.
    pub metadata: f64,
    /// True if something was written in it.
    pub is_written: bool,
    /// True if it is in memory already.
    pub is_in_memory: bool,
    /// True if it is the disk side of a folder that is in memory already.
    pub is_disk_side: bool,
    /// The reason why it cannot be bound; `None` if it can be.
    pub unbindable: Option<String>,
    /// True if the machine needs it to start, or all else is below it.
    pub is_of_the_system: bool,
    /// The answer when its contents were looked at.
    pub access: FolderAccess,
    /// Bytes in it; `None` if they were not all found.
    pub size: Option<u64>,
    /// Bytes of memory that are free for it; `None` if the system does not report them.
    pub available: Option<u64>,
    /// Kind of its content.
    pub risk: Risk,
}

/// An advice, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The action.
    pub advice: Advice,
    /// The reason, as text.
    pub why: String,
}

/// Divisor of the free memory that gives the most that a folder may take: the rest
/// is the page cache of all other folders.
const FOLDER_SHARE_DIVISOR: u64 = 2;

/// Returns the advice on a folder, with the reason.
pub fn advise(seen: &FolderUse) -> Recommendation {
    let gain = seen.durable + seen.missed;
    let recommend = |advice, why: String| Recommendation { advice, why };
    if seen.is_in_memory {
        return recommend(Advice::Leave, "it is already in memory".to_owned());
    }
    if seen.is_disk_side {
        let why = "the flushes are fsure's own: it is the disk side of a folder that is in RAM";
        return recommend(Advice::Leave, why.to_owned());
    }
    if gain < seen.scope.worth_s_per_hour() {
        if may_gain_by_metadata(seen) {
            return recommend(Advice::Try, metadata_to_gain(seen.metadata));
        }
        return recommend(Advice::Leave, little_to_gain(gain));
    }
    if seen.access == FolderAccess::Gone {
        return recommend(Advice::Leave, "it is not there any more".to_owned());
    }
    if seen.is_of_the_system {
        let why = "the machine needs it to start, or everything else is below it: use the folders \
                   below it";
        return recommend(Advice::Exclude, why.to_owned());
    }
    if seen.access == FolderAccess::Denied {
        let why = "this user must not read all of it, so that its size and what it holds are not \
                   known: ask again as root";
        return recommend(Advice::Exclude, why.to_owned());
    }
    if let Some(why) = size_objection(seen) {
        return recommend(Advice::Exclude, why);
    }
    if seen.missed > seen.durable {
        let why = "programs wait for reads: pinned in the page cache, the folder needs no second \
                   copy, and nothing can be lost";
        return recommend(Advice::Pin, why.to_owned());
    }
    let advised = of_writes(seen.risk);
    match &seen.unbindable {
        Some(why) if advised.advice == Advice::Bind => recommend(Advice::Exclude, why.clone()),
        _ => advised,
    }
}

/// Returns true if the changes of metadata take so long, with the waiting here, that a trial in
/// memory is worth it. They are counted of no folder: it is one in which the command writes.
fn may_gain_by_metadata(seen: &FolderUse) -> bool {
    let is_possible = seen.access == FolderAccess::Allowed
        && !seen.is_of_the_system
        && size_objection(seen).is_none();
    let waited = seen.durable + seen.missed;
    let is_worth = seen.metadata > 0.0 && waited + seen.metadata >= seen.scope.worth_s_per_hour();
    is_worth && seen.is_written && is_possible
}

/// Returns the reason for a trial, of the seconds per hour that changes of metadata take.
fn metadata_to_gain(metadata: f64) -> String {
    let share = match metadata / 3600.0 {
        share if share < 1.0 => format!("{:.0} % of it", share * 100.0),
        _ => "as long as it runs".to_owned(),
    };
    format!(
        "the command waits for the device here for less than a tenth of its time, but makes, \
         truncates, renames and removes files for {share}, which may take less in memory: measure \
         it with 'fsure ram try'"
    )
}

/// Returns the reason why a folder is left where it is, of the seconds per hour to gain.
fn little_to_gain(gain: f64) -> String {
    if gain < Scope::Machine.worth_s_per_hour() {
        "programs hardly wait for the device here: the page cache already holds what they read and \
         write"
    } else {
        "the command waits for the device here for less than a tenth of its time: too little to \
         gain"
    }
    .to_owned()
}

/// Returns the reason why the folder does not fit into memory; `None` if it fits, or if the
/// free memory is not known.
fn size_objection(seen: &FolderUse) -> Option<String> {
    let Some(size) = seen.size else {
        return Some(
            "it is too large to be counted quickly, and so too large for memory".to_owned(),
        );
    };
    let available = seen.available?;
    (size > available / FOLDER_SHARE_DIVISOR).then(|| {
        let (size, available) = (units::size(size), units::size(available));
        format!("it needs {size}, which is more than half of the {available} of free memory")
    })
}

/// Returns the advice on a folder in which programs wait for what they write.
fn of_writes(risk: Risk) -> Recommendation {
    let (advice, why) = match risk {
        Risk::Database => (
            Advice::Exclude,
            "programs wait for flushes, and a database promises its users what it has flushed: in \
             memory the last transactions can be lost; bind it only if they do not matter",
        ),
        Risk::Log => (
            Advice::Bind,
            "programs wait for flushes; after a power cut the lines of the last --max-loss are \
             missing",
        ),
        Risk::Source => (
            Advice::Bind,
            "programs wait for flushes; after a power cut the work of the last --max-loss is \
             missing",
        ),
        Risk::Cache => (
            Advice::Bind,
            "programs wait for flushes of files that can be made again: there is little to lose",
        ),
        Risk::Unknown => (
            Advice::Bind,
            "programs wait for flushes; in memory a flush is durable only after up to --max-loss, \
             so check which programs rely on it",
        ),
    };
    Recommendation { advice, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_core::units::{GIB, MIB};

    const HOT: FolderUse = FolderUse {
        scope: Scope::Machine,
        durable: 100.0,
        missed: 1.0,
        metadata: 0.0,
        is_written: true,
        is_in_memory: false,
        is_disk_side: false,
        unbindable: None,
        is_of_the_system: false,
        access: FolderAccess::Allowed,
        size: Some(MIB),
        available: Some(GIB),
        risk: Risk::Unknown,
    };

    #[test]
    fn each_fact_decides_where_it_should() {
        let no = Some("/mnt is nfs4".to_owned());
        let read = FolderUse { durable: 1.0, missed: 100.0, ..HOT };
        let copied =
            FolderUse { scope: Scope::Command, durable: 9.0, missed: 0.0, metadata: 2196.0, ..HOT };
        for (seen, advice, word) in [
            (HOT, Advice::Bind, "--max-loss"),
            (FolderUse { risk: Risk::Cache, ..HOT }, Advice::Bind, "made again"),
            (FolderUse { risk: Risk::Log, ..HOT }, Advice::Bind, "lines of the last"),
            (FolderUse { risk: Risk::Source, ..HOT }, Advice::Bind, "work"),
            (FolderUse { risk: Risk::Database, ..HOT }, Advice::Exclude, "promises"),
            (read.clone(), Advice::Pin, "second copy"),
            (
                FolderUse { risk: Risk::Database, ..read.clone() },
                Advice::Pin,
                "nothing can be lost",
            ),
            (FolderUse { durable: 8.9, missed: 1.0, ..HOT }, Advice::Leave, "hardly"),
            (FolderUse { durable: 9.1, missed: 1.0, ..HOT }, Advice::Bind, ""),
            (FolderUse { scope: Scope::Command, ..HOT }, Advice::Leave, "less than a tenth"),
            (
                FolderUse { scope: Scope::Command, durable: 9.0, missed: 0.0, ..HOT },
                Advice::Leave,
                "hardly",
            ),
            (
                FolderUse { scope: Scope::Command, durable: 359.0, missed: 1.0, ..HOT },
                Advice::Bind,
                "",
            ),
            (copied.clone(), Advice::Try, "for 61 % of it,"),
            (FolderUse { metadata: 3600.0, ..copied.clone() }, Advice::Try, "as long as it runs"),
            (FolderUse { metadata: 350.0, ..copied.clone() }, Advice::Leave, "hardly"),
            (FolderUse { metadata: 351.0, ..copied.clone() }, Advice::Try, "for 10 % of it,"),
            (FolderUse { is_written: false, ..copied.clone() }, Advice::Leave, "hardly"),
            (FolderUse { is_of_the_system: true, ..copied.clone() }, Advice::Leave, "hardly"),
            (FolderUse { size: None, ..copied.clone() }, Advice::Leave, "hardly"),
            (FolderUse { is_in_memory: true, ..copied.clone() }, Advice::Leave, "already"),
            (FolderUse { durable: 360.0, ..copied }, Advice::Bind, ""),
            (FolderUse { is_in_memory: true, ..HOT }, Advice::Leave, "already"),
            (FolderUse { is_disk_side: true, ..HOT }, Advice::Leave, "fsure's own"),
            (FolderUse { unbindable: no.clone(), ..HOT }, Advice::Exclude, "nfs"),
            (FolderUse { unbindable: no, ..read.clone() }, Advice::Pin, ""),
            (FolderUse { is_of_the_system: true, ..HOT }, Advice::Exclude, "folders below it"),
            (FolderUse { size: None, ..HOT }, Advice::Exclude, "too large"),
            (
                FolderUse { access: FolderAccess::Denied, size: None, ..HOT },
                Advice::Exclude,
                "as root",
            ),
            (
                FolderUse { access: FolderAccess::Gone, size: None, ..HOT },
                Advice::Leave,
                "not there",
            ),
            (FolderUse { size: Some(GIB / 2 + 1), ..HOT }, Advice::Exclude, "1.0 GiB"),
            (FolderUse { size: Some(GIB / 2), ..HOT }, Advice::Bind, ""),
            (FolderUse { available: None, ..HOT }, Advice::Bind, ""),
            (FolderUse { is_of_the_system: true, durable: 0.0, ..HOT }, Advice::Leave, ""),
        ] {
            let advised = advise(&seen);
            assert_eq!(advised.advice, advice, "{seen:?}");
            assert!(advised.why.contains(word), "{seen:?}: {}", advised.why);
        }
    }
}
