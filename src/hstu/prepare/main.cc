// hstu-prepare: raw events to datasets. `hstu prepare` and `hstu generate` start it; only it links Arrow.
#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <malloc.h>

#include "hstu/base/error.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/prepare/clean_stop.h"
#include "hstu/prepare/generate_command.h"
#include "hstu/prepare/prepare_command.h"

namespace {

constexpr int kRunFailed = 1;
constexpr int kWordsWrong = 2;

int run(int argc, char** argv) {
  CLI::App app("Turns event logs into datasets that hstu trains on.", "hstu prepare");
  app.require_subcommand(1);
  app.footer("Example:\n  hstu prepare movielens --input ml-100k --output datasets/movielens-100k");
  hstu::add_prepare_commands(app);
  hstu::add_generate_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWordsWrong;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  hstu::prepare_process();
  hstu::stop_cleanly_on_signals();
  // Freed large blocks are returned to the system, so that unused memory does not count. Without a fixed
  // threshold the C library would keep larger and larger blocks.
  constexpr int kLargeBlock = 1 << 17;
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  try {
    return hstu::finish_process(run(argc, argv));
  } catch (const hstu::UsageError& error) {
    hstu::tell("error: {}\n", error.what());
    return kWordsWrong;
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory: use fewer --threads, or raise the limit (ulimit -v)\n", stderr);
    return kRunFailed;
  } catch (const std::exception& error) {
    hstu::tell("error: {}\n", hstu::words_of(error));
    return kRunFailed;
  }
}
