//! Rules by which a finding is left alone, whatever there is to heal it from.

use super::HealOptions;
use crate::catalog::{Catalog, OWN_FOLDER};
use crate::model::{Entry, EntryKind, Finding, Verdict, is_same_date};
use fsure_core::RelPath;

/// Returns the reason against healing a finding, whatever there is to heal it
/// from; `None` if there is none.
pub(super) fn objection(
    finding: &Finding,
    options: &HealOptions,
    catalog: &Catalog,
) -> Option<String> {
    let is_missing = finding.verdict == Verdict::Missing;
    let why = match finding.verdict {
        _ if !is_beneath(&finding.path) => "its name leads out of the root",
        _ if would_lose_an_edit(finding, options) => {
            "it may be an edit, so fsure replaces it only if it keeps what is there: not with \
             '--no-keep'"
        }
        Verdict::DamagedCopy if options.in_place && is_longer(finding) => {
            "it is longer than recorded, and '--in-place' would lose its end: without '--in-place' \
             all of it is kept"
        }
        _ if options.in_place && must_keep_original(finding, options) && is_longer(finding) => {
            "it is longer than recorded, and '--in-place' would lose its end: '--no-keep' allows \
             that"
        }
        Verdict::Flaky => "its content is as recorded: check medium, cable and memory",
        _ if finding.kind != EntryKind::File && !is_missing => {
            "folders and links are only made again if they are missing"
        }
        _ if is_missing => return None,
        _ if finding.found.is_none() => "its size and dates cannot be read",
        // Kept, or refused above.
        Verdict::DamagedCopy => return None,
        _ if !has_its_date(finding, catalog) => {
            "its date is not the recorded one: it may hold an edit that fsure cannot detect"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// Returns true if nothing shows that a file was edited since it was recorded.
fn has_its_date(finding: &Finding, catalog: &Catalog) -> bool {
    let (Some(then), Some(now)) = (&finding.recorded, &finding.found) else { return false };
    let of = |entry: &Entry| catalog.granularity_ns(entry.file_system);
    let is_same = is_same_date(then.mtime_ns, now.mtime_ns, of(then).max(of(now)));
    // Beyond the range of dates, an edit shows by its change time only.
    let is_known = then.exact_mtime_ns().is_some() || then.same_change(now);
    then.is_undated() || is_same && is_known
}

/// Returns true if what is there is to be kept: of what is missing there is nothing.
pub(super) fn must_keep_original(finding: &Finding, options: &HealOptions) -> bool {
    finding.verdict != Verdict::Missing && !options.discards_replaced
}

/// Returns true if a finding may be an edit of which this run would keep nothing.
/// The files around a damaged copy make it likely to be damaged and do not prove it.
pub(super) fn would_lose_an_edit(finding: &Finding, options: &HealOptions) -> bool {
    finding.verdict == Verdict::DamagedCopy && options.discards_replaced
}

/// Returns true if a path stays below its root and is not one of fsure's own.
fn is_beneath(path: &RelPath) -> bool {
    let is_name = |name: &[u8]| !name.is_empty() && name != b"." && name != b"..";
    path.as_bytes().split(|byte| *byte == b'/').all(is_name)
        && !path.is_within(&RelPath::from_bytes(OWN_FOLDER.as_bytes()))
}

/// Returns true if a file is longer than recorded.
fn is_longer(finding: &Finding) -> bool {
    let size = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.size);
    size(&finding.found) > size(&finding.recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record may have been forged: no name in it leads anywhere else.
    #[test]
    fn only_names_beneath_the_root_are_healed() {
        for (path, is) in [
            ("a", true),
            ("a/b..c/.d", true),
            (".fsures", true),
            ("..", false),
            ("a/../../b", false),
            ("/etc/passwd", false),
            ("a//b", false),
            ("./a", false),
            ("", false),
            (".fsure", false),
            (".fsure/catalog.db", false),
        ] {
            assert_eq!(is_beneath(&RelPath::from_bytes(path.as_bytes())), is, "{path}");
        }
    }
}
