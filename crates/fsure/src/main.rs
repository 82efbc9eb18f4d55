//! The program `fsure`: everything it does is in the library, where the documentation and
//! the tasks of the repository (`cargo xtask`) find it, too.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    fsure::cli::main()
}
