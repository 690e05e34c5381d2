#include "hstu/base/thread_stacks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <execinfo.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hstu/base/stack.h"

namespace hstu {
namespace {

// What a thread is asked for. A thread may answer after it was given up: so that question is never freed.
struct Question {
  pid_t thread = 0;
  std::array<void*, 64> calls{};
  std::atomic<int> count = -1;  // of calls; -1: no answer yet
  Question* next = nullptr;     // of `unanswered`
};
std::atomic<Question*> question = nullptr;
Question* unanswered = nullptr;  // the first of them

// Only calls that a signal handler may make: backtrace() has loaded its library before.
void answer(int /*signal*/) {
  const int error = errno;
  Question* const asked = question.load();
  if (asked != nullptr && asked->thread == ::gettid() && asked->count < 0)
    asked->count = ::backtrace(asked->calls.data(), static_cast<int>(asked->calls.size()));
  errno = error;
}

// A signal that neither the program nor its libraries use.
int signal_number() {
  return SIGRTMIN + 11;
}

std::string name_of(pid_t thread) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/self/task/{}/comm", thread)), name);
  return name;
}

std::vector<pid_t> other_threads() {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread != ::gettid()) threads.push_back(thread);
  }
  return threads;
}

std::string calls_of(pid_t thread) {
  auto asked = std::make_unique<Question>();
  asked->thread = thread;
  question = asked.get();
  if (::syscall(SYS_tgkill, ::getpid(), thread, signal_number()) != 0) return "  (has ended)\n";
  for (int ms = 0; ms < 1000 && asked->count < 0; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  question = nullptr;
  if (asked->count < 0) {
    asked->next = unanswered;
    unanswered = asked.release();
    return "  (does not answer)\n";
  }
  constexpr std::size_t kOfTheHandler = 2;  // the handler and the frame of the signal
  const auto count = static_cast<std::size_t>(asked->count);
  return lines_of({asked->calls.begin() + std::min(kOfTheHandler, count), asked->calls.begin() + count});
}

}  // namespace

void name_this_thread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

std::string thread_stacks() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  std::array<void*, 1> once{};
  ::backtrace(once.data(), 1);
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal_number(), &action, nullptr);
  std::string text;
  for (const pid_t thread : other_threads())
    text += fmt::format("thread {} ({}):\n{}", name_of(thread), thread, calls_of(thread));
  return text;
}

}  // namespace hstu
