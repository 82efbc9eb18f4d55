//! The systems that fsure runs on, each in a folder of its own.

pub(crate) mod linux;
pub(crate) mod unix;
