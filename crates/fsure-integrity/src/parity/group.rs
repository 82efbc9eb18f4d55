//! The file of a group: what it is of, checksums of every shard, the recovery
//! shards, and what it is of once more.

use std::io::{self, BufReader, Read, Write as _};
use std::path::Path;

use fsure_os::user_file::{self, AtomicFile};
use xxhash_rust::xxh3::xxh3_64;

use fsure_core::RelPath;

/// Bytes of a shard.
pub const SHARD: usize = 16 << 10;

const MAGIC: &[u8; 15] = b"fsure parity 1\n";

/// Magic and length.
const HEAD: usize = MAGIC.len() + 4;
const DIGEST: usize = 32;

/// No header is longer: 8192 members with long paths, 8192 checksums.
const HEADER_MAX: usize = 64 << 20;

/// No path is longer: Linux gives up at 4 KiB, and Windows at 64.
const PATH_MAX: u32 = 1 << 17;

/// Nor a group with as much recovery data as data.
const FILE_MAX: u64 = 512 << 20;

/// A piece of a file in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The file.
    pub path: RelPath,
    /// Its size.
    pub size: u64,
    /// Offset of the piece in the file, in bytes.
    pub offset: u64,
    /// The piece's length.
    pub length: u64,
    /// Identity of the file's content as it was recorded.
    pub identity: [u8; 32],
}

/// Description of a group: its pieces and their checksums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// The pieces, one behind the other.
    pub members: Vec<Member>,
    /// XXH3-64 of each data shard.
    pub data: Vec<u64>,
    /// XXH3-64 of each recovery shard.
    pub recovery: Vec<u64>,
}

/// Returns the number of shards for this many bytes.
pub fn shards(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(SHARD as u64)).unwrap_or(u32::MAX)
}

impl GroupHeader {
    /// The header of members' bytes, whole shards, and their code.
    pub fn new(members: Vec<Member>, data: &[u8], recovery: &[Vec<u8>]) -> Self {
        Self {
            members,
            data: data.chunks(SHARD).map(xxh3_64).collect(),
            recovery: recovery.iter().map(|shard| xxh3_64(shard)).collect(),
        }
    }

    /// Returns true if `data` has the checksum of this data shard.
    pub fn is_good(&self, shard: usize, data: &[u8]) -> bool {
        self.data.get(shard) == Some(&xxh3_64(data))
    }

    /// Returns what the header claims, without its checksums.
    pub fn claim(&self) -> GroupHeaderInfo {
        let (data, recovery) = (self.data.len() as u32, self.recovery.len() as u32);
        GroupHeaderInfo { members: self.members.clone(), data, recovery }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let counts = [SHARD, self.data.len(), self.recovery.len(), self.members.len()];
        counts.iter().for_each(|count| body.extend((*count as u32).to_le_bytes()));
        for member in &self.members {
            body.extend((member.path.as_bytes().len() as u32).to_le_bytes());
            body.extend(member.path.as_bytes());
            for number in [member.size, member.offset, member.length] {
                body.extend(number.to_le_bytes());
            }
            body.extend(member.identity);
        }
        for sum in self.data.iter().chain(&self.recovery) {
            body.extend(sum.to_le_bytes());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        let digest = *blake3::hash(&bytes).as_bytes();
        bytes.extend(digest);
        bytes
    }

    /// A header, if it is one and whole.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST)?)?;
        if *blake3::hash(body).as_bytes() != digest {
            return None;
        }
        let mut rest = body.strip_prefix(MAGIC)?.get(4..)?;
        let mut take = |length: usize| {
            let (taken, left) = rest.split_at_checked(length)?;
            rest = left;
            Some(taken)
        };
        let mut counts = [0_usize; 4];
        for count in &mut counts {
            *count = u32::from_le_bytes(take(4)?.try_into().ok()?) as usize;
        }
        let [shard, data, recovery, members] = counts;
        if shard != SHARD {
            return None;
        }
        let mut header = Self { members: Vec::new(), data: Vec::new(), recovery: Vec::new() };
        for _ in 0..members {
            let length = u32::from_le_bytes(take(4)?.try_into().ok()?) as usize;
            let path = RelPath::from_bytes(take(length)?);
            let mut number = || Some(u64::from_le_bytes(take(8)?.try_into().ok()?));
            let (size, offset, length) = (number()?, number()?, number()?);
            let identity = take(32)?.try_into().ok()?;
            header.members.push(Member { path, size, offset, length, identity });
        }
        let mut sum = || Some(u64::from_le_bytes(take(8)?.try_into().ok()?));
        header.data = (0..data).map(|_| sum()).collect::<Option<_>>()?;
        header.recovery = (0..recovery).map(|_| sum()).collect::<Option<_>>()?;
        Some(header)
    }
}

/// A group as it was read.
pub struct ParityGroup {
    /// The header, which describes the pieces of the group.
    pub header: GroupHeader,
    /// Its recovery shards, those that are as they were written.
    pub recovery: Vec<Option<Vec<u8>>>,
    /// True if the whole file is as it was written.
    pub is_sound: bool,
}

/// The pieces and counts that a group claims, read without verifying its checksums:
/// enough to see that the group does not belong to what is recorded now, and a thousandth
/// of the reading.
pub struct GroupHeaderInfo {
    /// The pieces.
    pub members: Vec<Member>,
    /// Data shards.
    pub data: u32,
    /// Recovery shards.
    pub recovery: u32,
}

impl GroupHeaderInfo {
    /// Reads the beginning of a group.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::new(user_file::open_own(path)?);
        let head: [u8; HEAD] = take(&mut file)?;
        if !head.starts_with(MAGIC) {
            return Err(damaged());
        }
        let [shard, data, recovery, count] = [(); 4].map(|()| take::<4>(&mut file));
        let number = |bytes: io::Result<[u8; 4]>| bytes.map(u32::from_le_bytes);
        let (data, recovery, count) = (number(data)?, number(recovery)?, number(count)?);
        if number(shard)? as usize != SHARD || count as usize > HEADER_MAX / 60 {
            return Err(damaged());
        }
        let mut members = Vec::new();
        for _ in 0..count {
            let length = u32::from_le_bytes(take(&mut file)?);
            if length > PATH_MAX {
                return Err(damaged());
            }
            let mut path = vec![0; length as usize];
            file.read_exact(&mut path)?;
            let [size, offset, length] = [(); 3].map(|()| take::<8>(&mut file));
            let number = |bytes: io::Result<[u8; 8]>| bytes.map(u64::from_le_bytes);
            let (size, offset, length) = (number(size)?, number(offset)?, number(length)?);
            let (path, identity) = (RelPath::from_bytes(path), take(&mut file)?);
            members.push(Member { path, size, offset, length, identity });
        }
        Ok(Self { members, data, recovery })
    }

    /// Bytes of the group's file.
    pub fn file_length(&self) -> u64 {
        let members: usize = self.members.iter().map(|m| m.path.as_bytes().len() + 60).sum();
        let (shards, recovery) = (u64::from(self.data) + u64::from(self.recovery), self.recovery);
        let header = (HEAD + 16 + members + DIGEST) as u64 + 8 * shards;
        2 * header + 8 + u64::from(recovery) * SHARD as u64
    }
}

fn take<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged")
}

/// Reads what a group is of, from the beginning of its file or else its end.
pub fn read_header(path: &Path) -> io::Result<GroupHeader> {
    let mut file = user_file::open_own(path)?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[15], head[16], head[17], head[18]]) as usize;
    if length <= HEADER_MAX {
        let mut bytes = head.to_vec();
        file.by_ref().take((length + DIGEST) as u64).read_to_end(&mut bytes)?;
        if let Some(header) = GroupHeader::from_bytes(&bytes) {
            return Ok(header);
        }
    }
    Ok(read(path)?.header)
}

fn read(path: &Path) -> io::Result<ParityGroup> {
    let mut bytes = Vec::new();
    user_file::open_own(path)?.take(FILE_MAX).read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(damaged)
}

fn parse(bytes: &[u8]) -> Option<ParityGroup> {
    let first = bytes.get(15..HEAD).and_then(|length| {
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        GroupHeader::from_bytes(bytes.get(..HEAD + length + DIGEST)?)
    });
    let second = bytes.len().checked_sub(8).and_then(|end| {
        let length = u64::from_le_bytes(bytes[end..].try_into().ok()?);
        let start = end.checked_sub(usize::try_from(length).ok()?)?;
        GroupHeader::from_bytes(&bytes[start..end])
    });
    let is_sound = first.is_some() && first == second;
    let header = first.or(second)?;
    let start = header.to_bytes().len();
    let shard = |number: usize| {
        let shard = bytes.get(start + number * SHARD..start + (number + 1) * SHARD)?;
        (xxh3_64(shard) == header.recovery[number]).then(|| shard.to_vec())
    };
    let recovery: Vec<_> = (0..header.recovery.len()).map(shard).collect();
    let is_sound = is_sound && recovery.iter().all(Option::is_some);
    Some(ParityGroup { header, recovery, is_sound })
}

impl ParityGroup {
    /// Reads a group.
    pub fn read(path: &Path) -> io::Result<Self> {
        read(path)
    }
}

/// A group on its way to its name.
pub struct GroupFile(AtomicFile);

impl GroupFile {
    /// Writes a group; it has its name once it is finished. Its length, too.
    pub fn write(
        path: &Path,
        header: &GroupHeader,
        recovery: &[Vec<u8>],
    ) -> io::Result<(Self, u64)> {
        let (mut file, head) = (AtomicFile::create(path)?, header.to_bytes());
        file.write_all(&head)?;
        for shard in recovery {
            file.write_all(shard)?;
        }
        file.write_all(&head)?;
        file.write_all(&(head.len() as u64).to_le_bytes())?;
        Ok((Self(file), header.claim().file_length()))
    }

    /// Gives it its name, durably.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{encode, restore};
    use super::*;

    #[test]
    fn rotten_parity_is_an_erasure_and_either_header_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("group");
        let data: Vec<u8> = (0..20 * SHARD).map(|at| (at / 5) as u8).collect();
        let recovery = encode(&data, 3).unwrap();
        let member = Member {
            path: RelPath::from_bytes(*b"a/\xff"),
            size: 9,
            offset: 0,
            length: 20 * SHARD as u64,
            identity: [4; 32],
        };
        let header = GroupHeader::new(vec![member], &data, &recovery);
        let (file, length) = GroupFile::write(&path, &header, &recovery).unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        let good = std::fs::read(&path).unwrap();
        assert_eq!(good.len() as u64, length);
        let head = header.to_bytes().len();
        for (at, bad_shards, is_sound) in [
            (None, 0, true),
            (Some(20), 0, false),
            (Some(head + SHARD + 5), 1, false),
            (Some(good.len() - 100), 0, false),
            (Some(good.len() - 2), 0, false),
        ] {
            let mut bytes = good.clone();
            if let Some(at) = at {
                bytes[at] ^= 1;
            }
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_header(&path).unwrap(), header, "{at:?}");
            if at != Some(20) {
                let claim = GroupHeaderInfo::read(&path).unwrap();
                assert_eq!(claim.file_length(), length);
                assert_eq!(claim.members, header.members);
            }
            let group = ParityGroup::read(&path).unwrap();
            let bad = group.recovery.iter().filter(|shard| shard.is_none()).count();
            assert_eq!((bad, group.is_sound), (bad_shards, is_sound), "{at:?}");
            let mut damaged = data.clone();
            damaged[..SHARD].fill(0);
            let good: Vec<_> = damaged
                .chunks(SHARD)
                .enumerate()
                .map(|(number, shard)| group.header.is_good(number, shard))
                .collect();
            assert!(!good[0]);
            let recovery: Vec<_> = group.recovery.iter().map(Option::as_deref).collect();
            assert!(restore(&mut damaged, &good, &recovery) && damaged == data, "{at:?}");
        }
        let mut bytes = good;
        bytes[20] ^= 1;
        let end = bytes.len() - 100;
        bytes[end] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(ParityGroup::read(&path).is_err() && read_header(&path).is_err());
    }
}
