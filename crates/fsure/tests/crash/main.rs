//! Tests of simulated drives and of the commands over them and over real power cuts: `crash`,
//! `powercut` and `defer`.

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod crash_catalog;
mod crash_causes;
mod crash_examples;
mod crash_folder_fuse;
mod crash_loop_interference;
mod crash_serve;
mod defer;
mod defer_cut;
mod defer_disk;
mod powercut;
mod powercut_drives;
mod powercut_folders;
mod saved_results;
mod workload;
mod workload_damage;
