//! `.fsure/config.toml`: what holds for every run over a root. Parsed
//! strictly, since a misspelt pattern list would protect less than meant.

use fsure_os::folder::Root;
use serde::Deserialize;

use crate::words::{Error, Result};

const FILE: &str = ".fsure/config.toml";
const FILE_MAX: usize = 1 << 20;

/// The file's content. Unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    /// Patterns to leave out, in the manner of `.gitignore`.
    pub(super) exclude: Vec<String>,
    /// BLAKE3 of the file, where there is one.
    #[serde(skip)]
    pub(super) digest: Option<[u8; 32]>,
}

/// Reads the root's configuration; none is as good as an empty one.
pub(super) fn read(root: &Root) -> Result<Config> {
    let bad = |why: String| Error::Usage {
        message: format!("{FILE}: {why}"),
        hint: Some("it knows one key: exclude = [\"*.tmp\", \"cache/\"]".to_owned()),
    };
    let text = root.read_small(FILE.as_bytes(), FILE_MAX).map_err(|e| bad(e.to_string()))?;
    let digest = text.as_ref().map(|text| *blake3::hash(text).as_bytes());
    let text = String::from_utf8(text.unwrap_or_default());
    let text = text.map_err(|_| bad("it is not UTF-8 text".to_owned()))?;
    let read: std::result::Result<Config, _> = toml::from_str(&text);
    let config = read.map_err(|error| bad(error.to_string().trim_end().to_owned()))?;
    Ok(Config { digest, ..config })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".fsure")).unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        read(&Root::open(folder.path()).unwrap())
    }

    #[test]
    fn is_parsed_strictly() {
        assert_eq!(parse("").unwrap(), Config::default());
        assert_eq!(parse("exclude = ['*.tmp']").unwrap().exclude, ["*.tmp"]);
        for bad in ["exclud = []", "exclude = 'x'", "exclude", "exclude = [1]"] {
            assert!(parse(bad).unwrap_err().to_string().contains(FILE), "{bad}");
        }
    }
}
