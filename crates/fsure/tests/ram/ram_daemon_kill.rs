//! The daemon of a RAM folder, and the commands that start and end one, killed at any
//! moment: the machine goes on, so nothing that was written may be gone, and one
//! `bind` puts everything in order.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::campaign;
use crate::support::ram_machine::{
    Disk, FSURE, bind, is_bound, kill, kill_daemons, on_own_machine, process, ram, unbind,
};
use fsure::workload::{check, workload, write_generation};
use serde_json::Value;

/// The processes that are killed, and the work that goes on at the time.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// The process that brings the disk side up to date.
    Worker,
    /// The process that starts the worker again.
    Keeper,
    /// Both, while files are written.
    Both,
    /// All processes, while the folder is taken out of RAM.
    Unbinding,
    /// All processes, while the folder is put into RAM.
    Binding,
    /// All processes, while a generation is requested.
    Syncing,
}

const SCENES: [Scene; 6] =
    [Scene::Worker, Scene::Unbinding, Scene::Both, Scene::Binding, Scene::Keeper, Scene::Syncing];
/// Kills of all scenes together: three of each.
const KILLS: u32 = 18;
/// The longest delay before a kill: longer than a scene takes.
const LONGEST: Duration = Duration::from_millis(120);

#[test]
fn no_kill_of_a_daemon_loses_anything() {
    on_own_machine(module_path!(), "no_kill_of_a_daemon_loses_anything", 128, |disk| {
        let kills = campaign(KILLS);
        let run = Killed::new(disk);
        let mut generation = 0;
        for number in 0..kills {
            let scene = SCENES[number as usize % SCENES.len()];
            // No two at the same moment: spread evenly, in no order.
            let after = LONGEST.mul_f64((f64::from(number) * 0.618_034).fract());
            generation = run.play(scene, after, generation);
            run.put_in_order();
            run.is_all_there(generation, &format!("kill {number}, {scene:?} after {after:?}"));
        }
        unbind(&run.folder);
        run.is_all_there(generation, "at the end");
        assert!(!run.folder.join(".fsure-ram").exists());
        writeln!(std::io::stdout(), "{kills} kills, {generation} generations").expect("write");
    });
}

/// A folder of numbered generations, and its daemon.
struct Killed<'a> {
    disk: &'a Disk,
    /// As the workload calls its disk side.
    folder: std::path::PathBuf,
}

impl<'a> Killed<'a> {
    fn new(disk: &'a Disk) -> Self {
        let folder = disk.0.join("disk");
        fs::create_dir(&folder).expect("make");
        bind(&folder);
        Self { disk, folder }
    }

    /// Plays a scene and kills; the last generation that was written.
    fn play(&self, scene: Scene, after: Duration, last: u64) -> u64 {
        match scene {
            Scene::Worker => self.write_until(after, last, || kill(&[process("worker", 0)])),
            Scene::Keeper => self.write_until(after, last, || kill(&[process("keeper", 0)])),
            Scene::Both => self.write_until(after, last, || self.kill_all(None)),
            Scene::Unbinding => self.during("unbind", after, last),
            Scene::Syncing => self.during("sync", after, last),
            Scene::Binding => {
                unbind(&self.folder);
                self.during("bind", after, last)
            }
        }
    }

    /// Generations in quick succession, until after some time something is killed.
    fn write_until(&self, after: Duration, last: u64, kill: impl FnOnce() + Send) -> u64 {
        std::thread::scope(|scope| {
            let killer = scope.spawn(move || {
                std::thread::sleep(after);
                kill();
            });
            let mut number = last;
            while !killer.is_finished() {
                number += 1;
                write_generation(&self.folder, number).expect("write");
            }
            killer.join().expect("kill");
            // And one that no daemon got.
            write_generation(&self.folder, number + 1).expect("write");
            number + 1
        })
    }

    /// A command that is killed with all of the daemon.
    fn during(&self, command: &str, after: Duration, last: u64) -> u64 {
        let number = last + 1;
        write_generation(&self.folder, number).expect("write");
        let mut child = Command::new(FSURE)
            .args(["ram", command])
            .arg(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start");
        std::thread::sleep(after);
        self.kill_all(Some(&mut child));
        number
    }

    /// Kills a command, the keeper and the worker, and what they have started of each
    /// other in between.
    fn kill_all(&self, child: Option<&mut Child>) {
        if let Some(child) = child {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
        kill_daemons();
    }

    /// As a person would: says again that it is to be in RAM.
    fn put_in_order(&self) {
        if let Some(Value::Bool(true)) = state(&self.folder).get("kept") {
            return;
        }
        let run = ram(&["bind", "--max-loss", "300ms"], &self.folder);
        // A keeper that a worker has started meanwhile is there already.
        let is_there = run.code == 2 && run.stderr.contains("already in RAM");
        assert!(run.code == 0 || is_there, "{run:?}");
        assert!(is_bound(&self.folder), "{run:?}");
    }

    /// In what is seen all files are of this generation, and the disk side takes it.
    fn is_all_there(&self, generation: u64, when: &str) {
        let seen = check(workload("ram:synced").expect("known"), &self.disk.0);
        assert_eq!((seen.corrupt.as_deref(), seen.last), (None, Some(generation)), "{when}");
    }
}

/// Returns the line of `ram status --json` for a folder, or null if there is none.
fn state(folder: &Path) -> Value {
    let run = ram(&["status", "--json"], folder);
    run.stdout.lines().nth(1).and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
}
