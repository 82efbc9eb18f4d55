//! Floor 2: the names in a tree, in the order of their bytes, without those
//! that are to be left out.

mod excludes;
mod file_sizes;
mod gitignore;
mod list_folder;
mod lister_pool;
mod walk;
mod walk_bounds;
mod walk_event;

pub use excludes::{IGNORE_FILE, Patterns};
pub use file_sizes::each_file_size;
pub use walk::{LISTERS, Walk, WalkOptions};
pub use walk_bounds::{ExcludeReason, WalkBounds};
pub use walk_event::WalkEvent;
