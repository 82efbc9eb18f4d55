//! Results of cuts of each drive, kept for `flush`: one line for each check.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use fsure_os::append_file::AppendFile;
use fsure_os::{path as os_path, user_file};
use serde::{Deserialize, Serialize};

use super::TestedDevice;
use super::messages::DriveHistory;

/// The version of a line.
const VERSION: u32 = 1;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "cut")]
pub(super) struct StoredCut {
    pub(super) version: u32,
    pub(super) run: String,
    pub(super) checked: String,
    #[serde(flatten)]
    pub(super) device: TestedDevice,
    pub(super) acked: u64,
    pub(super) failed: u64,
}

impl StoredCut {
    pub(super) fn new(
        run: String,
        checked: String,
        device: TestedDevice,
        acked: u64,
        failed: u64,
    ) -> Self {
        Self { version: VERSION, run, checked, device, acked, failed }
    }
}

/// Appends a line, durably.
pub(super) fn keep(file: &Path, cut: &StoredCut) -> io::Result<()> {
    let mut growing = AppendFile::open(file)?;
    let mut text = Vec::new();
    growing.content()?.read_to_end(&mut text)?;
    let mut line = serde_json::to_vec(cut).map_err(io::Error::other)?;
    line.push(b'\n');
    // After a line that a power cut has torn, a new one begins.
    if text.last().is_some_and(|last| *last != b'\n') {
        line.insert(0, b'\n');
    }
    growing.append(&line)?;
    growing.sync()
}

/// Returns all that is known of a drive with its firmware. A run is one cut, however
/// often it was checked.
pub fn kept(file: &Path, device: &TestedDevice) -> io::Result<DriveHistory> {
    if !os_path::exists(file) {
        return Ok(DriveHistory::default());
    }
    let mut text = Vec::new();
    user_file::open(file)?.read_to_end(&mut text)?;
    let mut runs = BTreeMap::<String, StoredCut>::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(cut) = serde_json::from_slice::<StoredCut>(line) else { continue };
        if cut.version != VERSION || !cut.device.is_same(device) {
            continue;
        }
        match runs.get_mut(&cut.run) {
            Some(before) if before.failed >= cut.failed => {}
            _ => drop(runs.insert(cut.run.clone(), cut)),
        }
    }
    let mut all = DriveHistory::default();
    for cut in runs.values() {
        all.made += 1;
        all.acknowledged = all.acknowledged.saturating_add(cut.acked);
        all.lost = all.lost.saturating_add(cut.failed);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(serial: &str, firmware: Option<&str>) -> TestedDevice {
        let firmware = firmware.map(str::to_owned);
        TestedDevice { serial: serial.to_owned(), firmware, model: Some("M".to_owned()) }
    }

    #[test]
    fn cuts_are_counted_once_and_for_their_drive_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("powercut.jsonl");
        let one = device("S1", Some("F1"));
        assert_eq!(kept(&file, &one).unwrap(), DriveHistory::default());
        let cut = |run: &str, device: &TestedDevice, failed| {
            StoredCut::new(run.to_owned(), "2026".to_owned(), device.clone(), 100, failed)
        };
        keep(&file, &cut("a", &one, 0)).unwrap();
        keep(&file, &cut("a", &one, 2)).unwrap();
        keep(&file, &cut("a", &one, 0)).unwrap();
        // A line that was torn, one of a later version, one of another kind.
        let mut text = std::fs::read_to_string(&file).unwrap();
        text += &text.replace("\"version\":1", "\"version\":2").replace("\"a\"", "\"z\"");
        text += "{\"type\":\"other\"}\n{\"type\":\"cut\",\"ver";
        std::fs::write(&file, text).unwrap();
        keep(&file, &cut("b", &one, 0)).unwrap();
        keep(&file, &cut("c", &device("S2", Some("F1")), 7)).unwrap();
        keep(&file, &cut("d", &device("S1", Some("F2")), 7)).unwrap();
        keep(&file, &cut("e", &device("S1", None), 7)).unwrap();
        let all = DriveHistory { made: 2, acknowledged: 200, lost: 2 };
        assert_eq!(kept(&file, &one).unwrap(), all);
        let unknown = DriveHistory { made: 1, acknowledged: 100, lost: 7 };
        assert_eq!(kept(&file, &device("S1", None)).unwrap(), unknown);
    }
}
