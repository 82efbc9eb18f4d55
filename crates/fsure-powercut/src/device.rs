//! The drive that a result belongs to. A result under the wrong name would report
//! something of a drive that it never did, so a result is kept only if its drive is
//! certain.

use fsure_os::storage_stack::{Stack, StorageLayer};
use serde::{Deserialize, Serialize};

/// A drive, as it identifies itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedDevice {
    /// Its serial number.
    pub serial: String,
    /// Its firmware, if it reports one.
    pub firmware: Option<String>,
    /// Its model, if it reports one.
    pub model: Option<String>,
}

impl TestedDevice {
    /// Returns the drive below a folder: the only disk, with no layer in between that has
    /// a cache or acts on its own. Fails with the reason if there is none.
    pub fn below(stack: &Stack) -> Result<Self, String> {
        let of_kind = |kind: &str| stack.layers.iter().any(|layer| layer.kind == kind);
        for kind in ["loop", "memory", "network"] {
            if of_kind(kind) {
                return Err(format!(
                    "below the folder is a layer of the kind '{kind}', which hides the drive"
                ));
            }
        }
        if let Some(held) = stack.held_flushes() {
            return Err(format!("flushes are {held}"));
        }
        let mut disks = stack.layers.iter().filter(|layer| layer.kind == "disk");
        let (Some(disk), None) = (disks.next(), disks.next()) else {
            return Err("the folder does not lie on exactly one known disk".to_owned());
        };
        let serial = fact(disk, "serial")
            .filter(|serial| is_one_of_many(serial))
            .ok_or_else(|| format!("the disk {} does not report its serial number", disk.name))?;
        Ok(Self { serial, firmware: fact(disk, "firmware"), model: fact(disk, "model") })
    }

    /// Returns true if it is the same drive with the same firmware. The model is
    /// compared, too: whole series of drive enclosures have one serial number.
    pub fn is_same(&self, other: &Self) -> bool {
        let all = |device: &Self| {
            [Some(device.serial.clone()), device.firmware.clone(), device.model.clone()]
        };
        all(self) == all(other)
    }
}

/// Returns true if this can be the serial number of one drive. Drives that have none
/// report `000000000000`.
fn is_one_of_many(serial: &str) -> bool {
    let mut letters = serial.chars().filter(|letter| letter.is_alphanumeric());
    let first = letters.next();
    first.is_some() && (letters.clone().next().is_none() || letters.any(|l| Some(l) != first))
}

fn fact(layer: &StorageLayer, name: &str) -> Option<String> {
    layer.facts.iter().find(|fact| fact.0 == name).map(|fact| fact.1.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::storage_stack::Medium;

    fn layer(kind: &'static str, facts: &[(&'static str, &str)]) -> StorageLayer {
        let facts = facts.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        StorageLayer { kind, name: "x".to_owned(), facts }
    }

    fn below(layers: Vec<StorageLayer>) -> Result<TestedDevice, String> {
        let medium = Medium::Unknown;
        TestedDevice::below(&Stack { layers, medium, is_write_back: None, drive_cache_on: None })
    }

    #[test]
    fn only_a_drive_that_is_known_has_a_name() {
        let system = || layer("file system", &[]);
        let disk = || layer("disk", &[("serial", "S"), ("model", "M")]);
        let known = TestedDevice { serial: "S".into(), firmware: None, model: Some("M".into()) };
        assert_eq!(below(vec![system(), layer("partition", &[]), disk()]), Ok(known.clone()));
        assert_eq!(below(vec![system(), layer("dm", &[]), disk()]), Ok(known));
        let held = layer("file system", &[("flushes", "kept from the disk by nobarrier")]);
        for (layers, why) in [
            (vec![system(), layer("loop", &[]), disk()], "loop"),
            (vec![system(), disk(), disk()], "not lie on exactly one"),
            (vec![system()], "not lie on exactly one"),
            (vec![system(), layer("disk", &[("model", "M")])], "serial number"),
            (vec![held, disk()], "nobarrier"),
            (vec![system(), layer("disk", &[("serial", "000000000000")])], "serial number"),
            (vec![system(), layer("disk", &[("serial", " -- ")])], "serial number"),
        ] {
            let error = below(layers).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_box_of_another_model_is_another_drive() {
        let device = |model: &str| TestedDevice {
            serial: "0123456789ABCDEF".to_owned(),
            firmware: Some("0100".to_owned()),
            model: Some(model.to_owned()),
        };
        assert!(device("M1").is_same(&device("M1")));
        assert!(!device("M1").is_same(&device("M2")));
    }
}
