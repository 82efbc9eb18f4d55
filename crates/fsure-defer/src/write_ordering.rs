//! Judges if a file system keeps the order of its writes over a power cut: those do
//! whose commits are whole prefixes. Pure, so that every row of the table in
//! `docs/defer.md` is a test.

use std::path::Path;

use fsure_os::defer::MountedFs;

use fsure_core::shell_quoted;

/// The treatment of the order by a file system, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The content after a power cut is that of one moment before it.
    Kept,
    /// It is not kept, or not known to be.
    NotKept {
        /// The reason why it is not kept.
        why: String,
        /// The command or setting that makes it keep the order.
        remedy: String,
    },
    /// There is nothing to defer, whatever the user forces.
    Pointless {
        /// The reason why there is nothing to defer.
        why: String,
        /// The advice on running the command without `defer`.
        remedy: String,
    },
}

/// The judgement on one file system.
pub(super) fn order(mounted: &MountedFs) -> Order {
    let has = |option: &str| mounted.options.iter().any(|other| other == option);
    let point = shell_quoted(Path::new(&mounted.point));
    let not_kept = |why: &str, remedy: String| Order::NotKept { why: why.to_owned(), remedy };
    let pointless = |why: &str, remedy: &str| Order::Pointless {
        why: why.to_owned(),
        remedy: remedy.to_owned(),
    };
    match &*mounted.kind {
        "tmpfs" | "ramfs" => pointless(
            "it is in memory: nothing there survives a power cut, and 'fsync' costs nothing",
            "run the command without 'fsure defer'",
        ),
        "zfs" => pointless(
            "it defers by itself, and in order",
            "'zfs set sync=disabled DATASET', and run the command without 'fsure defer'",
        ),
        "ext4" | "btrfs" if has("nobarrier") || has("barrier=0") => not_kept(
            "it is mounted so that no flush reaches the disk",
            format!("mount -o remount,barrier {point}"),
        ),
        // Whatever the mount says: `ext4_inode_journal_mode`.
        "ext4" if mounted.is_encrypted => not_kept(
            "the files in that folder are encrypted, and what is in them does not go through \
             its journal",
            "use a folder without encryption of its own, on an encrypted disk".to_owned(),
        ),
        "ext4" | "btrfs" if mounted.held_flushes.is_some() => held(mounted),
        "ext4" if has("data=journal") => Order::Kept,
        "ext4" => not_kept(
            "only what goes through its journal is in order, and that is its metadata",
            ext4_remedy(mounted),
        ),
        "btrfs" => btrfs(mounted),
        _ => not_kept(
            "nothing keeps the order of its writes",
            "use ext4 with data=journal or btrfs with flushoncommit,notreelog".to_owned(),
        ),
    }
}

/// The page cache below a loop device writes in any order.
fn held(mounted: &MountedFs) -> Order {
    let how = mounted.held_flushes.as_deref().unwrap_or_default();
    let setting = how.split(' ').find(|word| word.starts_with("/sys/"));
    let remedy = setting.map(|setting| format!("echo 'write back' > {setting}"));
    Order::NotKept {
        why: format!("flushes are {how}"),
        remedy: remedy.unwrap_or_else(|| "mount it with barriers".to_owned()),
    }
}

fn btrfs(mounted: &MountedFs) -> Order {
    let has = |option: &str| mounted.options.iter().any(|other| other == option);
    let point = shell_quoted(Path::new(&mounted.point));
    if has("nodatacow") {
        return Order::NotKept {
            why: "it writes in place, which has no order".to_owned(),
            remedy: format!("mount -o remount,datacow {point}"),
        };
    }
    if mounted.in_place {
        return Order::NotKept {
            why: "new files there are written in place, which has no order".to_owned(),
            remedy: "run 'chattr -C' on the folder, and then copy its files again".to_owned(),
        };
    }
    let missing: Vec<_> =
        ["flushoncommit", "notreelog"].into_iter().filter(|option| !has(option)).collect();
    if missing.is_empty() {
        return Order::Kept;
    }
    Order::NotKept {
        why: "its commits are not all of what was written before, or a file can get ahead of \
              the others"
            .to_owned(),
        remedy: format!("mount -o remount,{} {point}", missing.join(",")),
    }
}

/// The kernel does not change `data=` on a remount.
fn ext4_remedy(mounted: &MountedFs) -> String {
    let (point, source) =
        (shell_quoted(Path::new(&mounted.point)), shell_quoted(Path::new(&mounted.source)));
    if mounted.point == "/" {
        return format!(
            "tune2fs -o journal_data {source}, and boot again (all data is then written twice; \
             'tune2fs -o ^journal_data {source}' undoes it)"
        );
    }
    format!(
        "umount {point} && mount -o data=journal {source} {point} (a remount cannot change it, and \
         all data is then written twice); permanently: tune2fs -o journal_data {source}, and mount \
         it again ('tune2fs -o ^journal_data {source}' undoes it)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(kind: &str, options: &str) -> MountedFs {
        MountedFs {
            kind: kind.to_owned(),
            source: "/dev/sdb1".to_owned(),
            point: "/srv/my data".to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
            in_place: false,
            is_encrypted: false,
            held_flushes: None,
        }
    }

    fn remedy(kind: &str, options: &str) -> Option<String> {
        match order(&mounted(kind, options)) {
            Order::Kept => None,
            Order::NotKept { remedy, .. } | Order::Pointless { remedy, .. } => Some(remedy),
        }
    }

    #[test]
    fn what_keeps_the_order_and_what_to_do_about_the_rest() {
        for (kind, options, expected) in [
            ("ext4", "rw,relatime,data=journal", None),
            ("ext4", "rw,data=journal,nobarrier", Some("remount,barrier '/srv/my data'")),
            ("ext4", "rw,data=journal,barrier=0", Some("remount,barrier '/srv/my data'")),
            ("ext4", "rw,relatime", Some("umount '/srv/my data' && mount -o data=journal /dev/")),
            ("ext4", "rw,data=ordered", Some("tune2fs -o journal_data /dev/sdb1")),
            ("btrfs", "rw,flushoncommit,notreelog,space_cache=v2", None),
            ("btrfs", "rw,notreelog", Some("mount -o remount,flushoncommit '/srv/my data'")),
            ("btrfs", "rw,flushoncommit", Some("remount,notreelog '/srv")),
            ("btrfs", "rw", Some("remount,flushoncommit,notreelog '/srv")),
            ("btrfs", "rw,flushoncommit,notreelog,nodatacow", Some("remount,datacow")),
            ("btrfs", "rw,flushoncommit,notreelog,nobarrier", Some("remount,barrier")),
            ("xfs", "rw", Some("ext4 with data=journal")),
            ("overlay", "rw,data=journal", Some("ext4 with data=journal")),
            ("zfs", "rw", Some("sync=disabled")),
            ("tmpfs", "rw", Some("without 'fsure defer'")),
        ] {
            match (remedy(kind, options), expected) {
                (None, None) => {}
                (Some(is), Some(part)) => assert!(is.contains(part), "{kind} {options}: {is}"),
                (is, _) => panic!("{kind} {options}: {is:?} and not {expected:?}"),
            }
        }
        let root = MountedFs { point: "/".to_owned(), ..mounted("ext4", "rw") };
        assert!(matches!(order(&root), Order::NotKept { remedy, .. } if remedy.contains("boot")));
        let in_place = MountedFs { in_place: true, ..mounted("btrfs", "flushoncommit,notreelog") };
        assert!(matches!(order(&in_place), Order::NotKept { remedy, .. } if remedy.contains("-C")));
        let secret = MountedFs { is_encrypted: true, ..mounted("ext4", "data=journal") };
        assert!(matches!(order(&secret), Order::NotKept { why, .. } if why.contains("encrypted")));
        let held = "kept from the file of loop3 by 'write through' in /sys/block/loop3/x";
        let held =
            MountedFs { held_flushes: Some(held.to_owned()), ..mounted("ext4", "data=journal") };
        let expected = "echo 'write back' > /sys/block/loop3/x";
        assert!(matches!(order(&held), Order::NotKept { remedy, .. } if remedy == expected));
        let on_btrfs = mounted("btrfs", "flushoncommit,notreelog");
        assert_eq!(order(&MountedFs { is_encrypted: true, ..on_btrfs }), Order::Kept);
    }
}
