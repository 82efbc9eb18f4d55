//! Where files lie on the disk, and whether to find out.

/// Whether to find out where the files of a folder begin on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Places {
    /// No: they are not going to be read.
    #[default]
    No,
    /// Only if they are not in memory anyway.
    IfCold,
    /// Yes.
    Yes,
}
