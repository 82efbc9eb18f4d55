//! Folders in memory, and what can be laid over one: what each costs. All of them lie
//! on RAM disks, so that what is measured is the way and not the storage. They are
//! mounted where no other process sees them (`fsure_os::private_mounts`).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fsure_os::durable_write::{Method, Writer};
use fsure_os::passthrough::{Passthrough, Server};
use fsure_os::private_mounts::{Mount, MountKind, Namespace};
use fsure_os::zram::Zram;
use fsure_os::{machine, path as os_path, pv, user_file};

use super::memory_rungs::PV_BLOCK;
use super::pv_rungs::{self, PV};
use super::rung::{
    MEMORY, MIB_PER_S, RunContext, RunResult, Rung, RungRun, RungUnavailable, Spec, Stopwatch,
};
use super::workspace::SpeedWorkspace;
use crate::guest_memory::touch_memory;
use fsure_core::units;

/// Files of the stream's size that are in memory at the same time, on the two
/// RAM disks that keep one and on the one that is written, with as much free
/// memory again; a part of what is free.
const MEMORY_SHARE: u64 = 12;
/// Bytes that a file system needs beside the content of two files.
const SPARE: u64 = 64 << 20;

/// Everything of this file, in the order of the ladder. The folder is where the
/// mount points are; `program` is asked to serve FUSE.
pub(super) fn rungs(
    site: &Arc<SpeedWorkspace>,
    size: u64,
    program: Option<PathBuf>,
    is_pv: bool,
) -> Vec<Box<dyn Rung>> {
    let free = machine::available_memory().unwrap_or(u64::MAX);
    let size = size.min(free / MEMORY_SHARE);
    let mut rungs: Vec<Box<dyn Rung>> = Vec::new();
    let stage = |kind| {
        let program = program.clone();
        let site = Arc::clone(site);
        Arc::new(Stage { up: Mutex::default(), kind, size, program, is_pv, site })
    };
    for huge in [false, true] {
        let stage = stage(MountedKind::Ram { huge });
        for what in [Act::FirstWrite, Act::Rewrite, Act::Read] {
            rungs.push(Box::new(MountedRung { stage: Arc::clone(&stage), what }));
        }
        push_pv(&mut rungs, stage);
    }
    let servers = [Server::Plain, Server::Kernel, Server::Bindfs].map(MountedKind::Fuse);
    for kind in
        [MountedKind::Bind, MountedKind::Overlay, MountedKind::Zram].into_iter().chain(servers)
    {
        let stage = stage(kind);
        rungs.push(Box::new(MountedRung { stage: Arc::clone(&stage), what: Act::FirstWrite }));
        push_pv(&mut rungs, stage);
    }
    rungs
}

fn push_pv(rungs: &mut Vec<Box<dyn Rung>>, stage: Arc<Stage>) {
    use MountedKind::{Bind, Fuse, Ram};
    let is_the_founders = match stage.kind {
        Ram { huge } => !huge,
        Bind | Fuse(Server::Plain | Server::Bindfs) => true,
        _ => false,
    };
    if stage.is_pv && is_the_founders {
        rungs.push(Box::new(MountedRung { stage, what: Act::Pv }));
    }
}

/// The file that is written over and read.
const KEPT: &str = "kept";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MountedKind {
    Ram { huge: bool },
    Bind,
    Overlay,
    Zram,
    Fuse(Server),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    FirstWrite,
    Rewrite,
    Read,
    /// The founders' `pv`, in a process of its own.
    Pv,
}

impl MountedKind {
    fn name(self) -> &'static str {
        match self {
            Self::Ram { huge: false } => "ram disk",
            Self::Ram { huge: true } => "ram disk huge",
            Self::Bind => "bind",
            Self::Overlay => "overlay",
            Self::Zram => "zram",
            Self::Fuse(Server::Plain) => "fuse",
            Self::Fuse(Server::Kernel) => "fuse kernel passthrough",
            Self::Fuse(Server::Bindfs) => "bindfs",
        }
    }
}

/// The mounts of one kind, made by the rung that comes first; all rungs of a kind
/// share them.
struct Stage {
    up: Mutex<Option<Up>>,
    kind: MountedKind,
    size: u64,
    program: Option<PathBuf>,
    /// True if there has to be room for the file of `pv`, too.
    is_pv: bool,
    /// Last: what is mounted lies in its folder.
    site: Arc<SpeedWorkspace>,
}

/// In the order in which it has to go.
struct Up {
    /// The file that is written over and read, once it is there.
    kept: Option<Writer>,
    top: MountBase,
    ram: Option<Mount>,
}

enum MountBase {
    Nothing,
    Mount(Mount),
    Zram(Zram),
    Fuse(Passthrough),
}

impl Up {
    fn path(&self) -> PathBuf {
        match (&self.top, &self.ram) {
            (MountBase::Mount(mount), _) => mount.path(),
            (MountBase::Zram(zram), _) => zram.path(),
            (MountBase::Fuse(fuse), _) => fuse.path(),
            (MountBase::Nothing, Some(ram)) => ram.path(),
            (MountBase::Nothing, None) => PathBuf::new(),
        }
    }
}

impl Stage {
    fn up(&self) -> MutexGuard<'_, Option<Up>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder to write in; mounts it the first time.
    fn folder(&self) -> RunResult<PathBuf> {
        let mut up = self.up();
        if let Some(up) = &*up {
            return Ok(up.path());
        }
        let made = self.mount()?;
        let path = made.path();
        *up = Some(made);
        Ok(path)
    }

    fn place(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.site.path().join(format!("{} {name}", self.kind.name()));
        os_path::make_folder(&path).map(|()| path)
    }

    fn mount(&self) -> RunResult<Up> {
        let space = Namespace::of_user()?;
        let pv = if self.is_pv { pv::BYTES } else { 0 };
        let capacity = 2 * self.size + SPARE + pv;
        if self.kind == MountedKind::Zram {
            let at = self.place("disk")?;
            // Content that cannot be compressed takes a little more than itself.
            let limits = (capacity + SPARE, capacity + capacity / 4);
            let zram = Zram::create(&self.site.scratch, &space, limits, &at)?;
            return Ok(Up { kept: None, top: MountBase::Zram(zram), ram: None });
        }
        let huge = self.kind == MountedKind::Ram { huge: true };
        let ram = space.mount(&MountKind::Ram { bytes: capacity, huge }, &self.place("ram")?)?;
        let below = |name: &str| -> std::io::Result<PathBuf> {
            let path = ram.path().join(name);
            os_path::make_folder(&path).map(|()| path)
        };
        let top = match self.kind {
            MountedKind::Ram { .. } | MountedKind::Zram => MountBase::Nothing,
            MountedKind::Bind => {
                MountBase::Mount(space.mount(&MountKind::Bind(ram.path()), &self.place("folder")?)?)
            }
            MountedKind::Overlay => {
                let (upper, work) = (below("upper")?, below("work")?);
                let what = MountKind::Overlay { lower: self.place("lower")?, upper, work };
                MountBase::Mount(space.mount(&what, &self.place("folder")?)?)
            }
            MountedKind::Fuse(server) => {
                let why = || {
                    RungUnavailable::NotHere(
                        "the path of the fsure executable, which serves FUSE, cannot be found: \
                         mount /proc ('mount -t proc proc /proc') and measure again"
                            .to_owned(),
                    )
                };
                let program = self.program.as_ref().ok_or_else(why)?;
                let paths = (&*ram.path(), &*self.place("folder")?);
                MountBase::Fuse(Passthrough::mount(&space, server, program, paths)?)
            }
        };
        Ok(Up { kept: None, top, ram: Some(ram) })
    }

    /// Writes the file that is written over and read, if it is not there yet.
    fn lay_out(&self, go: &RunContext<'_>) -> RunResult<()> {
        let path = self.folder()?.join(KEPT);
        let mut up = self.up();
        if let Some(up) = up.as_mut().filter(|up| up.kept.is_none()) {
            let writer = Writer::create(&path, Method::WriteOnly)?;
            self.write(&writer, go)?;
            up.kept = Some(writer);
        }
        Ok(())
    }

    fn write(&self, writer: &Writer, go: &RunContext<'_>) -> RunResult<()> {
        self.site.fill(writer, self.size, PV_BLOCK as u64, go)
    }
}

/// A rung on one of them.
struct MountedRung {
    stage: Arc<Stage>,
    what: Act,
}

impl MountedRung {
    fn first_write(&self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let stage = &self.stage;
        let path = stage.folder()?.join("written");
        touch_memory(stage.size)?;
        let writer = Writer::create(&path, Method::WriteOnly)?;
        let watch = Stopwatch::start(None);
        let written = stage.write(&writer, go);
        let written = written.and_then(|()| match stage.kind {
            // Before that it is in the page cache, and nothing is compressed.
            MountedKind::Zram => Ok(writer.flush_to_medium()?),
            _ => Ok(()),
        });
        let run = watch.stop(stage.size);
        drop(writer);
        os_path::remove(&path, false);
        written.map(|()| run)
    }

    fn rewrite(&self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let up = self.stage.up();
        let Some(writer) = up.as_ref().and_then(|up| up.kept.as_ref()) else {
            unreachable!("prepared before it is run")
        };
        let watch = Stopwatch::start(None);
        self.stage.write(writer, go)?;
        Ok(watch.stop(self.stage.size))
    }

    fn read(&self, go: &RunContext<'_>) -> RunResult<RungRun> {
        use std::io::Read as _;
        let mut file = user_file::open(&self.stage.folder()?.join(KEPT))?;
        let mut block = vec![0; PV_BLOCK];
        let watch = Stopwatch::start(None);
        let mut done = 0;
        loop {
            let read = file.read(&mut block)?;
            if read == 0 {
                return Ok(watch.stop(done));
            }
            std::hint::black_box(&block);
            done += read as u64;
            go.check()?;
        }
    }

    /// Returns a description of what is laid over the RAM disk.
    fn way(&self) -> String {
        match self.stage.kind {
            MountedKind::Ram { huge: false } => "a RAM disk (tmpfs, pages of 4 KiB)".to_owned(),
            MountedKind::Ram { huge: true } => {
                "a RAM disk in huge pages (tmpfs, huge=within_size)".to_owned()
            }
            MountedKind::Bind => "a RAM disk through a folder that it is bound over".to_owned(),
            MountedKind::Overlay => "an overlay whose upper folder is on a RAM disk".to_owned(),
            MountedKind::Zram => self.zram(),
            MountedKind::Fuse(server) => self.fuse(server),
        }
    }

    fn zram(&self) -> String {
        let up = self.stage.up();
        let algorithm = match up.as_ref().map(|up| &up.top) {
            Some(MountBase::Zram(zram)) => zram.algorithm(),
            _ => None,
        };
        format!(
            "ext4 on a compressed disk in memory (zram, {}), and flushed: packed within the time; \
             zeros would not even be stored",
            algorithm.as_deref().unwrap_or("unknown algorithm")
        )
    }

    fn fuse(&self, server: Server) -> String {
        let beside = "; processor time without the server's, which is another process";
        if server == Server::Bindfs {
            return format!("a RAM disk through bindfs{beside}");
        }
        let mut up = self.stage.up();
        let served = match up.as_mut().map(|up| &mut up.top) {
            Some(MountBase::Fuse(fuse)) => fuse.served(),
            _ => None,
        };
        let who = match served {
            Some(served) if served.is_by_kernel() => {
                "the kernel wrote by itself, no request came to the server".to_owned()
            }
            Some(served) if server == Server::Kernel => format!(
                "the kernel did not take it over ({} requests came to the server), so this is \
                 plain FUSE: passthrough needs Linux 6.9 and root",
                served.writes
            ),
            Some(served) => format!("{} requests came to the server", served.writes),
            None => "the server did not report its requests".to_owned(),
        };
        format!("a RAM disk through FUSE, passed on by fsure's own server: {who}{beside}")
    }
}

impl Rung for MountedRung {
    fn spec(&self) -> Spec {
        let name = self.stage.kind.name();
        let name = match (self.stage.kind, self.what) {
            (MountedKind::Ram { .. }, Act::FirstWrite) => format!("{name} first write"),
            (MountedKind::Ram { .. }, Act::Rewrite) => format!("{name} rewrite"),
            (MountedKind::Ram { .. }, Act::Read) => format!("{name} read"),
            (_, Act::Pv) => format!("{PV} {name}"),
            _ => name.to_owned(),
        };
        Spec { name, target: MEMORY.to_owned(), unit: MIB_PER_S }
    }

    fn runs(&self) -> Option<usize> {
        (self.what == Act::Pv).then_some(pv_rungs::RUNS)
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        match self.what {
            Act::FirstWrite | Act::Pv => self.stage.folder().map(|_| ()),
            Act::Rewrite | Act::Read => self.stage.lay_out(go),
        }
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        match self.what {
            Act::FirstWrite => self.first_write(go),
            Act::Rewrite => self.rewrite(go),
            Act::Read => self.read(go),
            Act::Pv => pv_rungs::once(&self.stage.folder()?.join(PV), go),
        }
    }

    fn measured(&self) -> String {
        if self.what == Act::Pv {
            return format!("{}: {}", pv_rungs::MEASURED, self.way());
        }
        let size = units::size(self.stage.size);
        let what = match (self.what, self.stage.kind) {
            (Act::FirstWrite, MountedKind::Ram { .. }) => {
                format!("a new file of {size} in memory used a moment before")
            }
            (Act::FirstWrite, _) => format!(
                "a new file of {size} in memory used a moment before, written only, not read"
            ),
            (Act::Rewrite, _) => format!("a file of {size} written over, in memory that it has"),
            (Act::Read | Act::Pv, _) => format!("a file of {size} read"),
        };
        format!("{what}, 400 KiB at a time: {}", self.way())
    }
}
