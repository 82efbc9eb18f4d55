//! `ram` in words and as JSON: what was put into RAM, what could be lost now, and
//! what was brought back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::{number, timestamp};
use fsure_core::json_path_and_bytes;
use fsure_core::safe;
use fsure_core::units::size;
use fsure_core::{ExitCode, shell_command};
use fsure_ram::Preset;
use fsure_ram::service::{
    DifferenceLine, FolderState, FolderStatus, LoggedEvent, PlacementPlan, RecoverOutcome,
    SyncReport, UnbindReport,
};
use fsure_ram::write_back::Recovered;

/// Returns a sentence on what `fsync` is worth inside a folder in RAM. It is shown
/// whenever a folder is put into RAM.
pub fn promise(max_loss_ms: u64) -> String {
    format!(
        "fsync inside returns at once and is NOT durable: a crash loses up to the last {}, and \
         leaves one whole generation.",
        span(max_loss_ms)
    )
}

fn span(ms: u64) -> String {
    if ms < 1000 || !ms.is_multiple_of(100) {
        format!("{ms} ms")
    } else {
        format!("{} s", ms as f64 / 1e3)
    }
}

fn shown(path: &Path) -> String {
    fsure_core::escape(&fsure_os::path::bytes(path))
}

/// Returns what would be done, for `--plan`.
pub fn plan(plan: &PlacementPlan, max_loss_ms: u64) -> String {
    let mut text = format!("{}\n", shown(&plan.path));
    for refusal in &plan.refusals {
        text += &format!("  refused: {}\n    {}\n", safe(&refusal.why), safe(&refusal.remedy));
    }
    for warning in &plan.warnings {
        text += &format!("  warning: {}\n", safe(warning));
    }
    if plan.refusals.is_empty() {
        text += &format!(
            "  fsure would keep its {} with {} in memory of up to {}.\n  {}\n",
            number(plan.files, "file", "files"),
            size(plan.content),
            limit(plan.bytes, plan.least),
            promise(max_loss_ms),
        );
    }
    text + "Nothing was done.\n"
}

/// The same as a line of JSON.
pub fn plan_json(plan: &PlacementPlan, max_loss_ms: u64) -> String {
    let (path, path_bytes) = json_path_and_bytes(&fsure_os::path::bytes(&plan.path));
    let refusals = plan.refusals.iter().map(|one| json!({"why": one.why, "remedy": one.remedy}));
    object(json!({
        "type": "plan",
        "path": path,
        "path_bytes": path_bytes,
        "files": plan.files,
        "content_bytes": plan.content,
        "ram_bytes": plan.bytes,
        "follows_use": plan.least.is_some(),
        "max_loss_ms": max_loss_ms,
        "refusals": refusals.collect::<Vec<_>>(),
        "warnings": plan.warnings,
    }))
}

/// Says which folders of a preset there are, and what a crash would lose.
pub fn preset(preset: Preset, folders: &[(PathBuf, bool)], max_loss_ms: u64) -> String {
    let (name, loss) = (preset.name(), span(max_loss_ms));
    let mut text = format!("Preset {name}. At risk in a crash, of the last {loss}: ");
    text += &format!("{}.\n", preset.risk());
    for (path, is_there) in folders {
        let there = if *is_there { "there    " } else { "not there" };
        text += &format!("  {there}  {}\n", shown(path));
    }
    text
}

/// The same as a line of JSON.
pub fn preset_json(preset: Preset, folders: &[(PathBuf, bool)], max_loss_ms: u64) -> String {
    let folder = |(path, exists): &(PathBuf, bool)| {
        let (path, path_bytes) = json_path_and_bytes(&fsure_os::path::bytes(path));
        let mut folder = json!({"path": path, "exists": exists});
        merge(&mut folder, &path_bytes.map(|bytes| json!({"path_bytes": bytes})));
        folder
    };
    object(json!({
        "type": "preset",
        "preset": preset.name(),
        "risk": preset.risk(),
        "max_loss_ms": max_loss_ms,
        "folders": folders.iter().map(folder).collect::<Vec<_>>(),
    }))
}

/// That a folder is in RAM now.
pub fn bound(known: &FolderStatus, adopted: bool) -> String {
    let state = known.state.clone().unwrap_or_default();
    let how = if adopted { "is still in RAM, and is kept again" } else { "is in RAM" };
    format!(
        "{} {how}: {} with {}, in memory of up to {}.\n{}\n",
        shown(&known.entry.path),
        number(state.files, "file", "files"),
        size(state.content),
        limit(state.bytes, known.entry.least),
        promise(max_loss_ms(known)),
    )
}

/// Says how much memory a folder may take.
fn limit(bytes: u64, least: Option<u64>) -> String {
    let follows = if least.is_some() { " for now: its size follows its use" } else { "" };
    format!("{}{follows}", size(bytes))
}

fn max_loss_ms(known: &FolderStatus) -> u64 {
    u64::try_from(known.entry.max_loss.as_millis()).unwrap_or(u64::MAX)
}

/// Returns what is wrong with a folder; empty if nothing is.
pub fn wrongs(known: &FolderStatus) -> Vec<String> {
    if let Some(process) = known.silent {
        return vec![format!(
            "its daemon, process {process}, does not answer: if it is stopped, 'kill -CONT \
             {process}' resumes it"
        )];
    }
    match (&known.state, known.is_mounted) {
        (Some(state), _) => state.wrongs(),
        (None, true) if known.failing.is_some() => vec![format!(
            "its daemon has not taken it over, and nothing reaches the disk; its last message: {}",
            known.failing.as_deref().unwrap_or_default()
        )],
        (None, true) => vec![format!(
            "no process keeps it: nothing reaches the disk; run {}",
            shell_command("fsure ram recover", &known.entry.path)
        )],
        (None, false) => vec![
            "not in RAM yet, or no longer: if no bind is under way, run 'fsure ram recover'"
                .to_owned(),
        ],
    }
}

/// Returns the status for the user, and the latest messages.
pub fn status(all: &[FolderStatus], reported: &[LoggedEvent]) -> String {
    let mut text = String::new();
    for known in all {
        text += &format!("{}\n", shown(&known.entry.path));
        if let Some(state) = &known.state {
            text += &format!(
                "  worst loss now  {} of {}\n  generation      {}, the last took {:.0} ms\n  \
                 backend         {}\n  memory          {} of {}\n  scans           {}\n",
                span(state.worst_loss_ms),
                span(state.max_loss_ms),
                state.generation,
                state.took_ms,
                known.entry.backend.words(),
                size(state.used),
                limit(state.bytes, known.entry.least),
                state.tracking,
            );
            if state.spread_generations > 0 || state.spread_ms > 0.0 {
                text += &format!("  spread          {}\n", spread(state));
            }
            if let Some(trash) = &state.trash {
                text += &format!("  trash           {}\n", safe(trash));
            }
        }
        for wrong in wrongs(known) {
            text += &format!("  WRONG           {}\n", safe(&wrong));
        }
    }
    if text.is_empty() {
        text += "No folder is in RAM.\n";
    } else {
        text += "fsync inside a RAM folder is NOT durable: what it acknowledges is on the disk \
                 with the next generation.\n";
    }
    for (number, event) in reported.iter().enumerate() {
        let title = if number == 0 { "Latest messages:\n" } else { "" };
        let (at, path, words) = (when(event), safe(&event.path), safe(&event.words));
        text += &format!("{title}  {at}  {path}: {words}\n");
    }
    text
}

/// Counts the generations that are not of one moment, and says by how much.
fn spread(state: &FolderState) -> String {
    let (count, all) = (state.spread_generations, state.generations);
    let now = match state.spread_ms {
        0.0 => "the disk side is an instant now".to_owned(),
        ms => format!("the disk side has parts up to {ms:.0} ms apart now"),
    };
    let max = state.spread_max_ms;
    format!("{count} of {all} generations were not an instant, by at most {max:.0} ms; {now}")
}

fn when(event: &LoggedEvent) -> String {
    format!("{:.0}", timestamp(event.at_ns))
}

/// Status as a line of JSON for each folder and for what was reported, and a summary.
pub fn status_json(all: &[FolderStatus], reported: &[LoggedEvent], code: ExitCode) -> String {
    let mut lines: Vec<_> = all
        .iter()
        .map(|known| {
            let (path, path_bytes) = json_path_and_bytes(&fsure_os::path::bytes(&known.entry.path));
            let mut line = json!({
                "type": "folder",
                "path": path,
                "path_bytes": path_bytes,
                "kept": known.state.is_some() || known.silent.is_some(),
                "mounted": known.is_mounted,
                "backend": known.entry.backend,
                "follows_use": known.entry.least.is_some(),
                "max_loss_ms": max_loss_ms(known),
                "wrong": wrongs(known),
            });
            if let Some(state) = &known.state {
                merge(&mut line, state);
            }
            object(line)
        })
        .collect();
    lines.extend(reported.iter().map(|event| {
        let LoggedEvent { path, words, .. } = event;
        object(json!({"type": "told", "at": when(event), "path": path, "words": words}))
    }));
    let code = code.number();
    lines.push(object(json!({"type": "summary", "folders": all.len(), "exit_code": code})));
    lines.join("\n")
}

/// Returns the exit code of `status`.
pub fn status_code(all: &[FolderStatus]) -> ExitCode {
    if all.iter().all(|known| wrongs(known).is_empty()) {
        ExitCode::Clean
    } else {
        ExitCode::Differences
    }
}

/// A generation that was asked for.
pub fn synced(path: &Path, done: &SyncReport) -> String {
    let mut text = format!(
        "{}: generation {} is on the disk: {} made or changed, {} removed, {} in {:.0} ms.\n",
        shown(path),
        done.generation,
        done.changed,
        done.removed,
        size(done.written),
        done.took_ms
    );
    if done.spread_ms > 0.0 {
        text += &format!(
            "  not an instant: its names and files are up to {:.0} ms apart\n",
            done.spread_ms
        );
    }
    for unsettled in &done.unsettled {
        text += &format!(
            "  not in it, because it changed during every read or does not fit the disk's file \
             system: {}\n",
            safe(unsettled)
        );
    }
    text
}

/// Returns the differences between memory and disk.
pub fn verified(path: &Path, differences: &[DifferenceLine]) -> String {
    if differences.is_empty() {
        return format!("{}: memory and disk hold the same.\n", shown(path));
    }
    let lines =
        differences.iter().map(|one| format!("  {:<12}  {}\n", one.how, safe(&one.name.shown())));
    let count = number(differences.len() as u64, "name differs", "names differ");
    format!("{}: {count} between memory and disk.\n{}", shown(path), lines.collect::<String>())
}

/// The end of a RAM folder.
pub fn ended(path: &Path, ended: &UnbindReport) -> String {
    let mut text = format!(
        "{}: unbound; generation {} is on the disk, and was compared.\n",
        shown(path),
        ended.generation
    );
    if let Some(trash) = &ended.trash {
        text += &format!(
            "  replaced files, and files of suspiciously large deletions, are kept in {}\n",
            safe(trash)
        );
    }
    for warning in &ended.warnings {
        text += &format!("  warning: {}\n", safe(warning));
    }
    text
}

/// Returns what `recover` has done about a folder.
pub fn recovered(path: &Path, outcome: &RecoverOutcome) -> String {
    let path = shown(path);
    let recovery = match outcome {
        RecoverOutcome::Kept => {
            return format!("{path}: in RAM, and kept: nothing needs to be done.\n");
        }
        RecoverOutcome::Adopted => return format!("{path}: still in RAM, and kept again.\n"),
        RecoverOutcome::Recovered(recovery) => recovery,
    };
    let mut text = match &recovery.found {
        Recovered::Nothing => format!("{path}: no generation was under way.\n"),
        Recovered::Discarded => {
            format!("{path}: discarded an incomplete generation; the disk has the one before.\n")
        }
        Recovered::Completed { generation, steps, changed_outside } => {
            let steps = number(*steps as u64, "change", "changes");
            let mut text = format!("{path}: generation {generation} is now complete: {steps}.\n");
            for name in changed_outside {
                text += &format!(
                    "  another process had changed this in the meantime; its version is in \
                     .fsure-ram/trash: {}\n",
                    name.display()
                );
            }
            text
        }
    };
    if let Some(spread) = recovery.spread {
        text += &format!(
            "  spread: its names and files are of moments up to {} apart\n",
            span(spread_ms(spread).ceil() as u64)
        );
    }
    text
}

/// Writes what `recover` has done, for `--json`.
pub fn recovered_json(path: &Path, outcome: &RecoverOutcome) -> String {
    let (what, recovery) = match outcome {
        RecoverOutcome::Kept => ("kept", None),
        RecoverOutcome::Adopted => ("adopted", None),
        RecoverOutcome::Recovered(recovery) => match recovery.found {
            Recovered::Nothing => ("nothing", Some(recovery)),
            Recovered::Discarded => ("discarded", Some(recovery)),
            Recovered::Completed { .. } => ("completed", Some(recovery)),
        },
    };
    let generation = recovery.and_then(|recovery| recovery.generation);
    let spread_ms = recovery.and_then(|recovery| recovery.spread).map(spread_ms);
    let value = json!({"what": what, "generation": generation, "spread_ms": spread_ms});
    json("recovered", path, &value)
}

fn spread_ms(spread: Duration) -> f64 {
    spread.as_secs_f64() * 1e3
}

/// Anything of a folder as a line of JSON.
pub fn json(kind: &str, path: &Path, value: &impl Serialize) -> String {
    let (path, path_bytes) = json_path_and_bytes(&fsure_os::path::bytes(path));
    let mut line = json!({"type": kind, "path": path, "path_bytes": path_bytes});
    merge(&mut line, value);
    object(line)
}

fn merge(line: &mut Value, value: &impl Serialize) {
    if let (Value::Object(line), Ok(Value::Object(more))) = (line, serde_json::to_value(value)) {
        line.extend(more);
    }
}

/// Without what there is nothing of.
fn object(mut line: Value) -> String {
    if let Value::Object(fields) = &mut line {
        fields.retain(|_, value| !value.is_null());
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_ram::service::RegistryEntry;

    fn known(state: Option<FolderState>) -> FolderStatus {
        let entry =
            RegistryEntry::new("/srv/work".as_ref(), Duration::from_secs(1), (1 << 20, 100));
        FolderStatus { entry, state, silent: None, is_mounted: true, failing: None }
    }

    #[test]
    fn a_problem_is_reported_and_ends_with_1() {
        let state = FolderState { max_loss_ms: 1000, worst_loss_ms: 600, ..FolderState::default() };
        let fine = known(Some(state.clone()));
        let text = |known: &FolderStatus, reported| status(std::slice::from_ref(known), reported);
        assert!(text(&fine, &[]).contains("worst loss now  600 ms of 1 s"));
        assert_eq!(status_code(&[fine]), ExitCode::Clean);
        for (known, word) in [
            (known(Some(FolderState { worst_loss_ms: 1001, ..state.clone() })), "can lose more"),
            (known(Some(FolderState { fenced: true, ..state.clone() })), "read-only"),
            (known(None), "no process keeps it"),
            (
                FolderStatus { failing: Some("no room".to_owned()), ..known(None) },
                "its last message: no room",
            ),
            (FolderStatus { silent: Some(7), ..known(None) }, "its daemon, process 7, does not"),
        ] {
            assert!(text(&known, &[]).contains(word), "{word}");
            assert_eq!(status_code(&[known]), ExitCode::Differences);
        }
        let event = LoggedEvent {
            at_ns: 1_000_000_000,
            id: String::new(),
            path: "/srv/work".to_owned(),
            words: "out of RAM".to_owned(),
        };
        assert_eq!(
            status(&[], &[event]),
            "No folder is in RAM.\nLatest messages:\n  1970-01-01T00:00:01Z  /srv/work: out of RAM\n"
        );
    }

    #[test]
    fn a_line_of_json_has_what_there_is() {
        let line: Value =
            serde_json::from_str(&json("synced", "/a".as_ref(), &SyncReport::default())).unwrap();
        assert_eq!((&line["type"], &line["generation"]), (&json!("synced"), &json!(0)));
        assert_eq!(line.get("trash"), None);
    }
}
