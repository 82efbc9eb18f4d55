//! The commands that measure storage, test it, or keep folders in RAM, and the helpers that fsure
//! starts for them. A build without the feature `storage` has none of them.

mod built_in;
mod comparison;
mod crash;
mod crash_matrix;
mod crash_serve;
mod defer;
mod examples;
mod flush;
mod flush_loop;
mod flush_trace;
mod hot;
mod hot_history;
mod hot_record;
mod measurement_screen;
mod pass_through;
mod powercut;
mod process_tree;
mod ram;
mod report;
mod save_args;
mod scratch_guard;
mod speed;
mod speed_io;
mod speed_tree;
mod uncached;
mod workload;

pub(super) use examples::EXAMPLES;

use clap::Subcommand;
use fsure_core::ExitCode;

use super::{OutputArgs, screen, user_dirs};

/// A command of this group.
#[derive(Subcommand)]
pub(super) enum StorageCommand {
    Speed(speed::SpeedArgs),
    Flush(flush::FlushArgs),
    Uncached(uncached::UncachedArgs),
    Crash(Box<crash::CrashArgs>),
    Powercut(powercut::PowercutArgs),
    Defer(defer::DeferArgs),
    Hot(hot::HotArgs),
    Ram(ram::RamArgs),
    Report(report::ReportArgs),
}

/// A process that fsure starts for one of these commands.
#[derive(Subcommand)]
pub(super) enum StorageHelper {
    Family(process_tree::FamilyArgs),
    FlushAgain(flush_loop::FlushAgainArgs),
    Outlive(defer::OutliveArgs),
    PassThrough(pass_through::PassThroughArgs),
    /// A process of RAM folders
    Ram {
        #[command(subcommand)]
        process: ram::RamProcess,
    },
    Sweep(scratch_guard::SweepArgs),
    UncachedKeep(uncached::UncachedKeepArgs),
    Workload(workload::WorkloadArgs),
}

/// Runs a helper.
pub(super) fn run_helper(helper: &StorageHelper, output: &OutputArgs) -> ExitCode {
    match helper {
        StorageHelper::Family(args) => process_tree::run(args),
        StorageHelper::FlushAgain(args) => flush_loop::run(args),
        StorageHelper::Outlive(args) => defer::outlive(args),
        StorageHelper::PassThrough(args) => pass_through::run(args),
        StorageHelper::Ram { process } => ram::run_process(process, output),
        StorageHelper::Sweep(args) => scratch_guard::run(args),
        StorageHelper::UncachedKeep(args) => uncached::keep(args),
        StorageHelper::Workload(args) => workload::run(args),
    }
}

/// Runs a command.
pub(super) fn run(command: &StorageCommand, output: &OutputArgs) -> ExitCode {
    match command {
        StorageCommand::Speed(args) => speed::run(args, output),
        StorageCommand::Flush(args) => flush::run(args, output),
        StorageCommand::Uncached(args) => uncached::run(args, output),
        StorageCommand::Crash(args) => crash::run(args, output),
        StorageCommand::Powercut(args) => powercut::run(args, output),
        StorageCommand::Defer(args) => defer::run(args, output),
        StorageCommand::Hot(args) => hot::run(args, output),
        StorageCommand::Ram(args) => ram::run(args, output),
        StorageCommand::Report(args) => report::run(args, output),
    }
}
