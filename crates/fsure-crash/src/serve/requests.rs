//! Requests on the control socket, and their execution.

use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fsure_os::fuse_disk::VirtualDisk as _;
use fsure_os::{fuse_files, user_file};
use serde::Deserialize;

use super::responses::{ControlResponse, ResponseData};
use fsure_core::Random;
use fsure_simdrive::{Behavior, CutVariant, History, Image};
use fsure_simdrive::{LiveDrive, LiveFolder};

use crate::backend::BackendDrive;

/// Maximum bytes of data in one request.
const DATA_MAX: u64 = 8 << 20;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
enum ControlRequest {
    // With braces: without them serde lets unknown fields pass.
    Status {},
    Cut { variant: String, seed: u64, to: PathBuf },
    Personality { drive: String },
    Fail { after: u64, times: Option<u64> },
    Mark { n: u64 },
    Flushes {},
    Boundary { n: u64, to: PathBuf },
    Read { offset: u64, length: u64 },
    Write { offset: u64, data: String },
    Fua { offset: u64, data: String },
    Trim { offset: u64, length: u64 },
    Flush {},
    End {},
}

type ServeResult = Result<Option<ResponseData>, String>;

/// Responds to a line, and returns true if that was the last request. Files are never
/// written below `place`, a folder that this process serves itself.
pub(super) fn answer(
    drive: &BackendDrive,
    place: Option<&Path>,
    line: Option<&str>,
) -> (String, bool) {
    let asked = match line {
        Some(line) => serde_json::from_str(line).map_err(|error| format!("not a request: {error}")),
        None => Err("not a request: a line is UTF-8 and has at most 12 MiB".to_owned()),
    };
    let ends = matches!(asked, Ok(ControlRequest::End {}));
    let done = asked.and_then(|ask| match drive {
        BackendDrive::Blocks(live) => of_blocks(live, place, ask),
        BackendDrive::Files(folder) => of_files(folder, place, ask),
    });
    (done.map_or_else(ControlResponse::refused, ControlResponse::done).to_json(), ends)
}

fn of_blocks(live: &LiveDrive, place: Option<&Path>, ask: ControlRequest) -> ServeResult {
    let done = |done: std::io::Result<()>| match done {
        Ok(()) => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    match ask {
        ControlRequest::Status {} => Ok(Some(live.with(|drive, now| {
            let counts = drive.counts();
            ResponseData::Blocks {
                drive: drive.behavior().to_string(),
                size: drive.size(),
                writes: counts.writes,
                bytes: counts.bytes,
                trims: counts.trims,
                flushes: counts.flushes,
                errors: counts.errors,
                volatile_bytes: drive.volatile_bytes(now),
            }
        }))),
        ControlRequest::Cut { variant, seed, to } => {
            let (cut, to) = (variant_of(&variant)?, outside(&to, place)?);
            keep(&live.cut(cut, &mut Random::new(seed)), to)
        }
        ControlRequest::Personality { drive } => {
            let behavior = behavior(&drive)?;
            live.with(|drive, now| drive.set_behavior(now, behavior));
            Ok(None)
        }
        ControlRequest::Fail { after, times } => {
            live.with(|drive, _| drive.fail_after(after, times.unwrap_or(1)));
            Ok(None)
        }
        ControlRequest::Mark { n } => {
            live.with(|drive, _| drive.mark(n));
            Ok(None)
        }
        ControlRequest::Flushes {} => {
            let marked = history(live)?.marks().map_err(|error| forgotten(&error))?;
            Ok(Some(ResponseData::Flushes { flushes: marked.len() as u64, marked }))
        }
        ControlRequest::Boundary { n, to } => {
            let to = outside(&to, place)?;
            let history = history(live)?;
            let found = history.at_flush(n).map_err(|error| forgotten(&error))?;
            let found = found.ok_or_else(|| {
                format!("there is no flush {n}: there were {}", history.flushes())
            })?;
            keep(&found.image, to)?;
            Ok(Some(ResponseData::Boundary { marked: found.marked }))
        }
        ControlRequest::Read { offset, length } => {
            let length = usize::try_from(length.min(DATA_MAX + 1)).unwrap_or(usize::MAX);
            let mut data = vec![0; fits(length)?];
            live.read(offset, &mut data).map_err(|error| error.to_string())?;
            Ok(Some(ResponseData::Data { data: BASE64.encode(data) }))
        }
        ControlRequest::Write { offset, data } => done(live.write(offset, &bytes(&data)?)),
        ControlRequest::Fua { offset, data } => done(live.write_fua(offset, &bytes(&data)?)),
        ControlRequest::Trim { offset, length } => done(live.trim(offset, length)),
        ControlRequest::Flush {} => done(live.flush()),
        ControlRequest::End {} => Ok(None),
    }
}

/// Returns the record of all requests to a drive so far. It is read while the drive goes
/// on.
fn history(live: &LiveDrive) -> Result<History, String> {
    live.with(|drive, _| drive.history()).map_err(|error| forgotten(&error))
}

/// Returns the message that flushes are no longer recorded, with the reason.
pub(super) fn forgotten(error: &std::io::Error) -> String {
    format!("the states at flushes are no longer recorded: {error}")
}

fn of_files(folder: &LiveFolder, place: Option<&Path>, ask: ControlRequest) -> ServeResult {
    match ask {
        ControlRequest::Status {} => Ok(Some(folder.with(|drive, now| {
            let (volatile_bytes, volatile_names) = drive.volatile(now);
            let (counts, traits) = (drive.counts(), drive.traits());
            ResponseData::Files {
                drive: traits.behavior.to_string(),
                mode: traits.mode.name(),
                writes: counts.writes,
                bytes: counts.bytes,
                names: counts.names,
                syncs: counts.syncs,
                errors: counts.errors,
                volatile_bytes,
                volatile_names,
                marked: drive.marked(),
            }
        }))),
        ControlRequest::Cut { variant, seed, to } => {
            let (cut, to) = (variant_of(&variant)?, outside(&to, place)?);
            let left = folder.cut(cut, &mut Random::new(seed));
            fuse_files::copy_out(&left, to).map_err(|error| unwritten(to, &error))?;
            Ok(None)
        }
        ControlRequest::Personality { drive } => {
            let behavior = behavior(&drive)?;
            folder.with(|drive, now| drive.set_behavior(now, behavior));
            Ok(None)
        }
        ControlRequest::Fail { after, times } => {
            folder.with(|drive, _| drive.fail_after(after, times.unwrap_or(1)));
            Ok(None)
        }
        ControlRequest::Mark { n } => {
            folder.mark(n);
            Ok(None)
        }
        ControlRequest::End {} => Ok(None),
        ControlRequest::Flushes {}
        | ControlRequest::Boundary { .. }
        | ControlRequest::Read { .. }
        | ControlRequest::Write { .. }
        | ControlRequest::Fua { .. }
        | ControlRequest::Trim { .. }
        | ControlRequest::Flush {} => {
            Err("a folder has no blocks: use '--front file', or the folder".to_owned())
        }
    }
}

fn variant_of(name: &str) -> Result<CutVariant, String> {
    name.parse().map_err(|error: fsure_simdrive::UnknownCut| error.to_string())
}

fn behavior(name: &str) -> Result<Behavior, String> {
    name.parse().map_err(|error: fsure_simdrive::UnknownDrive| error.to_string())
}

fn fits(length: usize) -> Result<usize, String> {
    match length as u64 {
        0..=DATA_MAX => Ok(length),
        _ => Err("a request reads or writes at most 8 MiB".to_owned()),
    }
}

fn bytes(data: &str) -> Result<Vec<u8>, String> {
    let data = BASE64.decode(data).map_err(|error| format!("data is not base64: {error}"))?;
    fits(data.len())?;
    Ok(data)
}

/// Returns `to` if this process may write there: on a path below the folder that it
/// serves, it would wait for itself.
fn outside<'a>(to: &'a Path, place: Option<&Path>) -> Result<&'a Path, String> {
    let shown = to.display();
    if !to.is_absolute() || to.components().any(|part| part == Component::ParentDir) {
        return Err(format!("{shown}: give a path from the top, without '..'"));
    }
    match place.filter(|folder| to.starts_with(folder)) {
        Some(_) => Err(format!("{shown} is on the drive itself: give a path beside it")),
        None => Ok(to),
    }
}

fn keep(image: &Image, to: &Path) -> ServeResult {
    let kept = user_file::sparse(to, image.size(), image.written());
    kept.map_err(|error| unwritten(to, &error))?;
    Ok(None)
}

fn unwritten(to: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", to.display())
}
