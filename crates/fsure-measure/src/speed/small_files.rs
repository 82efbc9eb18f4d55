//! Many small files, where requests to storage are no longer for bytes: names, inodes
//! and, if each has to last, flushes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fsure_os::buffer::Buffer;
use fsure_os::durable_write::{self, DurableFolder, Method, Writer};
use fsure_os::opener::Opener;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;

use super::rung::{
    FILES_PER_S, RunContext, RunResult, Rung, RungRun, RungUnavailable, Spec, Stopwatch,
};
use super::workspace::{GRAIN, SpeedWorkspace};

/// Files of a run, unless they take too long.
const FILES: u64 = 1000;
/// Replacements of a run; each is two flushes.
const REPLACEMENTS: u64 = 100;
/// The first run ends here, and the others do as many files.
const FIRST_RUN_TIME: Duration = Duration::from_millis(500);

/// Everything of this file, in the order of the ladder.
pub(super) fn rungs(site: &Arc<SpeedWorkspace>) -> Vec<Box<dyn Rung>> {
    let files = FILES.min(site.files_max);
    vec![
        Box::new(Create { site: Arc::clone(site), files, folders: Vec::new() }),
        Box::new(Replace { site: Arc::clone(site), files: REPLACEMENTS.min(files), folder: None }),
        Box::new(ReadCold {
            site: Arc::clone(site),
            files,
            opener: None,
            folder: None,
            is_direct: true,
        }),
    ]
}

/// A folder of a rung's own.
fn folder(site: &SpeedWorkspace, files: u64, name: &str) -> RunResult<DurableFolder> {
    if files == 0 {
        return Err(RungUnavailable::NotHere("too little space for small files".to_owned()));
    }
    Ok(DurableFolder::create(&site.path().join(name))?)
}

struct Create {
    site: Arc<SpeedWorkspace>,
    files: u64,
    /// Folders of the runs so far. They stay until the rung is done: ext4 does not
    /// reuse an inode that was freed in the last seconds, and scans all of those for
    /// each new file (measured: 1,400 files a second for 35,000).
    folders: Vec<DurableFolder>,
}

impl Create {
    fn create(
        &self,
        folder: &std::path::Path,
        watch: &Stopwatch<'_>,
        go: &RunContext<'_>,
    ) -> RunResult<u64> {
        for file in 0..self.files {
            let writer = Writer::create(&folder.join(file.to_string()), Method::WriteOnly)?;
            writer.write(self.site.pool.at(file * GRAIN, GRAIN), 0)?;
            go.check()?;
            if self.folders.is_empty() && watch.elapsed() >= FIRST_RUN_TIME {
                return Ok(file + 1);
            }
        }
        Ok(self.files)
    }
}

impl Rung for Create {
    fn spec(&self) -> Spec {
        self.site.spec("small files create", FILES_PER_S)
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        if self.files * (self.folders.len() as u64 + 1) > self.site.files_max {
            self.folders.truncate(1);
        }
        let name = format!("create-{}", self.folders.len());
        let folder = folder(&self.site, self.files, &name)?;
        let watch = Stopwatch::start(self.site.meter.as_ref());
        let made = self.create(folder.path(), &watch, go)?;
        let run = watch.stop(made);
        self.files = made;
        self.folders.push(folder);
        Ok(run)
    }

    fn measured(&self) -> String {
        format!(
            "{} new files of 4 KiB in one folder, none of them flushed: memory, and what the \
             file system does at once",
            self.files
        )
    }
}

struct Replace {
    site: Arc<SpeedWorkspace>,
    files: u64,
    /// There from the first run on.
    folder: Option<DurableFolder>,
}

impl Rung for Replace {
    fn spec(&self) -> Spec {
        self.site.spec("small files replace durably", FILES_PER_S)
    }

    fn prepare(&mut self, _go: &RunContext<'_>) -> RunResult<()> {
        if self.site.is_memory() {
            let why =
                format!("{} is in memory: nothing in it survives a power cut", self.site.kind);
            return Err(RungUnavailable::NotHere(why));
        }
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let is_first = self.folder.is_none();
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => folder(&self.site, self.files, "replace")?,
        };
        let (draft, name) = (folder.path().join("draft"), folder.path().join("file"));
        let watch = Stopwatch::start(self.site.meter.as_ref());
        let mut done = 0;
        while done < self.files && !(is_first && done > 0 && watch.elapsed() >= FIRST_RUN_TIME) {
            let writer = Writer::create(&draft, Method::thorough())?;
            writer.write(self.site.pool.at(done * GRAIN, GRAIN), 0)?;
            writer.flush()?;
            drop(writer);
            durable_write::rename(&draft, &name)?;
            match folder.flush() {
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
                flushed => flushed?,
            }
            done += 1;
            go.check()?;
        }
        let run = watch.stop(done);
        self.files = done;
        self.folder = Some(folder);
        Ok(run)
    }

    fn measured(&self) -> String {
        format!(
            "a file of 4 KiB replaced {} times so that each would outlast a power cut: a draft, \
             {}, its new name, and a flush of the folder",
            self.files,
            Method::thorough().name()
        )
    }
}

struct ReadCold {
    site: Arc<SpeedWorkspace>,
    files: u64,
    opener: Option<Opener>,
    /// Gone with this.
    folder: Option<DurableFolder>,
    is_direct: bool,
}

impl ReadCold {
    fn make(&mut self, folder: &std::path::Path, go: &RunContext<'_>) -> RunResult<()> {
        let began = std::time::Instant::now();
        for file in 0..self.files {
            self.site.write_past_cache(&folder.join(file.to_string()), GRAIN, go)?;
            if began.elapsed() >= 2 * FIRST_RUN_TIME {
                self.files = file + 1;
                break;
            }
        }
        Ok(())
    }

    /// One of the readers: which way the worst of its reads took.
    fn read(&self, next: &AtomicUsize, go: &RunContext<'_>) -> RunResult<ReadMode> {
        let opener = self.opener.as_ref().expect("prepared before it is run");
        let (mut buffer, mut worst) = (Buffer::new(GRAIN as usize)?, ReadMode::Direct);
        loop {
            let file = next.fetch_add(1, Ordering::Relaxed);
            if file as u64 >= self.files {
                return Ok(worst);
            }
            let (source, _) = opener.open(file.to_string().as_bytes(), false)?;
            worst = worst.max(source.read_at(&mut buffer, 0, GRAIN as usize)?.way);
            go.check()?;
        }
    }
}

impl Rung for ReadCold {
    fn spec(&self) -> Spec {
        self.site.spec("small files read cold", FILES_PER_S)
    }

    fn prepare(&mut self, go: &RunContext<'_>) -> RunResult<()> {
        if self.site.is_memory() {
            return Err(RungUnavailable::NotHere(format!(
                "{} is in memory: no read is cold",
                self.site.kind
            )));
        }
        let folder = folder(&self.site, self.files, "cold")?;
        self.make(folder.path(), go)?;
        self.opener = Some(Opener::new(Arc::new(Root::open(folder.path())?), ReadMode::Direct));
        self.folder = Some(folder);
        Ok(())
    }

    fn once(&mut self, go: &RunContext<'_>) -> RunResult<RungRun> {
        let opener = self.opener.as_ref().expect("prepared before it is run");
        for file in 0..self.files {
            opener.open(file.to_string().as_bytes(), false)?.0.evict();
        }
        let next = AtomicUsize::new(0);
        let watch = Stopwatch::start(self.site.meter.as_ref());
        let way = std::thread::scope(|scope| {
            let each = || self.read(&next, go);
            let readers: Vec<_> = (0..self.site.readers()).map(|_| scope.spawn(each)).collect();
            let ways = readers.into_iter().map(|reader| reader.join().expect("a reader"));
            ways.reduce(|one, other| Ok(one?.max(other?))).unwrap_or(Ok(ReadMode::Direct))
        })?;
        let run = watch.stop(self.files);
        self.is_direct &= way == ReadMode::Direct
            && run.device.is_none_or(|device| device.read_bytes >= self.files * GRAIN);
        Ok(run)
    }

    fn measured(&self) -> String {
        let proof = match self.is_direct {
            true => "contents from the device, past the page cache",
            false => "not all contents came from the device: direct reads are refused here",
        };
        format!(
            "{} files of 4 KiB opened and read, {} at a time; {proof}, names and inodes from memory",
            self.files,
            self.site.readers()
        )
    }
}
