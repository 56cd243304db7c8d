/*
 * Preloaded (LD_PRELOAD) into the program: records each call that changes something below a folder, in the order in
 * which they took effect, across threads and processes, with what clients are told meanwhile. power/record.ts reads it.
 *
 *   IO_ROOT    the folder; calls on other files are passed on
 *   IO_RECORD  the record, which is appended to
 *   IO_KILL    the process kills itself after so many recorded changes; its last one is in the record
 *
 * A call and its line in the record are one: a lock on the record is held from before the one until after the other.
 * Nothing is really synced: the record knows what would have been.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of what is told to clients, this much: the head of an answer names the request. */
#define TOLD_BYTES 1024
#define FICLONE_REQUEST 0x40049409

struct line {
  uint32_t total;
  uint32_t kind;
  uint64_t inode;
  int64_t at;
  int64_t modified_ns;
  uint32_t pid;
  uint32_t path_bytes;
  uint32_t other_bytes;
  uint32_t data_bytes;
};

/* By number, past what is replaced here. */
static long (*raw_call)(long, ...);
#define raw(...) (raw_call == NULL ? (void)(raw_call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall")) : (void)0, \
                  raw_call(__VA_ARGS__))

static char root[PATH_MAX];
static size_t root_bytes = 0;
static int record = -1;
static long kill_after = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("IO_ROOT");
  const char *path = getenv("IO_RECORD");
  if (folder == NULL || path == NULL) return;
  int file = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  record = fcntl(file, F_DUPFD_CLOEXEC, 700);
  raw(SYS_close, file);
  snprintf(root, sizeof root, "%s", folder);
  root_bytes = strlen(root);
  if (getenv("IO_KILL") != NULL) kill_after = atol(getenv("IO_KILL"));
}

static int is_below(const char *path) {
  return record >= 0 && strncmp(path, root, root_bytes) == 0 && (path[root_bytes] == '/' || path[root_bytes] == 0);
}

/* The path that is meant, and whether it is below the folder. */
static int resolve(int folder, const char *path, char *full) {
  if (record < 0 || path == NULL) return 0;
  if (path[0] == '/') {
    snprintf(full, PATH_MAX, "%s", path);
    return is_below(full);
  }
  char base[PATH_MAX];
  if (folder == AT_FDCWD) {
    if (getcwd(base, sizeof base) == NULL) return 0;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t bytes = readlink(link, base, sizeof base - 1);
    if (bytes < 0) return 0;
    base[bytes] = 0;
  }
  if (!is_below(base)) return 0;
  if ((size_t)snprintf(full, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
  return 1;
}

/* The name of an open file; whether it is below the folder. */
static int name_of(int file, char *name) {
  if (record < 0) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t bytes = readlink(link, name, PATH_MAX - 1);
  name[bytes < 0 ? 0 : bytes] = 0;
  return is_below(name);
}

static void enter(void) {
  pthread_mutex_lock(&lock);
  while (flock(record, LOCK_EX) != 0) {}
}

static void leave(void) {
  flock(record, LOCK_UN);
  pthread_mutex_unlock(&lock);
}

static void put(char kind, const struct stat *stats, int64_t at, const char *path, const char *other,
                const void *data, size_t bytes) {
  struct line line = {
      .kind = (uint32_t)kind,
      .inode = stats == NULL ? 0 : stats->st_ino,
      .at = at,
      .modified_ns = stats == NULL ? 0 : stats->st_mtim.tv_sec * 1000000000LL + stats->st_mtim.tv_nsec,
      .pid = (uint32_t)getpid(),
      .path_bytes = (uint32_t)strlen(path),
      .other_bytes = (uint32_t)strlen(other),
      .data_bytes = (uint32_t)bytes,
  };
  line.total = (uint32_t)sizeof line + line.path_bytes + line.other_bytes + line.data_bytes;
  struct iovec parts[] = {
      {&line, sizeof line}, {(void *)path, line.path_bytes}, {(void *)other, line.other_bytes}, {(void *)data, bytes}};
  if (raw(SYS_writev, record, parts, 4) != (ssize_t)line.total) abort();
  if (kind == 'A' || kind == 'O' || kill_after < 0) return;
  if (kill_after-- == 0) kill(getpid(), SIGKILL);
}

/* A call that nothing here understands: who reads the record refuses it. */
static void unknown(const char *call) { put('E', NULL, 0, call, "", NULL, 0); }

static void wrote(int file, const char *name, const void *data, ssize_t bytes, off_t at) {
  struct stat stats;
  fstat(file, &stats);
  put('W', &stats, at, name, "", data, (size_t)bytes);
}

/* Reads back what was written in a way that does not show it. */
static void wrote_unseen(int file, const char *name, ssize_t bytes, off_t at) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  int again = (int)raw(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
  char *data = malloc((size_t)bytes);
  if (again < 0 || data == NULL || pread(again, data, (size_t)bytes, at) != bytes) abort();
  raw(SYS_close, again);
  wrote(file, name, data, bytes, at);
  free(data);
}

static void told(int file, const char *name, const void *data, size_t bytes) {
  if (record < 0) return;
  if (bytes > TOLD_BYTES) bytes = TOLD_BYTES;
  int is_answer = strncmp(name, "socket:", 7) == 0 && bytes > 5 && memcmp(data, "HTTP/", 5) == 0;
  if (!is_answer && file != STDOUT_FILENO) return;
  enter();
  put(is_answer ? 'A' : 'O', NULL, 0, "", "", data, bytes);
  leave();
}

static int open_recorded(int folder, const char *path, int flags, mode_t mode) {
  char full[PATH_MAX];
  if ((flags & (O_CREAT | O_TRUNC)) == 0 || !resolve(folder, path, full))
    return (int)raw(SYS_openat, folder, path, flags, mode);
  enter();
  struct stat stats;
  int was_there = fstatat(folder, path, &stats, 0) == 0;
  int file = (int)raw(SYS_openat, folder, path, flags, mode);
  int error = errno;
  if (file >= 0) {
    int64_t size = stats.st_size;
    fstat(file, &stats);
    if (!was_there) put('C', &stats, 0, full, "", NULL, 0);
    else if ((flags & O_TRUNC) != 0 && size > 0) put('T', &stats, 0, full, "", NULL, 0);
  }
  leave();
  errno = error;
  return file;
}

#define OPENING(name) \
  int name(const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    return open_recorded(AT_FDCWD, path, flags, mode); \
  }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
  int name(int folder, const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    return open_recorded(folder, path, flags, mode); \
  }
OPENING_AT(openat)
OPENING_AT(openat64)

int creat(const char *path, mode_t mode) {
  return open_recorded(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

static ssize_t write_recorded(int file, const struct iovec *parts, int count, off_t at, int has_place) {
  char name[PATH_MAX];
  int is_ours = name_of(file, name);
  if (is_ours) enter();
  ssize_t bytes = has_place ? raw(SYS_pwritev, file, parts, count, at, 0) : raw(SYS_writev, file, parts, count);
  int error = errno;
  if (bytes > 0) {
    char *data = count == 1 ? parts[0].iov_base : malloc((size_t)bytes);
    if (count > 1)
      for (ssize_t done = 0, part = 0; done < bytes; part += 1) {
        size_t length = parts[part].iov_len;
        if (length > (size_t)(bytes - done)) length = (size_t)(bytes - done);
        memcpy(data + done, parts[part].iov_base, length);
        done += (ssize_t)length;
      }
    if (!is_ours) told(file, name, data, (size_t)bytes);
    else wrote(file, name, data, bytes, has_place ? at : lseek(file, 0, SEEK_CUR) - bytes);
    if (count > 1) free(data);
  }
  if (is_ours) leave();
  errno = error;
  return bytes;
}

ssize_t write(int file, const void *data, size_t bytes) {
  struct iovec part = {(void *)data, bytes};
  return write_recorded(file, &part, 1, 0, 0);
}

ssize_t writev(int file, const struct iovec *parts, int count) { return write_recorded(file, parts, count, 0, 0); }

#define WRITING_AT(name) \
  ssize_t name(int file, const void *data, size_t bytes, off_t at) { \
    struct iovec part = {(void *)data, bytes}; \
    return write_recorded(file, &part, 1, at, 1); \
  }
WRITING_AT(pwrite)
WRITING_AT(pwrite64)

#define WRITING_PARTS_AT(name) \
  ssize_t name(int file, const struct iovec *parts, int count, off_t at) { \
    return write_recorded(file, parts, count, at, 1); \
  }
WRITING_PARTS_AT(pwritev)
WRITING_PARTS_AT(pwritev64)

static ssize_t copy_recorded(int to, off_t *to_place, ssize_t (*copy)(void *), void *call) {
  char name[PATH_MAX];
  if (!name_of(to, name)) return copy(call);
  enter();
  off_t at = to_place == NULL ? lseek(to, 0, SEEK_CUR) : *to_place;
  ssize_t bytes = copy(call);
  int error = errno;
  if (bytes > 0) wrote_unseen(to, name, bytes, at);
  leave();
  errno = error;
  return bytes;
}

struct sending { int to, from; off_t *place; size_t bytes; };
static ssize_t send_file(void *call) {
  struct sending *it = call;
  return raw(SYS_sendfile, it->to, it->from, it->place, it->bytes);
}
ssize_t sendfile(int to, int from, off_t *place, size_t bytes) {
  struct sending call = {to, from, place, bytes};
  return copy_recorded(to, NULL, send_file, &call);
}
ssize_t sendfile64(int to, int from, off_t *place, size_t bytes) { return sendfile(to, from, place, bytes); }

struct copying { int from; off_t *from_place; int to; off_t *to_place; size_t bytes; unsigned flags; };
static ssize_t copy_range(void *call) {
  struct copying *it = call;
  return raw(SYS_copy_file_range, it->from, it->from_place, it->to, it->to_place, it->bytes, it->flags);
}
ssize_t copy_file_range(int from, off_t *from_place, int to, off_t *to_place, size_t bytes, unsigned flags) {
  struct copying call = {from, from_place, to, to_place, bytes, flags};
  return copy_recorded(to, to_place, copy_range, &call);
}

/* libuv calls some by number. */
long syscall(long number, ...) {
  long args[6];
  va_list rest;
  va_start(rest, number);
  for (int index = 0; index < 6; index += 1) args[index] = va_arg(rest, long);
  va_end(rest);
  char name[PATH_MAX];
  if (number == SYS_copy_file_range)
    return copy_file_range((int)args[0], (off_t *)args[1], (int)args[2], (off_t *)args[3], (size_t)args[4],
                           (unsigned)args[5]);
  if (number == SYS_renameat2)
    return renameat2((int)args[0], (const char *)args[1], (int)args[2], (const char *)args[3], (unsigned)args[4]);
  if (number == SYS_io_uring_setup) {
    errno = ENOSYS;
    return -1;
  }
  if ((number == SYS_write || number == SYS_pwrite64 || number == SYS_pwritev2) && name_of((int)args[0], name)) {
    enter();
    unknown("a write by number");
    leave();
  }
  return raw(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

int ioctl(int file, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (request != FICLONE_REQUEST) return (int)raw(SYS_ioctl, file, request, argument);
  errno = EOPNOTSUPP;
  return -1;
}

static int truncate_recorded(int file, off_t size) {
  char name[PATH_MAX];
  if (!name_of(file, name)) return (int)raw(SYS_ftruncate, file, size);
  enter();
  int result = (int)raw(SYS_ftruncate, file, size);
  int error = errno;
  struct stat stats;
  fstat(file, &stats);
  if (result == 0) put('T', &stats, size, name, "", NULL, 0);
  leave();
  errno = error;
  return result;
}
int ftruncate(int file, off_t size) { return truncate_recorded(file, size); }
int ftruncate64(int file, off_t size) { return truncate_recorded(file, size); }

static int truncate_path(const char *path, off_t size) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return -1;
  int result = ftruncate(file, size);
  int error = errno;
  raw(SYS_close, file);
  errno = error;
  return result;
}
int truncate(const char *path, off_t size) { return truncate_path(path, size); }
int truncate64(const char *path, off_t size) { return truncate_path(path, size); }

/* Room that is promised only makes a file longer, which truncation does as well. */
static int allocate(int file, off_t from, off_t bytes) {
  struct stat stats;
  if (fstat(file, &stats) != 0) return -1;
  return stats.st_size < from + bytes ? ftruncate(file, from + bytes) : 0;
}
int fallocate(int file, int mode, off_t from, off_t bytes) {
  char name[PATH_MAX];
  if (!name_of(file, name)) return (int)raw(SYS_fallocate, file, mode, from, bytes);
  if (mode == 0) return allocate(file, from, bytes);
  errno = EOPNOTSUPP;
  return -1;
}
int fallocate64(int file, int mode, off_t from, off_t bytes) { return fallocate(file, mode, from, bytes); }
int posix_fallocate(int file, off_t from, off_t bytes) { return allocate(file, from, bytes) == 0 ? 0 : errno; }
int posix_fallocate64(int file, off_t from, off_t bytes) { return posix_fallocate(file, from, bytes); }

static int sync_recorded(int file, long call) {
  char name[PATH_MAX];
  if (!name_of(file, name)) return (int)raw(call, file);
  enter();
  struct stat stats;
  fstat(file, &stats);
  put(S_ISDIR(stats.st_mode) ? 'G' : 'F', &stats, 0, name, "", NULL, 0);
  leave();
  return 0;
}
int fsync(int file) { return sync_recorded(file, SYS_fsync); }
int fdatasync(int file) { return sync_recorded(file, SYS_fdatasync); }

static int two_names(char kind, int from, const char *path, int to, const char *other, unsigned flags) {
  char full[PATH_MAX], target[PATH_MAX];
  int is_ours = resolve(from, path, full);
  is_ours = resolve(to, other, target) || is_ours;
  if (is_ours) enter();
  struct stat stats, replaced;
  int is_known = fstatat(from, path, &stats, AT_SYMLINK_NOFOLLOW);
  /* Two names of one file: a rename does nothing. */
  int is_same = fstatat(to, other, &replaced, AT_SYMLINK_NOFOLLOW) == 0 && is_known == 0 &&
                replaced.st_ino == stats.st_ino;
  int result = kind == 'R' ? (int)raw(SYS_renameat2, from, path, to, other, flags)
                           : (int)raw(SYS_linkat, from, path, to, other, flags);
  int error = errno;
  if (is_ours && result == 0 && kind == 'R' && (flags & ~RENAME_NOREPLACE) != 0) unknown("renameat2");
  else if (is_ours && result == 0 && !is_same) put(kind, &stats, 0, full, target, NULL, 0);
  if (is_ours) leave();
  errno = error;
  return result;
}
int rename(const char *path, const char *other) { return two_names('R', AT_FDCWD, path, AT_FDCWD, other, 0); }
int renameat(int from, const char *path, int to, const char *other) {
  return two_names('R', from, path, to, other, 0);
}
int renameat2(int from, const char *path, int to, const char *other, unsigned flags) {
  return two_names('R', from, path, to, other, flags);
}
int link(const char *path, const char *other) { return two_names('L', AT_FDCWD, path, AT_FDCWD, other, 0); }
int linkat(int from, const char *path, int to, const char *other, int flags) {
  return two_names('L', from, path, to, other, (unsigned)flags);
}

/* With one name: kind 'D' makes a folder, 'X' removes one, 'U' removes a file. */
static int one_name(char kind, int folder, const char *path, mode_t mode) {
  char full[PATH_MAX];
  int is_ours = resolve(folder, path, full);
  if (is_ours) enter();
  int flags = kind == 'X' ? AT_REMOVEDIR : 0;
  struct stat stats = {0};
  if (kind != 'D') fstatat(folder, path, &stats, AT_SYMLINK_NOFOLLOW);
  int result = kind == 'D' ? (int)raw(SYS_mkdirat, folder, path, mode)
                           : (int)raw(SYS_unlinkat, folder, path, flags);
  int error = errno;
  if (kind == 'D') fstatat(folder, path, &stats, AT_SYMLINK_NOFOLLOW);
  if (is_ours && result == 0) put(kind, &stats, 0, full, "", NULL, 0);
  if (is_ours) leave();
  errno = error;
  return result;
}
int mkdir(const char *path, mode_t mode) { return one_name('D', AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return one_name('D', folder, path, mode); }
int rmdir(const char *path) { return one_name('X', AT_FDCWD, path, 0); }
int unlink(const char *path) { return one_name('U', AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) {
  return one_name((flags & AT_REMOVEDIR) != 0 ? 'X' : 'U', folder, path, 0);
}
int remove(const char *path) {
  struct stat stats;
  if (lstat(path, &stats) != 0) return -1;
  return S_ISDIR(stats.st_mode) ? rmdir(path) : unlink(path);
}

char *mkdtemp(char *template) {
  static char *(*real)(char *);
  if (real == NULL) real = (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp");
  char full[PATH_MAX];
  int is_ours = resolve(AT_FDCWD, template, full);
  if (is_ours) enter();
  char *made = real(template);
  struct stat stats;
  if (is_ours && made != NULL && lstat(made, &stats) == 0) put('D', &stats, 0, made, "", NULL, 0);
  if (is_ours) leave();
  return made;
}
