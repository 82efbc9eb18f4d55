//! Lists of paths by verdict, for the next program in a pipe: exact bytes, and nothing else
//! than paths.

use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fsure_core::{
    Error, IoContext as _, Monitor, Result, may_replace, open_output, unless_reader_left,
};
use fsure_integrity::model::Verdict;
use fsure_os::output::{Destination, Output};
use fsure_os::user_file;

/// One list that the user asks for: `VERDICT[,VERDICT...]=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerdictList {
    verdicts: Vec<Verdict>,
    file: PathBuf,
}

impl VerdictList {
    /// Returns true if paths of this verdict are wanted.
    pub(crate) fn wants(&self, verdict: Verdict) -> bool {
        self.verdicts.contains(&verdict)
    }

    /// Returns true if the list goes to standard output.
    pub(crate) fn is_on_standard_output(&self) -> bool {
        Destination::is_standard_output(&self.file)
    }
}

impl FromStr for VerdictList {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = "VERDICT=FILE, such as rotten,altered=damaged.txt, or VERDICT=-";
        let (names, file) = text.split_once('=').ok_or(form)?;
        if file.is_empty() {
            return Err(form.to_owned());
        }
        let verdict = |name: &str| {
            Verdict::from_name(name).ok_or_else(|| {
                let known: Vec<_> = Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
                format!("'{name}' is not a verdict; there are {}", known.join(", "))
            })
        };
        let verdicts = names.split(',').map(verdict).collect::<std::result::Result<_, _>>()?;
        Ok(Self { verdicts, file: file.into() })
    }
}

/// The lists of a run.
#[derive(Default)]
pub(crate) struct PathLists {
    lists: Vec<PathList>,
    ends_with_nul: bool,
    /// Paths that hold the character that ends a path.
    ambiguous: u64,
}

struct PathList {
    wanted: VerdictList,
    writer: ListWriter,
    failure: Option<io::Error>,
}

enum ListWriter {
    File(BufWriter<Output>),
    /// Standard output, once the screen has left it to the list.
    StandardOutput(Option<BufWriter<Box<dyn Write + Send>>>),
}

impl PathLists {
    /// Begins the files of the lists, and refuses those that cannot be told apart: in one file,
    /// or on standard output among lines of JSON. No file is replaced before its list is whole.
    pub(crate) fn open(
        wanted: &[VerdictList],
        (ends_with_nul, is_json): (bool, bool),
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        if is_json && wanted.iter().any(VerdictList::is_on_standard_output) {
            return Err(Error::Usage {
                message: "'--json' and '--paths VERDICT=-' cannot share standard output".to_owned(),
                hint: Some("write the list to a file, or the lines to '--json-fd 3'".to_owned()),
            });
        }
        for (number, list) in wanted.iter().enumerate() {
            if wanted[..number].iter().any(|other| other.file == list.file) {
                return Err(Error::Usage {
                    message: format!("two lists cannot share {}", list.file.display()),
                    hint: Some("give one '--paths VERDICT,VERDICT=FILE'".to_owned()),
                });
            }
        }
        for list in wanted.iter().filter(|list| !list.is_on_standard_output()) {
            may_replace(&list.file, "a list of paths", &mut |file| is_path_list(file))?;
        }
        let open = |wanted: &VerdictList| {
            let writer = match wanted.is_on_standard_output() {
                true => ListWriter::StandardOutput(None),
                false => ListWriter::File(BufWriter::new(open_output(&wanted.file, monitor)?)),
            };
            Ok(PathList { wanted: wanted.clone(), writer, failure: None })
        };
        let lists = wanted.iter().map(open).collect::<Result<_>>()?;
        Ok(Self { lists, ends_with_nul, ambiguous: 0 })
    }

    /// Returns true if a list goes to standard output.
    pub(crate) fn wants_standard_output(&self) -> bool {
        self.lists.iter().any(|list| matches!(list.writer, ListWriter::StandardOutput(_)))
    }

    /// Hands over standard output.
    pub(crate) fn give_standard_output(&mut self, output: BufWriter<Box<dyn Write + Send>>) {
        let mut output = Some(output);
        for list in &mut self.lists {
            if let ListWriter::StandardOutput(writer) = &mut list.writer {
                *writer = output.take();
            }
        }
    }

    /// Adds a path to the lists that want its verdict.
    pub(crate) fn add(&mut self, verdict: Verdict, path: impl FnOnce() -> Vec<u8>) {
        if !self.lists.iter().any(|list| list.wanted.wants(verdict)) {
            return;
        }
        let (mut path, end) = (path(), if self.ends_with_nul { 0 } else { b'\n' });
        self.ambiguous += u64::from(path.contains(&end));
        path.push(end);
        for list in self.lists.iter_mut().filter(|list| list.wanted.wants(verdict)) {
            if list.failure.is_none() {
                list.failure = list.writer.write(&path).err();
            }
        }
    }

    /// Puts each list in the place of its file.
    pub(crate) fn end(self, monitor: &dyn Monitor) -> Result<()> {
        if self.ambiguous > 0 {
            let paths = match self.ambiguous {
                1 => "1 listed path contains a line end and looks".to_owned(),
                many => format!("{many} listed paths contain a line end and look"),
            };
            monitor.warn(&format!(
                "{paths} like several; '--print0' ends each path with a NUL character"
            ));
        }
        let end = |list: PathList| {
            let file = if list.wanted.is_on_standard_output() {
                Path::new("standard output").to_owned()
            } else {
                list.wanted.file
            };
            let ended = list.failure.map_or_else(|| list.writer.end(), Err);
            unless_reader_left(ended.context("write", &file), monitor)
        };
        self.lists.into_iter().map(end).fold(Ok(()), Result::and)
    }
}

/// Bytes of a file by which it is known for a list of paths.
const HEAD_BYTES: u64 = 1 << 16;

/// Returns true if a file is a list of paths, as an earlier run has written it: lines, or parts
/// that end with NUL, of which one names what exists. Of a list of missing files none may: then
/// each has to begin with a folder that exists, or to look like the name of a file.
fn is_path_list(file: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let open = user_file::open(file).context("read", file)?;
    open.take(HEAD_BYTES).read_to_end(&mut head).context("read", file)?;
    let end = if head.contains(&0) { 0 } else { b'\n' };
    let Some(last) = head.iter().rposition(|byte| *byte == end) else { return Ok(false) };
    let is_whole = (head.len() as u64) < HEAD_BYTES;
    let paths: Vec<_> = head[..last].split(|byte| *byte == end).collect();
    let is_plain = |path: &&[u8]| {
        !path.is_empty() && !path.iter().any(|byte| byte.is_ascii_control() && *byte != b'\n')
    };
    let exists = |path: &&[u8]| fsure_os::path::exists(&fsure_os::path::from_bytes(path));
    let is_in_folder = |path: &&[u8]| {
        let path = fsure_os::path::from_bytes(path).into_owned();
        let mut folders = path.ancestors().skip(1).filter(|folder| folder.parent().is_some());
        folders.any(fsure_os::path::is_folder)
    };
    Ok((!is_whole || last + 1 == head.len())
        && paths.iter().all(is_plain)
        && (paths.iter().any(exists)
            || paths.iter().all(|path| is_in_folder(path) || has_extension(path))))
}

/// Returns true if a path ends with up to five letters and digits behind a dot, of which the first
/// is a letter: `a.raw`, but neither a number nor a sentence.
fn has_extension(path: &&[u8]) -> bool {
    let end = path.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    end.len() < path.len()
        && end.len() <= 5
        && end.first().is_some_and(u8::is_ascii_alphabetic)
        && end.iter().all(u8::is_ascii_alphanumeric)
}

impl ListWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(writer) => writer.write_all(bytes),
            Self::StandardOutput(writer) => {
                writer.as_mut().map_or(Ok(()), |writer| writer.write_all(bytes))
            }
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Self::File(writer) => writer.into_inner()?.finish(),
            Self::StandardOutput(writer) => writer.map_or(Ok(()), |mut writer| writer.flush()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_of_verdicts_that_there_are() {
        let list: VerdictList = "rotten,altered=a=b".parse().unwrap();
        assert_eq!(list.file, Path::new("a=b"));
        assert!(list.wants(Verdict::Altered) && !list.wants(Verdict::Ok));
        for text in ["rotten", "rotten=", "bad=x", "=x", "rotten,=x"] {
            assert!(text.parse::<VerdictList>().is_err(), "{text}");
        }
    }
}
