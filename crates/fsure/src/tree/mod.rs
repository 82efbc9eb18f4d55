//! Floor 2: the names in a tree, in the order of their bytes, without those
//! that are to be left out.

mod file_sizes;
mod gitignore;
mod list;
mod listers;
mod patterns;
mod walk;

pub use file_sizes::each_file_size;
pub use patterns::{IGNORE_FILE, Patterns};
pub use walk::{ExcludeReason, LISTERS, Walk, WalkBounds, WalkEvent, WalkOptions};
