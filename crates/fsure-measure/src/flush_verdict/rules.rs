//! The rules, by class: the results of cuts, if the flush reached the drive at
//! all, if the time fits, and if the ways to flush agree. Each class concludes at
//! most what its facts support; the classes before it take away questions from
//! those behind (`docs/flush.md` has the table).

use super::backup_power;
use super::free_flush::FreeFlush;
use super::thresholds::{
    CONSUMER_MIN_US, COUNT_MIN, CUTS_MIN, FEW_FLUSHES, FLASH_MIN_US, FOREIGN_MAX, FREE_SHARE,
    FREE_US, HALF_TURN_FASTEST_US, HALF_TURN_US, IMPOSSIBLE_RATE, MISMATCH_FACTOR, NO_FLUSHES,
    RISING_FACTOR, SLOW_US, SPREAD_MAX, WEAK_SHARE,
};
use super::{FlushFacts, FlushFinding, FlushFindingId, Grade, Medium, WriteCache};
use fsure_core::units::microseconds;

const ONLY_A_CUT: &str = "Only a power cut while it writes can tell ('fsure powercut'); until \
                          then, keep another copy elsewhere.";

/// Returns all judgements on these facts, the proofs first. Never empty.
pub fn judge(facts: &FlushFacts) -> Vec<FlushFinding> {
    let mut all = by_class(facts);
    backup_power::add_words(&mut all, facts.backup_power.as_deref());
    all
}

fn by_class(facts: &FlushFacts) -> Vec<FlushFinding> {
    let facts = Case::new(facts);
    let mut all: Vec<_> = facts.cuts().into_iter().collect();
    if let Some(why) = facts.without_drive() {
        all.push(not_measured(why));
        return all;
    }
    if facts.facts.write_cache_changed {
        let why = "another program changed queue/write_cache during the run, which decides if the \
                   kernel sends flushes. Run it again.";
        all.push(not_measured(why.to_owned()));
        return all;
    }
    match facts.reach() {
        Some(found) => {
            let is_claim = found.id == FlushFindingId::ClaimsWt && found.grade != Grade::Bad;
            all.push(found);
            if is_claim {
                all.extend(facts.too_fast_for_heads());
                all.extend(facts.slow());
            }
        }
        None => {
            let time = facts.time();
            // Of a flush that may do nothing, a slow one says that the machine is busy.
            let is_free = time.as_ref().is_some_and(|found| found.id == FlushFindingId::FreeFlush);
            all.extend(time);
            all.extend(facts.slow().filter(|_| !is_free));
        }
    }
    all.extend(facts.mismatch());
    all.extend(facts.weak());
    all
}

fn finding(id: FlushFindingId, grade: Grade, words: String) -> FlushFinding {
    FlushFinding { id, grade, words }
}

/// Judges a loop device that sends no flush. Its data are in the memory of the machine,
/// which is not a cache that is written through.
fn overridden_loop(held: &str) -> FlushFinding {
    let setting = held.split(' ').find(|word| word.starts_with("/sys/")).unwrap_or_default();
    let words = format!(
        "OVERRIDDEN: flushes are {held}. The device itself says 'write back': another program \
         changed that, and the change outlives the file that was attached then. A power cut loses \
         acknowledged data. 'echo \"write back\" > {setting}' puts it right."
    );
    finding(FlushFindingId::ClaimsWt, Grade::Bad, words)
}

fn not_measured(why: String) -> FlushFinding {
    finding(FlushFindingId::NotMeasured, Grade::NotMeasured, format!("Not measurable here: {why}"))
}

/// Returns true for a time from a nanosecond to a day: a clock can give such a time, and
/// it can be divided by.
fn is_time(us: &f64) -> bool {
    (0.001..=86_400e6).contains(us)
}

/// The facts, without values that are not a number or not a time.
struct Case<'a> {
    facts: &'a FlushFacts,
    flush_us: Option<f64>,
    direct_us: Option<f64>,
    flushes: Option<f64>,
    weak_us: Option<f64>,
}

impl<'a> Case<'a> {
    fn new(facts: &'a FlushFacts) -> Self {
        let time = |value: Option<f64>| value.filter(is_time);
        Self {
            flush_us: time(facts.flush_us),
            direct_us: time(facts.direct_us),
            flushes: facts.flushes_per_op.filter(|n| n.is_finite() && *n >= 0.0),
            weak_us: time(facts.weak_us),
            facts,
        }
    }

    /// Judges the results of power cuts. Cuts before which no write was
    /// acknowledged have shown nothing.
    fn cuts(&self) -> Option<FlushFinding> {
        let cuts = self.facts.cuts.filter(|cuts| cuts.made > 0 && cuts.acknowledged > 0)?;
        let (made, lost, of) = (cuts.made, cuts.lost, cuts.acknowledged);
        if lost > 0 {
            let words = format!(
                "Proven by power cuts: {lost} of {of} acknowledged writes were gone after {made} \
                 cuts. Do not trust this storage with data that has no other copy."
            );
            return Some(finding(FlushFindingId::CutFailed, Grade::Bad, words));
        }
        let words = if self.is_settled() {
            format!(
                "None of {of} acknowledged writes was gone after {made} power cuts: as safe as \
                 {made} cuts can show, for this drive, its firmware and these settings."
            )
        } else {
            format!(
                "None of {of} acknowledged writes was gone after {made} of the {CUTS_MIN} power \
                 cuts that are needed for a result; one cut can come when the cache is empty. Make \
                 more cuts."
            )
        };
        Some(finding(FlushFindingId::CutPassed, Grade::Ok, words))
    }

    /// Returns true if cuts have settled what only cuts can settle.
    fn is_settled(&self) -> bool {
        self.facts
            .cuts
            .is_some_and(|cuts| cuts.made >= CUTS_MIN && cuts.acknowledged > 0 && cuts.lost == 0)
    }

    /// Returns the reason why there is no drive to judge; `None` if there is one.
    fn without_drive(&self) -> Option<String> {
        let file_system = &self.facts.file_system;
        match self.facts.medium {
            Medium::Memory => Some(format!(
                "{file_system} is in memory: a power cut loses everything in it, flushed or not."
            )),
            Medium::Remote => Some(format!(
                "{file_system} passes writes to a server or a program, and its flushes cannot be \
                 observed from here. Run this on the machine with the drive."
            )),
            _ => None,
        }
    }

    /// Judges if the flush reached the drive at all. `None` if it did, or if that
    /// cannot be observed.
    fn reach(&self) -> Option<FlushFinding> {
        let is_through = self.facts.write_cache == Some(WriteCache::Through);
        if is_through && self.facts.drive_cache_on == Some(true) {
            let words = "OVERRIDDEN: the drive says that its volatile cache is on, but the \
                         kernel's setting says that there is none (queue/write_cache is \"write \
                         through\"), so it sends no flush: a power cut loses acknowledged data. \
                         Write \"write back\" into queue/write_cache, or switch the drive's cache \
                         off.";
            return Some(finding(FlushFindingId::ClaimsWt, Grade::Bad, words.to_owned()));
        }
        if let Some(held) = self.facts.held_by_loop.as_ref().filter(|_| is_through) {
            return Some(overridden_loop(held));
        }
        if is_through && self.flushes.is_none_or(|n| n < NO_FLUSHES) {
            return Some(self.claims_write_through());
        }
        self.flush_us?;
        let n = self.flushes.filter(|n| *n < FEW_FLUSHES && !is_through)?;
        let (grade, words) = match self.facts.write_cache {
            _ if n >= NO_FLUSHES => (
                Grade::Suspicious,
                format!(
                    "Only {n:.2} flushes reached the drive for each request, although this program \
                     never requests two at a time."
                ),
            ),
            Some(_) => (
                Grade::Bad,
                format!(
                    "The flush never reaches the drive ({n:.2} for each request), and its cache is \
                     volatile (write back): a power cut loses acknowledged data."
                ),
            ),
            None => (
                Grade::Suspicious,
                format!(
                    "The flush never reaches the drive ({n:.2} for each request), and it is not \
                     known if its cache is volatile."
                ),
            ),
        };
        let advice = "Look for a mount option (nobarrier, barrier=0), a preloaded library (eatmydata), a setting of the file system (sync=disabled), or a fault of the file system.";
        Some(finding(FlushFindingId::NoFlushSent, grade, format!("{words} {advice}")))
    }

    /// Judges a kernel that sends no flush because it takes the cache for write
    /// through. The grade depends on other evidence for that, since any program
    /// with the permission can change the kernel's setting.
    fn claims_write_through(&self) -> FlushFinding {
        let (grade, why) = if self.facts.drive_cache_on == Some(false) {
            (Grade::Ok, "The drive itself says so, too.".to_owned())
        } else if self.is_settled() {
            (Grade::Ok, "The power cuts agree.".to_owned())
        } else if let Some(us) = self.reliable_us().filter(|us| *us >= self.medium_us()) {
            let time = microseconds(us);
            (Grade::Ok, format!("The time fits: {time} a write, as the medium itself takes."))
        } else {
            let words = "That is right for a drive without a cache or with capacitors, and wrong \
                         for any other: any program run by root can have set it. As root, ask the \
                         drive (nvme get-feature -f 6, hdparm -W).";
            (Grade::Suspicious, format!("{words} {ONLY_A_CUT}"))
        };
        let words = "The kernel takes the cache for write through and sends no flush.";
        finding(FlushFindingId::ClaimsWt, grade, format!("{words} {why}"))
    }

    /// Returns F, if enough was measured for a judgement on times.
    fn reliable_us(&self) -> Option<f64> {
        self.flush_us.filter(|_| self.unreliable().is_none())
    }

    /// Returns the reason why the times cannot be used; `None` if they can be.
    fn unreliable(&self) -> Option<String> {
        let FlushFacts { count, spread_us: (low, high), foreign_ratio, .. } = *self.facts;
        let spread = high / low;
        if self.flush_us.is_none() {
            Some("no flush could be timed.".to_owned())
        } else if count < COUNT_MIN {
            Some(format!(
                "{count} flushes are too few ({COUNT_MIN} are needed). Give it more time (--time)."
            ))
        } else if !is_time(&low) || !is_time(&high) {
            Some("the spread of the times is not known.".to_owned())
        } else if spread > SPREAD_MAX {
            Some(format!(
                "the times of the same flush differ too much ({} to {}); the machine or the drive \
                 is busy. Run it again when it is quiet.",
                microseconds(low),
                microseconds(high)
            ))
        } else if foreign_ratio.is_some_and(|ratio| ratio > FOREIGN_MAX) {
            Some(
                "other programs write to this drive more than this one, and their flushes cannot \
                 be told apart. Run it again when it is quiet."
                    .to_owned(),
            )
        } else {
            None
        }
    }

    /// Judges if the time fits the kind of drive that the system reports.
    fn time(&self) -> Option<FlushFinding> {
        if self.is_settled() {
            return None;
        }
        if self.facts.medium == Medium::Loop {
            let reach = match self.flushes {
                Some(_) => "a flush reaches the loop device",
                None => "flushes to the loop device are not counted",
            };
            let words = "and its cost there says nothing about the drive below. Run this in the \
                         folder of the loop device's file.";
            return Some(not_measured(format!("{reach}, {words}")));
        }
        if let Some(why) = self.unreliable() {
            return Some(not_measured(why));
        }
        let flush_us = self.flush_us?;
        let impossible = self.too_fast_for_heads();
        if impossible.is_some() {
            return impossible;
        }
        let reason = self.free_flush_reason(flush_us).filter(|_| self.facts.medium != Medium::Hdd);
        if let Some(reason) = reason {
            return Some(self.free_flush(flush_us, &reason));
        }
        Some(self.hidden(flush_us).map_or_else(|| self.plausible(flush_us), not_measured))
    }

    /// Judges a time that is shorter than a disk with heads can reach, whatever its cache is
    /// said to be.
    fn too_fast_for_heads(&self) -> Option<FlushFinding> {
        let us = self.reliable_us()?;
        if self.facts.medium != Medium::Hdd || us >= HALF_TURN_US || self.is_settled() {
            return None;
        }
        let (time, turn) = (microseconds(us), microseconds(HALF_TURN_US));
        let (grade, words) = if us < HALF_TURN_FASTEST_US {
            let fastest = microseconds(HALF_TURN_FASTEST_US);
            (
                Grade::Bad,
                format!("no disk turns that fast (half a revolution is {fastest} at 15,000 rpm)."),
            )
        } else {
            (
                Grade::Suspicious,
                "only a disk of 10,000 or 15,000 rpm could do that; check its label.".to_owned(),
            )
        };
        let words = format!(
            "A write and its flush take {time}, on a hard disk that waits {turn} on average for \
             the sector (7,200 rpm): {words} It acknowledges data that it has not written. Only a \
             controller whose cache has a battery can keep that promise. {ONLY_A_CUT}"
        );
        Some(finding(FlushFindingId::Impossible, grade, words))
    }

    /// Returns the first reason why the flush is quicker than that of a drive with a
    /// volatile cache can be; `None` if there is none.
    fn free_flush_reason(&self, flush_us: f64) -> Option<FreeFlush> {
        if self.is_rising() {
            return None;
        }
        let direct_us = self.direct_us.filter(|us| *us < self.uncached_us());
        if direct_us.is_some_and(|us| flush_us - us < FREE_US.max(FREE_SHARE * us)) {
            return Some(FreeFlush::AddsNothing);
        }
        // Noise adds time and takes none away: a busy machine with a clock of
        // 250 Hz made 4 ms of the flushes that took 0.1 on a quiet one.
        let fastest_us = flush_us.min(self.facts.spread_us.0);
        if fastest_us < FLASH_MIN_US {
            return Some(FreeFlush::QuickerThanFlash { fastest_us });
        }
        if let Some(rate) = self.rate().filter(|_| self.is_too_much_at_once(flush_us)) {
            return Some(FreeFlush::TooMuchAtOnce { rate });
        }
        // The time of one more command to a host is not known: 50 us on an idle
        // machine, ten times that on a busy one.
        let added_us = fastest_us - self.direct_us.unwrap_or(0.0);
        let is_hosts_way = self.facts.medium == Medium::Virtual && added_us < CONSUMER_MIN_US;
        is_hosts_way.then_some(FreeFlush::QuickerThanDrives { added_us })
    }

    /// Returns the time in microseconds from which a write without a flush is itself
    /// as slow as the medium: there is then no cache that a flush could empty (the
    /// founders' USB stick). Infinite for a virtual disk, because it cannot be seen
    /// from inside if a host throttles or writes.
    fn uncached_us(&self) -> f64 {
        if self.facts.medium == Medium::Virtual { f64::INFINITY } else { self.medium_us() }
    }

    /// Returns the shortest time of a write that reaches the medium, in
    /// microseconds. An unknown medium counts as a disk with heads, since it can be
    /// one. Infinite for a medium without a known limit.
    fn medium_us(&self) -> f64 {
        match self.facts.medium {
            Medium::Nvme | Medium::Ssd => CONSUMER_MIN_US,
            Medium::Hdd | Medium::Unknown => HALF_TURN_US,
            Medium::Virtual | Medium::Loop | Medium::Remote | Medium::Memory => f64::INFINITY,
        }
    }

    /// Returns true if more was flushed than any drive can take, in less time than a
    /// real flush takes. In more time that means nothing: a drive writes while it is
    /// sent more, and little is left for the flush.
    fn is_too_much_at_once(&self, flush_us: f64) -> bool {
        let most = self.points().max_by_key(|(bytes, _)| *bytes);
        most.is_some_and(|(_, us)| us.min(flush_us) < CONSUMER_MIN_US)
            && self.rate().is_some_and(|rate| rate > IMPOSSIBLE_RATE)
    }

    /// Returns the bytes flushed per second after the most that were written
    /// before a flush.
    fn rate(&self) -> Option<f64> {
        let (bytes, us) = self.points().max_by_key(|(bytes, _)| *bytes)?;
        (bytes > 0).then(|| bytes as f64 / (us / 1e6))
    }

    /// Returns true if a flush takes longer the more there is to flush, and as long
    /// as a drive could need for it.
    fn is_rising(&self) -> bool {
        let first = self.points().min_by_key(|(bytes, _)| *bytes);
        let last = self.points().max_by_key(|(bytes, _)| *bytes);
        let Some(((few, few_us), (many, many_us))) = first.zip(last) else { return false };
        let could_be_written = self.rate().is_some_and(|rate| rate <= IMPOSSIBLE_RATE);
        could_be_written
            && many > few
            && many_us > RISING_FACTOR * few_us
            && many_us - few_us >= FLASH_MIN_US
    }

    fn points(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.facts.slope.iter().copied().filter(|(_, us)| is_time(us))
    }

    fn free_flush(&self, flush_us: f64, reason: &FreeFlush) -> FlushFinding {
        let time = match self.direct_us {
            Some(us) => {
                let [flush, direct] = [flush_us, us].map(microseconds);
                format!("{flush} where a write alone (O_DIRECT) takes {direct}")
            }
            None => microseconds(flush_us),
        };
        let seen = reason.words(&time);
        let words = match self.facts.medium {
            Medium::Virtual => {
                "The disk is virtual: from inside, it cannot be seen if the host writes, has a \
                 protected cache or ignores the flush. Ask the operator of the host."
            }
            _ => {
                "The drive has a cache that survives a power cut (capacitors, a battery), or it \
                 ignores the flush: see its data sheet."
            }
        };
        finding(
            FlushFindingId::FreeFlush,
            Grade::Suspicious,
            format!("{seen} {words} {ONLY_A_CUT}"),
        )
    }

    /// Returns the reason why a time that fits is not evidence for the flush; `None` if it
    /// is evidence.
    fn hidden(&self, flush_us: f64) -> Option<String> {
        let (medium, file_system) = (self.facts.medium, &self.facts.file_system);
        let time = microseconds(flush_us);
        let flush_is_seen = match self.weak_us {
            Some(us) => flush_us - us >= FLASH_MIN_US,
            None => self.flushes.is_some(),
        };
        if self.weak_us.is_none() && ["btrfs", "zfs", "bcachefs"].contains(&file_system.as_str()) {
            Some(format!(
                "{file_system} writes much data of its own at each flush, so the drive's share of \
                 the {time} cannot be seen. {ONLY_A_CUT}"
            ))
        } else if !flush_is_seen {
            Some(format!(
                "the {time} that it takes would fit, but it cannot be seen here if a flush reached \
                 the drive. {ONLY_A_CUT}"
            ))
        } else if medium == Medium::Virtual && !self.is_rising() {
            Some(format!(
                "the disk is virtual, and from inside, its host's writing cannot be told apart \
                 from waiting for the host or a busy processor in the {time} that it takes: the \
                 time does not grow with the data to write. Ask the operator of the host. \
                 {ONLY_A_CUT}"
            ))
        } else if medium == Medium::Unknown && flush_us < HALF_TURN_US {
            Some(format!(
                "the kind of drive is not known, and {time} is plausible for flash and impossible \
                 for a hard disk. {ONLY_A_CUT}"
            ))
        } else {
            None
        }
    }

    fn plausible(&self, flush_us: f64) -> FlushFinding {
        let behind = match self.facts.medium {
            Medium::Virtual => " by the host, whose handling of it cannot be seen from inside",
            _ => "",
        };
        let words = format!(
            "Consistent with a real flush{behind}: it takes {}. That is no proof. {ONLY_A_CUT}",
            microseconds(flush_us)
        );
        finding(FlushFindingId::Plausible, Grade::Ok, words)
    }

    /// Judges a slow flush. Its cost is not a fault, and rather speaks for the flush;
    /// but it is the reason why people leave the flush out.
    fn slow(&self) -> Option<FlushFinding> {
        let us = self.reliable_us().filter(|us| *us > SLOW_US)?;
        if matches!(self.facts.medium, Medium::Hdd | Medium::Loop) {
            return None;
        }
        let words = format!(
            "Durability at the speed of a hard disk: {} each, {:.0} a second one after the other. \
             Batch many writes before one flush (see the curve); without flushes, a power cut \
             loses acknowledged data.",
            microseconds(us),
            1e6 / us
        );
        Some(finding(FlushFindingId::SlowFlush, Grade::Ok, words))
    }

    fn mismatch(&self) -> Option<FlushFinding> {
        let us = self.reliable_us()?;
        let dsync_us = self.facts.dsync_us.filter(is_time)?;
        let factor = (us / dsync_us).max(dsync_us / us);
        let (slower, faster) =
            if us > dsync_us { ("a flush", "O_DSYNC") } else { ("O_DSYNC", "a flush") };
        (factor > MISMATCH_FACTOR).then(|| {
            let words = format!(
                "{faster} is {factor:.0} times as fast as {slower} ({} and {}), although both \
                 promise the same: the drive may ignore one. Use {slower}.",
                microseconds(us.min(dsync_us)),
                microseconds(us.max(dsync_us))
            );
            finding(FlushFindingId::Mismatch, Grade::Suspicious, words)
        })
    }

    /// Judges the weaker flush. It compares medians that are far apart, which noise does not
    /// produce.
    fn weak(&self) -> Option<FlushFinding> {
        let us = self.flush_us.filter(|_| self.facts.count >= COUNT_MIN)?;
        let weak_us = self.weak_us.filter(|weak_us| *weak_us < WEAK_SHARE * us)?;
        let words = format!(
            "The weaker flush of this system (fsync on macOS) takes {}, the one that reaches the \
             drive {}: data is not durable when the weaker one returns. Check which one your \
             programs call (F_FULLFSYNC; SQLite: PRAGMA fullfsync).",
            microseconds(weak_us),
            microseconds(us)
        );
        Some(finding(FlushFindingId::WeakFsync, Grade::Suspicious, words))
    }
}
