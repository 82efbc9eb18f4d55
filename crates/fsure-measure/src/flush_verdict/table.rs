//! Tests of the rules as a table: figures that people have measured, and the
//! judgements on them. Each row that is not from a source changes one fact of one
//! that is.

use proptest::prelude::*;

use super::FlushFindingId::{
    ClaimsWt, CutFailed, CutPassed, FreeFlush, Impossible, Mismatch, NoFlushSent,
    NotMeasured as Unmeasured, Plausible, SlowFlush, WeakFsync,
};
use super::Grade::{Bad, NotMeasured, Ok as Fine, Suspicious};
use super::Medium::{Hdd, Loop, Memory, Nvme, Remote, Ssd, Unknown, Virtual};
use super::WriteCache::{Back, Through};
use super::{
    FlushFacts, FlushFindingId, Grade, Medium, PowerCutHistory, WriteCache, exit_code, judge,
};

/// Returns the facts of a quiet ext4 with a volatile cache, whose flushes reach the
/// drive and take `flush_us` with the write, which alone takes `direct_us`.
fn on(medium: Medium, flush_us: f64, direct_us: f64) -> FlushFacts {
    FlushFacts {
        medium,
        file_system: "ext4".to_owned(),
        write_cache: Some(Back),
        write_cache_changed: false,
        held_by_loop: None,
        drive_cache_on: None,
        count: 1000,
        spread_us: (flush_us / 1.3, flush_us * 1.6),
        flush_us: Some(flush_us),
        direct_us: Some(direct_us),
        flushes_per_op: Some(1.0),
        foreign_ratio: Some(0.0),
        slope: Vec::new(),
        dsync_us: None,
        weak_us: None,
        backup_power: None,
        cuts: None,
    }
}

impl FlushFacts {
    fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Reduces the facts to those that macOS provides: no counters, no cache, no
    /// write past the cache, but a weak flush.
    fn on_macos(self, weak_us: f64) -> Self {
        self.but(|facts| {
            (facts.write_cache, facts.flushes_per_op, facts.direct_us) = (None, None, None);
            (facts.foreign_ratio, facts.weak_us) = (None, Some(weak_us));
        })
    }

    fn through(self, drive_cache_on: Option<bool>) -> Self {
        self.but(|facts| {
            facts.write_cache = Some(Through);
            (facts.flushes_per_op, facts.drive_cache_on) = (Some(0.0), drive_cache_on);
        })
    }

    fn cut(self, made: u64, acknowledged: u64, lost: u64) -> Self {
        self.but(|facts| facts.cuts = Some(PowerCutHistory { made, acknowledged, lost }))
    }
}

type VerdictCase = (&'static str, FlushFacts, &'static [(FlushFindingId, Grade)], u8);

fn check(rows: Vec<VerdictCase>) {
    for (name, facts, expected, code) in rows {
        let judgements = judge(&facts);
        let actual: Vec<_> = judgements.iter().map(|finding| (finding.id, finding.grade)).collect();
        assert_eq!(actual, expected, "{name}: {judgements:#?}");
        assert_eq!(exit_code(&judgements).number(), code, "{name}");
    }
}

/// Measurements of the founders, with the judgements on them.
#[test]
fn the_founders_figures() {
    let apple = || on(Nvme, 21_700.0, 16.7);
    check(vec![
        ("46 a second with fsync on Linux", apple(), &[(Plausible, Fine), (SlowFlush, Fine)], 0),
        (
            "the same with queue/write_cache set to write through: 60,000 a second",
            on(Nvme, 16.7, 16.7).through(None),
            &[(ClaimsWt, Suspicious)],
            1,
        ),
        (
            "the same, asked as root",
            on(Nvme, 16.7, 16.7).through(Some(true)),
            &[(ClaimsWt, Bad)],
            3,
        ),
        (
            "46 a second with F_FULLFSYNC on macOS, 60,000 with fsync",
            apple().on_macos(16.7),
            &[(Plausible, Fine), (SlowFlush, Fine), (WeakFsync, Suspicious)],
            1,
        ),
        (
            "46 operations, which is what a second gives",
            apple().but(|facts| facts.count = 46),
            &[(Plausible, Fine), (SlowFlush, Fine)],
            0,
        ),
        (
            "58 a second on FAT32 with F_FULLFSYNC, 60,000 with fsync",
            on(Nvme, 1e6 / 58.0, 0.0).on_macos(1e6 / 60_000.0),
            &[(Plausible, Fine), (SlowFlush, Fine), (WeakFsync, Suspicious)],
            1,
        ),
        (
            "223 a second on a USB stick, flushed or not; the kernel finds no cache",
            on(Ssd, 1e6 / 223.0, 1e6 / 223.0).through(None),
            &[(ClaimsWt, Fine)],
            0,
        ),
        (
            "223 a second, and flushes are sent",
            on(Ssd, 1e6 / 223.0, 1e6 / 223.0),
            &[(Plausible, Fine)],
            0,
        ),
        (
            "223 a second on macOS, either way",
            on(Ssd, 1e6 / 223.0, 0.0).on_macos(1e6 / 223.0),
            &[(Unmeasured, NotMeasured)],
            5,
        ),
    ]);
}

/// Measurements of others.
#[test]
fn drives_of_others() {
    check(vec![
        ("capacitors, 12 us", on(Nvme, 12.0, 10.0), &[(FreeFlush, Suspicious)], 1),
        ("capacitors, 58 us", on(Nvme, 58.0, 11.0), &[(FreeFlush, Suspicious)], 1),
        (
            "capacitors, and the drive says so",
            on(Nvme, 12.0, 12.0).through(Some(false)),
            &[(ClaimsWt, Fine)],
            0,
        ),
        ("consumer NVMe, 0.9 ms", on(Nvme, 900.0, 15.0), &[(Plausible, Fine)], 0),
        (
            "990 Pro: fdatasync and O_DSYNC",
            on(Nvme, 1643.0, 15.0).but(|facts| facts.dsync_us = Some(4007.0)),
            &[(Plausible, Fine)],
            0,
        ),
        ("consumer NVMe, 5.6 ms", on(Nvme, 5600.0, 15.0), &[(Plausible, Fine)], 0),
        (
            "Apple M4 Pro, 5.5 ms",
            on(Nvme, 5500.0, 0.0).on_macos(30.0),
            &[(Plausible, Fine), (WeakFsync, Suspicious)],
            1,
        ),
        (
            "Apple, where the kind of drive is not known",
            on(Unknown, 5000.0, 0.0).on_macos(40.0),
            &[(Plausible, Fine), (WeakFsync, Suspicious)],
            1,
        ),
        ("hard disk, a revolution", on(Hdd, 8_300.0, 120.0), &[(Plausible, Fine)], 0),
        (
            "hard disk without its cache",
            on(Hdd, 8_300.0, 8_200.0).through(None),
            &[(ClaimsWt, Fine)],
            0,
        ),
        ("hard disk, a quarter turn", on(Hdd, 2_500.0, 120.0), &[(Impossible, Suspicious)], 1),
        ("hard disk, at once", on(Hdd, 150.0, 120.0), &[(Impossible, Bad)], 3),
        (
            "hard disk, at once, and the kernel was told that it has no cache",
            on(Hdd, 150.0, 140.0).through(None),
            &[(ClaimsWt, Suspicious), (Impossible, Bad)],
            3,
        ),
    ]);
}

/// Measurements on a virtual disk and loop devices with Linux 6.18.
#[test]
fn virtual_disks_and_images() {
    let slope =
        |many_us| move |facts: &mut FlushFacts| facts.slope = vec![(0, 84.0), (64 << 20, many_us)];
    check(vec![
        ("a virtual disk", on(Virtual, 84.0, 33.0), &[(FreeFlush, Suspicious)], 1),
        ("its busy hour", on(Virtual, 158.0, 199.0), &[(FreeFlush, Suspicious)], 1),
        (
            "its slope, 46 GB/s",
            on(Virtual, 84.0, 33.0).but(slope(1_450.0)),
            &[(FreeFlush, Suspicious)],
            1,
        ),
        (
            "a slope that a drive can climb",
            on(Virtual, 84.0, 33.0).but(slope(20_000.0)),
            &[(Plausible, Fine)],
            0,
        ),
        ("a host that waits", on(Virtual, 1800.0, 60.0), &[(Unmeasured, NotMeasured)], 5),
        (
            "a busy hour, in which a flush waits for the next tick of the clock",
            on(Virtual, 3987.0, 33.5).but(|facts| {
                facts.slope = vec![(0, 3938.0), (16 << 20, 3065.0), (64 << 20, 632.0)];
            }),
            &[(FreeFlush, Suspicious)],
            1,
        ),
        (
            "the same, of which a tenth need not wait",
            on(Virtual, 2000.0, 40.0).but(|facts| facts.spread_us = (75.3, 2200.0)),
            &[(FreeFlush, Suspicious)],
            1,
        ),
        ("a host that throttles", on(Virtual, 1800.0, 1790.0), &[(FreeFlush, Suspicious)], 1),
        (
            "a noisy disk: slow by its median, and a tenth too quick for flash",
            on(Virtual, 12_000.0, 40.0).but(|facts| facts.spread_us = (75.3, 2_200.0)),
            &[(FreeFlush, Suspicious)],
            1,
        ),
        ("ext4 in an image, fdatasync", on(Loop, 165.0, 31.0), &[(Unmeasured, NotMeasured)], 5),
        (
            "xfs in an image, syncfs",
            on(Loop, 29.0, 32.0).but(|facts| {
                facts.file_system = "xfs".to_owned();
                facts.flushes_per_op = Some(0.02);
            }),
            &[(NoFlushSent, Bad)],
            3,
        ),
        (
            "btrfs, whose own work hides the flush",
            on(Nvme, 3958.0, 38.0).but(|facts| {
                facts.file_system = "btrfs".to_owned();
                facts.flushes_per_op = Some(2.0);
            }),
            &[(Unmeasured, NotMeasured)],
            5,
        ),
        (
            "an image on a busy machine: another hour would not help",
            on(Loop, 3766.0, 11.0).but(|facts| facts.spread_us = (166.0, 8000.0)),
            &[(Unmeasured, NotMeasured)],
            5,
        ),
    ]);
    let busy = on(Loop, 3766.0, 11.0).but(|facts| facts.spread_us = (166.0, 8000.0));
    assert!(judge(&busy)[0].words.contains("a flush reaches the loop device"));
    let volatile = busy.but(|facts| facts.flushes_per_op = None);
    assert!(judge(&volatile)[0].words.contains("are not counted"), "an overlay on it");
}

/// Checks that the sentence follows from its figures.
#[test]
fn a_free_flush_is_named_with_its_evidence() {
    let slope = |facts: &mut FlushFacts| facts.slope = vec![(0, 500.0), (64 << 20, 640.0)];
    for (facts, words) in [
        (on(Virtual, 1800.0, 1790.0), "costs next to nothing (1.8 ms where a write alone"),
        (
            on(Nvme, 58.0, 11.0),
            "take 58.0 us where a write alone (O_DIRECT) takes 11.0 us, and the quickest",
        ),
        (on(Nvme, 500.0, 15.0).but(slope), "105 GB/s were flushed at once"),
        (on(Virtual, 475.0, 70.0), "The flush costs something (295 us), but less"),
    ] {
        let finding = &judge(&facts)[0];
        assert_eq!((finding.id, finding.grade), (FreeFlush, Suspicious));
        assert!(finding.words.contains(words), "{}", finding.words);
        let (flush_us, direct_us) = (facts.flush_us.unwrap(), facts.direct_us.unwrap());
        assert_eq!(finding.words.contains("next to nothing"), flush_us < 1.2 * direct_us);
    }
}

/// Another program has changed the setting of a loop device.
#[test]
fn a_loop_device_that_sends_no_flush_is_reported() {
    let held =
        "kept from the file of loop3 by 'write through' in /sys/block/loop3/queue/write_cache";
    let on_loop = |medium| {
        let facts = on(medium, 90.0, 60.0).through(None);
        facts.but(|facts| facts.held_by_loop = Some(held.to_owned()))
    };
    check(vec![
        ("in a file on a disk", on_loop(Loop), &[(ClaimsWt, Bad)], 3),
        ("in memory", on_loop(Memory), &[(Unmeasured, NotMeasured)], 5),
    ]);
    let words = &judge(&on_loop(Loop))[0].words;
    assert!(
        words.contains("'echo \"write back\" > /sys/block/loop3/queue/write_cache'"),
        "{words}"
    );
}

#[test]
fn what_cannot_be_measured() {
    let honest = || on(Nvme, 1643.0, 15.0);
    let only = &[(Unmeasured, NotMeasured)];
    check(vec![
        ("tmpfs", on(Memory, 1.7, 1.0), only, 5),
        ("nfs", on(Remote, 1643.0, 900.0), only, 5),
        ("too few", honest().but(|facts| facts.count = 29), only, 5),
        ("busy", honest().but(|facts| facts.spread_us = (100.0, 3001.0)), only, 5),
        ("no spread at all", honest().but(|facts| facts.spread_us = (0.0, 0.0)), only, 5),
        ("others", honest().but(|facts| facts.foreign_ratio = Some(1.1)), only, 5),
        (
            "a setting that was changed meanwhile",
            honest().but(|facts| {
                (facts.write_cache_changed, facts.flushes_per_op) = (true, Some(0.0));
            }),
            only,
            5,
        ),
        ("no flush", honest().but(|facts| facts.flush_us = None), only, 5),
        ("no counter", honest().but(|facts| facts.flushes_per_op = None), only, 5),
        ("which drive", on(Unknown, 1643.0, 15.0), only, 5),
        (
            "nothing known",
            honest().but(|facts| {
                facts.medium = Unknown;
                (facts.write_cache, facts.flush_us, facts.direct_us) = (None, None, None);
                (facts.flushes_per_op, facts.foreign_ratio) = (None, None);
            }),
            only,
            5,
        ),
        (
            "the flush never arrives: nobody else can change that",
            honest()
                .but(|facts| (facts.flushes_per_op, facts.foreign_ratio) = (Some(0.0), Some(9.0))),
            &[(NoFlushSent, Bad)],
            3,
        ),
    ]);
}

#[test]
fn flushes_that_do_not_arrive() {
    let with = |cache: Option<WriteCache>, flushes| {
        on(Nvme, 1643.0, 15.0)
            .but(|facts| (facts.write_cache, facts.flushes_per_op) = (cache, flushes))
    };
    check(vec![
        ("none, write back", with(Some(Back), Some(0.049)), &[(NoFlushSent, Bad)], 3),
        ("some, write back", with(Some(Back), Some(0.3)), &[(NoFlushSent, Suspicious)], 1),
        ("merged at most", with(Some(Back), Some(0.5)), &[(Plausible, Fine)], 0),
        ("none, unknown cache", with(None, Some(0.0)), &[(NoFlushSent, Suspicious)], 1),
        ("not counted, write through", with(Some(Through), None), &[(ClaimsWt, Fine)], 0),
        ("as slow as flash", on(Ssd, 900.0, 900.0).through(None), &[(ClaimsWt, Fine)], 0),
        ("quicker", on(Ssd, 899.0, 899.0).through(None), &[(ClaimsWt, Suspicious)], 1),
        ("a quick one", on(Nvme, 15.0, 15.0).through(None), &[(ClaimsWt, Suspicious)], 1),
        ("a virtual one", on(Virtual, 1800.0, 60.0).through(None), &[(ClaimsWt, Suspicious)], 1),
        (
            "a slow one, of which too few were measured",
            on(Ssd, 4484.0, 4484.0).through(None).but(|facts| facts.count = 10),
            &[(ClaimsWt, Suspicious)],
            1,
        ),
    ]);
}

#[test]
fn ways_that_do_not_agree() {
    let with = |dsync_us| on(Nvme, 1000.0, 15.0).but(|facts| facts.dsync_us = Some(dsync_us));
    check(vec![
        ("five times", with(5000.0), &[(Plausible, Fine)], 0),
        ("slower", with(5001.0), &[(Plausible, Fine), (Mismatch, Suspicious)], 1),
        ("faster", with(199.0), &[(Plausible, Fine), (Mismatch, Suspicious)], 1),
        (
            "a barrier is no weak flush (M1 Pro)",
            on(Nvme, 19_000.0, 0.0).on_macos(4_500.0),
            &[(Plausible, Fine), (SlowFlush, Fine)],
            0,
        ),
    ]);
}

#[test]
fn a_flush_that_has_something_to_do() {
    let with = |flush_us, many_us| {
        on(Nvme, flush_us, 15.0).but(|facts| {
            facts.slope = vec![(64 << 20, many_us), (0, flush_us), (1 << 20, flush_us)];
        })
    };
    check(vec![
        ("quick, but rising", with(100.0, 5_000.0), &[(Plausible, Fine)], 0),
        ("quick, and not risen enough", with(40.0, 180.0), &[(FreeFlush, Suspicious)], 1),
        ("46 GB/s", with(500.0, 1_450.0), &[(FreeFlush, Suspicious)], 1),
        ("slower than any bus", with(500.0, 1_999.0 * 4.0), &[(Plausible, Fine)], 0),
        // The drive writes while it is sent more: little is left for the flush.
        ("flat, but a real one's time", with(1643.0, 1_450.0), &[(Plausible, Fine)], 0),
        ("adds nothing to a slow way", on(Ssd, 290.0, 250.0), &[(FreeFlush, Suspicious)], 1),
        ("adds something", on(Ssd, 400.0, 250.0), &[(Plausible, Fine)], 0),
    ]);
}

#[test]
fn cuts_are_the_only_proof() {
    let liar = || on(Nvme, 15.0, 14.0);
    check(vec![
        ("five passed", liar().cut(5, 9_000, 0), &[(CutPassed, Fine)], 0),
        ("four passed", liar().cut(4, 9_000, 0), &[(CutPassed, Fine), (FreeFlush, Suspicious)], 1),
        ("nothing was at stake", liar().cut(9, 0, 0), &[(FreeFlush, Suspicious)], 1),
        ("lost", liar().cut(20, 9_000, 1), &[(CutFailed, Bad), (FreeFlush, Suspicious)], 3),
        (
            "lost, on a drive that looks right",
            on(Nvme, 1643.0, 15.0).cut(1, 9_000, 2167),
            &[(CutFailed, Bad), (Plausible, Fine)],
            3,
        ),
        (
            "write through",
            liar().through(None).cut(5, 9, 0),
            &[(CutPassed, Fine), (ClaimsWt, Fine)],
            0,
        ),
        (
            "passed, and the settings were changed since",
            liar().through(Some(true)).cut(5, 9, 0),
            &[(CutPassed, Fine), (ClaimsWt, Bad)],
            3,
        ),
        ("heads with a battery", on(Hdd, 150.0, 120.0).cut(5, 9, 0), &[(CutPassed, Fine)], 0),
    ]);
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.1..50_000.0,
        1 => proptest::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e-300]),
    ]
}

prop_compose! {
    fn any_facts()(
        medium in proptest::sample::select(
            vec![Nvme, Ssd, Hdd, Virtual, Loop, Remote, Memory, Unknown],
        ),
        file_system in proptest::sample::select(vec!["ext4", "btrfs", "", "safe"]),
        write_cache in proptest::option::of(proptest::sample::select(vec![Back, Through])),
        write_cache_changed: bool,
        held_by_loop in proptest::option::of(Just("kept from the file of loop3".to_owned())),
        drive_cache_on in proptest::option::of(any::<bool>()),
        count in prop_oneof![0_u64..100, Just(u64::MAX)],
        spread_us in prop_oneof![Just((1.0, 2.0)), (number(), number())],
        times in proptest::array::uniform4(proptest::option::of(number())),
        ratios in proptest::array::uniform2(proptest::option::of(prop_oneof![number(), 0.0..2.0])),
        slope in proptest::collection::vec(
            (prop_oneof![any::<u64>(), 0_u64..1 << 27], number()),
            0..5,
        ),
        cuts in proptest::option::of((0_u64..9, 0_u64..9, 0_u64..2)),
        backup_power in proptest::option::of(Just("battery BAT0".to_owned())),
    ) -> FlushFacts {
        let [flush_us, direct_us, dsync_us, weak_us] = times;
        let [flushes_per_op, foreign_ratio] = ratios;
        let cuts = cuts.map(|(made, acknowledged, lost)| {
            PowerCutHistory { made, acknowledged, lost }
        });
        let file_system = file_system.to_owned();
        FlushFacts {
            medium, file_system, write_cache, write_cache_changed, held_by_loop, drive_cache_on,
            count, spread_us, flush_us, direct_us, flushes_per_op, foreign_ratio, slope, dsync_us,
            weak_us, backup_power, cuts,
        }
    }
}

/// A battery of the machine is no cache that holds: the grade stays, and the words say what it
/// does and what it does not.
#[test]
fn a_battery_changes_words_and_no_grade() {
    let power = |facts: FlushFacts| facts.but(|facts| facts.backup_power = Some("UPS u".into()));
    let grades = |facts: &FlushFacts| {
        judge(facts).iter().map(|finding| (finding.id, finding.grade)).collect::<Vec<_>>()
    };
    let free = || on(Nvme, 30.0, 25.0);
    let unsent = || on(Nvme, 2_000.0, 25.0).but(|facts| facts.flushes_per_op = Some(0.0));
    for (facts, id) in [(free(), FreeFlush), (unsent(), NoFlushSent)] {
        let with = power(facts.clone());
        assert_eq!(grades(&facts), grades(&with), "{id:?}");
        let words = |facts: &FlushFacts| judge(facts)[0].words.clone();
        assert!(words(&with).contains("This machine has a UPS u: while it lasts"), "{id:?}");
        assert!(words(&with).contains("A crash or reset of the drive"), "{id:?}");
        assert!(!words(&facts).contains("This machine has"), "{id:?}");
    }
    let honest = power(on(Nvme, 2_000.0, 25.0));
    assert!(!judge(&honest)[0].words.contains("UPS"), "nothing to be said of a flush that holds");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_the_facts(facts in any_facts()) {
        let judgements = judge(&facts);
        prop_assert!(!judgements.is_empty());
        let has = |id| judgements.iter().any(|finding| finding.id == id);
        let graded = |grade| judgements.iter().any(|finding| finding.grade == grade);
        for finding in &judgements {
            let words = finding.words.replace(&facts.file_system, "");
            let claims_safe = words.to_lowercase().contains("safe");
            prop_assert!(!claims_safe || has(CutPassed), "{finding:?}");
            prop_assert!(!words.contains("NaN") && !words.contains("inf "), "{finding:?}");
            prop_assert!(words.ends_with('.'), "{finding:?}");
        }
        let ids: std::collections::HashSet<_> =
            judgements.iter().map(|finding| finding.id).collect();
        prop_assert_eq!(ids.len(), judgements.len(), "each is said once");
        let code = exit_code(&judgements).number();
        prop_assert_eq!(code == 3, graded(Bad));
        prop_assert_eq!(code == 0, judgements.iter().all(|finding| finding.grade == Fine));
        prop_assert!(!(has(CutPassed) && has(CutFailed)));
        prop_assert!(code != 0 || speaks_for(&facts), "{judgements:?}");
    }
}

/// Returns true if a known fact speaks for the drive: an unknown one must not.
fn speaks_for(facts: &FlushFacts) -> bool {
    let flush_us = facts.flush_us.unwrap_or(0.0);
    let is_seen = facts.flushes_per_op.is_some_and(|n| n >= 0.5)
        || facts.weak_us.is_some_and(|us| us < flush_us);
    let is_slow = facts.write_cache == Some(Through) && flush_us >= 900.0;
    let has_no_cache = facts.write_cache == Some(Through) && facts.drive_cache_on == Some(false);
    let has_passed = facts.cuts.is_some_and(|cuts| cuts.lost == 0 && cuts.made >= 5);
    has_passed || has_no_cache || is_slow || is_seen && flush_us >= 20.0
}
