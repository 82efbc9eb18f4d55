//! The user that this process runs as.

/// Returns true if this process runs as root, the system's own user.
pub fn is_root() -> bool {
    crate::host::is_root()
}

/// Returns true if a file or folder belongs to another user than that of this process; false if
/// that cannot be known.
pub fn is_of_another_user(path: &std::path::Path) -> bool {
    crate::host::is_of_another_user(path)
}

/// Returns the home folder of a user, by number; `None` if the system knows none.
pub fn home_of(user: u32) -> Option<std::path::PathBuf> {
    crate::host::home_of(user)
}

/// Returns the numbers of the user and of the group of this process; 0 and 0 on a system
/// without such numbers.
pub fn user_and_group() -> (u32, u32) {
    crate::host::user_and_group()
}
