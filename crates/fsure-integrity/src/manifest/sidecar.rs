//! The two carriers of `docs/layouts.md` as bytes: the file of a folder and the
//! attribute of a file. Each has a digest over itself, and nothing is taken of
//! one that does not fit: it may have been cut, or edited by hand.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::entry::{ListedMtime, ManifestEntry};
use super::escaping;
use super::json;
use crate::model::{Record, UNDATED, is_carrier};
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, RelPath};

const HEAD: &str = r#"{"type":"fsure-folder","version":1}"#;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    r#type: String,
    files: u64,
    blake3: String,
}

/// The entry of a record in its folder's file.
pub fn carried(record: &Record) -> ManifestEntry {
    let entry = &record.entry;
    ManifestEntry {
        path: RelPath::from_bytes(record.path.name()),
        digests: record.digests.clone(),
        size: Some(entry.size),
        modified: (!entry.is_undated())
            .then_some(ListedMtime { time_ns: entry.mtime_ns, unit_ns: 1 }),
        ..ManifestEntry::default()
    }
}

/// The file of a folder with these files in it, in the order of their names.
pub fn write_folder(files: &[ManifestEntry]) -> std::io::Result<Vec<u8>> {
    let mut bytes = format!("{HEAD}\n").into_bytes();
    for file in files {
        json::write(&mut bytes, file)?;
    }
    let blake3 = blake3::hash(&bytes).to_hex().to_string();
    let end = End { r#type: "end".to_owned(), files: files.len() as u64, blake3 };
    json::line(&mut bytes, &end)?;
    Ok(bytes)
}

/// The bytes with which every version of a folder's file begins.
const MARK: &[u8] = br#"{"type":"fsure-folder","#;

/// Returns true if a file claims to be a folder's file. Another file of that name belongs
/// to the user and must not be replaced.
pub fn is_folder_file(bytes: &[u8]) -> bool {
    bytes.starts_with(MARK)
}

/// Returns true if a file can be a folder's file of which a killed run has written
/// nothing or a part; after a power cut it may have its size only and hold zeros.
pub fn is_cut_off_folder_file(bytes: &[u8]) -> bool {
    is_folder_file(bytes) || MARK.starts_with(bytes) || bytes.iter().all(|byte| *byte == 0)
}

/// Reads a folder's file. The error is the reason why it cannot be trusted.
pub fn read_folder(bytes: &[u8]) -> Result<Vec<ManifestEntry>, String> {
    let without_end = bytes.strip_suffix(b"\n").ok_or("it is cut off")?;
    let start = without_end.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    let (body, end) = without_end.split_at(start);
    let end: End = serde_json::from_slice(end).map_err(|_| "it is cut off")?;
    if end.r#type != "end" || end.blake3 != *blake3::hash(body).to_hex() {
        return Err("it fails its own digest".to_owned());
    }
    let mut lines = body.split_inclusive(|byte| *byte == b'\n');
    if lines.next() != Some(format!("{HEAD}\n").as_bytes()) {
        return Err(format!("its first line is not {HEAD}"));
    }
    let files: Vec<ManifestEntry> = lines.map(json::parse).collect::<Result<_, _>>()?;
    let is_in_order = files.is_sorted_by(|one, other| one.path < other.path);
    let is_plain = |file: &ManifestEntry| {
        let name = file.path.as_bytes();
        !name.contains(&b'/') && !is_carrier(name) && file.size.is_some()
    };
    if !is_in_order || !files.iter().all(is_plain) || files.len() as u64 != end.files {
        return Err("it holds an entry that no folder can have".to_owned());
    }
    Ok(files)
}

/// The attribute of a file with this record.
pub fn write_attribute(record: &Record) -> Vec<u8> {
    let entry = &record.entry;
    let mtime = if entry.is_undated() { "-".to_owned() } else { entry.mtime_ns.to_string() };
    let digests = record.digests.algorithms().iter().filter_map(|algorithm| {
        Some(format!("{}={}", algorithm.name(), hex(record.digests.get(algorithm)?)))
    });
    let digests = digests.collect::<Vec<_>>().join(",");
    let text = format!("fsure1 {} {mtime} {} {digests}", entry.size, record.hashed_ns);
    format!("{text} {:016x}", xxh3_64(text.as_bytes())).into_bytes()
}

/// Reads the attribute of the file `name`. The error is the reason why it cannot be trusted.
pub fn read_attribute(name: &[u8], value: &[u8]) -> Result<ManifestEntry, String> {
    let text = std::str::from_utf8(value).map_err(|_| "it is not text")?;
    let (text, check) = text.rsplit_once(' ').ok_or("it is cut off")?;
    if check != format!("{:016x}", xxh3_64(text.as_bytes())) {
        return Err("it fails its own digest".to_owned());
    }
    let parts: Vec<_> = text.split(' ').collect();
    let ["fsure1", size, mtime, hashed, list] = parts[..] else {
        return Err("its version is not known".to_owned());
    };
    let odd = || "it holds values that no record can have".to_owned();
    let _: i64 = hashed.parse().map_err(|_| odd())?;
    let time_ns = match mtime {
        "-" => None,
        time => Some(time.parse::<i64>().ok().filter(|time| *time != UNDATED).ok_or_else(odd)?),
    };
    let mut digests = Digests::default();
    for one in list.split(',') {
        let (algorithm, text) = one.split_once('=').ok_or_else(odd)?;
        let algorithm = Algorithm::from_name(algorithm).ok_or_else(odd)?;
        digests.insert(algorithm, &escaping::digest(algorithm, text.as_bytes())?);
    }
    Ok(ManifestEntry {
        path: RelPath::from_bytes(name),
        digests,
        size: Some(size.parse().map_err(|_| odd())?),
        modified: time_ns.map(|time_ns| ListedMtime { time_ns, unit_ns: 1 }),
        ..ManifestEntry::default()
    })
}

/// Returns true if two carriers, or a carrier and the record, contradict each other: they
/// have different content for the same size and date.
pub fn contradicts(one: &ManifestEntry, other: &ManifestEntry) -> bool {
    let date = |listed: &ManifestEntry| listed.modified.map(|modified| modified.time_ns);
    one.size == other.size
        && date(one) == date(other)
        && one.digests.agree(&other.digests) == Some(false)
}

/// Returns true if a carrier contains all that the record contains, and further digests.
pub fn has_more_digests(carrier: &ManifestEntry, record: &ManifestEntry) -> bool {
    let has = carrier.digests.algorithms();
    let same = ManifestEntry { digests: carrier.digests.clone(), ..record.clone() };
    same == *carrier
        && has.covers(record.digests.algorithms())
        && carrier.digests.agree(&record.digests) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &[u8], seed: u8) -> ManifestEntry {
        let mut digests = Digests::default();
        digests.insert(Algorithm::Blake3, &[seed; 32]);
        digests.insert(Algorithm::Sha1, &[seed; 20]);
        ManifestEntry {
            path: RelPath::from_bytes(name),
            digests,
            size: Some(u64::from(seed)),
            modified: (seed != 9).then_some(ListedMtime { time_ns: -5, unit_ns: 1 }),
            ..ManifestEntry::default()
        }
    }

    #[test]
    fn a_folder_s_file_is_read_again_and_no_other() {
        for files in
            [vec![], vec![file(b"a \"\n", 1), file(b"b\xff", 9), file("c\u{fc}".as_bytes(), 3)]]
        {
            let bytes = write_folder(&files).unwrap();
            assert_eq!(read_folder(&bytes).as_ref(), Ok(&files));
            for place in 0..bytes.len() {
                assert!(read_folder(&bytes[..place]).is_err(), "cut at {place}");
                let mut other = bytes.clone();
                other[place] ^= 4;
                assert!(read_folder(&other).is_err(), "changed at {place}");
            }
        }
    }

    #[test]
    fn a_folder_holds_names_once_and_in_order() {
        for files in [
            vec![file(b"b", 1), file(b"a", 2)],
            vec![file(b"a", 1), file(b"a", 1)],
            vec![file(b"a/b", 1)],
            // Carriers themselves, which no walk comes by.
            vec![file(b".fsure-folder.jsonl", 1)],
            vec![file(b".fsure-folder.jsonl.making", 1)],
        ] {
            assert!(read_folder(&write_folder(&files).unwrap()).is_err(), "{files:?}");
        }
        for path in [b"..".as_slice(), b"", b"."] {
            assert!(read_folder(&write_folder(&[file(path, 1)]).unwrap()).is_err());
        }
    }

    #[test]
    fn an_attribute_is_read_again_and_no_other() {
        use crate::model::{Entry, EntryKind, FileSystemId};
        for seed in [1, 9] {
            let listed = file(b"a", seed);
            let record = Record {
                path: RelPath::from_bytes(*b"x/a"),
                entry: Entry {
                    kind: EntryKind::File,
                    size: seed.into(),
                    mtime_ns: listed.modified.map_or(UNDATED, |modified| modified.time_ns),
                    ctime_ns: None,
                    birth_ns: None,
                    inode: None,
                    file_system: FileSystemId(1),
                    target: None,
                },
                digests: listed.digests.clone(),
                hashed_ns: 77,
                verified_s: 0,
                gone_s: None,
            };
            assert_eq!(carried(&record), listed);
            let value = write_attribute(&record);
            assert_eq!(read_attribute(b"a", &value), Ok(listed));
            for place in 0..value.len() {
                assert!(read_attribute(b"a", &value[..place]).is_err(), "cut at {place}");
                let mut other = value.clone();
                other[place] ^= 1;
                assert!(read_attribute(b"a", &other).is_err(), "changed at {place}");
            }
        }
        assert!(read_attribute(b"a", b"").is_err());
    }

    #[test]
    fn only_one_size_and_date_make_a_contradiction() {
        let one = file(b"a", 1);
        let mut other = ManifestEntry { digests: file(b"a", 2).digests, ..one.clone() };
        assert!(contradicts(&one, &other) && !contradicts(&one, &one));
        other.size = Some(2);
        assert!(!contradicts(&one, &other));
    }

    proptest::proptest! {
        /// Reads arbitrary bytes, as they may come with a tree, and arbitrary changes of
        /// what fsure wrote.
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            tail in "[ -~\n]{0,80}",
        ) {
            let digest = blake3::hash(format!("{HEAD}\n{tail}\n").as_bytes()).to_hex();
            let end = format!("{{\"type\":\"end\",\"files\":1,\"blake3\":\"{digest}\"}}");
            for bytes in [bytes.clone(), format!("{HEAD}\n{tail}\n{end}\n").into_bytes()] {
                let _ = read_folder(&bytes);
            }
            let text = format!("fsure1 {tail}");
            let text = format!("{text} {:016x}", xxh3_64(text.as_bytes()));
            let _ = (read_attribute(b"a", &bytes), read_attribute(b"a", text.as_bytes()));
            let _ = crate::model::Metadata::decode(&bytes);
            let _ = crate::model::Metadata::decode(&[&[1, 15], &bytes[..]].concat());
        }
    }
}
