//! Chooses the rungs of a run. Without a choice of the user's, ten are measured: each
//! is one step between nothing and a durable write, so that the picture can be read at
//! a glance and a minute suffices. The others vary one of the ten.

use super::pv_rungs::PV;
use super::rung::Rung;
use fsure_core::{Error, Result};

/// The word of `--rungs` for every rung that there is.
const ALL: &str = "all";

/// The rungs of a run without `--rungs`: the founders' steps (zeros to nowhere, a RAM disk,
/// a folder bound to it, FUSE over it, the disk), and what each is compared with.
const DEFAULT_RUNGS: [&str; 10] = [
    "void",
    HASH_ALL_CORES,
    "ram disk first write",
    "bind",
    "fuse",
    "disk write cached",
    "disk write durable",
    "disk read cached",
    "disk read direct",
    "verify",
];

/// The hash by all cores, and the rung that takes its place on a machine of one core.
const HASH_ALL_CORES: &str = "hash blake3 all cores";
const HASH_ONE_CORE: &str = "hash blake3";

/// Returns the chosen rungs, and the choice in words for the result.
pub(super) fn chosen(
    rungs: Vec<Box<dyn Rung>>,
    wanted: &[String],
) -> Result<(Vec<Box<dyn Rung>>, String)> {
    let names = names(&rungs);
    if wanted.is_empty() {
        let is_wanted = |name: &str| is_default(name, &names);
        let count = names.iter().filter(|name| is_wanted(name)).count();
        let words = format!("{count} of {}, '--rungs {ALL}' for each", names.len());
        return Ok((kept(rungs, is_wanted), words));
    }
    if wanted.iter().any(|wanted| wanted == ALL) {
        return Ok((rungs, ALL.to_owned()));
    }
    if let Some(unknown) = wanted.iter().find(|wanted| !names.iter().any(|n| begins(n, wanted))) {
        return Err(Error::Usage {
            message: format!("'--rungs': there is no rung '{unknown}'"),
            hint: Some(format!("choose '{ALL}', or from: {}", names.join(", "))),
        });
    }
    let is_wanted = |name: &str| wanted.iter().any(|wanted| begins(name, wanted));
    Ok((kept(rungs, is_wanted), wanted.join(", ")))
}

/// Names in the order of the ladder, each once however many folders have it.
fn names(rungs: &[Box<dyn Rung>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in rungs.iter().map(|rung| rung.spec().name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_default(name: &str, names: &[String]) -> bool {
    let has_all_cores = || names.iter().any(|name| name == HASH_ALL_CORES);
    DEFAULT_RUNGS.contains(&name) || begins(name, PV) || name == HASH_ONE_CORE && !has_all_cores()
}

/// Returns true if a rung is wanted by the first words of its name. A whole name is the
/// first words of others, too, so that `fuse` is each that FUSE serves.
fn begins(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn kept(rungs: Vec<Box<dyn Rung>>, is_wanted: impl Fn(&str) -> bool) -> Vec<Box<dyn Rung>> {
    rungs.into_iter().filter(|rung| is_wanted(&rung.spec().name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::rung::{MEMORY, MIB_PER_S, RunContext, RunResult, RungRun, Spec};

    struct Named(&'static str);

    impl Rung for Named {
        fn spec(&self) -> Spec {
            Spec { name: self.0.to_owned(), target: MEMORY.to_owned(), unit: MIB_PER_S }
        }

        fn once(&mut self, _go: &RunContext<'_>) -> RunResult<RungRun> {
            unreachable!("a choice runs nothing")
        }

        fn measured(&self) -> String {
            String::new()
        }
    }

    fn choose(names: &[&'static str], wanted: &[&str]) -> Result<(Vec<String>, String)> {
        let rungs = names.iter().map(|name| Box::new(Named(name)) as Box<dyn Rung>).collect();
        let wanted: Vec<_> = wanted.iter().map(|word| (*word).to_owned()).collect();
        let (rungs, words) = chosen(rungs, &wanted)?;
        Ok((rungs.iter().map(|rung| rung.spec().name).collect(), words))
    }

    #[test]
    fn ten_are_the_default_and_all_is_a_word() {
        let more = ["memory copy", "fuse kernel passthrough", "hash blake3"];
        let every: Vec<_> = DEFAULT_RUNGS.into_iter().chain(more).collect();
        let (names, words) = choose(&every, &[]).unwrap();
        assert_eq!(names, DEFAULT_RUNGS);
        assert_eq!(words, "10 of 13, '--rungs all' for each");
        assert_eq!(choose(&every, &["all"]).unwrap(), (names_of(&every), "all".to_owned()));
        let one_core: Vec<_> = every.into_iter().filter(|name| *name != HASH_ALL_CORES).collect();
        let (names, _) = choose(&one_core, &[]).unwrap();
        assert!(names.len() == 10 && names.iter().any(|name| name == HASH_ONE_CORE), "{names:?}");
    }

    #[test]
    fn first_words_choose_and_unknown_ones_are_refused() {
        let every = ["fuse", "fuse kernel passthrough", "fusex", "pv"];
        assert_eq!(choose(&every, &["fuse"]).unwrap().0, names_of(&every[..2]));
        assert_eq!(choose(&every, &[]).unwrap().0, ["fuse", "pv"]);
        let refused = choose(&every, &["fus"]).unwrap_err().to_string();
        assert!(refused.contains("there is no rung 'fus'"), "{refused}");
    }

    fn names_of(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}
