//! What somebody else does to a file while it is being read, at moments that
//! a view ([`super::FaultyFs`]) can tell.

use std::path::Path;

/// Somebody else's doing in the middle of a read, as surely as no thread
/// beside it could bring it about.
#[derive(Default)]
pub struct Meanwhile(Option<Box<Act>>);

type Act = dyn FnMut(&Path, Moment) + Send;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Looked for by its name.
    Name,
    /// To be opened.
    Open,
    /// What it is, by inode: its name has been looked up before.
    Stat,
    /// Some of its content.
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
