//! A simulated drive in use: under a real file system, with a program on it, cut while
//! the program runs.

mod live_drive;
mod live_folder;

pub use live_drive::LiveDrive;
pub use live_folder::{LiveFolder, MountedFolder, SYNCFS};
