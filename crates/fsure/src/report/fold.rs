//! Names below a folder that is gone or that has moved, folded into one line: a lost folder
//! of a thousand files is one loss, and must not hide the one file that is damaged.
//! Programs get every name.

use std::collections::BTreeSet;

use super::{RootPaths, number};
use fsure_core::{RelPath, units};
use fsure_integrity::model::{EntryKind, Finding, HealResult, HealSource, HealStatus, Verdict};

/// Lines about what is gone, on their way to a person, in the order of paths.
#[derive(Debug, Default)]
pub struct Folding {
    /// Folders that are gone and may have more below them. Paths like `a-b` come
    /// between `a` and `a/b`, so that there may be several.
    open: Vec<MissingFolder>,
    /// The folder of what has moved, as long as nothing else comes between.
    moved: Option<MovedFolder>,
}

/// Names that were found below another folder than they were recorded in, with that folder.
#[derive(Debug)]
struct MovedFolder {
    from: RelPath,
    to: RelPath,
    /// The line of the first, which stands if it remains the only one.
    line: String,
    counts: FoldedCounts,
}

#[derive(Debug)]
struct MissingFolder {
    path: RelPath,
    cure: Option<HealStatus>,
    line: String,
    counts: FoldedCounts,
    origins: BTreeSet<HealSource>,
}

/// Numbers of the names that are folded into one line.
#[derive(Debug, Default)]
struct FoldedCounts {
    files: u64,
    /// Size of the files.
    bytes: u64,
    folders: u64,
    links: u64,
}

/// A line, and whether it is about something that is gone and nothing more.
struct FoldedLine<'a> {
    path: &'a RelPath,
    kind: EntryKind,
    size: u64,
    cure: Option<HealStatus>,
    origins: Vec<&'a HealSource>,
    is_plain: bool,
    line: String,
}

impl Folding {
    /// Takes the line of a finding. Returns what is to be printed now.
    pub fn finding(&mut self, paths: &RootPaths, finding: &Finding, line: String) -> Vec<String> {
        if let Some((to, from)) = moved_folder(finding) {
            return self.moved(paths, finding, (to, from), line);
        }
        let mut ready = self.end_of_moved(paths);
        ready.extend(self.other_finding(finding, line));
        ready
    }

    fn moved(
        &mut self,
        paths: &RootPaths,
        finding: &Finding,
        (to, from): (RelPath, RelPath),
        line: String,
    ) -> Vec<String> {
        if let Some(moved) = &mut self.moved
            && (&moved.to, &moved.from) == (&to, &from)
        {
            moved.counts.add(finding.kind, finding.size());
            return Vec::new();
        }
        let ready = self.end_of_moved(paths);
        let mut counts = FoldedCounts::default();
        counts.add(finding.kind, finding.size());
        self.moved = Some(MovedFolder { from, to, line, counts });
        ready
    }

    fn end_of_moved(&mut self, paths: &RootPaths) -> Vec<String> {
        self.moved.take().map(|moved| moved.described(paths)).into_iter().collect()
    }

    fn other_finding(&mut self, finding: &Finding, line: String) -> Vec<String> {
        let is_plain = finding.verdict == Verdict::Missing
            && finding.reason.is_none()
            && !finding.is_flagged();
        self.take(FoldedLine {
            path: &finding.path,
            kind: finding.kind,
            size: finding.size(),
            cure: None,
            origins: Vec::new(),
            is_plain,
            line,
        })
    }

    /// The same of what was done about a finding.
    pub fn remedy(&mut self, remedy: &HealResult, line: String) -> Vec<String> {
        let is_plain = remedy.verdict == Verdict::Missing
            && remedy.reason.is_none()
            && remedy.lacking.is_empty();
        self.take(FoldedLine {
            path: &remedy.path,
            kind: remedy.kind,
            size: remedy.size,
            cure: Some(remedy.cure),
            origins: remedy.taken.iter().map(|(origin, _)| origin).collect(),
            is_plain,
            line,
        })
    }

    fn take(&mut self, line: FoldedLine<'_>) -> Vec<String> {
        if !line.is_plain {
            return vec![line.line];
        }
        let mut ready = Vec::new();
        let is_over = |folder: &MissingFolder| {
            let (_, end) = folder.path.below();
            end.is_some_and(|end| line.path.as_bytes() >= &*end)
        };
        self.open.retain_mut(|folder| {
            let is_over = is_over(folder);
            if is_over {
                ready.push(folder.described());
            }
            !is_over
        });
        let above = self
            .open
            .iter_mut()
            .find(|folder| line.path.is_within(&folder.path) && line.cure == folder.cure);
        match above {
            Some(folder) => folder.add(&line),
            None if line.kind == EntryKind::Folder => self.open.push(MissingFolder {
                path: line.path.clone(),
                cure: line.cure,
                line: line.line,
                counts: FoldedCounts::default(),
                origins: BTreeSet::new(),
            }),
            None => ready.push(line.line),
        }
        ready
    }

    /// Takes the lines that are left to be printed.
    pub fn end(&mut self, paths: &RootPaths) -> Vec<String> {
        let mut ready = self.end_of_moved(paths);
        ready.extend(std::mem::take(&mut self.open).iter().map(MissingFolder::described));
        ready
    }
}

/// Returns the folder that something moved was found below and the one that it was recorded
/// below, if its name below both is the same, or a moved folder itself; `None` if there is more
/// to say about it.
fn moved_folder(finding: &Finding) -> Option<(RelPath, RelPath)> {
    let from = finding.moved_from.as_ref()?;
    let is_plain =
        finding.verdict == Verdict::Moved && finding.reason.is_none() && !finding.is_flagged();
    let (mut to, mut from) = (finding.path.clone(), from.clone());
    let mut is_below = finding.kind == EntryKind::Folder;
    while let (Some(to_folder), Some(from_folder)) = (to.parent(), from.parent())
        && to.name() == from.name()
    {
        (to, from, is_below) = (to_folder, from_folder, true);
    }
    (is_plain && is_below).then_some((to, from))
}

impl FoldedCounts {
    fn add(&mut self, kind: EntryKind, size: u64) {
        match kind {
            EntryKind::Folder => self.folders += 1,
            EntryKind::Link => self.links += 1,
            _ => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(size);
            }
        }
    }

    fn total(&self) -> u64 {
        self.files + self.folders + self.links
    }

    /// `2 files of 3.0 MiB, 1 folder`; empty if there are none.
    fn described(&self) -> String {
        let files =
            || format!("{} of {}", number(self.files, "file", "files"), units::size(self.bytes));
        let parts = [
            (self.files > 0).then(files),
            (self.folders > 0).then(|| number(self.folders, "folder", "folders")),
            (self.links > 0).then(|| number(self.links, "link", "links")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl MovedFolder {
    fn described(self, paths: &RootPaths) -> String {
        if self.counts.total() == 1 {
            return self.line;
        }
        let (to, from) = (paths.shown(&self.to), paths.shown(&self.from));
        let (verdict, counts) = (Verdict::Moved.name(), self.counts.described());
        format!("{verdict:<12} {to}  {counts}\n    recorded below {from}")
    }
}

impl MissingFolder {
    fn add(&mut self, line: &FoldedLine<'_>) {
        self.counts.add(line.kind, line.size);
        // That a folder is as it is recorded says nothing of what was in it.
        let origins = line.origins.iter().filter(|origin| ***origin != HealSource::Record);
        self.origins.extend(origins.map(|origin| (*origin).clone()));
    }

    /// Its own line, with what is folded into it behind the first part.
    fn described(&self) -> String {
        if self.counts.total() == 0 {
            return self.line.clone();
        }
        let (first, rest) = match self.line.split_once('\n') {
            Some((first, rest)) => (first, format!("\n{rest}")),
            None => (&*self.line, String::new()),
        };
        let below: String = self
            .origins
            .iter()
            .map(|it| format!("\n    below it {}", super::heal::from(it)))
            .collect();
        format!("{first}, and all below it: {}{rest}{below}", self.counts.described())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> RootPaths {
        RootPaths::in_root()
    }

    fn gone(path: &str, kind: EntryKind) -> Finding {
        Finding::bare(RelPath::from_bytes(path.as_bytes()), kind, Verdict::Missing, None)
    }

    #[test]
    fn what_is_below_a_lost_folder_is_one_line_with_it() {
        use EntryKind::{File, Folder, Link};
        let mut folding = Folding::default();
        let mut reported = Vec::new();
        let mut take = |finding: Finding| {
            let line = format!("{} {}", finding.verdict.name(), finding.path.display());
            reported.extend(folding.finding(&paths(), &finding, line));
        };
        for (path, kind) in [
            ("a", File),
            ("lost", Folder),
            ("lost-b", Folder),
            ("lost-b.txt", File),
            ("lost-b/x", File),
            ("lost/in", Folder),
            ("lost/in/1", File),
            ("lost/in/2", File),
            ("lost/l", Link),
        ] {
            take(gone(path, kind));
        }
        // Neither damage nor what has more to say is folded.
        take(Finding { verdict: Verdict::Rotten, ..gone("lost/rotten", File) });
        let doubtful = Some("a moved file?".to_owned());
        take(Finding { reason: doubtful, ..gone("lost/z", File) });
        take(gone("lost0", File));
        take(gone("z", Folder));
        reported.extend(folding.end(&paths()));
        assert_eq!(
            reported,
            [
                "missing a",
                "missing lost-b.txt",
                "missing lost-b, and all below it: 1 file of 0 B",
                "rotten lost/rotten",
                "missing lost/z",
                "missing lost, and all below it: 2 files of 0 B, 1 folder, 1 link",
                "missing lost0",
                "missing z"
            ]
        );
        assert!(folding.end(&paths()).is_empty());
    }

    #[test]
    fn what_moved_with_its_folder_is_one_line() {
        let mut folding = Folding::default();
        let mut reported = Vec::new();
        for (to, from, kind) in [
            ("new", "old", EntryKind::Folder),
            ("new/a", "old/a", EntryKind::File),
            ("new/in", "old/in", EntryKind::Folder),
            ("new/in/b", "old/in/b", EntryKind::File),
            ("new/in/link", "old/in/link", EntryKind::Link),
            ("new/c", "old/c", EntryKind::File),
            ("other", "old/renamed", EntryKind::File),
            ("x/d", "d", EntryKind::File),
            ("x/e", "e", EntryKind::File),
        ] {
            let moved_from = Some(RelPath::from_bytes(from.as_bytes()));
            let finding = Finding { verdict: Verdict::Moved, moved_from, ..gone(to, kind) };
            reported.extend(folding.finding(&paths(), &finding, format!("moved {to}")));
        }
        reported.extend(folding.end(&paths()));
        let expected = [
            "moved        new  3 files of 0 B, 2 folders, 1 link\n    recorded below old",
            "moved other",
            "moved        x  2 files of 0 B\n    recorded below .",
        ];
        assert_eq!(reported, expected);
    }

    #[test]
    fn healed_files_of_a_folder_name_their_source() {
        let remedy = |path: &str, kind, cure, origin| HealResult {
            path: RelPath::from_bytes(path.as_bytes()),
            kind,
            size: 1 << 20,
            verdict: Verdict::Missing,
            cure,
            taken: vec![(origin, Vec::new())],
            lacking: Vec::new(),
            kept: None,
            reason: None,
        };
        let replica = || HealSource::Replica(b"/b"[..].into());
        let mut folding = Folding::default();
        let mut reported = Vec::new();
        for one in [
            remedy("lost", EntryKind::Folder, HealStatus::Healed, HealSource::Record),
            remedy("lost/1", EntryKind::File, HealStatus::Healed, replica()),
            remedy("lost/2", EntryKind::File, HealStatus::Healed, replica()),
            remedy("lost/3", EntryKind::File, HealStatus::Unhealed, replica()),
            remedy("lost/empty", EntryKind::File, HealStatus::Healed, HealSource::Record),
        ] {
            let line = super::super::heal::text_line(&paths(), &one);
            reported.extend(folding.remedy(&one, line));
        }
        reported.extend(folding.end(&paths()));
        assert_eq!(
            reported,
            [
                "unhealed     lost/3  missing left as it is\n    from /b",
                "healed       lost  missing made again, and all below it: 3 files of 3.0 MiB\n    \
                 as it is recorded\n    below it from /b"
            ]
        );
    }
}
