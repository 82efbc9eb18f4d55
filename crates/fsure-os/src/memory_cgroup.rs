//! A group of processes that may only have so much memory, the page cache of
//! what they read included: what a machine with less memory would do.
//!
//! Linux only, and root; elsewhere [`Group::create`] fails with `Unsupported`.
//! The group is registered with the guard of the scratch folder.

pub use crate::host::private_mounts::Group;
