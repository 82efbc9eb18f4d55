//! Digests of file contents, and copies of contents on the other side.
//!
//! Blocks of zeros count for nothing: a hole and zeros that were written are the
//! same content, and a file of a terabyte with a page in it is read in no time.

use std::io;

use fsure_os::tree_copy::{File, data_from, read_at, write_at};

/// Size of a block, in bytes: the unit that is skipped, hashed and written.
const BLOCK: u64 = 64 << 10;
/// Read at once: 16 blocks.
const CHUNK: usize = 1 << 20;

/// BLAKE3 over the blocks that are not zero, each behind its number, and the size.
pub(super) type Digest = [u8; 32];

/// The digest of the first `size` bytes; `None` where the file has become shorter.
pub(super) fn digest(file: &File, size: u64) -> io::Result<Option<Digest>> {
    digest_while(file, size, &|| Ok(()))
}

/// The same, as long as `go_on` has no error.
pub(super) fn digest_while(
    file: &File,
    size: u64,
    go_on: &dyn Fn() -> io::Result<()>,
) -> io::Result<Option<Digest>> {
    let mut hasher = Hasher::default();
    let is_whole = each_block(file, size, &mut |at, block| {
        hasher.add(at, block);
        go_on()
    })?;
    Ok(is_whole.then(|| hasher.finish(size)))
}

/// The digest of what these bytes are as a file.
pub(super) fn digest_of(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::default();
    for (number, block) in bytes.chunks(BLOCK as usize).enumerate() {
        hasher.add(number as u64 * BLOCK, block);
    }
    hasher.finish(bytes.len() as u64)
}

/// Writes these bytes into an empty file, blocks of zeros as holes.
pub(super) fn put(bytes: &[u8], to: &File) -> io::Result<()> {
    to.set_len(bytes.len() as u64)?;
    for (number, block) in bytes.chunks(BLOCK as usize).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            write_at(to, block, number as u64 * BLOCK)?;
        }
    }
    Ok(())
}

/// Copies the first `size` bytes into an empty file, holes as holes, and gives
/// their digest; `None` where the file has become shorter.
pub(super) fn copy(from: &File, size: u64, to: &File) -> io::Result<Option<Digest>> {
    let mut hasher = Hasher::default();
    // Where it is too large for that, before anything of it is written.
    to.set_len(size)?;
    let is_whole = each_block(from, size, &mut |at, block| {
        hasher.add(at, block);
        write_at(to, block, at)
    })?;
    Ok(is_whole.then(|| hasher.finish(size)))
}

/// Writes the first `size` bytes of a file into another one from a place on.
pub(super) fn append(from: &File, size: u64, to: &File, at: u64) -> io::Result<()> {
    each_block(from, size, &mut |place, block| write_at(to, block, at + place)).map(|_| ())
}

/// Copies the bytes from `from` to `size` into an empty file, holes as holes: the
/// digest of the first `from` of them, of the rest, and of all; `None` where the file
/// has become shorter.
pub(super) fn split(
    file: &File,
    from: u64,
    size: u64,
    to: &File,
) -> io::Result<Option<[Digest; 3]>> {
    let (mut head, mut all) = (Hasher::default(), Hasher::default());
    let is_whole = each_block(file, size, &mut |at, block| {
        all.add(at, block);
        if at < from {
            head.add(at, &block[..block.len().min((from - at) as usize)]);
        }
        let skip = from.saturating_sub(at);
        let rest = block.get(skip as usize..).unwrap_or_default();
        if rest.is_empty() { Ok(()) } else { write_at(to, rest, at + skip - from) }
    })?;
    to.set_len(size - from)?;
    let tail = digest(to, size - from)?;
    Ok(tail.filter(|_| is_whole).map(|tail| [head.finish(from), tail, all.finish(size)]))
}

/// As [`copy`], into a file that shares the bytes of `old`: writes only what
/// differs from it, and counts that.
pub(super) fn patch(
    from: &File,
    size: u64,
    old: &File,
    to: &File,
    written: &mut u64,
) -> io::Result<Option<Digest>> {
    let mut hasher = Hasher::default();
    let (mut now, mut then) = (vec![0; BLOCK as usize], vec![0; BLOCK as usize]);
    to.set_len(size)?;
    for at in (0..size).step_by(BLOCK as usize) {
        let length = BLOCK.min(size - at) as usize;
        if read_at(from, &mut now[..length], at)? < length {
            return Ok(None);
        }
        let known = read_at(old, &mut then[..length], at)?;
        then[known..length].fill(0);
        hasher.add(at, &now[..length]);
        if now[..length] != then[..length] {
            write_at(to, &now[..length], at)?;
            *written += length as u64;
        }
    }
    Ok(Some(hasher.finish(size)))
}

#[derive(Default)]
struct Hasher(blake3::Hasher);

impl Hasher {
    fn add(&mut self, at: u64, block: &[u8]) {
        if block.iter().any(|byte| *byte != 0) {
            self.0.update(&at.to_le_bytes());
            self.0.update(block);
        }
    }

    fn finish(mut self, size: u64) -> Digest {
        self.0.update(&size.to_le_bytes());
        *self.0.finalize().as_bytes()
    }
}

/// Calls `take` for every block that is not all zeros, in order. False where the
/// file ends before `size`.
fn each_block(
    file: &File,
    size: u64,
    take: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK.min(size.max(1) as usize)];
    let mut at = 0;
    while at < size {
        let Some(data) = data_from(file, at)? else {
            return Ok(file.metadata()?.len() >= size);
        };
        at = data.start / BLOCK * BLOCK;
        while at < data.end.min(size) {
            let length = (size - at).min(CHUNK as u64) as usize;
            if read_at(file, &mut chunk[..length], at)? < length {
                return Ok(false);
            }
            for (number, block) in chunk[..length].chunks(BLOCK as usize).enumerate() {
                if block.iter().any(|byte| *byte != 0) {
                    take(at + number as u64 * BLOCK, block)?;
                }
            }
            at += length as u64;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_split_is_put_together_again() {
        let content: Vec<u8> = (0..5 * BLOCK + 9).map(|at| (at / 1000) as u8).collect();
        let size = content.len() as u64;
        for from in [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, size - 1, size] {
            let (whole, tail) = (file(&content), file(&[]));
            let [head, rest, all] = split(&whole, from, size, &tail).unwrap().unwrap();
            let first = file(&content[..from as usize]);
            assert_eq!(digest(&first, from).unwrap(), Some(head), "{from}");
            assert_eq!(digest(&tail, size - from).unwrap(), Some(rest));
            assert_eq!(digest(&whole, size).unwrap(), Some(all));
            append(&tail, size - from, &first, from).unwrap();
            assert_eq!(digest(&first, size).unwrap(), Some(all), "{from}");
        }
        assert_eq!(split(&file(&content), 5, size + 1, &file(&[])).unwrap(), None);
    }

    fn file(content: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        write_at(&file, content, 0).unwrap();
        file
    }

    #[test]
    fn a_hole_is_zeros_and_everything_else_counts() {
        let size = 5 * BLOCK + 17;
        let mut content = vec![0; size as usize];
        let of = |content: &[u8]| digest(&file(content), size).unwrap().unwrap();
        let zeros = of(&content);
        let sparse = file(&[]);
        sparse.set_len(size).unwrap();
        assert_eq!(digest(&sparse, size).unwrap().unwrap(), zeros);
        assert_ne!(digest(&file(&vec![0; size as usize + 1]), size + 1).unwrap().unwrap(), zeros);
        let mut seen = vec![zeros];
        for at in [0, BLOCK, 2 * BLOCK, 5 * BLOCK + 16] {
            content.fill(0);
            content[at as usize] = 1;
            seen.push(of(&content));
        }
        for (number, one) in seen.iter().enumerate() {
            assert!(!seen[number + 1..].contains(one), "{number}");
        }
        assert_eq!(digest(&file(b"short"), 6).unwrap(), None);
    }

    #[test]
    fn a_copy_and_a_patch_are_the_same_bytes() {
        let mut random = 7_u64;
        for size in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 5, 20 * BLOCK] {
            let mut old = vec![0_u8; size as usize];
            for byte in old.iter_mut().step_by(97) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (random >> 60) as u8;
            }
            let mut new = old.clone();
            new.resize(size as usize + 3, 9);
            if size > 0 {
                new[size as usize / 2] ^= 1;
            }
            let (old_file, new_file) = (file(&old), file(&new));
            let (copied, patched) = (file(&[]), file(&old));
            let expected = digest(&new_file, new.len() as u64).unwrap();
            assert_eq!(copy(&new_file, new.len() as u64, &copied).unwrap(), expected);
            let length = new.len() as u64;
            assert_eq!(patch(&new_file, length, &old_file, &patched, &mut 0).unwrap(), expected);
            for made in [copied, patched] {
                let mut read = vec![0; new.len() + 1];
                assert_eq!(read_at(&made, &mut read, 0).unwrap(), new.len());
                assert_eq!(read[..new.len()], new);
            }
        }
    }
}
