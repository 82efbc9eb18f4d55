//! Checks the rules of this code base that the compiler does not check. A crate depends on
//! the crates below it that `support/crate_graph.rs` lists, so that each can be read, tested
//! and used without those above; a module of a crate with floors uses only floors below its
//! own; the operating system is called in one crate, so that it can be replaced by a bad
//! one; libraries neither print nor exit, since their caller may be Python. One pass over
//! the tokens of each file is enough.

#[path = "../support/crate_graph.rs"]
pub(crate) mod crate_graph;
#[path = "../support/rust_paths.rs"]
pub(crate) mod rust_paths;
#[path = "../support/tidy_faults.rs"]
mod tidy_faults;

use std::collections::BTreeMap;
use std::path::Path;

use rust_paths::Found;

/// Reads the floors from `lib.rs`: `// Floor n: name`, then its modules. A crate without
/// such a line has no floors.
fn floors(lib: &str) -> BTreeMap<&str, u8> {
    let (mut floors, mut floor) = (BTreeMap::new(), None);
    if !lib.contains("\n// Floor ") {
        return floors;
    }
    for line in lib.lines() {
        if let Some(comment) = line.strip_prefix("// Floor ") {
            let next = comment.split(':').next().and_then(|n| n.parse().ok());
            assert!(next > floor, "floors out of order: {line}");
            floor = next;
        }
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(module) = module.and_then(|rest| rest.strip_suffix(';')) {
            floors.insert(module, floor.expect("a floor above the first module"));
        }
    }
    floors
}

/// Returns the reason why the floors forbid a path at its place; `None` if they allow it.
fn climbs(floors: &BTreeMap<&str, u8>, file: &str, found: &Found<'_>) -> Option<String> {
    let path = &found.path;
    let names: Vec<_> = file.trim_end_matches(".rs").trim_end_matches("/mod").split('/').collect();
    let ups = path.iter().take_while(|name| ["self", "super"].contains(*name)).count();
    let supers = path[..ups].iter().filter(|name| **name == "super").count();
    let target = match path[0] {
        // Not `pub(crate)`.
        "crate" if found.before[1] != "(" => path.get(1),
        _ if supers > 0 && supers == names.len() + found.inside => path.get(ups),
        _ => return None,
    };
    let path = path.join("::");
    let Some(home) = floors.get(names[0]) else {
        return Some(format!("{path} from a module without a floor in lib.rs"));
    };
    match target.and_then(|name| floors.get_key_value(*name)) {
        Some((name, _)) if *name == names[0] => None,
        Some((_, floor)) if floor < home => None,
        Some((_, floor)) => Some(format!("{path} is on floor {floor}")),
        None => Some(format!("{path} goes through the root, past the floors")),
    }
}

const SYSTEM: &[&str] =
    &["std::fs", "std::net", "std::os", "std::process::Command", "libc", "rustix"];
const TARGET: &[&str] = &["target_os", "target_family", "unix", "windows"];
const PRINTS: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];

/// Returns the reason why a path is forbidden because only some other places may do what
/// it does; `None` if it is allowed.
fn oversteps(file: &str, found: &Found<'_>) -> Option<&'static str> {
    let path = format!("{}::", found.path.join("::"));
    let (last, before) = (found.path[found.path.len() - 1], found.before);
    let within = |bans: &[&str]| bans.iter().any(|ban| path.starts_with(&format!("{ban}::")));
    let in_cfg = before[1] == "(" && ["cfg", "!", "not", "any", "all"].contains(&before[0]);
    let is_free_call =
        found.path.len() == 1 && found.after == "(" && !["fn", "."].contains(&before[1]);
    let is_screen = ["cli/mod.rs", "cli/screen.rs"].contains(&file);
    let is_library = !file.starts_with("cli/");
    if within(SYSTEM)
        || path.starts_with("File::open")
        || path.contains("::File::open")
        || last == "unsafe"
        || in_cfg && TARGET.contains(&last)
    {
        return Some("asks the operating system, which only fsure-os does");
    }
    if is_library && within(&["std::env"]) {
        return Some("reads the environment, which only the command does");
    }
    let is_exit = ["exit", "abort"].contains(&last);
    if !is_screen && is_exit && (is_free_call || path.contains("process::")) {
        return Some("exits, which only the command's main does");
    }
    let is_print = PRINTS.contains(&last) && found.after == "!";
    let is_stream = is_library && (path.contains("io::stdout::") || path.contains("io::stderr::"));
    let why = "prints, which only the command's main and screen do";
    (!is_screen && is_print || is_stream).then_some(why)
}

/// Lines of a file. A lower limit has cut single objects into many files.
const LINES_MAX: usize = 800;

/// Returns what is wrong with the lines of a file, with line numbers from 1.
fn shape(source: &str) -> Vec<(usize, String)> {
    let mut faults = vec![];
    if !source.starts_with("//!") {
        faults.push((1, "no `//!` at the top that says why it is there".to_owned()));
    }
    if source.lines().count() > LINES_MAX {
        faults.push((LINES_MAX + 1, format!("more than {LINES_MAX} lines")));
    }
    // rustfmt leaves long strings alone, and so does this.
    let is_long = |line: &str| line.chars().count() > 100 && !line.contains('"');
    let is_question = "a doc that begins as a question does".to_owned();
    faults.extend(question_docs(source).map(|line| (line, is_question.clone())));
    let long = (1..).zip(source.lines()).filter(|(_, line)| is_long(line));
    faults.extend(long.map(|(number, _)| (number, "more than 100 columns".to_owned())));
    faults
}

/// Words with which a doc begins that is a heading and not a sentence. A doc begins with a verb
/// or with the thing itself.
const QUESTION_WORDS: &[&str] =
    &["What", "Whether", "How", "Where", "Why", "When", "Who", "Whose", "Whom", "Which"];

/// Returns the lines on which docs begin with one of these words.
fn question_docs(source: &str) -> impl Iterator<Item = usize> {
    let is_doc = |line: &&str| line.starts_with("///") || line.starts_with("//!");
    let before = std::iter::once("").chain(source.lines()).map(str::trim_start);
    let lines = (1..).zip(source.lines().map(str::trim_start)).zip(before);
    lines.filter_map(move |((number, line), before)| {
        let begins = is_doc(&line) && before.get(..3) != line.get(..3);
        let first = line.get(3..).filter(|_| begins)?;
        let word = first.trim_start().split(|c: char| !c.is_alphabetic()).next()?;
        QUESTION_WORDS.contains(&word).then_some(number)
    })
}

/// Returns all that is wrong with a file below the `src` folder of a crate that has these
/// floors and is not `fsure-os`.
fn check(floors: &BTreeMap<&str, u8>, file: &str, source: &str) -> Vec<String> {
    let mut faults = shape(source);
    for found in rust_paths::paths(source) {
        let in_house = !floors.is_empty() && !file.starts_with("cli/") && file != "lib.rs";
        let climbs = in_house.then(|| climbs(floors, file, &found)).flatten();
        let oversteps = oversteps(file, &found).filter(|_| !found.is_test);
        let oversteps = oversteps.map(|why| format!("{} {why}", found.path.join("::")));
        faults.extend([climbs, oversteps].into_iter().flatten().map(|why| (found.line, why)));
    }
    faults.into_iter().map(|(line, why)| format!("{file}:{line}: {why}")).collect()
}

/// Returns true if a file is a module that only tests have.
fn is_test_file(all: &BTreeMap<String, String>, file: &str) -> bool {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let declared = format!("#[cfg(test)]\nmod {};", name.trim_end_matches(".rs"));
    ["mod.rs", "lib.rs"]
        .iter()
        .filter_map(|above| all.get(&format!("{folder}/{above}")))
        .any(|source| source.contains(&declared))
}

/// All Rust sources below a folder, by their paths in it.
fn sources(folder: &Path) -> BTreeMap<String, String> {
    files(folder, "rs")
}

/// All files below a folder whose names have this extension, by their paths in it.
fn files(folder: &Path, extension: &str) -> BTreeMap<String, String> {
    let (mut sources, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("list a folder") {
            let path = entry.expect("list a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let name = path.strip_prefix(folder).expect("below").to_str().expect("UTF-8");
                let source = std::fs::read_to_string(&path).expect("read a source");
                sources.insert(name.replace('\\', "/"), source);
            }
        }
    }
    sources
}

/// Words that hide who does something: another process, another user, the user, the daemon.
const NAMELESS_ACTORS: &[&str] = &["nobody", "somebody", "anybody", "someone", "anyone", "whoever"];

/// Returns the lines of a page on which one of these words stands, with the word.
fn nameless_actors(page: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(page.lines()).flat_map(|(number, line)| {
        let words = line.split(|c: char| !c.is_alphanumeric());
        let is_nameless = |word: &&str| NAMELESS_ACTORS.contains(&&*word.to_lowercase());
        words.filter(is_nameless).map(move |word| (number, word))
    })
}

/// Returns what is wrong with the pages of the documents, with their paths in the repository.
/// Decisions keep the words of their day.
fn page_faults(pages: &BTreeMap<String, String>) -> Vec<String> {
    let kept = pages.iter().filter(|(path, _)| !path.starts_with("docs/adr/"));
    kept.flat_map(|(path, page)| nameless_actors(page).map(move |found| (path, found)))
        .map(|(path, (line, word))| format!("{path}:{line}: '{word}' names no actor"))
        .collect()
}

#[test]
fn pages_name_their_actors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = files(&root.join("docs"), "md");
    let mut pages: BTreeMap<_, _> =
        docs.into_iter().map(|(path, page)| (format!("docs/{path}"), page)).collect();
    assert!(pages.contains_key("docs/promises.md") && pages.len() > 40, "{} pages", pages.len());
    for path in ["README.md", "CHANGELOG.md"] {
        let page = std::fs::read_to_string(root.join(path)).expect("read a page");
        pages.insert(path.to_owned(), page);
    }
    let faults = page_faults(&pages);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Returns what is wrong with the first lines of a crate other than `fsure-os`.
fn root_faults(lib: &str) -> Option<String> {
    let forbids = lib.contains("\n#![forbid(unsafe_code)]\n");
    (!forbids).then(|| "no `#![forbid(unsafe_code)]`".to_owned())
}

/// Crates that may ask the operating system: the one that does it for the program, and the tasks
/// of the repository, which are no part of the program.
const ASK_THE_SYSTEM: &[&str] = &["fsure-os", "xtask"];

/// Returns the faults of all files of a crate, with their paths in it.
fn crate_faults(name: &str, folder: &Path) -> Vec<String> {
    let mut faults = vec![];
    let all = sources(folder);
    let root = ["src/lib.rs", "src/main.rs"].into_iter().find(|root| all.contains_key(*root));
    let root = root.expect("a crate has a root");
    let floors = floors(&all[root]);
    if name != "fsure-os" {
        faults.extend(root_faults(&all[root]).map(|why| format!("{root}:1: {why}")));
    }
    for (path, source) in &all {
        match path.strip_prefix("src/") {
            Some(file) if !ASK_THE_SYSTEM.contains(&name) && !is_test_file(&all, path) => {
                faults.extend(check(&floors, file, source));
            }
            _ => {
                let of_file = shape(source).into_iter();
                faults.extend(of_file.map(|(line, why)| format!("{path}:{line}: {why}")));
            }
        }
    }
    faults
}

#[test]
fn the_house_is_tidy() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = vec![];
    for (name, _) in crate_graph::CRATES {
        let of_crate = crate_faults(name, &here.join("..").join(name));
        faults.extend(of_crate.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Returns the modules that a source declares.
fn declared(source: &str) -> Vec<&str> {
    let names = source
        .lines()
        .map(|line| line.trim_start_matches("pub(crate) ").trim_start_matches("pub "))
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    names.collect()
}

#[test]
fn no_test_file_is_forgotten() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut forgotten = vec![];
    let sources = sources(&tests);
    for file in sources.keys() {
        let (folder, name) = file.split_once('/').expect("a folder for each test program");
        let root =
            if folder == "support" { "support/mod.rs" } else { &format!("{folder}/main.rs") };
        let stem = name.trim_end_matches(".rs");
        // Those of `tidy` itself are named by it.
        let declares = |root: &str| declared(&sources[root]).contains(&stem);
        if !["main", "mod"].contains(&stem) && !declares(root) && !declares("it/tidy.rs") {
            forgotten.push(file);
        }
    }
    assert!(forgotten.is_empty(), "in no test program: {forgotten:?}");
}
