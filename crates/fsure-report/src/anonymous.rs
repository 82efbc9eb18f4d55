//! Takes out of an output what says whose it is, before it is read: names of machines and
//! users, serial numbers, identifiers of devices and keys, and all of a root's path but its
//! last part. It works on the lines and not on the page, so that no part of the page can
//! forget it.

use std::io::{self, BufRead, Read};

use serde_json::Value;

use fsure_measure::results::LINE_BYTES_MAX;

/// Fields whose value identifies a person, a machine or a device.
const SECRETS: [&str; 10] =
    ["host", "hostname", "serial", "wwn", "uuid", "user", "owner", "key", "signed_with", "catalog"];

/// Fields that hold the path of a root or of what was measured.
const ROOTS: [&str; 3] = ["root", "target", "folder"];

/// Folders whose next part is the name of a user, or of a medium.
const USER_FOLDERS: [&str; 5] = ["/run/media", "/run/user", "/home", "/Users", "/media"];

/// Stands for what was taken out.
pub(crate) use fsure_measure::results::LEFT_OUT;

/// An output without what says whose it is.
pub struct Anonymous<R> {
    input: R,
    line: io::Cursor<Vec<u8>>,
    names: Names,
}

impl<R: BufRead> Anonymous<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Self {
        Self { input, line: io::Cursor::default(), names: Names::default() }
    }

    /// Reads the next line. One that is too long, or is no line of fsure, is passed on as it
    /// is: the reader behind refuses it and shows none of it.
    fn read_line(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        (&mut self.input).take(LINE_BYTES_MAX + 2).read_until(b'\n', &mut bytes)?;
        if let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) {
            self.names.learn(&value);
            self.names.clean(&mut value);
            let has_end = bytes.last() == Some(&b'\n');
            bytes = serde_json::to_vec(&value)?;
            bytes.extend(has_end.then_some(b'\n'));
        }
        self.line = io::Cursor::new(bytes);
        Ok(())
    }
}

impl<R: BufRead> Read for Anonymous<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Anonymous<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.line.fill_buf()?.is_empty() {
            self.read_line()?;
        }
        self.line.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.line.consume(amount);
    }
}

/// Names that the lines so far have told, and what stands for each.
#[derive(Default)]
struct Names {
    /// The longest first, so that a root in another one is found.
    known: Vec<(String, String)>,
}

impl Names {
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (field, value) in fields {
                    match value.as_str() {
                        Some(path) if ROOTS.contains(&field.as_str()) => self.add_root(path),
                        Some(name) if SECRETS.contains(&field.as_str()) => {
                            self.add(name, LEFT_OUT.to_owned());
                        }
                        _ if field == "targets" => self.learn_targets(value),
                        _ => self.learn(value),
                    }
                }
            }
            // A pair of name and value.
            Value::Array(list) => match list.as_slice() {
                [Value::String(name), Value::String(value)] if SECRETS.contains(&name.as_str()) => {
                    self.add(value, LEFT_OUT.to_owned());
                }
                _ => list.iter().for_each(|one| self.learn(one)),
            },
            _ => {}
        }
    }

    fn learn_targets(&mut self, targets: &Value) {
        for target in targets.as_array().into_iter().flatten() {
            self.add_root(target["path"].as_str().unwrap_or_default());
        }
    }

    /// Keeps a root under its last part, with a number if another root has the same.
    fn add_root(&mut self, root: &str) {
        if !root.contains('/') || root == "/" || self.is_known(root) {
            return;
        }
        let last = root.trim_end_matches('/').rsplit('/').next().unwrap_or(LEFT_OUT);
        let is_taken = |name: &str| self.known.iter().any(|(_, other)| other == name);
        let numbered = (2..).map(|number| format!("{last} ({number})"));
        let name = std::iter::once(last.to_owned()).chain(numbered).find(|name| !is_taken(name));
        self.add(root.trim_end_matches('/'), name.unwrap_or_default());
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.iter().any(|(known, _)| known == name.trim_end_matches('/'))
    }

    fn add(&mut self, name: &str, shown: String) {
        if name.chars().count() < 2 || name == LEFT_OUT || self.is_known(name) {
            return;
        }
        let length = name.len();
        let place = self.known.iter().take_while(|(known, _)| known.len() >= length).count();
        self.known.insert(place, (name.to_owned(), shown));
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean_text(text),
            Value::Array(list) => list.iter_mut().for_each(|one| self.clean(one)),
            Value::Object(fields) => {
                let mut stale = Vec::new();
                for (field, value) in fields.iter_mut() {
                    let before = value.as_str().map(str::to_owned);
                    self.clean(value);
                    if before.is_some() && before.as_deref() != value.as_str() {
                        // The same text as bytes.
                        stale.push(format!("{field}_bytes"));
                    }
                }
                stale.iter().for_each(|field| drop(fields.remove(field)));
            }
            _ => {}
        }
    }

    fn clean_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, shown) in &self.known {
            text = replace_word(&text, name, shown);
        }
        for folder in USER_FOLDERS {
            text = without_user(&text, folder);
        }
        without_ids(&text)
    }
}

/// Replaces a name where it is not a part of a longer word.
fn replace_word(text: &str, name: &str, shown: &str) -> String {
    let (mut clean, mut rest) = (String::new(), text);
    while let Some(place) = rest.find(name) {
        let (before, found) = rest.split_at(place);
        let after = &found[name.len()..];
        let is_letter = |c: char| c.is_alphanumeric();
        let last = before.chars().next_back().or(clean.chars().next_back());
        let is_inside = last.is_some_and(is_letter) || after.chars().next().is_some_and(is_letter);
        clean += before;
        clean += if is_inside { name } else { shown };
        rest = after;
    }
    clean + rest
}

/// Takes out the part of a path behind a folder that has one folder for each user.
fn without_user(text: &str, folder: &str) -> String {
    let (mut clean, mut rest) = (String::new(), text);
    let begin = format!("{folder}/");
    while let Some(place) = rest.find(&begin) {
        let (before, found) = rest.split_at(place + begin.len());
        clean += before;
        let is_end = |c: char| c == '/' || c.is_whitespace() || "'\":;,".contains(c);
        rest = &found[found.find(is_end).unwrap_or(found.len())..];
        clean += "…";
    }
    clean + rest
}

/// Takes out words that look like the identifier of a file system or of a device.
fn without_ids(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let mut clean = String::new();
    for part in text.split_inclusive(|c| !is_word(c)) {
        let word = part.trim_end_matches(|c| !is_word(c));
        let begins = ["eui.", "naa.", "wwn-", "nvme-eui", "CRYPT-", "LVM-", "luks-"];
        let is_id = is_uuid(word) || begins.iter().any(|begin| word.starts_with(begin));
        clean += if is_id { LEFT_OUT } else { word };
        clean += &part[word.len()..];
    }
    clean
}

/// Returns true for `8-4-4-4-12` hexadecimal digits, and for 32 of them.
fn is_uuid(word: &str) -> bool {
    let digits = word.chars().filter(|c| c.is_ascii_hexdigit()).count();
    let parts: Vec<_> = word.split('-').map(str::len).collect();
    digits == 32 && (parts == [32] || parts == [8, 4, 4, 4, 12])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(lines: &str) -> String {
        let mut text = String::new();
        Anonymous::new(lines.as_bytes()).read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn names_of_machines_users_and_roots_are_gone() {
        let text = clean(concat!(
            r#"{"type":"start","host":"nas","roots":[{"root":"/srv/max/photos"}]}"#,
            "\n",
            r#"{"type":"warning","message":"nas: /srv/max/photos/a and /home/max/b, nasty"}"#,
            "\n",
            r#"{"type":"finding","root":"/srv/max/photos","path":"max/nas.jpg"}"#,
            "\n",
            r#"{"type":"layer","facts":[["serial","S3RI4L"],["model","M"]],"name":"S3RI4L"}"#,
            "\n",
            r#"{"id":"0f0e0d0c-1111-2222-3333-444455556666","d":"naa.5000c500"}"#,
        ));
        for part in ["\"nas\"", "nas:", "/srv", "/home/max", "S3RI4L", "444455556666", "c500"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
        for part in ["photos/a and /home/…/b", "nasty", "\"root\":\"photos\"", "[\"model\",\"M\"]"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(text.lines().count(), 5, "lines keep their numbers");
    }

    #[test]
    fn two_roots_of_one_name_are_told_apart() {
        let text = clean(
            "{\"roots\":[{\"root\":\"/a/p\"},{\"root\":\"/b/p\"}]}\n{\"root\":\"/b/p\"}\n{\"root\":\"/a/p\"}",
        );
        let last: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(last, [r#"{"root":"p (2)"}"#, r#"{"root":"p"}"#]);
    }

    #[test]
    fn bytes_of_a_changed_path_are_gone_and_those_of_others_stay() {
        let text = clean(
            "{\"targets\":[{\"path\":\"/srv/x\",\"path_bytes\":\"AA\"}],\"path\":\"y\",\"path_bytes\":\"BB\"}",
        );
        assert!(!text.contains("AA") && text.contains("BB"), "{text}");
    }

    #[test]
    fn a_line_that_is_none_is_passed_on() {
        assert_eq!(clean("oops\n{\"host\":"), "oops\n{\"host\":");
    }
}
