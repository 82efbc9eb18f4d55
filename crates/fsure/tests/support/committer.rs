//! A program that commits: as small as one can be, so that what it calls is
//! known, and compiled both with a loader and without.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `committer FILE COUNT PAUSE_MS PROCESSES`: each process overwrites, and calls
/// `fdatasync`, so often. Says what the longest call took; ends with 9 where one
/// failed. With one more argument it says so and stays.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static long us(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000; }
static int commits(const char *name, long count, long pause, int process) {
    int file = open(name, O_RDWR | O_CREAT, 0600);
    char data[512]; long longest = 0;
    if (file < 0) { perror(name); return 8; }
    if (getenv("PATH_ONLY")) {
        int path = open(name, O_PATH);
        return fsync(path) == -1 && errno == EBADF ? 0 : 6;
    }
    for (long n = 0; n < count; n++) {
        memset(data, 'a' + n % 26, sizeof data);
        off_t at = (process * 64 + n % 64) * 512;
        long before = us(); int result;
        if (getenv("WITH_RWF")) {
            struct iovec v = { data, sizeof data };
            result = pwritev2(file, &v, 1, at, RWF_DSYNC) == sizeof data ? 0 : -1;
        } else {
            if (pwrite(file, data, sizeof data, at) != sizeof data) { perror("pwrite"); return 7; }
            result = fdatasync(file);
        }
        if (result) { printf("failed %d after %ld\n", errno, n); return 9; }
        long took = us() - before;
        if (took > longest) longest = took;
        if (pause) { usleep(pause * 1000); }
    }
    printf("longest %ld us\n", longest); fflush(stdout);
    return 0;
}
int main(int argc, char **argv) {
    long count = atol(argv[2]), pause = atol(argv[3]); int processes = atoi(argv[4]), worst = 0;
    puts("begins"); fflush(stdout);
    for (int n = 1; n < processes; n++)
        if (!fork()) return commits(argv[1], count, pause, n);
    worst = commits(argv[1], count, pause, 0);
    for (int n = 1, status; n < processes && wait(&status) > 0; n++)
        if (WEXITSTATUS(status) > worst) worst = WEXITSTATUS(status);
    if (argc > 5) { puts("lingers"); fflush(stdout); for (;;) sleep(1000); }
    return worst;
}
"#;

/// Compiles it into a folder.
///
/// # Errors
/// What the compiler said: meant for `or_skip`.
pub fn committer(folder: &Path, is_static: bool) -> Result<PathBuf, String> {
    let source = folder.join("committer.c");
    std::fs::write(&source, SOURCE).expect("write a source");
    let program = folder.join(if is_static { "committer-static" } else { "committer" });
    let mut cc = Command::new("cc");
    cc.args(if is_static { &["-static"][..] } else { &[] });
    cc.args(["-O1", "-w", "-o"]).arg(&program).arg(&source);
    let output = cc.output().map_err(|error| format!("no C compiler: {error}"))?;
    if output.status.success() {
        return Ok(program);
    }
    // Not every system has a C library to link like that.
    assert!(is_static, "{}", String::from_utf8_lossy(&output.stderr));
    Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)))
}
