//! The order of the turns. All ways take turns, round after round, each round beginning with
//! another one, so that what the machine does meanwhile hits all of them alike. The first round
//! is a warm-up, which is shown and not counted.

use std::time::{Duration, Instant};

use fsure_core::{Error, Result, Step, units};
use fsure_os::memory_info::CacheGauge;

use super::bystander::Bystander;
use super::turn::{Load, Surroundings, Turn, Volume, take_turn};
use super::way::Way;
use super::way_line::{self, Entrant};
use crate::results::{MeasurementMonitor, NotRun, ResultLine};

/// The rounds to be made.
pub(super) struct Rounds {
    /// Counted rounds.
    pub(super) runs: usize,
    /// Time after which no further round begins, once each way has a counted turn.
    pub(super) budget: Duration,
    /// True if the page cache of the machine is to be emptied in one of the ways.
    pub(super) purges: bool,
    /// The loads, one after the other.
    pub(super) loads: Vec<Load>,
}

impl Rounds {
    fn ways(&self) -> impl Iterator<Item = Way> {
        let ways = [Way::Past, Way::Through, Way::From, Way::Purged];
        let purges = self.purges;
        ways.into_iter().filter(move |way| *way != Way::Purged || purges)
    }

    /// The first round, 0 for a warm-up. A single run has none, which would double its time.
    fn first(&self) -> usize {
        usize::from(self.runs == 1)
    }

    fn turns(&self) -> usize {
        self.loads.len() * self.ways().count() * (self.runs + 1 - self.first())
    }
}

/// A measurement under way.
pub(super) struct TreeRunner<'a> {
    rounds: &'a Rounds,
    volumes: &'a [Volume],
    gauge: &'a CacheGauge,
    bystander: Option<Bystander>,
    listener: &'a dyn MeasurementMonitor,
    began: Instant,
    turns_done: usize,
}

/// The number of ways that were measured, and of those that were not.
type Counts = (u64, u64);

impl<'a> TreeRunner<'a> {
    /// A measurement that begins now.
    pub(super) fn new(
        rounds: &'a Rounds,
        volumes: &'a [Volume],
        gauge: &'a CacheGauge,
        bystander: Option<Bystander>,
        listener: &'a dyn MeasurementMonitor,
    ) -> Self {
        let began = Instant::now();
        Self { rounds, volumes, gauge, bystander, listener, began, turns_done: 0 }
    }

    /// Measures under each load, and reports it.
    pub(super) fn all(mut self) -> Counts {
        let (mut measured, mut not_run) = (0, 0);
        for load in &self.rounds.loads {
            // Of the first load, each way is reported in any case.
            if self.is_stopped() && measured + not_run > 0 {
                break;
            }
            let entrants = self.measure(*load);
            for entrant in entrants.iter().filter(|entrant| entrant.turns.is_empty()) {
                not_run += 1;
                let (name, target) = (entrant.way.name().to_owned(), self.targets());
                let why = entrant.failure.clone().unwrap_or_else(|| "interrupted".to_owned());
                self.listener.measured(&ResultLine::NotRun(NotRun { name, target, why }));
            }
            for line in way_line::ways(*load, &entrants, self.volumes) {
                measured += 1;
                self.listener.measured(&ResultLine::TreeWay(line));
            }
            for words in way_line::remarks(&entrants, self.volumes) {
                self.warn(words);
            }
            if let Some(cost) = way_line::cost(*load, &entrants) {
                self.listener.measured(&ResultLine::CacheCost(cost));
            }
        }
        (measured, not_run)
    }

    fn measure(&mut self, load: Load) -> Vec<Entrant> {
        let mut entrants: Vec<_> = self.rounds.ways().map(Entrant::new).collect();
        for round in self.rounds.first()..=self.rounds.runs {
            if round > 1 && self.began.elapsed() >= self.rounds.budget {
                self.warn(format!(
                    "{} of {} rounds were made in {:.0} s; '--budget' allows more time, a smaller \
                     '--bytes' makes a round shorter",
                    round - 1,
                    self.rounds.runs,
                    self.began.elapsed().as_secs_f64()
                ));
                break;
            }
            entrants.rotate_left(usize::from(round > self.rounds.first()));
            for entrant in entrants.iter_mut().filter(|entrant| entrant.failure.is_none()) {
                if self.is_stopped() {
                    break;
                }
                match self.turn(entrant.way, load) {
                    Ok(turn) if round == 0 => entrant.warm_up = Some(turn.rate()),
                    Ok(turn) => entrant.turns.push(turn),
                    Err(_) if self.is_stopped() => {}
                    Err(error) => {
                        self.warn_stopped(entrant, &error);
                        entrant.failure = Some(error.to_string());
                    }
                }
            }
        }
        entrants.sort_by_key(|entrant| self.rounds.ways().position(|way| way == entrant.way));
        entrants
    }

    fn turn(&mut self, way: Way, load: Load) -> Result<Turn> {
        let what = format!("{}, {}", way.name(), self.targets());
        let share = self.turns_done as f64 / self.rounds.turns().max(1) as f64;
        self.turns_done += 1;
        let listener = self.listener;
        let announce = |what: &str| listener.under_way(&Step { what, share });
        announce(&what);
        let progress = |bytes: u64| announce(&format!("{what}: {} read", units::size(bytes)));
        let turn = take_turn(
            &mut Surroundings {
                volumes: self.volumes,
                gauge: self.gauge,
                bystander: self.bystander.as_mut(),
                progress: &progress,
                monitor: self.listener,
            },
            way,
            load,
        )?;
        require_most_read(self.volumes, &turn)?;
        Ok(turn)
    }

    fn targets(&self) -> String {
        let targets: Vec<_> = self.volumes.iter().map(|volume| volume.target.as_str()).collect();
        targets.join(", ")
    }

    fn is_stopped(&self) -> bool {
        self.listener.stop_requested().is_some()
    }

    fn warn(&self, words: String) {
        self.listener.measured(&ResultLine::Warning { words });
    }

    /// Reports the end of a way that has turns, which are shown all the same.
    fn warn_stopped(&self, entrant: &Entrant, error: &Error) {
        if !entrant.turns.is_empty() {
            let (way, runs) = (entrant.way.name(), entrant.turns.len());
            self.warn(format!("{way}: stopped after {runs} runs: {error}"));
        }
    }
}

/// Fails if most files could not be read, as of a medium that is gone. A few that are denied are
/// left out of all ways alike.
fn require_most_read(volumes: &[Volume], turn: &Turn) -> Result<()> {
    for (volume, read) in volumes.iter().zip(&turn.reads) {
        if read.bytes == 0 || read.failed > read.files {
            let why = read.error.as_deref().unwrap_or("they are gone");
            return Err(Error::FailedPrecondition {
                message: format!("{}: most files could not be read: {why}", volume.target),
                hint: None,
            });
        }
    }
    Ok(())
}
