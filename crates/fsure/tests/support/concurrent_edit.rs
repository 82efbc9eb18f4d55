//! Lets a test change a file while another process reads it, at moments that
//! a view ([`super::FaultyFs`]) can tell apart.

use std::path::Path;

/// An action of another process in the middle of a read, with a certainty that no
/// parallel thread has.
#[derive(Default)]
pub struct Meanwhile(Option<Box<Act>>);

type Act = dyn FnMut(&Path, Moment) + Send;

/// A request for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Lookup by its name.
    Name,
    /// Opening it.
    Open,
    /// Stat by inode: its name has been looked up before.
    Stat,
    /// Reading some of its content.
    Read,
}

impl Meanwhile {
    /// Calls this at each moment, with the file's path below the root.
    pub fn new(act: impl FnMut(&Path, Moment) + Send + 'static) -> Self {
        Self(Some(Box::new(act)))
    }

    pub(super) fn act(&mut self, path: &Path, moment: Moment) {
        if let Some(act) = &mut self.0 {
            act(path, moment);
        }
    }
}

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Meanwhile").field(&self.0.is_some()).finish()
    }
}
