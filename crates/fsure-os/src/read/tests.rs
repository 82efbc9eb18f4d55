//! The ladder over a file that misbehaves on purpose: what happens here happens
//! on every system, whichever rungs it has.

use super::*;
use crate::read_mode::GRAIN_MIN;
use std::cell::{Cell, RefCell};

const MIB: usize = 1 << 20;

/// A file on a system that misbehaves as configured, and records the calls that it gets.
#[derive(Default)]
struct Fake {
    content: Vec<u8>,
    /// Ways it has, and those that fail from a position on.
    lacks: Vec<ReadMode>,
    fails_from: Vec<(ReadMode, u64, io::ErrorKind)>,
    /// The bytes that it reports to be in the page cache, call by call.
    resident: RefCell<Vec<Option<u64>>>,
    /// From where on it is packed; its system vouches for nothing.
    packed_from: Option<u64>,
    /// The most a read gives, and whether every other is interrupted.
    piece: Option<usize>,
    is_interrupted: Option<Cell<bool>>,
    /// The length that it shrinks to once something was read, in bytes.
    shrinks_to: Option<usize>,
    asked: RefCell<Vec<(ReadMode, u64, usize)>>,
    turned: RefCell<Vec<(ReadMode, bool)>>,
    dropped: std::rc::Rc<RefCell<Vec<Range<u64>>>>,
}

impl Handle for Fake {
    const REPORTS_RESIDENCY: bool = true;

    fn stat(&self) -> io::Result<Stat> {
        Ok(Stat {
            kind: crate::Kind::File,
            size: self.content.len() as u64,
            mtime_ns: 0,
            ctime_ns: 0,
            birth_ns: None,
            inode: 1,
            device: 1,
            links: 1,
            allocated: 0,
            place: None,
        })
    }

    fn turn(&self, way: ReadMode, on: bool) -> io::Result<()> {
        self.turned.borrow_mut().push((way, on));
        if on && self.lacks.contains(&way) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(())
    }

    fn read(&self, way: ReadMode, target: &mut [u8], position: u64) -> io::Result<usize> {
        if let Some(is_next) = &self.is_interrupted
            && is_next.replace(!is_next.get())
        {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let has_read = !self.asked.borrow().is_empty();
        self.asked.borrow_mut().push((way, position, target.len()));
        let fails = |fails: &&(ReadMode, u64, io::ErrorKind)| fails.0 == way && position >= fails.1;
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

    fn reports_residency(&self) -> bool {
        true
    }

    fn resident_bytes(&self, _: bool, _: Range<u64>) -> Option<u64> {
        let mut answers = self.resident.borrow_mut();
        if answers.len() > 1 { answers.remove(0) } else { answers.first().copied().flatten() }
    }

    fn drop_cached(&self, range: Range<u64>) {
        self.dropped.borrow_mut().push(range);
    }

    fn is_plain(&self, range: Range<u64>) -> io::Result<bool> {
        Ok(self.packed_from.is_none_or(|from| range.end <= from))
    }

    fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(Some((offset, size)))
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at % 251) as u8).collect()
}

/// Reads all of it from a rung; the content must be right whatever happens.
fn read_all(source: &OpenFile<Fake>, length: usize) -> io::Result<ReadResult> {
    let mut buffer = Buffer::new(2 * MIB)?;
    buffer.fill(0xee);
    let filled = source.read_at(&mut buffer, 0, length)?;
    assert!(buffer[..filled.bytes] == source.file.content[..filled.bytes], "wrong bytes");
    Ok(filled)
}

fn source(file: Fake, way: ReadMode) -> OpenFile<Fake> {
    let is_vouched = file.packed_from.is_none();
    OpenFile::new(file, way, GRAIN_MIN, is_vouched)
}

#[test]
fn falls_one_rung_where_a_way_fails_in_the_middle() {
    use ReadMode::{Cached, Direct, DontCache, Dropped};
    let refused = io::ErrorKind::Unsupported;
    let from = 64 << 10;
    for (fails, lacks, resident, ends_on, reported) in [
        (vec![], vec![], None, Direct, Direct),
        (vec![Direct], vec![], Some(0), DontCache, DontCache),
        // The system does not tell what was there before: then it is not called uncached.
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
        assert_eq!(filled, ReadResult { bytes: MIB + 5, way: reported }, "{case}");
        assert_eq!(*source.way.read().unwrap(), ends_on, "{case}");
        assert_eq!(source.is_in_memory(), ends_on == Cached, "{case}");
        // What was turned on is off again, once its rung is left.
        let turned = source.file.turned.borrow().clone();
        assert_eq!(turned.contains(&(Direct, false)), ends_on != Direct, "{case}");
        drop(source);
        // Nothing of it was there, and it was read through the cache.
        let was_absent = resident == Some(0) && ends_on != Direct;
        let all = was_absent.then_some(0..u64::MAX);
        assert!(dropped.borrow().iter().eq(&all), "{case}");
    }
}

#[test]
fn never_climbs_and_never_falls_for_a_medium_error() {
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
    let refused = (ReadMode::Cached, 0, io::ErrorKind::Unsupported);
    let fake = Fake { fails_from: vec![refused], content: pattern(9), ..Fake::default() };
    let source = source(fake, ReadMode::Cached);
    assert_eq!(read_all(&source, 9).unwrap_err().kind(), io::ErrorKind::Unsupported);
}

/// A reader that finds a way failing late does not lead the others back up.
#[test]
fn a_late_fall_is_none() {
    let fake = Fake { resident: vec![Some(0)].into(), ..Fake::default() };
    let source = source(fake, ReadMode::Direct);
    for failed in [ReadMode::Direct, ReadMode::DontCache, ReadMode::Direct] {
        source.fall_back(failed);
    }
    assert_eq!(*source.way.read().unwrap(), ReadMode::Dropped);
}

#[test]
fn a_cache_that_fills_up_in_between_is_no_proof() {
    // Absent when it fell, present when it was first read.
    let fake = Fake {
        content: pattern(MIB),
        lacks: vec![ReadMode::DontCache],
        fails_from: vec![(ReadMode::Direct, 0, io::ErrorKind::InvalidInput)],
        resident: vec![Some(0), Some(4096)].into(),
        ..Fake::default()
    };
    let source = source(fake, ReadMode::Direct);
    let filled = read_all(&source, MIB).unwrap();
    assert_eq!(filled, ReadResult { bytes: MIB, way: ReadMode::Cached });
    // And it stays one: what the first read left there proves nothing, either.
    assert_eq!(read_all(&source, MIB).unwrap().way, ReadMode::Cached);
}

#[test]
fn short_and_interrupted_reads_are_gone_on_with() {
    for way in WAYS {
        for piece in [1000, 4096, 5000, 70_000, usize::MAX] {
            // A direct read of less than the grain is how a file ends.
            let is_end = way == ReadMode::Direct && piece < 4096;
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
            assert_eq!(filled, ReadResult { bytes, way }, "{piece} bytes at a time");
            if way == ReadMode::Direct {
                let asked = source.file.asked.borrow();
                let is_whole = |(_, position, length): &(ReadMode, u64, usize)| {
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
        assert_eq!(read_all(&source, MIB).unwrap(), ReadResult { bytes: 9_000, way });
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
    // And reads do pass there: those that are direct.
    let source = source(Fake { content: pattern(MIB), ..Fake::default() }, ReadMode::Direct);
    let mut buffer = Buffer::new(MIB).unwrap();
    let mut passes = |way| {
        let read = || source.read_once(way, &mut buffer, 512, 0, 4096).is_ok();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_ok()
    };
    assert!(passes(ReadMode::Cached) && !passes(ReadMode::Direct));
}

/// Reads pass the check with whatever grain the file asks for.
#[test]
fn a_larger_grain_is_kept_to() {
    for length in [1, 65_535, 65_536, 300_001] {
        let fake = Fake { content: pattern(300_001), ..Fake::default() };
        let source = OpenFile::new(fake, ReadMode::Direct, 65_536, true);
        let filled = read_all(&source, length).unwrap();
        assert_eq!(filled, ReadResult { bytes: length, way: ReadMode::Direct });
    }
}

/// A read that a file system accepts as direct need not be direct.
#[test]
fn leaves_the_direct_rung_where_it_is_none() {
    let fake = Fake {
        content: pattern(MIB),
        packed_from: Some(64 << 10),
        resident: vec![Some(0)].into(),
        ..Fake::default()
    };
    let source = source(fake, ReadMode::Direct);
    let filled = read_all(&source, 64 << 10).unwrap();
    assert_eq!(filled, ReadResult { bytes: 64 << 10, way: ReadMode::Direct });
    assert!(source.is_direct());
    let filled = read_all(&source, MIB).unwrap();
    assert_eq!(filled, ReadResult { bytes: MIB, way: ReadMode::DontCache });
    assert!(source.file.turned.borrow().contains(&(ReadMode::Direct, false)));
}

#[test]
fn what_was_in_memory_of_a_file_stays_and_the_rest_goes() {
    const PIECE: u64 = 4 << 20;
    let there = [Some(4096), Some(0), Some(0), Some(4096), Some(0), Some(1)];
    // The first answer is of the file as a whole.
    let resident = [Some(4096)].into_iter().chain(there).collect::<Vec<_>>();
    let fake = Fake {
        content: vec![0; 5 * PIECE as usize + 1],
        resident: resident.into(),
        ..Fake::default()
    };
    let dropped = fake.dropped.clone();
    let source = source(fake, ReadMode::DontCache);
    assert_eq!(read_all(&source, 9).unwrap().way, ReadMode::Cached);
    drop(source);
    assert_eq!(*dropped.borrow(), [PIECE..3 * PIECE, 4 * PIECE..5 * PIECE]);
}

/// A direct read that comes short is gone on with at the grain before its end:
/// what is there already must outlive the next read, which may fail.
#[test]
fn touching_memory_spares_what_was_read() {
    let fake = Fake {
        content: pattern(MIB),
        packed_from: Some(u64::MAX),
        piece: Some(5000),
        fails_from: vec![(ReadMode::Direct, 4096, io::ErrorKind::InvalidInput)],
        resident: vec![Some(0)].into(),
        ..Fake::default()
    };
    let filled = read_all(&source(fake, ReadMode::Direct), MIB).unwrap();
    assert_eq!(filled, ReadResult { bytes: MIB, way: ReadMode::DontCache });
}
