//! How long somebody has not moved. Counted in looks and not by the clock: a
//! process that was stopped, or a machine that slept, has not been silent.

use std::time::{Duration, Instant};

/// The most that one look adds.
const STEP_MAX: Duration = Duration::from_secs(1);

/// The silence of one who counts its moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    moves: u64,
    silent: Duration,
    looked: Instant,
}

impl Silence {
    /// Begins now.
    pub(crate) fn new() -> Self {
        Self { moves: 0, silent: Duration::ZERO, looked: Instant::now() }
    }

    /// How long it lasts by now, `moves` having been made in all.
    pub(crate) fn look(&mut self, moves: u64) -> Duration {
        let since = self.looked.elapsed().min(STEP_MAX);
        self.looked = Instant::now();
        self.silent = if moves == self.moves { self.silent + since } else { Duration::ZERO };
        self.moves = moves;
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_adds_a_second_at_the_most() {
        let mut silence = Silence::new();
        silence.looked = Instant::now().checked_sub(Duration::from_secs(500)).unwrap();
        assert_eq!(silence.look(0), STEP_MAX);
        silence.looked = Instant::now().checked_sub(Duration::from_secs(500)).unwrap();
        assert_eq!(silence.look(0), 2 * STEP_MAX);
        assert_eq!(silence.look(1), Duration::ZERO);
    }
}
