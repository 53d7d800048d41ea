/* A shim for LD_PRELOAD: counts the calls of libc that change files under a folder, and lets one of them fail.

   fault_arm(folder, point, kind) begins to count. At call number `point` (from 1 on): kind 0 only counts; ENOSPC or
   EIO fail with that error; -1 dies by SIGKILL instead of the call; -2 writes half, if it is a write, and dies.
   fault_count() tells how many calls there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[4096];
static long calls = 0, point = 0;
static int kind = 0, armed = 0;

void fault_arm(const char *path, long at, int what) {
    strncpy(folder, path, sizeof folder - 1);
    calls = 0; point = at; kind = what; armed = 1;
}
long fault_count(void) { return calls; }

static int inside(const char *path) {
    char whole[8192];
    if (!armed || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(whole, 4096)) return 0;
        strcat(whole, "/");
        strncat(whole, path, 4000);
        path = whole;
    }
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int inside_fd(int fd) {
    char link[64], path[4096];
    if (!armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(path);
}

/* Count a call; 1 if it must fail (errno is set). */
static int strike(void) {
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != point || kind == 0) return 0;
    if (kind < 0) { kill(getpid(), SIGKILL); for (;;) pause(); }
    errno = kind;
    return 1;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__) = 0; \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(name) int name(const char *path, int flags, ...) { \
    mode_t mode = 0; va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); \
    REAL(int, #name, const char *, int, ...); \
    if (inside(path) && strike()) return -1; \
    return real(path, flags, mode); }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *bytes, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (inside_fd(fd)) {
        if (kind == -2 && calls + 1 == point) real(fd, bytes, n / 2);
        if (strike()) return -1;
    }
    return real(fd, bytes, n);
}

#define ONE_FD(name) int name(int fd) { REAL(int, #name, int); \
    if (inside_fd(fd) && strike()) return -1; return real(fd); }
ONE_FD(fsync)
ONE_FD(fdatasync)
ONE_FD(close)

#define TWO_PATHS(name) int name(const char *from, const char *to) { REAL(int, #name, const char *, const char *); \
    if ((inside(from) || inside(to)) && strike()) return -1; return real(from, to); }
TWO_PATHS(rename)
TWO_PATHS(link)

#define ONE_PATH(name) int name(const char *path) { REAL(int, #name, const char *); \
    if (inside(path) && strike()) return -1; return real(path); }
ONE_PATH(unlink)
ONE_PATH(rmdir)

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    if (inside(path) && strike()) return -1;
    return real(path, mode);
}

int truncate(const char *path, off_t n) {
    REAL(int, "truncate", const char *, off_t);
    if (inside(path) && strike()) return -1;
    return real(path, n);
}

int utimensat(int at, const char *path, const struct timespec times[2], int flags) {
    REAL(int, "utimensat", int, const char *, const struct timespec *, int);
    if (inside(path) && strike()) return -1;
    return real(at, path, times, flags);
}

int unlinkat(int at, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    if ((at == AT_FDCWD ? inside(path) : inside_fd(at)) && strike()) return -1;
    return real(at, path, flags);
}
