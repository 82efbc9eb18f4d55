//! Tests of the documents and of the code base itself.

#[path = "../support/mod.rs"]
mod support;

mod licences;
mod readme;
mod report_page;
mod structure;
mod support_selftest;
mod tidy;
