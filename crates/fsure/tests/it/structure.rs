//! Counts faults of the structure that no single file shows: objects in
//! pieces, whose `impl` blocks are spread over files, and files that import each other in a
//! circle. There is none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tidy::{crate_graph, rust_paths};

/// Files that may have an `impl` block of one type.
const IMPL_FILES_MAX: usize = 2;

/// Sources of a crate by the names of their modules below `src`, `tests` left out.
struct Modules(BTreeMap<Vec<String>, String>);

impl Modules {
    fn read(folder: &Path) -> Self {
        let (mut modules, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(&next).expect("list a folder") {
                let path = entry.expect("list a folder").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(folder).expect("below").to_str().expect("UTF-8");
                let Some(stem) = name.strip_suffix(".rs") else { continue };
                let mut names: Vec<_> = stem.split('/').map(str::to_owned).collect();
                if names.iter().any(|name| name == "tests" || name.ends_with("_tests")) {
                    continue;
                }
                if ["mod", "lib", "main"].contains(&names[names.len() - 1].as_str()) {
                    names.pop();
                }
                modules.insert(names, std::fs::read_to_string(&path).expect("read a source"));
            }
        }
        Self(modules)
    }

    /// Returns the module that a path at a place leads to: the deepest one, or the one that it
    /// takes the name from with `pub use`.
    fn target(&self, home: &[String], path: &[&str]) -> Option<Vec<String>> {
        let mut at = match path[0] {
            "crate" => vec![],
            "self" | "super" => home.to_vec(),
            name => {
                let child = [home, &[name.to_owned()]].concat();
                return self.0.contains_key(&child).then(|| self.below(child, &path[1..]));
            }
        };
        let ups = path.iter().take_while(|name| ["self", "super", "crate"].contains(*name)).count();
        for _ in path[..ups].iter().filter(|name| **name == "super") {
            at.pop()?;
        }
        Some(self.below(at, &path[ups..]))
    }

    fn below(&self, mut at: Vec<String>, names: &[&str]) -> Vec<String> {
        for (place, name) in names.iter().enumerate() {
            let child = [&*at, &[(*name).to_owned()]].concat();
            if self.0.contains_key(&child) {
                at = child;
                continue;
            }
            let Some(source) = self.0.get(&at) else { return at };
            let uses = rust_paths::paths(source).into_iter().find(|found| {
                found.path.len() > 1
                    && found.path.last() == Some(name)
                    && self.0.contains_key(&[&*at, &[found.path[0].to_owned()]].concat())
                    && is_public_use(source, found.line)
            });
            return match uses {
                Some(found) if place + 1 == names.len() => self.below(at, &found.path),
                _ => at,
            };
        }
        at
    }

    /// Returns the modules that each module imports from, but for those below itself: it is
    /// made of them, and they may use what it defines.
    fn imports(&self) -> BTreeMap<&[String], BTreeSet<Vec<String>>> {
        let of = |(home, source): (&Vec<String>, &String)| {
            let paths = rust_paths::paths(source).into_iter().filter(|found| !found.is_test);
            let paths = paths.filter(|found| found.inside == 0 && found.before[1] != "(");
            let targets = paths.filter_map(|found| self.target(home, &found.path));
            targets.filter(|target| !target.starts_with(home)).collect()
        };
        self.0.iter().map(|module| (module.0.as_slice(), of(module))).collect()
    }
}

/// Returns true if the statement that a line is in makes names public by `pub use`.
fn is_public_use(source: &str, line: usize) -> bool {
    let before: Vec<_> = source.lines().take(line).collect();
    let begins = |line: &&&str| line.starts_with("use ") || line.starts_with("pub");
    before.iter().rev().find(begins).is_some_and(|line| line.starts_with("pub"))
}

/// Returns the groups of modules that reach each other by imports.
fn circles(imports: &BTreeMap<&[String], BTreeSet<Vec<String>>>) -> Vec<BTreeSet<Vec<String>>> {
    let reach = |from: &[String]| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_vec()]);
        while let Some(next) = left.pop() {
            for target in imports.get(next.as_slice()).into_iter().flatten() {
                if seen.insert(target.clone()) {
                    left.push(target.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = imports.keys().map(|from| (from.to_vec(), reach(from))).collect();
    let mut all = BTreeSet::new();
    for (module, seen) in &reached {
        let back = seen.iter().filter(|other| reached[*other].contains(module)).cloned();
        let circle: BTreeSet<_> = back.collect();
        if circle.len() > 1 {
            all.insert(circle);
        }
    }
    all.into_iter().collect()
}

/// Returns the type of an `impl` block without a trait that a line begins.
fn inherent(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(rest) => rest.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let is_inherent = !rest.contains(" for ");
    is_inherent.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())?
}

fn sources_of(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

#[test]
fn an_object_is_in_one_place() {
    let mut found = vec![];
    for (name, _) in crate_graph::CRATES {
        let mut files: BTreeMap<String, usize> = BTreeMap::new();
        for (module, source) in Modules::read(&sources_of(name)).0 {
            // Each system has its twin of a type.
            if module.first().is_some_and(|first| first == "host") {
                continue;
            }
            let types: BTreeSet<_> = source.lines().filter_map(inherent).collect();
            for of in types {
                *files.entry(of.to_owned()).or_default() += 1;
            }
        }
        let many = files.into_iter().filter(|(_, count)| *count > IMPL_FILES_MAX);
        found.extend(many.map(|(of, count)| (*name, of, count)));
    }
    assert_eq!(found, [], "types with `impl` blocks in more than {IMPL_FILES_MAX} files");
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let mut found = String::new();
    for (name, _) in crate_graph::CRATES {
        let modules = Modules::read(&sources_of(name));
        let imports = modules.imports();
        for circle in &circles(&imports) {
            found += &format!("{name}:\n");
            for module in circle {
                let inside = imports[module.as_slice()].intersection(circle);
                let inside: Vec<_> = inside.map(|target| target.join("/")).collect();
                found += &format!("    {} imports {}\n", module.join("/"), inside.join(", "));
            }
        }
    }
    assert!(found.is_empty(), "circles of imports:\n{found}");
}

#[test]
fn planted_faults_are_found() {
    let blocks =
        ["impl Store {", "impl<'a> Store<'a> {", "impl Default for Store {", "implement()"];
    assert_eq!(blocks.map(inherent), [Some("Store"), Some("Store"), None, None]);
    let module = |name: &str| vec![name.to_owned()];
    let source = |text: &str| text.to_owned();
    let modules = Modules(BTreeMap::from([
        (vec![], source("mod a;\nmod b;\npub use b::Thing;\nuse a::start;")),
        (module("a"), source("use crate::Thing;")),
        (module("b"), source("use super::c::C;")),
        (module("c"), source("#[cfg(test)]\nmod tests {\n    use crate::a::start;\n}\n")),
    ]));
    assert_eq!(circles(&modules.imports()), [], "a test and a root are not in a circle");
    let mut round = modules;
    round.0.insert(module("c"), source("fn f() {\n    crate::a::start()\n}\n"));
    let expected = BTreeSet::from(["a", "b", "c"].map(module));
    assert_eq!(circles(&round.imports()), [expected]);
}
