//! `fsure crash --serve`: a drive that other programs use, and what any client asks of
//! it on its socket.
#![cfg(target_os = "linux")]

use crate::support;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::support::or_skip;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

/// A drive that is served, ended with this.
struct Serving {
    server: Child,
    socket: PathBuf,
    first_line: Value,
}

impl Serving {
    fn start(socket: &Path, arguments: &[&str]) -> Result<Self, String> {
        Self::start_with(None, socket, arguments)
    }

    /// With one more variable in its environment.
    fn start_with(
        variable: Option<(&str, &OsStr)>,
        socket: &Path,
        arguments: &[&str],
    ) -> Result<Self, String> {
        let mut server = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(["crash", "--json", "--serve", socket.to_str().unwrap()])
            .args(arguments)
            .envs(variable)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        if line.starts_with(r#"{"type":"start","#) {
            line.clear();
            output.read_line(&mut line).unwrap();
        }
        let first_line = serde_json::from_str(&line).unwrap_or(Value::Null);
        if first_line["type"] == "serving" {
            return Ok(Self { server, socket: socket.to_owned(), first_line });
        }
        let output = server.wait_with_output().unwrap();
        Err(line + &String::from_utf8_lossy(&output.stderr))
    }

    fn client(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(&self.socket).unwrap())
    }

    fn ask(&self, line: &str) -> Value {
        asked(&mut self.client(), line)
    }

    fn done(&self, line: &str) -> Value {
        let reported = self.ask(line);
        assert_eq!(reported["ok"], true, "{line}: {reported}");
        reported
    }

    /// Ends it, and says how it ended.
    fn end(mut self) -> Option<i32> {
        self.done(r#"{"do":"end"}"#);
        self.server.wait().unwrap().code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn asked(client: &mut BufReader<UnixStream>, line: &str) -> Value {
    client.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    answer(client)
}

fn answer(client: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

fn cut(variant: &str, to: &Path) -> String {
    format!(r#"{{"do":"cut","variant":"{variant}","seed":7,"to":"{}"}}"#, to.display())
}

fn shell(line: &str) -> Output {
    Command::new("sh").args(["-c", line]).output().unwrap()
}

fn is_mounted(place: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.contains(place.to_str().unwrap())
}

/// By their numbers.
fn children(of: &Child) -> Vec<String> {
    let line = format!("cat /proc/{}/task/*/children", of.id());
    String::from_utf8_lossy(&shell(&line).stdout).split_whitespace().map(str::to_owned).collect()
}

fn is_alive(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 60 s: {what}");
}

/// It responds to every client and to every request, and goes on.
#[test]
fn no_client_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let serving = Serving::start(&socket, &["--size", "1M"]).unwrap();
    assert_eq!(serving.first_line["type"], "serving");
    assert_eq!(serving.first_line["place"], Value::Null);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut patient = serving.client();
    for garbage in ["", "{", "\0", "null", "{\"do\":7}", "{\"do\":\"rm\"}", &"[".repeat(100_000)] {
        let reported = asked(&mut patient, garbage);
        assert_eq!(reported["ok"], false, "{garbage:.20}: {reported}");
    }
    patient.get_mut().write_all(b"\xff\xfe\n").unwrap();
    assert!(answer(&mut patient)["error"].as_str().unwrap().contains("UTF-8"));
    // A line that is too long is reported when it ends, and not kept.
    let mut long = serving.client();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        long.get_mut().write_all(&piece).unwrap();
    }
    long.get_mut().write_all(b"\n{\"do\":\"flush\"}\n").unwrap();
    assert!(answer(&mut long)["error"].as_str().unwrap().contains("12 MiB"));
    assert_eq!(answer(&mut long)["ok"], true);
    // One that breaks off, one that never ends its line, one that does not read.
    drop(asked(&mut serving.client(), "{"));
    let mut open = serving.client();
    open.get_mut().write_all(b"{\"do\":").unwrap();
    let mut deaf = serving.client();
    let read = "{\"do\":\"read\",\"offset\":0,\"length\":1048576}\n".repeat(50);
    deaf.get_mut().write_all(read.as_bytes()).unwrap();
    // As many as there may be, and one more; four are there.
    let crowd: Vec<_> = (0..60).map(|_| serving.client()).collect();
    wait_until("the last is refused", || {
        let mut line = String::new();
        let mut one_more = serving.client();
        let _ = one_more.get_mut().set_read_timeout(Some(Duration::from_millis(200)));
        let _ = one_more.read_line(&mut line);
        line.contains("too many clients")
    });
    drop(crowd);
    assert_eq!(asked(&mut patient, "{\"do\":\"status\"}")["flushes"], 1);
    wait_until("there is room again", || {
        let mut line = String::new();
        let mut client = serving.client();
        let _ = client.get_mut().write_all(b"{\"do\":\"status\"}\n");
        let _ = client.read_line(&mut line);
        line.contains("\"ok\":true")
    });
    let second = Serving::start(&socket, &[]).map(drop).unwrap_err();
    assert!(second.contains("in use"), "{second}");
    assert_eq!(serving.end(), Some(0));
    assert!(!socket.exists());
}

/// A real file system on it, by a loop device: what a cut leaves is mounted by
/// others, and a killed server leaves no mount.
#[test]
fn a_file_system_is_on_it() {
    const TEST: &str = "a_file_system_is_on_it";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("at")).unwrap();
    std::fs::create_dir(at("mnt")).unwrap();
    let place = at("at").to_str().unwrap().to_owned();
    let arguments = ["--drive", "lying", "--size", "32M", "--front", "file", "--at", &place];
    let Some(serving) = or_skip(TEST, Serving::start(&at("socket"), &arguments)) else { return };
    let shown = folder.path().display();
    let made = shell(&format!(
        "mkfs.ext4 -q -F {shown}/at/disk && mount -o loop {shown}/at/disk {shown}/mnt && \
         echo acknowledged >{shown}/mnt/file && sync {shown}/mnt/file"
    ));
    if !made.status.success() {
        return support::skip(TEST, &String::from_utf8_lossy(&made.stderr));
    }
    for variant in ["all", "none"] {
        serving.done(&cut(variant, &at(variant)));
    }
    let inside = cut("all", &at("at").join("image"));
    assert!(serving.ask(&inside)["error"].as_str().unwrap().contains("on the drive itself"));
    let unmounted = shell(&format!("umount {shown}/mnt")).status;
    assert!(unmounted.success());
    let look = |image: &str| {
        let line = format!(
            "mount -o loop {shown}/{image} {shown}/mnt && cat {shown}/mnt/file; umount {shown}/mnt"
        );
        String::from_utf8_lossy(&shell(&line).stdout).into_owned()
    };
    assert_eq!((look("all").as_str(), look("none").as_str()), ("acknowledged\n", ""));
    let mut serving = serving;
    serving.server.kill().unwrap();
    serving.server.wait().unwrap();
    wait_until("the mount is gone", || !is_mounted(&at("at")));
    // The socket of one that is gone is taken over.
    let again = Serving::start(&at("socket"), &arguments).unwrap();
    assert_eq!(again.end(), Some(0));
    assert!(!is_mounted(&at("at")));
}

/// Writes and flushes so often 4 MiB, each time of another value.
fn feed(serving: &Serving, times: u8) {
    let mut client = serving.client();
    for value in 1..=times {
        let data = BASE64.encode(vec![value; 4 << 20]);
        let write = format!(r#"{{"do":"write","offset":0,"data":"{data}"}}"#);
        assert_eq!(asked(&mut client, &write)["ok"], true);
        assert_eq!(asked(&mut client, r#"{"do":"flush"}"#)["ok"], true);
    }
}

/// It remembers far more than it holds, and not in memory.
#[test]
fn what_it_remembers_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let serving = Serving::start(&at("socket"), &["--size", "4M"]).unwrap();
    feed(&serving, 100);
    let status = std::fs::read_to_string(format!("/proc/{}/status", serving.server.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most < 200 << 10, "{most} KiB for 400 MiB that were written");
    assert_eq!(serving.done(r#"{"do":"flushes"}"#)["flushes"], 100);
    serving.done(&format!(r#"{{"do":"boundary","n":7,"to":"{}"}}"#, at("seven").display()));
    assert_eq!(std::fs::read(at("seven")).unwrap(), vec![7; 4 << 20]);
    assert_eq!(serving.end(), Some(0));
}

/// If there is no space left for its history it reports that, frees the space and goes on;
/// incomplete data is never returned.
#[test]
fn a_history_that_cannot_be_kept_is_not_returned() {
    const TEST: &str = "a_history_that_cannot_be_kept_is_not_returned";
    let folder = tempfile::tempdir().unwrap();
    let space = folder.path().join("room");
    std::fs::create_dir(&space).unwrap();
    let shown = space.display();
    if !shell(&format!("mount -t tmpfs -o size=24M room {shown}")).status.success() {
        return support::skip(TEST, "a mount is not allowed here");
    }
    let socket = folder.path().join("socket");
    let space = ("TMPDIR", space.as_os_str());
    let serving = Serving::start_with(Some(space), &socket, &["--size", "4M"]).unwrap();
    feed(&serving, 20);
    for request in [r#"{"do":"flushes"}"#, r#"{"do":"boundary","n":1,"to":"/nowhere/x"}"#] {
        let reported = serving.ask(request);
        let error = reported["error"].as_str().unwrap_or_else(|| panic!("{reported}"));
        assert!(error.contains("no longer recorded: No space left"), "{error}");
    }
    let left = shell(&format!("df --output=used {shown} | tail -n 1"));
    assert_eq!(serving.done(r#"{"do":"status"}"#)["flushes"], 20);
    assert_eq!(serving.end(), Some(0));
    assert!(shell(&format!("umount {shown}")).status.success());
    assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0", "the room is given back");
}

/// A folder that all see; a cut of it is a folder.
#[test]
fn a_folder_is_cut_into_a_folder() {
    const TEST: &str = "a_folder_is_cut_into_a_folder";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("at")).unwrap();
    let place = at("at").to_str().unwrap().to_owned();
    let serving = Serving::start(&at("socket"), &["--front", "folder", "--at", &place]);
    let Some(serving) = or_skip(TEST, serving) else { return };
    let done = shell(&format!(
        "cd {place} && echo kept >kept && ln kept again && ln -s kept link && chmod 6640 kept && \
         sync kept . && echo lost >lost && sync lost && mkdir -p sub/dir && : >hole && sync . && \
         truncate -s 9M hole && sync hole"
    ));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let status = serving.done(r#"{"do":"status"}"#);
    assert_eq!((&status["mode"], &status["syncs"]), (&"strict".into(), &5.into()));
    serving.done(&cut("none", &at("left")));
    let listed = shell(&format!(
        "cd {0} && ls && cat again link && stat -c '%h %a' kept && \
         stat -c '%s' hole",
        at("left").display()
    ));
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    // The folder 'sub' was synced after it was made, what is in it was not. No
    // user's file comes to run in the name of the user who asked for the cut.
    assert_eq!(listed, "again\nhole\nkept\nlink\nlost\nsub\nkept\nkept\n2 640\n9437184\n");
    assert_eq!(std::fs::read_dir(at("left/sub")).unwrap().count(), 0);
    let twice = serving.ask(&cut("none", &at("left")));
    assert_eq!(twice["ok"], false, "{twice}");
    let mut serving = serving;
    serving.server.kill().unwrap();
    serving.server.wait().unwrap();
    wait_until("the mount is gone", || !is_mounted(&at("at")));
}

/// A process that works in the mount when it ends does not keep it mounted.
#[test]
fn it_ends_while_another_process_uses_it() {
    for front in ["file", "folder"] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("at");
        std::fs::create_dir(&at).unwrap();
        let arguments = ["--front", front, "--at", at.to_str().unwrap()];
        let serving = Serving::start(&folder.path().join("socket"), &arguments);
        let Some(serving) = or_skip("it_ends_while_another_process_uses_it", serving) else {
            return;
        };
        let mut inside = Command::new("sleep").arg("1000").current_dir(&at).spawn().unwrap();
        let ended = serving.end();
        let is_left = is_mounted(&at);
        inside.kill().unwrap();
        inside.wait().unwrap();
        assert_eq!((ended, is_left), (Some(0), false), "{front}");
    }
}

/// It ends its own mount only, whatever has come over it or in its place.
#[test]
fn what_others_have_mounted_stays() {
    const TEST: &str = "what_others_have_mounted_stays";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("at");
    let place = at.to_str().unwrap();
    std::fs::create_dir(&at).unwrap();
    std::fs::write(at.join("file"), "").unwrap();
    let mounted = |line: &str| shell(&format!("{line} {place}")).status.success();
    let tmpfs = "mount -t tmpfs theirs";
    let start = |front: &str| {
        let arguments = ["--front", front, "--at", place];
        Serving::start(&folder.path().join("socket"), &arguments)
    };
    for front in ["file", "folder"] {
        let refused = start(front).map(drop).unwrap_err();
        assert!(refused.contains("there are files in it"), "{refused}");
    }
    std::fs::remove_file(at.join("file")).unwrap();
    if !mounted(tmpfs) {
        return support::skip(TEST, "a mount is not allowed here");
    }
    let refused = ["file", "folder"].map(|front| start(front).map(drop).unwrap_err());
    assert!(mounted("umount"), "it is there still");
    assert!(refused.iter().all(|error| error.contains("mounted there already")), "{refused:?}");
    for front in ["file", "folder"] {
        for is_instead in [true, false] {
            for is_killed in [true, false] {
                let Some(mut serving) = or_skip(TEST, start(front)) else { return };
                assert!((!is_instead || mounted("umount")) && mounted(tmpfs));
                if is_killed {
                    let guards = children(&serving.server);
                    assert!(!guards.is_empty());
                    serving.server.kill().unwrap();
                    wait_until("its guard has ended", || {
                        !guards.iter().any(|guard| is_alive(guard))
                    });
                } else {
                    assert_eq!(serving.end(), Some(0));
                }
                let theirs = shell(&format!("stat -f -c %T {place}"));
                assert!(mounted("umount") && (is_instead || mounted("umount -l")));
                let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
                assert_eq!(theirs, "tmpfs\n", "{front} {is_instead} {is_killed}");
            }
        }
    }
}
