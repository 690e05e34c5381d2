// Preloaded by tools/daily_kills.py: ends a program at one of its renames, as two variables of the
// environment say. KILLS_LOG is a file that gets a line "VERB NAME NUMBER" before each rename: the program's
// first word (hstu VERB), the last three parts of the new name with # for digits, and how often the process
// has had both. KILLS_AT is such a line with two more words, and is written to the log then: "before" or
// "after" the rename, and whom it ends. "itself", "parent" and "both" get SIGKILL, where a parent is hstu
// follow and nothing else; "asked" gets SIGTERM.
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kNames = 256, kLength = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char seen[kNames][kLength];
static int counts[kNames];

static void say(const char* line) {
  const char* const path = getenv("KILLS_LOG");
  const int file = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  dprintf(file, "%s\n", line);
  close(file);
}

// The second word of a process's command line.
static void verb_of(int process, char* verb) {
  char path[64], words[kLength] = "";
  snprintf(path, sizeof path, "/proc/%d/cmdline", process);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? 0 : read(file, words, sizeof words - 1);
  if (file >= 0) close(file);
  const size_t first = strlen(words) + 1;
  snprintf(verb, kLength, "%s", (ssize_t)first < bytes ? words + first : "none");
}

static void name_of(const char* path, char* name) {
  const char* from = path;
  int parts = 0;
  for (const char* c = path + strlen(path); c > path && parts < 3; --c)
    if (c[-1] == '/' && ++parts == 3) from = c;
  size_t n = 0;
  for (const char* c = from; *c != 0 && n + 1 < kLength; ++c)
    if (!isdigit((unsigned char)*c) || n == 0 || name[n - 1] != '#')
      name[n++] = (char)(isdigit((unsigned char)*c) ? '#' : *c);
  name[n] = 0;
}

// Names the rename to `path`, and counts it.
static void begin(const char* path, char* line) {
  char verb[kLength], name[kLength], both[2 * kLength];
  verb_of(getpid(), verb);
  name_of(path, name);
  snprintf(both, sizeof both, "%s %s", verb, name);
  pthread_mutex_lock(&lock);
  int n = 0;
  while (n + 1 < kNames && seen[n][0] != 0 && strncmp(seen[n], both, kLength - 1) != 0) ++n;
  snprintf(seen[n], kLength, "%s", both);
  snprintf(line, 3 * kLength, "%s %d", both, ++counts[n]);
  pthread_mutex_unlock(&lock);
}

static void end_at(const char* line, const char* moment) {
  const char* const wanted = getenv("KILLS_AT");
  char now[4 * kLength], parent[kLength];
  snprintf(now, sizeof now, "%s %s ", line, moment);
  if (wanted == NULL || strncmp(wanted, now, strlen(now)) != 0) return;
  const char* const who = wanted + strlen(now);
  say(wanted);
  verb_of(getppid(), parent);
  const int of_follow = strcmp(parent, "follow") == 0;
  if (strcmp(who, "asked") == 0) {
    kill(getpid(), SIGTERM);
    return;
  }
  if (of_follow && strcmp(who, "itself") != 0) kill(getppid(), SIGKILL);
  if (!of_follow || strcmp(who, "parent") != 0) kill(getpid(), SIGKILL);
}

#define AT_RENAME(path, call)             \
  char line[3 * kLength];                 \
  begin(path, line);                      \
  say(line);                              \
  end_at(line, "before");                 \
  const int result = call;                \
  if (result == 0) end_at(line, "after"); \
  return result

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

int rename(const char* from, const char* to) {
  AT_RENAME(to, REAL(rename)(from, to));
}
int renameat(int a, const char* from, int b, const char* to) {
  AT_RENAME(to, REAL(renameat)(a, from, b, to));
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  AT_RENAME(to, REAL(renameat2)(a, from, b, to, flags));
}
int link(const char* from, const char* to) {
  AT_RENAME(to, REAL(link)(from, to));
}
int symlink(const char* from, const char* to) {
  AT_RENAME(to, REAL(symlink)(from, to));
}
