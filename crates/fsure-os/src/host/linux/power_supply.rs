//! Batteries and UPSs that keep this machine running without the mains, from sysfs. A UPS that
//! only a daemon talks to (NUT, apcupsd) is not among them.

use std::fs;
use std::path::Path;

/// The folder in which the kernel lists power supplies.
const CLASS: &str = "/sys/class/power_supply";

/// Returns the batteries and UPSs of this machine in words; `None` if the system knows of none.
pub(super) fn backup() -> Option<String> {
    backup_in(Path::new(CLASS))
}

fn backup_in(class: &Path) -> Option<String> {
    let supplies = fs::read_dir(class).ok()?.flatten();
    let mut all: Vec<_> = supplies.filter_map(|supply| describe(&supply.path())).collect();
    all.sort();
    (!all.is_empty()).then(|| all.join(", "))
}

/// A supply in words: `battery BAT0 (87 %, Discharging)`. `None` if it is none that keeps the
/// machine running: the mains, an empty bay, the battery of a mouse.
fn describe(supply: &Path) -> Option<String> {
    let word = |file: &str| {
        let text = fs::read_to_string(supply.join(file)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let kind = match word("type")?.as_str() {
        "Battery" => "battery",
        "UPS" => "UPS",
        _ => return None,
    };
    if word("scope").as_deref() == Some("Device") || word("present").as_deref() == Some("0") {
        return None;
    }
    let name = supply.file_name()?.to_string_lossy().into_owned();
    let charge = word("capacity").map(|percent| format!("{percent} %"));
    let facts: Vec<_> = charge.into_iter().chain(word("status")).collect();
    Some(match facts.is_empty() {
        true => format!("{kind} {name}"),
        false => format!("{kind} {name} ({})", facts.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supply(class: &Path, name: &str, files: &[(&str, &str)]) {
        fs::create_dir(class.join(name)).unwrap();
        for (file, content) in files {
            fs::write(class.join(name).join(file), format!("{content}\n")).unwrap();
        }
    }

    #[test]
    fn what_keeps_the_machine_running_is_found_and_nothing_else() {
        let class = tempfile::tempdir().unwrap();
        supply(class.path(), "AC", &[("type", "Mains"), ("online", "1")]);
        supply(class.path(), "hid-mouse", &[("type", "Battery"), ("scope", "Device")]);
        supply(class.path(), "BAT1", &[("type", "Battery"), ("present", "0")]);
        assert_eq!(backup_in(class.path()), None);
        let battery =
            [("type", "Battery"), ("scope", "System"), ("capacity", "87"), ("status", "Full")];
        supply(class.path(), "BAT0", &battery);
        supply(class.path(), "hidups", &[("type", "UPS")]);
        let all = backup_in(class.path());
        assert_eq!(all.as_deref(), Some("UPS hidups, battery BAT0 (87 %, Full)"));
        assert_eq!(backup_in(&class.path().join("none")), None);
    }
}
