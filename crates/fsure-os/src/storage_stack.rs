//! Lists the layers that a folder lies on, from its file system down to the
//! disks: those that a flush passes on its way, and what each of them reports of
//! its cache. Plain names and values, for a person and for a judgement; what is
//! not known is marked so.

use std::io;
use std::path::{Path, PathBuf};

use crate::host;

/// The name of the fact that a layer keeps flushes from what is below it, and how.
pub(crate) const HELD: &str = "flushes";

/// Name of the fact that a file system has no journal, and its value.
pub(crate) const JOURNAL: &str = "journal";
/// The fact with the options of a mounted file system, with commas between.
pub(crate) const OPTIONS: &str = "options";
pub(crate) const NO_JOURNAL: &str = "none";

/// One layer, with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageLayer {
    /// `file system`, `partition`, `loop`, `md`, `dm`, `memory`, `network`,
    /// `disk`.
    pub kind: &'static str,
    /// `ext4`, `vda1`.
    pub name: String,
    /// Names and values, in the order in which to show them.
    pub facts: Vec<(&'static str, String)>,
}

impl StorageLayer {
    fn held_flushes(&self) -> Option<&str> {
        let held = self.facts.iter().find(|(name, _)| *name == HELD);
        held.map(|(_, held)| held.as_str())
    }
}

/// The kind of storage at the bottom of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Solid state, by NVMe.
    Nvme,
    /// Solid state, by SATA, SAS or USB, or an SD card.
    Solid,
    /// With heads, as reported by a driver that is reliable in this.
    Heads,
    /// A disk that a hypervisor makes.
    Virtual,
    /// A file behind a loop device, on storage of its own.
    Loop,
    /// Behind a network or a program.
    Remote,
    /// Memory.
    Memory,
    /// Not known, or not one kind only.
    Unknown,
}

/// All layers, and what they come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// From the file system down.
    pub layers: Vec<StorageLayer>,
    /// The storage in the end.
    pub medium: Medium,
    /// True if flushes are sent, as the kernel sees it: true for a volatile cache
    /// (write back), false if any layer reports that there is none (write
    /// through).
    pub is_write_back: Option<bool>,
    /// True if the drives themselves report that a volatile cache is on.
    pub drive_cache_on: Option<bool>,
}

impl Stack {
    /// Finds the layers that a folder lies on.
    pub fn of(folder: &Path) -> io::Result<Self> {
        host::storage_stack::of(folder)
    }

    /// Finds the same for a block device, such as `/dev/sda`, without a file system.
    pub fn of_device(path: &Path) -> io::Result<Self> {
        host::storage_stack::of_device(path)
    }

    /// Returns the path of the device that a folder's file system is on: the whole disk, the
    /// array or the loop device, and not a partition of it. `None` for memory, networks and
    /// programs.
    pub fn device(&self) -> Option<PathBuf> {
        let is_device = |layer: &&StorageLayer| ["loop", "md", "dm", "disk"].contains(&layer.kind);
        let device = self.layers.iter().find(is_device)?;
        Some(Path::new("/dev").join(&device.name))
    }

    /// Names what keeps flushes from what a folder lies on: `kept from the disk by nobarrier`.
    pub fn held_flushes(&self) -> Option<&str> {
        self.layers.iter().find_map(StorageLayer::held_flushes)
    }

    /// Names the same, where a loop device does so.
    pub fn held_by_loop(&self) -> Option<&str> {
        let loops = self.layers.iter().filter(|layer| layer.kind == "loop");
        loops.filter_map(StorageLayer::held_flushes).next()
    }

    /// Names the folder's own file system: `btrfs`, or `ext4 without a journal`. With `discard` and
    /// no journal, files are slow to truncate and to remove, so that is in the name, too.
    pub fn file_system(&self) -> Option<String> {
        let own = self.layers.iter().find(|layer| layer.kind == "file system")?;
        let is_without_journal = own.facts.contains(&(JOURNAL, NO_JOURNAL.to_owned()));
        let options = own.facts.iter().filter(|(name, _)| *name == OPTIONS);
        let has_discard = options.flat_map(|(_, all)| all.split(',')).any(|one| one == "discard");
        let without = match (is_without_journal, has_discard) {
            (true, true) => " without a journal, mounted with discard",
            (true, false) => " without a journal",
            (false, _) => "",
        };
        Some(format!("{}{without}", own.name))
    }

    /// Returns the kind of the file system that is furthest down: that of the file of a loop
    /// device, where the folder's own one is on such a device.
    pub fn lowest_file_system(&self) -> Option<&str> {
        let lowest = self.layers.iter().rev().find(|layer| layer.kind == "file system");
        lowest.map(|layer| layer.name.as_str())
    }

    /// One of which nothing but its layers is known.
    pub(crate) fn on(medium: Medium, layers: Vec<StorageLayer>) -> Self {
        Self { layers, medium, is_write_back: None, drive_cache_on: None }
    }

    /// Several side by side, as the disks of an array: their kind where they are
    /// of one, and of their caches the worst.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn beside(all: Vec<Self>) -> Self {
        let mut all = all.into_iter();
        let Some(mut both) = all.next() else { return Self::on(Medium::Unknown, Vec::new()) };
        for other in all {
            if other.medium != both.medium {
                both.medium = Medium::Unknown;
            }
            both.is_write_back = either(both.is_write_back, other.is_write_back);
            both.drive_cache_on = either(both.drive_cache_on, other.drive_cache_on);
            let new = other.layers.into_iter().filter(|layer| !both.layers.contains(layer));
            let new: Vec<_> = new.collect();
            both.layers.extend(new);
        }
        both
    }
}

/// Returns an identifier of the mount that a folder is in, which no later mount
/// has, nor any after a restart of the system: if it is the same as before, what
/// lies below was not cut off in between. `None` if that is not known.
pub fn life(folder: &Path) -> Option<String> {
    host::storage_stack::life(folder)
}

/// Returns an identifier of this run of the system, which no other run of it has.
/// `None` if that is not known.
pub fn boot() -> Option<String> {
    host::scratch_dir::boot().ok()
}

/// Combines two reports of a volatile cache: true if either side has one, false
/// only if both report none.
#[cfg(any(target_os = "linux", test))]
fn either(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_disks_the_worst_counts() {
        let disk = |medium, is_write_back, name: &str| {
            let layer = StorageLayer { kind: "disk", name: name.to_owned(), facts: Vec::new() };
            Stack { is_write_back, ..Stack::on(medium, vec![layer]) }
        };
        let both = Stack::beside(vec![
            disk(Medium::Nvme, Some(false), "a"),
            disk(Medium::Nvme, Some(true), "b"),
            disk(Medium::Nvme, None, "a"),
        ]);
        assert_eq!((both.medium, both.is_write_back), (Medium::Nvme, Some(true)));
        assert_eq!(both.layers.len(), 2, "a disk that is named twice is one: {both:?}");
        let mixed = Stack::beside(vec![
            disk(Medium::Nvme, Some(false), "a"),
            disk(Medium::Heads, None, "b"),
        ]);
        assert_eq!((mixed.medium, mixed.is_write_back), (Medium::Unknown, None));
        assert_eq!(Stack::beside(Vec::new()).medium, Medium::Unknown);
    }

    #[test]
    fn a_file_system_without_a_journal_is_called_so() {
        let name = |facts| {
            let layer = StorageLayer { kind: "file system", name: "ext4".to_owned(), facts };
            Stack::on(Medium::Solid, vec![layer]).file_system().unwrap()
        };
        assert_eq!(name(Vec::new()), "ext4");
        let no_journal = (JOURNAL, NO_JOURNAL.to_owned());
        assert_eq!(name(vec![no_journal.clone()]), "ext4 without a journal");
        let mounted = (OPTIONS, "rw,relatime,discard".to_owned());
        assert_eq!(name(vec![mounted.clone()]), "ext4");
        let both = name(vec![mounted, no_journal]);
        assert_eq!(both, "ext4 without a journal, mounted with discard");
        assert_eq!(Stack::on(Medium::Memory, Vec::new()).file_system(), None);
    }

    #[test]
    fn a_mount_has_one_life() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(life(here), life(&here.join("src")));
        if let Some(own) = life(here) {
            assert_ne!(Some(own), life(Path::new("/proc")));
        }
    }

    #[test]
    fn a_system_has_one_run_at_a_time() {
        assert!(boot().is_some_and(|boot| !boot.is_empty()));
        assert_eq!(boot(), boot());
    }

    #[test]
    fn what_everything_here_lies_on_has_a_name() {
        let stack = Stack::of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!(stack.layers[0].kind, "file system");
        assert!(!stack.layers[0].name.is_empty());
    }
}
