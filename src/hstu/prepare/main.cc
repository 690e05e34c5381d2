// hstu-prepare: raw events to datasets. `hstu prepare` and `hstu generate` start it; only it links Arrow.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <malloc.h>

#include "hstu/arguments/parse.h"
#include "hstu/base/error.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/base/version.h"
#include "hstu/prepare/clean_stop.h"
#include "hstu/prepare/generate_command.h"
#include "hstu/prepare/prepare_command.h"

namespace {

constexpr int kRunFailed = 1;
constexpr int kWordsWrong = 2;

// The commands `prepare` and `generate` of hstu. Called by its own name, the program is `hstu prepare`.
int run(int argc, char** argv) {
  std::vector<std::string> words = hstu::words_of_command_line(argc, argv);
  constexpr std::array<std::string_view, 4> kVerbs = {"prepare", "generate", "complete", "--man"};
  if (words.empty() || std::find(kVerbs.begin(), kVerbs.end(), words.front()) == kVerbs.end())
    words.insert(words.begin(), "prepare");
  CLI::App app("", "hstu");
  CLI::App* const prepare = app.add_subcommand("prepare", "Turn raw events into a dataset");
  prepare->require_subcommand(1);
  prepare->footer("Example:\n  hstu prepare movielens --input ml-100k --output datasets/movielens-100k");
  hstu::add_prepare_commands(*prepare);
  hstu::add_generate_command(app);
  return hstu::parse_command_line(app, words, "hstu " + hstu::version());
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
    return hstu::finish_process(run(argc, argv));
  } catch (const hstu::UsageError& error) {
    hstu::tell("hstu: {}\n", error.what());
    return kWordsWrong;
  } catch (const std::bad_alloc&) {
    std::fputs("hstu: out of memory: use fewer --threads, or raise the limit (ulimit -v)\n", stderr);
    return kRunFailed;
  } catch (const std::exception& error) {
    hstu::tell("hstu: {}\n", hstu::words_of(error));
    return kRunFailed;
  }
}
