//! The forms of lists: their names, which digests they need, and what they
//! cannot express.

use fsure_core::{Algorithm, AlgorithmSet, RelPath};

/// A form of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestFormat {
    /// `SHA256SUMS`, as `sha256sum` and `cksum` write it; read with any digest,
    /// tagged or not.
    Sha256sums,
    /// `SHA512SUMS`.
    Sha512sums,
    /// As `b3sum` writes it.
    B3sum,
    /// hashdeep 1.0.
    Hashdeep,
    /// Manifests of BagIt 1.0 (RFC 8493).
    Bagit,
    /// ASC Media Hash List, version 2.
    AscMhl,
    /// mtree(5).
    Mtree,
    /// fsure's own: JSON lines, with everything, of any name.
    Json,
    /// Sums by rclone, which escapes nothing. Read only.
    Rclone,
    /// An index of chkbit. Read only.
    Chkbit,
    /// CRC-32 in the manner of SFV. Read only.
    Sfv,
    /// The attributes that cshatag gives to files: a folder, and no list. Read
    /// only.
    Cshatag,
}

impl ManifestFormat {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Sha256sums,
        Self::Sha512sums,
        Self::B3sum,
        Self::Hashdeep,
        Self::Bagit,
        Self::AscMhl,
        Self::Mtree,
        Self::Json,
        Self::Rclone,
        Self::Chkbit,
        Self::Sfv,
        Self::Cshatag,
    ];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256sums => "sha256sums",
            Self::Sha512sums => "sha512sums",
            Self::B3sum => "b3sum",
            Self::Hashdeep => "hashdeep",
            Self::Bagit => "bagit",
            Self::AscMhl => "ascmhl",
            Self::Mtree => "mtree",
            Self::Json => "json",
            Self::Rclone => "rclone",
            Self::Chkbit => "chkbit",
            Self::Sfv => "sfv",
            Self::Cshatag => "cshatag",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns true if fsure writes this form.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::Rclone | Self::Chkbit | Self::Sfv | Self::Cshatag)
    }

    /// The digest without which no entry can be written; `None` for fsure's own form,
    /// which takes the digests there are.
    pub fn needs(self) -> Option<Algorithm> {
        match self {
            Self::Sha256sums | Self::Hashdeep | Self::Mtree => Some(Algorithm::Sha256),
            Self::Sha512sums | Self::Bagit => Some(Algorithm::Sha512),
            Self::B3sum => Some(Algorithm::Blake3),
            Self::AscMhl => Some(Algorithm::Xxh128),
            Self::Json | Self::Rclone | Self::Chkbit | Self::Sfv | Self::Cshatag => None,
        }
    }

    /// Returns the digests that have to be in the record for this form.
    pub fn digests(self) -> AlgorithmSet {
        self.needs().map_or(AlgorithmSet::default(), |needed| AlgorithmSet::of(&[needed]))
    }

    /// Returns true if the form is several files in a folder rather than one file.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::Bagit | Self::AscMhl)
    }

    /// Returns the reason why a name cannot be written; `None` if it can be written.
    pub fn cannot_express(self, path: &RelPath) -> Option<&'static str> {
        let bytes = path.as_bytes();
        let is_text = path.as_text().is_some();
        match self {
            Self::Hashdeep if bytes.contains(&b'\n') => {
                Some("hashdeep cannot hold a line feed in a name")
            }
            Self::Hashdeep if bytes.ends_with(b"\r") => {
                Some("hashdeep loses a carriage return at the end of a name")
            }
            Self::B3sum | Self::Bagit | Self::AscMhl if !is_text => {
                Some("the format cannot hold a name that is not UTF-8")
            }
            // `b3sum` takes the character for the trace of such a name.
            Self::B3sum if path.as_text()?.contains('\u{fffd}') => {
                Some("b3sum refuses a name with U+FFFD")
            }
            Self::AscMhl if !path.as_text()?.chars().all(is_xml) => {
                Some("XML cannot hold this control character")
            }
            _ => None,
        }
    }
}

/// Returns true for the characters that XML 1.0 allows, without the carriage return, tab
/// and line feed that readers turn into something else.
fn is_xml(c: char) -> bool {
    matches!(u32::from(c), 0x20..=0xd7ff | 0xe000..=0xfffd | 0x10000..=0x10_ffff)
}
