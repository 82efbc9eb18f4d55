//! Bags, valid and not: those that the specification speaks of and those on
//! which programs were seen to differ, each made here from what it is about.
//! `verify BAG --against BAG` must call the valid ones so, and no other.
#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::support::{Report, Tree, fsure_json};

const STRICT: &str = "1.0";
const OLD: &str = "0.97";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(algorithm: &str, bytes: &[u8]) -> String {
    use sha2::Digest as _;
    match algorithm {
        "md5" => hex(&md5::Md5::digest(bytes)),
        "sha256" => hex(&sha2::Sha256::digest(bytes)),
        _ => hex(&sha2::Sha512::digest(bytes)),
    }
}

/// A bag that is made as given, valid or not.
struct Bag {
    tree: Tree,
}

impl Bag {
    fn new(version: &str) -> Self {
        let bag = Self { tree: Tree::new() };
        let text = format!("BagIt-Version: {version}\nTag-File-Character-Encoding: UTF-8\n");
        bag.file("bagit.txt", text)
    }

    /// Version, one file, one manifest: valid.
    fn plain(version: &str) -> Self {
        Self::new(version).payload("data/a", "one").lines("manifest-sha512.txt", &["data/a"])
    }

    fn file(self, name: impl AsRef<OsStr>, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.tree.root().join(name.as_ref());
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("make folders");
        std::fs::write(path, bytes).expect("write");
        self
    }

    fn payload(self, name: &str, bytes: &str) -> Self {
        self.file(name, bytes)
    }

    /// A manifest with a line for each name, of the content that the file of
    /// that name has.
    fn lines(self, manifest: &str, names: &[&str]) -> Self {
        let lines: Vec<_> = names.iter().map(|name| (*name, *name)).collect();
        self.spelled(manifest, &lines)
    }

    /// The same with names spelled otherwise in the manifest.
    fn spelled(self, manifest: &str, lines: &[(&str, &str)]) -> Self {
        let algorithm = manifest.trim_end_matches(".txt").rsplit('-').next().expect("a name");
        let mut text = Vec::new();
        for (spelled, name) in lines {
            let content = std::fs::read(self.tree.root().join(name)).unwrap_or_default();
            text.extend(format!("{}  {spelled}\n", digest(algorithm, &content)).into_bytes());
        }
        self.file(manifest, text)
    }

    fn without(self, name: &str) -> Self {
        std::fs::remove_file(self.tree.path(name)).expect("remove");
        self
    }

    fn verify(&self) -> Report {
        let root = self.tree.root().as_os_str();
        fsure_json(&["verify".as_ref(), root, "--against".as_ref(), root])
    }
}

fn assert_valid(case: &str, bag: &Bag) -> Report {
    let report = bag.verify();
    assert_eq!(report.code, 0, "{case}: {report:?}");
    report
}

/// The exit code, and the message.
fn assert_invalid(case: &str, bag: &Bag, code: i32, expected: &str) {
    let report = bag.verify();
    assert_eq!(report.code, code, "{case}: {report:?}");
    let reported = report
        .path_verdicts()
        .iter()
        .any(|(path, verdict)| format!("{verdict} {path}") == expected);
    assert!(reported || report.stderr.contains(expected), "{case}: {report:?}");
}

#[test]
fn valid_bags() {
    for version in [OLD, "0.93", "0.96", STRICT] {
        assert_valid(version, &Bag::plain(version));
    }
    let bag = Bag::plain(STRICT).lines("manifest-sha256.txt", &["data/a"]);
    assert_valid("two manifests", &bag);
    let bag = bag.file("bag-info.txt", "Payload-Oxum: 3.1\n").lines(
        "tagmanifest-md5.txt",
        &["bagit.txt", "bag-info.txt", "manifest-sha256.txt", "manifest-sha512.txt"],
    );
    assert_valid("a tag manifest", &bag);
    let bag =
        Bag::new(STRICT).payload("data/bagit.txt", "x").payload("data/data/manifest-md5.txt", "y");
    let bag = bag.lines("manifest-sha512.txt", &["data/bagit.txt", "data/data/manifest-md5.txt"]);
    assert_valid("a bag in a bag", &bag);
    let bag = Bag::plain(STRICT);
    let text = String::from_utf8(bag.tree.read("manifest-sha512.txt")).expect("text");
    let upper = text.to_uppercase().replace("DATA/A", "data/a");
    assert_valid("upper case", &bag.file("manifest-sha512.txt", upper));
    let tabs = text.replace("  ", "\t \t").replace('\n', "\r\n");
    assert_valid("tabs, line ends", &Bag::plain(STRICT).file("manifest-sha512.txt", tabs));
    // Nothing says what is fetched by now.
    let bag = Bag::plain(STRICT).file("fetch.txt", "http://localhost/a - data/a\r\n");
    assert_valid("what was to be fetched is there", &bag);
    let bag = Bag::plain(OLD)
        .file("bagit.txt", "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-16\n");
    let text = String::from_utf8(bag.tree.read("manifest-sha512.txt")).expect("text");
    let text = format!("\u{feff}{text}");
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_valid("UTF-16", &bag.file("manifest-sha512.txt", wide));
    let latin = [digest("md5", b"x").as_bytes(), b" data/\xe9\n"].concat();
    let bag = Bag::new(OLD).payload("data/\u{e9}", "x").file("manifest-md5.txt", latin);
    assert_valid("ISO-8859-1", &bag);
}

#[test]
fn names_are_encoded_from_version_1_on() {
    let variants: &[(&str, &str, &str)] = &[
        (STRICT, "data/a%0Ab", "data/a\nb"),
        (STRICT, "data/a%0ab", "data/a\nb"),
        (STRICT, "data/a%0Db", "data/a\rb"),
        (STRICT, "data/a%25b", "data/a%b"),
        (STRICT, "data/a%250Ab", "data/a%0Ab"),
        // Nothing else is encoded, whatever it looks like.
        (STRICT, "data/a%41b", "data/a%41b"),
        (STRICT, "data/%7Ea", "data/%7Ea"),
        // By programs that encode no percent sign.
        (STRICT, "data/100%", "data/100%"),
        (STRICT, "data/a%25", "data/a%25"),
        (OLD, "data/a%25b", "data/a%25b"),
        (OLD, "data/a%0Ab", "data/a%0Ab"),
        (OLD, "data/a%0Ab", "data/a\nb"),
        (OLD, "data/ a  b ", "data/ a  b "),
    ];
    for (version, spelled, name) in variants {
        let bag = Bag::new(version).payload(name, "x");
        let bag = bag.spelled("manifest-sha512.txt", &[(spelled, name)]);
        let report = assert_valid(&format!("{version} {spelled:?} for {name:?}"), &bag);
        assert_eq!(report.count("ok"), 1, "{report:?}");
    }
    // Both are there: each line is about its own.
    let bag = Bag::new(STRICT).payload("data/a%25", "1").payload("data/a%", "2");
    let lines = [("data/a%2525", "data/a%25"), ("data/a%25", "data/a%")];
    assert_valid("two percent signs", &bag.spelled("manifest-sha512.txt", &lines));
}

#[test]
fn what_is_missing_damaged_or_not_listed() {
    let bag = Bag::plain(STRICT).without("data/a");
    assert_invalid("missing", &bag, 1, "missing data/a");
    let bag = Bag::plain(STRICT).payload("data/b", "extra");
    assert_invalid("extra payload", &bag, 1, "new data/b");
    let bag = Bag::plain(STRICT).payload("data/a", "two");
    assert_invalid("damaged", &bag, 3, "mismatch data/a");
    // As archives date what they unpack.
    bag.tree.set_mtime("data/a", 1_600_000_000_000_000_000);
    assert_invalid("damaged, with a date of whole seconds", &bag, 3, "mismatch data/a");
    let bag =
        Bag::plain(STRICT).lines("tagmanifest-md5.txt", &["bagit.txt", "manifest-sha512.txt"]);
    let broken = Bag { tree: bag.tree }
        .file("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: utf-8\n");
    assert_invalid("a damaged tag file", &broken, 3, "mismatch bagit.txt");
    let bag = Bag::plain(OLD).lines("tagmanifest-md5.txt", &["bagit.txt", "bag-info.txt"]);
    assert_invalid("a missing tag file", &bag, 1, "missing bag-info.txt");
    let bag =
        Bag::plain(STRICT).file("fetch.txt", "http://localhost/a - data/a\n").without("data/a");
    assert_invalid("not fetched yet", &bag, 1, "missing data/a");
    let names = ["data/a", "data/b"];
    let bag = Bag::plain(STRICT).payload("data/b", "2");
    let bag = bag.lines("manifest-sha512.txt", &names).lines("manifest-md5.txt", &names[..1]);
    assert_invalid("not in each manifest", &bag, 6, "data/b is not in its manifest of md5");
    let bag = Bag::plain(OLD).payload("data/b", "2");
    let bag = bag.lines("manifest-sha512.txt", &names).lines("manifest-md5.txt", &names[..1]);
    assert_valid("not in each manifest, before 1.0", &bag);
}

#[test]
fn declarations_that_are_none() {
    let encoding = "Tag-File-Character-Encoding: UTF-8\n";
    for (case, text, expected) in [
        ("a mark", format!("\u{feff}BagIt-Version: 0.97\n{encoding}"), "bagit.txt:1: it begins"),
        ("a version", format!("BagIt-Version: .97\n{encoding}"), "bagit.txt:1: its version"),
        ("a blank", format!("BagIt-Version : 1.0\n{encoding}"), "bagit.txt:1: its first line"),
        ("no encoding", "BagIt-Version: 0.97\n".to_owned(), "bagit.txt:1: its second line"),
        ("empty", String::new(), "bagit.txt:1: its first line"),
    ] {
        assert_invalid(case, &Bag::plain(STRICT).file("bagit.txt", text), 6, expected);
    }
    let bag = Bag::plain(OLD).without("bagit.txt");
    assert_invalid("none", &bag, 6, "bagit.txt: there is no bagit.txt");
}

#[test]
fn no_line_leads_out_of_the_bag() {
    let sha512 = digest("sha512", b"one");
    for (path, expected) in [
        ("../a", "a path with '..'"),
        ("data/../../a", "a path with '..'"),
        ("/tmp/a", "an absolute path"),
        ("~/a", "~/a is not below data/"),
        ("~root/a", "~root/a is not below data/"),
        ("bagit.txt", "bagit.txt is not below data/"),
        ("data//a", "a path with an empty component"),
        ("data", "data is not below data/"),
        ("C:\\a", "is not below data/"),
        ("\\\\server\\a", "is not below data/"),
    ] {
        for version in [OLD, STRICT] {
            let bag = Bag::plain(version);
            let mut text = bag.tree.read("manifest-sha512.txt");
            text.extend(format!("{sha512}  {path}\n").into_bytes());
            let bag = bag.file("manifest-sha512.txt", text);
            assert_invalid(path, &bag, 6, "manifest-sha512.txt:2: ");
            assert_invalid(path, &bag, 6, expected);
        }
        let bag = Bag::plain(OLD).file("fetch.txt", format!("http://localhost/a - {path}\n"));
        assert_invalid(path, &bag, 6, "fetch.txt:1: ");
    }
    let bag = Bag::plain(OLD).file("fetch.txt", "http://localhost/a data/a\n");
    assert_invalid("no length", &bag, 6, "fetch.txt:1: not 'URL LENGTH PATH'");
    let bag = Bag::plain(STRICT).lines("tagmanifest-md5.txt", &["bagit.txt", "data/a"]);
    assert_invalid("payload as a tag", &bag, 6, "data/a is payload");
    let bag = Bag::plain(STRICT).file("tagmanifest-sha256.txt", "");
    let bag = bag.lines("tagmanifest-md5.txt", &["bagit.txt", "tagmanifest-sha256.txt"]);
    assert_invalid("a tag manifest as a tag", &bag, 6, "is a tag manifest");
}

#[test]
fn lines_that_are_there_twice() {
    let one = digest("sha512", b"one");
    let two = digest("sha512", b"two");
    let twice = |version, first: &str, second: &str| {
        Bag::plain(version)
            .file("manifest-sha512.txt", format!("{first}  data/a\n{second}  data/a\n"))
    };
    for version in [OLD, STRICT] {
        let bag = twice(version, &one, &two);
        assert_invalid("different digests", &bag, 6, ":2: data/a is listed twice, with different");
    }
    assert_invalid("twice", &twice(STRICT, &one, &one), 6, ":2: data/a is listed twice");
    let report = assert_valid("twice, before 1.0", &twice(OLD, &one, &one));
    assert!(report.stderr.contains(":2: data/a is listed twice"), "{}", report.stderr);
}

#[test]
fn what_is_worth_a_word_and_no_more() {
    let bag = Bag::plain(OLD);
    let marked = format!("{} *data/a\n", digest("sha512", b"one"));
    assert_valid("by md5sum", &bag.file("manifest-sha512.txt", marked));
    let dotted = format!("{}  ./data/a\n", digest("sha512", b"one"));
    assert_valid("a dot", &Bag::plain(OLD).file("manifest-sha512.txt", dotted));
    // One file under either Unicode form of its name, once or twice.
    let (composed, decomposed) = ("data/\u{e9}", "data/e\u{301}");
    let bag = Bag::new(OLD).payload(composed, "x");
    let bag = bag.spelled("manifest-md5.txt", &[(decomposed, composed)]);
    assert_valid("normalised on its way", &bag);
    let bag = bag.spelled("manifest-md5.txt", &[(composed, composed), (decomposed, composed)]);
    let report = assert_valid("in both forms", &bag);
    assert!(report.stderr.contains("is listed twice"), "{}", report.stderr);
    // Where both are there, they are two files.
    let bag = Bag::new(OLD).payload(composed, "x").payload(decomposed, "y");
    let bag = bag.lines("manifest-md5.txt", &[composed, decomposed]);
    assert_eq!(assert_valid("two files", &bag).count("ok"), 2);
    // A name of another case is another file here, and it is not there.
    let bag = Bag::plain(OLD);
    let bag = bag.spelled("manifest-sha512.txt", &[("data/a", "data/a"), ("data/A", "data/a")]);
    assert_invalid("another case", &bag, 1, "missing data/A");
    // A name that is not UTF-8 stands as it is.
    let name = OsStr::from_bytes(b"data/\xff\xfe");
    let line = [digest("md5", b"x").as_bytes(), b"  data/\xff\xfe\n"].concat();
    let bag = Bag::new(OLD).file(name, "x").file("manifest-md5.txt", line);
    assert_valid("no UTF-8", &bag);
}
