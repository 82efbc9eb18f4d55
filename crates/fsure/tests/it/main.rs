//! Tests of the documents and of the code base itself.

#[path = "../support/mod.rs"]
mod support;

mod experiments;
mod json_schema;
mod json_schema_files;
mod json_schema_memory;
mod json_schema_storage;
mod licences;
mod links;
mod message_literals;
mod messages;
mod report_page;
#[cfg(target_os = "linux")]
mod session_fit;
#[cfg(target_os = "linux")]
mod session_page;
#[cfg(target_os = "linux")]
mod sessions;
mod structure;
mod support_selftest;
mod tidy;
