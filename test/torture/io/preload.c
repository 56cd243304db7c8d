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
 *
 * Of the functions that Node and SQLite import, these are the ones that the program has a use for. A change by any other
 * is found by a comparison of the folder with the record (power/disk.ts).
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
WRITE(pwrite64, (int file, const void *data, size_t bytes, off64_t at), ONE_PART, 1, at)
WRITE(writev, (int file, const struct iovec *parts, int count), parts, count, -1)
WRITE(pwritev64, (int file, const struct iovec *parts, int count, off64_t at), parts, count, at)

int ftruncate64(int file, off64_t size) {
  if (fails(CHANGES, "ftruncate64", file, NULL)) return -1;
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

static int two_names(char kind, const char *call, const char *path, const char *other) {
  if (fails(CHANGES, call, AT_FDCWD, other)) return -1;
  char full[PATH_MAX], target[PATH_MAX];
  int is_ours = is_recorded(AT_FDCWD, path, full);
  is_ours = is_recorded(AT_FDCWD, other, target) || is_ours;
  if (is_ours) enter();
  struct stat stats, replaced;
  int is_known = lstat(path, &stats);
  /* Two names of one file: rename(2) does nothing. */
  int is_same = lstat(other, &replaced) == 0 && is_known == 0 && replaced.st_ino == stats.st_ino;
  int result = (int)raw(kind == 'R' ? SYS_renameat2 : SYS_linkat, AT_FDCWD, path, AT_FDCWD, other, 0);
  int error = errno;
  if (is_ours && result == 0 && !is_same) put(kind, &stats, 0, full, target, NULL, 0);
  if (is_ours) leave();
  errno = error;
  return result;
}
int rename(const char *path, const char *other) { return two_names('R', "rename", path, other); }
int link(const char *path, const char *other) { return two_names('L', "link", path, other); }

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

/* ---- Calls that change nothing ---- */

#define READ(result, failed, name, file, path, types, arguments) \
  result name types { \
    static result(*real) types; \
    if (real == NULL) real = (result(*) types)dlsym(RTLD_NEXT, #name); \
    return fails(READS, #name, file, path) ? failed : real arguments; \
  }
READ(ssize_t, -1, read, file, NULL, (int file, void *to, size_t bytes), (file, to, bytes))
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
  if (number == SYS_statx && fails(READS, "statx", (int)a[0], (const char *)a[1])) return -1;
  if (number == SYS_io_uring_setup) {
    errno = ENOSYS;
    return -1;
  }
  return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
