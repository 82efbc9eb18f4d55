//! Makes recovery data, and keeps it in step with the record: anew if the recorded
//! content is another one, and only of content that the record proves.

use std::io;
use std::sync::Arc;

use fsure_os::path as os_path;
use fsure_os::root_dir::Root;

use super::parity_pools::Pools;
use super::parity_writer::{ParityWriter, is_wanted, not_kept};
use super::source_reader::{HealAttempt, HealFailure, OrUnhealed as _};
use crate::catalog::{
    Audit, Catalog, PageStart, RootLocation, Row, StoredRow, refuse_irregular_parity,
};
use crate::commands::Options;
use crate::commands::dry_run::open_to_write;
use crate::commands::open_root::{
    detect_offline, open_root, reject_interrupted_heal, require_record,
};
use crate::model::{ProtectOutcome, ScanMonitor};
use crate::parity;
use fsure_core::block_hash::BLOCK;
use fsure_core::{Error, ExitCode, Result, shell_quoted};

/// Redundancy if none is given, per mille.
const USUAL: u32 = 50;

/// Options of `protect`.
#[derive(Clone, Debug, Default)]
pub struct ProtectOptions {
    /// Options that all commands share.
    pub common: Options,
    /// Recovery data for so much of a thousand; `None` as it was, or 50.
    pub per_mille: Option<u32>,
}

/// Makes or completes the recovery data of a root, and checks what there is.
pub fn protect(
    place: &RootLocation,
    options: &ProtectOptions,
    monitor: &dyn ScanMonitor,
) -> Result<ProtectOutcome> {
    require_record(place)?;
    if !place.scope.is_root() {
        return Err(Error::Usage {
            message: format!("recovery data are kept for all of {}", place.root.display()),
            hint: Some(format!("name that folder: fsure protect {}", shell_quoted(&place.root))),
        });
    }
    let (open, access) = (open_root(place)?, options.common.access);
    let mut catalog = open_to_write(place, access, monitor)?;
    reject_interrupted_heal(place)?;
    Audit::of(&mut catalog)?.require_clean(place, "nothing was protected")?;
    if let Some(offline) = detect_offline(place, &open, &catalog, options.common.allowed)? {
        let command = options.common.allowed.options().chain([offline.option()]);
        let command = command.fold(place.command("protect"), |line, option| line + " " + option);
        return Err(Error::Reported {
            message: format!("{} is OFFLINE: {offline}", place.root.display()),
            hint: Some(format!(
                "nothing was changed. If its disk is not mounted, mount it, and run the same command \
                 again. Only if this is as it should be: {command}"
            )),
            code: ExitCode::Incomplete,
        });
    }
    refuse_irregular_parity(&place.catalog)?;
    let folder = parity::folder(&place.catalog);
    let kept = parity::redundancy(&folder);
    let per_mille = match (options.per_mille, kept) {
        (Some(reported), _) => reported,
        (None, Ok(kept)) => kept.unwrap_or(USUAL),
        (None, Err(error)) => return Err(not_kept(&folder, &error)),
    };
    if !access.is_dry_run {
        os_path::make_folder(&folder).map_err(|error| not_kept(&folder, &error))?;
        parity::set_redundancy(&folder, per_mille).map_err(|error| not_kept(&folder, &error))?;
    }
    let manner = (per_mille, true, access.is_dry_run);
    keep(ParityWriter::new(folder, &open.root, manner, monitor)?, &mut catalog)
}

/// Brings recovery data up to date; `None` if there are none.
pub(crate) fn refresh(
    place: &RootLocation,
    root: &Arc<Root>,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<Option<ProtectOutcome>> {
    let folder = parity::folder(&place.catalog);
    match parity::redundancy(&folder) {
        Ok(None) => Ok(None),
        Ok(Some(per_mille)) => {
            let manner = (per_mille, false, false);
            keep(ParityWriter::new(folder, root, manner, monitor)?, catalog).map(Some)
        }
        Err(error) => Err(not_kept(&folder, &error)),
    }
}

/// Keeps the recovery data of all that is recorded.
fn keep(mut writer: ParityWriter<'_>, catalog: &mut Catalog) -> Result<ProtectOutcome> {
    match keep_all(&mut writer, catalog) {
        Ok(()) => Ok(writer.done),
        Err(HealFailure::Stopped(code)) => Err(Error::Interrupted(code)),
        Err(HealFailure::Unhealed(why)) => Err(not_kept(&writer.folder, &io::Error::other(why))),
        Err(HealFailure::Fatal(error)) => Err(error),
    }
}

fn keep_all(writer: &mut ParityWriter<'_>, catalog: &mut Catalog) -> HealAttempt<()> {
    writer.remove_halves().or_unhealed("list it")?;
    let mut pools = Pools::open(writer)?;
    writer.reader.gauge.expect(catalog.bytes());
    let mut after = Vec::new();
    loop {
        let page = catalog.page(&PageStart::After(&after), None)?;
        let Some(last) = page.last() else { break };
        after = last.path().as_bytes().to_vec();
        for stored in page {
            writer.reader.go_on()?;
            if let StoredRow::Sound(row) = &stored {
                writer.reader.gauge.begin(&row.record.path, row.record.entry.size);
            }
            match stored {
                StoredRow::Sound(row) if is_wanted(&row) && row.record.entry.size > BLOCK => {
                    writer.keep_own(row, catalog)?;
                }
                StoredRow::Sound(row) if is_wanted(&row) => pools.take(writer, row)?,
                // All there is to an empty file is recorded.
                StoredRow::Sound(row) if row.is_live_file() && !is_empty(&row) => {
                    writer.done.left_out += 1;
                    writer.done.listed_only += u64::from(row.record.hashed_ns == 0);
                }
                _ => {}
            }
        }
    }
    pools.finish(writer)?;
    writer.delete_gone(catalog)
}

fn is_empty(row: &Row) -> bool {
    row.record.entry.size == 0 && !row.record.entry.is_undated()
}
