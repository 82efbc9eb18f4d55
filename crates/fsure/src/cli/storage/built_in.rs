//! The option that names a built-in program of `fsure crash`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::workload::{WORKLOADS, Workload, workload};

/// Built-in programs of `fsure crash`. A protocol alone stands for its first program.
pub(super) fn built_in() -> impl TypedValueParser<Value = &'static Workload> {
    let is_first = |one: &&Workload| workload(one.protocol()).map(|w| w.name) == Some(one.name);
    let known = WORKLOADS.iter().map(|one| {
        PossibleValue::new(one.name).aliases(Some(one).filter(is_first).map(Workload::protocol))
    });
    PossibleValuesParser::new(known)
        .try_map(|given| workload(&given.to_lowercase()).ok_or("it is none of the names"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn a_protocol_alone_is_its_first_workload() {
        for (typed, meant) in [
            ("append", "append:fsync"),
            ("append:none", "append:none"),
            ("SQLite", "sqlite:wal-full"),
            ("sqlite:off", "sqlite:off"),
        ] {
            let arg = Arg::new("name").value_parser(built_in()).ignore_case(true);
            let mut parsed = Command::new("x").arg(arg).try_get_matches_from(["x", typed]).unwrap();
            let found: &Workload = parsed.remove_one("name").unwrap();
            assert_eq!(found.name, meant);
        }
    }
}
