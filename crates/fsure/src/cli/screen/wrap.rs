//! Lines for a terminal of some width. What is to be copied, a path or a command, is never
//! broken: a terminal shows it over two lines and copies it as one.

use super::super::help::COMMAND_GROUPS;

/// Columns that a line of several columns goes on at behind its break.
const INDENT: usize = 4;
/// The same of a sentence: fewer than those before a command, which it must not look like.
const SENTENCE_INDENT: usize = 2;
/// Fewer columns than that are not worth breaking for.
const WIDTH_MIN: usize = 20;
/// Other programs than fsure that a message advises behind a colon.
const PROGRAMS: &[&str] = &["mv", "mkdir", "mount", "umount", "rm"];

/// Returns a line broken at spaces so that it fits into `width` columns as far as possible.
///
/// A line that holds a command (`    fsure ...`) stays as it is. Columns are separated by two
/// spaces or more: the first column, a verdict and its path, is not broken, and neither are
/// the spaces within a column if it fits into a line of its own.
pub(super) fn wrap(line: &str, width: usize) -> String {
    if width < WIDTH_MIN || columns(line) <= width || line.trim_start().starts_with("fsure ") {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let more = if line.trim().contains("  ") { INDENT } else { SENTENCE_INDENT };
    let next = " ".repeat((indent + more).min(width / 2));
    let is_table = line.trim().contains("  ");
    fill(if is_table { pieces(line) } else { words(line) }, &next, width)
}

/// Returns an error, a warning or a hint broken at spaces so that it fits into `width` columns as
/// far as possible. What stands in quotation marks is not broken. A command behind a colon has a
/// line of its own.
pub(in crate::cli) fn wrap_message(message: &str, width: usize) -> String {
    if width < WIDTH_MIN || columns(message) <= width {
        return message.to_owned();
    }
    let (sentence_indent, command_indent) = (" ".repeat(SENTENCE_INDENT), " ".repeat(INDENT));
    let (mut lines, mut rest) = (Vec::new(), message);
    while let Some((start, end)) = command_behind_colon(rest) {
        let sentence = rest[..start].trim_end_matches(' ');
        lines.push(wrap_sentence(sentence, lines.is_empty(), &sentence_indent, width));
        lines.push(format!("{command_indent}{}", &rest[start..end]));
        rest = rest[end..].trim_start_matches([';', '.', ' ']);
    }
    if !rest.is_empty() {
        lines.push(wrap_sentence(rest, lines.is_empty(), &sentence_indent, width));
    }
    lines.join("\n")
}

fn wrap_sentence(sentence: &str, is_first: bool, indent: &str, width: usize) -> String {
    let mut pieces = words(sentence);
    if let Some(first) = pieces.first_mut().filter(|_| !is_first) {
        first.gap = indent.len();
    }
    fill(pieces, indent, width)
}

/// Joins pieces to lines of at most `width` columns; each but the first begins with `next`.
fn fill(pieces: Vec<Piece<'_>>, next: &str, width: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for (number, piece) in pieces.into_iter().enumerate() {
        let (gap, length) = (piece.gap, columns(piece.text));
        if number == 0 {
            text.push_str(&" ".repeat(gap));
            text.push_str(piece.text);
            used = gap + length;
        } else if used + gap + length <= width {
            text.push_str(&" ".repeat(gap));
            text.push_str(piece.text);
            used += gap + length;
        } else {
            text.push('\n');
            text.push_str(next);
            text.push_str(piece.text);
            used = next.len() + length;
        }
    }
    text
}

/// A part of a line that is not broken, and the number of spaces before it.
struct Piece<'a> {
    gap: usize,
    text: &'a str,
}

/// Cuts a line into its words, but leaves its first column whole if it has several.
fn pieces(line: &str) -> Vec<Piece<'_>> {
    let start = line.len() - line.trim_start_matches(' ').len();
    let (mut pieces, mut rest, mut gap) = (Vec::new(), &line[start..], start);
    // A verdict stands in a column of twelve and one space, its path behind it.
    let verdict_end = rest.find(' ').unwrap_or(rest.len());
    let is_table = rest.trim_end().contains("  ");
    let after_verdict = rest[verdict_end..].trim_start_matches(' ');
    if let Some(end) = after_verdict.find("  ").filter(|_| is_table) {
        let end = rest.len() - after_verdict.len() + end;
        pieces.push(Piece { gap, text: &rest[..end] });
        (gap, rest) = cut_gap(&rest[end..]);
    }
    while !rest.is_empty() {
        let end = rest.find(' ').unwrap_or(rest.len());
        pieces.push(Piece { gap, text: &rest[..end] });
        (gap, rest) = cut_gap(&rest[end..]);
    }
    pieces
}

/// Cuts a sentence into its words; what stands in quotation marks is one.
fn words(sentence: &str) -> Vec<Piece<'_>> {
    let mut words = Vec::new();
    let (mut gap, mut rest) = cut_gap(sentence);
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('\'').and_then(|inner| command_end(inner, &['\'']));
        let start = quoted.map_or(0, |end| end + 2);
        let end = rest[start..].find(' ').map_or(rest.len(), |end| start + end);
        words.push(Piece { gap, text: &rest[..end] });
        (gap, rest) = cut_gap(&rest[end..]);
    }
    words
}

/// Returns the range of the first command that stands behind a colon; it ends with its sentence.
fn command_behind_colon(text: &str) -> Option<(usize, usize)> {
    let starts = text.match_indices(": ").map(|(colon, _)| colon + 2);
    let start = starts.into_iter().find(|start| is_command(&text[*start..]))?;
    let end = command_end(&text[start..], &[';', '.']).map_or(text.len(), |end| start + end);
    Some((start, end))
}

/// Returns true if a text begins as a command does that a message advises.
fn is_command(text: &str) -> bool {
    let mut words = text.split(' ');
    let (program, next) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut names = COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter());
    match program {
        "sudo" => !next.is_empty(),
        "fsure" => names.any(|known| *known == next),
        // "mount the disk" is a sentence.
        _ => PROGRAMS.contains(&program) && next.contains(['/', '-', '~', '\'', '$']),
    }
}

/// Returns the place of the first of `ends` that is not part of a word of the shell: outside of
/// quotation marks, and before a space or the end.
fn command_end(text: &str, ends: &[char]) -> Option<usize> {
    let (mut is_quoted, mut is_double_quoted, mut before) = (false, false, ' ');
    for (place, character) in text.char_indices() {
        let rest = &text[place + character.len_utf8()..];
        let is_end = rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '\\');
        match character {
            _ if before == '\\' => {
                before = ' ';
                continue;
            }
            '\'' if is_quoted => is_quoted = false,
            '"' if !is_quoted => is_double_quoted = !is_double_quoted,
            '\'' if !is_double_quoted && [' ', '=', '$', '('].contains(&before) => is_quoted = true,
            '\'' if ends.contains(&'\'') && is_end => return Some(place),
            ';' | '.' if is_quoted || is_double_quoted => {}
            ';' | '.'
                if ends.contains(&character) && (rest.is_empty() || rest.starts_with(' ')) =>
            {
                return Some(place);
            }
            _ => {}
        }
        before = character;
    }
    None
}

fn cut_gap(rest: &str) -> (usize, &str) {
    let text = rest.trim_start_matches(' ');
    (rest.len() - text.len(), text)
}

/// Returns the columns that a text takes on a terminal: none for the codes of its colours, one
/// for every other character. A wide character is counted as one, and the terminal breaks the
/// line then.
fn columns(text: &str) -> usize {
    let mut columns = 0;
    let mut is_code = false;
    for character in text.chars() {
        match character {
            '\x1b' => is_code = true,
            'm' if is_code => is_code = false,
            _ if is_code => {}
            _ => columns += 1,
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_breaks_at_spaces() {
        let line = "1 file is SUSPICIOUS: other content than recorded.";
        assert_eq!(wrap(line, 80), line);
        let expected = "1 file is SUSPICIOUS: other\n  content than recorded.";
        assert_eq!(wrap(line, 30), expected);
        assert_eq!(wrap(line, 10), line, "too narrow to break for");
        let line = "NOT UP TO DATE: run 'fsure verify a --full' before";
        assert_eq!(wrap(line, 40), "NOT UP TO DATE: run\n  'fsure verify a --full' before");
        let message = "fsure: hint: mount the disk so that it can be written";
        assert!(wrap_message(message, 30).starts_with("fsure: hint: mount the disk so\n"));
    }

    #[test]
    fn a_command_and_a_path_stay_whole() {
        let command = "    fsure heal photos --from /mnt/copy of the photos --yes";
        assert_eq!(wrap(command, 30), command);
        let finding = "rotten       photos/a b c d e f.raw  24.0 MiB, 2024-05-01 12:00:00";
        let expected =
            "rotten       photos/a b c d e f.raw\n    24.0 MiB, 2024-05-01\n    12:00:00";
        assert_eq!(wrap(finding, 24), expected);
        let word = "x".repeat(50);
        assert_eq!(wrap(&word, 30), word);
    }

    #[test]
    fn a_message_breaks_at_spaces_and_its_commands_stay_whole() {
        let message = "fsure: hint: to record the folder as it is now: fsure update '/a; b/c d'";
        assert_eq!(wrap_message(message, 80), message);
        let expected =
            "fsure: hint: to record the\n  folder as it is now:\n    fsure update '/a; b/c d'";
        assert_eq!(wrap_message(message, 30), expected);
        let message =
            "to restore it, run: fsure recover /a --catalog /b; to begin a new one: mv /a b";
        let expected = "to restore it, run:\n    fsure recover /a --catalog /b\n  to begin a new one:\n    \
                        mv /a b";
        assert_eq!(wrap_message(message, 30), expected);
        let message = "nothing was done; 'fsure verify '/a b/it'\\''s' --full' says more of it";
        let expected =
            "nothing was done;\n  'fsure verify '/a b/it'\\''s' --full'\n  says more of it";
        assert_eq!(wrap_message(message, 30), expected);
        let message = "no catalog is here: fsure uses the records of 12 files";
        assert_eq!(
            wrap_message(message, 30),
            "no catalog is here: fsure uses\n  the records of 12 files"
        );
    }

    #[test]
    fn colours_take_no_columns() {
        let line = "\x1b[31mrotten\x1b[0m       photos/a.raw  24.0 MiB";
        assert_eq!(wrap(line, 36), line);
        assert_eq!(wrap(line, 30), "\x1b[31mrotten\x1b[0m       photos/a.raw\n    24.0 MiB");
    }
}
