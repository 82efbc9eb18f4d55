//! The catalog: all records of a root, in SQLite. `docs/catalog.md` is the
//! format and the promises. One run at a time writes to it; what it wrote
//! since the last commit is all that a kill or a power cut can take.

mod audit;
mod backup;
mod block_values;
mod claims;
mod crc32;
mod database;
mod duplicates;
mod findings;
mod heal_drafts;
mod history;
mod location;
mod metadata;
mod move_candidates;
mod name_mismatch_pairs;
mod nested_roots;
mod own_changes;
mod own_names;
mod records;
mod recover;
mod redated_counts;
mod reject_special_files;
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
mod verified_paths;
mod verified_ranges;
mod zero_fill_reader;

pub use audit::{Audit, SampledFile, check_pages};
pub use block_values::{BlockValues, UnfinishedBlocks, UnfinishedFiles};
pub use claims::{Claimed, Claims};
pub use database::Database;
pub use duplicates::each_equal;
pub use findings::{Findings, RecheckPriority};
pub use heal_drafts::HealDrafts;
pub use history::{RecordHistory, digest_of};
pub use location::{RootLocation, is_recorded, locate, locate_folder, locate_record};
pub use metadata::MetadataTable;
pub use move_candidates::{
    Ambiguity, AppearedName, MissingName, MoveCandidates, content_key, is_same_inode,
};
pub use nested_roots::NestedRoots;
pub use own_changes::OwnChanges;
pub use own_names::{OWN_CATALOG, OWN_FOLDER, RECOVERED, REPLACED};
pub use records::PageStart;
pub use recover::{Recovered, Sources, drop_unproven_blocks, recover};
pub use redated_counts::{RedatedCounts, RedatedFiles};
pub use reject_special_files::refuse_irregular_parity;
pub use root_options::RootOptions;
pub use root_row::{FileSystem, MADE_BY, RootSettings};
pub use row::{PAGE_ROWS, Row, StoredMetadata, StoredRow};
pub use scrub_queue::{DueFile, DueTotals, ScrubQueue};
pub(crate) use sqlite_error::untrusted;
pub use store::Catalog;
pub use temp_copy::{open_unchanged, rehearsal, temporary_copy};
pub use tombstones::forget_tombstones;
pub use verified_paths::VerificationDates;
pub use verified_ranges::{VerifiedRange, VerifiedRanges, add_part};
pub use zero_fill_reader::ReadSeek;
