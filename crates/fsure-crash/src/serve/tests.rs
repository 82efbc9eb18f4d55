//! The control socket's requests, without a socket.

use std::io::Write as _;

use fsure_os::user_file;
use serde_json::Value;

use super::*;

fn blocks() -> BackendDrive {
    let live = LiveDrive::new(Traits::new(Behavior::Honest), Image::new(1 << 20));
    live.with(|drive, _| drive.remember(tempfile::tempdir().unwrap().path())).unwrap();
    BackendDrive::Blocks(Arc::new(live))
}

fn ask(drive: &BackendDrive, line: &str) -> Value {
    serde_json::from_str(&answer(drive, Some(Path::new("/served")), Some(line)).0).unwrap()
}

fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    user_file::open(path).unwrap().read_to_end(&mut content).unwrap();
    content
}

fn done(drive: &BackendDrive, line: &str) -> Value {
    let response = ask(drive, line);
    assert_eq!(response["ok"], true, "{line}: {response}");
    response
}

fn refused(drive: &BackendDrive, line: &str) -> String {
    let response = ask(drive, line);
    assert_eq!(response["ok"], false, "{line}: {response}");
    response["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_drive_is_used_and_cut_by_requests() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let drive = blocks();
    done(&drive, r#"{"do":"write","offset":0,"data":"YQ=="}"#);
    done(&drive, r#"{"do":"flush"}"#);
    done(&drive, r#"{"do":"mark","n":7}"#);
    done(&drive, r#"{"do":"fua","offset":1,"data":"Yg=="}"#);
    done(&drive, r#"{"do":"trim","offset":0,"length":1}"#);
    done(&drive, r#"{"do":"flush"}"#);
    done(&drive, r#"{"do":"write","offset":2,"data":"Yw=="}"#);
    let status = done(&drive, r#"{"do":"status"}"#);
    let of = |name: &str| status[name].as_u64().unwrap();
    assert_eq!((of("writes"), of("trims"), of("flushes"), of("volatile_bytes")), (3, 1, 2, 1));
    assert_eq!(status["drive"], "honest");
    assert_eq!(done(&drive, r#"{"do":"read","offset":0,"length":3}"#)["data"], "AGJj");
    assert_eq!(done(&drive, r#"{"do":"flushes"}"#)["marked"], serde_json::json!([0, 7]));
    for (what, name, left) in [
        (r#""cut","variant":"none","seed":1"#, "none", *b"\0b\0"),
        (r#""cut","variant":"all","seed":1"#, "all", *b"\0bc"),
        (r#""boundary","n":1"#, "first", *b"a\0\0"),
        (r#""boundary","n":2"#, "second", *b"\0b\0"),
    ] {
        done(&drive, &format!(r#"{{"do":{what},"to":"{}"}}"#, to(name)));
        let image = content(Path::new(&to(name)));
        assert_eq!((image.len(), &image[..3]), (1 << 20, &left[..]), "{name}");
    }
    done(&drive, r#"{"do":"personality","drive":"lying:5s"}"#);
    assert_eq!(done(&drive, r#"{"do":"status"}"#)["drive"], "lying:5s");
    done(&drive, r#"{"do":"fail","after":0}"#);
    let error = refused(&drive, r#"{"do":"write","offset":0,"data":""}"#);
    assert!(error.contains("fails this request"), "{error}");
    done(&drive, r#"{"do":"write","offset":0,"data":""}"#);
    assert!(answer(&drive, None, Some(r#"{"do":"end"}"#)).1);
}

#[test]
fn an_impossible_request_is_reported_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    user_file::create_new(&there).unwrap().write_all(b"kept").unwrap();
    let drive = blocks();
    let cut = |to: &str| format!(r#"{{"do":"cut","variant":"none","seed":1,"to":"{to}"}}"#);
    for (line, why) in [
        ("", "not a request"),
        ("{", "not a request"),
        ("[]", "not a request"),
        (r#"{"do":"dance"}"#, "unknown variant `dance`, expected"),
        (r#"{"do":"cut"}"#, "missing field"),
        (r#"{"do":"flush","hard":true}"#, "unknown field"),
        (r#"{"do":"fail","after":-1}"#, "not a request"),
        (r#"{"do":"cut","variant":"most","seed":1,"to":"/x"}"#, "no variant is called"),
        (r#"{"do":"personality","drive":"kind"}"#, "no drive is called"),
        (r#"{"do":"write","offset":0,"data":"!"}"#, "not base64"),
        (r#"{"do":"write","offset":1048576,"data":"YQ=="}"#, "behind the end"),
        (r#"{"do":"read","offset":18446744073709551615,"length":1}"#, "behind the end"),
        (r#"{"do":"read","offset":0,"length":18446744073709551615}"#, "at most 8 MiB"),
        (r#"{"do":"trim","offset":1,"length":18446744073709551615}"#, "behind the end"),
        (r#"{"do":"boundary","n":1,"to":"/x"}"#, "there is no flush 1: there were 0"),
        (&cut("here"), "from the top"),
        (&cut("/other/../served/x"), "without '..'"),
        (&cut("/served/x"), "on the drive itself"),
        (&cut("/nowhere/x"), "cannot write /nowhere/x"),
        (&cut(there.to_str().unwrap()), "cannot write"),
    ] {
        let error = refused(&drive, line);
        assert!(error.contains(why), "{line}: {error}");
    }
    assert_eq!(content(&there), b"kept");
    assert!(answer(&drive, None, None).0.contains("at most 12 MiB"));
    let live = LiveFolder::new(Behavior::Honest, Mode::Strict, Latency::NONE, 1 << 20);
    let folder = BackendDrive::Files(live);
    assert!(refused(&folder, r#"{"do":"flush"}"#).contains("a folder has no blocks"));
    assert_eq!(done(&folder, r#"{"do":"status"}"#)["mode"], "strict");
}
