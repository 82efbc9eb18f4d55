//! `ram pin` and `unpin` in words and as JSON.

use std::path::Path;

use serde::Serialize;

use super::number;
use fsure_core::{escape, units};
use fsure_ram::Pinned;

/// Names of files that are shown where files are left out; the rest is counted.
const SHOWN: usize = 5;

/// That it is held, for a person.
pub fn text(pinned: &Pinned) -> String {
    let Pinned { process, files, bytes, left_out, left_out_count, .. } = pinned;
    let files = number(*files, "file", "files");
    let mut text = format!(
        "Pinned {}: {} in {files}, all of it in memory. Process {process} holds it.",
        shown(&pinned.folder),
        units::size(*bytes)
    );
    for (path, why) in left_out.iter().take(SHOWN) {
        text += &format!(" Left out: {}: {why}.", shown(path));
    }
    if *left_out_count > SHOWN as u64 {
        text += &format!(" And {} more.", left_out_count - SHOWN as u64);
    }
    text
}

/// That it is not any more.
pub fn unpinned(pinned: &Pinned) -> String {
    let (folder, bytes) = (shown(&pinned.folder), units::size(pinned.bytes));
    format!("Unpinned {folder}: the kernel can drop {bytes} from the page cache again.")
}

fn shown(path: &Path) -> String {
    escape(&fsure_os::path::bytes(path))
}

#[derive(Serialize)]
struct PinLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    pinned: &'a Pinned,
}

/// That it is held, for a program.
pub fn json_line(pinned: &Pinned) -> String {
    line("pinned", pinned)
}

/// That it is not any more.
pub fn unpinned_json_line(pinned: &Pinned) -> String {
    line("unpinned", pinned)
}

fn line(kind: &str, pinned: &Pinned) -> String {
    serde_json::to_string(&PinLine { kind, pinned }).expect("numbers and text under fixed names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named() {
        let left_out = (1..8).map(|n| (format!("f{n}\n").into(), "no room".to_owned()));
        let pinned = Pinned {
            folder: "/srv/www".into(),
            is_filling: false,
            process: 7,
            files: 1,
            bytes: 1 << 20,
            left_out: left_out.collect(),
            left_out_count: 1000,
        };
        assert!(text(&pinned).ends_with(" Left out: f5\\n: no room. And 995 more."));
        let whole = Pinned { left_out: Vec::new(), left_out_count: 0, ..pinned };
        assert_eq!(
            text(&whole),
            "Pinned /srv/www: 1.0 MiB in 1 file, all of it in memory. Process 7 holds it."
        );
        assert_eq!(
            json_line(&whole),
            "{\"type\":\"pinned\",\"folder\":\"/srv/www\",\"state\":\"held\",\"process\":7,\
             \"files\":1,\"bytes\":1048576,\"left_out\":[],\"left_out_count\":0}"
        );
        assert!(unpinned(&whole).contains("from the page cache again"));
    }
}
