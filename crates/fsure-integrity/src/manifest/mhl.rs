//! ASC Media Hash List, version 2: XML, as the film industry's tools write it.
//! Reading goes from event to event; the one thing held is the entry at hand.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use jiff::Timestamp;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion, escape::escape};

use super::entry::{EntrySink, ListedMtime, ManifestEntry, ManifestItem};
use super::escaping;
use fsure_core::digest::hex;
use fsure_core::{Algorithm, Digests, Error, Result};

/// The digits of base 58 in the order of their values: digits and letters, without 0, O,
/// I and l.
const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Digits of 512 bits in base 58.
const C4_DIGITS: usize = 88;

/// Reads a manifest.
pub(super) fn read(input: &mut dyn BufRead, file: &Path, sink: &mut EntrySink<'_>) -> Result<()> {
    let line = Cell::new(1);
    let counted = CountedInput { input, line: &line };
    let mut reader = Reader::from_reader(counted);
    let mut state = ParserState::default();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = match reader.read_event_into(&mut buffer) {
            Ok(Event::Eof) => break,
            Ok(event) => event,
            Err(quick_xml::Error::Io(source)) => {
                let source = io::Error::new(source.kind(), source.to_string());
                return Err(Error::Io { doing: "read", path: file.to_owned(), source });
            }
            Err(error) => {
                return sink(ManifestItem::malformed(line.get(), format!("not XML: {error}")));
            }
        };
        match state.take(&event, line.get()) {
            Ok(Some(item)) => sink(item)?,
            Ok(None) => {}
            Err(Fault::Entry(reason)) => {
                state.entry = None;
                sink(ManifestItem::malformed(line.get(), reason))?;
            }
            Err(Fault::List(reason)) => return sink(ManifestItem::malformed(line.get(), reason)),
        }
    }
    if !state.has_ended {
        sink(ManifestItem::malformed(
            line.get(),
            "the list is cut off, or is not a media hash list",
        ))?;
    }
    Ok(())
}

/// Counts lines on their way to the XML reader, which does not.
struct CountedInput<'a> {
    input: &'a mut dyn BufRead,
    line: &'a Cell<u64>,
}

impl Read for CountedInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for CountedInput<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        let passed = self.input.fill_buf().unwrap_or_default();
        let passed = passed.iter().take(amount).filter(|byte| **byte == b'\n').count();
        self.line.set(self.line.get() + passed as u64);
        self.input.consume(amount);
    }
}

/// A fault: in one entry, or in the list, so that nothing behind it can be read.
enum Fault {
    Entry(String),
    List(String),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Entry(reason)
    }
}

#[derive(Default)]
struct ParserState {
    depth: usize,
    has_ended: bool,
    entry: Option<MhlEntry>,
    text: String,
}

#[derive(Default)]
struct MhlEntry {
    listed: ManifestEntry,
    name: Option<String>,
    /// True if the list marks the digest at hand as failed: files are not compared with it.
    is_failed: bool,
    foreign: Option<String>,
}

impl ParserState {
    fn take(
        &mut self,
        event: &Event<'_>,
        line: u64,
    ) -> std::result::Result<Option<ManifestItem>, Fault> {
        match event {
            // A second document, or what is left of one: what the list says ends before.
            event if self.has_ended && is_content(event) => {
                return Err(Fault::List("something follows the end of the list".into()));
            }
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_)
                if self.depth == 0 && is_content(event) =>
            {
                return Err(Fault::List("not XML: there is text before the list".into()));
            }
            Event::Start(start) => {
                self.depth += 1;
                self.text.clear();
                self.open(start, line)?;
            }
            Event::Empty(start) if self.depth == 0 => self.root(start)?,
            Event::Text(text) => self.text.push_str(&text.xml10_content()),
            Event::CData(text) => self.text.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|e| e.to_string())?;
                let named = || quick_xml::escape::resolve_predefined_entity(reference);
                match (character, named()) {
                    (Some(character), _) => self.text.push(character),
                    (None, Some(text)) => self.text.push_str(text),
                    (None, None) => return Err("an entity that XML does not know".to_owned())?,
                }
            }
            Event::End(end) => {
                self.depth = self.depth.saturating_sub(1);
                let item = self.close(end.local_name().as_ref())?;
                self.text.clear();
                return Ok(item);
            }
            _ => {}
        }
        Ok(None)
    }

    fn root(&self, start: &BytesStart<'_>) -> std::result::Result<(), Fault> {
        let version = attribute(start, "version")?;
        let is_list = start.local_name().as_ref() == "hashlist";
        if is_list && version.as_deref().is_some_and(|version| version.starts_with("2.")) {
            return Ok(());
        }
        Err(Fault::List("not a media hash list of version 2".to_owned()))
    }

    fn open(&mut self, start: &BytesStart<'_>, line: u64) -> std::result::Result<(), Fault> {
        if self.depth == 1 {
            return self.root(start);
        }
        match (start.local_name().as_ref(), &mut self.entry) {
            ("hash", None) => {
                let listed = ManifestEntry { line, ..ManifestEntry::default() };
                self.entry = Some(MhlEntry { listed, ..MhlEntry::default() });
            }
            ("path", Some(entry)) => {
                if let Some(size) = attribute(start, "size")? {
                    entry.listed.size =
                        Some(size.parse().map_err(|_| "size is not a number".to_owned())?);
                }
                if let Some(date) = attribute(start, "lastmodificationdate")? {
                    entry.listed.modified = Some(modified(&date)?);
                }
            }
            (_, Some(entry)) => {
                entry.is_failed = attribute(start, "action")?.as_deref() == Some("failed");
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> std::result::Result<Option<ManifestItem>, Fault> {
        self.has_ended |= self.depth == 0;
        let Some(entry) = &mut self.entry else { return Ok(None) };
        let text = self.text.trim();
        match name {
            "hash" => {
                let entry = self.entry.take().unwrap_or_default();
                return finished(entry).map(Some).map_err(Fault::Entry);
            }
            // Blanks at either end are part of a name.
            "path" => entry.name = Some(std::mem::take(&mut self.text)),
            // Of such a value the list itself says that it was not the right one.
            _ if entry.is_failed => {}
            "c4" => {
                let value = from_c4(text).ok_or("not a C4 digest of 88 digits")?;
                entry.listed.digests.insert(Algorithm::Sha512, &value);
            }
            "md5" | "sha1" | "xxh128" => {
                let algorithm = escaping::algorithm(name).expect("one of these");
                let value = escaping::digest(algorithm, text.as_bytes())?;
                entry.listed.digests.insert(algorithm, &value);
            }
            "xxh64" | "xxh3" => entry.foreign = Some(name.to_owned()),
            _ => {}
        }
        Ok(None)
    }
}

/// Returns whether there is more to an event than blanks and comments, which may be
/// around the list itself.
fn is_content(event: &Event<'_>) -> bool {
    match event {
        Event::Text(text) => {
            let is_blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
            !text.xml10_content().chars().all(is_blank)
        }
        Event::Comment(_) | Event::PI(_) => false,
        _ => true,
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Entry(reason.to_owned())
    }
}

fn finished(entry: MhlEntry) -> std::result::Result<ManifestItem, String> {
    let name = entry.name.ok_or("an entry without a path")?;
    let path = escaping::path(name.as_bytes())?;
    if entry.listed.digests != Digests::default() {
        return Ok(ManifestItem::Listed(ManifestEntry { path, ..entry.listed }));
    }
    let why = match entry.foreign {
        Some(name) => format!("{name} only, which fsure cannot compute"),
        None => "no digest that was verified".to_owned(),
    };
    Ok(ManifestItem::unsupported(entry.listed.line, format!("{} has {why}", path.display())))
}

fn attribute(start: &BytesStart<'_>, name: &str) -> std::result::Result<Option<String>, String> {
    let found = start.try_get_attribute(name).map_err(|error| error.to_string())?;
    let value = found.map(|attribute| {
        attribute.normalized_value(XmlVersion::Implicit1_0).map(|value| value.into_owned())
    });
    value.transpose().map_err(|error| error.to_string())
}

fn modified(date: &str) -> std::result::Result<ListedMtime, String> {
    let parsed = date.parse::<Timestamp>().ok();
    let time_ns = parsed.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    let time_ns = time_ns.ok_or("lastmodificationdate is not a date with a time zone")?;
    let fraction = date.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count().min(9) as u32;
    Ok(ListedMtime { time_ns, unit_ns: 10_i64.pow(9 - digits) })
}

/// A SHA-512 value as C4 (SMPTE ST 2114) spells it: one number in base 58.
fn c4(sha512: &[u8]) -> String {
    let mut digits = Vec::with_capacity(C4_DIGITS);
    for byte in sha512 {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    digits.resize(C4_DIGITS, 0);
    let digits = digits.iter().rev().map(|digit| char::from(BASE58[usize::from(*digit)]));
    format!("c4{}", digits.collect::<String>())
}

fn from_c4(text: &str) -> Option<[u8; 64]> {
    let digits = text.strip_prefix("c4").filter(|digits| digits.len() == C4_DIGITS)?;
    let mut value = [0_u8; 64];
    for digit in digits.bytes() {
        let mut carry = BASE58.iter().position(|known| *known == digit)? as u32;
        for byte in value.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    Some(value)
}

/// Writes what comes before the entries.
pub(super) fn begin(out: &mut dyn Write, made_s: i64, host: &str) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <hashlist version=\"2.0\" xmlns=\"urn:ASC:MHL:v2.0\">\n  <creatorinfo>\n    \
         <creationdate>{}</creationdate>\n    <hostname>{}</hostname>\n    \
         <tool version=\"{version}\">fsure</tool>\n  </creatorinfo>\n  <processinfo>\n    \
         <process>in-place</process>\n    <ignore>\n      <pattern>.DS_Store</pattern>\n      \
         <pattern>ascmhl</pattern>\n      <pattern>ascmhl/</pattern>\n      \
         <pattern>.fsure</pattern>\n    </ignore>\n  </processinfo>\n  <hashes>",
        date(i128::from(made_s) * 1_000_000_000),
        escape(host),
    )
}

/// Writes an entry.
pub(super) fn write(out: &mut dyn Write, listed: &ManifestEntry) -> io::Result<()> {
    let name = listed.path.as_text().unwrap_or_default();
    write!(out, "    <hash>\n      <path")?;
    if let Some(size) = listed.size {
        write!(out, " size=\"{size}\"")?;
    }
    if let Some(modified) = listed.modified {
        write!(out, " lastmodificationdate=\"{}\"", date(i128::from(modified.time_ns)))?;
    }
    writeln!(out, ">{}</path>", escape(name))?;
    let digests = [
        ("c4", listed.digests.get(Algorithm::Sha512).map(c4)),
        ("md5", listed.digests.get(Algorithm::Md5).map(hex)),
        ("sha1", listed.digests.get(Algorithm::Sha1).map(hex)),
        ("xxh128", listed.digests.get(Algorithm::Xxh128).map(hex)),
    ];
    for (name, value) in digests {
        if let Some(value) = value {
            writeln!(out, "      <{name} action=\"original\">{value}</{name}>")?;
        }
    }
    writeln!(out, "    </hash>")
}

/// Writes what comes behind the entries.
pub(super) fn end(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"  </hashes>\n</hashlist>\n")
}

/// The chain of a history whose only manifest, of that name, has that SHA-512.
pub fn chain(manifest: &str, sha512: &[u8]) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ascmhldirectory xmlns=\"urn:ASC:MHL:DIRECTORY:v2.0\">\n  <hashlist sequencenr=\"1\">\n    \
         <path>{}</path>\n    <c4>{}</c4>\n  </hashlist>\n</ascmhldirectory>\n",
        escape(manifest),
        c4(sha512),
    )
}

fn date(time_ns: i128) -> String {
    let time = Timestamp::from_nanosecond(time_ns).expect("jiff knows the years -9999 to 9999");
    time.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of no bytes, from the C4 framework's own documents.
    #[test]
    fn c4_is_sha512_in_another_encoding() {
        let of_nothing = escaping::from_hex(
            b"cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
              47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        );
        let text = "c459dsjfscH38cYeXXYogktxf4Cd9ibshE3BHUo6a58hBXmRQdZrAkZzsWcbWtDg5oQstpDuni4Hirj75GEmTc1sFT";
        let of_nothing = of_nothing.unwrap();
        assert_eq!(c4(&of_nothing), text);
        assert_eq!(from_c4(text).as_ref().map(<[u8; 64]>::as_slice), Some(&of_nothing[..]));
        assert_eq!(from_c4(&c4(&[0; 64])), Some([0; 64]));
        assert_eq!(from_c4(&c4(&[255; 64])), Some([255; 64]));
        assert_eq!(from_c4(&format!("c4{}", "z".repeat(88))), None);
        assert_eq!(from_c4("c4abc"), None);
    }
}
