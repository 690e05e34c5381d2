#include "hstu/base/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "hstu/base/json_text.h"
#include "hstu/base/mapped_ranges.h"
#include "hstu/base/terminal.h"

namespace hstu {
namespace {

// Only calls that a signal handler may make.
void say(const char* text) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
}

void report_lost_page(int signal, siginfo_t* info, void* /*context*/) {
  if (replace_lost_page(info->si_addr)) return;
  const char* const file = mapped_file_at(info->si_addr);
  if (file == nullptr) {  // a defect of the program: end as without this handler
    std::signal(signal, SIG_DFL);
    return;
  }
  say("hstu: ");
  say(file);
  say(": became shorter, or its disk cannot be read, while the program used it: restore the file, then "
      "repeat the "
      "command (hstu train --resume RUN continues a run)\n");
  ::_exit(1);
}

}  // namespace

void prepare_process() {
  // Opens get the lowest free descriptor, so this closes the gaps from 0 on.
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor >= 0) ::close(descriptor);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_sigaction = report_lost_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::string words_of(const std::exception& error) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    const bool circle = file->code() == std::errc::too_many_symbolic_link_levels;
    return fmt::format("{}: {}{}", file->path1().string(), file->code().message(),
                       circle ? ": it leads to itself: remove the link, or make it again" : "");
  }
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return "a list would be longer than any memory: make the sizes in the configuration smaller";
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    if (system->code() == std::errc::resource_unavailable_try_again)
      return "the system starts no more threads, or has no memory for their stacks: use fewer (--threads, "
             "data.workers) or raise the limits (ulimit -u, -v)";
  }
  return json_problem(error);
}

int finish_process(int status) {
  errno = 0;
  const bool streamed = static_cast<bool>(std::cout.flush());
  const bool flushed = std::fflush(stdout) == 0;
  if (streamed && flushed && std::ferror(stdout) == 0) return status;
  print_note("hstu: cannot write to standard output: {}\n",
             errno != 0 ? std::strerror(errno) : "a write failed");
  return status == 0 ? 1 : status;
}

}  // namespace hstu
