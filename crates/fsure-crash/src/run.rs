//! Runs a program on one drive and cuts it as often as requested. A cut takes an image
//! while the program goes on. A program that ends is cut at its end, and started again on
//! a new drive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fsure_os::loop_device::Reliance;
use fsure_os::process_tree::Ended;

use super::acks::Acknowledged;
use super::backend::{
    AccessMode, BackendDrive, DriveConfig, DriveCut, MountedMedium, OfflineDrive,
};
use super::causes::{MissingSyncSets, missing_syncs};
use super::check_image::{examine, twin_found_no_loss};
use super::context::CrashRun;
use super::disturbed::{undisturbed, unmounted};
use super::program::{PROGRAM_POLL_INTERVAL, Program, ProgramCommand, describe_end};
use crate::{CrashLine, CutMade, CutState};
use fsure_core::Random;
use fsure_core::{Error, IoContext as _, Result};
use fsure_simdrive::{Behavior, CutVariant};

/// Timeout for a program's first acknowledgement, after which it is cut without one: a
/// database may take a while to start.
const FIRST_ACK_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for a program that has acknowledged nothing before.
const LATER_ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// The remedy for a program that fails at once.
const HINT: &str = "run it by hand in an empty folder until it prints 'ACK 1'; here it runs in the \
                    new file system, at $MNT, and '--prepare LINE' makes what it needs there";
/// Addition to the remedy for a program that needs something that the folder of fsure
/// does not have.
const FOLDER_HINT: &str = "the simulated folder has no O_TMPFILE and no extended attributes: if \
                           the program needs them, use '--fs ext4'";
/// Action in the error messages of a drive that records its writes for a check of every
/// flush.
pub(super) const REMEMBERING: &str = "remember every write in";
/// Variants of the cuts of a twin: they decide what it loses.
const TWIN_VARIANTS: [CutVariant; 2] = [CutVariant::None, CutVariant::Random];

/// Cuts to be made on a drive.
struct CutPlan<'a> {
    drive: Behavior,
    cuts: u64,
    variants: &'a [CutVariant],
    twin: bool,
    has_teeth: bool,
    known: MissingSyncSets,
}

impl CutPlan<'_> {
    /// Chooses the writes that survive a cut.
    fn variant(&self, number: u64) -> CutVariant {
        self.variants[(number - 1) as usize % self.variants.len()]
    }
}

/// A running program on its drive. The field that is dropped first ends first.
pub(super) struct RunningProgram {
    pub(super) program: Program,
    mounted: MountedMedium,
    pub(super) drive: BackendDrive,
    acknowledged: Arc<Acknowledged>,
}

impl CrashRun<'_> {
    /// Makes a few cuts of a lying drive, until the check notices a loss. Returns true if
    /// it has noticed one, `None` if nothing was cut; and the highest number that was
    /// acknowledged before a cut.
    pub(super) fn twin(&self, cuts: u64, made: &mut u64) -> Result<(Option<bool>, u64)> {
        let drive = Behavior::Lying { lag: None };
        let plan = CutPlan {
            drive,
            cuts,
            variants: &TWIN_VARIANTS,
            twin: true,
            has_teeth: true,
            known: MissingSyncSets::default(),
        };
        let (mut has_lost, mut acked) = (None, 0);
        self.make(&plan, &mut |cut| {
            *made += 1;
            acked = acked.max(cut.acked);
            *has_lost.get_or_insert(false) |= is_noticed(cut.state);
            !is_noticed(cut.state)
        })?;
        Ok((has_lost, acked))
    }

    /// Makes all cuts of a drive.
    pub(super) fn cuts(
        &self,
        drive: Behavior,
        has_teeth: bool,
        each: &mut dyn FnMut(&CutMade),
    ) -> Result<()> {
        let (cuts, variants) = (self.options.cuts, &self.options.variants[..]);
        let plan = CutPlan {
            drive,
            cuts,
            variants,
            twin: false,
            has_teeth,
            known: MissingSyncSets::default(),
        };
        self.make(&plan, &mut |cut| {
            each(cut);
            true
        })
    }

    /// Makes the cuts of a plan, as long as `each` wants more.
    fn make(&self, plan: &CutPlan<'_>, each: &mut dyn FnMut(&CutMade) -> bool) -> Result<()> {
        let (mut random, mut ack_timeout) = (Random::new(self.options.seed), FIRST_ACK_TIMEOUT);
        let mut going = None;
        for number in 1..=plan.cuts {
            if self.listener.stop_requested().is_some() {
                return Ok(());
            }
            let made = undisturbed(self.listener, &format!("cut {number}"), || {
                let made = self.next(plan, number, (&mut going, &mut random, &mut ack_timeout));
                // A drive that was disturbed is not used any more.
                made.inspect_err(|_| going = None)
            });
            let (cut, broken) = match made {
                Ok(None) => return Ok(()),
                Ok(Some(cut)) => (cut, None),
                Err(Error::HarnessBroken { why }) => (self.broken(plan, number, &why), Some(why)),
                Err(error) => return Err(error),
            };
            let is_enough = !each(&cut);
            self.listener.report(&CrashLine::Cut(cut));
            if let Some(why) = broken {
                return Err(Error::HarnessBroken { why });
            }
            if is_enough {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes the next cut, of the program that is under way or of a new one; `None` if
    /// the run is to end.
    fn next(
        &self,
        plan: &CutPlan<'_>,
        number: u64,
        (under_way, random, ack_timeout): (&mut Option<RunningProgram>, &mut Random, &mut Duration),
    ) -> Result<Option<CutMade>> {
        if under_way.is_none() {
            *under_way = Some(self.start(plan.drive)?);
        }
        let Some(going) = under_way else { return Ok(None) };
        let ended = self.wait(going, random, *ack_timeout)?;
        if let Some(ended) = ended {
            going.may_have_ended(ended, &self.options.front)?;
        }
        if going.acknowledged.highest() == 0 {
            *ack_timeout = LATER_ACK_TIMEOUT;
        }
        let cut = self.cut(plan, going, number, random)?;
        if ended.is_some() {
            *under_way = None;
        }
        Ok(cut)
    }

    /// Returns the result of a cut that could not be made without being disturbed.
    fn broken(&self, plan: &CutPlan<'_>, number: u64, why: &str) -> CutMade {
        CutMade {
            workload: self.options.workload.clone(),
            n: number,
            drive: plan.drive.to_string(),
            fs: self.options.front.name().to_owned(),
            variant: plan.variant(number).name().to_owned(),
            acked: 0,
            acked_per_second: None,
            lost: None,
            oldest_lost_ms: None,
            state: CutState::HarnessBroken,
            twin: plan.twin,
            detail: Some(why.to_owned()),
            image: None,
            missing_syncs: None,
        }
    }

    /// Starts the program on a new drive.
    pub(super) fn start(&self, behavior: Behavior) -> Result<RunningProgram> {
        let (options, folder) = (self.options, &self.options.folder);
        let remembers = behavior == Behavior::Honest && options.every_flush.is_some();
        let drive = self.base.switch_on(DriveConfig { behavior, latency: options.latency });
        if remembers {
            drive
                .remember(&options.history_folder)
                .context(REMEMBERING, &options.history_folder)?;
        }
        let mounted = drive.mount(self.site, &options.front);
        let mounted = mounted.map_err(|error| unmounted(options, error))?;
        if let Some(number) = options.failing_write {
            drive.fail_after(number.saturating_sub(1));
        }
        let acknowledged = Arc::<Acknowledged>::default();
        let (noted, marked) = (Arc::clone(&acknowledged), drive.clone());
        let output = move |line: &[u8]| {
            if let Some(number) = Acknowledged::number(line) {
                noted.note(number);
                if remembers {
                    marked.mark(number);
                }
            }
        };
        let command = ProgramCommand { words: &options.command, acked: None };
        let program = Program::start(&mounted, &command, Box::new(output));
        let program = program.context("start the program on a drive at", folder)?;
        Ok(RunningProgram { program, mounted, drive, acknowledged })
    }

    /// Waits until the next cut is due: first for something to lose, then for a random
    /// time. Returns the end of the program if it ends before.
    fn wait(
        &self,
        going: &mut RunningProgram,
        random: &mut Random,
        ack_timeout: Duration,
    ) -> Result<Option<Ended>> {
        let longest = u64::try_from(self.options.pause.as_micros()).unwrap_or(u64::MAX);
        let pause = Duration::from_micros(random.below(longest));
        let begun = Instant::now();
        let mut due = None;
        loop {
            let ended = going.program.ended().context("wait for", &self.options.folder)?;
            if ended.is_some() || self.listener.stop_requested().is_some() {
                return Ok(ended);
            }
            if due.is_none() && (going.acknowledged.highest() > 0 || begun.elapsed() >= ack_timeout)
            {
                due = Some(Instant::now() + pause);
            }
            match due {
                Some(due) if due <= Instant::now() => return Ok(None),
                Some(due) => std::thread::sleep(PROGRAM_POLL_INTERVAL.min(due - Instant::now())),
                None => going.acknowledged.wait_for_first(PROGRAM_POLL_INTERVAL),
            }
        }
    }

    /// Cuts the drive and has what is left examined; `None` if the run is to end.
    fn cut(
        &self,
        plan: &CutPlan<'_>,
        going: &RunningProgram,
        number: u64,
        random: &mut Random,
    ) -> Result<Option<CutMade>> {
        let variant = plan.variant(number);
        self.report_progress(plan, number);
        // In this order: what is owed was acknowledged before the image is taken.
        let acked = going.acknowledged.highest();
        let DriveCut { left, before_cut, at } = going.drive.cut_with_state(variant, random);
        let per_second = going.acknowledged.per_second(at);
        // Every flush up to this image has reached the drive, or nothing is shown.
        going.check()?;
        let checked = Instant::now();
        let found = examine(self.options, self.site, &left, acked, self.listener)?;
        let took = checked.elapsed();
        let Some(state) = found.state else { return Ok(None) };
        let state = twin_found_no_loss(state, plan.has_teeth);
        let lost = found.lost(state, acked);
        let first_lost = lost.filter(|lost| *lost > 0).map(|lost| acked - lost);
        let age = first_lost.and_then(|last| going.acknowledged.age_above(last, at));
        let mut cut = CutMade {
            workload: self.options.workload.clone(),
            n: number,
            drive: plan.drive.to_string(),
            fs: self.options.front.name().to_owned(),
            variant: variant.name().to_owned(),
            acked,
            acked_per_second: per_second,
            lost,
            oldest_lost_ms: age.map(milliseconds),
            state,
            twin: plan.twin,
            detail: found.detail,
            image: None,
            missing_syncs: None,
        };
        if !plan.has_teeth && state == CutState::HarnessBroken {
            let why = "the check found no loss on a lying drive either, so it proves nothing";
            cut.detail.get_or_insert_with(|| why.to_owned());
        }
        if !plan.twin && state.is_loss() {
            cut.image = self.keep(&cut, &left);
            // On another drive it is the drive that has lost what was synced.
            let before_cut = before_cut.filter(|_| plan.drive == Behavior::Honest);
            if let Some(before_cut) = before_cut {
                let missing = missing_syncs(self, &before_cut, acked, &plan.known, took);
                cut.missing_syncs = match missing {
                    // The cut counts without its cause.
                    Err(Error::Interrupted(_)) => None,
                    missing => missing?,
                };
                if cut.missing_syncs.is_none() && self.listener.stop_requested().is_none() {
                    let why = format!(
                        "cut {number}: the missing sync was not determined, because a check takes \
                         {:.0} s or more; a check of less than 5 s is repeated to find it",
                        took.as_secs_f64()
                    );
                    self.listener.warn(&why);
                }
            }
        }
        Ok(Some(cut))
    }

    fn report_progress(&self, plan: &CutPlan<'_>, number: u64) {
        let (cuts, drive) = (plan.cuts, plan.drive);
        let system = self.options.front.name();
        let what = if plan.twin {
            format!("{drive} on {system}: whether the check notices a loss")
        } else {
            format!("{drive} on {system}: cut {number} of {cuts}")
        };
        let share = if plan.twin { 0.0 } else { (number - 1) as f64 / cuts as f64 };
        self.listener.under_way(&what, self.from + share / self.options.drives.len() as f64);
    }

    /// Keeps an image if that was requested; returns its file. The result counts without
    /// it, too.
    pub(super) fn keep(&self, cut: &CutMade, left: &OfflineDrive) -> Option<String> {
        let (Some(folder), OfflineDrive::Blocks(image)) = (&self.options.keep, left) else {
            return None;
        };
        // Of a matrix, all of them are kept.
        let workload = cut.workload.as_ref().map(|name| format!("{name}-")).unwrap_or_default();
        let (drive, fs, variant) = (&cut.drive, &cut.fs, &cut.variant);
        let name = format!("{workload}{drive}-{fs}-{}-{variant}.img", cut.n);
        let path = folder.join(name.replace(':', "-"));
        match fsure_os::user_file::sparse(&path, image.size(), image.written()) {
            Ok(()) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                self.listener.warn(&format!("cannot keep an image in {}: {error}", path.display()));
                None
            }
        }
    }
}

/// Returns true if the check has noticed a loss. It has not seen a state that does not
/// mount.
fn is_noticed(state: CutState) -> bool {
    matches!(state, CutState::Lost | CutState::Corrupt)
}

/// Converts an age to milliseconds, rounded up: rounded down, it could pass for one that
/// is allowed.
fn milliseconds(age: Duration) -> u64 {
    u64::try_from(age.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl RunningProgram {
    /// Fails if another process may have kept flushes from the drive.
    pub(super) fn check(&self) -> Result<()> {
        self.mounted.check(Reliance::Flushes)
    }

    /// Fails if the program failed before it acknowledged anything: that shows nothing
    /// about the drive, unless the drive has failed a write. Any other end is allowed at
    /// any time.
    pub(super) fn may_have_ended(&self, ended: Ended, front: &AccessMode) -> Result<()> {
        let is_well = ended == Ended::Code(0) || self.acknowledged.highest() > 0;
        if is_well || self.drive.failed_writes() > 0 {
            return Ok(());
        }
        // The program is not at fault where another process has changed the device.
        self.check()?;
        let why = describe_end(ended, &self.program.last_words());
        Err(Error::FailedPrecondition {
            message: format!(
                "the program failed before it acknowledged anything, and was not cut: {why}"
            ),
            hint: Some(match front {
                AccessMode::Mounted { .. } => HINT.to_owned(),
                AccessMode::Folder(_) => format!("{HINT}; {FOLDER_HINT}"),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_teeth_only_if_it_has_bitten() {
        assert!([CutState::Lost, CutState::Corrupt].into_iter().all(is_noticed));
        let others = [CutState::Survived, CutState::Unmountable, CutState::HarnessBroken];
        assert!(!others.into_iter().any(is_noticed));
    }

    #[test]
    fn an_age_is_never_rounded_down() {
        let rounded_up = |nanoseconds| milliseconds(Duration::from_nanos(nanoseconds));
        assert_eq!(
            [rounded_up(0), rounded_up(1), rounded_up(1_000_000), rounded_up(1_000_001)],
            [0, 1, 1, 2]
        );
    }
}
