//! Compares the drive with a naive one, which keeps each change by itself. From each byte
//! that a cut has left, the tests derive which changes are there and which are not; that
//! has to be one of the states that the variant allows.

use proptest::prelude::*;

use std::io;
use std::time::Duration;

use super::*;
use fsure_core::Random;
use fsure_core::units::SECTOR_BYTES;

const SIZE: usize = 24 << 10;
/// Value of each byte in the beginning; no change leaves it.
const BEGIN: u8 = 255;

/// A request. Each change leaves a value of its own.
#[derive(Clone, Debug)]
enum ModelRequest {
    Write { offset: usize, length: usize },
    Fua { offset: usize, length: usize },
    Trim { offset: usize, length: usize },
    Flush,
}

fn asks() -> impl Strategy<Value = Vec<ModelRequest>> {
    let place = || (0..SIZE - 5000, 1..5000_usize);
    let ask = prop_oneof![
        6 => place().prop_map(|(offset, length)| ModelRequest::Write { offset, length }),
        1 => place().prop_map(|(offset, length)| ModelRequest::Fua { offset, length }),
        1 => place().prop_map(|(offset, length)| ModelRequest::Trim { offset, length }),
        2 => Just(ModelRequest::Flush),
    ];
    prop::collection::vec(ask, 1..40)
}

/// One change as the naive drive keeps it.
#[derive(Clone, Debug)]
struct Naive {
    offset: usize,
    length: usize,
    value: u8,
    epoch: u64,
    is_durable: bool,
}

impl Naive {
    fn covers(&self, byte: usize) -> bool {
        (self.offset..self.offset + self.length).contains(&byte)
    }
}

/// Does all requests on both.
fn run(behavior: Behavior, asks: &[ModelRequest]) -> (Drive, Vec<Naive>) {
    let mut begin = Image::new(SIZE as u64);
    begin.write(0, &[BEGIN; SIZE]).unwrap();
    let (mut drive, now) = (Drive::new(Traits::new(behavior), begin), Duration::ZERO);
    drive.remember(tempfile::tempdir().unwrap().path()).unwrap();
    let (mut changes, mut epoch) = (Vec::<Naive>::new(), 0);
    let is_honest = behavior == Behavior::Honest;
    for (number, ask) in (1..).zip(asks) {
        let (offset, length, value) = match *ask {
            ModelRequest::Write { offset, length } | ModelRequest::Fua { offset, length } => {
                (offset, length, number)
            }
            ModelRequest::Trim { offset, length } => (offset, length, 0),
            ModelRequest::Flush => {
                drive.flush(now).unwrap();
                epoch += 1;
                changes.iter_mut().for_each(|change| change.is_durable |= is_honest);
                continue;
            }
        };
        let (place, data) = (offset as u64, vec![value; length]);
        match ask {
            ModelRequest::Fua { .. } => drive.write_fua(now, place, &data).unwrap(),
            ModelRequest::Trim { .. } => drive.trim(now, place, length as u64).unwrap(),
            _ => drive.write(now, place, &data).unwrap(),
        };
        let is_durable = is_honest && matches!(ask, ModelRequest::Fua { .. });
        changes.push(Naive { offset, length, value, epoch, is_durable });
    }
    (drive, changes)
}

fn content(image: &Image) -> Vec<u8> {
    let mut all = vec![0; SIZE];
    image.read(0, &mut all).unwrap();
    all
}

/// All of some changes, in their order.
fn made<'a>(changes: impl IntoIterator<Item = &'a Naive>) -> Vec<u8> {
    let mut all = vec![BEGIN; SIZE];
    for change in changes {
        all[change.offset..change.offset + change.length].fill(change.value);
    }
    all
}

/// Evidence of a byte: the last change there that survived. Those after it did not.
struct ByteEvidence {
    byte: usize,
    survived: Option<usize>,
    gone: Vec<usize>,
}

/// Derives the evidence of each piece of an image, if it is unambiguous. Returns `None`
/// if a piece holds a value that cannot be there.
fn evidence(image: &[u8], changes: &[Naive]) -> Option<Vec<ByteEvidence>> {
    let mut all = Vec::new();
    // Between two such places nothing may change.
    let ends = changes.iter().flat_map(|change| [change.offset, change.offset + change.length]);
    let mut places: Vec<_> = (0..=SIZE).step_by(SECTOR_BYTES).chain(ends).collect();
    places.sort_unstable();
    places.dedup();
    for piece in places.windows(2) {
        let (byte, value) = (piece[0], &image[piece[0]]);
        if image[piece[0]..piece[1]].iter().any(|other| other != value) {
            return None;
        }
        let here: Vec<_> = (0..changes.len()).filter(|at| changes[*at].covers(byte)).collect();
        let fits: Vec<_> = here.iter().filter(|at| changes[**at].value == *value).collect();
        let survived = match fits[..] {
            [] if *value == BEGIN => None,
            [] => return None,
            [one] => Some(*one),
            // Two trims look the same.
            _ => continue,
        };
        let gone = here.into_iter().filter(|at| survived.is_none_or(|last| *at > last)).collect();
        all.push(ByteEvidence { byte, survived, gone });
    }
    Some(all)
}

/// Returns an error if a state is not one of those that a variant allows.
fn is_allowed(cut: CutVariant, image: &[u8], changes: &[Naive]) -> Result<(), String> {
    let evidence = evidence(image, changes).ok_or("a value that was never written there")?;
    // Whole changes survive, or sectors of them.
    let unit = |byte: usize| match cut {
        CutVariant::Torn => byte / SECTOR_BYTES,
        CutVariant::Torn4k => byte / (4 << 10),
        _ => 0,
    };
    let mut survived: Vec<_> = evidence
        .iter()
        .filter_map(|evidence| Some((evidence.survived?, unit(evidence.byte))))
        .collect();
    survived.sort_unstable();
    survived.dedup();
    let gone = evidence
        .iter()
        .flat_map(|evidence| evidence.gone.iter().map(|at| (*at, unit(evidence.byte))));
    let mut gone: Vec<_> = gone.collect();
    gone.sort_unstable();
    gone.dedup();
    if let Some((lost, _)) = gone.iter().find(|(at, _)| changes[*at].is_durable) {
        return Err(format!("change {lost} was durable and is gone"));
    }
    if let Some(both) = gone.iter().find(|one| survived.binary_search(one).is_ok()) {
        return Err(format!("part of {both:?} is there and part is not"));
    }
    let volatile = || survived.iter().filter(|(at, _)| !changes[*at].is_durable);
    let (last, first) = (volatile().map(|(at, _)| *at).max(), gone.iter().map(|(at, _)| *at).min());
    let (Some(last), Some(first)) = (last, first) else { return Ok(()) };
    let is_ordered = match cut {
        CutVariant::None | CutVariant::All => false,
        CutVariant::Prefix => last < first,
        CutVariant::Epoch => changes[last].epoch <= changes[first].epoch,
        CutVariant::Random | CutVariant::Torn | CutVariant::Torn4k => true,
    };
    is_ordered.then_some(()).ok_or_else(|| format!("{last} is there and {first} is not"))
}

proptest! {
    /// Each variant leaves only states that it allows; what an honest drive has
    /// flushed, or written past its cache, is in all of them.
    #[test]
    fn a_variant_leaves_only_what_it_allows(asks in asks(), seed: u64) {
        for behavior in [Behavior::Honest, Behavior::Lying { lag: None }] {
            let (mut drive, changes) = run(behavior, &asks);
            for cut in CutVariant::ALL {
                let image = content(&drive.cut(Duration::ZERO, cut, &mut Random::new(seed)));
                let allowed = is_allowed(cut, &image, &changes);
                prop_assert_eq!(allowed, Ok(()), "{} {}", cut.name(), behavior);
            }
            let all = drive.cut(Duration::ZERO, CutVariant::All, &mut Random::new(seed));
            prop_assert_eq!(content(&all), made(&changes));
            let none = drive.cut(Duration::ZERO, CutVariant::None, &mut Random::new(seed));
            let durable = changes.iter().filter(|change| change.is_durable);
            let is_flushed_only = !asks.iter().any(|ask| matches!(ask, ModelRequest::Fua { .. }));
            if is_flushed_only {
                prop_assert_eq!(content(&none), made(durable));
            }
        }
    }

    /// The same requests and the same seed are the same cut, on another drive
    /// and another day.
    #[test]
    fn a_run_can_be_had_again(asks in asks(), seed: u64) {
        let [(mut first, _), (mut second, _)] = [(); 2].map(|()| run(Behavior::Honest, &asks));
        for cut in CutVariant::ALL {
            let [first, second] = [&mut first, &mut second]
                .map(|drive| content(&drive.cut(Duration::ZERO, cut, &mut Random::new(seed))));
            prop_assert_eq!(first, second, "{}", cut.name());
        }
        let [first, second] = [first, second].map(|mut drive| {
            drive.history().unwrap().events().collect::<io::Result<Vec<_>>>().unwrap()
        });
        prop_assert_eq!(first, second);
    }
}

/// A write past the cache is durable by itself; what was before it is not, and
/// never comes back over it.
#[test]
fn a_write_past_the_cache_is_durable_and_stays_the_later_one() {
    let now = Duration::ZERO;
    let mut drive = Drive::new(Traits::new(Behavior::Honest), Image::new(SIZE as u64));
    drive.write(now, 0, &[1; 8192]).unwrap();
    drive.write_fua(now, 0, &[2; 4096]).unwrap();
    assert_eq!(drive.volatile_bytes(now), 8192);
    for (cut, behind) in [(CutVariant::None, 0), (CutVariant::All, 1)] {
        let left = content(&drive.cut(now, cut, &mut Random::new(1)));
        assert_eq!((left[0], left[4096]), (2, behind), "{}", cut.name());
    }
    drive.flush(now).unwrap();
    assert_eq!(content(&drive.cut(now, CutVariant::None, &mut Random::new(1)))[0], 2);
    let lying = Behavior::Lying { lag: None };
    let mut drive = Drive::new(Traits::new(lying), Image::new(SIZE as u64));
    drive.write_fua(now, 0, &[2; 4096]).unwrap();
    assert_eq!(content(&drive.cut(now, CutVariant::None, &mut Random::new(1)))[0], 0);
}

/// A mark belongs to the boundary after it: what was acknowledged as safe before a flush
/// was acknowledged is owed there.
#[test]
fn each_boundary_has_its_owed_writes() {
    let now = Duration::ZERO;
    let traits = Traits::new(Behavior::Lying { lag: None });
    let mut drive = Drive::new(traits, Image::new(SIZE as u64));
    assert!(drive.history().is_err());
    drive.remember(tempfile::tempdir().unwrap().path()).unwrap();
    for number in 1..=3 {
        drive.write(now, 0, &[number]).unwrap();
        drive.flush(now).unwrap();
        drive.mark(u64::from(number));
    }
    drive.trim(now, 0, 512).unwrap();
    drive.flush(now).unwrap();
    let history = drive.history().unwrap();
    let reported = |at: Boundary| (at.number, at.marked, content(&at.image)[0]);
    let boundaries: Vec<_> = history.at_flushes().map(Result::unwrap).map(reported).collect();
    assert_eq!(boundaries, [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 3, 0)]);
    let singly: Vec<_> =
        (0..=5).filter_map(|number| history.at_flush(number).unwrap().map(reported)).collect();
    assert_eq!(singly, boundaries);
    assert_eq!((history.flushes(), history.marks().unwrap()), (4, vec![0, 1, 2, 3]));
}

/// A drive can become another and fail while it runs.
#[test]
fn a_drive_changes_while_it_runs() {
    let now = Duration::ZERO;
    let mut drive = Drive::new(Traits::new(Behavior::Honest), Image::new(SIZE as u64));
    drive.write(now, 0, b"kept").unwrap();
    drive.flush(now).unwrap();
    drive.set_behavior(now, Behavior::Lying { lag: None });
    drive.write(now, 0, b"lost").unwrap();
    drive.flush(now).unwrap();
    assert_eq!(&content(&drive.cut(now, CutVariant::None, &mut Random::new(1)))[..4], b"kept");
    drive.set_behavior(now, Behavior::Protected);
    assert_eq!(drive.volatile_bytes(now), 0);
    assert_eq!(&content(&drive.cut(now, CutVariant::None, &mut Random::new(1)))[..4], b"lost");
    drive.fail_after(1, 1);
    assert!(drive.write(now, 0, b"well").is_ok());
    assert_eq!(drive.trim(now, 0, 4), Err(DriveError::Injected));
    assert!(drive.flush(now).is_ok() && drive.write(now, 0, b"well").is_ok());
}
