//! The option to determine the positions of files on the disk.

/// The option to determine the positions at which the files of a folder begin on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocateFiles {
    /// No: they are not going to be read.
    #[default]
    No,
    /// Only if they are not in memory anyway.
    IfCold,
    /// Yes.
    Yes,
}
