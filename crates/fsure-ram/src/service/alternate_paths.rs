//! Refusals and warnings about ways to a folder beside its own path. A process that
//! writes by such a way does not see what is in RAM, and its changes would be
//! overwritten.

use std::path::PathBuf;

use fsure_os::overmount::Elsewhere;

use super::bind_refusal::{BindRefusal, refuse, some};
use fsure_core::shell_command;

/// Refuses ways among the mounts of this process: the user who made them can take them
/// away.
pub(super) fn check(here: &[PathBuf]) -> Option<BindRefusal> {
    let read_only = shell_command("mount -o remount,bind,ro", here.first()?);
    let why = format!(
        "it is also mounted elsewhere, and what is written there would go to the covered disk side \
         and be lost: {}",
        some(here)
    );
    Some(refuse(why, format!("unmount that one, or make it read-only: {read_only}")))
}

/// Of a way among the mounts of others.
pub(super) fn warning(way: &Elsewhere) -> String {
    let Elsewhere { process, command, point } = way;
    format!(
        "process {process} ({command}) has mounts of its own and reaches it by {}: it does not see \
         the RAM side, and what it writes there is lost; restart it after the bind",
        point.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_named_with_what_to_do() {
        assert_eq!(check(&[]), None);
        let refusal = check(&["/alias".into()]).unwrap();
        assert!(refusal.why.ends_with("/alias") && refusal.remedy.ends_with("ro /alias'"));
        let (command, point) = ("sh".to_owned(), "/data".into());
        let words = warning(&Elsewhere { process: 7, command, point });
        assert!(words.starts_with("process 7 (sh)") && words.contains("/data"), "{words}");
    }
}
