//! Checks that the generations of a record are the signed ones, all of them and in their
//! order, back to the beginning of their chain.

use super::key::{SignatureError, Verifier};
use super::statement::{Statement, head, statement};
use crate::catalog::digest_of;
use crate::model::{Changes, Generation};
use fsure_core::units;

/// A chain that holds.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The newest statement.
    pub(crate) newest: Statement,
    /// Numbers and heads of all signed generations, the newest first.
    pub(crate) heads: Vec<(u64, [u8; 32])>,
}

impl Chain {
    /// Returns the digest that stands for the newest statement.
    pub(crate) fn head(&self) -> [u8; 32] {
        self.heads[0].1
    }

    /// Returns true if this statement is part of the chain.
    pub(crate) fn holds(&self, generation: u64, head: &[u8; 32]) -> bool {
        self.heads.iter().any(|(number, known)| *number == generation && known == head)
    }

    /// Follows the chain of the newest signed generation. Generations after it are bound
    /// by no signature and are not checked. The signer is not checked: the signer of the
    /// newest statement stands for all that it binds. Returns `None` if nothing is
    /// signed; the error is the reason why the chain does not hold.
    pub(crate) fn follow(generations: &[Generation]) -> Option<Result<Self, String>> {
        let newest = generations.iter().rposition(|one| one.seal.is_some())?;
        Some(follow(&generations[..=newest]))
    }
}

fn follow(mut rest: &[Generation]) -> Result<Chain, String> {
    let mut newest: Option<Statement> = None;
    let mut heads = Vec::new();
    while let Some((last, before)) = rest.split_last() {
        let number = last.number;
        let (seal, read) = statement(last)
            .ok_or_else(|| format!("its generation {number} should be a signed one"))?;
        let read =
            read.ok_or_else(|| format!("the statement of generation {number} cannot be read"))?;
        let (since, digest) = read.history;
        let covered = before.partition_point(|one| one.number < since);
        let between = &before[covered..];
        if digest_of(between) != digest {
            return Err(format!("its generations {since} to {number} are not as signed"));
        }
        heads.push((number, head(seal)));
        rest = match read.previous {
            None if covered == 0 => &[],
            None => return Err("it has generations that no signature binds".to_owned()),
            Some((previous, bound)) => {
                let before = &before[..covered];
                let is_bound = before.last().is_some_and(|one| {
                    one.number == previous && one.seal.as_ref().is_some_and(|s| head(s) == bound)
                });
                if !is_bound {
                    return Err(format!("its generation {previous} is not the signed one"));
                }
                before
            }
        };
        let of_one_chain = newest.as_ref().is_none_or(|newest| newest.chain == read.chain);
        if !of_one_chain {
            return Err(format!("its generation {number} is of another chain"));
        }
        newest.get_or_insert(read);
    }
    newest.map(|newest| Chain { newest, heads }).ok_or_else(|| "it has no generations".to_owned())
}

/// Checks that the newest generation is signed with this key and that its chain holds.
/// The error is the reason if not.
pub(crate) fn check(generations: &[Generation], key: &Verifier) -> Result<Chain, String> {
    let Some(place) = generations.iter().rposition(|one| one.seal.is_some()) else {
        return Err("it is not signed".to_owned());
    };
    let (signed, since) = (&generations[place], &generations[place + 1..]);
    let seal = signed.seal.as_ref().expect("it was looked for");
    match key.check(seal) {
        Ok(()) => {}
        Err(SignatureError::OtherKey(id)) => {
            return Err(format!("it is signed with the key {id}, not with {}", key.id()));
        }
        Err(SignatureError::Invalid) => {
            return Err(format!("the signature on generation {} is forged", signed.number));
        }
    }
    let chain = follow(&generations[..=place])?;
    if since.is_empty() {
        return Ok(chain);
    }
    let changes = since.iter().fold(Changes::default(), |sum, one| sum.plus(&one.changes));
    Err(format!(
        "it was changed after generation {} was signed on {} ({})",
        signed.number,
        day(chain.newest.at_s),
        describe(&changes)
    ))
}

/// A date, in UTC.
pub(crate) fn day(at_s: i64) -> String {
    let time = jiff::Timestamp::from_second(at_s).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%F").to_string()
}

/// Changes in words.
pub fn describe(changes: &Changes) -> String {
    let Changes { new, modified, touched, missing, moved, accepted, bytes } = *changes;
    let counts = [
        (new, "new"),
        (modified, "modified"),
        (touched, "with another date"),
        (missing, "missing"),
        (moved, "moved"),
        (accepted, "accepted"),
    ];
    let mut parts: Vec<_> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if bytes > 0 {
        parts.push(units::size(bytes));
    }
    // Folders, links, metadata, further digests.
    let none = "no file's content or name";
    if parts.is_empty() { none.to_owned() } else { parts.join(", ") }
}
