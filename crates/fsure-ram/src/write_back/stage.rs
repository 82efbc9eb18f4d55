//! Writes the content of a generation to the disk side: written beside the files that
//! it replaces, or kept in memory until the generation is of one moment. What is replaced
//! several times while that is awaited is written once, and a look at it takes no longer
//! than reading it.

use std::io;

use fsure_os::tree_copy::File;

use super::content_digest::{self, Digest};
use super::disk_side::staged;
use super::generation_builder::GenerationBuilder;
use super::index::IndexEntry;
use super::journal::path_of;
use super::staging::{READINGS_MAX, SHARED_FROM, Staged, StagedKind, StagedSource};
use fsure_core::{IoContext as _, RelPath, Result};

impl GenerationBuilder<'_> {
    /// Tells whether the disk side needs another file by this name.
    pub(super) fn must_stage(&self, path: &RelPath, entry: &IndexEntry) -> bool {
        let Some(known) = self.known(path).filter(|known| known.is_same_thing_as(entry)) else {
            return true;
        };
        // The same content of another file. The one that is on the disk side by this
        // name may be another name's by now, with a date of its own.
        known.facts.inode != entry.facts.inode
    }

    /// Stages a file; the digest of what is staged, `None` where it would not hold
    /// still.
    pub(super) fn stage(
        &mut self,
        path: &RelPath,
        entry: &IndexEntry,
        source: StagedSource,
    ) -> io::Result<Option<Digest>> {
        match source {
            StagedSource::Held(bytes) => {
                self.staging.hold(path, entry.digest, bytes);
                Ok(Some(entry.digest))
            }
            StagedSource::File(file) => self.stage_file(path, entry, &file),
        }
    }

    /// Writes what is held and still wanted.
    pub(super) fn stage_held(&mut self) -> Result<()> {
        for (path, (digest, bytes)) in self.staging.take_held() {
            let entry = self.changed.get(&path).and_then(Option::as_ref);
            let Some(entry) = entry.filter(|entry| entry.digest == digest).cloned() else {
                continue;
            };
            self.write_held(&path, &entry, &bytes).context("stage", path_of(&path).as_ref())?;
        }
        Ok(())
    }

    fn write_held(&mut self, path: &RelPath, entry: &IndexEntry, bytes: &[u8]) -> io::Result<()> {
        let name = self.staging.next_name();
        let linked = self.link(entry, &name)?;
        if linked.is_none() {
            let target = self.disk.side.create(staged(&name).as_bytes())?;
            content_digest::put(bytes, &target)?;
            self.staging.written += bytes.len() as u64;
        }
        let what = linked.unwrap_or(StagedKind::Whole);
        self.staging.put(path, entry.facts.inode, Staged { name, digest: entry.digest, what });
        Ok(())
    }

    fn stage_file(
        &mut self,
        path: &RelPath,
        entry: &IndexEntry,
        file: &File,
    ) -> io::Result<Option<Digest>> {
        let (name, inode) = (self.staging.next_name(), entry.facts.inode);
        let what = match self.link(entry, &name)? {
            Some(what) => Some(what),
            None => self.tail(path, entry, file, &name)?,
        };
        if let Some(what) = what {
            self.staging.put(path, inode, Staged { name, digest: entry.digest, what });
            return Ok(Some(entry.digest));
        }
        let (mut last, size) = (entry.digest, entry.facts.size);
        for _ in 0..READINGS_MAX {
            let digest = self.write(path, size, file, &name)?;
            if digest == Some(last) {
                self.note_change(file)?;
                let staged = Staged { name, digest: last, what: StagedKind::Whole };
                self.staging.put(path, inode, staged);
                return Ok(Some(last));
            }
            self.disk.side.remove(staged(&name).as_bytes(), false)?;
            let Some(digest) = digest else { return Ok(None) };
            last = digest;
        }
        Ok(None)
    }

    /// A second name of what is staged or on the disk side already, where the file
    /// is one by another name; what that makes of it.
    fn link(&self, entry: &IndexEntry, name: &str) -> io::Result<Option<StagedKind>> {
        let target = staged(name);
        if let Some(other) = self.staging.of_inode(entry.facts.inode)
            && other.digest == entry.digest
        {
            let linked =
                self.disk.side.link(staged(&other.name).as_bytes(), target.as_bytes()).is_ok();
            return Ok(linked.then_some(other.what));
        }
        for path in self.index.names(entry.facts.inode) {
            let is_same = self.index.get(path).is_some_and(|known| known.is_same_thing_as(entry));
            // A file system without hard links, or with too many: then it is copied.
            if is_same && self.disk.side.link(path.as_bytes(), target.as_bytes()).is_ok() {
                return Ok(Some(StagedKind::Old));
            }
        }
        Ok(None)
    }

    /// Stages what was appended to a large file, where nothing else was done to it. A log
    /// of a gigabyte is not written anew for every line. Not where the file has other
    /// names, which would be appended to.
    fn tail(
        &mut self,
        path: &RelPath,
        entry: &IndexEntry,
        file: &File,
        name: &str,
    ) -> io::Result<Option<StagedKind>> {
        let is_grown = |old: &&IndexEntry| {
            old.is_file()
                && old.facts.inode == entry.facts.inode
                && old.facts.links == 1
                && entry.facts.links == 1
                && (SHARED_FROM..entry.facts.size).contains(&old.facts.size)
        };
        let Some(old) = self.index.get(path).filter(is_grown) else { return Ok(None) };
        let (from, known, size) = (old.facts.size, old.digest, entry.facts.size);
        // If fsure could not write to it later on, it is replaced as a whole. So it is if it
        // is not, or not only, the file that the index knows.
        let is_indexed_file = self.disk.side.facts(path.as_bytes()).is_ok_and(|there| {
            (there.links, there.size, there.mtime_ns) == (1, from, old.facts.mtime_ns)
        });
        if !is_indexed_file || self.disk.side.write(path.as_bytes()).is_err() {
            return Ok(None);
        }
        let target = self.disk.side.create(staged(name).as_bytes())?;
        // Where the whole is too large, that is known before it counts.
        target.set_len(size)?;
        target.set_len(0)?;
        if let Some([head, digest, all]) = content_digest::split(file, from, size, &target)?
            && head == known
            && all == entry.digest
        {
            self.staging.written += size - from;
            self.disk.check_space_for_append(&target, &mut self.staging.again)?;
            return Ok(Some(StagedKind::Tail { from, digest }));
        }
        self.disk.side.remove(staged(name).as_bytes(), false)?;
        Ok(None)
    }

    fn write(
        &mut self,
        path: &RelPath,
        size: u64,
        file: &File,
        name: &str,
    ) -> io::Result<Option<Digest>> {
        let target = self.disk.side.create(staged(name).as_bytes())?;
        let old = (size >= SHARED_FROM)
            .then(|| self.index.get(path).filter(|known| known.is_file()))
            .flatten()
            .and_then(|_| self.disk.side.read(path.as_bytes()).ok());
        if let Some(old) = old
            && self.disk.side.share(&old, &target)?
        {
            let patched =
                content_digest::patch(file, size, &old, &target, &mut self.staging.written);
            if patched.is_ok() {
                return patched;
            }
            // The old one cannot be read any more, perhaps: as if there were none.
            target.set_len(0)?;
        }
        self.staging.written += size;
        content_digest::copy(file, size, &target)
    }
}
