//! Changes of a file system of one's own: each kind by itself, and a workload of
//! chance by several threads, of which no difference may be missing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::host::did_not_run;
use crate::private_mounts::{Mount, MountKind, Namespace};

/// A file system of one's own, which is watched.
struct Site {
    watch: Watch,
    top: PathBuf,
    _mount: Mount,
    _folder: tempfile::TempDir,
}

fn site(test: &str) -> Option<Site> {
    let space = match Namespace::new() {
        Ok(space) => space,
        Err(error) => {
            did_not_run(test, &error.to_string());
            return None;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let mount =
        space.mount(&MountKind::Ram { bytes: 1 << 28, huge: false }, folder.path()).unwrap();
    let top = mount.path();
    Some(Site { watch: Watch::open(&top).unwrap(), top, _mount: mount, _folder: folder })
}

impl Site {
    fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    /// The names, one a word, then directories with a slash and inodes as a hash; a tilde
    /// where it is not exact. The root is a dot.
    fn reported(&mut self) -> String {
        let Changed::Known(paths) = self.watch.take() else { return "?".to_owned() };
        let word = |path: &Vec<u8>| match &path[..] {
            b"" => ".".to_owned(),
            path => String::from_utf8_lossy(path).into_owned(),
        };
        let names = paths.names.iter().map(word);
        let directories = paths.directories.iter().map(|path| word(path) + "/");
        let inodes = paths.inodes.iter().map(|_| "#".to_owned());
        let mark = (!paths.is_exact).then(|| "~".to_owned());
        names.chain(directories).chain(inodes).chain(mark).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_change_is_reported_by_its_name() {
    let Some(mut site) = site("a_change_is_reported_by_its_name") else { return };
    assert_eq!(site.reported(), "");
    assert!(!site.watch.wait(Duration::ZERO).unwrap());
    fs::create_dir_all(site.at("a/b/c")).unwrap();
    assert!(site.watch.wait(Duration::from_secs(9)).unwrap());
    assert_eq!(site.reported(), "a a/b a/b/c");
    fs::write(site.at("a/b/file"), "1").unwrap();
    assert_eq!(site.reported(), "a/b/file");
    // Without a name, and through a descriptor: each by itself.
    let open = fs::OpenOptions::new().write(true).open(site.at("a/b/file")).unwrap();
    site.reported();
    (&open).write_all(b"2").unwrap();
    assert_eq!(site.reported(), "a/b/file");
    open.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(site.reported(), "a/b/file");
    fs::set_permissions(site.at("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(site.reported(), "a a/");
    fs::set_permissions(&site.top, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(site.reported(), ". ./");
    drop(open);
    assert_eq!(site.reported(), "a/b/file");
    fs::rename(site.at("a/b/file"), site.at("a/other")).unwrap();
    assert_eq!(site.reported(), "a/b/file a/other");
    fs::read(site.at("a/other")).unwrap();
    assert_eq!(site.reported(), "");
    fs::remove_file(site.at("a/other")).unwrap();
    fs::remove_dir(site.at("a/b/c")).unwrap();
    assert_eq!(site.reported(), "a/b/c a/other");
    // A name of any bytes.
    let odd = std::os::unix::ffi::OsStrExt::from_bytes(&b"\xff (deleted)"[..]);
    let odd = site.top.join::<&std::ffi::OsStr>(odd);
    fs::create_dir(&odd).unwrap();
    site.reported();
    fs::write(odd.join("x"), "").unwrap();
    assert_eq!(site.reported(), "?", "whether it is deleted is not known");
}

#[test]
fn a_path_is_the_one_of_when_it_is_taken() {
    let Some(mut site) = site("a_path_is_the_one_of_when_it_is_taken") else { return };
    fs::create_dir_all(site.at("a/b/c")).unwrap();
    fs::create_dir_all(site.at("other/sub")).unwrap();
    site.reported();
    fs::write(site.at("a/b/c/file"), "1").unwrap();
    fs::rename(site.at("a/b"), site.at("z")).unwrap();
    assert_eq!(site.reported(), "a/b z z/c/file z/ z/c/ ~");
    // Written, and gone with its folder, which is reported, too.
    fs::write(site.at("a/file"), "1").unwrap();
    fs::remove_dir_all(site.at("a")).unwrap();
    assert_eq!(site.reported(), "a");
    // Two that exchange their names have all below them somewhere else.
    let exchange = rustix::fs::RenameFlags::EXCHANGE;
    let at = rustix::fs::CWD;
    rustix::fs::renameat_with(at, site.at("z"), at, site.at("other"), exchange).unwrap();
    assert_eq!(site.reported(), "other z other/ other/c/ z/ z/sub/ ~");
}

#[test]
fn a_file_of_several_names_is_reported_as_one_of_these() {
    let Some(mut site) = site("a_file_of_several_names") else { return };
    fs::create_dir(site.at("a")).unwrap();
    fs::create_dir(site.at("b")).unwrap();
    fs::write(site.at("a/x"), "1").unwrap();
    site.reported();
    fs::hard_link(site.at("a/x"), site.at("b/y")).unwrap();
    assert_eq!(site.reported(), "b/y #");
    fs::write(site.at("a/x"), "2").unwrap();
    assert_eq!(site.reported(), "a/x #");
    // By the name that it loses, before and after it does.
    let mut open = fs::OpenOptions::new().write(true).open(site.at("a/x")).unwrap();
    open.write_all(b"3").unwrap();
    fs::remove_file(site.at("a/x")).unwrap();
    let is_reported = |reported: &str| reported.split(' ').any(|word| ["b/y", "#"].contains(&word));
    let reported = site.reported();
    assert!(is_reported(&reported), "{reported}");
    open.write_all(b"4").unwrap();
    let reported = site.reported();
    assert!(is_reported(&reported), "{reported}");
    // What has no name any more has no path.
    fs::remove_file(site.at("b/y")).unwrap();
    site.reported();
    open.write_all(b"5").unwrap();
    drop(open);
    let reported = site.reported();
    assert!(!reported.contains('?'), "{reported}");
}

/// The names below a folder, each with its inode number, mode, hard links (0 for
/// a folder) and content.
type Seen = BTreeMap<Vec<u8>, (u64, u32, u64, Vec<u8>)>;

fn snapshot(top: &Path) -> Seen {
    let mut seen = Seen::new();
    let mut folders = vec![Vec::new()];
    while let Some(folder) = folders.pop() {
        let path = |relative: &[u8]| {
            top.join::<&std::ffi::OsStr>(std::os::unix::ffi::OsStrExt::from_bytes(relative))
        };
        for name in fs::read_dir(path(&folder)).unwrap() {
            let name = name.unwrap().file_name();
            let above = if folder.is_empty() { &[][..] } else { b"/" };
            let name = [&folder, above, name.as_encoded_bytes()].concat();
            let stat = fs::symlink_metadata(path(&name)).unwrap();
            let content = if stat.is_dir() {
                folders.push(name.clone());
                Vec::new()
            } else {
                fs::read(path(&name)).unwrap()
            };
            let links = if stat.is_dir() { 0 } else { stat.nlink() };
            seen.insert(name, (stat.ino(), stat.mode(), links, content));
        }
    }
    seen
}

fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(parent(path)), |path| Some(parent(path)))
        .take_while(|path| !path.is_empty())
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &path[..at])
}

/// The differences that were not reported.
fn unreported(before: &Seen, after: &Seen, reported: &Paths) -> Vec<String> {
    let covers = |path: &[u8]| {
        let of = |seen: &Seen| seen.get(path).is_some_and(|one| reported.inodes.contains(&one.0));
        reported.names.contains(path)
            || reported.directories.contains(parent(path))
            || (of(before) || of(after))
            // A directory that is new is looked at with all below it.
            || ancestors(path).any(|above| {
                reported.names.contains(above)
                    && before.get(above).map(|one| one.0) != after.get(above).map(|one| one.0)
            })
    };
    // What lay in a folder that is none any more went with it.
    let is_folder = |(_, mode, ..): &(u64, u32, u64, Vec<u8>)| mode & 0o170_000 == 0o040_000;
    let is_there = |path: &[u8]| path.is_empty() || after.get(path).is_some_and(is_folder);
    let changed = after.iter().filter(|(path, what)| before.get(*path) != Some(what));
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    let removed = removed.filter(|path| is_there(parent(path)));
    let all = changed.map(|(path, _)| path).chain(removed);
    all.filter(|path| !covers(path)).map(|path| String::from_utf8_lossy(path).into()).collect()
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) % end
    }

    /// Few names, so that they meet.
    fn path(&mut self, top: &Path) -> PathBuf {
        let depth = 1 + self.below(4);
        (0..depth).fold(top.to_owned(), |path, _| path.join(format!("n{}", self.below(4))))
    }
}

/// Does one thing that a program might do. Most fail, which the test ignores.
fn act(top: &Path, dice: &mut Dice, links: bool, open: &mut Option<fs::File>) {
    let (path, other) = (dice.path(top), dice.path(top));
    let number = dice.below(1 << 30).to_string();
    let _ = match dice.below(if links { 11 } else { 10 }) {
        0 | 1 => fs::create_dir_all(&path),
        2 | 3 => fs::write(&path, number),
        4 | 5 => fs::rename(&path, &other),
        6 => fs::remove_file(&path),
        7 if dice.below(8) == 0 => fs::remove_dir_all(&path),
        7 => fs::remove_dir(&path),
        8 => {
            if let Some(mut file) = open.take() {
                let _ = file.write_all(number.as_bytes());
            }
            *open = fs::OpenOptions::new().append(true).open(&path).ok();
            Ok(())
        }
        9 => fs::set_permissions(
            &path,
            fs::Permissions::from_mode(if dice.below(2) == 0 { 0o700 } else { 0o755 }),
        ),
        _ => fs::hard_link(&path, &other),
    };
}

/// More than is read at once: what waits is counted in events, whose length differs.
#[test]
fn all_that_waits_is_taken() {
    let Some(mut site) = site("all_that_waits_is_taken") else { return };
    let names: BTreeSet<_> = (0..3000).map(|number| format!("folder-{number}")).collect();
    names.iter().for_each(|name| fs::create_dir(site.at(name)).unwrap());
    // The name that another change of it has reported would hide this one.
    while !site.reported().is_empty() {}
    names.iter().for_each(|name| fs::write(site.at(name).join("file"), "x").unwrap());
    let names: BTreeSet<_> = names.iter().map(|name| format!("{name}/file")).collect();
    let reported = site.reported();
    let reported: BTreeSet<_> = reported.split(' ').map(str::to_owned).collect();
    assert_eq!(reported.len(), names.len());
    assert_eq!(reported, names);
}

#[test]
fn every_difference_is_reported() {
    let Some(mut site) = site("every_difference_is_reported") else { return };
    let seed = u64::from(std::process::id()) << 20;
    let (mut known, mut unknown, mut differences) = (0, 0, 0);
    let mut before = snapshot(&site.top);
    for round in 0..300_u64 {
        let is_over = AtomicBool::new(false);
        let mut reported = Some(Paths::default());
        let mut add = |watch: &mut Watch| match (watch.take(), &mut reported) {
            (Changed::Known(more), Some(reported)) => {
                reported.names.extend(more.names);
                reported.directories.extend(more.directories);
                reported.inodes.extend(more.inodes);
            }
            _ => reported = None,
        };
        std::thread::scope(|scope| {
            let workers = [0, 1, 2].map(|worker| {
                let top = &site.top;
                scope.spawn(move || {
                    let (mut dice, mut open) = (Dice(seed + round * 3 + worker), None);
                    for _ in 0..40 {
                        act(top, &mut dice, round % 4 == 0, &mut open);
                    }
                })
            });
            let taker = scope.spawn(|| {
                // Taken while they are at it, too.
                while round % 2 == 0 && !is_over.load(Ordering::Relaxed) {
                    add(&mut site.watch);
                }
            });
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            is_over.store(true, Ordering::Relaxed);
            taker.join().unwrap();
        });
        add(&mut site.watch);
        let after = snapshot(&site.top);
        differences += unreported(&before, &after, &Paths::default()).len();
        match reported {
            None => unknown += 1,
            Some(reported) => {
                known += 1;
                let unreported = unreported(&before, &after, &reported);
                assert!(
                    unreported.is_empty(),
                    "seed {seed}, round {round}: {unreported:?} of {reported:?}"
                );
            }
        }
        before = after;
    }
    assert!(differences > 1000, "{differences} differences show little");
    assert!(known > 100, "known in {known} of {} rounds", known + unknown);
}
