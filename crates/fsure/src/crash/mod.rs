//! A simulated drive in use: under a real file system, with a program on it, cut while
//! the program runs.

mod folder;
mod live;

pub use folder::{LiveFolder, MountedFolder, SYNCFS};
pub use live::LiveDrive;
