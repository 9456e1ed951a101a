/* Faults of a disk, for one run of the program: loaded before the C library, it lets one call fail, or ends the process there.
 *
 * FAULT_DIR   only calls about files below this folder count; an absolute path without links
 * FAULT_CALLS which calls count: any of the letters of `group_of` below
 * FAULT_AT    the number of the call at which it happens, from 1
 * FAULT_WHAT  an error number: this call and, as on a full disk, all later ones that count fail with it; or `kill`, `term`: a signal;
 *             or `cut`, `touch`: the file is cut off, or rewritten, after the call, which succeeds
 * FAULT_MARK  a file that is made when it happens
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 'o', CREATE = 'c', READ = 'r', MAP = 'm', WRITE = 'w', RENAME = 'n', REMOVE = 'u' };

static int calls;

static int below(const char *path) {
    const char *dir = getenv("FAULT_DIR");
    if (!dir || !path) return 0;
    /* The program is started in the folder. */
    return path[0] != '/' || strncmp(path, dir, strlen(dir)) == 0;
}

static int path_of(int fd, char *path, size_t size) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlink, name, path, size - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static void mark(void) {
    const char *path = getenv("FAULT_MARK");
    long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 0600) : -1;
    if (fd >= 0) syscall(SYS_close, fd);
}

/* 0 if the call is to be made; else -1, with errno set. `*after` says that something is to be done with the file afterwards. */
static int fault(int group, const char *path, int *after) {
    const char *groups = getenv("FAULT_CALLS"), *what = getenv("FAULT_WHAT"), *at = getenv("FAULT_AT");
    if (!groups || !what || !at || !strchr(groups, group) || !below(path)) return 0;
    int number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST), due = atoi(at), error = atoi(what);
    if (number < due || (number > due && error == 0)) return 0;
    mark();
    if (strcmp(what, "kill") == 0) raise(SIGKILL);
    else if (strcmp(what, "term") == 0) raise(SIGTERM);
    else if (error == 0) *after = 1;
    else {
        errno = error;
        return -1;
    }
    return 0;
}

static int fault_fd(int group, int fd, int *after) {
    char path[4096];
    /* What is no file has a name such as `pipe:[1]`. */
    return path_of(fd, path, sizeof path) && path[0] == '/' ? fault(group, path, after) : 0;
}

/* The file of `fd` is cut off, or rewritten with what it has. */
static void change(int fd) {
    char path[4096], byte;
    int saved = errno;
    if (path_of(fd, path, sizeof path)) {
        if (strcmp(getenv("FAULT_WHAT"), "cut") == 0) {
            if (truncate(path, 0) != 0) abort();
        } else {
            long out = syscall(SYS_openat, AT_FDCWD, path, O_RDWR);
            if (out < 0 || syscall(SYS_pread64, out, &byte, 1, 0) != 1 || syscall(SYS_pwrite64, out, &byte, 1, 0) != 1) abort();
            /* Time goes on: what is compared may be as coarse as a tick of the system's clock. */
            struct timespec times[2] = {{0, UTIME_OMIT}, {1, 0}};
            if (futimens((int)out, times) != 0) abort();
            syscall(SYS_close, out);
        }
    }
    errno = saved;
}

#define NEXT(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static int group_of(int flags) { return (flags & (O_CREAT | O_WRONLY | O_RDWR)) ? CREATE : OPEN; }

static int do_open(const char *path, int flags, mode_t mode) {
    int after = 0;
    if (fault(group_of(flags), path, &after)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define MODE(flags, mode)                                                                                                            \
    mode_t mode = 0;                                                                                                                 \
    if ((flags) & O_CREAT) {                                                                                                         \
        va_list more;                                                                                                                \
        va_start(more, flags);                                                                                                       \
        mode = va_arg(more, mode_t);                                                                                                 \
        va_end(more);                                                                                                                \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return do_open(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return do_open(path, flags | O_LARGEFILE, mode);
}

int mkdir(const char *path, mode_t mode) {
    int after = 0;
    return fault(CREATE, path, &after) ? -1 : NEXT(int, "mkdir", const char *, mode_t)(path, mode);
}

ssize_t read(int fd, void *to, size_t size) {
    int after = 0;
    if (fault_fd(READ, fd, &after)) return -1;
    ssize_t done = NEXT(ssize_t, "read", int, void *, size_t)(fd, to, size);
    if (after) change(fd);
    return done;
}

static void *mapped(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    int after = 0;
    if (fd >= 0 && fault_fd(MAP, fd, &after)) return MAP_FAILED;
    void *map = (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    if (after) change(fd);
    return map;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return mapped(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return mapped(at, size, protection, flags, fd, offset);
}

/* Half of the bytes are written when it happens, as when a disk fills up. */
ssize_t write(int fd, const void *from, size_t size) {
    int after = 0, before = calls;
    if (fault_fd(WRITE, fd, &after)) {
        const char *at = getenv("FAULT_AT");
        int first = before + 1 == atoi(at);
        if (!first || size < 2) return -1;
        size /= 2;
    }
    return NEXT(ssize_t, "write", int, const void *, size_t)(fd, from, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    int after = 0;
    return fault_fd(WRITE, fd, &after) ? -1 : NEXT(ssize_t, "writev", int, const struct iovec *, int)(fd, parts, count);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t size, unsigned flags) {
    int after = 0;
    if (fault_fd(WRITE, to, &after)) return -1;
    return NEXT(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned)(from, at, to, there, size, flags);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    int after = 0;
    return fault_fd(WRITE, to, &after) ? -1 : NEXT(ssize_t, "sendfile64", int, int, off64_t *, size_t)(to, from, at, size);
}

int rename(const char *from, const char *to) {
    int after = 0;
    return fault(RENAME, to, &after) ? -1 : NEXT(int, "rename", const char *, const char *)(from, to);
}

int unlink(const char *path) {
    int after = 0;
    return fault(REMOVE, path, &after) ? -1 : NEXT(int, "unlink", const char *)(path);
}
