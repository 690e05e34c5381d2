// hstu-prepare: raw events to datasets. `hstu prepare` and `hstu generate` start it; only it links Arrow.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include <malloc.h>

#include "hstu/base/error.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/prepare/clean_stop.h"
#include "hstu/prepare/command_line.h"

namespace {

constexpr int kRunFailed = 1;
constexpr int kWordsWrong = 2;

// What was read of a CSV file when it failed may still be parsed on Arrow's threads, which crash now and then
// while the process destroys what they use. Nothing is left to do: the stack has been unwound.
[[noreturn]] void end_at_once(int status) {
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace

int main(int argc, char** argv) {
  hstu::prepare_process();
  // Freed large blocks are returned to the system, so that unused memory does not count. Without a fixed
  // threshold the C library would keep larger and larger blocks.
  constexpr int kLargeBlock = 1 << 17;
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  try {
    hstu::stop_cleanly_on_signals();
    return hstu::finish_process(hstu::run_command_line(argc, argv));
  } catch (const hstu::UsageError& error) {
    hstu::print_note("hstu: {}\n", error.what());
    end_at_once(kWordsWrong);
  } catch (const std::bad_alloc&) {
    std::fputs("hstu: out of memory: use fewer --threads, or raise the limit (ulimit -v)\n", stderr);
    end_at_once(kRunFailed);
  } catch (const std::exception& error) {
    hstu::print_note("hstu: {}\n", hstu::words_of(error));
    end_at_once(kRunFailed);
  }
}
