/* Reads the files that standard input names, one after the other in each of THREADS threads,
 * and prints the rate: past the page cache (direct) or through it (cached). It is what
 * `fsure speed --tree` is compared with on small files (docs/method.md).
 *
 *     cc -O2 -pthread -o read_files bench/read_files.c
 *     find DIR -type f -printf '%i %p\n' | sort -n | cut -d' ' -f2- > list
 *     ./read_files direct 8 < list; ./read_files cached 8 < list
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 20, THREADS_MAX = 256, REQUEST = 1 << 20 };
static char *names[FILES_MAX];
static int count, flags;
static atomic_int next;
static atomic_long bytes;

static int open_file(const char *name, int more)
{
    int file = open(name, O_RDONLY | more);
    if (file < 0)
        err(1, "%s", name);
    return file;
}

static void *reader(void *unused)
{
    void *buffer = aligned_alloc(4096, REQUEST);
    for (int at; (at = next++) < count;) {
        int file = open_file(names[at], flags);
        long got;
        while ((got = read(file, buffer, REQUEST)) > 0)
            bytes += got;
        if (got < 0)
            err(1, "%s", names[at]);
        close(file);
    }
    free(buffer);
    return unused;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int arguments, char **argument)
{
    int threads = arguments == 3 ? atoi(argument[2]) : 0;
    int is_direct = arguments == 3 && !strcmp(argument[1], "direct");
    int is_cached = arguments == 3 && !strcmp(argument[1], "cached");
    if (!(is_direct || is_cached) || threads < 1 || threads > THREADS_MAX)
        errx(2, "usage: read_files direct|cached THREADS < LIST");
    flags = is_direct ? O_DIRECT : 0;
    for (char line[4096]; count < FILES_MAX && fgets(line, sizeof line, stdin); count++) {
        line[strcspn(line, "\n")] = 0;
        names[count] = strdup(line);
        int file = open_file(line, 0);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        close(file);
    }
    pthread_t started[THREADS_MAX];
    double begun = now();
    for (int at = 0; at < threads; at++)
        pthread_create(&started[at], NULL, reader, NULL);
    for (int at = 0; at < threads; at++)
        pthread_join(started[at], NULL);
    printf("%s: %.0f MiB/s\n", argument[1], bytes / (now() - begun) / 1048576);
}
