//! Names of 16-bit units, as Windows has them, and their bytes: WTF-8, which is
//! UTF-8 where the name is valid UTF-16 and has three bytes for a surrogate
//! that stands alone. Each name has exactly one such form and back.

/// The bytes of a name.
pub(crate) fn to_bytes(wide: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(wide.len() * 3 / 2);
    for unit in char::decode_utf16(wide.iter().copied()) {
        match unit {
            Ok(character) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Err(alone) => {
                let unit = alone.unpaired_surrogate();
                let low = |bits: u16| 0x80 | (bits & 0x3f) as u8;
                bytes.extend_from_slice(&[0xed, low(unit >> 6), low(unit)]);
            }
        }
    }
    bytes
}

/// Returns the name of those bytes; `None` if they are not those of a name.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Vec<u16>> {
    let mut wide = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).ok()?,
        };
        wide.extend(valid.encode_utf16());
        rest = &rest[valid.len()..];
        if let [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] = rest {
            let unit = 0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f);
            let is_low = unit >= 0xdc00;
            // Two that make a pair have a form of four bytes.
            if is_low && wide.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
                return None;
            }
            wide.push(unit);
            rest = &rest[3..];
        } else if !rest.is_empty() {
            return None;
        }
    }
    Some(wide)
}

/// A path below a root, `/` between its components, in the form the system
/// wants; `None` where no name there can be so: one with a separator in it, an
/// alternate stream, or a way up.
pub(crate) fn path(bytes: &[u8]) -> Option<Vec<u16>> {
    let is_name = |name: &[u8]| {
        let is_way = matches!(name, b"" | b"." | b"..");
        !is_way && !name.iter().any(|byte| matches!(byte, 0 | b'\\' | b':'))
    };
    if !bytes.is_empty() && !bytes.split(|byte| *byte == b'/').all(is_name) {
        return None;
    }
    let mut wide = from_bytes(bytes)?;
    for unit in &mut wide {
        if *unit == u16::from(b'/') {
            *unit = u16::from(b'\\');
        }
    }
    Some(wide)
}

/// Returns the target of a symbolic link or a junction, from what the system
/// reports of its reparse point; `None` if that is of another kind, or makes no
/// sense.
pub(crate) fn link_target(reparse: &[u8]) -> Option<Vec<u8>> {
    const SYMLINK: u32 = 0xa000_000c;
    const MOUNT_POINT: u32 = 0xa000_0003;
    let number = |at: usize| {
        let bytes: [u8; 2] = reparse.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_le_bytes(bytes)))
    };
    let tag = u32::from_le_bytes(reparse.get(..4)?.try_into().ok()?);
    // Behind tag and length: place and length of the name the system uses, and
    // of the one it shows; for a symbolic link, its flags.
    let names = match tag {
        SYMLINK => 20,
        MOUNT_POINT => 16,
        _ => return None,
    };
    let start = names + number(8)?;
    let name = reparse.get(start..start + number(10)?)?;
    let units: Vec<u16> =
        name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    Some(to_bytes(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_form_and_back() {
        for text in ["", "plain", "Füße", "日本", "😀 x", "\u{ffff}\u{d7ff}\u{e000}"] {
            let wide: Vec<u16> = text.encode_utf16().collect();
            assert_eq!(to_bytes(&wide), text.as_bytes());
            assert_eq!(from_bytes(text.as_bytes()).unwrap(), wide);
        }
        for unit in 0xd800..=0xdfff_u16 {
            let wide = [u16::from(b'a'), unit, u16::from(b'z')];
            let bytes = to_bytes(&wide);
            assert_eq!(bytes.len(), 5);
            assert_eq!(from_bytes(&bytes).unwrap(), wide);
        }
        // A low one before a high one is not a pair.
        let wide = [0xde00, 0xd83d, 0xd83d, 0xde00];
        assert_eq!(to_bytes(&wide), b"\xed\xb8\x80\xed\xa0\xbd\xf0\x9f\x98\x80");
        assert_eq!(from_bytes(&to_bytes(&wide)).unwrap(), wide);
    }

    #[test]
    fn bytes_of_no_name_are_none() {
        for bytes in [
            &b"\xff"[..],
            b"a\x80",
            b"\xc0\x80",
            b"\xed\xa0",
            b"\xed\xa0x",
            b"\xf0\x9f\x98",
            // A pair in two pieces: the same name as in four bytes.
            b"\xed\xa0\xbd\xed\xb8\x80",
        ] {
            assert_eq!(from_bytes(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn a_path_goes_down_and_stays_on_the_main_stream() {
        let wide = |text: &str| Some(text.encode_utf16().collect::<Vec<_>>());
        assert_eq!(path(b""), wide(""));
        assert_eq!(path("a/ö/c".as_bytes()), wide("a\\ö\\c"));
        assert_eq!(path(b"con/a. /..."), wide("con\\a. \\..."));
        for bytes in
            [&b"/a"[..], b"a/", b"a//b", b"..", b"a/../b", b"./a", b"a\\b", b"a:b", b"a\0", b"\xff"]
        {
            assert_eq!(path(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn links_are_read_with_their_target() {
        let point = |tag: u32, flags: &[u8], name: &str| {
            let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let mut bytes = tag.to_le_bytes().to_vec();
            bytes.extend([0, 0, 0, 0]);
            // The name that is shown comes first here.
            bytes.extend([4, 0, units.len() as u8, 0, 0, 0, 4, 0]);
            bytes.extend(flags);
            bytes.extend(b"s\0h\0");
            bytes.extend(units);
            bytes
        };
        let link = point(0xa000_000c, &[1, 0, 0, 0], "..\\ö");
        assert_eq!(link_target(&link).unwrap(), "..\\ö".as_bytes());
        let junction = point(0xa000_0003, &[], r"\??\C:\x");
        assert_eq!(link_target(&junction).unwrap(), br"\??\C:\x");
        assert_eq!(link_target(&point(0x9000_001a, &[], "x")), None);
        for length in 0..link.len() {
            assert_eq!(link_target(&link[..length]), None, "cut to {length} bytes");
        }
    }
}
