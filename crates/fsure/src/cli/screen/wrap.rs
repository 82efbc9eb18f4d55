//! Lines for a terminal of some width. What is to be copied, a path or a command, is never
//! broken: a terminal shows it over two lines and copies it as one.

/// Columns that a line of several columns goes on at behind its break.
const INDENT: usize = 4;
/// The same of a sentence: fewer than those before a command, which it must not look like.
const SENTENCE_INDENT: usize = 2;
/// Fewer columns than that are not worth breaking for.
const WIDTH_MIN: usize = 20;

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
    let (mut text, mut used) = (String::new(), 0);
    for (number, piece) in pieces(line).into_iter().enumerate() {
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
            text.push_str(&next);
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
    fn colours_take_no_columns() {
        let line = "\x1b[31mrotten\x1b[0m       photos/a.raw  24.0 MiB";
        assert_eq!(wrap(line, 36), line);
        assert_eq!(wrap(line, 30), "\x1b[31mrotten\x1b[0m       photos/a.raw\n    24.0 MiB");
    }
}
