//! Tree of the folders that were seen. A folder in memory would save what all folders
//! below it would save, since it is bound whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use fsure_os::io_trace::{FolderIo, IoCounts, ProcessIo, TracedFolder};

/// A folder that is in use, or has one below it.
#[derive(Clone, Debug, Default)]
pub struct FolderNode {
    /// Path of the folder.
    pub path: PathBuf,
    /// Counts of what was done in it directly.
    pub own: IoCounts,
    /// The same with all that is below it.
    pub all: IoCounts,
    /// Processes that worked in it directly.
    pub own_processes: BTreeSet<ProcessIo>,
    /// Processes that worked in it or below it.
    pub processes: BTreeSet<ProcessIo>,
    /// Folders in it, in the order of their names.
    pub children: Vec<Self>,
}

/// Returns the nanoseconds for which programs waited for the device: all that memory can
/// save.
pub fn waited_ns(counts: &IoCounts) -> u64 {
    durable_ns(counts) + counts.missed_ns
}

/// Returns the nanoseconds for which programs waited for their writes to be durable.
pub fn durable_ns(counts: &IoCounts) -> u64 {
    counts.fsync_ns + counts.synced_write_ns
}

/// The tree below `/`, or whatever the first component is elsewhere.
pub(super) fn tree(folders: &[FolderIo]) -> FolderNode {
    let mut root = Branch::default();
    for folder in folders {
        let TracedFolder::At(path) = &folder.place else { continue };
        let mut branch = &mut root;
        for part in path.components().filter(|part| *part != Component::RootDir) {
            branch = branch.children.entry(PathBuf::from(part.as_os_str())).or_default();
        }
        branch.own.add(&folder.counts);
        branch.processes.extend(folder.processes.iter().cloned());
    }
    root.into_node(PathBuf::from("/"))
}

#[derive(Default)]
struct Branch {
    own: IoCounts,
    processes: BTreeSet<ProcessIo>,
    children: BTreeMap<PathBuf, Self>,
}

impl Branch {
    fn into_node(self, path: PathBuf) -> FolderNode {
        let (mut all, mut processes) = (self.own, self.processes.clone());
        let children = self.children.into_iter();
        let children: Vec<_> =
            children.map(|(name, branch)| branch.into_node(path.join(name))).collect();
        for child in &children {
            all.add(&child.all);
            processes.extend(child.processes.iter().cloned());
        }
        FolderNode { path, own: self.own, all, own_processes: self.processes, processes, children }
    }
}

/// The folders to give advice on, those with most to gain first: as small as
/// they can be while they hold nearly all of what there is to gain around them.
/// What is less than `least` is not worth any.
pub(super) fn candidates(root: &FolderNode, least: u64) -> Vec<&FolderNode> {
    let mut found = vec![];
    descend(root, least.max(1), &mut found);
    found.sort_by_key(|node| std::cmp::Reverse(waited_ns(&node.all)));
    found
}

/// Folders in which something was done directly, those with most bytes first.
pub(super) fn busiest(root: &FolderNode) -> Vec<&FolderNode> {
    let mut found = vec![];
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if bytes(&node.own) > 0 {
            found.push(node);
        }
        left.extend(&node.children);
    }
    found.sort_by_key(|node| std::cmp::Reverse(bytes(&node.own)));
    found
}

/// Returns the smallest folder with all that was written; `None` if nothing was.
pub(super) fn written(root: &FolderNode) -> Option<&FolderNode> {
    let is_written = |node: &FolderNode| written_bytes(&node.all) > 0;
    let mut node = Some(root).filter(|root| is_written(root))?;
    loop {
        let mut below = node.children.iter().filter(|child| is_written(child));
        match (written_bytes(&node.own) > 0, below.next(), below.next()) {
            (false, Some(child), None) => node = child,
            _ => return Some(node),
        }
    }
}

/// Returns the bytes that were written, by calls and by stores through mappings.
pub fn written_bytes(counts: &IoCounts) -> u64 {
    // Counts that were stored can be damaged, and must not end the program.
    counts.bytes_written.saturating_add(counts.bytes_mapped)
}

/// Returns the bytes that were read and written, by whatever means.
pub(super) fn bytes(counts: &IoCounts) -> u64 {
    counts.bytes_read.saturating_add(written_bytes(counts))
}

/// A folder is divided while one below it holds so much of its gain, percent.
const NEARLY_ALL: u64 = 80;

/// So high up there are other people's folders beside each other.
const SHALLOW: usize = 2;

fn descend<'a>(node: &'a FolderNode, least: u64, found: &mut Vec<&'a FolderNode>) {
    let here = waited_ns(&node.all);
    if here < least {
        return;
    }
    let holds_it = |child: &&FolderNode| waited_ns(&child.all) * 100 >= here * NEARLY_ALL;
    if let Some(child) = node.children.iter().find(holds_it) {
        return descend(child, least, found);
    }
    let own = waited_ns(&node.own);
    let is_shared = depth(&node.path) < SHALLOW || has_separate_programs(node, least);
    let is_one = !is_shared || own * 2 >= here;
    if is_one || own >= least {
        found.push(node);
    }
    if !is_one {
        for child in &node.children {
            descend(child, least, found);
        }
    }
}

/// Returns true if two folders below it that are worth advice have no program in common: a database
/// and a cache in the home of a user need advice of their own. The folders of one database are all
/// used by its program.
fn has_separate_programs(node: &FolderNode, least: u64) -> bool {
    let worth = node.children.iter().filter(|child| waited_ns(&child.all) >= least);
    let programs: Vec<BTreeSet<&str>> = worth
        .map(|child| child.processes.iter().map(|process| process.name.as_str()).collect())
        .collect();
    programs
        .iter()
        .enumerate()
        .any(|(place, one)| programs[place + 1..].iter().any(|other| one.is_disjoint(other)))
}

fn depth(path: &Path) -> usize {
    path.components().filter(|part| matches!(part, Component::Normal(_))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str, fsync_ns: u64, missed_ns: u64) -> FolderIo {
        let process = ProcessIo { name: "p".to_owned(), id: path.len() as u32 };
        FolderIo {
            place: TracedFolder::At(PathBuf::from(path)),
            counts: IoCounts { fsyncs: 1, fsync_ns, missed_ns, ..IoCounts::default() },
            processes: [process].into(),
        }
    }

    fn names(nodes: &[&FolderNode]) -> Vec<String> {
        nodes.iter().map(|node| node.path.display().to_string()).collect()
    }

    #[test]
    fn a_folder_has_what_is_below_it() {
        let unseen = TracedFolder::Unseen { device: (8, 1), ino: 2 };
        let gone = FolderIo { place: unseen, ..folder("/", 100, 0) };
        let all = [folder("/a/b", 3, 1), folder("/a", 5, 0), folder("/", 1, 0), gone];
        let root = tree(&all);
        assert_eq!((root.own.fsync_ns, root.all.fsync_ns, root.all.fsyncs), (1, 9, 3));
        let a = &root.children[0];
        assert_eq!((a.path.as_path(), waited_ns(&a.own)), (Path::new("/a"), 5));
        assert_eq!((waited_ns(&a.all), durable_ns(&a.all)), (9, 8));
        assert_eq!(a.processes.len(), 2);
        assert_eq!(a.children[0].path, Path::new("/a/b"));
    }

    #[test]
    fn advice_is_for_the_folder_that_holds_it_and_not_for_all_above() {
        // A database of many folders, beside a little of others'.
        let mut all: Vec<_> =
            (0..10).map(|n| folder(&format!("/var/lib/db/base/{n}"), 100, 0)).collect();
        all.push(folder("/var/lib/db/wal", 900, 0));
        all.push(folder("/var/lib/other", 30, 0));
        assert_eq!(names(&candidates(&tree(&all), 40)), ["/var/lib/db"]);
        // Two that have nothing to do with each other.
        all.push(folder("/home/user/project/.git", 1500, 0));
        let found = names(&candidates(&tree(&all), 40));
        assert_eq!(found, ["/var/lib/db", "/home/user/project/.git"]);
        assert!(candidates(&tree(&[folder("/a", 0, 0)]), 0).is_empty(), "nothing to gain");
    }

    #[test]
    fn folders_of_programs_that_have_nothing_in_common_have_advice_of_their_own() {
        let of = |path: &str, program: &str, fsync_ns| {
            let process = ProcessIo { name: program.to_owned(), id: path.len() as u32 };
            FolderIo { processes: [process].into(), ..folder(path, fsync_ns, 0) }
        };
        let mut all = vec![
            of("/home/ada/shop", "postgres", 500),
            of("/home/ada/cache/thumbs", "viewer", 300),
            of("/home/ada/notes", "editor", 20),
        ];
        let found = |all: &[FolderIo]| {
            let root = tree(all);
            candidates(&root, 40).iter().map(|node| node.path.clone()).collect::<Vec<_>>()
        };
        let apart = ["/home/ada/shop", "/home/ada/cache/thumbs"].map(PathBuf::from);
        assert_eq!(found(&all), apart, "what is not worth advice divides nothing");
        // One program uses both: they are one, as the folders of a database are.
        all[1] = of("/home/ada/cache/thumbs", "postgres", 300);
        assert_eq!(found(&all), [PathBuf::from("/home/ada")]);
    }

    #[test]
    fn the_folder_with_all_that_was_written_is_the_smallest_around_it() {
        let of = |path: &str, bytes_written, bytes_mapped| FolderIo {
            counts: IoCounts { bytes_written, bytes_mapped, bytes_read: 9, ..IoCounts::default() },
            ..folder(path, 0, 0)
        };
        let mut all = vec![of("/usr/lib", 0, 0)];
        assert!(written(&tree(&all)).is_none());
        all.push(of("/srv/r/.git/objects", 5, 0));
        let path = |all: &[FolderIo]| written(&tree(all)).map(|node| node.path.clone());
        assert_eq!(path(&all), Some(PathBuf::from("/srv/r/.git/objects")));
        all.push(of("/srv/r/docs", 0, 4096));
        assert_eq!(path(&all), Some(PathBuf::from("/srv/r")));
        all.push(of("/srv", 1, 0));
        assert_eq!(path(&all), Some(PathBuf::from("/srv")));
    }

    #[test]
    fn what_is_done_high_up_itself_is_found_there() {
        let all = [folder("/tmp", 600, 0), folder("/tmp/a", 200, 0), folder("/tmp/b", 200, 0)];
        assert_eq!(names(&candidates(&tree(&all), 40)), ["/tmp"]);
        let spread = [folder("/tmp", 1, 0), folder("/tmp/a", 500, 0), folder("/tmp/b", 499, 0)];
        assert_eq!(names(&candidates(&tree(&spread), 40)), ["/tmp/a", "/tmp/b"]);
        assert_eq!(names(&candidates(&tree(&spread), 1)), ["/tmp", "/tmp/a", "/tmp/b"]);
    }
}
