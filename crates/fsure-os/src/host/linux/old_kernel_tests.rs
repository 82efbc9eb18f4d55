//! Reads where the kernel, or the filter of a container, lacks calls that fsure uses: every file
//! must be read by what is left. A filter holds for the thread that installs it, and what that
//! starts.

use std::io;
use std::path::Path;
use std::sync::Arc;

use libc::{c_long, sock_filter, sock_fprog};

use super::batch_read::Ring;
use super::file::did_not_run;
use crate::buffer::Buffer;
use crate::opener::Opener;
use crate::read::WAYS;
use crate::root_dir::Root;

/// `io_uring_setup`, `preadv2`, `openat2` and `cachestat`.
const MISSING: [c_long; 4] = [libc::SYS_io_uring_setup, libc::SYS_preadv2, libc::SYS_openat2, 451];

/// Has the kernel answer some calls of this thread with an error.
fn refuse(calls: &[c_long], errno: i32) -> io::Result<()> {
    let step =
        |code: u32, jt: usize, k: u32| sock_filter { code: code as u16, jt: jt as u8, jf: 0, k };
    // The number of the call is the first field of `seccomp_data`.
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    for (place, call) in calls.iter().enumerate() {
        steps.push(step(equals, calls.len() - place, *call as u32));
    }
    let give = libc::BPF_RET | libc::BPF_K;
    steps.push(step(give, 0, libc::SECCOMP_RET_ALLOW));
    steps.push(step(give, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    let program = sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: numbers, and a filter that lives through the call.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const program,
            ) == 0
    };
    if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn read_by_every_way(folder: &Path, content: &[u8]) {
    let root = Arc::new(Root::open(folder).unwrap());
    let mut buffer = Buffer::new(1 << 20).unwrap();
    for first in WAYS {
        for uses_cache in [false, true] {
            let opener = Opener::new(Arc::clone(&root), first);
            let (source, _) = opener.open(b"sub/f", uses_cache).unwrap();
            let filled = source.read_at(&mut buffer, 0, content.len());
            let filled = filled.unwrap_or_else(|error| panic!("{first:?}: {error}"));
            assert!(&buffer[..filled.bytes] == content, "{first:?}");
        }
    }
}

#[test]
fn files_are_read_without_the_calls_that_a_kernel_or_a_container_lacks() {
    let test = "files_are_read_without_the_calls_that_a_kernel_or_a_container_lacks";
    // A disk, and memory: where no read is direct.
    let memory = tempfile::tempdir_in("/dev/shm");
    let disk = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let folders = [Some(disk), memory.ok()];
    for folder in folders.iter().flatten() {
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let content: Vec<u8> = (0..100_001).map(|at| (at % 251) as u8).collect();
        std::fs::write(folder.path().join("sub/f"), &content).unwrap();
        for errno in [libc::ENOSYS, libc::EPERM] {
            let read = || {
                refuse(&MISSING, errno)?;
                assert!(Ring::new().is_none(), "the filter does not work");
                read_by_every_way(folder.path(), &content);
                Ok::<(), io::Error>(())
            };
            let done = std::thread::scope(|scope| scope.spawn(read).join());
            match done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(()) => {}
                Err(error) => did_not_run(test, &format!("there is no seccomp: {error}")),
            }
        }
    }
}
