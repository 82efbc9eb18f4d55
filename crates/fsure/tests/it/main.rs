//! Tests of the documents and of the code base itself.

#[path = "../support/mod.rs"]
mod support;

mod json_schema;
mod json_schema_files;
mod json_schema_memory;
mod json_schema_storage;
mod licences;
mod message_literals;
mod messages;
mod readme;
mod report_page;
mod structure;
mod support_selftest;
mod tidy;
