//! Log of the messages of all daemons of RAM folders, in a file that outlives them. A
//! folder that went back to the disk by itself, or was fenced, did so while no program
//! listened.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use fsure_os::append_file::{AppendFile, read};
use fsure_os::path as os_path;
use serde::{Deserialize, Serialize};

use super::registry::{Registry, RegistryEntry};
use fsure_core::Clock;

const NOW: &str = "told";
const BEFORE: &str = "told.old";
/// Longer than this it becomes the one before, which goes.
const LENGTH_MAX: u64 = 256 << 10;

/// A message about a RAM folder for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// Time of the message, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Id of the folder.
    pub id: String,
    /// Path of the folder, for display.
    pub path: String,
    /// Text of the message.
    pub words: String,
}

impl Registry {
    /// Appends a message of a daemon to the log. If it cannot be written, as on a full disk,
    /// the daemon goes on: its work matters more than its messages.
    pub(super) fn log_event(&self, entry: &RegistryEntry, words: &str) {
        let event = LoggedEvent {
            at_ns: Clock::default().now_ns(),
            id: entry.id.clone(),
            path: entry.path.display().to_string(),
            words: words.to_owned(),
        };
        let Ok(line) = serde_json::to_string(&event) else { return };
        let _ = append(&self.lasting().join(NOW), &self.lasting().join(BEFORE), &line);
    }

    /// The latest of them, at most so many, the latest last; of one folder, or of all. Of a
    /// folder that is in RAM only what was said since it was put there.
    pub fn events(&self, id: Option<&str>, most: usize) -> Vec<LoggedEvent> {
        let (mut events, mut since) = (Vec::new(), BTreeMap::new());
        let mut is_of_now = |event: &LoggedEvent| {
            let ask = || self.read(&event.id).map_or(i64::MIN, |entry| entry.since_ns);
            event.at_ns >= *since.entry(event.id.clone()).or_insert_with(ask)
        };
        for name in [BEFORE, NOW] {
            let lines = text(&self.lasting().join(name)).unwrap_or_default();
            // Of the last one a full disk may have taken half.
            let all =
                lines.lines().filter_map(|line| serde_json::from_str::<LoggedEvent>(line).ok());
            let all = all.filter(|event| id.is_none_or(|id| event.id == id));
            events.extend(all.filter(&mut is_of_now));
        }
        events.split_off(events.len().saturating_sub(most))
    }

    /// Returns the last message about a folder; `None` if there is none.
    pub(super) fn last_event(&self, path: &Path) -> Option<LoggedEvent> {
        let id = RegistryEntry::new(path, std::time::Duration::ZERO, (0, 0)).id;
        self.events(Some(&id), 1).pop()
    }
}

fn append(now: &Path, before: &Path, line: &str) -> std::io::Result<()> {
    if os_path::length(now).is_ok_and(|length| length > LENGTH_MAX) {
        os_path::rename(now, before)?;
    }
    // At one stroke: several daemons append.
    AppendFile::open(now)?.append(format!("{line}\n").as_bytes())
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    read(path).ok()?.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_event_is_kept_until_the_user_asks() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new(&folder.path().join("run"), &folder.path().join("var"));
        let [one, other] = ["/srv/a", "/srv/b"]
            .map(|path| RegistryEntry::new(Path::new(path), Duration::from_secs(1), (1, 1)));
        // If there is no folder for it, nothing is made and nothing fails.
        registry.log_event(&one, "unheard");
        assert_eq!(registry.events(None, 10), []);
        drop(registry.lock().unwrap());
        registry.log_event(&one, "first");
        registry.log_event(&other, "second");
        // As a full disk leaves it.
        let name = folder.path().join("var").join(NOW);
        let mut half = std::fs::read(&name).unwrap();
        half.extend(b"{\"at_ns\":1,\"id\":\"x");
        half.push(b'\n');
        std::fs::write(&name, half).unwrap();
        for number in 0..3000 {
            registry.log_event(&one, &format!("{number:0100}"));
        }
        let words =
            |events: Vec<LoggedEvent>| events.into_iter().map(|it| it.words).collect::<Vec<_>>();
        assert_eq!(words(registry.events(Some(&other.id), 10)), ["second"; 0]);
        assert!(words(registry.events(None, 1))[0].ends_with("2999"));
        assert_eq!(registry.last_event(&one.path).unwrap().path, "/srv/a");
        // Of one that was put into RAM after that, nothing was said yet.
        let since_ns = Clock::default().now_ns();
        registry.put(&RegistryEntry { since_ns, ..one.clone() }).unwrap();
        assert_eq!(registry.events(Some(&one.id), 10), []);
        registry.log_event(&one, "of now");
        assert_eq!(words(registry.events(Some(&one.id), 10)), ["of now"]);
        registry.remove(&one.id).unwrap();
        let all = registry.events(None, usize::MAX).len();
        assert!((1000..3000).contains(&all), "{all} of 3002 are left");
        let length = |name| os_path::length(&folder.path().join("var").join(name)).unwrap();
        assert!(length(NOW) + length(BEFORE) < 2 * LENGTH_MAX + 1000);
    }
}
