//! Carriers of copies of the record beside the data; see `docs/layouts.md`.

/// The file in a folder that carries the record of the files in it.
pub const FOLDER_FILE: &str = ".fsure-folder.jsonl";

/// The name of that file until it is complete.
pub const FOLDER_FILE_MAKING: &str = ".fsure-folder.jsonl.making";

/// The attribute of a file that carries its record.
pub const FILE_ATTRIBUTE: &[u8] = b"user.fsure.record";

/// Returns true if a name in any folder is that of a carrier and not data.
pub fn is_carrier(name: &[u8]) -> bool {
    name == FOLDER_FILE.as_bytes() || name == FOLDER_FILE_MAKING.as_bytes()
}

/// The carrier of the record besides the catalog of the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SidecarKind {
    /// Nothing.
    #[default]
    Tree,
    /// A file in each folder.
    Folder,
    /// An attribute of each file.
    Xattr,
}

impl SidecarKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tree, Self::Folder, Self::Xattr];

    /// The word used on the command line and in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Folder => "folder",
            Self::Xattr => "xattr",
        }
    }

    /// The layout of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }
}

/// Layouts of which something may be left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidecarKinds(u8);

impl SidecarKinds {
    /// Returns true if this layout is among them.
    pub fn contains(self, layout: SidecarKind) -> bool {
        self.0 & 1 << layout as u8 != 0
    }

    /// Adds this layout; [`SidecarKind::Tree`] leaves nothing, so it is not added.
    pub fn with(self, layout: SidecarKind) -> Self {
        if layout == SidecarKind::Tree { self } else { Self(self.0 | 1 << layout as u8) }
    }

    /// Removes this layout.
    pub fn without(self, layout: SidecarKind) -> Self {
        Self(self.0 & !(1 << layout as u8))
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = SidecarKind> {
        SidecarKind::ALL.into_iter().filter(move |layout| self.contains(*layout))
    }

    /// Parses a list of names separated by commas; `None` if one of them is not
    /// the name of a layout.
    pub fn from_names(names: &str) -> Option<Self> {
        let mut layouts = names.split(',').map(SidecarKind::from_name);
        layouts.try_fold(Self::default(), |all, layout| Some(all.with(layout?)))
    }
}

/// Counts of carriers in a run: files in folders and attributes of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidecarCounts {
    /// Records taken from them, if there is no catalog.
    pub used: u64,
    /// Written.
    pub written: u64,
    /// Removed.
    pub removed: u64,
    /// Behind the catalog, in a run that writes none.
    pub behind: u64,
    /// Copies that give a file another digest for one size and date.
    pub conflicts: u64,
    /// Copies that fail their own digest.
    pub damaged: u64,
    /// Copies that could not be read, written or removed.
    pub refused: u64,
}
