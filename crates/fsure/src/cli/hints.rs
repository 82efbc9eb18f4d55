//! Advice for a command line that is not understood: the whole line that was probably meant,
//! with the user's own arguments. Advice is only given if it is understood itself, and never
//! leads to an option that overrides a check.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use fsure_core::{shell_quoted, similar};

use super::examples::notes;
use super::foreign_words::{FOREIGN_COMMANDS, FOREIGN_OPTIONS, OptionAdvice};
use super::help::command;

/// Beginnings of the options that override a check, or destroy: no other option leads to them.
const OVERRIDES: &[&str] =
    &["--force", "--allow", "--accept-all", "--yes", "--discard", "--no-keep"];

/// Returns true if a word is an option that overrides a check, or destroys.
fn is_override(word: &str) -> bool {
    OVERRIDES.iter().any(|option| word.starts_with(option))
}

/// Returns true if a text names such an option.
fn leads_to_override(text: &str) -> bool {
    OVERRIDES.iter().any(|option| text.contains(option))
}

/// The commands that only a build with the feature `storage` has.
pub(super) const STORAGE_COMMANDS: [&str; 9] =
    ["speed", "flush", "crash", "powercut", "defer", "hot", "ram", "uncached", "report"];

const NOT_IN_THIS_BUILD: &str = "this fsure was built with the commands for files only; the \
                                 packages and 'cargo install fsure' have all";

/// Returns those of the lines for a word whose command this build has.
fn lines_here(
    lines: &'static [(&'static str, &'static str)],
) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    lines.iter().filter(|(_, line)| {
        let name = line.split(' ').next().unwrap_or_default();
        cfg!(feature = "storage") || !STORAGE_COMMANDS.contains(&name)
    })
}

/// A line to try, as its words behind `fsure`, with what it is for.
struct Tip {
    purpose: String,
    words: Vec<OsString>,
}

/// Returns the error with advice that fits what the user has typed. `exists` tells whether a
/// path does.
pub(super) fn advise(error: Error, args: &[OsString], exists: &dyn Fn(&OsStr) -> bool) -> Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand => unknown_command(error, args, exists),
        ErrorKind::UnknownArgument => unknown_option(error, args, exists),
        ErrorKind::MissingRequiredArgument => with_examples(error, args),
        ErrorKind::InvalidValue => without_weak_digest(error),
        _ => error,
    }
}

/// Returns the error without advice that leads from a misspelt digest to a broken one.
fn without_weak_digest(mut error: Error) -> Error {
    let near = context(&error, ContextKind::SuggestedValue).unwrap_or_default();
    if matches!(near, "sha1" | "md5") {
        error.remove(ContextKind::SuggestedValue);
    }
    error
}

/// Returns the error with the examples of the command that was typed.
fn with_examples(error: Error, args: &[OsString]) -> Error {
    let words: Vec<_> = args.iter().skip(1).filter_map(|word| word.to_str()).collect();
    // A form that is lacking is most often that of sha256sum.
    let whole = words.iter().copied().chain(["--format", "sha256sums"]).map(OsString::from);
    let whole: Vec<_> = whole.collect();
    if is_understood(&whole) {
        let purpose = "for 'sha256sum -c'; 'fsure help export' lists the other forms".to_owned();
        return with_advice(error, &[sentence(Tip { purpose, words: whole })]);
    }
    let command = (1..=words.len().min(2)).rev().find_map(|end| notes(&words[..end].join(" ")));
    let sentences = command.into_iter().flat_map(|notes| notes.examples);
    let sentences: Vec<_> =
        sentences.map(|(line, purpose)| format!("{}: {line}", lower_first(purpose))).collect();
    with_advice(error, &sentences)
}

/// Returns a sentence without its capital.
fn lower_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// Returns the text of an error's context; `None` if it has another form.
fn context(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// A command line up to a word that is not a command.
#[derive(Clone)]
struct Typed<'a> {
    /// The command that was understood so far, and the words for it.
    above: Command,
    path: Vec<String>,
    /// Options before the word.
    options: Vec<&'a OsString>,
    word: &'a OsStr,
    rest: &'a [OsString],
}

impl<'a> Typed<'a> {
    /// Finds the word in a command line; `None` if the error is not about one.
    fn new(args: &'a [OsString], wrong: &str) -> Option<Self> {
        let (mut above, mut path, mut options) = (command(), vec![], vec![]);
        for (place, arg) in args.iter().enumerate().skip(1) {
            if let Some(sub) = above.find_subcommand(arg) {
                path.push(sub.get_name().to_owned());
                above = sub.clone();
            } else if arg.to_string_lossy() == wrong {
                let rest = &args[place + 1..];
                return Some(Self { above, path, options, word: arg, rest });
            } else {
                options.push(arg);
            }
        }
        None
    }

    /// Returns a line of a command with as many of the user's arguments as it understands.
    fn line(&self, words: &str, leading: Option<&OsStr>) -> Vec<OsString> {
        if words.starts_with("help") {
            return words.split(' ').map(OsString::from).collect();
        }
        let begin = || words.split(' ').map(OsString::from);
        let lead = || leading.map(OsStr::to_owned).into_iter();
        let overrides = |arg: &OsStr| is_override(&arg.to_string_lossy());
        let options = || self.options.iter().map(|option| (*option).clone());
        let is_path = |arg: &&OsString| !arg.to_string_lossy().starts_with('-');
        let rest = self.rest.iter().filter(|arg| !overrides(arg)).cloned();
        let all: Vec<_> = options().chain(begin()).chain(lead()).chain(rest).collect();
        let paths: Vec<_> =
            begin().chain(lead()).chain(self.rest.iter().filter(is_path).cloned()).collect();
        let alone: Vec<_> = begin().collect();
        let help = ["help"].into_iter().chain(words.split(' ').take_while(|w| !w.starts_with('-')));
        let help = help.map(OsString::from).collect();
        [all, paths, alone].into_iter().find(|line| is_understood(line)).unwrap_or(help)
    }

    fn tip(&self, purpose: &str, words: &str) -> Tip {
        Tip { purpose: purpose.to_owned(), words: self.line(words, None) }
    }
}

/// Returns true if a command line is understood, or prints help.
fn is_understood(words: &[OsString]) -> bool {
    let line = [OsString::from("fsure")].into_iter().chain(words.iter().cloned());
    command().try_get_matches_from(line).err().is_none_or(|error| !error.use_stderr())
}

fn unknown_command(error: Error, args: &[OsString], exists: &dyn Fn(&OsStr) -> bool) -> Error {
    let wrong = context(&error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let Some(typed) = Typed::new(args, wrong) else { return error };
    let word = typed.word.to_string_lossy().to_lowercase();
    if typed.path.is_empty() && word == "version" {
        let version = command().try_get_matches_from(["fsure", "--version"]);
        return version.err().unwrap_or(error);
    }
    let (mut sentences, tips) = match typed.path.is_empty() {
        true => top_level_advice(&typed, &word, exists),
        false => (vec![], nested_advice(&typed, &word)),
    };
    sentences.extend(tips.into_iter().map(sentence));
    with_advice(error, &sentences)
}

/// Returns sentences and lines for a word in place of one of fsure's commands.
fn top_level_advice(
    typed: &Typed<'_>,
    word: &str,
    exists: &dyn Fn(&OsStr) -> bool,
) -> (Vec<String>, Vec<Tip>) {
    let is_there = exists(typed.word);
    if cfg!(not(feature = "storage")) && STORAGE_COMMANDS.contains(&word) {
        return (vec![NOT_IN_THIS_BUILD.to_owned()], vec![]);
    }
    if let Some(known) = FOREIGN_COMMANDS.iter().find(|known| known.words.contains(&word)) {
        let sentences = known.note.map(str::to_owned).into_iter().collect();
        let tips = lines_here(known.lines)
            .map(|(purpose, line)| typed.tip(purpose, line_for(line, typed)));
        let mut tips: Vec<_> = tips.collect();
        if tips.is_empty() && !known.lines.is_empty() {
            return (vec![NOT_IN_THIS_BUILD.to_owned()], vec![]);
        }
        tips.extend(is_there.then(|| path_tips(typed)).into_iter().flatten());
        return (sentences, tips);
    }
    // Typed in capitals.
    if typed.above.find_subcommand(word).is_some() && !is_there {
        return (vec![], vec![typed.tip("did you mean", word)]);
    }
    let below = typed.above.get_subcommands().find(|sub| sub.find_subcommand(word).is_some());
    if let Some(sub) = below.filter(|_| !is_there) {
        let words = format!("{} {word}", sub.get_name());
        return (vec![], vec![typed.tip("it is a part of another command", &words)]);
    }
    let next = typed.rest.first().and_then(|next| typed.above.find_subcommand(next));
    if let Some(next) = next {
        let behind = Typed { rest: &typed.rest[1..], ..typed.clone() };
        let words = behind.line(next.get_name(), Some(typed.word));
        return (vec![], vec![Tip { purpose: "the command comes first".to_owned(), words }]);
    }
    let asks_for_help = typed.rest.first().is_some_and(|next| next == "--help");
    match nearest(&typed.above, word).filter(|_| !is_there) {
        Some(name) => (vec![], vec![typed.tip("did you mean", &name)]),
        None if asks_for_help => (vec![], vec![typed.tip("the commands there are", "help")]),
        None => (vec![], path_or_purpose_tips(typed, is_there, exists)),
    }
}

/// Returns the line of a foreign word: what is not recorded yet is named to be recorded.
fn line_for(line: &'static str, typed: &Typed<'_>) -> &'static str {
    if line == "update" && typed.rest.is_empty() { "update ." } else { line }
}

/// Returns the lines for a word that may be a path; for its arguments, if they are there and it
/// is not.
fn path_or_purpose_tips(
    typed: &Typed<'_>,
    is_there: bool,
    exists: &dyn Fn(&OsStr) -> bool,
) -> Vec<Tip> {
    match !is_there && typed.rest.iter().any(|argument| exists(argument)) {
        true => vec![
            typed.tip("to record checksums", "update"),
            typed.tip("to compare with the record", "verify"),
            typed.tip("the commands there are", "help"),
        ],
        false => path_tips(typed),
    }
}

/// Returns lines for a word that is not one of the commands below another one.
fn nested_advice(typed: &Typed<'_>, word: &str) -> Vec<Tip> {
    let above = typed.path.join(" ");
    if let Some(name) = nearest(&typed.above, word) {
        return vec![typed.tip("did you mean", &format!("{above} {name}"))];
    }
    let known = FOREIGN_COMMANDS.iter().filter(|known| known.words.contains(&word));
    let lines = known.flat_map(|known| known.lines);
    let here = lines.filter(|(_, line)| line.starts_with(&format!("{above} ")));
    let mut tips: Vec<_> = here.map(|(purpose, line)| typed.tip(purpose, line)).collect();
    if tips.is_empty() {
        tips.push(typed.tip("the commands there are", &format!("help {above}")));
    }
    tips
}

/// Returns the command whose name or alias a misspelt word probably means.
fn nearest(above: &Command, word: &str) -> Option<String> {
    let commands = || above.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names = commands().flat_map(Command::get_name_and_visible_aliases);
    let names: Vec<_> = names.chain(commands().flat_map(Command::get_all_aliases)).collect();
    let name = similar(word, names)?;
    above.find_subcommand(name).map(|sub| sub.get_name().to_owned())
}

/// Returns the lines for a path in place of a command.
fn path_tips(typed: &Typed<'_>) -> Vec<Tip> {
    let line = |purpose: &str, name| {
        let words = typed.line(name, Some(typed.word));
        Tip { purpose: purpose.to_owned(), words }
    };
    vec![
        line("if it is a folder or file, to record it", "update"),
        line("to find out whether it is as recorded", "verify"),
    ]
}

fn unknown_option(mut error: Error, args: &[OsString], exists: &dyn Fn(&OsStr) -> bool) -> Error {
    let wrong = context(&error, ContextKind::InvalidArg).unwrap_or_default().to_owned();
    let near = context(&error, ContextKind::SuggestedArg).unwrap_or_default().to_owned();
    let name = |option: &str| option.split(['=', ' ']).next().unwrap_or_default().to_owned();
    // It names the option that clap holds for similar.
    error.remove(ContextKind::Usage);
    if leads_to_override(&near) || similar(&name(&wrong), [&*name(&near)]).is_none() {
        error.remove(ContextKind::SuggestedArg);
    }
    let words = args.get(1..).unwrap_or_default();
    let known = FOREIGN_OPTIONS.iter().filter(|(names, _)| names.contains(&&*name(&wrong)));
    let mut known =
        known.filter_map(|(_, advice)| option_advice(*advice, &name(&wrong), words, exists));
    if let Some(advice) = known.next() {
        error.remove(ContextKind::SuggestedArg);
        return with_advice(error, &[advice]);
    }
    let advice = stray_path(&wrong, words).or_else(|| moved_advice(&wrong, words));
    let advice = advice.or_else(|| dashed_value(&wrong, words));
    match advice.or_else(|| dashed_path(words, exists)).or_else(|| of_other_command(&name(&wrong)))
    {
        Some(advice) => with_advice(error, &[advice]),
        // Only a file of that name can be meant as a value.
        None if !wrong.starts_with('-') => with_examples(error, args),
        None if exists(OsStr::new(&wrong)) => error,
        None => without_advice_on_values(error),
    }
}

/// Options that name a folder beside the first one, with its purpose.
const FOLDER_OPTIONS: [(&str, &str); 2] =
    [("--root", "the folder that the list is about"), ("--from", "a copy")];

/// Returns a sentence for a second path where a command takes one, and an option for another;
/// `None` if no line with such an option is understood.
fn stray_path(wrong: &str, words: &[OsString]) -> Option<String> {
    let at = words.iter().position(|word| word.to_str() == Some(wrong))?;
    if wrong.starts_with('-') && wrong != "-" {
        return None;
    }
    // A list is a file or standard input, and what it is about is a folder.
    let before = at.checked_sub(1).filter(|before| Path::new(&words[*before]).is_dir());
    let (words, at) = match before.filter(|_| !Path::new(wrong).is_dir()) {
        Some(before) if words.iter().any(|word| word == "import") => {
            let mut words = words.to_vec();
            words.swap(before, at);
            (words, at)
        }
        _ => (words.to_vec(), at),
    };
    FOLDER_OPTIONS.iter().find_map(|(option, purpose)| {
        let words = [&words[..at], &[OsString::from(option)], &words[at..]].concat();
        let purpose = format!("'{option}' names {purpose}");
        is_understood(&words).then(|| sentence(Tip { purpose, words }))
    })
}

/// Returns the error without clap's advice to take an unknown option for a value, or to override
/// a check.
fn without_advice_on_values(mut error: Error) -> Error {
    if let Some(ContextValue::StyledStrs(mut advice)) = error.remove(ContextKind::Suggested) {
        let is_kept =
            |sentence: &str| !leads_to_override(sentence) && !sentence.starts_with("to pass '");
        advice.retain(|sentence| is_kept(&sentence.to_string()));
        if !advice.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(advice));
        }
    }
    error
}

/// Returns a sentence for a value that begins like an option; `None` if the word before it is not
/// an option that takes one.
fn dashed_value(wrong: &str, words: &[OsString]) -> Option<String> {
    let is_value = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with(wrong));
    let at = words.iter().position(is_value).filter(|at| *at > 0)?;
    let option = words[at - 1].to_str().filter(|option| option.starts_with("--"))?;
    let joined: OsString = [OsStr::new(option), OsStr::new("="), &*words[at]].into_iter().collect();
    let words = [&words[..at - 1], &[joined], &words[at + 1..]].concat();
    let is_harmless = !is_override(option);
    let purpose = "a value that begins with '-' follows a '='".to_owned();
    (is_harmless && is_understood(&words)).then(|| sentence(Tip { purpose, words }))
}

/// Returns a sentence for a path that begins like an option; `None` if there is none.
fn dashed_path(words: &[OsString], exists: &dyn Fn(&OsStr) -> bool) -> Option<String> {
    // Of one with two dashes, clap says how it is passed.
    let is_path = |word: &&OsString| {
        let text = word.to_string_lossy();
        text.starts_with('-') && !text.starts_with("--") && exists(word)
    };
    let path = words.iter().find(is_path)?;
    let plain = |word: &OsString| match word == path {
        true => [OsStr::new("./"), word].into_iter().collect(),
        false => word.clone(),
    };
    let words: Vec<_> = words.iter().map(plain).collect();
    let purpose = "a name that begins with '-' looks like an option; with its folder".to_owned();
    is_understood(&words).then(|| sentence(Tip { purpose, words }))
}

/// Returns a sentence for an option that one or two other commands have; `None` otherwise.
fn of_other_command(option: &str) -> Option<String> {
    let long = option.strip_prefix("--")?;
    let all = command();
    let has = |sub: &&Command| sub.get_arguments().any(|arg| arg.get_long() == Some(long));
    let of = all.get_subcommands().filter(|sub| !sub.is_hide_set()).filter(has);
    let names: Vec<_> = of.map(Command::get_name).collect();
    let [name, others @ ..] = &names[..] else { return None };
    (others.len() < 2).then(|| {
        let purpose = format!("it is an option of {}", names.join(" and "));
        sentence(Tip { purpose, words: ["help", *name].map(OsString::from).to_vec() })
    })
}

/// Returns a sentence for an option in front of its command; `None` if it is not one.
fn moved_advice(wrong: &str, words: &[OsString]) -> Option<String> {
    let at = words.iter().position(|word| word.to_str() == Some(wrong))?;
    let is_harmless = wrong.starts_with('-') && !is_override(wrong);
    let purpose = "it is an option of a command".to_owned();
    let words = behind_command(words, at).filter(|_| is_harmless)?;
    Some(sentence(Tip { purpose, words }))
}

/// Returns a line with the option at a place of it moved to its end, alone or with the word
/// behind it; `None` if it is not understood then.
fn behind_command(words: &[OsString], at: usize) -> Option<Vec<OsString>> {
    // Behind this all is understood: it is another program's.
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let moved = |end: usize| {
        let (option, rest) = (words.get(at..end)?, words.get(end..)?);
        Some([&words[..at], rest, option].concat()).filter(|words| is_understood(words))
    };
    moved(at + 1).or_else(|| moved(at + 2))
}

/// Returns a sentence for an option that other programs have; `None` if no line with it
/// would be understood.
fn option_advice(
    advice: OptionAdvice,
    wrong: &str,
    words: &[OsString],
    exists: &dyn Fn(&OsStr) -> bool,
) -> Option<String> {
    let is_wrong = |word: &str| word == wrong || word.starts_with(&format!("{wrong}="));
    let at = words.iter().position(|word| word.to_str().is_some_and(is_wrong))?;
    let replaced = |by: Option<&str>| -> Vec<OsString> {
        let each = words.iter().filter_map(|word| match word.to_str() {
            Some(text) if is_wrong(text) => Some(OsString::from(text.replacen(wrong, by?, 1))),
            _ => Some(word.clone()),
        });
        each.collect()
    };
    let (purpose, words) = match advice {
        OptionAdvice::Is(option) => {
            let words = replaced(Some(option));
            let words = if option == "--exclude" { with_pattern(words, at, exists) } else { words };
            (format!("fsure has '{option}' for that"), words)
        }
        OptionAdvice::Note(note) => return Some(note.to_owned()),
        OptionAdvice::NotNeededBy(commands, why) => {
            words.iter().find(|word| commands.iter().any(|name| *word == name))?;
            (why.to_owned(), replaced(None))
        }
        OptionAdvice::NotNeeded(why) => {
            // A pattern is a value of the option.
            let is_pattern = |next: &OsString| next.to_string_lossy().contains(['*', '?', '[']);
            if words.get(at + 1).is_some_and(|next| is_pattern(next) && !exists(next)) {
                return None;
            }
            (why.to_owned(), replaced(None))
        }
        OptionAdvice::Command(purpose, name) => {
            let mut words = replaced(None);
            match words.first_mut().filter(|_| at > 0) {
                Some(first) => *first = name.into(),
                None => words.insert(0, name.into()),
            }
            (purpose.to_owned(), words)
        }
    };
    let words = match is_understood(&words) {
        true => words,
        false => behind_command(&words, at)?,
    };
    Some(sentence(Tip { purpose, words }))
}

/// Returns a line with a pattern in place of the names that the shell put for it behind the option
/// at `at`: names of one folder with the same ending.
fn with_pattern(words: Vec<OsString>, at: usize, exists: &dyn Fn(&OsStr) -> bool) -> Vec<OsString> {
    fn split(word: &OsString) -> Option<(&Path, &OsStr)> {
        Some((Path::new(word).parent()?, Path::new(word).extension()?))
    }
    let values = || words.iter().skip(at + 1);
    let Some((folder, ending)) = values().next().and_then(split) else { return words };
    let is_alike = |word: &&OsString| split(word) == Some((folder, ending)) && exists(word);
    let alike = values().take_while(is_alike).count();
    if alike < 2 {
        return words;
    }
    let pattern = OsString::from(format!("*.{}", ending.display()));
    [&words[..=at], &[pattern], &words[at + 1 + alike..]].concat()
}

/// Writes a line to try so that it works as it is printed.
fn sentence(tip: Tip) -> String {
    let valid = *command().get_styles().get_valid();
    let words: Vec<_> = tip.words.iter().map(|word| shell_quoted(Path::new(word))).collect();
    format!("{}: {valid}fsure {}{valid:#}", tip.purpose, words.join(" "))
}

/// Returns the error with this advice in place of clap's own on commands and values.
fn with_advice(mut error: Error, sentences: &[String]) -> Error {
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    if !sentences.is_empty() {
        let styled = sentences.iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(styled));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to a command line; files of these names exist.
    fn answer(line: &str, there: &[&str]) -> String {
        let args: Vec<_> = line.split(' ').map(OsString::from).collect();
        let error = command().try_get_matches_from(&args).unwrap_err();
        let exists = |path: &OsStr| there.iter().any(|name| path == *name);
        advise(error, &args, &exists).render().to_string()
    }

    /// The tips in it.
    fn tips(line: &str, there: &[&str]) -> Vec<String> {
        let text = answer(line, there);
        let tips = text.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
        tips.map(str::to_owned).collect()
    }

    fn is_of_this_build(line: &str) -> bool {
        let mut words = line.split(' ');
        cfg!(feature = "storage") || !words.any(|word| STORAGE_COMMANDS.contains(&word))
    }

    /// The command lines in the tips, each of which has to be understood.
    fn lines(line: &str, there: &[&str]) -> Vec<String> {
        lines_in(&tips(line, there))
    }

    fn lines_in(tips: &[String]) -> Vec<String> {
        let lines = tips.iter().filter_map(|tip| Some(&tip[tip.rfind(": fsure ")? + 2..]));
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        for line in &lines {
            let words = line.split(' ').skip(1).map(|word| word.trim_matches('\'').into());
            assert!(is_understood(&words.collect::<Vec<_>>()), "{line}");
        }
        lines
    }

    #[test]
    fn what_people_type_first_leads_to_the_command_that_does_it() {
        for (typed, expected) in [
            ("fsure diff a b", &["fsure status a b", "fsure compare a b"][..]),
            ("fsure diff", &["fsure status", "fsure help compare"]),
            ("fsure scan p --deep", &["fsure update p", "fsure verify p"]),
            (
                "fsure --json list",
                &["fsure --json status", "fsure --json export --format sha256sums"],
            ),
            ("fsure bench /mnt", &["fsure speed /mnt", "fsure flush /mnt"]),
            ("fsure backup a b", &["fsure compare a b", "fsure help protect"]),
            ("fsure mount a", &["fsure ram bind --plan a"]),
            ("fsure Verfiy photos", &["fsure verify photos"]),
            ("fsure chekc photos", &["fsure verify photos"]),
            ("fsure verdicts", &["fsure help verdicts"]),
            ("fsure bind /srv", &["fsure ram bind /srv"]),
            ("fsure ram bnid /srv", &["fsure ram bind /srv"]),
            ("fsure ram list", &["fsure help ram"]),
            ("fsure ram mount a", &["fsure ram bind --plan a"]),
            ("fsure dance --help", &["fsure help"]),
            ("fsure ram help", &["fsure help ram"]),
            ("fsure rm p --accept-all", &["fsure update p"]),
            ("fsure hael p --from c --yes", &["fsure heal p --from c"]),
        ] {
            if expected.iter().all(|line| is_of_this_build(line)) {
                assert_eq!(lines(typed, &[]), expected, "{typed}");
            }
        }
    }

    #[test]
    fn a_path_in_place_of_a_command_is_recorded_or_verified() {
        let both = ["fsure update photos", "fsure verify photos"];
        assert_eq!(lines("fsure photos", &["photos"]), both);
        assert_eq!(lines("fsure photos", &[]), both);
        assert_eq!(lines("fsure photos verify -q", &[]), ["fsure verify photos -q"]);
        let known = ["fsure update photos", "fsure verify photos", "fsure help"];
        assert_eq!(lines("fsure frobnicate photos", &["photos"]), known);
        assert_eq!(lines("fsure verfy", &["verfy"]), ["fsure update verfy", "fsure verify verfy"]);
        let backup = lines("fsure backup", &["backup"]);
        assert!(backup.contains(&"fsure verify backup".to_owned()), "{backup:?}");
    }

    #[test]
    fn options_of_other_programs_lead_to_those_of_fsure() {
        for (typed, expected) in [
            ("fsure update p --ignore x", "fsure update p --exclude x"),
            ("fsure update p --ignore=*.tmp", "fsure update p '--exclude=*.tmp'"),
            ("fsure update -r p", "fsure update p"),
            ("fsure verify p --fix", "fsure heal p"),
            ("fsure verify p --no-color", "fsure verify p --color=never"),
            ("fsure update p --hash sha256", "fsure update p --digest sha256"),
            ("fsure hot --time 5s", "fsure hot --for 5s"),
            ("fsure speed --time 5s", "fsure speed --budget 5s"),
            ("fsure verify --version", "fsure --version"),
            ("fsure --full update p", "fsure update p --full"),
            ("fsure --exclude x update p", "fsure update p --exclude x"),
            ("fsure --ignore x update p", "fsure update p --exclude x"),
            ("fsure update p -x *.tmp", "fsure update p --exclude '*.tmp'"),
            ("fsure update -x", "fsure update"),
            ("fsure --verify p", "fsure verify p"),
            ("fsure status p --dry-run", "fsure status p"),
            ("fsure --json import . list", "fsure --json import list --root ."),
        ] {
            if is_of_this_build(expected) {
                assert_eq!(lines(typed, &[]), [expected], "{typed}");
            }
        }
    }

    #[test]
    fn no_option_that_overrides_a_check_is_suggested_for_another_one() {
        for typed in ["--ignore", "--for", "--format", "--forge", "--accepted", "--acept-of"] {
            for line in [format!("fsure update p {typed}"), format!("fsure {typed} update p")] {
                let shown = answer(&line, &[]);
                for option in OVERRIDES.iter().chain(&["-- "]) {
                    assert!(!shown.contains(option), "{line}: {shown}");
                }
            }
        }
        for known in FOREIGN_COMMANDS {
            for (_, line) in known.lines {
                assert!(!leads_to_override(line), "{line}");
            }
        }
    }

    #[test]
    #[cfg(feature = "storage")]
    fn no_option_is_moved_into_the_command_of_another_program() {
        for typed in ["fsure flush --trace -- true", "fsure --max-loss 1s defer -- true"] {
            let shown = answer(typed, &[]);
            assert!(!shown.contains("true --"), "{shown}");
        }
    }

    #[test]
    fn a_near_option_is_suggested_as_clap_does() {
        let shown = tips("fsure update p --exlude x", &[]).join("\n");
        assert!(shown.contains("--exclude"), "{shown}");
    }

    #[test]
    fn there_is_no_option_to_include_and_none_that_leaves_out_stands_for_it() {
        let shown = answer("fsure update p --include x", &["p"]);
        assert!(shown.contains("name the folders and files that are wanted"), "{shown}");
        assert!(!shown.contains("a similar argument"), "{shown}");
    }

    #[test]
    fn a_file_named_like_an_option_can_be_a_value() {
        let shown = tips("fsure update --strange", &["--strange"]).join("\n");
        assert!(shown.contains("-- --strange"), "{shown}");
        assert_eq!(tips("fsure update --strange", &[]), [""; 0]);
    }

    #[test]
    fn a_path_with_a_dash_and_an_option_of_another_command_are_recognised() {
        let shown = lines("fsure verify -dash", &["-dash"]);
        assert_eq!(shown, ["fsure verify ./-dash"]);
        for exists in [&["-x.txt"][..], &[]] {
            let shown = lines("fsure update p --exclude -x.txt", exists);
            assert_eq!(shown, ["fsure update p --exclude=-x.txt"]);
        }
        assert_eq!(lines("fsure verify p --budget 1h", &["p"]), ["fsure help scrub"]);
        let shown = answer("fsure export photos", &[]);
        assert!(shown.contains("fsure export photos --format sha256sums"), "{shown}");
        for exists in [&["photos"][..], &[]] {
            assert_eq!(
                lines("fsure import list photos", exists),
                ["fsure import list --root photos"]
            );
            assert_eq!(lines("fsure heal photos copy", exists), ["fsure heal photos --from copy"]);
        }
    }

    #[test]
    fn a_command_that_this_build_lacks_is_no_misspelt_one() {
        for name in STORAGE_COMMANDS {
            let is_here = command().find_subcommand(name).is_some();
            assert_eq!(is_here, cfg!(feature = "storage"), "{name}");
            if !is_here {
                let shown = answer(&format!("fsure {name} x"), &[]);
                assert!(shown.contains("built with the commands for files only"), "{shown}");
            }
        }
    }

    #[test]
    fn version_prints_the_version() {
        let args = ["fsure", "version"].map(OsString::from);
        let error = command().try_get_matches_from(&args).unwrap_err();
        let error = advise(error, &args, &|_| false);
        assert_eq!(error.kind(), ErrorKind::DisplayVersion);
        assert!(!error.use_stderr());
    }

    #[test]
    fn every_foreign_word_leads_somewhere() {
        for known in FOREIGN_COMMANDS {
            for word in known.words {
                assert!(command().find_subcommand(word).is_none(), "{word} is a command");
                let (shown, here) =
                    (tips(&format!("fsure {word} a"), &[]), lines_here(known.lines).count());
                // Without a line, that it is not in this build.
                let note = usize::from(known.note.is_some() || here == 0);
                assert_eq!(shown.len(), here + note, "{word}: {shown:?}");
                assert_eq!(lines_in(&shown).len(), here, "{word}");
            }
        }
    }
}
