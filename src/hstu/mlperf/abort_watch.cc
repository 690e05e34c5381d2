#include "hstu/mlperf/abort_watch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr int kWatchLine = __LINE__;  // that the line of the log names

// As fmt would, without memory.
class Line {
 public:
  Line& text(const char* words) {
    while (*words != '\0' && size_ < sizeof bytes_) bytes_[size_++] = *words++;
    return *this;
  }
  Line& number(std::int64_t value) {
    char digits[24];
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0 && size_ < sizeof bytes_) bytes_[size_++] = digits[--count];
    return *this;
  }
  void append_to(int file) const {
    while (::write(file, bytes_, size_) < 0 && errno == EINTR) continue;
  }

 private:
  char bytes_[512];
  std::size_t size_ = 0;
};

// Whether the last line of the log is run_stop; `torn`: it has no line end.
bool is_ended(int log, bool& torn) {
  struct stat info {};
  if (::fstat(log, &info) != 0) return true;
  char tail[1024];
  const auto size = std::min<off_t>(info.st_size, sizeof tail);
  const ssize_t read = ::pread(log, tail, static_cast<std::size_t>(size), info.st_size - size);
  if (read <= 0) return false;
  torn = tail[read - 1] != '\n';
  ssize_t begin = read - 1;
  while (begin > 0 && tail[begin - 1] != '\n') --begin;
  constexpr char kStop[] = "\"key\": \"run_stop\"";
  return ::memmem(tail + begin, static_cast<std::size_t>(read - begin), kStop, sizeof kStop - 1) != nullptr;
}

// Closes everything but the pipe and the log: a copy of a socket would hide the end of this rank from others.
[[noreturn]] void watch(int pipe, int log) {
  ::setsid();  // a signal to the group of processes is not for this one
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) std::signal(signal, SIG_IGN);
  const int high_pipe = ::fcntl(pipe, F_DUPFD, 16), high_log = ::fcntl(log, F_DUPFD, 16);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard) ::dup2(nothing, standard);
  ::dup2(high_pipe, 3);
  ::dup2(high_log, 4);
  ::close_range(5, ~0U, 0);
  char byte = 0;
  ssize_t read = 0;
  while ((read = ::read(3, &byte, 1)) > 0 || (read < 0 && errno == EINTR)) continue;
  append_abort(4);
  ::_exit(0);
}

}  // namespace

void append_abort(int log) noexcept {
  bool torn = false;
  if (is_ended(log, torn)) return;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  Line()
      .text(torn ? "\n" : "")
      .text(":::MLLOG {\"namespace\": \"\", \"time_ms\": ")
      .number(std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000)
      .text(
          ", \"event_type\": \"INTERVAL_END\", \"key\": \"run_stop\", \"value\": null, \"metadata\": "
          "{\"file\": ")
      .text("\"abort_watch.cc\", \"lineno\": ")
      .number(kWatchLine)
      .text(", \"status\": \"aborted\"}}\n")
      .append_to(log);
}

AbortWatch::AbortWatch(int log) {
  int ends[2];
  check(::pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe: {}", std::strerror(errno));
  child_ = ::fork();
  if (child_ == 0) {
    ::close(ends[1]);
    watch(ends[0], log);
  }
  ::close(ends[0]);
  if (child_ < 0) {
    ::close(ends[1]);
    fail("cannot start the process that ends the log of a killed run: {}", std::strerror(errno));
  }
  pipe_ = ends[1];
}

AbortWatch::~AbortWatch() {
  ::close(pipe_);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace hstu
