//! Measures how long a thread has made no progress. Each check adds a limited
//! time, so that a stopped process or a suspended machine does not count as stalled.

use std::time::{Duration, Instant};

/// The most that one check adds.
const STEP_MAX: Duration = Duration::from_secs(1);

/// The time since a thread that counts its steps last made one.
#[derive(Clone, Copy, Debug)]
pub struct StallDetector {
    moves: u64,
    silent: Duration,
    looked: Instant,
}

impl Default for StallDetector {
    fn default() -> Self {
        Self::new()
    }
}

impl StallDetector {
    /// Starts at the current time.
    pub fn new() -> Self {
        Self { moves: 0, silent: Duration::ZERO, looked: Instant::now() }
    }

    /// Checks the progress and returns the time without any; `moves` is the number
    /// of steps made in all.
    pub fn look(&mut self, moves: u64) -> Duration {
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
        let mut silence = StallDetector::new();
        silence.looked = Instant::now().checked_sub(Duration::from_secs(500)).unwrap();
        assert_eq!(silence.look(0), STEP_MAX);
        silence.looked = Instant::now().checked_sub(Duration::from_secs(500)).unwrap();
        assert_eq!(silence.look(0), 2 * STEP_MAX);
        assert_eq!(silence.look(1), Duration::ZERO);
    }
}
