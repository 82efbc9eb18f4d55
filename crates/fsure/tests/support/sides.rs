//! RAM folders without any mount: the engine over two plain folders. What is compared
//! is what users see: names, content, modes, dates, hard links.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fsure_core::RelPath;
use fsure_ram::write_back::{
    CompareDepth, Engine, Generation, NoTracker, OWN, Paths, ReportedChanges, Tracker,
};
use tempfile::TempDir;

/// Two folders and the engine between them.
pub struct Both {
    folder: TempDir,
    pub engine: Option<Engine>,
}

/// The view of a user, for each path: kind, content, mode, date in ns, number of names.
pub type View = BTreeMap<PathBuf, (char, Vec<u8>, u32, i128, u64)>;

pub fn view(root: &Path) -> View {
    let mut view = View::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        let (kind, content) = if meta.is_dir() {
            waiting.extend(
                path.read_dir()
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .filter(|path| path.file_name().unwrap() != OWN),
            );
            ('d', Vec::new())
        } else if meta.is_symlink() {
            ('l', path.read_link().unwrap().into_os_string().into_encoded_bytes())
        } else if meta.is_file() {
            ('f', std::fs::read(&path).unwrap())
        } else {
            ('s', Vec::new())
        };
        let date = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        let links = if meta.is_dir() { 0 } else { meta.nlink() };
        let name = path.strip_prefix(root).unwrap().to_owned();
        view.insert(name, (kind, content, meta.mode(), date, links));
    }
    view
}

impl Both {
    pub fn new(prepare: impl FnOnce(&Path)) -> Self {
        // In memory where that is possible: 4 flushes a generation are not tried here.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for side in ["disk", "ram"] {
            std::fs::create_dir(folder.path().join(side)).unwrap();
        }
        let mut both = Self { folder, engine: None };
        prepare(&both.disk());
        let go_on = &mut |_: &_, _| ControlFlow::Continue(());
        both.engine = Some(Engine::fill(&both.disk(), &both.ram(), go_on).unwrap());
        assert_eq!(view(&both.ram()), view(&both.disk()), "filled");
        both
    }

    pub fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    pub fn ram(&self) -> PathBuf {
        self.folder.path().join("ram")
    }

    pub fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().unwrap()
    }

    pub fn sync(&mut self) -> Generation {
        self.engine().sync(&mut NoTracker, CompareDepth::Dates, None).unwrap()
    }

    /// Brings one generation, after which both sides are the same to any program that looks.
    pub fn brings(&mut self) -> Generation {
        let done = self.sync();
        assert_eq!(view(&self.disk()), view(&self.ram()));
        assert_eq!(self.engine().verify().unwrap(), []);
        done
    }
}

pub fn write(path: PathBuf, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub fn tree(root: &Path) {
    write(root.join("a"), "one");
    write(root.join("d/b"), "two");
    write(root.join("d/e/c"), vec![7; 300_000]);
    write(root.join("empty"), "");
    std::fs::create_dir(root.join("d/nothing")).unwrap();
    symlink("d/b", root.join("link")).unwrap();
    std::fs::hard_link(root.join("d/b"), root.join("d/also-b")).unwrap();
    std::fs::set_permissions(root.join("a"), PermissionsExt::from_mode(0o4711)).unwrap();
    let sparse = std::fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(b"end", 100 << 20).unwrap();
}

/// Reports that nothing has changed, or what it is given to report.
pub struct Reports(pub Vec<ReportedChanges>);

impl Tracker for Reports {
    fn take(&mut self) -> ReportedChanges {
        self.0.pop().unwrap_or(ReportedChanges::none())
    }
}

/// Names that changed, and directories in which any may have.
pub fn paths(names: &[&str], folders: &[&str]) -> ReportedChanges {
    let of =
        |paths: &[&str]| paths.iter().map(|path| RelPath::from_bytes(path.as_bytes())).collect();
    let (names, folders) = (of(names), of(folders));
    ReportedChanges::Known(Paths { names, folders, is_exact: true, ..Paths::default() })
}
