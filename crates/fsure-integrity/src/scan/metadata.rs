//! Compares and records the metadata of a path beside its content, if the
//! record is to keep it. The comparison comes last for each path, whatever the
//! verdict on the content is, and is reported beside that verdict.

use std::collections::BTreeMap;
use std::io;

use fsure_os::file_attributes::{Node, is_access_list, sees_trusted};
use fsure_os::root_dir::{Root, is_gone};

use super::path_result::PathResult;
use super::{Purpose, ScanPlan, UpdateRules};
use crate::catalog::{Catalog, Row, StoredMetadata};
use crate::model::{
    EntryKind, Metadata, MetadataChange, MetadataField, MetadataFields, MetadataValue,
    RecordedValue, ScanMonitor, Verdict,
};
use fsure_core::{RelPath, Result};

/// Prefix of the attributes of fsure itself, which belong to the record.
const OWN: &[u8] = b"user.fsure.";
/// Prefix of the attributes that are visible to root only.
const TRUSTED: &[u8] = b"trusted.";

/// Warns of attributes that the user of this process cannot see.
pub(super) fn warn_unreadable_xattrs(aspects: MetadataFields, monitor: &dyn ScanMonitor) {
    if aspects.contains(MetadataField::Xattr) && !sees_trusted() {
        monitor.warn(
            "only root can read attributes of the namespace 'trusted': they are neither compared \
             nor recorded",
        );
    }
}

/// Compares the metadata that is there with the record. Returns it with the differences;
/// `None` if it is not compared.
pub(super) fn compare_found(
    plan: &ScanPlan,
    result: &PathResult,
) -> Option<(Metadata, Vec<MetadataChange>)> {
    let aspects = plan.meta;
    let is_update = match &plan.purpose {
        Purpose::Update(rules) if rules.only_completes => return None,
        purpose => matches!(purpose, Purpose::Update(_)),
    };
    // Nothing is recorded that could be compared.
    let is_fresh =
        matches!(result.verdict, Verdict::New | Verdict::RecordBad | Verdict::TypeChanged);
    let is_there = result.entry.as_ref().is_some_and(|entry| entry.kind != EntryKind::Special);
    if aspects.is_empty() || !is_there || (is_fresh && !is_update) {
        return None;
    }
    let mut now = ask(&plan.root, &result.path, aspects)?;
    let was = result.row().filter(|_| !is_fresh).and_then(Row::metadata).cloned();
    let changes = compare(&plan.purpose, was, &mut now);
    Some((now, changes))
}

/// Returns the differences between the metadata of a moved file and that of
/// its old name, which is removed with the old record.
pub(super) fn compare_moved(
    plan: &ScanPlan,
    catalog: &mut Catalog,
    from: &RelPath,
    to: &RelPath,
) -> Result<Vec<MetadataChange>> {
    if plan.meta.is_empty() {
        return Ok(Vec::new());
    }
    let Some(mut now) = ask(&plan.root, to, plan.meta) else { return Ok(Vec::new()) };
    let was = catalog.metadata().of(from)?;
    Ok(compare(&plan.purpose, was, &mut now))
}

fn compare(
    purpose: &Purpose,
    was: Option<StoredMetadata>,
    now: &mut Metadata,
) -> Vec<MetadataChange> {
    let mut changes = match was {
        None => Metadata::default().changes(now),
        Some(StoredMetadata::Sound(was)) => {
            keep_unseen(&was, now);
            was.changes(now)
        }
        Some(StoredMetadata::Bad) => now
            .aspects
            .iter()
            .map(|aspect| MetadataChange::whole(aspect, RecordedValue::Bad))
            .collect(),
    };
    if matches!(purpose, Purpose::Update(_)) {
        // That it is recorded from now on is what was asked for.
        changes.retain(|change| change.was != RecordedValue::Unrecorded || change.is_unread());
    }
    changes
}

/// Returns true if an update is to record the metadata of a path; `wrote` is true if it
/// has recorded the path itself.
pub(super) fn is_to_record(
    rules: &UpdateRules,
    result: &PathResult,
    now: &Metadata,
    wrote: bool,
) -> bool {
    let is_accepted = rules.accept.covers(&result.path);
    let is_bad = result.meta.iter().any(|change| change.was == RecordedValue::Bad);
    let is_allowed = result.verdict.is_recordable() && !is_bad || is_accepted;
    let is_recorded =
        wrote || result.row().is_some_and(|row| !row.is_gone() && row.record.path == result.path);
    is_allowed && is_recorded && now.is_whole()
}

/// Takes the attributes that this user cannot see as unchanged: copies them
/// from `was` to `now`.
fn keep_unseen(was: &Metadata, now: &mut Metadata) {
    if sees_trusted() {
        return;
    }
    let unseen = was.values.iter().filter(|((_, name), _)| name.starts_with(TRUSTED));
    now.values.extend(unseen.map(|(key, value)| (key.clone(), value.clone())));
}

/// Reads the metadata of a path; `None` if it is gone.
fn ask(root: &Root, path: &RelPath, aspects: MetadataFields) -> Option<Metadata> {
    let mut values = BTreeMap::new();
    match ask_for(root, path, aspects, &mut values) {
        Ok(()) => {}
        Err(error) if is_gone(&error) => return None,
        Err(error) => {
            let why = MetadataValue::Unread(error.to_string());
            for aspect in aspects.iter() {
                values.entry((aspect, Vec::new())).or_insert_with(|| why.clone());
            }
        }
    }
    Some(Metadata { aspects, values })
}

type FieldValues = BTreeMap<(MetadataField, Vec<u8>), MetadataValue>;

fn ask_for(
    root: &Root,
    path: &RelPath,
    aspects: MetadataFields,
    values: &mut FieldValues,
) -> io::Result<()> {
    let node = Node::at(root, path.as_bytes())?;
    let ownership = node.ownership()?;
    let mut plain = |aspect, text: String| {
        if aspects.contains(aspect) {
            values.insert((aspect, Vec::new()), MetadataValue::of(text.into_bytes()));
        }
    };
    plain(MetadataField::Mode, format!("{:04o}", ownership.mode));
    plain(MetadataField::Owner, format!("{}:{}", ownership.user, ownership.group));
    if !aspects.contains(MetadataField::Acl) && !aspects.contains(MetadataField::Xattr) {
        return Ok(());
    }
    for name in node.attribute_names()? {
        let aspect = match is_access_list(&name) {
            true => MetadataField::Acl,
            false if name.starts_with(b"system.") || name.starts_with(OWN) => continue,
            false => MetadataField::Xattr,
        };
        if !aspects.contains(aspect) {
            continue;
        }
        let value = match node.attribute(&name) {
            // Taken away since it was listed.
            Ok(None) => continue,
            Ok(Some(value)) => MetadataValue::of(value),
            Err(error) => MetadataValue::Unread(error.to_string()),
        };
        values.insert((aspect, name), value);
    }
    Ok(())
}
