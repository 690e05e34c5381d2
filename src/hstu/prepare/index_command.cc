#include "hstu/prepare/index_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

struct IndexWords {
  std::string dataset;
  AnchorRule rule;
  int threads = 0;
};

void print_summary(const AnchorIndex& index) {
  std::vector<std::vector<std::string>> rows = {
      {"index", index.rule.name()},
      {"anchors", with_separators(index.count())},
      {"windows", with_separators(index.windows())},
      {"time", fmt::format("{} to {} s", index.time_min, index.time_max)}};
  if (index.rule.users.any_held_out()) {
    rows.push_back({"held out", fmt::format("{} anchors of held-out users",
                                            with_separators(index.held_out_users.size()))});
  }
  fmt::print("{}", table(rows));
}

void run(const IndexWords& words) {
  if (words.threads > 0) set_threads(words.threads);
  check_threads_start();
  print_summary(open_anchor_index(Dataset(words.dataset), words.rule));
}

}  // namespace

void add_anchor_options(CLI::App& command, AnchorRule& rule) {
  command
      .add_option("--min-history", rule.min_history,
                  "earlier events a user must have before an event becomes a sample")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50));
  command.add_option("--window-seconds", rule.window_seconds, "length of a training window; 0: one window")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50));
}

void add_index_command(CLI::App& app) {
  const auto words = std::make_shared<IndexWords>();
  CLI::App* const command = app.add_subcommand("index", "Store another index of a dataset's anchors");
  command->footer(
      "Example:\n"
      "  hstu prepare index datasets/yambda-50m --min-history 64 --window-seconds 86400\n\n"
      "Training opens the index of its data.min_history, data.window_seconds and held-out users, and builds\n"
      "it if it is missing. This command builds it in advance: for a dataset that training cannot write to,\n"
      "or to shorten the start of the first run.");
  command->add_option("DATASET", words->dataset, "the dataset's folder")
      ->required()
      ->check(CLI::ExistingDirectory);
  add_anchor_options(*command, words->rule);
  command
      ->add_option("--train-user-fraction", words->rule.users.train_fraction,
                   "users whose hash is below this train, the others are held out")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--split-salt", words->rule.users.salt, "of that hash")->capture_default_str();
  command->add_option("--threads", words->threads, "threads (default: all cores)")
      ->check(CLI::Range(1, 4096));
  command->callback([words] { run(*words); });
}

}  // namespace hstu
