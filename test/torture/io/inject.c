/*
 * Preloaded into the program: counts its calls that concern files under one folder, over all its threads and processes,
 * and has one of them killed or failed.
 *
 * TORTURE_ROOT names the folder, TORTURE_CONTROL a file that holds a struct control; inject.ts
 * writes and reads it. Where tracing is asked for, each counted call is a line of CONTROL.trace.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, KILL, KILL_MIDWAY, FAIL };
enum { CHANGES = 1, READS = 2 };

struct control {
  uint64_t count;    /*  0: calls so far */
  uint64_t at;       /*  8: the first call of that name from here on is hit; 0: none */
  uint32_t how;      /* 16 */
  uint32_t error;    /* 20: of FAIL */
  uint32_t classes;  /* 24: what is counted */
  uint32_t pid;      /* 28: of the process that was hit; 0: none yet */
  uint32_t tracing;  /* 32 */
  uint32_t midway;   /* 36: whether half of the write was done */
  char name[32];     /* 40: of the call that is to be hit */
  char what[440];    /* 72: the call that was hit */
};

static struct control *control;
static char root[1024];
static size_t root_length;
static int trace_file = -1;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TORTURE_CONTROL");
  const char *under = getenv("TORTURE_ROOT");
  if (path == NULL || under == NULL) return;
  int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *found = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (found == MAP_FAILED) return;
  root_length = (size_t)snprintf(root, sizeof root, "%s", under);
  char trace[1100];
  snprintf(trace, sizeof trace, "%s.trace", path);
  trace_file = syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
  control = found;
}

static const char *path_of(int fd, const char *name, char *room, size_t size) {
  if (name != NULL && (name[0] == '/' || fd == AT_FDCWD)) return name;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, room, size - 1);
  if (length < 0) return NULL;
  room[length] = 0;
  if (name != NULL) snprintf(room + length, size - (size_t)length, "/%s", name);
  return room;
}

/* SQLite's index of a write-ahead log is in memory, and made anew after a crash: to write to its file changes nothing. */
static int is_index(const char *path) {
  size_t length = strlen(path);
  return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

/* Counts a call. Returns 0: it is to be done; above 0: to fail with that; below 0: half of it, then the end. */
static int counted(uint32_t class, const char *call, int fd, const char *name) {
  if (control == NULL || (control->classes & class) == 0) return 0;
  int before = errno;
  char room[2300];
  const char *path = path_of(fd, name, room, sizeof room);
  int result = 0;
  if (path != NULL && strncmp(path, root, root_length) == 0 && (control->classes & (is_index(path) ? READS : class))) {
    uint64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (control->tracing && trace_file >= 0) {
      char line[2500];
      int length = snprintf(line, sizeof line, "%lu\t%s\t%s\n", number, call, path + root_length);
      if (syscall(SYS_write, trace_file, line, length) < 0) abort();
    }
    uint64_t at = control->at;
    if (at != 0 && at <= number && strcmp(control->name, call) == 0 &&
        __atomic_compare_exchange_n(&control->at, &at, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      snprintf(control->what, sizeof control->what, "%s %s", call, path + root_length);
      __atomic_store_n(&control->pid, (uint32_t)syscall(SYS_getpid), __ATOMIC_SEQ_CST);
      if (control->how == KILL) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
      result = control->how == FAIL ? (int)control->error : control->how == KILL_MIDWAY ? -1 : 0;
    }
  }
  errno = before;
  return result;
}

static void end(void) {
  for (;;) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

#define REAL(result, name, ...) \
  static result (*real)(__VA_ARGS__); \
  if (real == NULL) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* A call that is done or not: nothing of it can be halved. */
#define WHOLE(class, result, failed, name, fd, path, types, arguments) \
  result name types { \
    static result(*real) types; \
    if (real == NULL) real = (result(*) types)dlsym(RTLD_NEXT, #name); \
    int hit = counted(class, #name, fd, path); \
    if (hit < 0) end(); \
    if (hit > 0) { errno = hit; return failed; } \
    return real arguments; \
  }

/* A write: midway, half of its bytes are written. */
#define WRITE(result, name, types, arguments, halved) \
  result name types { \
    static result(*real) types; \
    if (real == NULL) real = (result(*) types)dlsym(RTLD_NEXT, #name); \
    int hit = counted(CHANGES, #name, fd, NULL); \
    if (hit < 0) { control->midway = 1; (void)!real halved; end(); } \
    if (hit > 0) { errno = hit; return -1; } \
    return real arguments; \
  }

WRITE(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), (fd, from, size / 2))
WRITE(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), (fd, from, size / 2, at))
WRITE(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at), (fd, from, size / 2, at))
WRITE(ssize_t, writev, (int fd, const struct iovec *from, int count), (fd, from, count), (fd, from, count / 2))
WRITE(ssize_t, copy_file_range, (int in, off64_t *from, int fd, off64_t *to, size_t size, unsigned flags), (in, from, fd, to, size, flags), (in, from, fd, to, size / 2, flags))
WRITE(ssize_t, sendfile64, (int fd, int in, off64_t *from, size_t size), (fd, in, from, size), (fd, in, from, size / 2))

WHOLE(CHANGES, int, -1, fsync, fd, NULL, (int fd), (fd))
WHOLE(CHANGES, int, -1, fdatasync, fd, NULL, (int fd), (fd))
WHOLE(CHANGES, int, -1, ftruncate, fd, NULL, (int fd, off_t size), (fd, size))
WHOLE(CHANGES, int, -1, ftruncate64, fd, NULL, (int fd, off64_t size), (fd, size))
WHOLE(CHANGES, int, -1, truncate, AT_FDCWD, path, (const char *path, off_t size), (path, size))
WHOLE(CHANGES, int, -1, rename, AT_FDCWD, to, (const char *from, const char *to), (from, to))
WHOLE(CHANGES, int, -1, link, AT_FDCWD, to, (const char *from, const char *to), (from, to))
WHOLE(CHANGES, int, -1, symlink, AT_FDCWD, to, (const char *from, const char *to), (from, to))
WHOLE(CHANGES, int, -1, unlink, AT_FDCWD, path, (const char *path), (path))
WHOLE(CHANGES, int, -1, remove, AT_FDCWD, path, (const char *path), (path))
WHOLE(CHANGES, int, -1, unlinkat, fd, path, (int fd, const char *path, int flags), (fd, path, flags))
WHOLE(CHANGES, int, -1, rmdir, AT_FDCWD, path, (const char *path), (path))
WHOLE(CHANGES, int, -1, mkdir, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
WHOLE(CHANGES, char *, NULL, mkdtemp, AT_FDCWD, path, (char *path), (path))

WHOLE(READS, ssize_t, -1, read, fd, NULL, (int fd, void *to, size_t size), (fd, to, size))
WHOLE(READS, ssize_t, -1, pread, fd, NULL, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
WHOLE(READS, ssize_t, -1, pread64, fd, NULL, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
WHOLE(READS, ssize_t, -1, readv, fd, NULL, (int fd, const struct iovec *to, int count), (fd, to, count))
WHOLE(READS, DIR *, NULL, opendir, AT_FDCWD, path, (const char *path), (path))
WHOLE(READS, DIR *, NULL, fdopendir, fd, NULL, (int fd), (fd))
WHOLE(READS, int, -1, access, AT_FDCWD, path, (const char *path, int mode), (path, mode))
WHOLE(READS, char *, NULL, realpath, AT_FDCWD, path, (const char *path, char *to), (path, to))
WHOLE(READS, int, -1, stat64, AT_FDCWD, path, (const char *path, struct stat64 *to), (path, to))
WHOLE(READS, int, -1, lstat64, AT_FDCWD, path, (const char *path, struct stat64 *to), (path, to))
WHOLE(READS, int, -1, fstat64, fd, NULL, (int fd, struct stat64 *to), (fd, to))
WHOLE(READS, int, -1, scandir64, AT_FDCWD, path,
  (const char *path, struct dirent64 ***to, int (*filter)(const struct dirent64 *), int (*compare)(const struct dirent64 **, const struct dirent64 **)),
  (path, to, filter, compare))

/* Closed it is all the same: that alone is how the system does it. */
int close(int fd) {
  REAL(int, "close", int);
  int hit = counted(READS, "close", fd, NULL);
  int result = real(fd);
  if (hit <= 0) return result;
  errno = hit;
  return -1;
}

/* Node asks for the state of a file this way, and for nothing else that concerns files. */
long syscall(long number, ...) {
  REAL(long, "syscall", long, ...);
  va_list list;
  va_start(list, number);
  long a[6];
  for (int at = 0; at < 6; at += 1) a[at] = va_arg(list, long);
  va_end(list);
  if (number == SYS_statx && control != NULL) {
    const char *path = (const char *)a[1];
    int hit = counted(READS, "statx", (int)a[0], path == NULL || path[0] == 0 ? NULL : path);
    if (hit > 0) { errno = hit; return -1; }
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#define OPEN(name, types, parameters, fd, call) \
  int name types { \
    static int(*real) parameters; \
    if (real == NULL) real = (int(*) parameters)dlsym(RTLD_NEXT, #name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
      va_list list; \
      va_start(list, flags); \
      mode = va_arg(list, mode_t); \
      va_end(list); \
    } \
    int hit = counted(flags & (O_CREAT | O_TRUNC) ? CHANGES : READS, flags & (O_CREAT | O_TRUNC) ? "create" : "open", fd, path); \
    if (hit < 0) end(); \
    if (hit > 0) { errno = hit; return -1; } \
    return real call; \
  }

OPEN(open, (const char *path, int flags, ...), (const char *, int, ...), AT_FDCWD, (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (const char *, int, ...), AT_FDCWD, (path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), (int, const char *, int, ...), folder, (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (int, const char *, int, ...), folder, (folder, path, flags, mode))
