/*
 * What preload.c needs for every call: the path of its file, whether to inject a failure, and its line in the record.
 * inject.ts uses the layout of struct control, record.ts that of struct line.
 */
#pragma once
#define _GNU_SOURCE
#include <dirent.h>
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The recorded start of an HTTP response: its headers name the request. */
#define RESPONSE_BYTES 1024

enum { NOTHING, KILL, KILL_MIDWAY, FAIL };
enum { CHANGES = 1, READS = 2 };

struct control {
  uint64_t count;   /*  0: calls so far */
  uint64_t at;      /*  8: inject into the first call of that name from this number on; 0: none */
  uint32_t how;     /* 16 */
  uint32_t error;   /* 20: the errno for FAIL */
  uint32_t classes; /* 24: CHANGES, READS: which calls are counted */
  uint32_t pid;     /* 28: the process that it was injected into; 0: none yet */
  uint32_t midway;  /* 32: whether half of the write was done */
  char name[32];    /* 36: inject only into calls of this name; empty: any */
  char what[444];   /* 68: the call that it was injected into */
};

struct line {
  uint32_t total;
  uint32_t kind;
  uint64_t inode;
  int64_t at;
  uint32_t path_bytes;
  uint32_t other_bytes;
  uint32_t data_bytes;
  uint32_t padding;
};

static char root[PATH_MAX];
static size_t root_bytes = 0;
static struct control *control = NULL;
static int trace = -1;
static int record = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The system call itself, without the functions replaced here. */
static long (*raw_call)(long, ...);
#define raw(...) (raw_call == NULL ? (void)(raw_call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall")) : (void)0, \
                  raw_call(__VA_ARGS__))

/* Opens a file with a high descriptor number, which no program expects to be its own. */
static int open_own(const char *path, int flags) {
  int file = (int)raw(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  int high = fcntl(file, F_DUPFD_CLOEXEC, 700);
  raw(SYS_close, file);
  return high;
}

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("IO_ROOT");
  const char *record_path = getenv("IO_RECORD");
  const char *control_path = getenv("IO_CONTROL");
  if (folder == NULL) return;
  root_bytes = (size_t)snprintf(root, sizeof root, "%s", folder);
  if (record_path != NULL) record = open_own(record_path, O_WRONLY | O_APPEND | O_CREAT);
  if (control_path == NULL) return;
  int file = open_own(control_path, O_RDWR);
  void *found = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  raw(SYS_close, file);
  if (found == MAP_FAILED) return;
  char trace_path[PATH_MAX + 8];
  snprintf(trace_path, sizeof trace_path, "%s.trace", control_path);
  trace = open_own(trace_path, O_WRONLY | O_APPEND);
  control = found;
}

static int is_below(const char *path) {
  return strncmp(path, root, root_bytes) == 0 && (path[root_bytes] == '/' || path[root_bytes] == 0);
}

static int link_of(int file, char *name) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t bytes = raw(SYS_readlinkat, AT_FDCWD, link, name, PATH_MAX - 1);
  name[bytes < 0 ? 0 : bytes] = 0;
  return bytes >= 0;
}

/* Writes the full path to `full`: of the open file if `path` is empty. Returns whether it is below the folder. */
static int find(int file, const char *path, char *full) {
  if (path == NULL || path[0] == 0) return link_of(file, full) && is_below(full);
  int folder, end = 0;
  if (sscanf(path, "/proc/self/fd/%d%n", &folder, &end) == 1)
    return find(folder, path[end] == '/' ? path + end + 1 : "", full);
  if (path[0] == '/') {
    snprintf(full, PATH_MAX, "%s", path);
    return is_below(full);
  }
  char base[PATH_MAX];
  if (file == AT_FDCWD ? getcwd(base, sizeof base) == NULL : !link_of(file, base)) return 0;
  return is_below(base) && (size_t)snprintf(full, PATH_MAX, "%s/%s", base, path) < PATH_MAX;
}

static void enter(void) {
  if (record < 0) return;
  pthread_mutex_lock(&lock);
  while (flock(record, LOCK_EX) != 0) {}
}

static void leave(void) {
  if (record < 0) return;
  flock(record, LOCK_UN);
  pthread_mutex_unlock(&lock);
}

/* ---- Injection ---- */

/* Kills the process. Waits while a call of another thread took effect but is not yet recorded. */
static void end(void) {
  enter();
  for (;;) kill(getpid(), SIGKILL);
}

/* SQLite rebuilds the index of a write-ahead log after a crash, so writes to its file change nothing. */
static int is_index(const char *path) {
  size_t bytes = strlen(path);
  return bytes > 4 && strcmp(path + bytes - 4, "-shm") == 0;
}

/* Counts a call. Returns 0: do it; above 0: fail with this errno; below 0: do half of it, then kill the process. */
static int hit(uint32_t class, const char *call, int file, const char *path) {
  if (control == NULL || (control->classes & class) == 0) return 0;
  int before = errno;
  int result = 0;
  char full[PATH_MAX];
  if (find(file, path, full) && (control->classes & (is_index(full) ? READS : class)) != 0) {
    uint64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (trace >= 0) {
      char line[PATH_MAX + 64];
      int bytes = snprintf(line, sizeof line, "%lu\t%s\t%s\n", number, call, full + root_bytes);
      if (raw(SYS_write, trace, line, bytes) < 0) abort();
    }
    uint64_t at = control->at;
    if (at != 0 && at <= number && (control->name[0] == 0 || strcmp(control->name, call) == 0) &&
        __atomic_compare_exchange_n(&control->at, &at, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      snprintf(control->what, sizeof control->what, "%.32s %.400s", call, full + root_bytes);
      __atomic_store_n(&control->pid, (uint32_t)getpid(), __ATOMIC_SEQ_CST);
      if (control->how == KILL) end();
      result = control->how == FAIL ? (int)control->error : -1;
    }
  }
  errno = before;
  return result;
}

/* For a call that cannot be half done. */
static int fails(uint32_t class, const char *call, int file, const char *path) {
  int error = hit(class, call, file, path);
  if (error < 0) end();
  if (error > 0) errno = error;
  return error > 0;
}

/* ---- Lines of the record ---- */

static void put(char kind, const struct stat *stats, int64_t at, const char *path, const char *other,
                const void *data, size_t bytes) {
  struct line line = {
      .kind = (uint32_t)kind,
      .inode = stats == NULL ? 0 : stats->st_ino,
      .at = at,
      .path_bytes = (uint32_t)strlen(path),
      .other_bytes = (uint32_t)strlen(other),
      .data_bytes = (uint32_t)bytes,
  };
  line.total = (uint32_t)sizeof line + line.path_bytes + line.other_bytes + line.data_bytes;
  struct iovec parts[] = {
      {&line, sizeof line}, {(void *)path, line.path_bytes}, {(void *)other, line.other_bytes}, {(void *)data, bytes}};
  if (raw(SYS_writev, record, parts, 4) != (ssize_t)line.total) abort();
}

/* For a call with one path or one open file. */
static void put_file(char kind, const struct stat *stats, int64_t at, const char *path) {
  put(kind, stats, at, path, "", NULL, 0);
}

static int is_recorded(int file, const char *path, char *full) { return record >= 0 && find(file, path, full); }

static void wrote(int file, const char *name, const void *data, ssize_t bytes, off_t at) {
  struct stat stats;
  fstat(file, &stats);
  put('W', &stats, at, name, "", data, (size_t)bytes);
}

static void told(int file, const char *name, const void *data, size_t bytes) {
  if (bytes > RESPONSE_BYTES) bytes = RESPONSE_BYTES;
  int is_answer = strncmp(name, "socket:", 7) == 0 && bytes > 5 && memcmp(data, "HTTP/", 5) == 0;
  if (!is_answer && file != STDOUT_FILENO) return;
  enter();
  put(is_answer ? 'A' : 'O', NULL, 0, "", "", data, bytes);
  leave();
}
