//! Acknowledgements of a program with their times: for a cut, the amount that is owed,
//! and the age of the oldest part of it that is lost.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Prefix of a line by which the program acknowledges something.
const WORD: &[u8] = b"ACK ";
/// Acknowledgements within this time count as one: a program may make a
/// hundred thousand a second, for an hour.
const GRAIN: Duration = Duration::from_millis(1);

/// The acknowledgements of one run of a program.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    noted: Mutex<Vec<(u64, Instant)>>,
    is_new: Condvar,
}

impl Acknowledged {
    /// Returns the number in a line; `None` if the line is not an acknowledgement.
    pub(super) fn number(line: &[u8]) -> Option<u64> {
        let number = line.strip_prefix(WORD)?;
        std::str::from_utf8(number).ok()?.trim().parse().ok()
    }

    /// Notes that everything up to a number is acknowledged as safe now.
    pub(super) fn note(&self, number: u64) {
        let (mut noted, now) = (self.lock(), Instant::now());
        let highest = noted.last().map_or(0, |(number, _)| *number);
        if number <= highest {
            return;
        }
        // Takes the place of the previous entry under that entry's time: what is lost may
        // look a millisecond older for it, and not younger. It does look younger by the
        // time that the line took to arrive here, which is unknown.
        match noted.last_mut() {
            Some((last, at)) if now - *at < GRAIN => *last = number,
            _ => noted.push((number, now)),
        }
        self.is_new.notify_all();
    }

    /// Returns the highest number; 0 if there is none.
    pub(super) fn highest(&self) -> u64 {
        self.lock().last().map_or(0, |(number, _)| *number)
    }

    /// Returns the acknowledgements a second between the first one and the moment `at`; `None`
    /// if there is none, or if less than a second has passed since.
    pub(super) fn per_second(&self, at: Instant) -> Option<f64> {
        let noted = self.lock();
        let ((first, began), (last, _)) = (noted.first()?, noted.last()?);
        let seconds = at.saturating_duration_since(*began).as_secs_f64();
        (seconds >= 1.0).then(|| (last - first) as f64 / seconds)
    }

    /// Waits for the first acknowledgement, for at most `most`.
    pub(super) fn wait_for_first(&self, most: Duration) {
        let noted = self.lock();
        let waited = self.is_new.wait_timeout_while(noted, most, |noted| noted.is_empty());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the age of the first acknowledgement above `number` at the moment `at`;
    /// `None` if there is none.
    pub(super) fn age_above(&self, number: u64, at: Instant) -> Option<Duration> {
        let noted = self.lock();
        let place = noted.partition_point(|(noted, _)| *noted <= number);
        noted.get(place).map(|(_, then)| at.saturating_duration_since(*then))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Instant)>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ack_line_is_an_acknowledgement() {
        for (line, number) in [
            ("ACK 7", Some(7)),
            ("ACK 18446744073709551615", Some(u64::MAX)),
            ("ACK 7\r", Some(7)),
            ("ACK", None),
            ("ACK -1", None),
            ("ACK 7 and more", None),
            (" ACK 7", None),
            ("BACK 7", None),
        ] {
            assert_eq!(Acknowledged::number(line.as_bytes()), number, "{line}");
        }
    }

    #[test]
    fn the_age_is_that_of_the_oldest_that_is_gone() {
        let acknowledged = Acknowledged::default();
        assert_eq!(acknowledged.highest(), 0);
        acknowledged.note(10);
        std::thread::sleep(GRAIN * 20);
        acknowledged.note(20);
        acknowledged.note(15);
        assert_eq!(acknowledged.highest(), 20, "never falling");
        let now = Instant::now();
        let age = |number| acknowledged.age_above(number, now);
        assert!(age(0) >= Some(GRAIN * 20) && age(9) == age(0), "10 is the first above 9");
        assert!(age(10) < age(9) && age(19) == age(10));
        assert_eq!(age(20), None);
    }
}
