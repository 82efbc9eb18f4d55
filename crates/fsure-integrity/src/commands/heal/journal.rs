//! The journal of a heal in place: the content of a file before and after, which is
//! on the medium before the file is touched. `docs/heal.md` is the format.

use std::io::{self, Read, Write};
use std::path::Path;

use fsure_os::user_file::{self, AtomicFile};

use fsure_core::RelPath;
use fsure_core::block_hash::BLOCK;

const MAGIC: &[u8; 13] = b"fsure heal 1\n";

/// Bytes of which it is noted whether they could be read.
pub(super) const PAGE: usize = 4096;

/// Bytes that a disk writes as a whole or not at all.
const SECTOR: usize = 512;

/// No path is longer: Linux gives up at 4 KiB, and Windows at 64.
const PATH_MAX: usize = 1 << 17;

/// The head of a journal: the file, its metadata before and after, and the number of
/// pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalHeader {
    pub(super) path: RelPath,
    pub(super) inode: u64,
    pub(super) size_before: u64,
    pub(super) size_after: u64,
    pub(super) mtime_before_ns: i64,
    pub(super) mtime_after_ns: i64,
    /// BLAKE3 of the whole file after; zeros if it is not recorded.
    pub(super) blake3: [u8; 32],
    pub(super) pieces: u64,
}

/// A part of the file, at most a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) old: Vec<u8>,
    /// Bitmap of the pages of the old bytes that could be read.
    pub(super) readable: [u8; 32],
    pub(super) new: Vec<u8>,
}

impl Piece {
    fn is_readable(&self, page: usize) -> bool {
        self.readable[page / 8] & (1 << (page % 8)) != 0
    }

    /// Returns true if only a heal has written what is there now: every sector is as
    /// it was or as it is to be, or its old content could not be read. A sector that
    /// was not there before may have come as zeros.
    pub(super) fn is_from_heal(&self, now: &Self) -> bool {
        let sectors = now.old.chunks(SECTOR).enumerate();
        sectors.into_iter().all(|(number, sector)| {
            let at = number * SECTOR;
            let is = |other: &[u8]| other.get(at..).is_some_and(|other| other.starts_with(sector));
            let was_there = at < self.old.len();
            !now.is_readable(at / PAGE)
                || was_there && !self.is_readable(at / PAGE)
                || is(&self.old)
                || is(&self.new)
                || !was_there && sector.iter().all(|byte| *byte == 0)
        })
    }

    /// The stretches of the old bytes that could be read, with their offsets.
    pub(super) fn readable_pages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.old.chunks(PAGE).enumerate();
        pages
            .filter(|(page, _)| self.is_readable(*page))
            .map(|(page, bytes)| (self.offset + (page * PAGE) as u64, bytes))
    }
}

/// A journal that is being written; it has its name only when it is finished.
pub(super) struct Journal {
    file: AtomicFile,
    hasher: blake3::Hasher,
}

impl Journal {
    pub(super) fn create(path: &Path, header: &JournalHeader) -> io::Result<Self> {
        let mut journal = Self { file: AtomicFile::create(path)?, hasher: blake3::Hasher::new() };
        let name = header.path.as_bytes();
        journal.put(MAGIC)?;
        journal.put(&(name.len() as u32).to_le_bytes())?;
        journal.put(name)?;
        for number in [header.inode, header.size_before, header.size_after] {
            journal.put(&number.to_le_bytes())?;
        }
        for time_ns in [header.mtime_before_ns, header.mtime_after_ns] {
            journal.put(&time_ns.to_le_bytes())?;
        }
        journal.put(&header.blake3)?;
        journal.put(&header.pieces.to_le_bytes())?;
        Ok(journal)
    }

    pub(super) fn push(&mut self, piece: &Piece) -> io::Result<()> {
        for number in [piece.offset, piece.old.len() as u64, piece.new.len() as u64] {
            self.put(&number.to_le_bytes())?;
        }
        self.put(&piece.readable)?;
        self.put(&piece.old)?;
        self.put(&piece.new)
    }

    /// Durable from here on.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let end = *self.hasher.finalize().as_bytes();
        self.file.write_all(&end)?;
        self.file.finish()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes)
    }
}

/// Reads a journal to its end and checks it, then hands over its parts.
pub(super) fn read<E: From<io::Error>>(
    path: &Path,
    each: &mut dyn FnMut(&JournalHeader, Piece) -> Result<(), E>,
) -> Result<JournalHeader, E> {
    check(path)?;
    let mut input = io::BufReader::new(user_file::open_own(path)?);
    let header = header(&mut input)?;
    for _ in 0..header.pieces {
        let piece = piece(&mut input)?;
        each(&header, piece)?;
    }
    Ok(header)
}

/// Checks that the digest at the end of a journal is that of everything before it.
fn check(path: &Path) -> io::Result<()> {
    let mut input = user_file::open_own(path)?;
    let (mut hasher, mut kept) = (blake3::Hasher::new(), Vec::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..read]);
        let end = kept.len().saturating_sub(32);
        hasher.update(&kept[..end]);
        kept.drain(..end);
    }
    if kept == hasher.finalize().as_bytes() { Ok(()) } else { Err(damaged()) }
}

fn header(input: &mut impl Read) -> io::Result<JournalHeader> {
    if bytes::<13>(input)? != *MAGIC {
        return Err(damaged());
    }
    let length = u32::from_le_bytes(bytes(input)?) as usize;
    Ok(JournalHeader {
        path: RelPath::from_bytes(many(input, length, PATH_MAX)?),
        inode: number(input)?,
        size_before: number(input)?,
        size_after: number(input)?,
        mtime_before_ns: number(input)?.cast_signed(),
        mtime_after_ns: number(input)?.cast_signed(),
        blake3: bytes(input)?,
        pieces: number(input)?,
    })
}

fn piece(input: &mut impl Read) -> io::Result<Piece> {
    let (offset, old, new) = (number(input)?, number(input)?, number(input)?);
    let readable = bytes(input)?;
    let most = BLOCK as usize;
    let old = many(input, old as usize, most)?;
    Ok(Piece { offset, old, readable, new: many(input, new as usize, most)? })
}

fn bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number(input: &mut impl Read) -> io::Result<u64> {
    Ok(u64::from_le_bytes(bytes(input)?))
}

fn many(input: &mut impl Read, length: usize, most: usize) -> io::Result<Vec<u8>> {
    if length > most {
        return Err(damaged());
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece_of(old: Vec<u8>, new: Vec<u8>) -> Piece {
        Piece { offset: BLOCK, old, readable: [0xff; 32], new }
    }

    fn header_of(pieces: u64) -> JournalHeader {
        JournalHeader {
            path: RelPath::from_bytes(*b"a/\xff"),
            inode: u64::MAX,
            size_before: 1,
            size_after: 2,
            mtime_before_ns: -1,
            mtime_after_ns: 7,
            blake3: [3; 32],
            pieces,
        }
    }

    #[test]
    fn what_was_written_is_read_and_any_flipped_byte_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let pieces = [piece_of(vec![1; 5000], vec![2; 6000]), piece_of(vec![], vec![9])];
        let mut journal = Journal::create(&path, &header_of(2)).unwrap();
        for piece in &pieces {
            journal.push(piece).unwrap();
        }
        assert!(!path.exists(), "it has its name only when it is whole");
        journal.finish().unwrap();
        let parts = || {
            let mut parts = Vec::new();
            let header = read::<io::Error>(&path, &mut |_, piece| {
                parts.push(piece);
                Ok(())
            });
            header.map(|header| (header, parts))
        };
        assert_eq!(parts().unwrap(), (header_of(2), pieces.to_vec()));
        let good = std::fs::read(&path).unwrap();
        for at in [0, 13, 20, 100, 5000, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(parts().is_err(), "byte {at}");
        }
        std::fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(parts().is_err());
    }

    #[test]
    fn a_write_of_another_process_is_distinguished_from_a_half_write() {
        let (old, new) = (vec![1; 8192], vec![2; 10_000]);
        let piece = piece_of(old.clone(), new.clone());
        let now = |bytes: Vec<u8>| piece_of(bytes, Vec::new());
        let half = [&new[..512 * 3], &old[512 * 3..]].concat();
        let longer = [&new[..8192], &[0; 1000]].concat();
        for (bytes, is_from_heal) in [
            (old.clone(), true),
            (new.clone(), true),
            (half, true),
            (new[..9000].to_vec(), true),
            (longer, true),
            (vec![3; 8192], false),
            ([&old[..700], &new[700..]].concat(), false),
            ([&new[..8192], &[5; 1000]].concat(), false),
        ] {
            let length = bytes.len();
            assert_eq!(piece.is_from_heal(&now(bytes)), is_from_heal, "{length}");
        }
        let mut unreadable = piece.clone();
        unreadable.readable[0] = !2;
        let mut other = old;
        other[4096..8192].fill(7);
        assert!(unreadable.is_from_heal(&now(other.clone())), "what was there is not known");
        other[0] = 7;
        assert!(!unreadable.is_from_heal(&now(other)));
    }
}
