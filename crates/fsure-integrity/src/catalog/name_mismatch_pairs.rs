//! Names that came and went and differ only in their Unicode form or in case, see
//! `model::name_mismatch`: first in their Unicode form, then in capitals. As with
//! moves, only if there is one of each; and a name that is there as it is
//! recorded is paired with no other, but its nearness makes the others doubtful.

use rusqlite::{OptionalExtension as _, params};

use super::move_candidates::{MoveCandidates, fault};
use crate::model::{folded, nfc};
use fsure_core::{RelPath, Result};

impl MoveCandidates {
    /// Makes pairs of names with a name mismatch. Returns true if a pair was made:
    /// names that are there as recorded may then contest it.
    pub fn pair_name_mismatches(&mut self) -> Result<bool> {
        if self.departed == 0 {
            return Ok(false);
        }
        self.pair("nfc")?;
        self.pair("folded")?;
        self.has_ambiguous_names = self.is_any("waiting WHERE doubt <> 0")?;
        self.is_any("pair")
    }

    fn is_any(&self, of: &str) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {of})");
        self.connection.query_row(&sql, [], |row| row.get(0)).map_err(|error| fault(&error))
    }

    /// Removes the pair that folds to the same name as `path`, which is there as it is
    /// recorded: it cannot be determined which of the names is which.
    pub fn contest(&mut self, path: &RelPath) -> Result<()> {
        // What is plain ASCII is the NFC of nothing but itself.
        if !path.as_bytes().is_ascii() {
            self.contest_by("nfc", path, &nfc(path))?;
        }
        self.contest_by("folded", path, &folded(path))
    }

    fn contest_by(&mut self, key: &str, path: &RelPath, value: &[u8]) -> Result<()> {
        // By the pair and not by the names: any number of them may fold together.
        let sql = "SELECT now, was FROM pair WHERE value = ?1 AND key = ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        let found = statement.query_row(params![value, key], |row| Ok((row.get(0)?, row.get(1)?)));
        let found: Option<(Vec<u8>, Vec<u8>)> = found.optional().map_err(|e| fault(&e))?;
        drop(statement);
        let Some((now, was)) = found.filter(|(_, was)| was != path.as_bytes()) else {
            return Ok(());
        };
        self.has_ambiguous_names = true;
        let sql = "UPDATE waiting SET doubt = 2 WHERE path IN (?1, ?2)";
        let doubted = self.connection.execute(sql, params![now, was]);
        let parted = self.connection.execute("DELETE FROM pair WHERE now = ?1", [&now]);
        doubted.and(parted).map(|_| ()).map_err(|error| fault(&error))
    }

    /// Returns true if a name that came or went has a name mismatch with several others.
    pub fn is_ambiguous_name(&self, path: &RelPath) -> Result<bool> {
        if !self.has_ambiguous_names {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM waiting WHERE path = ?1 AND doubt = 2";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        let found = statement.query_row([path.as_bytes()], |_| Ok(())).optional();
        found.map(|found| found.is_some()).map_err(|error| fault(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::catalog::Ambiguity;
    use crate::model::{Entry, EntryKind, FileSystemId, Record};
    use fsure_core::Digests;

    fn path(name: &str) -> RelPath {
        RelPath::from_bytes(name.as_bytes())
    }

    fn entry(kind: EntryKind) -> Entry {
        Entry {
            kind,
            size: 1,
            mtime_ns: 1,
            ctime_ns: None,
            birth_ns: None,
            inode: None,
            file_system: FileSystemId(1),
            target: None,
        }
    }

    fn depart(waiting: &mut MoveCandidates, name: &str, kind: EntryKind) {
        let record = Record {
            path: path(name),
            entry: entry(kind),
            digests: Digests::default(),
            hashed_ns: 0,
            verified_s: 0,
            gone_s: None,
        };
        waiting.depart(&record, true, None).unwrap();
    }

    /// A name that came or went, and what it is.
    #[derive(Clone, Debug)]
    struct Name {
        name: String,
        is_here: bool,
        kind: EntryKind,
    }

    /// The result for a set of names: the pairs, and the names in doubt.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Answer {
        pairs: BTreeMap<RelPath, RelPath>,
        doubtful: BTreeSet<RelPath>,
    }

    /// A pair, and what both have in common by which of the keys.
    struct Pair {
        now: RelPath,
        was: RelPath,
        key: fn(&RelPath) -> Vec<u8>,
        value: Vec<u8>,
    }

    /// The rule of docs/promises.md, name by name and without a database.
    fn by_the_rule(names: &[Name], as_recorded: &[String]) -> Answer {
        let mut answer = Answer::default();
        let mut pairs: Vec<Pair> = Vec::new();
        let keys: [fn(&RelPath) -> Vec<u8>; 2] = [|path| nfc(path).into_owned(), folded];
        for key in keys {
            let mut groups: BTreeMap<Vec<u8>, Vec<_>> = BTreeMap::new();
            for one in names {
                let path = path(&one.name);
                if !pairs.iter().any(|pair| [&pair.now, &pair.was].contains(&&path)) {
                    groups.entry(key(&path)).or_default().push((path, one));
                }
            }
            for (value, group) in groups {
                let here: Vec<_> = group.iter().filter(|(_, one)| one.is_here).collect();
                let gone: Vec<_> = group.iter().filter(|(_, one)| !one.is_here).collect();
                if let ([(now, one)], [(was, other)]) = (&here[..], &gone[..]) {
                    if one.kind == other.kind {
                        let (now, was) = (now.clone(), was.clone());
                        pairs.push(Pair { now, was, key, value });
                    }
                } else if !here.is_empty() && !gone.is_empty() {
                    answer.doubtful.extend(group.into_iter().map(|(path, _)| path));
                }
            }
        }
        let gone = names.iter().filter(|one| !one.is_here).map(|one| &one.name);
        for name in as_recorded.iter().chain(gone) {
            let name = path(name);
            let is_contested =
                |pair: &mut Pair| pair.was != name && (pair.key)(&name) == pair.value;
            for pair in pairs.extract_if(.., is_contested) {
                answer.doubtful.extend([pair.now, pair.was]);
            }
        }
        answer.pairs = pairs.into_iter().map(|pair| (pair.now, pair.was)).collect();
        answer
    }

    fn by_the_database(names: &[Name], as_recorded: &[String]) -> Answer {
        let mut waiting = MoveCandidates::new().unwrap();
        for Name { name, is_here, kind } in names {
            match is_here {
                true => waiting.arrive(&path(name), &entry(*kind), 1).unwrap(),
                false => depart(&mut waiting, name, *kind),
            }
        }
        let gone = names.iter().filter(|one| !one.is_here).map(|one| &one.name);
        if waiting.pair_name_mismatches().unwrap() {
            as_recorded.iter().chain(gone).for_each(|name| waiting.contest(&path(name)).unwrap());
        }
        let mut answer = Answer::default();
        for arrival in waiting.arrivals(None, false).unwrap() {
            if arrival.doubt == Some(Ambiguity::NameMismatch) {
                answer.doubtful.insert(arrival.path.clone());
            }
            answer.pairs.extend(arrival.moved_from.map(|was| (arrival.path, was)));
        }
        let departures = waiting.departures(None).unwrap().into_iter();
        let doubtful = departures.filter(|gone| gone.doubt == Some(Ambiguity::NameMismatch));
        answer.doubtful.extend(doubtful.map(|gone| gone.path));
        answer
    }

    /// Few letters, so that many names fold together.
    fn names() -> impl Strategy<Value = Vec<String>> {
        let component = "(a|A|\u{fc}|u\u{308}|\u{dc}|U\u{308}){1,2}";
        let name = format!("{component}(/{component})?");
        let name = proptest::string::string_regex(&name).unwrap();
        prop::collection::btree_set(name, 0..16).prop_map(|names| names.into_iter().collect())
    }

    proptest! {
        #[test]
        fn names_are_paired_by_the_rule_and_no_other(
            names in names(),
            roles in prop::collection::vec(0..5_u8, 16),
        ) {
            let of = |role| names.iter().zip(&roles).filter(move |(_, it)| **it == role);
            let waiting = |(role, is_here, kind)| {
                of(role).map(move |(name, _)| Name { name: name.clone(), is_here, kind })
            };
            let waiting: Vec<_> = [
                (0, true, EntryKind::File),
                (1, false, EntryKind::File),
                (2, true, EntryKind::Folder),
                (3, false, EntryKind::Folder),
            ]
            .into_iter()
            .flat_map(waiting)
            .collect();
            let as_recorded: Vec<_> = of(4).map(|(name, _)| name.clone()).collect();
            prop_assert_eq!(
                by_the_database(&waiting, &as_recorded),
                by_the_rule(&waiting, &as_recorded)
            );
        }
    }

    /// The time to pair so many names that all fold together below a folder
    /// whose own name has a name mismatch.
    fn time_for(bits: u32) -> Duration {
        let mut waiting = MoveCandidates::new().unwrap();
        let name = |folder: &str, number: u32| {
            let letter = |bit| if number >> bit & 1 == 0 { 'a' } else { 'A' };
            format!("{folder}/{}", (0..bits).map(letter).collect::<String>())
        };
        waiting.arrive(&path("D"), &entry(EntryKind::Folder), 1).unwrap();
        depart(&mut waiting, "d", EntryKind::Folder);
        for number in 0..1 << bits {
            waiting.arrive(&path(&name("D", number)), &entry(EntryKind::File), 1).unwrap();
            depart(&mut waiting, &name("d", number), EntryKind::File);
        }
        let begun = Instant::now();
        assert!(waiting.pair_name_mismatches().unwrap());
        for number in 0..1 << bits {
            waiting.contest(&path(&name("d", number))).unwrap();
        }
        begun.elapsed()
    }

    /// 64 times the names: some 64 times the time, and not 4,096 times.
    #[test]
    fn names_that_all_fold_together_cost_no_more_than_others() {
        // The least of some: the machine may be busy with other work.
        let least = |bits| (0..5).map(|_| time_for(bits)).min().expect("five");
        let (few, many) = (least(6), least(12));
        assert!(many < few * 800, "{few:?} for 64 names, {many:?} for 4,096");
    }
}
