//! `verify --against`: reads every file that a list names, from the medium,
//! and holds it against the list. Dates play no part: a list is not a record
//! that follows its files, so that other content is a mismatch whatever the
//! date says. Nothing is written anywhere.

use std::collections::HashSet;
use std::path::Path;

use fsure_os::root_dir::Root;
use fsure_os::{path as os_path, user_file};

use super::list_catalog::{ListCatalog, expected};
use super::list_records::named;
use super::listed_algorithm::in_proven_form;
use super::open_root::{OpenRoot, open_root, plan};
use super::{Options, list_records};
use crate::catalog::{Catalog, OWN_CATALOG, OWN_FOLDER, PageStart, RootLocation};
use crate::manifest::{ManifestEntry, ManifestFormat, ManifestSource};
use crate::model::{Allowed, Outcome, ScanMonitor, Scopes, Verdict};
use crate::scan::{Purpose, scan};
use fsure_core::{Algorithm, AlgorithmSet, IoContext as _, RelPath, Result, count};

/// Reads and judges every file of a list. `place` is a folder without a catalog.
pub fn verify_against(
    place: &RootLocation,
    source: &ManifestSource,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    let open = open_root(place)?;
    // Names are relative to the folder that was named, whatever it belongs to.
    let whole = RootLocation { scope: RelPath::root(), ..place.clone() };
    let source = &source.of_files_in(place.root.clone());
    let source = &in_proven_form(&whole, &open.root, source, monitor)?;
    let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
    let ListCatalog { mut catalog, entries, folder, troubles } =
        expected(&whole, &open, source, digests, monitor)?;
    let command = |list: &str, above: &str| format!("fsure verify {above} --against {list}");
    match folder.warning(&whole, &open, source, &command) {
        Some(warning) => monitor.warn(&warning),
        None if entries > 0 => warn_if_elsewhere(&whole, &open, source, monitor)?,
        None => {}
    }
    troubles.warn_of_elsewhere(source, &command, monitor);
    let mut plan = plan(place, &open, &catalog, options, Purpose::Verify, false)?;
    plan.is_list = true;
    // A user who names a list wants each missing file reported.
    plan.allowed = Allowed::ALL;
    // No run of this kind writes anything.
    plan.is_dry_run = false;
    if !source.covers_all {
        plan.scopes = Scopes::one(RelPath::from_bytes(*b"data"));
    }
    let around = around_payload(source, &mut catalog)?;
    let nested = nested_own_folders(&open.root, &mut catalog)?;
    let borders = &mut plan.walk.borders;
    borders.own.extend(own(place, source).into_iter().chain(around).chain(nested));
    // Another root below this one has a record; the list covers its files.
    borders.catalog_in_root = "";
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    outcome.unusable_entries = troubles.unusable;
    if let Some(warning) = other_algorithm(&outcome, place, source) {
        monitor.warn(&warning);
    }
    if troubles.malformed > 0 {
        let lines = if troubles.malformed == 1 { "line" } else { "lines" };
        let number = count(troubles.malformed);
        let why = match entries {
            0 => format!(
                "not one of its lines can be understood ({number} {lines}): it is not a list of \
                 checksums, or of a format that '--format' has to name"
            ),
            _ => format!("{number} {lines} of it cannot be understood, or contradict others"),
        };
        outcome.record_untrusted.get_or_insert(why);
    } else if entries == 0 && troubles.unusable == 0 {
        let why =
            if source.is_empty() { ", and is empty (did the command before it fail?)" } else { "" };
        outcome.record_untrusted.get_or_insert(format!("it names no file{why}"));
    }
    Ok(outcome)
}

/// Warns if not one file of the list is there: most likely it is about another folder.
fn warn_if_elsewhere(
    place: &RootLocation,
    open: &OpenRoot,
    source: &ManifestSource,
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let is_there = |listed: &ManifestEntry| named(&open.root, &place.scope, listed).there.is_some();
    if !list_records::any(source, monitor, &mut |listed| is_there(listed))? {
        monitor.warn(&format!(
            "not one file of {} is in {}: names in a list are relative to the folder that is named; \
             name the one that the list was made in, or mount its disk",
            source.label().display(),
            place.asked().display()
        ));
    }
    Ok(())
}

/// Returns a warning if not one file is as listed and the list may be of another program: SHA-256
/// and BLAKE3 have as many digits, and only the name of the list tells which it has.
fn other_algorithm(
    outcome: &Outcome,
    place: &RootLocation,
    source: &ManifestSource,
) -> Option<String> {
    let (read_as, other, option) = match source.format {
        ManifestFormat::B3sum => ("BLAKE3", "SHA-256", ManifestFormat::Sha256sums),
        ManifestFormat::Sha256sums => ("SHA-256", "BLAKE3", ManifestFormat::B3sum),
        _ => return None,
    };
    let verdicts = outcome.files;
    let is_wrong = verdicts.of(Verdict::Mismatch) > 0 && verdicts.of(Verdict::Ok) == 0;
    is_wrong.then(|| {
        let list = source.argument();
        let run = if list == "-" { "send the list again to" } else { "run" };
        format!(
            "not one file is as listed. The digests were taken for {read_as}, which may be wrong: \
             if they are {other}, {run}: {} --against {list} --format {}",
            place.command("verify"),
            option.name()
        )
    })
}

/// Returns the paths beside the payload of a bag that are in none of its tag manifests,
/// which need not list everything. Empty if the list is not a bag.
fn around_payload(source: &ManifestSource, catalog: &mut Catalog) -> Result<Vec<RelPath>> {
    let mut unlisted = Vec::new();
    if source.bag.is_none() {
        return Ok(unlisted);
    }
    for name in user_file::names(&source.folder).context("list", &source.folder)? {
        let path = RelPath::from_bytes(name);
        let (first, end) = path.below();
        let is_listed = catalog.get(&path)?.is_some()
            || !catalog.page(&PageStart::From(&first), end.as_deref())?.is_empty();
        if !is_listed && path.as_bytes() != b"data" {
            unlisted.push(path);
        }
    }
    Ok(unlisted)
}

/// Returns the folders of fsure's own beside listed files, if nothing in them is listed: they hold
/// the records of folders below this one.
fn nested_own_folders(root: &Root, catalog: &mut Catalog) -> Result<Vec<RelPath>> {
    let (mut seen, mut own, mut after) = (HashSet::new(), Vec::new(), Vec::new());
    loop {
        let page = catalog.page(&PageStart::After(&after), None)?;
        let Some(last) = page.last() else { return Ok(own) };
        after = last.path().as_bytes().to_vec();
        for stored in page {
            // From the top, and no further than there are folders: a name in a list may have more
            // components than any system takes.
            for folder in stored.path().folders() {
                if seen.contains(&folder) {
                    continue;
                }
                if root.stat(folder.as_bytes()).is_err() {
                    break;
                }
                own.extend(own_folder_in(root, &folder, catalog)?);
                seen.insert(folder);
            }
        }
    }
}

/// Returns fsure's own folder in a folder, if it has a record and nothing in it is listed.
fn own_folder_in(root: &Root, folder: &RelPath, catalog: &mut Catalog) -> Result<Option<RelPath>> {
    if root.stat(folder.join(OWN_CATALOG.as_bytes()).as_bytes()).is_err() {
        return Ok(None);
    }
    let own = folder.join(OWN_FOLDER.as_bytes());
    let (first, end) = own.below();
    let is_listed = !catalog.page(&PageStart::From(&first), end.as_deref())?.is_empty();
    Ok((!is_listed).then_some(own))
}

/// Returns the list's own files, if they are in the folder that it is about.
fn own(place: &RootLocation, source: &ManifestSource) -> Vec<RelPath> {
    let below = |file: &std::path::PathBuf| {
        let rest = file.strip_prefix(&place.root).ok()?;
        let bytes = os_path::bytes(rest);
        (rest != Path::new("")).then(|| RelPath::from_bytes(&*bytes))
    };
    // The manifests of a bag are in its tag manifests, and judged by them.
    let files = source.files.iter().filter(|_| source.belongings.is_empty());
    files.chain(&source.belongings).filter_map(below).collect()
}
