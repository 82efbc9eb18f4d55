//! Settings that apply to every run: `.fsure/config.toml` of a root and the user's
//! own `config.toml`. Parsed strictly, since a misspelt key would protect less than
//! meant. `docs/configuration.md` has the keys.
//!
//! A root's file comes with its tree, perhaps from another user: it may define
//! what belongs to the tree, and not how the tree is judged or by which key.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_os::root_dir::Root;
use toml::de::{DeTable, DeValue};

use crate::scan::{DEPTH_MAX, IoOptions, RateLimiter, THREADS_MAX};
use fsure_core::{Algorithm, AlgorithmSet, Error, IoContext as _, Result};

const FILE: &str = ".fsure/config.toml";
const FILE_MAX: usize = 1 << 20;

/// The keys of a root's file.
const OF_ROOT: &[&str] = &["exclude"];
/// The keys of the user's file.
const OF_USER: &[&str] = &[
    "exclude",
    "digests",
    "threads",
    "queue_depth",
    "rate",
    "timeout",
    "color",
    "signed_by",
    "backup",
];
/// Former names of keys, which go on being read, with their present ones.
const FORMER: [(&str, &str); 1] = [("depth", "queue_depth")];
/// The values of `color`.
const COLORS: [&str; 3] = ["auto", "always", "never"];

/// The content of a root's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// Patterns to leave out, in the manner of `.gitignore`.
    pub(super) exclude: Vec<String>,
    /// BLAKE3 of the file, if there is one.
    pub(super) digest: Option<[u8; 32]>,
}

/// The content of the user's own file: defaults for the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserConfig {
    /// Patterns to leave out in every root.
    pub exclude: Vec<String>,
    /// Digests of a record that is made.
    pub digests: Option<AlgorithmSet>,
    /// Readers for each device.
    pub threads: Option<u16>,
    /// Small files that each reader reads with one call.
    pub queue_depth: Option<u16>,
    /// Bytes to read per second.
    pub rate: Option<u64>,
    /// Timeout for one response of the storage.
    pub timeout: Option<Duration>,
    /// Use of colours: `auto`, `always` or `never`.
    pub color: Option<String>,
    /// A public key, as text or the name of a file.
    pub signed_by: Option<String>,
    /// Folders in which a copy of the backup of each record is kept.
    pub backup: Vec<PathBuf>,
}

/// Reads the configuration of the root at `path`. A missing file counts as an empty one.
pub(super) fn read(root: &Root, path: &Path) -> Result<Config> {
    let bad = |why: String| Error::Usage { message: format!("{FILE}: {why}"), hint: None };
    let text = match root.read_small(FILE.as_bytes(), FILE_MAX) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(error).context("read", &path.join(FILE))?
        }
        read => read.map_err(|error| bad(error.to_string()))?,
    };
    let digest = text.as_ref().map(|text| *blake3::hash(text).as_bytes());
    let text = String::from_utf8(text.unwrap_or_default());
    let text = text.map_err(|_| bad("it is not UTF-8 text".to_owned()))?;
    let mut config = Config { digest, ..Config::default() };
    each_key(FILE, &text, OF_ROOT, &mut |_, value| {
        config.exclude = strings(value)?;
        Ok(())
    })?;
    Ok(config)
}

impl UserConfig {
    /// Reads the text of the user's file of that name.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let mut config = Self::default();
        each_key(file, text, OF_USER, &mut |key, value| config.set(key, value))?;
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &DeValue<'_>) -> std::result::Result<(), String> {
        match key {
            "exclude" => self.exclude = strings(value)?,
            "digests" => self.digests = Some(digests(&strings(value)?)?),
            "threads" => self.threads = Some(number(value, THREADS_MAX)?),
            "queue_depth" => self.queue_depth = Some(number(value, DEPTH_MAX)?),
            "rate" => self.rate = Some(RateLimiter::parse(string(value)?)?),
            "timeout" => self.timeout = Some(IoOptions::parse_timeout(string(value)?)?),
            "color" => self.color = Some(one_of(string(value)?, &COLORS)?),
            "backup" => self.backup = strings(value)?.into_iter().map(PathBuf::from).collect(),
            "signed_by" => self.signed_by = Some(string(value)?.to_owned()),
            _ => unreachable!("a key of OF_USER"),
        }
        Ok(())
    }
}

/// Calls `set` for each key of a file, all of which have to be known.
fn each_key(
    file: &str,
    text: &str,
    known: &[&str],
    set: &mut dyn FnMut(&str, &DeValue<'_>) -> std::result::Result<(), String>,
) -> Result<()> {
    let bad = |at: Range<usize>, why: &str| {
        let line = text.bytes().take(at.start).filter(|byte| *byte == b'\n').count() + 1;
        Error::Usage {
            message: format!("{file}:{line}: {why}"),
            hint: Some(format!("known keys: {}", known.join(", "))),
        }
    };
    let table = DeTable::parse(text)
        .map_err(|error| bad(error.span().unwrap_or_default(), error.message()))?;
    let mut keys: Vec<_> = table.get_ref().iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in keys {
        let name: &str = key.get_ref();
        let former = FORMER.iter().find(|(former, _)| *former == name);
        let name = former.map_or(name, |(_, present)| *present);
        if !known.contains(&name) {
            return Err(bad(key.span(), &unknown(name, known)));
        }
        set(name, value.get_ref())
            .map_err(|why| bad(value.span(), &format!("{name} must be {why}")))?;
    }
    Ok(())
}

fn unknown(name: &str, known: &[&str]) -> String {
    if OF_USER.contains(&name) {
        return format!(
            "'{name}' is allowed only in your own config.toml: this file travels with the tree"
        );
    }
    let nearest = known.iter().min_by_key(|key| strsim::damerau_levenshtein(name, key));
    let nearest = nearest.map_or(String::new(), |key| format!("; the nearest is '{key}'"));
    format!("there is no key '{}'{nearest}", name.escape_debug())
}

fn string<'a>(value: &'a DeValue<'_>) -> std::result::Result<&'a str, String> {
    value.as_str().ok_or_else(|| "a text in quotes".to_owned())
}

fn strings(value: &DeValue<'_>) -> std::result::Result<Vec<String>, String> {
    let list = value.as_array().and_then(|list| {
        let texts = list.iter().map(|one| one.get_ref().as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>()
    });
    list.ok_or_else(|| "a list of texts, such as [\"one\", \"two\"]".to_owned())
}

fn number(value: &DeValue<'_>, max: usize) -> std::result::Result<u16, String> {
    let number = value.as_integer().filter(|number| number.radix() == 10);
    let number = number.and_then(|number| number.as_str().parse().ok());
    let number = number.filter(|number| (1..=max).contains(&usize::from(*number)));
    number.ok_or_else(|| format!("a number from 1 to {max}"))
}

fn digests(names: &[String]) -> std::result::Result<AlgorithmSet, String> {
    let all: Option<Vec<_>> = names.iter().map(|name| Algorithm::from_typed(name)).collect();
    let known = || Algorithm::ALL.map(Algorithm::name).join(", ");
    all.filter(|all| !all.is_empty())
        .map(|all| AlgorithmSet::of(&all))
        .ok_or_else(|| format!("a list of some of {}", known()))
}

fn one_of(text: &str, choices: &[&str]) -> std::result::Result<String, String> {
    let choice = choices.contains(&text).then(|| text.to_owned());
    choice.ok_or_else(|| format!("one of {}", choices.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_root(text: &str) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".fsure")).unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        read(&Root::open(folder.path()).unwrap(), folder.path())
    }

    #[test]
    fn a_root_configures_what_belongs_to_it_and_nothing_else() {
        assert_eq!(of_root("").unwrap().exclude, [""; 0]);
        assert_eq!(of_root("exclude = ['*.tmp']").unwrap().exclude, ["*.tmp"]);
        for (bad, line, why) in [
            ("# one\nexclud = []", 2, "nearest is 'exclude'"),
            ("exclude = 'x'", 1, "list of texts"),
            ("\n\nexclude = [1]", 3, "list of texts"),
            ("exclude", 1, ""),
            ("exclude = []\nexclude = []", 2, "duplicate"),
            ("exclude = []\nsigned_by = 'k'", 2, "your own"),
            ("rate = '1MB/s'", 1, "your own"),
            ("[exclude]\na = 1", 1, "list of texts"),
        ] {
            let error = of_root(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("{FILE}:{line}: ")), "{bad}: {error}");
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn the_user_sets_defaults() {
        let text = "exclude = ['.DS_Store']\ndigests = ['blake3', 'sha256']\nthreads = 4\n\
                    queue_depth = 8\nrate = '200MiB/s'\ntimeout = '5m'\ncolor = 'never'\n\
                    signed_by = '/k.pub'\nbackup = ['/mnt/nas']\n";
        let config = UserConfig::parse("c", text).unwrap();
        let expected = UserConfig {
            exclude: vec![".DS_Store".to_owned()],
            digests: Some(AlgorithmSet::of(&[Algorithm::Blake3, Algorithm::Sha256])),
            threads: Some(4),
            queue_depth: Some(8),
            rate: Some(200 << 20),
            timeout: Some(Duration::from_secs(300)),
            color: Some("never".to_owned()),
            signed_by: Some("/k.pub".to_owned()),
            backup: vec![PathBuf::from("/mnt/nas")],
        };
        assert_eq!(config, expected, "{text}");
        for key in OF_USER {
            assert!(text.contains(&format!("{key} = ")), "{key} is not tried here");
        }
        assert_eq!(
            UserConfig::parse("c", &text.replace("queue_depth", "depth")).unwrap(),
            expected
        );
        for (bad, why) in [
            ("treads = 4", "nearest is 'threads'"),
            ("threads = 0", "from 1 to"),
            ("threads = '4'", "from 1 to"),
            ("threads = 0x4", "from 1 to"),
            ("rate = 5", "text in quotes"),
            ("rate = 'fast'", "200MiB/s"),
            ("rate = '200'", "say 200MiB/s"),
            ("timeout = '1ms'", "at least 1s"),
            ("color = 'red'", "auto, always, never"),
            ("digests = ['blake2']", "blake3, sha256"),
            ("digests = []", "blake3, sha256"),
            ("[root]\nexclude = []", "no key 'root'"),
        ] {
            let error = UserConfig::parse("c", bad).unwrap_err().to_string();
            assert!(error.starts_with("c:1: ") && error.contains(why), "{bad}: {error}");
        }
    }
}
