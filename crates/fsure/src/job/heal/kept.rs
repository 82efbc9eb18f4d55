//! What was in a file that somebody may have rewritten stays: a date that was
//! put back hides an edit, and it may be the better content. Before the healed
//! file takes its name, it gets a second one in a folder of ours, which costs no
//! room and no copy, and which nothing of ours ever removes.

use std::io;

use fsure_os::place::Places;
use fsure_os::write::{flush_folder, link_file, make_folder};
use fsure_os::{Kind, Stat};

use super::healer::Healer;
use super::reader::{Attempt, Failure};
use crate::catalog::REPLACED;
use crate::words::{Entry, Finding, RelPath, Remedy, Verdict};

/// What a dry run says of it.
pub(super) fn would_be() -> String {
    format!("what is there would be kept below {REPLACED}")
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::Unhealed(format!(
        "somebody may have rewritten it, and what is there cannot be kept ({why}): \
         '--altered' heals such files without"
    ))
}

/// Whether inode and change time say that nobody has written to a file.
fn is_untouched(finding: &Finding) -> bool {
    let of = |entry: &Option<Entry>| {
        let entry = entry.as_ref()?;
        Some((entry.inode?, entry.ctime_ns?))
    };
    let [then, now] = [&finding.recorded, &finding.found].map(of);
    then.is_some() && then == now
}

impl Healer<'_> {
    /// Whether what is there is to be kept: unless no program can have written it.
    pub(super) fn keeps(&self, finding: &Finding) -> bool {
        let may_be_wanted = match finding.verdict {
            Verdict::Altered | Verdict::DamagedCopy | Verdict::Mismatch => true,
            // The error may be gone tomorrow, and the edit is there.
            Verdict::Unreadable => !is_untouched(finding),
            _ => false,
        };
        may_be_wanted && !self.options.altered
    }

    /// Refuses what a name in the root cannot be given to, as far as that can be
    /// told without trying.
    pub(super) fn require_room(&self, stat: &Stat) -> Attempt<()> {
        match self.root.stat(b"") {
            Ok(root) if root.device == stat.device => Ok(()),
            Ok(_) => Err(refused("it is on another file system than its root")),
            Err(error) => Err(refused(error)),
        }
    }

    /// Gives a file a second name among what is kept, unless a run that was cut
    /// off has.
    pub(super) fn keep(&mut self, path: &RelPath, stat: &Stat, remedy: &mut Remedy) -> Attempt<()> {
        let is_it = |now: &Stat| now.inode == stat.inode && now.device == stat.device;
        let kept = match self.kept_as(path, stat).into_iter().next() {
            Some(kept) => kept,
            None => self.link(path).map_err(refused)?,
        };
        let [there, here] = [&kept, path].map(|path| self.root.stat(path.as_bytes()));
        remedy.kept = Some(kept);
        let is_as_it_was = there.is_ok_and(|there| is_it(&there))
            && here.is_ok_and(|here| {
                is_it(&here) && here.size == stat.size && here.mtime_ns == stat.mtime_ns
            });
        if is_as_it_was {
            return Ok(());
        }
        Err(Failure::Unhealed("busy: it changed since it was judged".to_owned()))
    }

    fn link(&mut self, path: &RelPath) -> io::Result<RelPath> {
        let room = match &self.room {
            Some(room) => room.clone(),
            None => self.room.insert(self.make_room()?).clone(),
        };
        let kept = RelPath::from_bytes([room.as_bytes(), b"/", path.as_bytes()].concat());
        self.make_own(&kept.parent().unwrap_or_default(), &room)?;
        link_file(&self.root, path.as_bytes(), kept.as_bytes())?;
        Ok(kept)
    }

    /// Makes a folder for what this run replaces: the first free number.
    fn make_room(&self) -> io::Result<RelPath> {
        let replaced = RelPath::from_bytes(REPLACED.as_bytes());
        self.make_own(&replaced, &RelPath::root())?;
        // Made by whoever, they are to be there for as long as what is in them.
        flush_folder(&self.root, b"")?;
        flush_folder(&self.root, replaced.parent().unwrap_or_default().as_bytes())?;
        let mut number = 1_u64;
        loop {
            let room = replaced.join(number.to_string().as_bytes());
            match make_folder(&self.root, room.as_bytes(), None) {
                Ok(_) => return Ok(room),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the folders of ours below `top`, for their owner alone.
    fn make_own(&self, folder: &RelPath, top: &RelPath) -> io::Result<()> {
        let is_there = |stat: &Stat| stat.kind == Kind::Folder;
        if folder == top || self.root.stat(folder.as_bytes()).is_ok_and(|stat| is_there(&stat)) {
            return Ok(());
        }
        self.make_own(&folder.parent().unwrap_or_default(), top)?;
        make_folder(&self.root, folder.as_bytes(), None).map(drop)
    }

    /// The names that runs before this one have given to this very file.
    pub(super) fn kept_as(&self, path: &RelPath, stat: &Stat) -> Vec<RelPath> {
        if stat.links < 2 {
            return Vec::new();
        }
        let Ok(rooms) = self.root.list(REPLACED.as_bytes(), Places::No, &|| ()) else {
            return Vec::new();
        };
        let kept = rooms.entries.iter().map(|(at, _)| {
            let room = [REPLACED.as_bytes(), rooms.names.get(*at)].join(&b'/');
            RelPath::from_bytes([&*room, path.as_bytes()].join(&b'/'))
        });
        kept.filter(|kept| {
            let there = self.root.stat(kept.as_bytes());
            there.is_ok_and(|there| there.inode == stat.inode && there.device == stat.device)
        })
        .collect()
    }
}
