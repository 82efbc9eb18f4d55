//! Names below a folder that is gone, folded into its line: a lost folder of a
//! thousand files is one loss, and must not hide the one file that is damaged.
//! Programs get every name.

use std::collections::BTreeSet;

use super::number;
use fsure_core::{RelPath, units};
use fsure_integrity::model::{EntryKind, Finding, HealResult, HealSource, HealStatus, Verdict};

/// Lines about what is gone, on their way to a person, in the order of paths.
#[derive(Debug, Default)]
pub struct Folding {
    /// Folders that are gone and may have more below them. Paths like `a-b` come
    /// between `a` and `a/b`, so that there may be several.
    open: Vec<MissingFolder>,
}

#[derive(Debug)]
struct MissingFolder {
    path: RelPath,
    cure: Option<HealStatus>,
    line: String,
    files: u64,
    bytes: u64,
    folders: u64,
    links: u64,
    origins: BTreeSet<HealSource>,
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
    /// Takes the line of a finding. What is to be printed now.
    pub fn finding(&mut self, finding: &Finding, line: String) -> Vec<String> {
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
                files: 0,
                bytes: 0,
                folders: 0,
                links: 0,
                origins: BTreeSet::new(),
            }),
            None => ready.push(line.line),
        }
        ready
    }

    /// Takes the lines that are left to be printed.
    pub fn end(&mut self) -> Vec<String> {
        std::mem::take(&mut self.open).iter().map(MissingFolder::described).collect()
    }
}

impl MissingFolder {
    fn add(&mut self, line: &FoldedLine<'_>) {
        match line.kind {
            EntryKind::Folder => self.folders += 1,
            EntryKind::Link => self.links += 1,
            _ => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(line.size);
            }
        }
        // That a folder is as it is recorded says nothing of what was in it.
        let origins = line.origins.iter().filter(|origin| ***origin != HealSource::Record);
        self.origins.extend(origins.map(|origin| (*origin).clone()));
    }

    /// Its own line, with what is folded into it behind the first part.
    fn described(&self) -> String {
        let files = |files: u64| {
            format!("{} of {}", number(files, "file", "files"), units::size(self.bytes))
        };
        let parts = [
            (self.files > 0).then(|| files(self.files)),
            (self.folders > 0).then(|| number(self.folders, "folder", "folders")),
            (self.links > 0).then(|| number(self.links, "link", "links")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
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
        format!("{first}, and all below it: {}{rest}{below}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RootPaths;
    use super::*;

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
            reported.extend(folding.finding(&finding, line));
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
        reported.extend(folding.end());
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
        assert!(folding.end().is_empty());
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
            let line = super::super::heal::text_line(&RootPaths::in_root(), &one);
            reported.extend(folding.remedy(&one, line));
        }
        reported.extend(folding.end());
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
