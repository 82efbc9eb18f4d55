//! One way to write any form: begin, entry by entry, end.

use std::io::{self, Write};

use sha2::{Digest as _, Sha512};

use super::entry::ManifestEntry;
use super::formats::ManifestFormat;
use super::{bagit_manifest, hashdeep, json, mhl, mtree, sums};
use fsure_core::RelPath;
use fsure_core::digest::hex;

/// Facts that some forms state about the list itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestHeader {
    /// Time at which the list is made, in seconds since 1970.
    pub made_s: i64,
    /// The host it is made on.
    pub host: String,
}

/// Takes the entries of a list one by one. The caller has asked
/// [`ManifestFormat::cannot_express`] of each, and each has the digest that
/// [`ManifestFormat::needs`] names.
pub struct ListWriter<'a> {
    format: ManifestFormat,
    out: &'a mut dyn Write,
    entries: u64,
    /// The folder of the last entry.
    folder: RelPath,
}

/// Begins a list.
pub fn writer<'a>(
    format: ManifestFormat,
    about: &ManifestHeader,
    out: &'a mut dyn Write,
) -> io::Result<ListWriter<'a>> {
    match format {
        ManifestFormat::Hashdeep => hashdeep::begin(out)?,
        ManifestFormat::Mtree => mtree::begin(out)?,
        ManifestFormat::Json => json::begin(out)?,
        ManifestFormat::AscMhl => mhl::begin(out, about.made_s, &about.host)?,
        _ => {}
    }
    Ok(ListWriter { format, out, entries: 0, folder: RelPath::root() })
}

impl ListWriter<'_> {
    /// Writes an entry.
    pub fn put(&mut self, listed: &ManifestEntry) -> io::Result<()> {
        self.entries += 1;
        let digest = self.format.needs().and_then(|needed| listed.digests.get(needed));
        let digest = digest.unwrap_or_default();
        match self.format {
            ManifestFormat::Hashdeep => {
                hashdeep::write(self.out, listed.size.unwrap_or(0), digest, &listed.path)
            }
            ManifestFormat::Bagit => {
                let path = [b"data/", listed.path.as_bytes()].concat();
                bagit_manifest::write(self.out, digest, &path)
            }
            ManifestFormat::Mtree => {
                mtree::write_folders(self.out, &mut self.folder, &listed.path)?;
                mtree::write(self.out, listed)
            }
            ManifestFormat::Json => json::write(self.out, listed),
            ManifestFormat::AscMhl => mhl::write(self.out, listed),
            _ => sums::write(self.out, digest, &listed.path),
        }
    }

    /// Ends the list.
    pub fn finish(self) -> io::Result<()> {
        match self.format {
            ManifestFormat::Json => json::end(self.out, self.entries)?,
            ManifestFormat::AscMhl => mhl::end(self.out)?,
            _ => {}
        }
        self.out.flush()
    }
}

/// The tag files that make a folder with `manifest-sha512.txt` and `data/` a
/// bag: their names and contents. `manifest` is the SHA-512 of the manifest.
pub fn bag_files(
    date: &str,
    bytes: u64,
    files: u64,
    manifest: &[u8],
) -> Vec<(&'static str, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n".to_owned();
    let info = format!(
        "Bag-Software-Agent: fsure {version}\nBagging-Date: {date}\nPayload-Oxum: {bytes}.{files}\n"
    );
    let line = |name: &str, digest: &[u8]| format!("{}  {name}\n", hex(digest));
    let tags = line("bag-info.txt", &Sha512::digest(&info))
        + &line("bagit.txt", &Sha512::digest(&declaration))
        + &line("manifest-sha512.txt", manifest);
    vec![("bagit.txt", declaration), ("bag-info.txt", info), ("tagmanifest-sha512.txt", tags)]
}
