//! Tests of the documents and of the code base itself.

#[path = "../support/mod.rs"]
mod support;

mod readme;
mod report_page;
mod support_selftest;
mod tidy;
