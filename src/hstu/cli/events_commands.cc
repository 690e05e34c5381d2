#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "hstu/base/child_processes.h"
#include "hstu/base/error.h"
#include "hstu/cli/commands.h"

namespace hstu {

void add_events_commands(CLI::App& app) {
  app.add_subcommand("generate",
                     "Generate synthetic events: hstu generate yambda --help, hstu generate random --help");
  app.add_subcommand("prepare",
                     "Turn raw events into a dataset: hstu prepare "
                     "yambda|movielens|kuairand|sequences|parquet|mlcommons|index|verify|to-csv|from-csv|to-"
                     "npy|from-npy|kafka "
                     "--help");
}

void hand_over_events_commands(const std::vector<std::string>& words) {
  // "complete prepare" completes the word "prepare" itself, "complete prepare y" a word of hstu-prepare.
  const bool completes = words.size() > 2 && words[0] == "complete";
  if (words.empty()) return;
  const std::string& word = words[completes ? 1 : 0];
  if (word != "prepare" && word != "generate") return;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("hstu-prepare");
  std::vector<std::string> copy{"hstu"};
  copy.insert(copy.end(), words.begin(), words.end());
  ::execv(program.c_str(), argument_pointers(copy).data());
  fail("cannot start {}: {}. It must be in the folder of hstu: build it with ./dev build", program,
       std::strerror(errno));
}

}  // namespace hstu
