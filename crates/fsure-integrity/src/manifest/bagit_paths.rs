//! The paths that the manifests of a bag may name.

use super::escaping;
use fsure_core::RelPath;

/// The path that a payload manifest or `fetch.txt` names.
pub(super) fn payload_path(name: &[u8]) -> std::result::Result<RelPath, String> {
    let path = escaping::path(name)?;
    match path.as_bytes().starts_with(b"data/") {
        true => Ok(path),
        false => Err(format!("{} is not below data/", path.display())),
    }
}

/// The path that a tag manifest names.
pub(super) fn tag_path(name: &[u8]) -> std::result::Result<RelPath, String> {
    let path = escaping::path(name)?;
    if path.as_bytes().starts_with(b"data/") {
        return Err(format!("{} is payload, which a tag manifest must not list", path.display()));
    }
    if path.as_bytes().starts_with(b"tagmanifest-") {
        return Err(format!("{} is a tag manifest, which no manifest may list", path.display()));
    }
    Ok(path)
}
