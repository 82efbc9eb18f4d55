//! The catalog: all records of a root, in SQLite. `docs/catalog.md` is the
//! format and the promises. One run at a time writes to it; what it wrote
//! since the last commit is all that a kill or a power cut can take.

mod audit;
mod backup;
mod block_values;
mod claims;
mod crc32;
mod duplicates;
mod findings;
mod heal_state;
mod history;
mod location;
mod metadata;
mod move_candidates;
mod nested_roots;
mod normalization_pairs;
mod own_ctime;
mod recover;
mod redated;
mod reject_special_files;
mod rename_record;
mod root_options;
mod root_row;
mod row;
mod row_checksum;
mod salvage;
mod schema;
mod scrub_queue;
mod sqlite_error;
mod store;
mod table_total;
mod tables;
mod temp_copy;
mod tombstones;
mod verified_ranges;
mod zero_fill_reader;

pub use audit::{Audit, SampledFile};
pub use block_values::UnfinishedBlocks;
pub use claims::{Claimed, Claims};
pub use findings::RecheckPriority;
pub use history::digest_of;
pub use location::{
    OWN_CATALOG, OWN_FOLDER, RECOVERED, REPLACED, RootLocation, is_recorded, locate, locate_folder,
};
pub use metadata::StoredMetadata;
pub use move_candidates::{
    Ambiguity, AppearedName, MissingName, MoveCandidates, content_key, is_same_inode,
};
pub use recover::{Recovered, Sources, recover};
pub use redated::RedatedFiles;
pub use reject_special_files::refuse_irregular_parity;
pub use root_options::RootOptions;
pub use root_row::{FileSystem, RootSettings};
pub use row::{Row, StoredRow};
pub use scrub_queue::{DueFile, DueTotals};
pub use store::{Catalog, MADE_BY, PAGE_ROWS, PageStart};
pub use verified_ranges::{VerifiedRange, add_part};
pub use zero_fill_reader::ReadSeek;
