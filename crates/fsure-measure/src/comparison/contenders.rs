//! The results that are compared, each with a letter: the folders it is of, the drive below
//! them and the verdict on it.

use super::StoredFile;
use crate::flush_verdict::Grade;
use crate::results::{Claim, LEFT_OUT, LayerLine, Profile, ResultLine, StoredResult};

/// One result of a comparison, or one folder of the only result.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Its letter.
    pub name: String,
    /// The file that holds it.
    pub file: String,
    /// The folders that it is of.
    pub targets: Vec<String>,
    /// Vendor and model of the drive, or the name of its device.
    pub device: Option<String>,
    /// Serial number of the drive, or of all drives.
    pub serial: Option<String>,
    /// Firmware of the drive, or of all drives.
    pub firmware: Option<String>,
    /// Type of the file system.
    pub file_system: Option<String>,
    /// Name of the machine.
    pub host: String,
    /// Time at which the run began, RFC 3339 in UTC.
    pub started: String,
    /// The worst verdict on its flushes.
    pub verdict: Option<ContenderVerdict>,
    /// Patterns of databases that were measured.
    pub profiles: Vec<Profile>,
    /// True if it was measured with other settings than the first.
    pub has_other_settings: bool,
}

/// A verdict on the flushes of a contender.
#[derive(Clone, Debug, PartialEq)]
pub struct ContenderVerdict {
    /// `FREE_FLUSH`, `PLAUSIBLE`, ...
    pub id: String,
    /// Its meaning for the user.
    pub grade: Grade,
}

impl ContenderVerdict {
    /// The grade, and the verdict that it is the grade of: `suspicious: FREE_FLUSH`.
    pub fn words(&self) -> String {
        match self.grade {
            Grade::NotMeasured => self.grade.name().to_owned(),
            grade => format!("{}: {}", grade.name(), self.id),
        }
    }
}

/// A contender and the lines that are its own.
pub(super) struct Case<'a> {
    pub(super) contender: Contender,
    pub(super) stored: &'a StoredResult,
    pub(super) targets: Vec<&'a str>,
}

/// Returns the contenders: the results, or the folders of the only one.
pub(super) fn cases<'a>(files: &[StoredFile<'a>]) -> Vec<Case<'a>> {
    let targets = |stored: &'a StoredResult| -> Vec<&'a str> {
        stored.header.targets.iter().map(|target| target.path.as_str()).collect()
    };
    let each: Vec<(StoredFile<'a>, Vec<&'a str>)> = match files {
        [only] => targets(only.stored).into_iter().map(|target| (*only, vec![target])).collect(),
        _ => files.iter().map(|one| (*one, targets(one.stored))).collect(),
    };
    let case = |(place, (file, targets)): (usize, (StoredFile<'a>, Vec<&'a str>))| Case {
        contender: contender(letter(place), file, &targets),
        stored: file.stored,
        targets,
    };
    each.into_iter().enumerate().map(case).collect()
}

/// A letter while there are any, then a number.
fn letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place) if place < 26 => char::from(b'A' + place).to_string(),
        _ => (place + 1).to_string(),
    }
}

fn contender(name: String, file: StoredFile<'_>, targets: &[&str]) -> Contender {
    let StoredFile { file, stored } = file;
    let is_own = |target: &str| targets.contains(&target);
    let layers = stored.lines.iter().filter_map(|line| match line {
        ResultLine::Layer(layer) if is_own(&layer.target) => Some(layer),
        _ => None,
    });
    let layers: Vec<_> = layers.collect();
    let claims = stored.lines.iter().filter_map(|line| match line {
        ResultLine::Verdict(claim) if is_own(&claim.target) => Some(claim),
        _ => None,
    });
    let profiles = stored.lines.iter().filter_map(|line| match line {
        ResultLine::Profile(profile) if is_own(&profile.target) => Some(profile),
        _ => None,
    });
    let file_system = layers.iter().find(|layer| layer.layer == "file system");
    Contender {
        name,
        file: file.to_owned(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        device: device(&layers),
        serial: facts(&layers, "serial"),
        firmware: facts(&layers, "firmware"),
        file_system: file_system.map(|layer| layer.name.clone()),
        host: stored.header.machine.host.clone(),
        started: stored.header.started.clone(),
        verdict: worst(claims),
        profiles: profiles.cloned().collect(),
        has_other_settings: false,
    }
}

impl Contender {
    /// Returns true if the verdict on its flushes is `bad`: it loses what it acknowledged.
    pub fn has_bad_flush(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.grade == Grade::Bad)
    }

    /// Returns true if it is a file system in memory, which a power cut empties.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.file_system.as_deref(), Some("tmpfs" | "ramfs" | "hugetlbfs"))
    }

    /// Returns a figure of the pattern of a database, if it was measured.
    pub(super) fn profile_figure(&self, database: &str, figure: &str) -> Option<f64> {
        let profile = self.profiles.iter().find(|profile| profile.name == database)?;
        profile.figures.iter().find(|(name, _)| name == figure).map(|(_, value)| *value)
    }
}

/// The lowest layer by its maker's name, or its own.
fn device(layers: &[&LayerLine]) -> Option<String> {
    let disk = layers.iter().rev().find(|layer| layer.layer != "file system")?;
    let named: Vec<_> = ["vendor", "model"].iter().filter_map(|name| fact(disk, name)).collect();
    Some(if named.is_empty() { disk.name.clone() } else { named.join(" ") })
}

fn fact<'a>(layer: &'a LayerLine, name: &str) -> Option<&'a str> {
    let (_, value) = layer.facts.iter().find(|(fact, _)| fact == name)?;
    Some(value.as_str()).filter(|value| !value.is_empty() && *value != LEFT_OUT)
}

/// A fact of all layers that have it, each value once.
fn facts(layers: &[&LayerLine], name: &str) -> Option<String> {
    let mut all: Vec<_> = layers.iter().filter_map(|layer| fact(layer, name)).collect();
    all.sort_unstable();
    all.dedup();
    (!all.is_empty()).then(|| all.join(", "))
}

fn worst<'a>(claims: impl Iterator<Item = &'a Claim>) -> Option<ContenderVerdict> {
    let rank = |verdict: &ContenderVerdict| match verdict.grade {
        Grade::Ok => 0,
        Grade::NotMeasured => 1,
        Grade::Suspicious => 2,
        Grade::Bad => 3,
    };
    let verdicts = claims.filter_map(|claim| {
        let grade = Grade::from_name(&claim.grade)?;
        Some(ContenderVerdict { id: claim.id.clone(), grade })
    });
    verdicts.max_by_key(rank)
}
