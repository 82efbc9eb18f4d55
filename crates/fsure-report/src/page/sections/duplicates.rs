//! `dupes`.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{number, path};
use super::Draft;
use crate::chart::{TreemapClass, TreemapItem, treemap};
use crate::outputs::Duplicates;
use fsure_core::{count, units};

/// The section of a run.
pub(super) fn section(found: &Duplicates, charts: &mut Charts) -> Section {
    let roots: Vec<_> = found.roots.iter().filter_map(|root| root.root.as_deref()).collect();
    let mut draft = Draft::new(format!("dupes {}", roots.join(" ")).trim().to_owned());
    if let Some(totals) = &found.summary {
        let saved = units::size(totals.bytes_saved);
        let groups = number(totals.groups, "group", "groups");
        let files = number(totals.files, "file", "files");
        let sentence = match totals.groups {
            0 => "No two files have the same content".to_owned(),
            _ => format!("{files} in {groups} of the same content: {saved} could be saved"),
        };
        let is_all = !totals.is_offline && !totals.was_stopped && totals.unread == 0;
        draft.verdict(if is_all { Grade::Plain } else { Grade::Warn }, sentence);
        for (is_so, words) in [
            (totals.is_offline, "A root was OFFLINE and is not in this.".to_owned()),
            (totals.was_stopped, "The run was stopped before its end.".to_owned()),
            (totals.unread > 0, format!("{} not read.", number(totals.unread, "file", "files"))),
        ] {
            if is_so {
                draft.note(words);
            }
        }
        draft.key(saved, "could be saved");
        draft.exit_code(totals.exit_code);
    }
    draft.part("Files of the same content", rows(found, roots.len() > 1));
    draft.part("Where they are", picture(found, charts));
    if let Some(totals) = &found.summary {
        draft.counts(&[
            ("Groups", totals.groups),
            ("Files", totals.files),
            ("Hard links among them", totals.links),
            ("Files read", totals.files_read),
            ("Files not read", totals.unread),
            ("Files that changed meanwhile", totals.changed),
            ("Bad records", totals.bad_records),
            ("Known to be damaged", totals.known_damage),
        ]);
    }
    draft.done()
}

fn rows(found: &Duplicates, with_root: bool) -> Vec<Piece> {
    let mut table = Table::new("Files of the same content", &["#Group", "Path", "#Size", "Link"]);
    for file in &found.files {
        let root = if with_root { file.root.as_str() } else { "" };
        table.push(vec![
            Cell::number(count(file.group)).with_key(file.group),
            Cell::path(path(&file.path, file.path_bytes.as_ref())).with_small(root),
            Cell::number(units::size(file.size)).with_key(file.size),
            Cell::text(if file.is_link { "hard link" } else { "" }),
        ]);
    }
    let left_out = found.files_total - found.files.len() as u64;
    let more =
        (left_out > 0).then(|| Piece::Text(format!("{} more are left out.", count(left_out))));
    table.unless_empty().into_iter().chain(more).collect()
}

fn picture(found: &Duplicates, charts: &mut Charts) -> Option<Piece> {
    const CLASSES: [TreemapClass; 1] = [TreemapClass { name: "duplicates", style: "warn" }];
    let files = found.files.iter().filter(|file| !file.is_link);
    let item = |file: &crate::outputs::DuplicateRow| TreemapItem {
        path: path(&file.path, file.path_bytes.as_ref()),
        weight: file.size,
        class: 0,
    };
    let items: Vec<_> = files.map(item).collect();
    let caption = "The area of a folder is the bytes of its files of which another file has the \
                   content.";
    let chart = || treemap("Folders with duplicates", &items, &CLASSES, &units::size);
    (items.len() > 3).then(|| charts.add(&chart(), caption))
}
