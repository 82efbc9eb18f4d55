//! `fsure ram bind` where folders, mounts and files are not where they were: moved,
//! covered, or reached by a second way.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::fsure;
use crate::support::ram_machine::{
    Disk, bind, home, is_bound, is_there, kill, kill_daemons, on_own_machine, process, ram, sh,
    status, unbind, until, wait_while,
};

/// Above `work`, which is what is bound.
fn folders(disk: &Path) -> [std::path::PathBuf; 2] {
    let [one, other] = ["one", "other"].map(|name| disk.join(name));
    fs::create_dir_all(one.join("work")).expect("make");
    fs::write(one.join("work/file"), "first").expect("write");
    [one, other]
}

#[test]
fn a_folder_that_is_moved_is_kept_where_it_is_by_then() {
    on_own_machine(
        module_path!(),
        "a_folder_that_is_moved_is_kept_where_it_is_by_then",
        64,
        |disk| {
            let [one, other] = folders(&disk.0);
            let (old, new) = (one.join("work"), other.join("work"));
            bind(&old);
            fs::rename(&one, &other).expect("what is above it can be renamed");
            fs::write(new.join("file"), "later").expect("write");
            let state =
                until(&new, |code, state| code == 0 && state["generation"].as_u64() > Some(0));
            assert_eq!(state["path"].as_str(), new.to_str());
            let run = ram(&["unbind"], &old);
            assert!(run.code == 2 && run.stderr.contains("shows which folders"), "{run:?}");
            // What comes in its place has the same name in the registry.
            fs::create_dir_all(&old).expect("make");
            let run = ram(&["bind"], &old);
            assert!(run.code == 2 && run.stderr.contains("its path is now"), "{run:?}");
            fs::remove_dir(&old).and_then(|()| fs::remove_dir(&one)).expect("remove");
            // Moved while no process keeps it.
            kill_daemons();
            fs::write(new.join("file"), "last").expect("write");
            fs::rename(&other, &one).expect("rename");
            let run = ram(&["recover"], &old);
            assert!(run.code == 0 && run.stdout.contains("kept again"), "{run:?}");
            fs::rename(&one, &other).expect("rename");
            unbind(&new);
            assert_eq!(fs::read(new.join("file")).expect("read"), b"last");
            assert!(!is_bound(&new) && !new.join(".fsure-ram").exists());
            sh("test -z \"$(ls /var/lib/fsure/ram/*.json 2>/dev/null)\"");
        },
    );
}

#[test]
fn a_folder_that_is_mounted_elsewhere_is_refused() {
    on_own_machine(module_path!(), "a_folder_that_is_mounted_elsewhere_is_refused", 64, |disk| {
        let folder = disk.folder();
        let (path, alias) = (folder.display(), disk.0.parent().expect("a folder").join("alias"));
        let (alias, disk) = (alias.display(), disk.0.display());
        sh(&format!("mkdir {alias}"));
        let second = "$(findmnt -no SOURCE -T ";
        for (does, leads) in [
            (format!("mount --bind {path} {alias}"), ""),
            (format!("mount --bind {path}/below {alias}"), ""),
            (format!("mount {second}{path}) {alias}"), "/work"),
        ] {
            sh(&does);
            let run = ram(&["bind"], &folder);
            let way = format!("{alias}{leads}");
            assert!(run.code == 2 && run.stderr.contains(&way), "{does}: {run:?}");
            sh(&format!("umount {alias}"));
        }
        // What cannot be written to, and what gets the RAM side, too.
        sh(&format!("mount --bind {path} {alias} && mount -o remount,bind,ro {alias}"));
        bind(&folder);
        unbind(&folder);
        sh(&format!("umount {alias} && mount --make-shared {disk} && mount --bind {path} {alias}"));
        bind(&folder);
        sh(&format!("echo seen > {alias}/seen"));
        assert_eq!(fs::read(folder.join("seen")).expect("read"), b"seen\n");
        unbind(&folder);
        // A container has it.
        sh(&format!("umount {alias} && mount --make-private {disk}"));
        let own = format!("mount --bind {path} {alias} && echo && read -r end");
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", &own]);
        let mut container = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let container = container.as_mut().expect("a shell");
        let output = container.stdout.as_mut().expect("its output");
        std::io::Read::read_exact(output, &mut [0]).expect("a word");
        let run = ram(&["bind"], &folder);
        assert!(run.code == 0 && run.stderr.contains("mounts of its own"), "{run:?}");
        drop(container.stdin.take());
        container.wait().expect("wait");
        unbind(&folder);
    });
}

#[test]
fn a_daemon_that_cannot_take_over_is_not_reported_as_its_keeper() {
    on_own_machine(
        module_path!(),
        "a_daemon_that_cannot_take_over_is_not_reported_as_its_keeper",
        64,
        |disk| {
            let folder = disk.folder();
            bind(&folder);
            // A daemon that takes it over would have to lay hands on what is not fsure's.
            let own = home().join("disk/.fsure-ram");
            sh(&format!("chmod 777 {}", own.display()));
            kill(&[process("worker", 0)]);
            let run = ram(&["recover"], &folder);
            assert!(run.code == 5 && run.stderr.contains("not made by fsure"), "{run:?}");
            let (code, state) = status(&folder);
            assert!(code == 1 && state.to_string().contains("not made by fsure"), "{state}");
            sh(&format!("chmod 700 {}", own.display()));
            let run = ram(&["recover"], &folder);
            assert!(run.code == 0 && run.stdout.contains("nothing needs to be done"), "{run:?}");
            unbind(&folder);
        },
    );
}

/// As when the machine was started, and the disk is mounted late.
#[test]
fn a_folder_whose_disk_is_not_there_yet_is_not_forgotten() {
    on_own_machine(
        module_path!(),
        "a_folder_whose_disk_is_not_there_yet_is_not_forgotten",
        64,
        |disk| {
            let path = disk.0.display();
            bind(&disk.0);
            kill_daemons();
            let (home, image) = (home(), disk.0.with_file_name("image"));
            sh(&format!("umount {path} && umount {}/disk && umount {path}", home.display()));
            fs::remove_dir_all(home).expect("what is in memory");
            let run = ram(&["recover"], &disk.0);
            assert!(run.code == 5 && run.stderr.contains("mount its disk"), "{run:?}");
            assert_eq!(fsure(&["ram", "recover"]).code, 5, "it is left for the next time");
            sh(&format!("mount -o loop {} {path}", image.display()));
            let run = fsure(&["ram", "recover"]);
            assert!(run.code == 0 && run.stdout.contains("no generation was under way"), "{run:?}");
            assert_eq!(fsure(&["ram", "recover"]).stdout, "");
        },
    );
}

#[test]
fn a_folder_that_is_put_back_at_once_has_one_keeper() {
    on_own_machine(
        module_path!(),
        "a_folder_that_is_put_back_at_once_has_one_keeper",
        64,
        |disk| {
            let folder = disk.folder();
            bind(&folder);
            let keeper = process("keeper", 0);
            // It has not seen yet that its folder is out of RAM.
            sh(&format!("kill -STOP {keeper}"));
            unbind(&folder);
            bind(&folder);
            sh(&format!("kill -CONT {keeper}"));
            wait_while(|| is_there(keeper));
            assert_ne!(process("keeper", 0), keeper);
            assert!(is_bound(&folder));
            unbind(&folder);
        },
    );
}

#[test]
fn what_is_mounted_over_it_is_left_alone() {
    on_own_machine(module_path!(), "what_is_mounted_over_it_is_left_alone", 64, |disk| {
        let folder = disk.folder();
        bind(&folder);
        sh(&format!("mount -t tmpfs -o size=1m another {}", folder.display()));
        fs::write(folder.join("full"), vec![1; 1 << 20]).expect("there is room for that");
        // The worker looks after the keeper, and then after the memory.
        for _ in 0..2 {
            let keeper = process("keeper", 0);
            kill(&[keeper]);
            process("keeper", keeper);
        }
        let table = fs::read_to_string("/proc/self/mountinfo").expect("the mount table");
        let another = table.lines().find(|line| line.contains(" another ")).expect("it is there");
        assert!(another.contains("size=1024k"), "{another}");
        sh(&format!("umount {}", folder.display()));
        unbind(&folder);
    });
}

#[test]
fn what_is_written_to_a_disk_made_of_a_file_comes_in_time() {
    on_own_machine(
        module_path!(),
        "what_is_written_to_a_disk_made_of_a_file_comes_in_time",
        64,
        |disk| {
            // What it is made of is identified by its path: no other test has that.
            let place = disk.0.with_file_name("looped");
            fs::create_dir(&place).expect("make");
            sh(&format!("mount --move {} {}", disk.0.display(), place.display()));
            let folder = Disk(place).folder();
            bind(&folder);
            // Too large to have a turn of its own.
            let (image, behind) = (folder.join("below/image"), home().join("disk/below/image"));
            fs::File::create(&image).and_then(|file| file.set_len(2 << 30)).expect("an image");
            let looped = Command::new("losetup").args(["-f", "--show"]).arg(&image).output();
            let device = String::from_utf8(looped.expect("losetup").stdout).expect("a name");
            let device = device.trim();
            for content in ["first", "again"] {
                // Nothing of before is to be looked at once more.
                for _ in 0..3 {
                    assert_eq!(ram(&["sync"], &folder).code, 0);
                }
                sh(&format!("echo {content} | dd of={device} conv=fsync status=none"));
                wait_while(|| {
                    let mut file = fs::File::open(&behind).expect("the disk side");
                    let mut start = vec![0; content.len()];
                    std::io::Read::read_exact(&mut file, &mut start).expect("read");
                    start != content.as_bytes()
                });
            }
            sh(&format!("losetup -d {device}"));
            unbind(&folder);
        },
    );
}
