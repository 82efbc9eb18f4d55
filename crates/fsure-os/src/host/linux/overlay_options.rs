//! The mount options of an overlay, as bytes: the paths of folders are among them.

/// Appends an option whose value is a path, and escapes the bytes of it that have another
/// meaning among options.
pub(super) fn append_path(options: &mut Vec<u8>, key: &str, path: &[u8]) {
    if !options.is_empty() {
        options.push(b',');
    }
    options.extend_from_slice(key.as_bytes());
    options.push(b'=');
    for byte in path {
        if b"\\:,".contains(byte) {
            options.push(b'\\');
        }
        options.push(*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_value() {
        let mut options = Vec::new();
        append_path(&mut options, "lowerdir", br"/a,b");
        append_path(&mut options, "upperdir", br"/c:d\e");
        assert_eq!(options, br"lowerdir=/a\,b,upperdir=/c\:d\\e");
    }
}
