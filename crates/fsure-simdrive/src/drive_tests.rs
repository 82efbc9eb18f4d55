//! Tests of the promises of each drive, over random requests and all cuts.

use proptest::prelude::*;

use std::time::Duration;

use super::*;
use fsure_core::Random;
use fsure_core::units::SECTOR_BYTES;

const SIZE: u64 = 64 << 10;

/// A request: a write of one value to some bytes, or a flush.
#[derive(Clone, Debug)]
enum DriveRequest {
    Write { offset: u64, length: usize, value: u8 },
    Flush,
    Wait(Duration),
}

fn asks() -> impl Strategy<Value = Vec<DriveRequest>> {
    let write = (0..SIZE - 3 * PAGE as u64, 1..3 * PAGE, 1..=255_u8)
        .prop_map(|(offset, length, value)| DriveRequest::Write { offset, length, value });
    let wait = (1..2_000_u64).prop_map(|ms| DriveRequest::Wait(Duration::from_millis(ms)));
    prop::collection::vec(prop_oneof![4 => write, 1 => Just(DriveRequest::Flush), 1 => wait], 1..60)
}

/// The drive after all requests, the time by then, and what it held after each
/// write, with the time and the number of flushes by then.
struct DriveRun {
    drive: Drive,
    now: Duration,
    after: Vec<(Duration, u64, Vec<u8>)>,
}

fn run(behavior: Behavior, asks: &[DriveRequest]) -> DriveRun {
    let mut drive = Drive::new(Traits::new(behavior), Image::new(SIZE));
    drive.remember(tempfile::tempdir().unwrap().path()).unwrap();
    let (mut now, mut after) = (Duration::ZERO, vec![(Duration::ZERO, 0, vec![0; SIZE as usize])]);
    for ask in asks {
        match ask {
            DriveRequest::Write { offset, length, value } => {
                drive.write(now, *offset, &vec![*value; *length]).unwrap();
                after.push((now, drive.counts().flushes, seen(&drive)));
            }
            DriveRequest::Flush => drop(drive.flush(now).unwrap()),
            DriveRequest::Wait(time) => now += *time,
        }
    }
    DriveRun { drive, now, after }
}

fn seen(drive: &Drive) -> Vec<u8> {
    let mut all = vec![0; SIZE as usize];
    drive.read(0, &mut all).unwrap();
    all
}

fn content(image: &Image) -> Vec<u8> {
    let mut all = vec![0; SIZE as usize];
    image.read(0, &mut all).unwrap();
    all
}

/// Returns true if each sector is as it was at one time not before `first`: no sector is
/// older than what must be there.
fn is_made_of(image: &[u8], versions: &[(Duration, u64, Vec<u8>)], first: usize) -> bool {
    (0..image.len()).step_by(SECTOR_BYTES).all(|at| {
        let sector = &image[at..at + SECTOR_BYTES];
        versions[first..].iter().any(|(_, _, version)| &version[at..at + SECTOR_BYTES] == sector)
    })
}

const LAG: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(1);

proptest! {
    /// On an honest drive a cut never takes what was flushed.
    #[test]
    fn what_was_flushed_survives(asks in asks(), seed: u64) {
        let DriveRun { mut drive, now, after } = run(Behavior::Honest, &asks);
        let flushed = drive.counts().flushes;
        let durable = after.iter().rposition(|(_, flushes, _)| *flushes < flushed).unwrap_or(0);
        for cut in CutVariant::ALL {
            let image = content(&drive.cut(now, cut, &mut Random::new(seed)));
            if cut == CutVariant::None {
                prop_assert_eq!(&image, &after[durable].2);
            }
            if matches!(cut, CutVariant::None | CutVariant::All | CutVariant::Prefix) {
                prop_assert!(after[durable..].iter().any(|(_, _, version)| *version == image));
            }
        }
        let history = drive.history().unwrap();
        let boundaries: Vec<_> = history.at_flushes().map(Result::unwrap).collect();
        prop_assert_eq!(boundaries.len() as u64, flushed);
        if let Some(last) = boundaries.last() {
            prop_assert_eq!(&content(&last.image), &after[durable].2);
        }
    }

    /// A protected cache loses nothing, whatever the cut; an honest drive
    /// loses nothing if all survives.
    #[test]
    fn a_protected_cache_loses_nothing(asks in asks(), seed: u64) {
        let DriveRun { mut drive, now, after } = run(Behavior::Protected, &asks);
        for cut in CutVariant::ALL {
            let image = content(&drive.cut(now, cut, &mut Random::new(seed)));
            prop_assert_eq!(&image, &after.last().unwrap().2);
        }
        let DriveRun { mut drive, now, after } = run(Behavior::Honest, &asks);
        let image = content(&drive.cut(now, CutVariant::All, &mut Random::new(seed)));
        prop_assert_eq!(&image, &after.last().unwrap().2);
    }

    /// A liar without a lag loses all; with one, all that is younger, and
    /// nothing that is older.
    #[test]
    fn a_liar_loses_what_is_younger_than_its_lag(asks in asks(), seed: u64) {
        let DriveRun { mut drive, now, .. } = run(Behavior::Lying { lag: None }, &asks);
        let image = drive.cut(now, CutVariant::None, &mut Random::new(seed));
        prop_assert_eq!(image.written().count(), 0);
        let DriveRun { mut drive, now, after } = run(Behavior::Lying { lag: Some(LAG) }, &asks);
        let old = after.iter().rposition(|(at, _, _)| *at + LAG <= now).unwrap_or(0);
        let image = content(&drive.cut(now, CutVariant::None, &mut Random::new(seed)));
        prop_assert_eq!(&image, &after[old].2);
    }

    /// A drive that defers loses nothing that was flushed longer ago than it
    /// defers.
    #[test]
    fn a_deferred_flush_is_done_in_time(asks in asks(), seed: u64) {
        let DriveRun { mut drive, now, after } = run(Behavior::Defer { longest: LONGEST }, &asks);
        let mut flushed_by = Duration::ZERO;
        let (mut at, mut durable_flushes, mut flushes) = (Duration::ZERO, 0, 0);
        for ask in &asks {
            match ask {
                DriveRequest::Wait(time) => at += *time,
                DriveRequest::Flush => {
                    flushes += 1;
                    if at + LONGEST <= now {
                        (flushed_by, durable_flushes) = (at, flushes);
                    }
                }
                DriveRequest::Write { .. } => {}
            }
        }
        let durable = after
            .iter()
            .rposition(|(at, flushes, _)| *at <= flushed_by && *flushes < durable_flushes)
            .unwrap_or(0);
        let image = content(&drive.cut(now, CutVariant::None, &mut Random::new(seed)));
        prop_assert!(after[durable..].iter().any(|(_, _, version)| *version == image));
    }

    /// No cut makes up content or brings back what was overwritten durably;
    /// one seed is one cut.
    #[test]
    fn a_cut_is_made_of_what_was_written(asks in asks(), seed: u64) {
        let aligned: Vec<_> = asks.iter().cloned().map(whole_sectors).collect();
        let DriveRun { mut drive, now, after } = run(Behavior::Honest, &aligned);
        let flushed = drive.counts().flushes;
        let durable = after.iter().rposition(|(_, flushes, _)| *flushes < flushed).unwrap_or(0);
        for cut in CutVariant::ALL {
            let image = content(&drive.cut(now, cut, &mut Random::new(seed)));
            prop_assert!(is_made_of(&image, &after, durable), "{}", cut.name());
            let again = content(&drive.cut(now, cut, &mut Random::new(seed)));
            prop_assert_eq!(image, again);
        }
    }
}

fn whole_sectors(ask: DriveRequest) -> DriveRequest {
    let sector = SECTOR_BYTES as u64;
    match ask {
        DriveRequest::Write { offset, length, value } => DriveRequest::Write {
            offset: offset / sector * sector,
            length: length.next_multiple_of(SECTOR_BYTES),
            value,
        },
        other => other,
    }
}

#[test]
fn an_epoch_keeps_the_order_across_flushes() {
    let lying = Behavior::Lying { lag: None };
    let mut drive = Drive::new(Traits::new(lying), Image::new(SIZE));
    for number in 0..8_u64 {
        drive.write(Duration::ZERO, number * PAGE as u64, &[1]).unwrap();
        drive.flush(Duration::ZERO).unwrap();
    }
    for seed in 0..200 {
        let image = drive.cut(Duration::ZERO, CutVariant::Epoch, &mut Random::new(seed));
        let offsets: Vec<_> = image.written().map(|(offset, _)| offset / PAGE as u64).collect();
        assert!(offsets.iter().zip(0..).all(|(offset, place)| *offset == place), "{offsets:?}");
    }
    let unordered = (0..200).any(|seed| {
        let image = drive.cut(Duration::ZERO, CutVariant::Random, &mut Random::new(seed));
        let first = image.written().next().map(|(offset, _)| offset);
        first.is_some_and(|offset| offset > 0)
    });
    assert!(unordered, "a random cut keeps no order");
}

#[test]
fn a_torn_write_is_torn_between_sectors() {
    for (cut, boundaries) in [
        (CutVariant::Torn, &[3600, 4096, 4608, 5120, 5632, 6144, 6600][..]),
        (CutVariant::Torn4k, &[3600, 4096, 6600][..]),
    ] {
        let mut drive = Drive::new(Traits::new(Behavior::Honest), Image::new(SIZE));
        drive.write(Duration::ZERO, 3600, &[7; 3000]).unwrap();
        let mut torn = false;
        for seed in 0..50 {
            let image = content(&drive.cut(Duration::ZERO, cut, &mut Random::new(seed)));
            let pieces: Vec<_> = boundaries.windows(2).map(|to| &image[to[0]..to[1]]).collect();
            assert!(pieces.iter().all(|piece| piece.iter().all(|byte| *byte == piece[0])));
            torn |= pieces.iter().any(|p| p[0] == 7) && pieces.iter().any(|p| p[0] == 0);
        }
        assert!(torn, "{}", cut.name());
    }
}

#[test]
fn a_drive_fails_on_demand_and_recovers() {
    let traits =
        Traits { writes_before_error: Some(2), errors: 1, ..Traits::new(Behavior::Honest) };
    let mut drive = Drive::new(traits, Image::new(SIZE));
    let mut answers = (0..4).map(|_| drive.write(Duration::ZERO, 0, b"x"));
    assert!(answers.next().unwrap().is_ok() && answers.next().unwrap().is_ok());
    assert_eq!(answers.next().unwrap(), Err(DriveError::Injected));
    assert!(answers.next().unwrap().is_ok());
    assert_eq!(drive.write(Duration::ZERO, SIZE, b"x"), Err(DriveError::OutOfRange));
    let counts = RequestCounts { writes: 3, bytes: 3, errors: 1, ..RequestCounts::default() };
    assert_eq!(drive.counts(), counts);
}

#[test]
fn an_apple_drive_flushes_46_times_a_second() {
    let traits = Traits { latency: Latency::APPLE, ..Traits::new(Behavior::Honest) };
    let mut drive = Drive::new(traits, Image::new(SIZE));
    let wait = drive.write(Duration::ZERO, 0, &[1; PAGE]).unwrap();
    let wait = wait + drive.flush(Duration::ZERO).unwrap();
    let per_second = 1.0 / wait.as_secs_f64();
    assert!((45.0..47.0).contains(&per_second), "{per_second}");
}

/// A flush that begins during another one does not end before it: what that covers was written
/// before both.
#[test]
fn an_overlapping_flush_ends_no_earlier_than_the_first() {
    let traits = Traits { latency: Latency::DISK_7200, ..Traits::new(Behavior::Honest) };
    let mut drive = Drive::new(traits, Image::new(SIZE));
    drive.write(Duration::ZERO, 0, &[1; 10 * PAGE]).unwrap();
    let first = drive.flush(Duration::ZERO).unwrap();
    let later = Duration::from_nanos(1);
    assert_eq!(later + drive.flush(later).unwrap(), first.max(later + Latency::DISK_7200.flush));
}

/// A cut in the middle of a flush may still take what the flush covers, or tear it, as one before
/// the flush.
#[test]
fn a_cut_during_a_flush_may_take_and_tear_what_it_covers() {
    let traits = || Traits { latency: Latency::APPLE, ..Traits::new(Behavior::Honest) };
    let flushed = |drive: &mut Drive| {
        drive.write(Duration::ZERO, 0, &[1; PAGE]).unwrap();
        drive.flush(Duration::ZERO).unwrap()
    };
    let past_the_cache =
        |drive: &mut Drive| drive.write_fua(Duration::ZERO, 0, &[1; PAGE]).unwrap();
    let ways: [&dyn Fn(&mut Drive) -> Duration; 2] = [&flushed, &past_the_cache];
    for make_durable in ways {
        let mut drive = Drive::new(traits(), Image::new(SIZE));
        let took = make_durable(&mut drive);
        let before = took - Duration::from_nanos(1);
        let image = drive.cut(before, CutVariant::None, &mut Random::new(1));
        assert_eq!(image.written().count(), 0, "the flush has not ended");
        assert_eq!([before, took].map(|now| drive.volatile_bytes(now)), [PAGE as u64, 0]);
        let mut is_torn = |seed| {
            let image = content(&drive.cut(before, CutVariant::Torn, &mut Random::new(seed)));
            image[..PAGE].contains(&0) && image[..PAGE].contains(&1)
        };
        assert!((0..20).any(&mut is_torn), "it can be torn until then");
        for variant in CutVariant::ALL {
            let image = content(&drive.cut(took, variant, &mut Random::new(1)));
            assert_eq!(image[..PAGE], [1; PAGE], "{}", variant.name());
        }
    }
}

/// The cache is limited: otherwise a host that never flushes, or whose flushes do
/// nothing, would use all memory.
#[test]
fn a_cache_is_finite_and_its_oldest_leaves_it_first() {
    const PIECE: usize = 8 << 20;
    for behavior in [Behavior::Honest, Behavior::Lying { lag: None }] {
        let mut drive = Drive::new(Traits::new(behavior), Image::new(2 * PIECE as u64));
        for value in 0..=40 {
            let offset = if value == 0 { 0 } else { PIECE as u64 };
            drive.write(Duration::ZERO, offset, &vec![value + 1; PIECE]).unwrap();
            assert!(drive.volatile_bytes(Duration::ZERO) <= CACHE as u64);
        }
        let image = drive.cut(Duration::ZERO, CutVariant::None, &mut Random::new(1));
        let at = |offset| {
            let mut byte = [0];
            image.read(offset, &mut byte).unwrap();
            byte[0]
        };
        assert_eq!(at(0), 1, "the oldest is durable");
        // One less than fit, for what each takes besides its bytes.
        assert_eq!(usize::from(at(PIECE as u64)), 41 - (CACHE / PIECE - 1), "in order");
    }
}
