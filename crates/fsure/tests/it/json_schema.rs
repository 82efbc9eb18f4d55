//! The schema of the lines of JSON is a promise to the programs that read them, so it is held
//! against what the commands print: each line is of exactly one kind, each kind is printed by
//! some command, and the validator refuses a line that is of none.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::support::{Run, fsure_of, or_skip, skip};
use crate::{json_schema_files, json_schema_memory, json_schema_storage};

/// The name of the test, in reports of what did not run.
pub(crate) const TEST: &str = "every_line_is_as_the_schema_says";
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/json-1.schema.json");
const SCRIPT: &str = include_str!("json_schema.py");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");

fn schema() -> Value {
    let text = std::fs::read_to_string(SCHEMA).expect("read the schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// The kinds of lines that the schema knows, each with its definition.
fn kinds(schema: &Value) -> BTreeMap<String, Value> {
    let choices = schema["oneOf"].as_array().expect("a choice");
    let name = |choice: &Value| {
        let name = choice["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
        name.expect("a definition").to_owned()
    };
    let names = choices.iter().map(name);
    names.map(|name| (name.clone(), schema["$defs"][name].clone())).collect()
}

/// Kinds of lines that the commands over files print in each run, whatever the machine does
/// meanwhile. The others depend on time, or on what the machine has.
const KINDS_OF_FILES: &[&str] = &[
    "start",
    "error",
    "version",
    "finding",
    "root",
    "summary",
    "age",
    "age_folder",
    "age_summary",
    "remedy",
    "generation",
    "verification",
    "known_damage",
    "log_summary",
    "seal_summary",
    "export_summary",
    "import_summary",
    "compared",
    "compare_summary",
    "duplicate",
    "dupes_root",
    "dupes_summary",
    "protect_summary",
    "recover_summary",
    "list",
    "list_entry",
    "list_end",
];

#[test]
fn every_line_is_as_the_schema_says() {
    let Some(mut validator) = or_skip(TEST, Validator::start(Path::new(SCHEMA))) else { return };
    let kinds = kinds(&schema());
    let printed = all_printed();
    let mut seen = BTreeMap::new();
    let mut wrong = Vec::new();
    for (command, line) in &printed.lines {
        match validator.kind(line) {
            Ok(kind) => drop(seen.entry(kind).or_insert(line)),
            Err(why) => wrong.push(format!("{command}\n  {line}\n  {why}")),
        }
    }
    assert!(wrong.is_empty(), "{} lines are not as described:\n{}", wrong.len(), wrong.join("\n"));
    let mut missing = BTreeMap::<&str, Vec<&str>>::new();
    for (kind, why) in printed.unavailable.iter().filter(|(kind, _)| !seen.contains_key(*kind)) {
        missing.entry(why).or_default().push(kind);
    }
    for (why, kinds) in missing {
        skip(&format!("{TEST}: the lines {}", kinds.join(", ")), why);
    }
    let excused = |kind: &str| printed.unavailable.iter().any(|(other, _)| *other == kind);
    let never = kinds.keys().filter(|kind| !seen.contains_key(*kind) && !excused(kind));
    let (of_files, of_storage): (Vec<&String>, Vec<_>) =
        never.partition(|kind| KINDS_OF_FILES.contains(&kind.as_str()));
    assert!(of_files.is_empty(), "no command printed these kinds of lines: {of_files:?}");
    // A writer may be over before its time to cut the power, a drive before its first flush.
    for kind in of_storage {
        skip(&format!("{TEST}: the lines {kind}"), "no command had a reason to print one");
    }
    let known = printed.unavailable.iter().all(|(kind, _)| kinds.contains_key(*kind));
    assert!(known, "an excuse for a kind that is none: {:?}", printed.unavailable);
    assert_faults_are_refused(&mut validator, &seen, &kinds);
}

/// Returns what all commands print, some of them at the same time.
fn all_printed() -> Printed {
    let groups: [fn() -> Printed; 5] = [
        json_schema_files::print,
        json_schema_files::print_progress,
        json_schema_storage::print_measurements,
        json_schema_storage::print_rest,
        // One after the other: a program on a simulated drive is disturbed by another loop device.
        || {
            let mut printed = json_schema_memory::print();
            printed.add(json_schema_storage::print_crashes());
            printed
        },
    ];
    let mut printed = Printed::default();
    thread::scope(|scope| {
        for group in groups.map(|group| scope.spawn(group)) {
            printed.add(group.join().expect("a group of commands"));
        }
    });
    printed
}

/// The test is worth nothing unless the validator refuses a line with one fault.
fn assert_faults_are_refused(
    validator: &mut Validator,
    seen: &BTreeMap<String, &Value>,
    kinds: &BTreeMap<String, Value>,
) {
    for (kind, line) in seen {
        let required = kinds[kind]["required"].as_array().expect("names");
        let last = required.last().and_then(Value::as_str).expect("a name");
        let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut line = (*line).clone();
            change(line.as_object_mut().expect("an object"));
            line
        };
        let faulty = [
            changed(&|line| drop(line.insert("undescribed".to_owned(), json!(1)))),
            changed(&|line| drop(line.remove(last))),
            changed(&|line| drop(line.insert(last.to_owned(), json!({"of": "another type"})))),
        ];
        for line in faulty {
            let kind_of = validator.kind(&line);
            assert!(kind_of.is_err(), "{kind}: {line} passes as {kind_of:?}");
        }
    }
}

/// A field without a unit and a meaning is no promise.
#[test]
fn every_field_is_described() {
    let schema = schema();
    let mut faults = Vec::new();
    find_undescribed("", &schema, &mut faults);
    assert!(faults.is_empty(), "{faults:#?}");
}

fn find_undescribed(place: &str, value: &Value, faults: &mut Vec<String>) {
    if let Some(fields) = value["properties"].as_object().filter(|_| place != "/properties") {
        if value["additionalProperties"] != false {
            faults.push(format!("{place} takes fields that are not described"));
        }
        let required = value["required"].as_array().into_iter().flatten();
        let unknown = required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name));
        faults
            .extend(unknown.map(|name| format!("{place} requires {name}, which it does not have")));
        let is_sentence = |field: &Value| {
            let text = field["description"].as_str();
            text.is_some_and(|text| text.ends_with('.') && text.len() <= 120)
        };
        let vague = fields.iter().filter(|(_, field)| !is_sentence(field));
        faults.extend(vague.map(|(name, _)| format!("{place}/{name} is not described")));
    }
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(values) => {
            values.iter().enumerate().map(|(place, value)| (place.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in inner {
        find_undescribed(&format!("{place}/{name}"), value, faults);
    }
}

#[test]
fn the_page_names_every_kind_of_line() {
    let page = std::fs::read_to_string(PAGE).expect("read the page");
    for (kind, definition) in kinds(&schema()) {
        let row = format!("| `{kind}` |");
        assert!(page.contains(&row), "docs/json.md has no row {row}");
        let types = &definition["properties"]["type"]["const"];
        let named = types.as_str().map_or("none".to_owned(), |name| format!("`{name}`"));
        let line = page.lines().find(|line| line.contains(&row)).expect("the row");
        assert!(line.contains(&format!("| {named} |")), "{line} does not name the type {named}");
    }
}

/// Lines of commands.
#[derive(Default)]
pub(crate) struct Printed {
    /// Each line with the command that has printed it.
    pub(crate) lines: Vec<(String, Value)>,
    /// Kinds of lines that cannot be had on this machine, each with the reason.
    pub(crate) unavailable: Vec<(&'static str, String)>,
}

impl Printed {
    /// Runs a command with `--json` for a user whose own files lie in `home`.
    pub(crate) fn run(&mut self, home: &Path, args: &[impl AsRef<OsStr>]) -> Run {
        let args: Vec<&OsStr> =
            [OsStr::new("--json")].into_iter().chain(args.iter().map(AsRef::as_ref)).collect();
        let run = fsure_of(home, &args);
        let command: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        self.keep(&command.join(" "), &run);
        run
    }

    /// Keeps the lines of a run.
    ///
    /// # Panics
    /// If one of them is not JSON.
    pub(crate) fn keep(&mut self, command: &str, run: &Run) {
        // `defer` ends a line that its command may have left open.
        for line in run.stdout.lines().filter(|line| !line.is_empty()) {
            let parsed = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{command}: not JSON ({error}): {line}\n{run:?}"));
            self.lines.push((command.to_owned(), parsed));
        }
    }

    /// Keeps lines that were read one by one.
    pub(crate) fn keep_lines(&mut self, command: &str, lines: impl IntoIterator<Item = Value>) {
        self.lines.extend(lines.into_iter().map(|line| (command.to_owned(), line)));
    }

    /// Excuses kinds of lines that cannot be had on this machine.
    pub(crate) fn excuse(&mut self, kinds: &[&'static str], why: &str) {
        self.unavailable.extend(kinds.iter().map(|kind| (*kind, why.to_owned())));
    }

    /// Adds what other commands have printed.
    pub(crate) fn add(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.unavailable.extend(other.unavailable);
    }
}

/// A validator of JSON Schema as a process, the one of Python, which is not fsure's own. It ends
/// with this.
pub(crate) struct Validator {
    process: Child,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Validator {
    /// Starts one for a schema. Fails if this machine has none.
    pub(crate) fn start(schema: &Path) -> Result<Self, String> {
        let python = python()?;
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]).arg(schema).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("python3: {error}"))?;
        let lines = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Ok(Self { process, lines, answers })
    }

    /// The kind of a line. Fails with the reason if it is of none.
    ///
    /// # Panics
    /// If the validator does not answer.
    pub(crate) fn kind(&mut self, line: &Value) -> Result<String, String> {
        writeln!(self.lines, "{line}").expect("a validator that reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("an answer in JSON");
        match (answer["kind"].as_str(), answer["wrong"].as_str()) {
            (Some(kind), None) => Ok(kind.to_owned()),
            (_, wrong) => Err(wrong.expect("a reason").to_owned()),
        }
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The first Python of `PATH` that has the package: CI puts one behind the system's.
fn python() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let has_package = |python: &PathBuf| {
        let import = ["-c", "from jsonschema import Draft202012Validator"];
        let ended = Command::new(python).args(import).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    };
    all.into_iter()
        .find(has_package)
        .ok_or_else(|| "no python3 with jsonschema: pip install jsonschema".to_owned())
}
