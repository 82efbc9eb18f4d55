//! Tests of folders in memory: the engine, `fsure ram` and its daemons.

#[path = "../support/mod.rs"]
mod support;

mod ram_bind;
mod ram_cut;
mod ram_daemon_kill;
mod ram_disk;
mod ram_engine;
mod ram_environment;
mod ram_instant;
mod ram_kill;
mod ram_mapped;
mod ram_moment;
mod ram_moved_paths;
mod ram_pin;
mod ram_run;
mod ram_run_kill;
mod ram_several;
mod ram_try;
mod ram_zram;
