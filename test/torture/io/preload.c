/*
 * Preloaded (LD_PRELOAD) into the program: intercepts calls on files below a folder, in all threads and processes.
 *
 *   IO_ROOT     the folder; calls on other files are passed on
 *   IO_RECORD   a file to which each changing call is appended, in the order in which they took effect, with the
 *               responses that clients receive meanwhile (record.ts)
 *   IO_CONTROL  a file with a struct control: calls are counted, and at one of them the process is killed or the call
 *               fails (inject.ts); if IO_CONTROL.trace exists, a line is appended to it for each counted call
 *
 * A call and its line in the record are atomic: a lock on the record is held across both. Nothing is really synced: the
 * record shows what would have been, and a kill loses nothing from the system's cache.
 */
#include "preload.h"

/* ---- Calls that change something ---- */

static int open_file(int folder, const char *path, int flags, mode_t mode) {
  int makes = (flags & (O_CREAT | O_TRUNC)) != 0;
  if (fails(makes ? CHANGES : READS, makes ? "create" : "open", folder, path)) return -1;
  char full[PATH_MAX];
  if (!makes || !is_recorded(folder, path, full)) return (int)raw(SYS_openat, folder, path, flags, mode);
  enter();
  struct stat stats;
  int was_there = fstatat(folder, path, &stats, 0) == 0;
  int file = (int)raw(SYS_openat, folder, path, flags, mode);
  int error = errno;
  if (file >= 0) {
    int64_t size = stats.st_size;
    fstat(file, &stats);
    if (!was_there) put_file('C', &stats, 0, full);
    else if ((flags & O_TRUNC) != 0 && size > 0) put_file('T', &stats, 0, full);
  }
  leave();
  errno = error;
  return file;
}

#define OPEN(name, types, folder) \
  int name types { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    return open_file(folder, path, flags, mode); \
  }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int folder, const char *path, int flags, ...), folder)
OPEN(openat64, (int folder, const char *path, int flags, ...), folder)
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* at: the offset; -1: the file's current one. */
static ssize_t write_recorded(int file, const struct iovec *parts, int count, off_t at) {
  char name[PATH_MAX];
  int is_ours = is_recorded(file, NULL, name);
  if (is_ours) enter();
  ssize_t bytes = at < 0 ? raw(SYS_writev, file, parts, count) : raw(SYS_pwritev, file, parts, count, at, 0);
  int error = errno;
  if (bytes > 0 && record >= 0) {
    char *data = count == 1 ? parts[0].iov_base : malloc((size_t)bytes);
    for (ssize_t done = 0, part = 0; count > 1 && done < bytes; part += 1) {
      size_t length = parts[part].iov_len;
      if (length > (size_t)(bytes - done)) length = (size_t)(bytes - done);
      memcpy(data + done, parts[part].iov_base, length);
      done += (ssize_t)length;
    }
    if (is_ours) wrote(file, name, data, bytes, at < 0 ? lseek(file, 0, SEEK_CUR) - bytes : at);
    else told(file, name, data, (size_t)bytes);
    if (count > 1) free(data);
  }
  if (is_ours) leave();
  errno = error;
  return bytes;
}

static ssize_t write_parts(const char *call, int file, const struct iovec *parts, int count, off_t at) {
  int error = hit(CHANGES, call, file, NULL);
  if (error == 0) return write_recorded(file, parts, count, at);
  if (error < 0) {
    control->midway = 1;
    struct iovec half = {parts->iov_base, parts->iov_len / 2};
    if (count == 1) write_recorded(file, &half, 1, at);
    else write_recorded(file, parts, count / 2, at);
    end();
  }
  errno = error;
  return -1;
}

#define WRITE(name, types, parts, count, at) \
  ssize_t name types { return write_parts(#name, file, parts, count, at); }
#define ONE_PART (&(struct iovec){(void *)data, bytes})
WRITE(write, (int file, const void *data, size_t bytes), ONE_PART, 1, -1)
WRITE(pwrite, (int file, const void *data, size_t bytes, off_t at), ONE_PART, 1, at)
WRITE(pwrite64, (int file, const void *data, size_t bytes, off64_t at), ONE_PART, 1, at)
WRITE(writev, (int file, const struct iovec *parts, int count), parts, count, -1)
WRITE(pwritev, (int file, const struct iovec *parts, int count, off_t at), parts, count, at)
WRITE(pwritev64, (int file, const struct iovec *parts, int count, off64_t at), parts, count, at)

struct copying {
  long call;
  int from, to;
  off_t *from_place, *to_place;
  size_t bytes;
  unsigned flags;
};

static ssize_t copy_recorded(struct copying it) {
  char name[PATH_MAX];
  int is_ours = is_recorded(it.to, NULL, name);
  if (is_ours) enter();
  off_t at = it.to_place != NULL ? *it.to_place : is_ours ? lseek(it.to, 0, SEEK_CUR) : 0;
  ssize_t bytes = it.call == SYS_sendfile
                      ? raw(it.call, it.to, it.from, it.from_place, it.bytes)
                      : raw(it.call, it.from, it.from_place, it.to, it.to_place, it.bytes, it.flags);
  int error = errno;
  if (is_ours && bytes > 0) wrote_unseen(it.to, name, bytes, at);
  if (is_ours) leave();
  errno = error;
  return bytes;
}

static ssize_t copy_bytes(const char *call, struct copying it) {
  int error = hit(CHANGES, call, it.to, NULL);
  if (error == 0) return copy_recorded(it);
  if (error < 0) {
    control->midway = 1;
    it.bytes /= 2;
    copy_recorded(it);
    end();
  }
  errno = error;
  return -1;
}
ssize_t sendfile(int to, int from, off_t *place, size_t bytes) {
  return copy_bytes("sendfile", (struct copying){SYS_sendfile, from, to, place, NULL, bytes, 0});
}
ssize_t sendfile64(int to, int from, off64_t *place, size_t bytes) {
  return copy_bytes("sendfile64", (struct copying){SYS_sendfile, from, to, place, NULL, bytes, 0});
}
ssize_t copy_file_range(int from, off64_t *from_place, int to, off64_t *to_place, size_t bytes, unsigned flags) {
  struct copying it = {SYS_copy_file_range, from, to, from_place, to_place, bytes, flags};
  return copy_bytes("copy_file_range", it);
}

static int truncate_recorded(int file, off_t size) {
  char name[PATH_MAX];
  int is_ours = is_recorded(file, NULL, name);
  if (is_ours) enter();
  int result = (int)raw(SYS_ftruncate, file, size);
  int error = errno;
  struct stat stats;
  if (is_ours && result == 0 && fstat(file, &stats) == 0) put_file('T', &stats, size, name);
  if (is_ours) leave();
  errno = error;
  return result;
}

static int truncate_path(const char *call, const char *path, off_t size) {
  if (fails(CHANGES, call, AT_FDCWD, path)) return -1;
  int file = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return -1;
  int result = truncate_recorded(file, size);
  int error = errno;
  raw(SYS_close, file);
  errno = error;
  return result;
}

#define TRUNCATE(name, size_type) \
  int f##name(int file, size_type size) { return fails(CHANGES, "f" #name, file, NULL) ? -1 : truncate_recorded(file, size); } \
  int name(const char *path, size_type size) { return truncate_path(#name, path, size); }
TRUNCATE(truncate, off_t)
TRUNCATE(truncate64, off64_t)

/* Allocated space only makes a file longer: recorded as a truncation. */
static int allocate(const char *call, int file, off_t from, off_t bytes) {
  if (fails(CHANGES, call, file, NULL)) return -1;
  struct stat stats;
  if (fstat(file, &stats) != 0) return -1;
  return stats.st_size < from + bytes ? truncate_recorded(file, from + bytes) : 0;
}

static int allocate_as(const char *call, int file, int mode, off_t from, off_t bytes) {
  char name[PATH_MAX];
  if (!find(file, NULL, name)) return (int)raw(SYS_fallocate, file, mode, from, bytes);
  if (mode == 0) return allocate(call, file, from, bytes);
  errno = EOPNOTSUPP;
  return -1;
}

#define ALLOCATE(name, size) \
  int name(int file, int mode, size from, size bytes) { return allocate_as(#name, file, mode, from, bytes); } \
  int posix_##name(int file, size from, size bytes) { return allocate("posix_" #name, file, from, bytes) == 0 ? 0 : errno; }
ALLOCATE(fallocate, off_t)
ALLOCATE(fallocate64, off64_t)

static int sync_file(const char *call, int file, long number) {
  if (fails(CHANGES, call, file, NULL)) return -1;
  char name[PATH_MAX];
  if (!find(file, NULL, name)) return (int)raw(number, file);
  if (record < 0) return 0;
  enter();
  struct stat stats;
  fstat(file, &stats);
  put_file(S_ISDIR(stats.st_mode) ? 'G' : 'F', &stats, 0, name);
  leave();
  return 0;
}
int fsync(int file) { return sync_file("fsync", file, SYS_fsync); }
int fdatasync(int file) { return sync_file("fdatasync", file, SYS_fdatasync); }

struct place { int folder; const char *path; };

static int two_names(char kind, const char *call, struct place from, struct place to, unsigned flags) {
  if (fails(CHANGES, call, to.folder, to.path)) return -1;
  char full[PATH_MAX], target[PATH_MAX];
  int is_ours = is_recorded(from.folder, from.path, full);
  is_ours = is_recorded(to.folder, to.path, target) || is_ours;
  if (is_ours) enter();
  struct stat stats, replaced;
  int is_known = fstatat(from.folder, from.path, &stats, AT_SYMLINK_NOFOLLOW);
  /* Two names of one file: rename(2) does nothing. */
  int is_same = fstatat(to.folder, to.path, &replaced, AT_SYMLINK_NOFOLLOW) == 0 && is_known == 0 &&
                replaced.st_ino == stats.st_ino;
  int result = (int)raw(kind == 'R' ? SYS_renameat2 : SYS_linkat, from.folder, from.path, to.folder, to.path, flags);
  int error = errno;
  if (is_ours && result == 0 && kind == 'R' && (flags & ~RENAME_NOREPLACE) != 0) unknown("renameat2");
  else if (is_ours && result == 0 && !is_same) put(kind, &stats, 0, full, target, NULL, 0);
  if (is_ours) leave();
  errno = error;
  return result;
}

#define TWO_NAMES(kind, name, types, from, from_path, to, to_path, flags) \
  int name types { return two_names(kind, #name, (struct place){from, from_path}, (struct place){to, to_path}, flags); }
TWO_NAMES('R', rename, (const char *path, const char *other), AT_FDCWD, path, AT_FDCWD, other, 0)
TWO_NAMES('R', renameat, (int from, const char *path, int to, const char *other), from, path, to, other, 0)
TWO_NAMES('R', renameat2, (int from, const char *path, int to, const char *other, unsigned flags), from, path, to, other, flags)
TWO_NAMES('L', link, (const char *path, const char *other), AT_FDCWD, path, AT_FDCWD, other, 0)
TWO_NAMES('L', linkat, (int from, const char *path, int to, const char *other, int flags), from, path, to, other, (unsigned)flags)

int symlink(const char *target, const char *path) {
  if (fails(CHANGES, "symlink", AT_FDCWD, path)) return -1;
  char full[PATH_MAX];
  int is_ours = is_recorded(AT_FDCWD, path, full);
  if (is_ours) enter();
  if (is_ours) unknown("symlink");
  if (is_ours) leave();
  return (int)raw(SYS_symlinkat, target, AT_FDCWD, path);
}

/* Kind 'D' creates a folder, 'X' removes one, 'U' removes a file. */
static int one_name(char kind, const char *call, int folder, const char *path, mode_t mode) {
  if (fails(CHANGES, call, folder, path)) return -1;
  char full[PATH_MAX];
  int is_ours = is_recorded(folder, path, full);
  if (is_ours) enter();
  struct stat stats = {0};
  if (kind != 'D') fstatat(folder, path, &stats, AT_SYMLINK_NOFOLLOW);
  int result = kind == 'D' ? (int)raw(SYS_mkdirat, folder, path, mode)
                           : (int)raw(SYS_unlinkat, folder, path, kind == 'X' ? AT_REMOVEDIR : 0);
  int error = errno;
  if (kind == 'D') fstatat(folder, path, &stats, AT_SYMLINK_NOFOLLOW);
  if (is_ours && result == 0) put_file(kind, &stats, 0, full);
  if (is_ours) leave();
  errno = error;
  return result;
}
int mkdir(const char *path, mode_t mode) { return one_name('D', "mkdir", AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return one_name('D', "mkdirat", folder, path, mode); }
int rmdir(const char *path) { return one_name('X', "rmdir", AT_FDCWD, path, 0); }
int unlink(const char *path) { return one_name('U', "unlink", AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) {
  return one_name((flags & AT_REMOVEDIR) != 0 ? 'X' : 'U', "unlinkat", folder, path, 0);
}
int remove(const char *path) {
  struct stat stats = {0};
  lstat(path, &stats);
  return one_name(S_ISDIR(stats.st_mode) ? 'X' : 'U', "remove", AT_FDCWD, path, 0);
}

char *mkdtemp(char *template) {
  static char *(*real)(char *);
  if (real == NULL) real = (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp");
  if (fails(CHANGES, "mkdtemp", AT_FDCWD, template)) return NULL;
  char full[PATH_MAX];
  int is_ours = is_recorded(AT_FDCWD, template, full);
  if (is_ours) enter();
  char *made = real(template);
  struct stat stats;
  if (is_ours && made != NULL && lstat(made, &stats) == 0) put_file('D', &stats, 0, made);
  if (is_ours) leave();
  return made;
}

/* Cloning is refused: it passes no bytes through the program, so the record could not contain them. */
int ioctl(int file, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (request != FICLONE_REQUEST) return (int)raw(SYS_ioctl, file, request, argument);
  errno = EOPNOTSUPP;
  return -1;
}

/* ---- Calls that change nothing ---- */

#define READ(result, failed, name, file, path, types, arguments) \
  result name types { \
    static result(*real) types; \
    if (real == NULL) real = (result(*) types)dlsym(RTLD_NEXT, #name); \
    return fails(READS, #name, file, path) ? failed : real arguments; \
  }
READ(ssize_t, -1, read, file, NULL, (int file, void *to, size_t bytes), (file, to, bytes))
READ(ssize_t, -1, pread, file, NULL, (int file, void *to, size_t bytes, off_t at), (file, to, bytes, at))
READ(ssize_t, -1, pread64, file, NULL, (int file, void *to, size_t bytes, off64_t at), (file, to, bytes, at))
READ(ssize_t, -1, readv, file, NULL, (int file, const struct iovec *to, int count), (file, to, count))
READ(DIR *, NULL, opendir, AT_FDCWD, path, (const char *path), (path))
READ(DIR *, NULL, fdopendir, file, NULL, (int file), (file))
READ(int, -1, access, AT_FDCWD, path, (const char *path, int mode), (path, mode))
READ(char *, NULL, realpath, AT_FDCWD, path, (const char *path, char *to), (path, to))
READ(int, -1, stat64, AT_FDCWD, path, (const char *path, struct stat64 *to), (path, to))
READ(int, -1, lstat64, AT_FDCWD, path, (const char *path, struct stat64 *to), (path, to))
READ(int, -1, fstat64, file, NULL, (int file, struct stat64 *to), (file, to))
typedef int filter_call(const struct dirent64 *);
typedef int compare_call(const struct dirent64 **, const struct dirent64 **);
READ(int, -1, scandir64, AT_FDCWD, path,
     (const char *path, struct dirent64 ***to, filter_call *filter, compare_call *compare), (path, to, filter, compare))

/* The descriptor is closed even if close(2) fails, as on Linux. */
int close(int file) {
  int error = hit(READS, "close", file, NULL);
  int result = (int)raw(SYS_close, file);
  if (error <= 0) return result;
  errno = error;
  return -1;
}

/* Node and libuv make some calls by number. */
long syscall(long number, ...) {
  long a[6];
  va_list rest;
  va_start(rest, number);
  for (int index = 0; index < 6; index += 1) a[index] = va_arg(rest, long);
  va_end(rest);
  char name[PATH_MAX];
  switch (number) {
    case SYS_statx:
      if (fails(READS, "statx", (int)a[0], (const char *)a[1])) return -1;
      break;
    case SYS_copy_file_range:
      return copy_file_range((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4], (unsigned)a[5]);
    case SYS_renameat2:
      return renameat2((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]);
    case SYS_io_uring_setup:
      errno = ENOSYS;
      return -1;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_pwritev2:
      if (!is_recorded((int)a[0], NULL, name)) break;
      enter();
      unknown("a write by number");
      leave();
  }
  return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
