//! Checks every flush of a run, and not only moments that were chosen at random: the
//! program runs for a while on a drive that records all requests, and then each state
//! that an honest drive can be in right after a flush is mounted and checked. What was
//! acknowledged before that flush is owed.

use std::time::Instant;

use super::backend::OfflineDrive;
use super::check_image::{examine, twin_found_no_loss};
use super::context::CrashRun;
use super::disturbed::undisturbed;
use super::program::PROGRAM_POLL_INTERVAL;
use super::run::REMEMBERING;
use crate::{CrashLine, CutMade};
use fsure_core::{Error, IoContext as _, Result};
use fsure_simdrive::{Behavior, Boundary, History};

/// Name of the variant in results.
const VARIANT: &str = "flush";

/// Checks the drive at every flush boundary.
pub(super) fn every_flush(
    run: &CrashRun<'_>,
    has_teeth: bool,
    each: &mut dyn FnMut(&CutMade),
) -> Result<()> {
    let recorded = undisturbed(run.listener, "the run", || record(run));
    let Some(history) = recorded? else { return Ok(()) };
    let all = history.flushes();
    for boundary in history.at_flushes() {
        let boundary =
            boundary.context("read every write again in", &run.options.history_folder)?;
        if run.listener.stop_requested().is_some() {
            return Ok(());
        }
        let share = (boundary.number - 1) as f64 / all as f64;
        let what = format!("the drive at flush {} of {all}", boundary.number);
        run.listener.under_way(&what, share);
        let Some(cut) = look(run, &boundary, has_teeth)? else { return Ok(()) };
        each(&cut);
        run.listener.report(&CrashLine::Cut(cut));
    }
    Ok(())
}

/// Runs the program for the time in the options and returns the record of all requests to
/// the drive; `None` if the run is to end.
fn record(run: &CrashRun<'_>) -> Result<Option<History>> {
    let Some(span) = run.options.every_flush else {
        return Err(Error::Internal("no time for a run".to_owned()));
    };
    let mut going = run.start(Behavior::Honest)?;
    run.listener.under_way("recording every write", 0.0);
    let begun = Instant::now();
    while begun.elapsed() < span {
        if run.listener.stop_requested().is_some() {
            return Ok(None);
        }
        going.drive.remembers_all().context(REMEMBERING, &run.options.history_folder)?;
        if let Some(ended) = going.program.ended().context("wait for", &run.options.folder)? {
            going.may_have_ended(ended, &run.options.front)?;
            break;
        }
        std::thread::sleep(PROGRAM_POLL_INTERVAL);
    }
    let history = going.drive.history();
    // Either all flushes up to the end of the history are in it, or nothing is shown.
    going.check()?;
    history.map(Some).context(REMEMBERING, &run.options.history_folder)
}

/// Has the drive at one boundary checked; `None` if the run is to end.
fn look(run: &CrashRun<'_>, boundary: &Boundary, has_teeth: bool) -> Result<Option<CutMade>> {
    let acked = boundary.marked;
    let left = OfflineDrive::Blocks(boundary.image.clone());
    let found = examine(run.options, run.site, &left, acked, run.listener)?;
    let Some(state) = found.state else { return Ok(None) };
    let state = twin_found_no_loss(state, has_teeth);
    let mut cut = CutMade {
        workload: run.options.workload.clone(),
        n: boundary.number,
        drive: Behavior::Honest.to_string(),
        fs: run.options.front.name().to_owned(),
        variant: VARIANT.to_owned(),
        acked,
        lost: found.lost(state, acked),
        // The record of the drive has no times.
        acked_per_second: None,
        oldest_lost_ms: None,
        state,
        twin: false,
        detail: found.detail,
        image: None,
        missing_syncs: None,
    };
    if state.is_loss() {
        cut.image = run.keep(&cut, &left);
    }
    Ok(Some(cut))
}
