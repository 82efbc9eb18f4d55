//! Kinds of drives: they decide when acknowledged writes are durable.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fsure_core::units;

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// A flush is acknowledged when all before it is on the medium.
    Honest,
    /// The cache survives a cut: every acknowledged write is durable (power-loss
    /// protection, a battery).
    Protected,
    /// Flushes are acknowledged and do nothing.
    Lying {
        /// Time after which a write reaches the medium by itself, in order; `None` if it
        /// does not during a run.
        lag: Option<Duration>,
    },
    /// A flush within this time of the last real one is acknowledged at once and
    /// done when the time is over, as Apple's driver can be set to
    /// (`drivers/nvme/host/apple.c`, `flush_interval`). Nothing keeps the order of
    /// what waits meanwhile.
    Defer {
        /// The time.
        longest: Duration,
    },
}

/// The error for a name that no drive has; it lists those that exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no drive is called {0:?}: choose honest, plp, lying, lying:TIME or defer:TIME, with a time \
     such as 5s or 0.2s"
)]
pub struct UnknownDrive(String);

impl FromStr for Behavior {
    type Err = UnknownDrive;

    /// The inverse of [`fmt::Display`].
    fn from_str(text: &str) -> Result<Self, UnknownDrive> {
        let unknown = || UnknownDrive(text.to_owned());
        let (name, time) = match text.split_once(':') {
            Some((name, time)) => (name, Some(units::parse_span(time).ok_or_else(unknown)?)),
            None => (text, None),
        };
        match (name, time) {
            ("honest", None) => Ok(Self::Honest),
            ("plp", None) => Ok(Self::Protected),
            ("lying", lag) => Ok(Self::Lying { lag }),
            ("defer", Some(longest)) => Ok(Self::Defer { longest }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Behavior {
    /// The name on the command line and in results.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Honest => f.write_str("honest"),
            Self::Protected => f.write_str("plp"),
            Self::Lying { lag: None } => f.write_str("lying"),
            Self::Lying { lag: Some(lag) } => write!(f, "lying:{}s", lag.as_secs_f64()),
            Self::Defer { longest } => write!(f, "defer:{}s", longest.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_as_it_is_printed() {
        for name in ["honest", "plp", "lying", "lying:5s", "defer:1s", "defer:0.2s"] {
            assert_eq!(name.parse::<Behavior>().map(|drive| drive.to_string()).unwrap(), name);
        }
        let minute = Behavior::Lying { lag: Some(Duration::from_secs(60)) };
        assert_eq!("lying:1min".parse(), Ok(minute));
        for wrong in ["", "Honest", "honest:1s", "defer", "lying:", "lying:x", "defer:-1s", "plp "]
        {
            let error = wrong.parse::<Behavior>().unwrap_err();
            assert!(error.to_string().contains("defer:TIME"), "{error}");
        }
    }
}
