//! The catalog: all records of a root, in SQLite. `docs/catalog.md` is the
//! format and the promises. One run at a time writes to it; what it wrote
//! since the last commit is all that a kill or a power cut can take.

mod about;
mod audit;
mod backup;
mod block;
mod choice;
mod claims;
mod crc;
mod due;
mod equal;
mod fault;
mod findings;
mod guard;
mod healing;
mod history;
mod locate;
mod metadata;
mod nested;
mod own_change;
mod part;
mod recover;
mod redated;
mod respelled;
mod row;
mod salvage;
mod schema;
mod seal;
mod shift;
mod store;
mod table_total;
mod tables;
mod temporary;
mod tombstones;
mod unreadable;
mod waiting;

pub use about::{FileSystem, Settings};
pub use audit::{Audit, SampledFile};
pub use block::UnfinishedBlocks;
pub use choice::RootOptions;
pub use claims::{Claimed, Claims};
pub use due::{DueFile, DueTotals};
pub use findings::RecheckPriority;
pub use guard::refuse_irregular_parity;
pub use history::digest_of;
pub use locate::{
    OWN_CATALOG, OWN_FOLDER, RECOVERED, REPLACED, RootLocation, is_recorded, locate, locate_folder,
};
pub use metadata::StoredMetadata;
pub use part::{VerifiedRange, add_part};
pub use recover::{Recovered, Sources, recover};
pub use redated::RedatedFiles;
pub use row::{Row, StoredRow};
pub use store::{Catalog, MADE_BY, PAGE_ROWS, PageStart};
pub use unreadable::ReadSeek;
pub use waiting::{
    Ambiguity, AppearedName, MissingName, MoveCandidates, content_key, is_same_inode,
};
