//! Describes the machine of a result and its load: two figures of different machines, or
//! of a quiet and a busy one, must not be compared unawares.

use serde::{Deserialize, Serialize};

/// A machine. What could not be found out is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// The operating system and its version.
    pub system: String,
    /// The processor's own name.
    pub processor: Option<String>,
    /// Logical processors that this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Type of the virtual machine, if the machine is one: `kvm`.
    pub virtualization: Option<String>,
    /// Batteries and UPSs that the system knows of: `battery BAT0 (87 %, Full)`.
    #[serde(default)]
    pub backup_power: Option<String>,
}

/// Other activity during a run. A value that could not be found out is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Average number of running tasks in the minute before the run.
    pub load_before: Option<f64>,
    /// In the minute before its end; the run itself is in it.
    pub load_after: Option<f64>,
    /// Percent of the processors' time that the hypervisor gave to others.
    pub steal_percent: Option<f64>,
    /// Percent of the processors' time that other processes used.
    pub others_percent: Option<f64>,
}
