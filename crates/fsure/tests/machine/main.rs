//! Tests that must be alone on the machine: they measure, freeze, fill the memory or count
//! what the whole machine does. Each waits for its turn (`support::serial::alone`), or shares
//! the machine with those that only wait (`support::serial::shared`).

#[path = "../support/mod.rs"]
mod support;

mod crash_loop_mount;
mod flush;
mod flush_counters;
mod hanging_storage;
mod hot;
mod hot_record;
mod io_options;
mod ladder;
mod page_cache_effects;
mod passthrough;
mod ram_memory;
mod ram_size;
mod scratch;
mod speed;
mod speed_compare;
mod speed_io;
mod speed_mounted;
mod speed_stopped;
mod speed_tree;
mod syscall_count;
mod uncached;
mod watched_command;
