//! The sizes of all files that a walk would come to, in no order: for an estimate
//! of what there is to read. Memory does not grow with the names in a folder,
//! which the walk itself has to sort.

use std::io;

use fsure_os::Kind;
use fsure_os::root_dir::Root;

use super::list_folder::ListingItem;
use super::list_folder::{ListTask, NameKind, what, with_pattern_file};
use super::walk::{WalkOptions, first_items};
use super::walk_bounds::WalkBounds;
use super::walk_event::WalkEvent;

/// Names whose stats are asked for at once, in the order of their inodes.
const PART_NAMES: usize = 1 << 14;

/// Calls `take` with the size of each file, until it returns false. Whether it
/// came to the end. What cannot be listed is left out: the walk reports it.
pub fn each_file_size(
    root: &Root,
    options: &WalkOptions,
    take: &mut dyn FnMut(u64) -> bool,
) -> bool {
    let (first, task) = first_items(root, options);
    for next in first {
        if let ListingItem::Step(WalkEvent::Entry(_, stat, _)) = next
            && stat.kind == Kind::File
            && !take(stat.size)
        {
            return false;
        }
    }
    let mut tasks = Vec::from_iter(task);
    while let Some(task) = tasks.pop() {
        let mut goes_on = true;
        let mut each = |size| {
            goes_on = goes_on && take(size);
            goes_on
        };
        // A folder that is gone, or cannot be listed, has nothing to be read.
        let _ = count_folder(root, &task, &options.borders, &mut tasks, &mut each);
        if !goes_on {
            return false;
        }
    }
    true
}

fn count_folder(
    root: &Root,
    task: &ListTask,
    borders: &WalkBounds,
    tasks: &mut Vec<ListTask>,
    take: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    let folder = &task.folder;
    if !folder.is_root() && borders.is_nested_root(root, folder, &|_| true) {
        return Ok(());
    }
    let with_file = with_pattern_file(root, folder, &task.patterns);
    let patterns = with_file.map_or_else(|_| task.patterns.clone(), |(patterns, _)| patterns);
    root.list_in_parts(folder.as_bytes(), PART_NAMES, &mut |listing| {
        for (name, stat) in listing.entries {
            let name = listing.names.get(name);
            let path = || folder.join(name);
            if borders.is_own(folder, name, &stat) {
                continue;
            }
            let NameKind::Entry(stat, device) = what(stat, &path, task, &patterns, borders) else {
                continue;
            };
            match stat.kind {
                Kind::Folder => {
                    tasks.push(ListTask { folder: path(), device, patterns: patterns.clone() });
                }
                Kind::File if !take(stat.size) => return false,
                _ => {}
            }
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::{Patterns, Walk};
    use super::*;
    use fsure_core::RelPath;

    #[test]
    fn the_sizes_are_those_of_the_walk() {
        let tree = tempfile::tempdir().unwrap();
        for (number, name) in
            ["a/x", "a/y.tmp", "a-b", "own/.fsure/catalog.db", "own/f", "in/deep/er/z", "in/keep"]
                .iter()
                .enumerate()
        {
            let path = tree.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![0; 1 << number]).unwrap();
        }
        std::fs::write(tree.path().join("in/.fsureignore"), "deep/\n").unwrap();
        let root = Arc::new(Root::open(tree.path()).unwrap());
        for scope in ["", "a", "a-b", "in", "in/deep", "none"] {
            let options = WalkOptions {
                scope: RelPath::from_bytes(scope.as_bytes()),
                patterns: Patterns::new(&["*.tmp".to_owned()], &[], &[]).unwrap(),
                borders: WalkBounds {
                    catalog_in_root: ".fsure/catalog.db",
                    ..WalkBounds::default()
                },
                ..WalkOptions::whole(Duration::from_secs(60))
            };
            let walk = Walk::start(Arc::clone(&root), options.clone()).unwrap();
            let size = |step| match step {
                Ok(WalkEvent::Entry(_, stat, _)) if stat.kind == Kind::File => Some(stat.size),
                _ => None,
            };
            let mut expected: Vec<u64> = walk.filter_map(size).collect();
            let mut sizes = Vec::new();
            assert!(each_file_size(&root, &options, &mut |size| {
                sizes.push(size);
                true
            }));
            sizes.sort_unstable();
            expected.sort_unstable();
            assert_eq!(sizes, expected, "{scope}");
            let is_whole = each_file_size(&root, &options, &mut |_| false);
            assert_eq!(is_whole, sizes.is_empty(), "{scope}");
        }
    }
}
