//! A list where it lies: one file, or the manifests of a bag.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fsure_os::path as os_path;
use fsure_os::unnamed_file::UnnamedContent;
use fsure_os::{input, user_file};

use super::absolute_paths::AbsolutePaths;
use super::bagit_bag::{self, Bag};
use super::detect::recognise;
use super::entry::{EntrySink, ManifestItem};
use super::formats::ManifestFormat;
use super::lines::Lines;
use super::utf16::Utf16;
use super::{bagit_manifest, chkbit, hashdeep, json, mhl, mtree, sfv, sums};
use fsure_core::{Algorithm, Error, IoContext as _, Monitor, Result, copy_stream, shell_quoted};

/// Number of bytes of a list that are read to recognise its form.
const HEAD: usize = 1 << 16;

/// The first bytes of every SQLite file, so of every catalog.
const DATABASE_HEAD: &[u8] = b"SQLite format 3\0";

/// Name of a list that comes on standard input, in messages.
const STANDARD_INPUT_LABEL: &str = "standard input";

/// A list to be read.
#[derive(Clone, Debug)]
pub struct ManifestSource {
    /// The form it has.
    pub format: ManifestFormat,
    /// True if the form was recognised, and not named by the user.
    pub is_recognised: bool,
    /// The folder its names are relative to, unless the user names another one.
    pub folder: PathBuf,
    /// The folder below which its absolute paths are taken for names; `folder` unless
    /// [`ManifestSource::of_files_in`] sets another one.
    files_in: PathBuf,
    /// Its files.
    pub files: Vec<PathBuf>,
    /// Files and folders that belong to it without being in it.
    pub belongings: Vec<PathBuf>,
    /// True if the list covers files that are not below `data/`: always, except for a bag
    /// without tag manifests.
    pub covers_all: bool,
    /// Properties of its manifests taken together, if it is a bag.
    pub bag: Option<Bag>,
    /// A copy of the list, if it came as a stream.
    copy: Option<UnnamedContent>,
}

impl ManifestSource {
    /// Finds a list: a file, a folder that is a bag, or a stream, of which `-` is
    /// standard input. `format` is what the user says it is; otherwise it is recognised.
    /// A stream is read to its end here, as long as the monitor does not ask to stop.
    pub fn open(
        path: &Path,
        format: Option<ManifestFormat>,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        if input::is_stream(path) {
            return of_stream(path, format, monitor);
        }
        let path = &os_path::resolve(path).context("find", path)?;
        match (os_path::is_folder(path), format) {
            (true, Some(ManifestFormat::Cshatag)) => return Ok(attributes(path)),
            (true, _) => return of_bag(path),
            (false, Some(ManifestFormat::Cshatag)) => return Err(no_folder(path)),
            (false, _) => {}
        }
        let name = path.file_name().map(|name| os_path::bytes(Path::new(name)).to_vec());
        let name = name.unwrap_or_default();
        let is_recognised = format.is_none();
        let format = match format {
            Some(format) => format,
            None => {
                let head = head(user_file::open(path).context("open", path)?, path)?;
                refuse_output(path, &head)?;
                recognise(&name, &head)
            }
        };
        let parent = path.parent().unwrap_or(path);
        // A manifest of a history speaks of the folder that the history is in.
        let is_in_history = format == ManifestFormat::AscMhl && parent.ends_with("ascmhl");
        let folder = if is_in_history { parent.parent().unwrap_or(parent) } else { parent };
        Ok(Self {
            format,
            is_recognised,
            folder: folder.to_owned(),
            files_in: folder.to_owned(),
            files: vec![path.clone()],
            belongings: if is_in_history { vec![parent.to_owned()] } else { Vec::new() },
            covers_all: true,
            bag: None,
            copy: None,
        })
    }

    /// The path that messages call it by.
    pub fn label(&self) -> &Path {
        self.files.first().filter(|_| self.bag.is_none()).unwrap_or(&self.folder)
    }

    /// Returns true if it came as a stream without one byte.
    pub fn is_empty(&self) -> bool {
        let mut byte = [0];
        self.copy.clone().is_some_and(|mut copy| copy.read(&mut byte).is_ok_and(|read| read == 0))
    }

    /// The word that a command line names it by.
    pub fn argument(&self) -> String {
        match (&self.copy, self.label() == Path::new(STANDARD_INPUT_LABEL)) {
            (Some(_), true) => input::STANDARD_INPUT.to_owned(),
            _ => shell_quoted(self.label()),
        }
    }

    /// The same list, as one of the files in a folder: its absolute paths are names below it.
    pub fn of_files_in(&self, folder: PathBuf) -> Self {
        Self { files_in: folder, ..self.clone() }
    }

    /// The folder below which its absolute paths are taken for names.
    pub fn files_in(&self) -> &Path {
        &self.files_in
    }

    /// Reads it from end to end. Each item comes with the file it is in; an entry is absolute only
    /// if it is not below [`ManifestSource::files_in`].
    pub fn read(&self, each: &mut dyn FnMut(&Path, ManifestItem) -> Result<()>) -> Result<()> {
        if self.bag.is_some() {
            bagit_bag::check(&self.folder, declaration(&self.folder).as_deref(), each)?;
        }
        let mut paths = AbsolutePaths::below(&self.files_in);
        for file in &self.files {
            let input: Box<dyn Read> = match &self.copy {
                Some(copy) => Box::new(copy.clone()),
                None if self.bag.is_some() => {
                    Box::new(user_file::open_regular(file).context("open", file)?)
                }
                None => Box::new(user_file::open(file).context("open", file)?),
            };
            let mut input = BufReader::with_capacity(HEAD, input);
            self.read_file(file, &mut input, &mut |item| each(file, paths.relative(item)))?;
        }
        Ok(())
    }

    fn read_file(
        &self,
        file: &Path,
        input: &mut dyn BufRead,
        sink: &mut EntrySink<'_>,
    ) -> Result<()> {
        if Utf16::is(input.fill_buf().context("read", file)?) {
            return self.read_file(file, &mut Utf16::new(input).context("read", file)?, sink);
        }
        if self.format != ManifestFormat::Bagit {
            return read(self.format, file, input, sink);
        }
        let name = file.file_name().map(|name| os_path::bytes(Path::new(name)).to_vec());
        let name = name.unwrap_or_default();
        let declaration = declaration(file.parent().unwrap_or(file));
        let manifest = bagit_manifest::Manifest {
            algorithm: bagit_manifest::algorithm_of(&name).flatten(),
            is_encoded: declaration.is_some_and(|text| bagit_manifest::is_encoded(&text)),
            is_of_tags: name.starts_with(b"tag"),
        };
        bagit_manifest::read(&mut Lines::new(input, file, b'\n'), manifest, sink)
    }
}

/// Reads a list of one file; a BagIt manifest is taken for one of SHA-512 and
/// version 1.0. `file` is what errors name.
pub fn read(
    format: ManifestFormat,
    file: &Path,
    input: &mut dyn BufRead,
    sink: &mut EntrySink<'_>,
) -> Result<()> {
    let head = input.fill_buf().context("read", file)?;
    if Utf16::is(head) {
        return read(format, file, &mut Utf16::new(input).context("read", file)?, sink);
    }
    let is_sums = matches!(
        format,
        ManifestFormat::Sha256sums
            | ManifestFormat::Sha512sums
            | ManifestFormat::B3sum
            | ManifestFormat::Rclone
    );
    let end = if is_sums && head.contains(&0) { 0 } else { b'\n' };
    let of_64 = if format == ManifestFormat::B3sum { Algorithm::Blake3 } else { Algorithm::Sha256 };
    match format {
        ManifestFormat::AscMhl => return mhl::read(input, file, sink),
        ManifestFormat::Chkbit => return chkbit::read(input, sink),
        ManifestFormat::Cshatag => {
            return sink(ManifestItem::malformed(1, "the attributes of files are not a list"));
        }
        _ => {}
    }
    let lines = &mut Lines::new(input, file, end);
    match format {
        ManifestFormat::Hashdeep => hashdeep::read(lines, sink),
        ManifestFormat::Mtree => mtree::read(lines, sink),
        ManifestFormat::Json => json::read(lines, sink),
        ManifestFormat::Sfv => sfv::read(lines, sink),
        ManifestFormat::Bagit => {
            let algorithm = Some(Algorithm::Sha512);
            let manifest =
                bagit_manifest::Manifest { algorithm, is_encoded: true, is_of_tags: false };
            bagit_manifest::read(lines, manifest, sink)
        }
        _ => {
            let is_escaped = format != ManifestFormat::Rclone;
            sums::read(lines, sums::SumsDialect { of_64, is_escaped }, sink)
        }
    }
}

/// The first bytes of a list, as UTF-8 if they are UTF-16. `file` is what errors name.
fn head(input: impl Read, file: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(HEAD as u64).read_to_end(&mut head).context("read", file)?;
    if !Utf16::is(&head) {
        return Ok(head);
    }
    let (mut input, mut text) = (&head[..], Vec::new());
    let turned = Utf16::new(&mut input).and_then(|mut input| input.read_to_end(&mut text));
    turned.context("read", file).map(|_| text)
}

/// Reads the declaration of a bag; `None` if it cannot be read.
fn declaration(folder: &Path) -> Option<Vec<u8>> {
    let file = folder.join(bagit_bag::DECLARATION);
    head(user_file::open_regular(&file).ok()?, &file).ok()
}

/// A list that can be read only once, copied. Its names are relative to the working
/// folder, as there is no other that it could lie in.
fn of_stream(
    path: &Path,
    format: Option<ManifestFormat>,
    monitor: &dyn Monitor,
) -> Result<ManifestSource> {
    if format == Some(ManifestFormat::Cshatag) {
        return Err(no_folder(path));
    }
    let copy = copy_stream(path, monitor)?;
    let is_recognised = format.is_none();
    let format = match format {
        Some(format) => format,
        None => recognise(b"", &head(copy.clone(), path)?),
    };
    let is_standard = path == Path::new(input::STANDARD_INPUT);
    let label = if is_standard { Path::new(STANDARD_INPUT_LABEL) } else { path };
    let here = Path::new(".");
    let folder = os_path::resolve(here).context("find", here)?;
    Ok(ManifestSource {
        format,
        is_recognised,
        files_in: folder.clone(),
        folder,
        files: vec![label.to_owned()],
        belongings: Vec::new(),
        covers_all: true,
        bag: None,
        copy: Some(copy),
    })
}

fn no_folder(path: &Path) -> Error {
    Error::Usage {
        message: format!("{} is not a folder", path.display()),
        hint: Some("cshatag keeps no list: name the folder of the files".to_owned()),
    }
}

/// A folder whose files speak for themselves.
fn attributes(folder: &Path) -> ManifestSource {
    ManifestSource {
        format: ManifestFormat::Cshatag,
        is_recognised: false,
        folder: folder.to_owned(),
        files_in: folder.to_owned(),
        files: Vec::new(),
        belongings: Vec::new(),
        covers_all: true,
        bag: None,
        copy: None,
    }
}

/// Returns true if a file is an SQLite database, as every catalog is.
pub fn is_database(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let file = user_file::open(path).context("open", path)?;
    file.take(DATABASE_HEAD.len() as u64).read_to_end(&mut head).context("read", path)?;
    Ok(head == DATABASE_HEAD)
}

/// Refuses a record of fsure, and what a command of fsure has printed with `--json` or saved:
/// neither is a list.
fn refuse_output(path: &Path, head: &[u8]) -> Result<()> {
    if head.starts_with(DATABASE_HEAD) {
        return Err(Error::Usage {
            message: format!(
                "{} is a database, such as the record that fsure keeps, and not a list",
                path.display()
            ),
            hint: Some("'--catalog FILE' names a record that is kept elsewhere".to_owned()),
        });
    }
    let begins: [&[u8]; 2] = [b"{\"type\":\"start\"", b"{\"type\":\"result\""];
    if !begins.iter().any(|begin| head.starts_with(begin)) {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("{} is the result of a command of fsure, and not a list", path.display()),
        hint: Some(
            "'fsure report FILE... -o page.html' shows results, and several side by side"
                .to_owned(),
        ),
    })
}

/// The manifests of a bag.
fn of_bag(folder: &Path) -> Result<ManifestSource> {
    let names = user_file::names(folder).context("list", folder)?;
    let is_manifest = |name: &&Vec<u8>| bagit_manifest::algorithm_of(name).is_some();
    let manifests: Vec<_> = names.iter().filter(is_manifest).collect();
    let place = |name: &Vec<u8>| folder.join(os_path::from_bytes(name));
    if !manifests.iter().any(|name| name.starts_with(b"manifest-")) {
        return Err(Error::Usage {
            message: format!("{} is a folder, and not a list of checksums", folder.display()),
            hint: Some(
                "name the file that is the list, or a BagIt folder, which has one in it; '--format \
                 cshatag' takes the attributes of the files for a list"
                    .to_owned(),
            ),
        });
    }
    let (tags, _): (Vec<&Vec<u8>>, Vec<_>) =
        manifests.iter().copied().partition(|name| name.starts_with(b"tag"));
    Ok(ManifestSource {
        format: ManifestFormat::Bagit,
        is_recognised: true,
        folder: folder.to_owned(),
        files_in: folder.to_owned(),
        files: manifests.iter().map(|name| place(name)).collect(),
        // Nothing lists the tag manifests themselves.
        belongings: tags.iter().map(|name| place(name)).collect(),
        covers_all: !tags.is_empty(),
        bag: Some(Bag::new(&declaration(folder).unwrap_or_default(), &manifests)),
        copy: None,
    })
}
