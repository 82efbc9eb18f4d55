//! A compressed disk in memory: one zram device of our own with ext4 on it.
//!
//! It is a device of the whole machine. So it is registered with the guard of
//! the scratch folder before it is used, and nothing is mounted where others
//! would see it. Linux only; elsewhere [`Zram::create`] fails with
//! `Unsupported`.

pub use crate::host::mounts::Zram;
