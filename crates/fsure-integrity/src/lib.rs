//! Records the digests of whole trees, verifies them later from
//! the medium, says what is wrong with which file and block, and heals it.
//!
//! The functions are the commands (`update`, `verify`, `scrub`, `heal` and so on): each takes
//! a location, options and a monitor, and returns an outcome; none prints. Below them:
//! [`scan`] reads and judges a tree, [`catalog`] holds the records, [`trust`] signatures,
//! [`tree`] walks, [`manifest`] reads and writes lists of other programs, [`parity`] is the
//! recovery data, and [`model`] the plain data that all of them share.
#![forbid(unsafe_code)]

// Floor 1: plain data
pub mod model;

// Floor 2: machines
pub mod catalog;
pub mod manifest;
pub mod parity;
pub mod tree;

// Floor 3: the pipeline, and whom a record believes
pub mod scan;
pub mod trust;

// Floor 4: the commands
mod commands;

pub use commands::{
    CatalogRepair, CompareSide, ExportTarget, Exported, HashRequest, HashableTree, HealOptions,
    History, Imported, Options, ProtectOptions, RecordAccess, RecoverOptions, ScrubOptions,
    SealOptions, SignOutcome, SignedGeneration, TreeInMemory, UpdateOptions, UserConfig, age,
    age_by_folder, compare, dupes, export, heal, import, last_generation, locate_backup, log,
    nested_place, protect, recover, scrub, seal, status, update, verify, verify_against,
};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
