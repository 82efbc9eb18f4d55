//! Windows, from 10 (1607) on. Nothing here has run on a real Windows; under
//! Wine, which answers most of these calls, all of it has.

pub(crate) mod aligned_memory;
mod call;
pub(crate) mod control_socket;
pub(crate) mod device;
mod direct_grain;
pub(crate) mod durable_write;
mod file;
pub(crate) mod file_attributes;
pub(crate) mod filesystem_id;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod output;
pub(crate) mod path;
pub(crate) mod priority;
pub(crate) mod ramdisk;
pub(crate) mod repair_write;
pub(crate) mod root_dir;
pub(crate) mod scratch_dir;
mod stat;

pub(crate) use file::File;

/// See [`crate::rlimit::open_files`]. A process may have millions of handles.
pub(crate) fn open_files() -> usize {
    1 << 16
}

/// The standard library asks for 128, and there is no asking again.
pub(crate) fn long_queue(_: &std::net::TcpListener) {}

/// There is none.
pub(crate) fn is_root() -> bool {
    false
}

/// See [`crate::user::is_of_another_user`].
pub(crate) fn is_of_another_user(_: &std::path::Path) -> bool {
    false
}

/// See [`crate::user::home_of`]. Users have no such numbers here.
pub(crate) fn home_of(_: u32) -> Option<std::path::PathBuf> {
    None
}

/// See [`crate::user::user_and_group`].
pub(crate) fn user_and_group() -> (u32, u32) {
    (0, 0)
}

/// The name of this host; empty if the environment does not say.
pub(crate) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
