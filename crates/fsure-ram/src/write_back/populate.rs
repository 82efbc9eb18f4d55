//! Start of a RAM folder: an empty RAM side is filled from the disk side, or both are
//! taken over from a process that is gone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use fsure_os::tree_copy::{CopyStat, NodeKind, Side};

use super::changes::ReportedChanges;
use super::content_digest;
use super::disk_side::DiskSide;
use super::engine::Engine;
use super::index::{Index, IndexEntry};
use super::journal::{Journal, path_of};
use super::ram_scan::everything;
use super::recover::settle;
use super::side_reader::{in_ram, on_disk};
use fsure_core::{Error, ExitCode, IoContext as _, RelPath, Result};

/// Attempts to copy a file that another process writes meanwhile.
const COPY_ATTEMPTS_MAX: u32 = 5;

/// Hears of every name that is copied, with the bytes it holds; may end it all.
pub type Filling<'a> = &'a mut dyn FnMut(&RelPath, u64) -> ControlFlow<ExitCode>;

impl Engine {
    /// Copies a folder into an empty one in memory. Both paths may lead there in any
    /// way, also by a descriptor. What a crash has left under way is settled first.
    pub fn fill(disk: &Path, ram: &Path, filling: Filling<'_>) -> Result<Self> {
        let mut engine = Self::open(disk, ram)?;
        if !engine.ram.list(b"").context("list", ram)?.is_empty() {
            return Err(Error::FailedPrecondition {
                message: format!("{} is not empty", ram.display()),
                hint: None,
            });
        }
        let seen = everything(&engine.disk.side)?;
        if let Some(folder) = seen.denied.first() {
            return Err(Error::FailedPrecondition {
                message: format!("{} may not be listed", path_of(folder).display()),
                hint: Some("give yourself the permission (chmod u+rx)".to_owned()),
            });
        }
        let mut inodes = HashMap::new();
        for (path, facts) in &seen.names {
            if let ControlFlow::Break(code) = filling(path, facts.size) {
                return Err(Error::Interrupted(code));
            }
            engine.copy_entry(path, facts, &mut inodes).context("copy", path_of(path).as_ref())?;
        }
        // The deepest first: what is made in a folder moves its date.
        for (path, facts) in seen.names.iter().rev().filter(|(_, one)| one.kind == NodeKind::Folder)
        {
            let dated =
                engine.copy_attributes(path, facts).and_then(|()| engine.note(path, [0; 32]));
            dated.context("copy", path_of(path).as_ref())?;
        }
        engine.note_links()?;
        Ok(engine)
    }

    /// Takes over two sides that are filled: the process that had them is gone. Reads
    /// both; what differs comes with the next generation.
    pub fn adopt(disk: &Path, ram: &Path) -> Result<Self> {
        let mut engine = Self::open(disk, ram)?;
        engine.rebuild_index()?;
        Ok(engine)
    }

    /// Reads both sides, whatever was known of them.
    pub(super) fn rebuild_index(&mut self) -> Result<()> {
        let there = on_disk(&self.disk.side)?;
        let here = in_ram(&self.ram)?;
        (self.index, self.is_blind) = (Index::default(), true);
        let linked = apart(&there, &here);
        for (path, mut entry) in there {
            match here.get(&path) {
                Some(same) if same.is_same_as(&entry) && !linked.contains(&path) => {
                    entry.facts = same.facts.clone();
                }
                // Of no file that is there: whatever is will differ from it.
                _ => (entry.facts.inode, entry.facts.ctime_ns) = (0, 0),
            }
            self.index.set(path, Some(entry));
        }
        self.is_adrift = false;
        Ok(())
    }

    /// Goes on by another way to the same RAM side: another mount of it.
    pub fn reach(&mut self, ram: &Path) -> Result<()> {
        let side = Side::open(ram).context("open", ram)?;
        let [now, then] = [&side, &self.ram].map(|side| side.facts(b"").context("look at", ram));
        let (now, then) = (now?, then?);
        if (now.device, now.inode) != (then.device, then.inode) {
            return Err(Error::Internal(format!("{} is not the RAM side", ram.display())));
        }
        self.ram = side;
        Ok(())
    }

    fn open(disk: &Path, ram: &Path) -> Result<Self> {
        let disk = DiskSide::open(disk)?;
        settle(&disk)?;
        let last = Journal::last_applied(&disk)?.map_or(0, |last| last.generation);
        let generation = last.max(disk.trashes()?.last().copied().unwrap_or(0));
        Ok(Self {
            ram: Side::open(ram).context("open", ram)?,
            disk,
            index: Index::default(),
            generation,
            is_blind: true,
            is_adrift: false,
            again: [].into(),
            changes: ReportedChanges::none(),
            missed: [].into(),
            stale: [].into(),
            before: std::time::Instant::now(),
            mapped: super::engine::MmapTracker::default(),
            turns: super::rehash_rotation::RehashRotation::new(std::time::Instant::now()),
            pending: None,
            filled: BTreeMap::new(),
            search: std::time::Duration::from_millis(50),
            doing: super::activity::Activity::default(),
        })
    }

    /// Makes on the RAM side what is on the disk side.
    fn copy_entry(
        &mut self,
        path: &RelPath,
        facts: &CopyStat,
        inodes: &mut HashMap<u64, RelPath>,
    ) -> std::io::Result<()> {
        let at = path.as_bytes();
        match facts.kind {
            NodeKind::Folder if path.is_root() => return Ok(()),
            NodeKind::Folder => return self.ram.make(at, NodeKind::Folder, b""),
            NodeKind::File => {}
            kind => {
                let target = match kind {
                    NodeKind::Link => self.disk.side.target(at)?,
                    _ => Vec::new(),
                };
                self.ram.make(at, kind, &target)?;
                self.copy_attributes(path, facts)?;
                return self.note(path, [0; 32]);
            }
        }
        if let Some(first) = inodes.get(&facts.inode) {
            self.ram.link(first.as_bytes(), at)?;
            let digest = self.index.get(first).map_or([0; 32], |entry| entry.digest);
            self.filled.insert(path.clone(), facts.clone());
            return self.note(path, digest);
        }
        for _ in 0..COPY_ATTEMPTS_MAX {
            let before = self.disk.side.facts(at)?;
            let from = self.disk.side.read(at)?;
            let to = self.ram.create(at)?;
            let digest = content_digest::copy(&from, before.size, &to)?;
            self.copy_attributes(path, &before)?;
            let after = self.disk.side.facts(at)?;
            if let (Some(digest), true) = (digest, after == before) {
                if facts.links > 1 {
                    inodes.insert(facts.inode, path.clone());
                }
                self.filled.insert(path.clone(), before);
                return self.note(path, digest);
            }
            self.ram.remove(at, false)?;
        }
        Err(std::io::Error::new(
            std::io::ErrorKind::ResourceBusy,
            "it is being written all the time: end the program that does, and try again",
        ))
    }

    /// Owner, mode, date and attributes, as on the disk side.
    fn copy_attributes(&self, path: &RelPath, facts: &CopyStat) -> std::io::Result<()> {
        let at = path.as_bytes();
        let attributes = self.disk.side.attributes(at)?;
        self.ram.set(at, facts.kind, facts.ownership, Some(facts.mtime_ns), &attributes)
    }

    /// Notes what is on both sides now.
    fn note(&mut self, path: &RelPath, digest: content_digest::Digest) -> std::io::Result<()> {
        let at = path.as_bytes();
        let facts = self.ram.facts(at)?;
        let target = if facts.kind == NodeKind::Link { self.ram.target(at)? } else { Vec::new() };
        let attributes = self.ram.attributes(at)?;
        self.index.set(path.clone(), Some(IndexEntry { facts, digest, target, attributes }));
        Ok(())
    }

    /// Every further name of a file has changed the facts of those before it.
    fn note_links(&mut self) -> Result<()> {
        let linked: Vec<_> = self.index.iter().filter(|(_, one)| one.is_file()).collect();
        let linked: Vec<_> = linked
            .into_iter()
            .filter(|(_, one)| self.index.names(one.facts.inode).len() > 1)
            .map(|(path, one)| (path.clone(), one.digest))
            .collect();
        for (path, digest) in linked {
            self.note(&path, digest).context("look at", path_of(&path).as_ref())?;
        }
        Ok(())
    }
}

/// Names of files that are one on one side and more on the other, though equal: what
/// is written to one of them would change the other.
fn apart(
    one: &BTreeMap<RelPath, IndexEntry>,
    other: &BTreeMap<RelPath, IndexEntry>,
) -> HashSet<RelPath> {
    fn groups(entries: &BTreeMap<RelPath, IndexEntry>) -> HashMap<u64, Vec<&RelPath>> {
        let mut groups: HashMap<_, Vec<_>> = HashMap::new();
        for (path, entry) in entries.iter().filter(|(_, entry)| entry.is_file()) {
            groups.entry(entry.facts.inode).or_default().push(path);
        }
        groups
    }
    let of = groups(other);
    let is_apart = |names: &&Vec<&RelPath>| {
        let inode = other.get(names[0]).map(|entry| entry.facts.inode);
        inode.and_then(|inode| of.get(&inode)) != Some(names)
    };
    let apart = groups(one);
    apart.values().filter(is_apart).flatten().map(|path| (*path).clone()).collect()
}
