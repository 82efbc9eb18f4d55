//! `hot`: which folders programs wait for, and what to do with each.

mod folder_contents;
mod folder_tree;
mod hot;

pub use folder_tree::{Node, durable_ns, waited_ns};
pub use hot::{Advised, Hot, HotOptions, hot};
