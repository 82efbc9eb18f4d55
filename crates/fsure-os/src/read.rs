//! What a file holds, read so that the page cache is left as it was, and told
//! by which way that was managed.
//!
//! The ladder, from the medium itself down to "whatever the system gives":
//! direct, don't-cache, cached and dropped, cached. A file starts on the first
//! rung its file system answers for and falls one rung when a way fails in the
//! middle; it never climbs again. Which rung served a read is part of the
//! answer, never assumed. The rungs are the same for all systems; what each is
//! made of, and whether there is one, is the system's answer ([`Handle`]).

use std::io;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::Stat;
use crate::buffer::Buffer;
use crate::host::{File, Handle};

/// A way to read, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Past the page cache: `O_DIRECT` on Linux, `FILE_FLAG_NO_BUFFERING` on
    /// Windows. macOS has nothing that reads past what is already there.
    Direct,
    /// From the page cache what is there, the rest without leaving it there:
    /// `RWF_DONTCACHE` on Linux (6.14), `F_NOCACHE` on macOS.
    DontCache,
    /// Through the page cache, and dropped from it when the file is closed.
    /// Only for files of which nothing was cached before: dropping is by
    /// file, and would take other people's pages too.
    Dropped,
    /// Through the page cache. What is already there is not read from the
    /// medium.
    Cached,
}

/// All ways, best first.
pub const WAYS: [Way; 4] = [Way::Direct, Way::DontCache, Way::Dropped, Way::Cached];

/// Direct reads start and end at multiples of this. The largest logical block
/// of a common device; a file system that wants more says so in `statx`.
pub(crate) const GRAIN_MIN: u64 = 4096;

/// A file that would want more than this is not read directly: nobody's reads
/// begin at such multiples.
pub(crate) const GRAIN_MAX: u64 = 1 << 20;

/// A regular file open for reading, shared by several threads.
pub struct Source<H: Handle = File> {
    pub(crate) file: H,
    /// Readers hold this for reading while they read, so that a fall to
    /// another rung never changes the descriptor under a read in flight.
    pub(crate) way: RwLock<Way>,
    pub(crate) grain: u64,
    /// Whether nothing of the file was in the page cache when the first read
    /// went through it: otherwise such reads prove nothing about the medium.
    pub(crate) was_absent: OnceLock<bool>,
}

/// The answer to one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Bytes read; fewer than asked for only where the file ends.
    pub bytes: usize,
    /// The way they were read, the worst where there were several. Reads
    /// through the page cache are `Cached` if something of the file was in it
    /// before, whatever they leave behind.
    pub way: Way,
}

impl<H: Handle> Source<H> {
    pub(crate) fn new(file: H, way: Way, grain: u64) -> Self {
        Self { file, way: RwLock::new(way), grain, was_absent: OnceLock::new() }
    }

    /// The stat of the open file.
    pub fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    /// Whether reads take what is in the page cache.
    pub fn is_in_memory(&self) -> bool {
        *self.way.read().unwrap_or_else(PoisonError::into_inner) == Way::Cached
    }

    /// Positions and lengths that direct reads can have, a power of two of at
    /// least 4096 bytes.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// Reads `wanted` bytes at `offset`, a multiple of [`Source::grain`], into
    /// the start of the buffer. Fewer bytes than wanted means that the file
    /// ends there.
    pub fn read_at(&self, buffer: &mut Buffer, offset: u64, wanted: usize) -> io::Result<Filled> {
        assert!(offset.is_multiple_of(self.grain), "reads begin at the grain");
        assert!(wanted <= buffer.len(), "{wanted} bytes do not fit {}", buffer.len());
        let mut filled = 0;
        let mut worst = Way::Direct;
        loop {
            let way = self.way.read().unwrap_or_else(PoisonError::into_inner);
            let result = self.read_once(*way, buffer, offset, filled, wanted);
            let way_used = *way;
            drop(way);
            worst = worst.max(self.told(way_used));
            match result {
                // No further than before: the file ends there.
                Ok(end) if end <= filled => return Ok(Filled { bytes: filled, way: worst }),
                Ok(end) => filled = end.min(wanted),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if way_used != Way::Cached && H::refuses_way(&error) => {
                    self.fall_from(way_used);
                }
                Err(error) => return Err(error),
            }
            if filled == wanted {
                return Ok(Filled { bytes: filled, way: worst });
            }
        }
    }

    /// What a read by this way may be called.
    fn told(&self, way: Way) -> Way {
        match way {
            Way::DontCache | Way::Dropped if self.was_absent.get() != Some(&true) => Way::Cached,
            way => way,
        }
    }

    /// Goes on reading behind what is `filled`; the answer is how far that came.
    fn read_once(
        &self,
        way: Way,
        buffer: &mut Buffer,
        offset: u64,
        filled: usize,
        wanted: usize,
    ) -> io::Result<usize> {
        let grain = self.grain as usize;
        let (start, end) = match way {
            // Direct reads begin at the grain, also behind one that came short,
            // and end at it; what they read beyond the wanted bytes is room in
            // the buffer, or the end of the file.
            Way::Direct => (filled - filled % grain, wanted.next_multiple_of(grain)),
            _ => (filled, wanted),
        };
        if matches!(way, Way::DontCache | Way::Dropped) {
            self.was_absent.get_or_init(|| is_absent(&self.file));
        }
        let target = &mut buffer[start..end];
        let position = offset + start as u64;
        if way == Way::Direct {
            check_aligned(target.as_ptr(), target.len(), position, self.grain);
        }
        Ok(start + self.file.read(way, target, position)?)
    }

    fn fall_from(&self, failed: Way) {
        let mut way = self.way.write().unwrap_or_else(PoisonError::into_inner);
        if *way == failed {
            *way = next_rung(&self.file, failed);
        }
    }

    /// The next range of the file at or after `offset` that holds data rather
    /// than a hole, or `None` where there is none. `size` is the file's size;
    /// a file system that knows no holes answers with all that is left.
    pub fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        if offset >= size { Ok(None) } else { self.file.next_data(offset, size) }
    }
}

/// Every direct read passes here, on every system and in every build: one that
/// is not aligned is refused by some devices, read twice by others, and served
/// by Wine as if nothing were wrong, so that no test there would see it.
///
/// # Panics
///
/// If a place in memory, a length or a position is not a multiple of the grain.
pub(crate) fn check_aligned(memory: *const u8, length: usize, position: u64, grain: u64) {
    assert!(
        (memory.addr() as u64 | length as u64 | position).is_multiple_of(grain),
        "a direct read of {length} bytes at {position} to {memory:?} is not aligned to {grain}"
    );
}

impl<H: Handle> Drop for Source<H> {
    fn drop(&mut self) {
        let way = self.way.get_mut().unwrap_or_else(PoisonError::into_inner);
        if *way == Way::Dropped {
            // By chunk it would leave large folios behind (measured: 99 %).
            self.file.drop_cached();
        }
    }
}

/// The rung below `failed` that this file can stand on.
pub(crate) fn next_rung<H: Handle>(file: &H, failed: Way) -> Way {
    // Where it cannot be turned off, reads go on failing and are told.
    let _ = file.turn(failed, false);
    // Whether the file system knows it may show at the first read only.
    if failed == Way::Direct && file.turn(Way::DontCache, true).is_ok() {
        return Way::DontCache;
    }
    if failed < Way::Dropped && is_absent(file) {
        return Way::Dropped;
    }
    Way::Cached
}

/// Whether nothing of the file is known to be in the page cache.
fn is_absent<H: Handle>(file: &H) -> bool {
    file.resident_bytes(file.tells_residency()) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    const MIB: usize = 1 << 20;

    /// A file on a system that misbehaves as told, and notes what it was asked.
    #[derive(Default)]
    struct Fake {
        content: Vec<u8>,
        /// Ways it has, and those that fail from a position on.
        lacks: Vec<Way>,
        fails_from: Vec<(Way, u64, io::ErrorKind)>,
        /// What it says of the page cache, in turn.
        resident: RefCell<Vec<Option<u64>>>,
        /// The most a read gives, and whether every other is interrupted.
        piece: Option<usize>,
        is_interrupted: Option<Cell<bool>>,
        /// Where it shrinks to once something was read.
        shrinks_to: Option<usize>,
        asked: RefCell<Vec<(Way, u64, usize)>>,
        turned: RefCell<Vec<(Way, bool)>>,
        dropped: std::rc::Rc<Cell<bool>>,
    }

    impl Handle for Fake {
        const TELLS_RESIDENCY: bool = true;

        fn stat(&self) -> io::Result<Stat> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn turn(&self, way: Way, on: bool) -> io::Result<()> {
            self.turned.borrow_mut().push((way, on));
            if on && self.lacks.contains(&way) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            Ok(())
        }

        fn read(&self, way: Way, target: &mut [u8], position: u64) -> io::Result<usize> {
            if let Some(is_next) = &self.is_interrupted
                && is_next.replace(!is_next.get())
            {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let has_read = !self.asked.borrow().is_empty();
            self.asked.borrow_mut().push((way, position, target.len()));
            let fails = |fails: &&(Way, u64, io::ErrorKind)| fails.0 == way && position >= fails.1;
            if let Some((.., kind)) = self.fails_from.iter().find(fails) {
                return Err((*kind).into());
            }
            let size = self.shrinks_to.filter(|_| has_read).unwrap_or(self.content.len());
            let rest = &self.content[..size][(position as usize).min(size)..];
            let bytes = rest.len().min(target.len()).min(self.piece.unwrap_or(usize::MAX));
            target[..bytes].copy_from_slice(&rest[..bytes]);
            Ok(bytes)
        }

        fn refuses_way(error: &io::Error) -> bool {
            matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
        }

        fn has_medium(&self) -> bool {
            true
        }

        fn knows_dontcache(&self) -> bool {
            true
        }

        fn tells_residency(&self) -> bool {
            true
        }

        fn resident_bytes(&self, _: bool) -> Option<u64> {
            let mut answers = self.resident.borrow_mut();
            if answers.len() > 1 { answers.remove(0) } else { answers.first().copied().flatten() }
        }

        fn drop_cached(&self) {
            self.dropped.set(true);
        }

        fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
            Ok(Some((offset, size)))
        }
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 7 + at % 251) as u8).collect()
    }

    /// Reads all of it from a rung; the content must be right whatever happens.
    fn read_all(source: &Source<Fake>, length: usize) -> io::Result<Filled> {
        let mut buffer = Buffer::new(2 * MIB)?;
        buffer.fill(0xee);
        let filled = source.read_at(&mut buffer, 0, length)?;
        assert!(buffer[..filled.bytes] == source.file.content[..filled.bytes], "wrong bytes");
        Ok(filled)
    }

    fn source(file: Fake, way: Way) -> Source<Fake> {
        Source::new(file, way, GRAIN_MIN)
    }

    #[test]
    fn falls_one_rung_where_a_way_fails_in_the_middle() {
        use Way::{Cached, Direct, DontCache, Dropped};
        let refused = io::ErrorKind::Unsupported;
        let from = 64 << 10;
        for (fails, lacks, resident, ends_on, told) in [
            (vec![], vec![], None, Direct, Direct),
            (vec![Direct], vec![], Some(0), DontCache, DontCache),
            // Nobody knows what was there before: then it is not called uncached.
            (vec![Direct], vec![], None, DontCache, Cached),
            (vec![Direct], vec![], Some(4096), DontCache, Cached),
            (vec![Direct, DontCache], vec![], Some(0), Dropped, Dropped),
            (vec![Direct, DontCache], vec![], Some(4096), Cached, Cached),
            (vec![Direct, DontCache], vec![], None, Cached, Cached),
            (vec![Direct], vec![DontCache], None, Cached, Cached),
            (vec![Direct], vec![DontCache], Some(0), Dropped, Dropped),
            (vec![Direct, DontCache, Dropped], vec![], Some(0), Cached, Cached),
        ] {
            let case = format!("{fails:?} fail, {lacks:?} are not had, resident: {resident:?}");
            let fake = Fake {
                content: pattern(MIB + 5),
                lacks,
                fails_from: fails.iter().map(|way| (*way, from, refused)).collect(),
                resident: vec![resident].into(),
                // So that each way has given something before it fails.
                piece: Some(4096),
                ..Fake::default()
            };
            let dropped = fake.dropped.clone();
            let source = source(fake, Direct);
            let filled = read_all(&source, MIB + 5).unwrap();
            assert_eq!(filled, Filled { bytes: MIB + 5, way: told }, "{case}");
            assert_eq!(*source.way.read().unwrap(), ends_on, "{case}");
            assert_eq!(source.is_in_memory(), ends_on == Cached, "{case}");
            // What was turned on is off again, once its rung is left.
            let turned = source.file.turned.borrow().clone();
            assert_eq!(turned.contains(&(Direct, false)), ends_on != Direct, "{case}");
            drop(source);
            assert_eq!(dropped.get(), ends_on == Dropped, "{case}");
        }
    }

    #[test]
    fn never_climbs_and_never_falls_for_what_the_medium_says() {
        for way in WAYS {
            let fake = Fake {
                content: pattern(MIB),
                fails_from: vec![(way, 0, io::ErrorKind::Other)],
                ..Fake::default()
            };
            let source = source(fake, way);
            assert_eq!(read_all(&source, MIB).unwrap_err().kind(), io::ErrorKind::Other);
            assert_eq!(*source.way.read().unwrap(), way, "an error of the medium is no fall");
        }
        // Below the last rung there is nothing: a refusal there is an error.
        let refused = (Way::Cached, 0, io::ErrorKind::Unsupported);
        let fake = Fake { fails_from: vec![refused], content: pattern(9), ..Fake::default() };
        let source = source(fake, Way::Cached);
        assert_eq!(read_all(&source, 9).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn a_cache_that_fills_up_in_between_is_no_proof() {
        // Absent when it fell, present when it was first read.
        let fake = Fake {
            content: pattern(MIB),
            lacks: vec![Way::DontCache],
            fails_from: vec![(Way::Direct, 0, io::ErrorKind::InvalidInput)],
            resident: vec![Some(0), Some(4096)].into(),
            ..Fake::default()
        };
        let source = source(fake, Way::Direct);
        let filled = read_all(&source, MIB).unwrap();
        assert_eq!(filled, Filled { bytes: MIB, way: Way::Cached });
        // And it stays one: what the first read left there proves nothing, either.
        assert_eq!(read_all(&source, MIB).unwrap().way, Way::Cached);
    }

    #[test]
    fn short_and_interrupted_reads_are_gone_on_with() {
        for way in WAYS {
            for piece in [1000, 4096, 5000, 70_000, usize::MAX] {
                // A direct read of less than the grain is how a file ends.
                let is_end = way == Way::Direct && piece < 4096;
                let fake = Fake {
                    content: pattern(300_001),
                    resident: vec![Some(0)].into(),
                    piece: Some(piece),
                    is_interrupted: Some(Cell::new(true)),
                    ..Fake::default()
                };
                let source = source(fake, way);
                let filled = read_all(&source, 300_001).unwrap();
                let bytes = if is_end { piece } else { 300_001 };
                assert_eq!(filled, Filled { bytes, way }, "{piece} bytes at a time");
                if way == Way::Direct {
                    let asked = source.file.asked.borrow();
                    let is_whole = |(_, position, length): &(Way, u64, usize)| {
                        (position | *length as u64).is_multiple_of(GRAIN_MIN)
                    };
                    assert!(asked.iter().all(is_whole), "{asked:?}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_ends_where_it_ends_now() {
        for way in WAYS {
            let fake = Fake {
                content: pattern(MIB),
                shrinks_to: Some(9_000),
                piece: Some(8192),
                resident: vec![Some(0)].into(),
                ..Fake::default()
            };
            let source = source(fake, way);
            assert_eq!(read_all(&source, MIB).unwrap(), Filled { bytes: 9_000, way });
            assert_eq!(*source.way.read().unwrap(), way, "its end is no reason to fall");
        }
    }

    #[test]
    fn direct_reads_are_aligned_in_memory_in_length_and_on_the_medium() {
        let buffer = Buffer::new(MIB).unwrap();
        let check = |at: usize, length, position, grain| {
            let memory = buffer[at..].as_ptr();
            let checked = std::panic::AssertUnwindSafe(|| {
                check_aligned(memory, length, position, grain);
            });
            std::panic::catch_unwind(checked).is_ok()
        };
        assert!(check(0, 4096, 0, 4096) && check(8192, 65536, 1 << 30, 4096));
        assert!(check(0, 65536, 1 << 20, 65536));
        for (at, length, position, grain) in [
            (512, 4096, 0, 4096),
            (0, 5000, 0, 4096),
            (0, 4096, 1, 4096),
            (4096, 65536, 0, 65536),
            (0, 4096, 0, 65536),
            (0, 65536, 4096, 65536),
        ] {
            assert!(!check(at, length, position, grain), "{at} {length} {position} {grain}");
        }
    }

    /// Reads pass the check with whatever grain the file asks for.
    #[test]
    fn a_larger_grain_is_kept_to() {
        for length in [1, 65_535, 65_536, 300_001] {
            let fake = Fake { content: pattern(300_001), ..Fake::default() };
            let source = Source::new(fake, Way::Direct, 65_536);
            let filled = read_all(&source, length).unwrap();
            assert_eq!(filled, Filled { bytes: length, way: Way::Direct });
        }
    }
}
