//! Compares stored results of one kind beside each other, any number of them: which of these
//! drives, and by how much? Each ratio is to the first result, has an interval, and is called
//! a difference only if the runs show one.

mod contenders;
mod figures;
mod likeness;
mod purposes;
mod references;
#[cfg(test)]
mod tests;

use crate::flush::DATABASE_FLUSHES;
use crate::flush_verdict::Grade;
use crate::results::{Measurement, StoredResult};
use fsure_core::{Error, ExitCode, Result};

pub use contenders::{Contender, ContenderVerdict};
pub use figures::{Figure, FigureValue, Ratio, Seen};
pub use purposes::Purpose;
pub use references::{REFERENCES, Reference, RungReference, UNFLUSHED_REFERENCE, rung_references};

/// A stored result and the name of its file.
#[derive(Clone, Copy, Debug)]
pub struct StoredFile<'a> {
    /// The file, as text.
    pub file: &'a str,
    /// Its content.
    pub stored: &'a StoredResult,
}

/// Results of one kind side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The command that measured.
    pub kind: Measurement,
    /// The results, in the order given. Of one result alone, its folders.
    pub contenders: Vec<Contender>,
    /// Differences that make them hard to compare: another machine, another setup.
    pub unlike: Vec<String>,
    /// Results that are of the same drive, with its firmware.
    pub same_drives: Vec<String>,
    /// The figures that the first result and at least one other have.
    pub figures: Vec<Figure>,
    /// Figures of some of the results only.
    pub only_in_some: Vec<String>,
    /// Advice on which of the results suits which purpose.
    pub purposes: Vec<Purpose>,
}

impl Comparison {
    /// Returns the exit code of a command with this result: 1 if a difference was seen, and 5
    /// if there was nothing to compare.
    pub fn exit_code(&self) -> ExitCode {
        match self.ratios().any(|ratio| ratio.seen.is_difference()) {
            true => ExitCode::Differences,
            false if self.figures.is_empty() => ExitCode::Incomplete,
            false => ExitCode::Clean,
        }
    }

    /// All ratios.
    pub fn ratios(&self) -> impl Iterator<Item = &Ratio> {
        self.figures.iter().flat_map(|figure| figure.ratios.iter().flatten())
    }

    /// Returns the figure that matters most: the flush that databases use, or reading and then
    /// writing past the page cache.
    pub fn key_figure(&self) -> Option<&Figure> {
        let names: &[&str] = match self.kind {
            Measurement::Flush => &DATABASE_FLUSHES,
            Measurement::Speed => &["disk read direct", "disk read uncached", "disk write durable"],
        };
        names.iter().find_map(|name| self.figures.iter().find(|figure| figure.name == *name))
    }

    /// Returns a sentence on the contenders of which nothing proves that a flush reaches the
    /// drive; `None` if there are none.
    pub fn unproved(&self) -> Option<String> {
        let is_unproved = |verdict: &&ContenderVerdict| {
            matches!(verdict.grade, Grade::Suspicious | Grade::NotMeasured)
        };
        let each = self.contenders.iter().filter_map(|one| {
            let verdict = one.verdict.as_ref().filter(is_unproved)?;
            Some(format!("{} ({})", one.name, verdict.words()))
        });
        let each: Vec<_> = each.collect();
        (!each.is_empty()).then(|| {
            format!(
                "It is not proved that a flush reaches the drive of {}: a quick flush may be one \
                 that does nothing.",
                each.join(", ")
            )
        })
    }

    /// Returns what the device was sent for each durable write of the way that matters most;
    /// `None` if nothing counted it.
    pub fn device_cost(&self) -> Option<String> {
        let figure = self.key_figure()?;
        let each = self.contenders.iter().zip(&figure.values).filter_map(|(one, value)| {
            let cost = value.as_ref()?.flush?;
            let (kib, flushes) = (cost.device_kib_per_op?, cost.flushes_per_op?);
            Some(format!("{kib:.2} KiB and {flushes:.2} flushes ({})", one.name))
        });
        let each: Vec<_> = each.collect();
        let name = &figure.name;
        (!each.is_empty()).then(|| format!("For each {name}, the device got {}.", each.join(", ")))
    }

    /// Returns the result in a sentence: the figure that matters most.
    pub fn headline(&self) -> String {
        let Some(figure) = self.key_figure().or_else(|| self.figures.first()) else {
            return "These results have no figure in common.".to_owned();
        };
        let first = &self.contenders[0].name;
        let pairs = self.contenders.iter().zip(&figure.ratios);
        let parts = pairs.filter_map(|(contender, ratio)| {
            ratio.as_ref().map(|ratio| ratio.sentence(&contender.name, first))
        });
        let parts: Vec<_> = parts.collect();
        let what = match self.kind {
            Measurement::Flush => format!("Durable write ({})", figure.name),
            Measurement::Speed => figure.name.clone(),
        };
        let in_memory = self.names(Contender::is_in_memory, "A power cut loses everything on");
        let bad = self.names(Contender::has_bad_flush, "Acknowledged data get lost on");
        format!("{what}: {}.{in_memory}{bad}", parts.join("; "))
    }

    /// A sentence that ends with the contenders that it is about; empty if there are none.
    fn names(&self, is: impl Fn(&Contender) -> bool, about: &str) -> String {
        let names: Vec<_> =
            self.contenders.iter().filter(|one| is(one)).map(|one| one.name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!(" {about} {}.", names.join(", ")) }
    }
}

/// Compares results of `kind`. With several results, folders are paired in their order, so that
/// one disk can be compared with another; with one result, its folders are compared.
pub fn compare(kind: Measurement, files: &[StoredFile<'_>]) -> Result<Comparison> {
    check(kind, files)?;
    let mut cases = contenders::cases(files);
    let settings: Vec<_> = cases.iter().map(|other| likeness::settings(&cases[0], other)).collect();
    for (case, differing) in cases.iter_mut().zip(&settings) {
        case.contender.has_other_settings = !differing.is_empty();
    }
    if cases.len() < 2 {
        return Err(usage(
            "one result of one folder has nothing to be compared with".to_owned(),
            &format!("name two results: 'fsure {} compare a.jsonl b.jsonl'", name(kind)),
        ));
    }
    let (figures, only_in_some) = figures::figures(&cases);
    let unlike = likeness::unlike(&cases, settings, files.len() == 1);
    let same_drives = likeness::same_drives(&cases);
    let contenders = cases.into_iter().map(|case| case.contender).collect();
    let mut compared = Comparison {
        kind,
        contenders,
        unlike,
        same_drives,
        figures,
        only_in_some,
        purposes: Vec::new(),
    };
    compared.purposes = purposes::purposes(&compared);
    Ok(compared)
}

/// Refuses results of another command, and one that is given twice: they would be equal.
fn check(kind: Measurement, files: &[StoredFile<'_>]) -> Result<()> {
    if let Some(other) = files.iter().find(|one| one.stored.header.kind != kind) {
        let measured = name(other.stored.header.kind);
        return Err(usage(
            format!("{}: it is not a result of 'fsure {}'", other.file, name(kind)),
            &format!("'fsure {measured} compare' compares results of 'fsure {measured}'"),
        ));
    }
    for (place, one) in files.iter().enumerate() {
        if let Some(twin) = files[..place].iter().find(|twin| twin.stored == one.stored) {
            return Err(usage(
                format!("{} and {} are the same result", twin.file, one.file),
                "name another one: a result compared with itself shows no difference",
            ));
        }
    }
    Ok(())
}

fn usage(message: String, hint: &str) -> Error {
    Error::Usage { message, hint: Some(hint.to_owned()) }
}

/// The command's name.
fn name(kind: Measurement) -> &'static str {
    match kind {
        Measurement::Speed => "speed",
        Measurement::Flush => "flush",
    }
}
