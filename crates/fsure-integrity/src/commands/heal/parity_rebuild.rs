//! Parity as one more source of recorded content: a group is rebuilt when something
//! of it is requested, from what is left in the tree.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use fsure_os::buffer::Buffer;
use fsure_os::opener::Opener;
use fsure_os::read::{OpenFile, ReadMode};
use fsure_os::root_dir::Root;

use super::replica::Replica;
use crate::model::Record;
use crate::parity;
use crate::parity::{GroupHeader, ParityGroup, SHARD};
use fsure_core::RelPath;
use fsure_core::block_hash::BLOCK;

/// Groups that are kept after use. What is healed comes in the order of paths,
/// and so does what is in a pool: the next file is nearly always in the same
/// one, or in one of a few whose paths overlap.
const GROUPS_KEPT_MAX: usize = 4;

/// Rebuilt bytes that are kept with them: those of one group of a large file,
/// or of four pools.
const REBUILT_BYTES_MAX: usize = parity::OWN_MAX as usize;

/// The recovery data of a root.
pub(super) struct Parity {
    folder: PathBuf,
    root: Arc<Root>,
    /// First path, last path and name of each pool.
    pools: Vec<(RelPath, RelPath, String)>,
    groups: Rc<RefCell<Groups>>,
}

/// The pieces of one file, each in a group, or in several.
pub(super) struct Rebuilder {
    root: Arc<Root>,
    replicas: Rc<Vec<Replica>>,
    pieces: Vec<(PathBuf, Piece)>,
    groups: Rc<RefCell<Groups>>,
}

/// A piece of a file in a group.
#[derive(Clone)]
struct Piece {
    /// The content that the file was recorded with.
    identity: [u8; 32],
    /// Offset of the piece in the file, in bytes.
    offset: u64,
    length: u64,
    /// Offset of the piece in the group's data, in bytes.
    at: usize,
}

/// The groups that were used last, the latest at the end.
#[derive(Default)]
struct Groups(Vec<KeptGroup>);

struct KeptGroup {
    path: PathBuf,
    pieces: HashMap<RelPath, Vec<Piece>>,
    /// All of its data, or why there are none; `None` before they are needed.
    rebuilt: Option<Result<Vec<u8>, String>>,
}

impl Parity {
    /// Opens the recovery data beside a catalog; `None` if there are none. `bad` is
    /// called for every pool whose head cannot be read.
    pub(super) fn open(
        catalog: &Path,
        root: &Arc<Root>,
        bad: &dyn Fn(&str),
    ) -> io::Result<Option<Self>> {
        let folder = parity::folder(catalog);
        let names = parity::names(&folder, ".pool")?;
        if names.is_empty() && parity::names(&folder, ".own")?.is_empty() {
            return Ok(None);
        }
        let mut pools = Vec::new();
        for name in names {
            match parity::read_header(&folder.join(&name)) {
                Ok(GroupHeader { members, .. }) => {
                    if let (Some(first), Some(last)) = (members.first(), members.last()) {
                        pools.push((first.path.clone(), last.path.clone(), name));
                    }
                }
                Err(error) => bad(&format!("{}: {error}", folder.join(&name).display())),
            }
        }
        Ok(Some(Self { folder, root: Arc::clone(root), pools, groups: Rc::default() }))
    }

    /// Returns a rebuilder for a file as it is recorded; fails if no group has
    /// anything of this content.
    pub(super) fn of(&self, record: &Record, replicas: &Rc<Vec<Replica>>) -> io::Result<Rebuilder> {
        let path = &record.path;
        let identity = parity::identity(&record.digests);
        let groups: Vec<PathBuf> = if record.entry.size > BLOCK {
            let count = record.entry.size.div_ceil(parity::OWN_MAX);
            (0..count).map(|n| self.folder.join(parity::own_name(path, n))).collect()
        } else {
            let holds =
                |(first, last, _): &&(RelPath, RelPath, String)| first <= path && path <= last;
            self.pools.iter().filter(holds).map(|(.., name)| self.folder.join(name)).collect()
        };
        let mut pieces = Vec::new();
        for group in groups {
            let mut kept = self.groups.borrow_mut();
            // One that cannot be read is a hole in what can be rebuilt.
            let Ok(kept) = kept.get(&group) else { continue };
            let of_it = kept.pieces.get(path).into_iter().flatten();
            let of_it = of_it.filter(|piece| piece.identity == identity).cloned();
            pieces.extend(of_it.map(|piece| (group.clone(), piece)));
        }
        if pieces.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has nothing of this content"));
        }
        let (root, replicas) = (Arc::clone(&self.root), Rc::clone(replicas));
        Ok(Rebuilder { root, replicas, pieces, groups: Rc::clone(&self.groups) })
    }
}

impl Groups {
    /// A group, which is read if it is not among those that are kept.
    fn get(&mut self, path: &Path) -> io::Result<&mut KeptGroup> {
        let group = match self.0.iter().position(|group| group.path == path) {
            Some(place) => self.0.remove(place),
            None => KeptGroup::read(path)?,
        };
        self.0.push(group);
        let rebuilt_bytes =
            |groups: &[KeptGroup]| groups.iter().map(KeptGroup::bytes).sum::<usize>();
        while self.0.len() > 1
            && (self.0.len() > GROUPS_KEPT_MAX || rebuilt_bytes(&self.0) > REBUILT_BYTES_MAX)
        {
            self.0.remove(0);
        }
        Ok(self.0.last_mut().expect("it was just put there"))
    }

    fn is_rebuilt(&self, path: &Path) -> bool {
        self.0.iter().any(|group| group.path == path && group.rebuilt.is_some())
    }
}

impl KeptGroup {
    fn read(path: &Path) -> io::Result<Self> {
        let mut pieces: HashMap<RelPath, Vec<Piece>> = HashMap::new();
        let mut at = 0;
        for member in parity::read_header(path)?.members {
            let (identity, offset, length) = (member.identity, member.offset, member.length);
            let piece = Piece { identity, offset, length, at };
            pieces.entry(member.path).or_default().push(piece);
            at = at.saturating_add(length as usize);
        }
        Ok(Self { path: path.to_owned(), pieces, rebuilt: None })
    }

    /// Its data as they are recorded, rebuilt once for all files of it.
    fn rebuilt(&mut self, root: &Arc<Root>, replicas: &[Replica]) -> Result<&[u8], String> {
        let rebuild = || rebuild(&self.path, root, replicas).map_err(|error| error.to_string());
        match self.rebuilt.get_or_insert_with(rebuild) {
            Ok(data) => Ok(data),
            Err(why) => Err(why.clone()),
        }
    }

    fn bytes(&self) -> usize {
        self.rebuilt.as_ref().and_then(|data| data.as_ref().ok()).map_or(0, Vec::len)
    }
}

impl Rebuilder {
    /// Rebuilds some of the file, within one block.
    pub(super) fn read(&mut self, offset: u64, target: &mut [u8]) -> io::Result<usize> {
        if target.is_empty() {
            return Ok(0);
        }
        let mut groups = self.groups.borrow_mut();
        let holds = |piece: &Piece| (piece.offset..piece.offset + piece.length).contains(&offset);
        let mut pieces: Vec<_> = self.pieces.iter().filter(|(_, piece)| holds(piece)).collect();
        // Groups that are rebuilt already come first.
        pieces.sort_by_key(|(group, _)| !groups.is_rebuilt(group));
        let mut why = "the group cannot be read".to_owned();
        for (group, piece) in pieces {
            let kept = groups.get(group).map_err(|error| error.to_string());
            match kept.and_then(|kept| kept.rebuilt(&self.root, &self.replicas)) {
                Err(lost) => why = lost,
                Ok(data) => {
                    let within = (offset - piece.offset) as usize;
                    let length = target.len().min(piece.length as usize - within);
                    let Some(found) = data
                        .get(piece.at.saturating_add(within)..)
                        .and_then(|rest| rest.get(..length))
                    else {
                        why = "the group is inconsistent".to_owned();
                        continue;
                    };
                    target[..length].copy_from_slice(found);
                    return Ok(length);
                }
            }
        }
        Err(lost(&why))
    }
}

fn lost(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Returns all data of a group: what is good in the tree or in a replica, and the
/// rest from the code.
fn rebuild(group: &Path, root: &Arc<Root>, replicas: &[Replica]) -> io::Result<Vec<u8>> {
    let ParityGroup { header, recovery, .. } = ParityGroup::read(group)?;
    let mut data = vec![0; header.data.len() * SHARD];
    // A forged file may state any lengths.
    let length =
        header.members.iter().try_fold(0_u64, |sum, member| sum.checked_add(member.length));
    if length.is_none_or(|length| length > data.len() as u64) {
        return Err(lost("the group is inconsistent"));
    }
    let mut buffer = Buffer::new(BLOCK as usize)?;
    let opener = Opener::new(Arc::clone(root), ReadMode::Direct);
    let itself = |path: &RelPath| Some(path.as_bytes().to_vec());
    gather(&header, &opener, &itself, &mut data, &mut buffer);
    let shards = data.chunks(SHARD).enumerate();
    let mut good: Vec<bool> = shards.map(|(n, shard)| header.is_good(n, shard)).collect();
    for replica in replicas {
        if good.iter().all(|good| *good) {
            break;
        }
        let mut theirs = data.clone();
        let path = |path: &RelPath| replica.path_of(path);
        gather(&header, replica.opener(), &path, &mut theirs, &mut buffer);
        for number in (0..good.len()).filter(|number| !good[*number]).collect::<Vec<_>>() {
            let range = number * SHARD..(number + 1) * SHARD;
            if header.is_good(number, &theirs[range.clone()]) {
                data[range.clone()].copy_from_slice(&theirs[range]);
                good[number] = true;
            }
        }
    }
    let left: Vec<_> = recovery.iter().map(Option::as_deref).collect();
    if parity::restore(&mut data, &good, &left) {
        return Ok(data);
    }
    let bad = good.iter().filter(|good| !**good).count();
    let there = left.iter().flatten().count();
    let (shards, of) = (good.len(), recovery.len());
    Err(lost(&format!(
        "{bad} of {shards} shards are bad, and {there} of {of} recovery shards are good"
    )))
}

/// Takes what can be read of a group's files; what cannot stays as it is.
fn gather(
    header: &GroupHeader,
    opener: &Opener,
    path: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    data: &mut [u8],
    buffer: &mut Buffer,
) {
    let mut rest = data;
    for member in &header.members {
        let (target, behind) = rest.split_at_mut(member.length as usize);
        rest = behind;
        let Some(path) = path(&member.path) else { continue };
        let Ok((source, _)) = opener.open(&path, false) else { continue };
        let fine = (source.grain() as usize).max(SHARD);
        for (number, block) in target.chunks_mut(BLOCK as usize).enumerate() {
            let offset = member.offset + number as u64 * BLOCK;
            if fill(&source, offset, block, buffer) {
                continue;
            }
            // A bad sector costs its own shard.
            for (part, bytes) in block.chunks_mut(fine).enumerate() {
                fill(&source, offset + (part * fine) as u64, bytes, buffer);
            }
        }
    }
}

/// Reads what there is at `offset`. Returns true if that was not an error.
fn fill(source: &OpenFile, offset: u64, target: &mut [u8], buffer: &mut Buffer) -> bool {
    let filled = source.read_at(buffer, offset, target.len());
    filled.is_ok_and(|filled| {
        target[..filled.bytes].copy_from_slice(&buffer[..filled.bytes]);
        true
    })
}
