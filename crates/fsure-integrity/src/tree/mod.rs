//! Floor 2: the names in a tree, in the order of their bytes, without those
//! that are to be left out.

mod excludes;
mod file_sizes;
mod gitignore;
mod list_folder;
mod lister_pool;
mod walk;

pub use excludes::{IGNORE_FILE, Patterns};
pub use file_sizes::each_file_size;
pub use walk::{ExcludeReason, LISTERS, Walk, WalkBounds, WalkEvent, WalkOptions};
