//! Numbers for names: the kernel speaks of files by numbers that we give out,
//! and a number means the same file for as long as it knows it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fuser::INodeNo;

/// Paths below the folder that is shown, by number and back.
#[derive(Debug)]
pub(super) struct Nodes {
    paths: HashMap<INodeNo, PathBuf>,
    numbers: HashMap<PathBuf, INodeNo>,
    /// How often the kernel was told of each.
    told: HashMap<INodeNo, u64>,
    last: u64,
}

impl Nodes {
    pub(super) fn new() -> Self {
        let (root, top) = (INodeNo::ROOT, PathBuf::new());
        Self {
            paths: HashMap::from([(root, top.clone())]),
            numbers: HashMap::from([(top, root)]),
            told: HashMap::new(),
            last: root.0,
        }
    }

    /// The path of a number; `None` where it is gone.
    pub(super) fn path(&self, number: INodeNo) -> Option<&Path> {
        self.paths.get(&number).map(PathBuf::as_path)
    }

    /// The path of a name in a folder.
    pub(super) fn child(&self, parent: INodeNo, name: &OsStr) -> Option<PathBuf> {
        self.path(parent).map(|parent| parent.join(name))
    }

    /// The number of a path that the kernel is about to be told of.
    pub(super) fn tell(&mut self, path: PathBuf) -> INodeNo {
        let number = *self.numbers.entry(path).or_insert_with_key(|path| {
            self.last += 1;
            self.paths.insert(INodeNo(self.last), path.clone());
            INodeNo(self.last)
        });
        *self.told.entry(number).or_default() += 1;
        number
    }

    /// The kernel does not know so many of its tellings any more.
    pub(super) fn forget(&mut self, number: INodeNo, times: u64) {
        let Some(told) = self.told.get_mut(&number) else { return };
        *told = told.saturating_sub(times);
        if *told > 0 {
            return;
        }
        self.told.remove(&number);
        if let Some(path) = self.paths.remove(&number) {
            // Another file may have the name by now.
            self.numbers.retain(|one, other| *one != path || *other != number);
        }
    }

    /// A name is gone; who has its number still may keep using it.
    pub(super) fn removed(&mut self, path: &Path) {
        self.numbers.remove(path);
    }

    /// A name, and all below it, is another now.
    pub(super) fn renamed(&mut self, from: &Path, to: &Path) {
        self.removed(to);
        let moved: Vec<_> =
            self.numbers.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for old in moved {
            let below = old.strip_prefix(from).expect("just seen");
            // An empty rest would leave a slash at the end.
            let new = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            let number = self.numbers.remove(&old).expect("just seen");
            self.paths.insert(number, new.clone());
            self.numbers.insert(new, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_their_files() {
        let mut nodes = Nodes::new();
        let [folder, file, other] = ["a", "a/b", "c"].map(|path| nodes.tell(path.into()));
        assert_eq!(nodes.tell("a/b".into()), file);
        nodes.renamed(Path::new("a"), Path::new("x"));
        assert_eq!(
            (nodes.path(folder), nodes.path(file)),
            (Some("x".as_ref()), Some("x/b".as_ref()))
        );
        nodes.renamed(Path::new("c"), Path::new("x/b"));
        assert_eq!(nodes.path(other), Some(Path::new("x/b")));
        assert_eq!(nodes.tell("x/b".into()), other, "and not what it has replaced");
        nodes.forget(file, 1);
        assert!(nodes.path(file).is_some(), "told twice");
        nodes.forget(file, 1);
        assert_eq!(nodes.path(file), None);
        assert_eq!(nodes.tell("x/b".into()), other);
    }
}
