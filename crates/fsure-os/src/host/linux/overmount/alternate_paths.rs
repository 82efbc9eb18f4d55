//! Finds the ways other than its own path by which a folder is reached: what is mounted
//! over that path is not in those. See [`crate::overmount::AlternatePaths`].

use std::io;
use std::path::{Path, PathBuf};

use super::holders::elsewhere;
use super::table::{mount_at, mounts};
use crate::overmount::{AlternatePaths, MountEntry};

/// Finds the alternate paths to a folder, without the mounts below `runtime`.
pub fn ways(folder: &Path, runtime: &Path) -> io::Result<AlternatePaths> {
    let mount = mount_at(folder)?;
    let Ok(below) = folder.strip_prefix(&mount.point) else { return Ok(AlternatePaths::default()) };
    let inner = mount.root.join(below);
    let leads =
        |other: &MountEntry| leads(&mount, &inner, other) && !other.point.starts_with(runtime);
    let here = mounts(None)?.into_iter().filter(|other| other.id != mount.id && leads(other));
    let here = here.filter_map(|other| {
        let path = match inner.strip_prefix(&other.root) {
            Ok(below) if below.as_os_str().is_empty() => other.point.clone(),
            Ok(below) => other.point.join(below),
            // Of a part of it; inside it, it is something mounted in it.
            Err(_) if other.point.starts_with(folder) => return None,
            Err(_) => other.point.clone(),
        };
        // What is covered itself leads nowhere.
        mount_at(&path).is_ok_and(|there| there.id == other.id).then_some(path)
    });
    let here: Vec<PathBuf> = here.collect();
    Ok(AlternatePaths { here, elsewhere: elsewhere(&leads)? })
}

/// Returns true if a process can write by the mount `other` to what is below the folder
/// `inner` of its file system, and still can after something is mounted over that folder.
fn leads(mount: &MountEntry, inner: &Path, other: &MountEntry) -> bool {
    let is_same = other.device == mount.device && !other.options.iter().any(|one| one == "ro");
    // Of one group: what is mounted in the one is in the other, too.
    let propagates =
        mount.shared.is_some_and(|group| [other.shared, other.master].contains(&Some(group)));
    let has_it = inner.starts_with(&other.root);
    is_same && (has_it && !propagates || !has_it && other.root.starts_with(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_a_way_unless_it_is_covered_too() {
        let mount = |root: &str, shared, master| MountEntry {
            device: 7,
            root: root.into(),
            shared,
            master,
            ..MountEntry::default()
        };
        let own = mount("/", Some(1), None);
        let is_way = |other: &MountEntry| leads(&own, Path::new("/srv/work"), other);
        for root in ["/", "/srv", "/srv/work"] {
            assert!(is_way(&mount(root, None, None)), "{root}");
            assert!(is_way(&mount(root, Some(2), Some(3))), "{root}");
            assert!(!is_way(&mount(root, Some(1), None)), "{root}: a peer");
            assert!(!is_way(&mount(root, Some(2), Some(1))), "{root}: it hears of it");
        }
        assert!(is_way(&mount("/srv/work/below", Some(1), None)), "nothing is put over that");
        for root in ["/srv/other", "/srv/work2"] {
            assert!(!is_way(&mount(root, None, None)), "{root}");
        }
        assert!(!is_way(&MountEntry { device: 8, ..mount("/", None, None) }));
        assert!(!is_way(&MountEntry { options: vec!["ro".to_owned()], ..mount("/", None, None) }));
    }
}
