//! The signed message: a text that says what a record held, for people and for
//! `minisign -V`. One set of fields has one spelling, so that what was read is
//! what was signed.

use jiff::Timestamp;

use crate::catalog::Claimed;
use crate::model::{Generation, SignedStatement};
use fsure_core::digest::hex;

/// The content of a signed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Name of the root folder, escaped.
    pub(crate) root: String,
    pub(crate) chain: [u8; 16],
    pub(crate) generation: u64,
    /// Seconds since 1970.
    pub(crate) at_s: i64,
    pub(crate) record: [u8; 32],
    pub(crate) config: Option<[u8; 32]>,
    pub(crate) cross_file_systems: bool,
    pub(crate) files: u64,
    pub(crate) folders: u64,
    pub(crate) links: u64,
    pub(crate) gone: u64,
    pub(crate) bytes: u64,
    /// The signed generation before, and its head.
    pub(crate) previous: Option<(u64, [u8; 32])>,
    /// The first generation since then, and the digest of it and all up to
    /// this one.
    pub(crate) history: (u64, [u8; 32]),
}

impl Statement {
    /// The message.
    pub(crate) fn text(&self) -> String {
        let config = self.config.map_or("none".to_owned(), |digest| hex(&digest));
        let crosses = if self.cross_file_systems { "yes" } else { "no" };
        let previous = self
            .previous
            .map_or("none".to_owned(), |(number, head)| format!("{number} {}", hex(&head)));
        let time = Timestamp::from_second(self.at_s).unwrap_or(Timestamp::UNIX_EPOCH);
        let lines = [
            "fsure seal 1".to_owned(),
            format!("root: {}", self.root),
            format!("chain: {}", hex(&self.chain)),
            format!("generation: {}", self.generation),
            format!("time: {time}"),
            format!("record: {}", hex(&self.record)),
            format!("config: {config}"),
            format!("cross-file-systems: {crosses}"),
            format!("files: {}", self.files),
            format!("folders: {}", self.folders),
            format!("links: {}", self.links),
            format!("gone: {}", self.gone),
            format!("bytes: {}", self.bytes),
            format!("previous: {previous}"),
            format!("history: {} {}", self.history.0, hex(&self.history.1)),
        ];
        lines.map(|line| line + "\n").concat()
    }

    /// Reads a message; `None` for anything that is not spelt exactly so.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut next = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(": ");
        let read = Self {
            root: next("root")?.to_owned(),
            chain: unhex(next("chain")?)?,
            generation: next("generation")?.parse().ok()?,
            at_s: next("time")?.parse::<Timestamp>().ok()?.as_second(),
            record: unhex(next("record")?)?,
            config: match next("config")? {
                "none" => None,
                digest => Some(unhex(digest)?),
            },
            cross_file_systems: next("cross-file-systems")? == "yes",
            files: next("files")?.parse().ok()?,
            folders: next("folders")?.parse().ok()?,
            links: next("links")?.parse().ok()?,
            gone: next("gone")?.parse().ok()?,
            bytes: next("bytes")?.parse().ok()?,
            previous: match next("previous")? {
                "none" => None,
                previous => Some(numbered(previous)?),
            },
            history: numbered(next("history")?)?,
        };
        (read.text() == text).then_some(read)
    }

    /// Returns true if a record claims what was signed.
    pub(crate) fn is_of(&self, claimed: &Claimed) -> bool {
        self.record == claimed.digest
    }
}

/// Returns the digest that stands for a statement and all that it binds.
pub(crate) fn head(seal: &SignedStatement) -> [u8; 32] {
    *blake3::hash(seal.statement.as_bytes()).as_bytes()
}

/// A generation with its statement, if it is a signed one.
pub(crate) fn statement(generation: &Generation) -> Option<(&SignedStatement, Option<Statement>)> {
    let seal = generation.seal.as_ref()?;
    let read = Statement::read(&seal.statement);
    Some((seal, read.filter(|read| read.generation == generation.number)))
}

fn numbered(text: &str) -> Option<(u64, [u8; 32])> {
    let (number, digest) = text.split_once(' ')?;
    Some((number.parse().ok()?, unhex(digest)?))
}

/// Bytes of their hexadecimal text, in either case.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let mut bytes = [0; N];
    if digits.len() != 2 * N || !digits.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Statement {
        Statement {
            root: "photos \\n".to_owned(),
            chain: [7; 16],
            generation: 12,
            at_s: 1_795_200_000,
            record: [0xab; 32],
            config: Some([1; 32]),
            cross_file_systems: true,
            files: 3,
            folders: 2,
            links: 1,
            gone: 0,
            bytes: u64::MAX,
            previous: Some((4, [9; 32])),
            history: (5, [8; 32]),
        }
    }

    #[test]
    fn one_set_of_fields_has_one_encoding() {
        for one in [sample(), Statement { config: None, previous: None, ..sample() }] {
            let text = one.text();
            assert_eq!(Statement::read(&text), Some(one));
            for (from, to) in [
                ("fsure seal 1", "fsure seal 2"),
                ("generation: 12", "generation: 012"),
                ("generation: 12", "generation: +12"),
                ("abab", "ABAB"),
                ("system: yes", "systems: maybe"),
                ("files: 3\n", "files: 3 \n"),
                ("files: 3\n", "files: 3\r\n"),
                ("files: 3\n", "files: 3\nfiles: 3\n"),
                ("Z\n", "+00:00\n"),
                ("history: 5", "history:  5"),
            ] {
                let other = text.replacen(from, to, 1);
                assert!(other == text || Statement::read(&other).is_none(), "{other}");
            }
            for other in [text.trim_end().to_owned(), text.clone() + "\n", text.clone() + "x"] {
                assert_eq!(Statement::read(&other), None);
            }
        }
    }

    #[test]
    fn digits_are_read_strictly() {
        assert_eq!(unhex::<2>("01fF"), Some([1, 255]));
        for bad in ["", "01f", "01fg", "+1ff", "01ff0", "é1f"] {
            assert_eq!(unhex::<2>(bad), None, "{bad}");
        }
    }
}
