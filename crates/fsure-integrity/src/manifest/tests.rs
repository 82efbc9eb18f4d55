//! Tests that lists are read as they were written, that forbidden names are rejected,
//! that errors are reported with their line, and that no bytes crash a reader.

use std::path::Path;

use proptest::prelude::*;

use super::source::read;
use super::*;
use fsure_core::{Algorithm, Digests, RelPath};

fn items(format: ManifestFormat, text: &[u8]) -> Vec<ManifestItem> {
    let mut items = Vec::new();
    let mut take = |item| {
        items.push(item);
        Ok(())
    };
    read(format, Path::new("list"), &mut &text[..], &mut take).unwrap();
    items
}

fn listed(format: ManifestFormat, text: &[u8]) -> Vec<ManifestEntry> {
    let of = |item| match item {
        ManifestItem::Listed(listed) => listed,
        ManifestItem::Problem(problem) => panic!("{problem:?} in {}", text.escape_ascii()),
    };
    items(format, text).into_iter().map(of).collect()
}

/// Problems as `line: reason`.
fn problems(format: ManifestFormat, text: &[u8]) -> Vec<String> {
    let of = |item| match item {
        ManifestItem::Listed(_) => None,
        ManifestItem::Problem(problem) => Some(format!("{}: {}", problem.line, problem.reason)),
    };
    items(format, text).into_iter().filter_map(of).collect()
}

fn written(format: ManifestFormat, entries: &[ManifestEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut list = writer(format, &ManifestHeader::default(), &mut out).unwrap();
    for entry in entries {
        list.put(entry).unwrap();
    }
    list.finish().unwrap();
    out
}

/// Returns the part of an entry that a form keeps.
fn kept(format: ManifestFormat, entry: &ManifestEntry) -> ManifestEntry {
    use Algorithm::{Blake3, Md5, Sha1, Sha256, Sha512, Xxh128};
    let keeps: &[Algorithm] = match format {
        ManifestFormat::Json => &Algorithm::RECORDED,
        ManifestFormat::Mtree => &[Md5, Sha1, Sha256, Sha512],
        ManifestFormat::AscMhl => &[Sha512, Md5, Sha1, Xxh128],
        ManifestFormat::B3sum => &[Blake3],
        ManifestFormat::Sha512sums | ManifestFormat::Bagit => &[Sha512],
        _ => &[Sha256],
    };
    let mut digests = Digests::default();
    for algorithm in keeps {
        digests.insert(*algorithm, entry.digests.get(*algorithm).unwrap());
    }
    let has_dates =
        matches!(format, ManifestFormat::Json | ManifestFormat::Mtree | ManifestFormat::AscMhl);
    let has_sizes = has_dates || format == ManifestFormat::Hashdeep;
    let path = match format {
        ManifestFormat::Bagit => RelPath::from_bytes(*b"data").join(entry.path.as_bytes()),
        _ => entry.path.clone(),
    };
    ManifestEntry {
        path,
        digests,
        size: entry.size.filter(|_| has_sizes),
        modified: entry.modified.filter(|_| has_dates),
        ..ManifestEntry::default()
    }
}

fn any_path() -> impl Strategy<Value = RelPath> {
    let awkward = prop::sample::select(&b"\n\r\\%0A25 *#=()\t\x01\xff\xc3\xa9,;&<>\"'."[..]);
    let byte = prop_oneof![1 => awkward, 1 => any::<u8>()];
    let component = prop::collection::vec(byte, 1..12).prop_filter("a component", |bytes| {
        let is_name = !bytes.contains(&0) && !bytes.contains(&b'/');
        is_name && bytes != b"." && bytes != b".."
    });
    prop::collection::vec(component, 1..4).prop_map(|all| RelPath::from_bytes(all.join(&b'/')))
}

fn any_entry() -> impl Strategy<Value = ManifestEntry> {
    let seeds = (any_path(), any::<u8>(), any::<u32>(), any::<i64>());
    seeds.prop_map(|(path, seed, size, time_ns)| {
        let mut digests = Digests::default();
        for algorithm in Algorithm::ALL {
            digests.insert(algorithm, &vec![seed; algorithm.length()]);
        }
        let modified = Some(ListedMtime { time_ns, unit_ns: 1 });
        ManifestEntry {
            path,
            digests,
            size: Some(size.into()),
            modified,
            ..ManifestEntry::default()
        }
    })
}

fn unnumbered(entries: Vec<ManifestEntry>) -> Vec<ManifestEntry> {
    let of = |entry| {
        // Dates are compared, not how exactly they were written: jiff leaves out
        // zeros at the end of a fraction.
        let modified = |modified: ListedMtime| ListedMtime { unit_ns: 1, ..modified };
        let ManifestEntry { modified: date, .. } = entry;
        ManifestEntry { line: 0, others: Vec::new(), modified: date.map(modified), ..entry }
    };
    entries.into_iter().map(of).collect()
}

proptest! {
    #[test]
    fn what_was_written_is_read_as_it_was(entries in prop::collection::vec(any_entry(), 0..6)) {
        for format in ManifestFormat::ALL.into_iter().filter(|format| format.is_written()) {
            let expressible = |entry: &&ManifestEntry| format.cannot_express(&entry.path).is_none();
            let entries: Vec<_> = entries.iter().filter(expressible).cloned().collect();
            let text = written(format, &entries);
            let expected: Vec<_> = entries.iter().map(|entry| kept(format, entry)).collect();
            prop_assert_eq!(
                unnumbered(listed(format, &text)), expected, "{}", text.escape_ascii()
            );
        }
    }

    #[test]
    fn no_bytes_end_a_reader(text in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in ManifestFormat::ALL {
            items(format, &text);
        }
    }

    #[test]
    fn no_damage_ends_a_reader_or_leads_out(
        entries in prop::collection::vec(any_entry(), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for format in ManifestFormat::ALL.into_iter().filter(|format| format.is_written()) {
            let mut text = written(format, &entries);
            for (place, byte) in &damage {
                let place = place.index(text.len());
                text[place] = *byte;
            }
            for item in items(format, &text) {
                if let ManifestItem::Listed(entry) = item {
                    let components: Vec<_> =
                        entry.path.as_bytes().split(|byte| *byte == b'/').collect();
                    let bad = |name: &&[u8]| [&b""[..], b".", b".."].contains(name);
                    prop_assert!(!components.iter().any(bad), "{}", entry.path.display());
                }
            }
        }
    }
}

const SHA: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn names(format: ManifestFormat, text: &str) -> Vec<String> {
    let text = text.replace("HEX", SHA);
    let path = |entry: ManifestEntry| entry.path.display().to_string();
    listed(format, text.as_bytes()).into_iter().map(path).collect()
}

#[test]
fn sums_of_every_program_are_read() {
    let text = "\u{feff}# a comment\r\n\nHEX  a\r\nHEX *b\nSHA256 (c) d) = HEX\nSHA256(e)= HEX\n\
                \\HEX  f\\ng\\\\\nSHA2-256(h)= HEX\n  HEX   i\n";
    let text = text.replace("HEX", SHA);
    let paths: Vec<_> = listed(ManifestFormat::Sha256sums, text.as_bytes())
        .into_iter()
        .map(|entry| entry.path.display().to_string())
        .collect();
    assert_eq!(paths, ["a", "b", "c) d", "e", "f\\ng\\\\", "h", " i"]);
    assert_eq!(names(ManifestFormat::Sha256sums, "HEX a\nHEX  b\n"), ["a", " b"], "reversed");
    assert_eq!(
        names(ManifestFormat::Sha256sums, "HEX  a\\nb\n\0"),
        ["a\\\\nb\\n"],
        "ends with NUL"
    );
    assert_eq!(names(ManifestFormat::Rclone, "HEX  a\\nb\n"), ["a\\\\nb"]);
    let of_64 = |format| listed(format, format!("{SHA}  a").as_bytes())[0].digests.clone();
    assert!(of_64(ManifestFormat::B3sum).blake3.is_some());
    assert!(of_64(ManifestFormat::Sha512sums).get(Algorithm::Sha256).is_some());
}

#[test]
fn malformed_lines_are_reported_with_number_and_reason() {
    use ManifestFormat::{AscMhl, Bagit, Chkbit, Hashdeep, Json, Mtree, Sfv, Sha256sums};
    let sha = |text: &str| text.replace("HEX", SHA);
    for (format, text, reported) in [
        (Sha256sums, sha("HEX  ../a"), "1: a path with '..', which leads out of the root"),
        (Sha256sums, sha("\nHEX  //a"), "2: an absolute path"),
        (Sha256sums, sha("HEX  a//b"), "1: a path with an empty component"),
        (Sha256sums, sha("HEX  a\nHEX b"), "2: no name after the digest"),
        (Sha256sums, sha("\\HEX  a\\t"), "1: an escape other than"),
        (Sha256sums, "hello\n".to_owned(), "1: neither 'DIGEST  NAME'"),
        (Sha256sums, format!("{}  a", "0".repeat(56)), "1: the digest of a is of a kind"),
        (Sha256sums, "WHIRLPOOL (a) = 00".to_owned(), "1: the digest of a is of a kind"),
        (Sha256sums, "SHA256 (a) = 00".to_owned(), "1: not a sha256 digest of 64"),
        (Sha256sums, "\u{0}".to_owned(), ""),
        (Hashdeep, "x".to_owned(), "1: the first line is not"),
        (Hashdeep, "%%%% HASHDEEP-1.0\n1,2,a".to_owned(), "2: an entry before the line"),
        (Hashdeep, "%%%% HASHDEEP-1.0\n%%%% size,tiger,filename".to_owned(), "2: tiger: "),
        (
            Hashdeep,
            sha("%%%% HASHDEEP-1.0\n%%%% size,sha256,filename\n-1,HEX,a"),
            "3: the size is not a number",
        ),
        (Bagit, sha("HEX  data/a"), "1: not a sha512 digest of 128"),
        (Mtree, "#mtree\na type=file sha256=00".to_owned(), "2: not a sha256 digest"),
        (Mtree, "#mtree\n..".to_owned(), "2: '..' leads out"),
        (Mtree, "#mtree\n./a type=file cksum=1".to_owned(), "2: a has cksum only"),
        (Mtree, sha("#mtree\n./\\056./a sha256=HEX"), "2: a path with '..'"),
        (Mtree, sha("#mtree\n\\057a sha256=HEX"), "2: a name with a slash"),
        (Mtree, sha("#mtree\na time=x sha256=HEX"), "2: time is not a number"),
        (Json, "{}".to_owned(), "1: the first line is not"),
        (Json, format!("{}\n", json::HEAD), "1: the list is cut off"),
        (Json, format!("{}\n{{\"path\":\"a\"}}", json::HEAD), "2: an entry without"),
        (Json, format!("{}\n{{\"x\":1}}", json::HEAD), "2: not an entry: unknown field `x`"),
        (Json, format!("{}\nx", json::HEAD), "2: not an entry: expected value (column 1)"),
        (
            Json,
            format!("{}\n{{\"type\":\"end\",\"files\":2}}", json::HEAD),
            "2: 0 entries where 2 were written",
        ),
        (Sfv, "; by\na.txt 0123abc".to_owned(), "2: not 'NAME CRC32'"),
        (Sfv, "..\\a 0123abcd\n../a 0123abcd".to_owned(), "2: a path with '..'"),
        (Chkbit, "{\"x\":1}".to_owned(), "1: not a chkbit index: neither"),
        (Chkbit, "{".to_owned(), "1: not a chkbit index"),
        (AscMhl, "<hashlist version=\"1.1\">".to_owned(), "1: not a media hash list of"),
        (AscMhl, "<hashlist version=\"2.0\">\n<hash>".to_owned(), "2: the list is cut"),
    ] {
        let problems = problems(format, text.as_bytes());
        let first = problems.first().map_or("", String::as_str);
        let fits =
            if reported.is_empty() { problems.is_empty() } else { first.starts_with(reported) };
        assert!(fits, "{}: {text:?}: {problems:?}", format.name());
    }
    let long = [SHA.as_bytes(), b"  ", &vec![b'a'; lines::LINE_MAX]].concat();
    assert!(problems(Sha256sums, &long)[0].contains("mebibyte"));
}

#[test]
fn lists_from_windows_are_read() {
    let text = format!("; made by\r\n{SHA} *dir\\na me.txt\r\n");
    let utf16: Vec<u8> =
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in [text.as_bytes(), &utf16] {
        let entries = listed(ManifestFormat::Sha256sums, text);
        assert_eq!(entries[0].line, 2);
        assert_eq!(entries[0].path.as_bytes(), b"dir\\na me.txt");
        assert_eq!(entries[0].path_variants(), [RelPath::from_bytes(*b"dir/na me.txt")]);
    }
    let text = "; Generated by\r\n;\r\n\r\nmy file.bin   0123ABcd \r\nb.bin\tdeadbeef";
    let entries = listed(ManifestFormat::Sfv, text.as_bytes());
    let crc = entries[0].digests.get(Algorithm::Crc32);
    assert_eq!((entries.len(), entries[0].line, crc), (2, 4, Some(&[1, 0x23, 0xab, 0xcd][..])));
    assert_eq!(entries[1].path.as_bytes(), b"b.bin");
}

#[test]
fn mtree_is_read_in_both_manners() {
    let sha = |text: &str| text.replace("HEX", SHA);
    let text =
        sha("#mtree\n/set type=file uid=0\n. type=dir\n  a time=1.5 size=3 \\\n sha256=HEX\n  \
                    \\142 type=dir\n    c\\040d sha256digest=HEX\n  ..\n  l type=link link=x\n..\n\
                    /unset type\n./x/y type=file sha256=HEX\n");
    let entries = listed(ManifestFormat::Mtree, text.as_bytes());
    let reported: Vec<_> = entries
        .iter()
        .map(|entry| (entry.path.display().to_string(), entry.size, entry.modified))
        .collect();
    let time = ListedMtime { time_ns: 1_000_000_005, unit_ns: 1 };
    assert_eq!(
        reported,
        [
            ("a".to_owned(), Some(3), Some(time)),
            ("b/c d".to_owned(), None, None),
            ("x/y".to_owned(), None, None),
        ]
    );
}

#[test]
fn a_bag_s_names_may_be_meant_in_several_ways() {
    let manifest = format!("{}  data/a%25\n", "0".repeat(128));
    let entry = &listed(ManifestFormat::Bagit, manifest.as_bytes())[0];
    assert_eq!(entry.path.as_bytes(), b"data/a%");
    assert_eq!(entry.others, [RelPath::from_bytes(*b"data/a%25")]);
    assert_eq!(bagit_manifest::algorithm_of(b"manifest-sha256.txt"), Some(Some(Algorithm::Sha256)));
    assert_eq!(bagit_manifest::algorithm_of(b"tagmanifest-whirlpool.txt"), Some(None));
    assert_eq!(bagit_manifest::algorithm_of(b"bagit.txt"), None);
    assert!(bagit_manifest::is_encoded(b"BagIt-Version: 1.0\n"));
    assert!(!bagit_manifest::is_encoded(b"BagIt-Version: 0.97\n"));
}

/// An index of chkbit with those entries, and with the MD5 of `hashed`.
fn chkbit_index(idx: &str, hashed: &str) -> String {
    use md5::Digest as _;
    let md5 = fsure_core::digest::hex(&md5::Md5::digest(hashed));
    format!("{{\"v\":2,\"idx\":{idx},\"idx_hash\":\"{md5}\"}}")
}

#[test]
fn both_indexes_of_chkbit_are_read() {
    let entry = |name: &str| {
        format!("{{\"{name}\":{{\"mod\":1500,\"a\":\"blake3\",\"h\":\"{SHA}\",\"s\":3}}}}")
    };
    let index = chkbit_index(&entry("a"), &entry("a"));
    let atom =
        format!("{{\"type\":\"chkbit\",\"version\":6,\"data\":{{\"\":{index},\"d/e\":{index}}}}}");
    let reported = |text: &str| -> Vec<_> {
        let entries = listed(ManifestFormat::Chkbit, text.as_bytes()).into_iter();
        entries
            .map(|entry| (entry.path.display().to_string(), entry.modified.unwrap().time_ns))
            .collect()
    };
    let time = 1_500_000_000;
    assert_eq!(reported(&index), [("a".to_owned(), time)]);
    assert_eq!(reported(&atom), [("a".to_owned(), time), ("d/e/a".to_owned(), time)]);
    let lost = chkbit_index(&entry("a\u{fffd}"), &entry("a\u{fffd}"));
    assert!(problems(ManifestFormat::Chkbit, lost.as_bytes())[0].contains("the name was lost"));
}

#[test]
fn an_index_of_chkbit_has_the_md5_of_its_entries() {
    let plain = format!("{{\"a\":{{\"mod\":1,\"a\":\"blake3\",\"h\":\"{SHA}\"}}}}");
    let spaced = plain.replace(':', ": ").replace(',', ",\n ");
    let name = "<&>\\\\ \\\" x\u{2028}";
    let odd = plain.replacen('a', name, 1);
    let quoted = odd
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028");
    for (idx, hashed, is_sound) in [
        (&plain, &plain, true),
        // As it is, and as older versions wrote it.
        (&spaced, &spaced, true),
        (&spaced, &plain, true),
        (&odd, &quoted, true),
        (&plain, &spaced, false),
        (&plain.replace("\"mod\":1", "\"mod\":2"), &plain, false),
    ] {
        let index = chkbit_index(idx, hashed);
        let problems = problems(ManifestFormat::Chkbit, index.as_bytes());
        assert_eq!(problems.is_empty(), is_sound, "{index}: {problems:?}");
        let entries = items(ManifestFormat::Chkbit, index.as_bytes());
        let entries = entries.iter().filter(|item| matches!(item, ManifestItem::Listed(_))).count();
        assert_eq!(entries, 1, "told, and read all the same: {index}");
    }
    let atom = format!("{{\"data\":{{\"d\":{{\"v\":2,\"idx\":{plain}}},\"e\":{{}}}}}}");
    let problems = problems(ManifestFormat::Chkbit, atom.as_bytes());
    assert_eq!(
        problems,
        ["0: \"d\": its idx_hash is not that of its entries", "0: \"e\": it has no 'idx'"]
    );
}

#[test]
fn a_media_hash_list_ends_where_it_ends() {
    let md5 = "0".repeat(32);
    let list = format!(
        "<?xml version=\"1.0\"?>\n<!-- before --><hashlist version=\"2.0\"><hashes><hash>\
         <path>a</path><md5>{md5}</md5></hash></hashes></hashlist>"
    );
    for (before, behind, reason) in [
        ("", "", ""),
        ("\u{feff}", "\n \t<!-- behind -->\n<?pi?>\n", ""),
        ("", "\nmore", "something follows the end"),
        ("", "\0\0", "something follows the end"),
        ("", "<x/>", "something follows the end"),
        ("", "&#97;", "something follows the end"),
        ("", "<![CDATA[x]]>", "something follows the end"),
        ("", &*list, "something follows the end"),
        ("", "</hashlist>", "not XML"),
        ("x", "", "text before"),
        ("&#97;", "", "text before"),
    ] {
        let text = format!("{before}{list}{behind}");
        let problems = problems(ManifestFormat::AscMhl, text.as_bytes());
        let fits = match reason {
            "" => problems.is_empty(),
            reason => problems.len() == 1 && problems[0].contains(reason),
        };
        assert!(fits, "{before:?} {behind:?}: {problems:?}");
    }
}

#[test]
fn a_name_takes_time_by_its_length_and_not_by_its_square() {
    let time = |components: usize| {
        let text = format!("{SHA}  {}b\n", "a/".repeat(components));
        let once = || {
            let begun = std::time::Instant::now();
            assert_eq!(listed(ManifestFormat::Sha256sums, text.as_bytes()).len(), 1);
            begun.elapsed()
        };
        (0..5).map(|_| once()).min().unwrap()
    };
    // 32 times the length: some 32 times the time on a busy machine, too, and not 1,024 times.
    let (short, long) = (time(15_000), time(480_000));
    assert!(long < short * 320, "{short:?} for one, {long:?} for one of 32 times the length");
}

#[test]
fn what_other_programs_take_otherwise_is_written_otherwise() {
    let entry = |path: &[u8]| {
        let mut digests = Digests::default();
        digests.insert(Algorithm::Sha256, &[7; 32]);
        digests.insert(Algorithm::Sha512, &[7; 64]);
        digests.insert(Algorithm::Blake3, &[7; 32]);
        ManifestEntry { path: RelPath::from_bytes(path), digests, ..ManifestEntry::default() }
    };
    // Each of these programs reads standard input for a file `-`.
    for format in [ManifestFormat::Sha256sums, ManifestFormat::Sha512sums, ManifestFormat::B3sum] {
        let text = written(format, &[entry(b"-"), entry(b"d/-"), entry(b"-x")]);
        let text = String::from_utf8(text).unwrap();
        let names: Vec<_> = text.lines().map(|line| line.split_once("  ").unwrap().1).collect();
        assert_eq!(names, ["./-", "d/-", "-x"], "{}", format.name());
    }
    let paths: [&[u8]; 6] = [b"a", b"d-x/a", b"d/b/c d/e", b"d/b/f", b"d/g", b"h"];
    let text = String::from_utf8(written(ManifestFormat::Mtree, &paths.map(entry))).unwrap();
    let words = |line: &str| line.split(" sha256").next().unwrap().to_owned();
    assert_eq!(
        text.lines().map(words).collect::<Vec<_>>(),
        [
            "#mtree",
            ". type=dir",
            "./a type=file",
            "./d-x type=dir",
            "./d-x/a type=file",
            "./d type=dir",
            "./d/b type=dir",
            "./d/b/c\\040d type=dir",
            "./d/b/c\\040d/e type=file",
            "./d/b/f type=file",
            "./d/g type=file",
            "./h type=file",
        ]
    );
}

#[test]
fn the_mark_of_md5sum_is_taken_off_in_any_manifest() {
    let manifest = |is_of_tags, text: &str| {
        let manifest = bagit_manifest::Manifest {
            algorithm: Some(Algorithm::Md5),
            is_encoded: true,
            is_of_tags,
        };
        let mut input = text.as_bytes();
        let mut found = Vec::new();
        let lines = &mut lines::Lines::new(&mut input, Path::new("list"), b'\n');
        bagit_manifest::read(lines, manifest, &mut |item| {
            let ManifestItem::Listed(entry) = item else { panic!("{item:?}") };
            found.push([&[entry.path][..], &entry.others].concat());
            Ok(())
        })
        .unwrap();
        let shown = |path: &RelPath| path.display().to_string();
        found.iter().map(|paths| paths.iter().map(shown).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let digest = "0".repeat(32);
    let text = |line: &str| line.replace("HEX", &digest);
    assert_eq!(manifest(false, &text("HEX *data/a")), [["data/a"]]);
    assert_eq!(manifest(true, &text("HEX *bagit.txt")), [["bagit.txt", "*bagit.txt"]]);
    assert_eq!(manifest(true, &text("HEX  *bagit.txt")), [["*bagit.txt", "bagit.txt"]]);
    assert_eq!(manifest(true, &text("HEX  bagit.txt")), [["bagit.txt"]]);
}

#[test]
fn of_a_media_hash_only_what_was_found_right_counts() {
    let list = |entry: &str| {
        format!("<hashlist version=\"2.0\"><hashes><hash>{entry}</hash></hashes></hashlist>")
    };
    let md5 = "0".repeat(32);
    let text = list(&format!(
        "<path size=\"3\" lastmodificationdate=\"2020-01-16T09:15:00.5+01:00\">a &amp; &#98;</path>\
         <md5 action=\"failed\">{md5}</md5><xxh128 action=\"verified\">{md5}</xxh128>"
    ));
    let entry = &listed(ManifestFormat::AscMhl, text.as_bytes())[0];
    assert_eq!((entry.path.as_bytes(), entry.size), (&b"a & b"[..], Some(3)));
    let modified = ListedMtime { time_ns: 1_579_162_500_500_000_000, unit_ns: 100_000_000 };
    assert_eq!(entry.modified, Some(modified));
    assert_eq!(entry.digests.get(Algorithm::Md5), None);
    assert!(entry.digests.get(Algorithm::Xxh128).is_some());
    let failed = list(&format!("<path>a</path><md5 action=\"failed\">{md5}</md5>"));
    assert!(problems(ManifestFormat::AscMhl, failed.as_bytes())[0].contains("a has no digest"));
    let other = list("<path>a</path><xxh64 action=\"original\">00</xxh64>");
    assert!(problems(ManifestFormat::AscMhl, other.as_bytes())[0].contains("xxh64 only"));
}
