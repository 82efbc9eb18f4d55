//! Detects names that are aliases of a listed name. A file system that
//! ignores case or Unicode form finds a file under every alias and lists
//! one name. If each recorded alias counted as an entry of its own, all of them
//! would be judged by the one file that is left of them.

use std::collections::HashSet;

use fsure_os::Stat;
use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::Root;

use fsure_core::RelPath;

/// The listing of the folder that was queried last: queries come in order.
#[derive(Default)]
pub(super) struct FolderCache {
    folder: Option<RelPath>,
    names: HashSet<Vec<u8>>,
    inodes: HashSet<(u64, u64)>,
}

impl FolderCache {
    /// Returns true if `path`, which the walk has not listed and the system
    /// resolves to `stat`, is an alias of a name in its folder.
    pub(super) fn is_alias(&mut self, root: &Root, path: &RelPath, stat: &Stat) -> bool {
        let Some(folder) = path.parent() else { return false };
        if self.folder.as_ref() != Some(&folder) {
            self.list(root, folder);
        }
        !self.names.contains(path.name()) && self.inodes.contains(&(stat.device, stat.inode))
    }

    fn list(&mut self, root: &Root, folder: RelPath) {
        self.names.clear();
        self.inodes.clear();
        // Of what cannot be listed nothing is known to be another's.
        let listing = root.list(folder.as_bytes(), LocateFiles::No, &|| ()).unwrap_or_default();
        for (at, stat) in &listing.entries {
            self.names.insert(listing.names.get(*at).to_vec());
            self.inodes.extend(stat.as_ref().ok().map(|stat| (stat.device, stat.inode)));
        }
        self.folder = Some(folder);
    }
}
