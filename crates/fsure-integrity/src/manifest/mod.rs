//! Lists of digests in the forms other programs write and read, as pure
//! streams: a reader hands over one entry or one problem at a time, a writer
//! takes one entry at a time, and neither holds a list in memory.
//! `docs/exchange.md` says of each form what is read, what is written and what
//! it cannot express.
//!
//! A list can come from any user. Nothing but a plain relative path gets
//! through to what comes after, and a line that says something else is reported
//! with its number, never dropped.

mod absolute_paths;
mod bagit_bag;
mod bagit_manifest;
mod bagit_paths;
mod chkbit;
pub mod cshatag;
mod detect;
mod entry;
mod escaping;
mod formats;
mod hashdeep;
mod json;
mod lines;
mod mhl;
mod mtree;
mod path_variants;
mod sfv;
mod sidecar;
mod source;
mod sums;
#[cfg(test)]
mod tests;
mod utf16;
mod writer;

pub use bagit_bag::Bag;
pub use entry::{EntrySink, ListedMtime, ManifestEntry, ManifestItem, Problem, ProblemKind};
pub use formats::ManifestFormat;
pub use mhl::chain as mhl_chain;
pub use sidecar::{
    carried, contradicts, has_more_digests, is_cut_off_folder_file, is_folder_file, read_attribute,
    read_folder, write_attribute, write_folder,
};
pub use source::{ManifestSource, is_database, read};
pub use writer::{ListWriter, ManifestHeader, bag_files, writer};
