//! Checks whether folders can be put into RAM for one command. The rules are those of
//! `bind`, except that a process that only has its working directory in a folder is not
//! in the way: other processes go on seeing the disk side, and only those that write
//! there would be overwritten.

use std::path::{Path, PathBuf};

use fsure_os::overmount::{AlternatePaths, HoldKind, overlaps};
use fsure_os::tree_copy::{NodeKind, Side};

use super::super::preflight::{PlacementPlan, gather, judge};
use super::super::registry::Registry;
use crate::write_back::{Recovered, recover};
use fsure_core::{Error, IoContext as _, RelPath, Result};

/// Returns the plan for each folder. Fails with the reason at the first one that is
/// refused.
pub(super) fn check(
    folders: &[PathBuf],
    bytes: Option<u64>,
    runtime: Option<&Path>,
    warn: &dyn Fn(&str),
) -> Result<Vec<PlacementPlan>> {
    let registry = Registry::of_user(runtime);
    let mut plans: Vec<PlacementPlan> = Vec::new();
    for folder in folders {
        if !fsure_os::path::is_folder(folder) {
            let message = format!("{} is not a folder", folder.display());
            return Err(usage(message, "name an existing folder"));
        }
        // A crash may have left files of fsure's that are also names of the user's files.
        if let Recovered::Completed { generation, .. } = recover(folder)?.found {
            let folder = folder.display();
            warn(&format!("{folder}: generation {generation} was completed after a crash"));
        }
        let mut facts = gather(folder, &registry)?;
        facts.holders.retain(|holder| holder.how == HoldKind::Writes);
        facts.ways = AlternatePaths::default();
        // The memory that the folders before it are going to take.
        let taken = plans.iter().map(|plan| plan.content).sum::<u64>();
        facts.others = facts.others.and(plans.len() as u64, taken);
        facts.available = facts.available.map(|available| available.saturating_sub(taken));
        let plan = judge(&facts, bytes);
        if let Some(refusal) = plan.refusals.first() {
            let path = plan.path.display();
            return Err(usage(format!("{path}: {}", refusal.why), &refusal.remedy));
        }
        if let Some(other) = plans.iter().find(|other| overlaps(&other.path, &plan.path)) {
            let (one, other) = (plan.path.display(), other.path.display());
            return Err(usage(
                format!("{one} and {other} are the same folder, or one contains the other"),
                "name only the upper one",
            ));
        }
        check_outputs(&plan.path)?;
        if fsure_os::mount_sandbox::knows_one_user() {
            check_owners(&plan.path)?;
        }
        plans.push(plan);
    }
    Ok(plans)
}

fn usage(message: String, hint: &str) -> Error {
    Error::Usage { message, hint: Some(hint.to_owned()) }
}

/// Refuses a folder that an output of this process goes to: that file was opened before
/// the command sees memory.
fn check_outputs(path: &Path) -> Result<()> {
    for output in fsure_os::mount_sandbox::outputs() {
        if output.starts_with(path) {
            return Err(usage(
                format!("the output goes to {}, on the disk side", output.display()),
                "redirect it to a file outside the folder; what the command opens itself is in RAM",
            ));
        }
    }
    Ok(())
}

/// Refuses a folder with files of several owners: without root, the user name space of the
/// command knows one user and one group.
fn check_owners(path: &Path) -> Result<()> {
    let (user, group) = fsure_os::user::user_and_group();
    let side = Side::open(path).context("open", path)?;
    let mut folders = vec![RelPath::root()];
    while let Some(folder) = folders.pop() {
        let listed = side.list(folder.as_bytes()).context("list", path)?;
        for (name, facts) in listed {
            let below = folder.join(&name);
            let owner = &facts.ownership;
            let what = match () {
                () if owner.user != user => format!("user {}", owner.user),
                () if owner.group != group => format!("group {}", owner.group),
                () if matches!(facts.kind, NodeKind::Device { .. }) => "a device node".to_owned(),
                () => {
                    if facts.kind == NodeKind::Folder {
                        folders.push(below);
                    }
                    continue;
                }
            };
            let shown = fsure_os::path::from_bytes(below.as_bytes());
            let shown = path.join(shown);
            return Err(usage(
                format!(
                    "{} has {what}: without root, fsure can restore only your own",
                    shown.display()
                ),
                &format!(
                    "run it with sudo, or, if they should be yours, 'chown -R {user}:{group}' the \
                     folder first"
                ),
            ));
        }
    }
    Ok(())
}
