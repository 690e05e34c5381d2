#include "hstu/prepare/command_line.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "hstu/arguments/parse.h"
#include "hstu/base/contains.h"
#include "hstu/base/version.h"
#include "hstu/prepare/generate_command.h"
#include "hstu/prepare/prepare_command.h"

namespace hstu {

int run_command_line(int argc, char** argv) {
  std::vector<std::string> words = words_of_command_line(argc, argv);
  constexpr std::array<std::string_view, 4> kVerbs = {"prepare", "generate", "complete", "--man"};
  if (words.empty() || !contains(kVerbs, words.front())) words.insert(words.begin(), "prepare");
  CLI::App app("", "hstu");
  CLI::App* const prepare = app.add_subcommand("prepare", "Turn raw events into a dataset");
  prepare->require_subcommand(1);
  prepare->footer("Example:\n  hstu prepare movielens --input ml-100k --output datasets/movielens-100k");
  add_prepare_commands(*prepare);
  add_generate_command(app);
  return parse_command_line(app, words, "hstu " + version());
}

}  // namespace hstu
