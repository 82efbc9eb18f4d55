//! Tests of the promises of a sync, in each mode, over known protocols and random
//! requests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::UNIX_EPOCH;

use fsure_os::fuse_files::{Ranging, Renaming, Setting, VirtualFs};
use proptest::prelude::*;

use super::*;

const NOW: Duration = Duration::ZERO;

fn drive(behavior: Behavior, mode: Mode) -> FileDrive {
    let traits =
        FileTraits { behavior, mode, latency: Latency::NONE, space: 1 << 20, owner: (1000, 1000) };
    FileDrive::new(traits, UNIX_EPOCH)
}

fn make(drive: &mut FileDrive, folder: u64, name: &str, sort: Sort) -> u64 {
    let new = New { sort, mode: 0o644, uid: 1, gid: 1, target: OsStr::new("where") };
    drive.make(NOW, (folder, OsStr::new(name)), &new).unwrap().inode
}

fn all(drive: &FileDrive, name: &str) -> Option<Vec<u8>> {
    let found = drive.look_up(ROOT, OsStr::new(name)).ok()?;
    Some(drive.read(found.inode, 0, 1 << 20).unwrap())
}

/// Returns how many of `rounds` a protocol loses in the worst of all cuts; 0 if none.
fn lost(mut drive: FileDrive, rounds: u64, mut round: impl FnMut(&mut FileDrive, u64)) -> u64 {
    for number in 1..=rounds {
        round(&mut drive, number);
    }
    let mut worst = 0;
    for cut in CutVariant::ALL {
        for seed in 0..20 {
            let left = drive.cut(NOW, cut, &mut Random::new(seed));
            let last = all(&left, "file").and_then(|all| all.last().copied()).unwrap_or(0);
            worst = worst.max(rounds - u64::from(last));
        }
    }
    worst
}

/// Appends a byte to a file, whose name is durable, and syncs it.
fn append(drive: &mut FileDrive, number: u64) {
    let file = match drive.look_up(ROOT, OsStr::new("file")) {
        Ok(found) => found.inode,
        Err(_) => {
            let file = make(drive, ROOT, "file", Sort::File);
            drive.sync(NOW, ROOT).unwrap();
            file
        }
    };
    drive.write(NOW, file, number - 1, &[number as u8]).unwrap();
    drive.sync(NOW, file).unwrap();
}

/// Replaces a file by a new one, and syncs that and perhaps the folder.
fn replace(drive: &mut FileDrive, number: u64, syncs_folder: bool) {
    let draft = make(drive, ROOT, "draft", Sort::File);
    drive.write(NOW, draft, 0, &[number as u8]).unwrap();
    drive.sync(NOW, draft).unwrap();
    let (from, to) = (OsStr::new("draft"), OsStr::new("file"));
    drive.rename(NOW, (ROOT, from), (ROOT, to), Renaming::Replace).unwrap();
    if syncs_folder {
        drive.sync(NOW, ROOT).unwrap();
    }
}

/// The table of the prototype, reproduced by this model.
#[test]
fn protocols_lose_what_they_are_known_to_lose() {
    let (honest, lying) = (Behavior::Honest, Behavior::Lying { lag: None });
    for mode in [Mode::Strict, Mode::Journal] {
        assert_eq!(lost(drive(honest, mode), 9, append), 0, "{}", mode.name());
        assert_eq!(lost(drive(lying, mode), 9, append), 9, "{}", mode.name());
        let with_folder = |drive: &mut _, number| replace(drive, number, true);
        assert_eq!(lost(drive(honest, mode), 9, with_folder), 0, "{}", mode.name());
        assert_eq!(lost(drive(lying, mode), 9, with_folder), 9, "{}", mode.name());
        assert_eq!(lost(drive(Behavior::Protected, mode), 9, append), 0);
    }
    // No sync has promised the name; a journal has written all but the last.
    let without = |drive: &mut _, number| replace(drive, number, false);
    assert_eq!(lost(drive(honest, Mode::Strict), 9, without), 9);
    assert_eq!(lost(drive(honest, Mode::Journal), 9, without), 1);
}

#[test]
fn a_name_without_content_is_an_empty_file_with_its_mode() {
    let mut drive = drive(Behavior::Honest, Mode::Strict);
    let file = make(&mut drive, ROOT, "file", Sort::File);
    drive.write(NOW, file, 0, b"content").unwrap();
    drive.sync(NOW, ROOT).unwrap();
    let left = drive.cut(NOW, CutVariant::None, &mut Random::new(1));
    assert_eq!(all(&left, "file").unwrap(), b"");
    let found = left.look_up(ROOT, OsStr::new("file")).unwrap();
    assert_eq!((found.mode, found.uid, found.links), (0o644, 1, 1));
    drive.sync(NOW, file).unwrap();
    let left = drive.cut(NOW, CutVariant::None, &mut Random::new(1));
    assert_eq!(all(&left, "file").unwrap(), b"content");
}

#[test]
fn a_cut_during_a_sync_may_take_what_it_covers() {
    for mode in [Mode::Strict, Mode::Journal] {
        let mut drive = drive(Behavior::Honest, mode);
        drive.traits.latency = Latency::APPLE;
        let file = make(&mut drive, ROOT, "file", Sort::File);
        drive.write(NOW, file, 0, &[1]).unwrap();
        let [name, content] = [ROOT, file].map(|inode| drive.sync(NOW, inode).unwrap());
        assert!(name < content, "the file has bytes to write");
        let mut left = |now| all(&drive.cut(now, CutVariant::None, &mut Random::new(1)), "file");
        let moment = Duration::from_nanos(1);
        assert_eq!(left(name - moment), None, "{}", mode.name());
        assert_eq!(left(content - moment), Some(vec![]), "{}", mode.name());
        assert_eq!(left(content), Some(vec![1]), "{}", mode.name());
        assert_eq!(drive.volatile(content), (0, 0), "{}", mode.name());
    }
}

/// The names of a folder that was synced are durable, also if the folder goes after that: what it
/// held is there under the old name or the new one.
#[test]
fn a_sync_that_has_ended_outlives_its_folder() {
    let mut drive = drive(Behavior::Honest, Mode::Strict);
    drive.traits.latency = Latency::APPLE;
    let folder = make(&mut drive, ROOT, "folder", Sort::Folder);
    let file = make(&mut drive, folder, "file", Sort::File);
    let syncs = [ROOT, folder].map(|inode| drive.sync(NOW, inode).unwrap());
    let later = *syncs.iter().max().unwrap();
    let (from, to) = ((folder, OsStr::new("file")), (ROOT, OsStr::new("file")));
    drive.rename(later, from, to, Renaming::Replace).unwrap();
    drive.remove(later, (ROOT, OsStr::new("folder")), true).unwrap();
    drive.forget(folder);
    let left = drive.cut(later, CutVariant::None, &mut Random::new(1));
    let found = left.look_up(ROOT, OsStr::new("folder")).unwrap();
    assert_eq!(left.look_up(found.inode, OsStr::new("file")).unwrap().inode, file);
}

#[test]
fn a_deferred_sync_is_done_when_it_is_due() {
    let longest = Duration::from_secs(1);
    let mut drive = drive(Behavior::Defer { longest }, Mode::Strict);
    append(&mut drive, 1);
    // Done at once was the first, of the folder; that of the file waits.
    let left = |drive: &mut FileDrive, ms| {
        let left = drive.cut(Duration::from_millis(ms), CutVariant::None, &mut Random::new(1));
        all(&left, "file").unwrap().len()
    };
    assert_eq!(left(&mut drive, 999), 0);
    assert_eq!(left(&mut drive, 1000), 1);
    let mut drive = super::tests::drive(Behavior::Lying { lag: Some(longest) }, Mode::Strict);
    append(&mut drive, 1);
    assert!(all(&drive.cut(NOW, CutVariant::None, &mut Random::new(1)), "file").is_none());
    assert_eq!(left(&mut drive, 1000), 1);
}

/// Files that were removed and synced take no space, in the view and on the medium.
#[test]
fn what_is_gone_is_gone() {
    for mode in [Mode::Strict, Mode::Journal] {
        let mut drive = drive(Behavior::Honest, mode);
        for number in 1..200 {
            replace(&mut drive, number, true);
            let gone = (ROOT + 1..drive.next_inode - 1).collect::<Vec<_>>();
            gone.into_iter().for_each(|inode| drive.forget(inode));
        }
        assert_eq!((drive.seen.count(), drive.medium.count()), (2, 2), "{}", mode.name());
        assert_eq!((drive.used, drive.volatile(NOW)), (1, (0, 0)), "{}", mode.name());
    }
}

#[test]
fn a_full_drive_and_a_failing_one_return_their_errors() {
    let mut drive = drive(Behavior::Honest, Mode::Strict);
    let file = make(&mut drive, ROOT, "file", Sort::File);
    assert_eq!(drive.write(NOW, file, 1 << 20, b"x"), Err(FuseError::TooLarge));
    drive.write(NOW, file, 0, &vec![1; 1 << 20]).unwrap();
    let other = make(&mut drive, ROOT, "other", Sort::File);
    assert_eq!(drive.write(NOW, other, 0, b"x"), Err(FuseError::NoRoom));
    assert_eq!(drive.free_space().free, 0);
    drive.set(NOW, file, &Setting { size: Some(1), ..Setting::default() }).unwrap();
    drive.fail_after(1, 1);
    assert!(drive.write(NOW, other, 0, b"x").is_ok());
    assert_eq!(drive.write(NOW, other, 0, b"y"), Err(FuseError::Failed));
    assert!(drive.write(NOW, other, 0, b"z").is_ok());
    assert_eq!(drive.counts().errors, 1);
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let mut drive = drive(Behavior::Honest, Mode::Journal);
    let folder = make(&mut drive, ROOT, "folder", Sort::Folder);
    let file = make(&mut drive, folder, "file", Sort::File);
    let name = |name: &'static str| OsStr::new(name);
    assert_eq!(drive.remove(NOW, (ROOT, name("folder")), true), Err(FuseError::NotEmpty));
    assert_eq!(drive.remove(NOW, (ROOT, name("folder")), false), Err(FuseError::IsAFolder));
    assert_eq!(drive.remove(NOW, (folder, name("file")), true), Err(FuseError::NotAFolder));
    assert_eq!(drive.look_up(file, name("x")).unwrap_err(), FuseError::NotAFolder);
    let (from, to) = ((folder, name("file")), (ROOT, name("folder")));
    assert_eq!(drive.rename(NOW, from, to, Renaming::Refuse), Err(FuseError::Exists));
    assert_eq!(drive.rename(NOW, from, to, Renaming::Replace), Err(FuseError::IsAFolder));
    assert_eq!(drive.rename(NOW, to, from, Renaming::Replace), Err(FuseError::NotAFolder));
    let nothing = (ROOT, name("nothing"));
    assert_eq!(drive.rename(NOW, from, nothing, Renaming::Exchange), Err(FuseError::NotFound));
    let long = "x".repeat(256);
    let long = (ROOT, OsStr::new(&long));
    assert_eq!(drive.link(NOW, file, long).unwrap_err(), FuseError::NameTooLong);
    assert_eq!(drive.link(NOW, folder, nothing).unwrap_err(), FuseError::Invalid);
    drive.link(NOW, file, nothing).unwrap();
    assert_eq!(drive.attributes(file).unwrap().links, 2);
    drive.write(NOW, file, 0, b"12345678").unwrap();
    drive.range(NOW, file, (2, 100), Ranging::Zero).unwrap();
    drive.range(NOW, file, (0, 10), Ranging::Reserve).unwrap();
    assert_eq!(drive.read(file, 0, 99).unwrap(), b"12\0\0\0\0\0\0\0\0");
}

/// A request, by numbers that are taken modulo what there is.
#[derive(Clone, Debug)]
enum FileOp {
    Make { at: usize, name: u8, is_folder: bool },
    Write { at: usize, offset: u64, length: usize },
    Truncate { at: usize, size: u64 },
    Rename { from: usize, to: usize, name: u8, renaming: Renaming },
    Link { of: usize, at: usize, name: u8 },
    Remove { of: usize },
    Sync { of: usize },
}

fn asks() -> impl Strategy<Value = Vec<FileOp>> {
    let at = || 0..64_usize;
    let renaming = prop_oneof![Just(Renaming::Replace), Just(Renaming::Exchange)];
    let ask = prop_oneof![
        4 => (at(), 0..4_u8, any::<bool>())
            .prop_map(|(at, name, is_folder)| FileOp::Make { at, name, is_folder }),
        4 => (at(), 0..3000_u64, 1..2000_usize)
            .prop_map(|(at, offset, length)| FileOp::Write { at, offset, length }),
        1 => (at(), 0..3000_u64).prop_map(|(at, size)| FileOp::Truncate { at, size }),
        3 => (at(), at(), 0..4_u8, renaming)
            .prop_map(|(from, to, name, renaming)| FileOp::Rename { from, to, name, renaming }),
        1 => (at(), at(), 0..4_u8).prop_map(|(of, at, name)| FileOp::Link { of, at, name }),
        2 => at().prop_map(|of| FileOp::Remove { of }),
        4 => at().prop_map(|of| FileOp::Sync { of }),
    ];
    prop::collection::vec(ask, 1..80)
}

/// All names with what they stand for: path, folder, name, inode, sort.
fn tree(drive: &FileDrive) -> Vec<(OsString, u64, OsString, u64, Sort)> {
    let (mut found, mut folders) = (Vec::new(), vec![(OsString::new(), ROOT)]);
    while let Some((path, folder)) = folders.pop() {
        for name in drive.list(folder).unwrap() {
            let mut path = path.clone();
            path.push("/");
            path.push(&name.name);
            if name.sort == Sort::Folder {
                folders.push((path.clone(), name.inode));
            }
            found.push((path, folder, name.name, name.inode, name.sort));
        }
    }
    found
}

/// Does a request if it can be done; what the kernel never asks is left out.
fn ask(drive: &mut FileDrive, number: u8, ask: &FileOp) {
    let tree = tree(drive);
    let folders: Vec<_> = std::iter::once(ROOT)
        .chain(tree.iter().filter(|name| name.4 == Sort::Folder).map(|name| name.3))
        .collect();
    let files: Vec<_> =
        tree.iter().filter(|name| name.4 == Sort::File).map(|name| name.3).collect();
    let folder = |at: usize| folders[at % folders.len()];
    let file = |at: usize| (!files.is_empty()).then(|| files[at % files.len()]);
    let entry = |at: usize| (!tree.is_empty()).then(|| &tree[at % tree.len()]);
    let letter = |name: u8| OsString::from(char::from(b'a' + name).to_string());
    let _ = match *ask {
        FileOp::Make { at, name, is_folder } => {
            let sort = if is_folder { Sort::Folder } else { Sort::File };
            let new = New { sort, mode: 0o700, uid: 1, gid: 1, target: OsStr::new("") };
            drive.make(NOW, (folder(at), &letter(name)), &new).map(drop)
        }
        FileOp::Write { at, offset, length } => {
            file(at).map_or(Ok(()), |file| drive.write(NOW, file, offset, &vec![number; length]))
        }
        FileOp::Truncate { at, size } => file(at).map_or(Ok(()), |file| {
            let setting = Setting { size: Some(size), ..Setting::default() };
            drive.set(NOW, file, &setting).map(drop)
        }),
        FileOp::Rename { from, to, name, renaming } => entry(from).map_or(Ok(()), |of| {
            // The kernel keeps a folder out of itself, either way.
            let (to, name) = (folder(to), letter(name));
            let path = tree.iter().find(|name| name.3 == to).map(|name| name.0.clone());
            let within = |inner: &OsString, outer: &OsString| {
                inner.as_encoded_bytes().starts_with(outer.as_encoded_bytes())
            };
            let inside = path.is_some_and(|path| within(&path, &of.0));
            let there = tree.iter().find(|there| there.1 == to && there.2 == name);
            if inside || there.is_some_and(|there| within(&of.0, &there.0)) {
                return Ok(());
            }
            drive.rename(NOW, (of.1, &of.2), (to, &name), renaming)?;
            if let Some(there) = there {
                drive.forget(there.3);
            }
            Ok(())
        }),
        FileOp::Link { of, at, name } => file(of)
            .map_or(Ok(()), |file| drive.link(NOW, file, (folder(at), &letter(name))).map(drop)),
        FileOp::Remove { of } => entry(of).map_or(Ok(()), |of| {
            drive.remove(NOW, (of.1, &of.2), of.4 == Sort::Folder)?;
            drive.forget(of.3);
            Ok(())
        }),
        FileOp::Sync { of } => {
            let of = entry(of).map_or(ROOT, |of| of.3);
            drive.sync(NOW, of).map(drop)
        }
    };
}

/// Paths of files with their content.
fn contents(drive: &FileDrive) -> BTreeMap<OsString, Vec<u8>> {
    let files = tree(drive).into_iter().filter(|name| name.4 == Sort::File);
    files.map(|name| (name.0, drive.read(name.3, 0, 1 << 20).unwrap())).collect()
}

/// Returns an error if names, links and sizes do not fit each other.
fn is_sound(drive: &FileDrive) -> Result<(), String> {
    let tree = tree(drive);
    for (path, _, _, inode, sort) in &tree {
        let names = tree.iter().filter(|name| name.3 == *inode).count();
        let links = drive.attributes(*inode).unwrap().links as usize;
        if names != links {
            return Err(format!("{path:?}: {names} names, {links} links, {sort:?}"));
        }
    }
    let mut inodes: Vec<_> = tree.iter().map(|name| name.3).collect();
    inodes.sort_unstable();
    inodes.dedup();
    let bytes = inodes.iter().map(|inode| drive.attributes(*inode).unwrap().size).sum::<u64>();
    (bytes == drive.used).then_some(()).ok_or_else(|| format!("{} of {bytes}", drive.used))
}

proptest! {
    /// Every cut leaves a sound file system. After a sync of everything nothing is lost;
    /// if nothing was synced, `none` leaves nothing.
    #[test]
    fn a_cut_leaves_a_sound_file_system(asks in asks(), seed: u64, strict: bool) {
        let mode = if strict { Mode::Strict } else { Mode::Journal };
        for behavior in [Behavior::Honest, Behavior::Lying { lag: None }] {
            let mut drive = drive(behavior, mode);
            for (number, request) in (1..).zip(&asks) {
                ask(&mut drive, number, request);
            }
            prop_assert_eq!(is_sound(&drive), Ok(()));
            for cut in CutVariant::ALL {
                let left = drive.cut(NOW, cut, &mut Random::new(seed));
                prop_assert_eq!(is_sound(&left), Ok(()), "{}", cut.name());
                let again = drive.cut(NOW, cut, &mut Random::new(seed));
                prop_assert_eq!(contents(&left), contents(&again), "{}", cut.name());
            }
            for cut in CutVariant::ALL {
                let (left, state) = drive.cut_with_state(NOW, cut, &mut Random::new(seed));
                let same = state.with_syncs(&BTreeSet::new());
                prop_assert_eq!(contents(&left), contents(&same), "{}", cut.name());
                let all: BTreeSet<_> = state.unsynced().iter().map(|one| one.inode).collect();
                let whole = state.with_syncs(&all);
                prop_assert_eq!(is_sound(&whole), Ok(()), "{}", cut.name());
                prop_assert_eq!(contents(&whole), contents(&drive), "{}", cut.name());
            }
            let left = drive.cut(NOW, CutVariant::All, &mut Random::new(seed));
            prop_assert_eq!(contents(&left), contents(&drive));
            let none = drive.cut(NOW, CutVariant::None, &mut Random::new(seed));
            if behavior != Behavior::Honest {
                prop_assert_eq!(tree(&none), vec![]);
            }
            for name in tree(&drive) {
                drive.sync(NOW, name.3).unwrap();
            }
            drive.sync(NOW, ROOT).unwrap();
            if behavior == Behavior::Honest {
                for cut in CutVariant::ALL {
                    let left = drive.cut(NOW, cut, &mut Random::new(seed));
                    prop_assert_eq!(contents(&left), contents(&drive), "{}", cut.name());
                }
            }
        }
    }
}

/// Each with its path and the names that matter; what a sync has covered is not among them.
#[test]
fn what_no_sync_has_covered_is_known() {
    let mut drive = drive(Behavior::Honest, Mode::Strict);
    let folder = make(&mut drive, ROOT, "folder", Sort::Folder);
    drive.sync(NOW, ROOT).unwrap();
    let [kept, draft] = ["kept", "draft"].map(|name| make(&mut drive, folder, name, Sort::File));
    for file in [kept, draft] {
        drive.write(NOW, file, 0, b"content").unwrap();
    }
    drive.sync(NOW, draft).unwrap();
    let [from, to] = ["draft", "file"].map(OsStr::new);
    drive.rename(NOW, (folder, from), (folder, to), Renaming::Replace).unwrap();
    let (left, state) = drive.cut_with_state(NOW, CutVariant::None, &mut Random::new(1));
    assert_eq!(tree(&left).len(), 1, "the folder");
    let unsynced = state.unsynced();
    let reported: Vec<_> = unsynced
        .iter()
        .map(|one| (one.path.to_str().unwrap(), one.is_folder, one.names.len()))
        .collect();
    // The draft has another name now.
    assert_eq!(reported, [("folder", true, 2), ("folder/kept", false, 0)]);
    let with = |inode| contents(&state.with_syncs(&BTreeSet::from([inode])));
    let names = with(folder);
    assert_eq!(names[OsStr::new("/folder/file")], b"content", "it was synced itself");
    assert_eq!(names[OsStr::new("/folder/kept")], b"");
    assert!(with(kept).is_empty(), "without a name");
}

#[test]
fn a_cache_is_finite_and_its_oldest_leaves_it_first() {
    let mut drive = drive(Behavior::Lying { lag: None }, Mode::Strict);
    let file = make(&mut drive, ROOT, "file", Sort::File);
    for number in 0..=200_u8 {
        let now = Duration::from_millis(u64::from(number));
        drive.write(now, file, 0, &vec![number; 1 << 20]).unwrap();
        assert!(drive.volatile(NOW).0 <= CACHE as u64);
    }
    let left = drive.cut(Duration::from_secs(1), CutVariant::None, &mut Random::new(1));
    let content = all(&left, "file").unwrap();
    // Half of them leave at a time.
    assert!((201 - 128..201 - 62).contains(&i32::from(content[0])), "{}", content[0]);
}
