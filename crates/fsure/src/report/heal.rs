//! Reports what a heal did about its findings, for the user and for a program, and its
//! closing sentences.

use std::path::PathBuf;

use serde::Serialize;

use super::byte_ranges::ranges;
use super::json::{line, pairs};
use super::{RootPaths, number, with_command};
use fsure_core::json_path_and_bytes;
use fsure_core::{RelPath, escape, shell_quoted, units};
use fsure_core::{count, safe};
use fsure_integrity::catalog::REPLACED;
use fsure_integrity::model::{
    ByteRange, CountsByKind, EntryKind, HealResult, HealSource, HealStatus, HealSummary, Outcome,
    Verdict, merge_ranges,
};

/// Returns what was done about a finding, in one line and one more for each source.
pub fn text_line(paths: &RootPaths, remedy: &HealResult) -> String {
    let what = match (remedy.cure, remedy.verdict) {
        (HealStatus::Healed, Verdict::Missing) => "made again",
        (HealStatus::Healed, _) => "put back",
        (HealStatus::Healable, Verdict::Missing) => "would be made again",
        (HealStatus::Healable, _) => "would be put back",
        (HealStatus::Unhealed, _) => "left as it is",
    };
    let (cure, path) = (remedy.cure.name(), paths.shown(&remedy.path));
    let mut text = format!("{cure:<12} {path}  {} {what}", remedy.verdict.name());
    let size = remedy.size;
    for (origin, taken) in &remedy.taken {
        let shown = ranges("", taken, size).unwrap_or_default();
        text += &format!("\n    {}", format!("{} {}", shown.trim(), from(origin)).trim());
    }
    if let Some(lacking) = ranges("in no copy:", &remedy.lacking, size) {
        text += &format!("\n    {lacking}");
    }
    if let Some(kept) = &remedy.kept {
        text += &format!("\n    what was there is kept as {}", paths.shown(kept));
    }
    if let Some(reason) = &remedy.reason {
        text += &format!("\n    {}", safe(reason));
    }
    text
}

/// Names the source of bytes.
pub(super) fn from(origin: &HealSource) -> String {
    match origin {
        HealSource::Itself => "as they are in it".to_owned(),
        HealSource::Replica(path) => format!("from {}", escape(path)),
        HealSource::Parity => "from recovery data".to_owned(),
        HealSource::Record => "as it is recorded".to_owned(),
    }
}

/// The same as JSON; no line end.
pub fn json_line(root: &str, remedy: &HealResult) -> String {
    let (path, path_bytes) = json_path_and_bytes(remedy.path.as_bytes());
    let kept = remedy.kept.as_ref().map(|kept| json_path_and_bytes(kept.as_bytes()));
    let (kept, kept_bytes) = kept.map_or((None, None), |(text, bytes)| (Some(text), bytes));
    line(&RemedyLine {
        r#type: "remedy",
        root,
        path,
        path_bytes,
        kind: remedy.kind.name(),
        found: remedy.verdict.name(),
        cure: remedy.cure.name(),
        taken: remedy.taken.iter().map(TakenLine::of).collect(),
        lacking: pairs(&remedy.lacking),
        kept,
        kept_bytes,
        reason: remedy.reason.as_deref(),
    })
}

#[derive(Serialize)]
struct RemedyLine<'a> {
    r#type: &'static str,
    root: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    kind: &'static str,
    found: &'static str,
    cure: &'static str,
    taken: Vec<TakenLine>,
    lacking: Vec<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct TakenLine {
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_bytes: Option<String>,
    blocks: Vec<[u64; 2]>,
}

impl TakenLine {
    fn of((origin, ranges): &(HealSource, Vec<ByteRange>)) -> Self {
        let (origin, named) = match origin {
            HealSource::Itself => ("itself", None),
            HealSource::Replica(path) => ("replica", Some(json_path_and_bytes(path))),
            HealSource::Parity => ("parity", None),
            HealSource::Record => ("record", None),
        };
        let (replica, replica_bytes) =
            named.map_or((None, None), |(text, bytes)| (Some(text), bytes));
        Self { origin, replica, replica_bytes, blocks: pairs(&merge_ranges(ranges)) }
    }
}

/// Returns the result of a heal as a whole, in sentences.
pub(super) fn closing(paths: &RootPaths, healing: &HealSummary, outcome: &Outcome) -> Vec<String> {
    let bytes = units::size(healing.bytes);
    let healed = who(&healing.healed).map(|who| format!("HEALED: {who}, {bytes} put back."));
    let healable = who(&healing.healable).map(|who| {
        let command = format!("{} --yes", again(paths, healing, outcome));
        let sentence =
            format!("{who} CAN BE HEALED, {bytes} put back. This was a dry run; to heal");
        with_command(&sentence, &command)
    });
    let unhealed =
        who(&healing.unhealed).map(|who| format!("NOT HEALED: {who}; see above for the reasons."));
    let unkept = (healing.unkept > 0).then(|| {
        let files = match healing.unkept {
            1 => "1 file that may be an edit was".to_owned(),
            many => format!("{} files that may be edits were", count(many)),
        };
        format!(
            "{files} LEFT ALONE: damaged copies are healed only if the present content is kept. To \
             keep it, run '{}'.",
            again(paths, healing, outcome)
        )
    });
    let kept = (healing.kept > 0).then(|| {
        let files = number(healing.kept, "rewritten file", "rewritten files");
        format!(
            "The previous content of {files} is kept below {}: check if any of it is the better \
             content, and delete it when you do not need it.",
            paths.shown(&RelPath::from_bytes(REPLACED.as_bytes()))
        )
    });
    let unfinished = healing.is_unfinished.then(|| {
        "NOT FINISHED: the in-place heal of a file was interrupted; the next heal with '--yes' \
         finishes it."
            .to_owned()
    });
    [healed, kept, healable, unhealed, unkept, unfinished].into_iter().flatten().collect()
}

/// The same heal, with what is replaced kept.
fn again(paths: &RootPaths, healing: &HealSummary, outcome: &Outcome) -> String {
    let command = paths.command_allowing("heal", outcome.allowed);
    let mut command = with_replicas(command, &outcome.replicas);
    command += if healing.is_in_place { " --in-place" } else { "" };
    command + if healing.is_dry_run { "" } else { " --yes" }
}

/// A command with the copies that a heal was given.
pub(super) fn with_replicas(command: String, replicas: &[PathBuf]) -> String {
    let from = replicas.iter().map(|replica| format!(" --from {}", shell_quoted(replica)));
    from.fold(command, |command, from| command + &from)
}

fn who(tallies: &CountsByKind) -> Option<String> {
    let kinds = [
        (tallies.files.total(), EntryKind::File),
        (tallies.links.total(), EntryKind::Link),
        (tallies.folders.total(), EntryKind::Folder),
    ];
    let there = kinds.into_iter().filter(|(count, _)| *count > 0);
    let named = there.map(|(count, kind)| {
        let one = kind.name();
        number(count, one, &format!("{one}s"))
    });
    let named: Vec<_> = named.collect();
    (!named.is_empty()).then(|| named.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    const MIB: u64 = 1 << 20;

    fn remedy(cure: HealStatus) -> HealResult {
        HealResult {
            path: RelPath::from_bytes(*b"a\n\xff"),
            kind: EntryKind::File,
            size: 4 * MIB,
            verdict: Verdict::Rotten,
            cure,
            taken: vec![
                (HealSource::Itself, vec![0..MIB]),
                (HealSource::Replica(b"/b\x1b"[..].into()), vec![MIB..2 * MIB, 3 * MIB..4 * MIB]),
            ],
            lacking: Vec::new(),
            kept: None,
            reason: None,
        }
    }

    #[test]
    fn a_line_names_the_source_of_each_file() {
        let expected = "healed       a\\n\\xff  rotten put back\n    \
             bytes 0-1048576 (1.0 MiB of 4.0 MiB) as they are in it\n    \
             bytes 1048576-2097152, 3145728-4194304 (2.0 MiB of 4.0 MiB) from /b\\x1b";
        assert_eq!(text_line(&RootPaths::in_root(), &remedy(HealStatus::Healed)), expected);
        let mut left = remedy(HealStatus::Unhealed);
        left.taken.clear();
        left.lacking = vec![2 * MIB..3 * MIB];
        left.kept = Some(RelPath::from_bytes(*b".fsure/replaced/1/a\xff"));
        left.reason = Some("no\n".to_owned());
        let expected = "unhealed     /r/a\\n\\xff  rotten left as it is\n    \
             in no copy: bytes 2097152-3145728 (1.0 MiB of 4.0 MiB)\n    \
             what was there is kept as /r/.fsure/replaced/1/a\\xff\n    no\\n";
        assert_eq!(text_line(&RootPaths::at("/r".as_ref()), &left), expected);
    }

    #[test]
    fn a_program_gets_exact_names() {
        let line: serde_json::Value =
            serde_json::from_str(&json_line("/r", &remedy(HealStatus::Healable))).unwrap();
        assert_eq!(line["path_bytes"], "YQr/");
        assert_eq!((&line["cure"], &line["found"]), (&"healable".into(), &"rotten".into()));
        assert_eq!(line["taken"][1]["replica"], "/b\u{1b}");
        let blocks = serde_json::json!([[MIB, 2 * MIB], [3 * MIB, 4 * MIB]]);
        assert_eq!(line["taken"][1]["blocks"], blocks);
        assert_eq!(line.get("kept"), None);
        let kept = Some(RelPath::from_bytes(*b"k\xff"));
        let kept = HealResult { kept, ..remedy(HealStatus::Healed) };
        let line: serde_json::Value = serde_json::from_str(&json_line("/r", &kept)).unwrap();
        assert_eq!(line["kept_bytes"], "a/8=");
    }

    #[test]
    fn the_end_counts_by_what_became_of_it() {
        let mut healing = HealSummary::default();
        let kept = Some(RelPath::from_bytes(*b"k"));
        healing.add(&HealResult { kept, ..remedy(HealStatus::Healed) });
        healing.add(&HealResult { kind: EntryKind::Link, ..remedy(HealStatus::Unhealed) });
        healing.is_unfinished = true;
        assert_eq!(
            closing(&RootPaths::at("/r".as_ref()), &healing, &Outcome::default()),
            [
                "HEALED: 1 file, 2.0 MiB put back.",
                "The previous content of 1 rewritten file is kept below /r/.fsure/replaced: check \
                 if any of it is the better content, and delete it when you do not need it.",
                "NOT HEALED: 1 link; see above for the reasons.",
                "NOT FINISHED: the in-place heal of a file was interrupted; the next heal with \
                 '--yes' finishes it."
            ]
        );
    }
}
