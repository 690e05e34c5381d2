#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/cli/commands.h"

namespace hstu {

void add_events_commands(CLI::App& app) {
  app.add_subcommand("generate",
                     "Generate synthetic events: hstu generate yambda --help, hstu generate random --help");
  app.add_subcommand(
      "prepare",
      "Turn raw events into a dataset: hstu prepare yambda|movielens|parquet|mlcommons|index|verify --help");
}

void hand_over_events_commands(char** argv) {
  if (argv[0] == nullptr || argv[1] == nullptr) return;
  const std::string_view word = argv[1];
  if (word != "prepare" && word != "generate") return;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("hstu-prepare");
  std::vector<char*> words{argv[0]};
  for (char** next = argv + (word == "prepare" ? 2 : 1); *next != nullptr; ++next) words.push_back(*next);
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  fail("cannot start {}: {}. It must be in the folder of hstu: build it with ./dev build", program,
       std::strerror(errno));
}

}  // namespace hstu
