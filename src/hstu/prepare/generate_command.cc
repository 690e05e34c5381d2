#include "hstu/prepare/generate_command.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/prepare/generate_random_command.h"
#include "hstu/prepare/generate_shop_command.h"
#include "hstu/synthetic/generate_yambda.h"

namespace hstu {
namespace {

std::string digits(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "undefined";
}

void print_summary(const Truth& truth, const Path& output) {
  const auto count = [&](std::int64_t n) {
    const double percent = 100.0 * static_cast<double>(n) / static_cast<double>(truth.counts.events);
    return fmt::format("{} ({:.1f} %)", with_separators(n), percent);
  };
  const EventMix& mix = truth.counts;
  fmt::print(
      "{}",
      table({{"events", output.string()},
             {"all", with_separators(mix.events)},
             {"listen_plus", count(mix.listen_plus)},
             {"skip", count(mix.skip)},
             {"like", count(mix.like)},
             {"other", count(mix.dislike + mix.unlike + mix.undislike)},
             {"last day", fmt::format("{} listens", with_separators(truth.n))},
             {"oracle", fmt::format("AUC {}, NE {}", digits(truth.oracle.auc), digits(truth.oracle.ne))},
             {"running means",
              fmt::format("AUC {}, NE {}", digits(truth.baseline.auc), digits(truth.baseline.ne))}}));
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* generate = app.add_subcommand("generate", "Write synthetic events");
  generate->require_subcommand(1);

  CLI::App* yambda =
      generate->add_subcommand("yambda",
                               "Write synthetic listening events in the schema of the Yambda data set.\n"
                               "Whether a track is played or skipped depends on the user's taste, the recent "
                               "listens, the hour and\n"
                               "chance. truth.json contains the AUC and NE of the true probabilities on the "
                               "last day, which are the best\n"
                               "that a model can reach, and those of running means, which it should exceed.");
  yambda->footer(
      "Example: 1,000 users for 30 days, about 480,000 events, then prepared for training\n"
      "  hstu generate yambda --users 1000 --days 30 --items 3000 --seed 1 --output events\n"
      "  hstu prepare yambda --input events --output dataset\n"
      "The same options give the same bytes with any number of threads.");
  const auto options = std::make_shared<GenerateOptions>();
  yambda->add_option("--users", options->users, "Number of users")->required();
  yambda->add_option("--days", options->days, "Length of the log in days, at least 2")->required();
  yambda->add_option("--items", options->items, "Number of tracks in the catalogue")->required();
  yambda->add_option("--seed", options->seed, "Seed of the random numbers")->capture_default_str();
  yambda->add_option("--output", options->output, "Folder to write; must not exist yet")->required();
  yambda->add_option("--threads", options->threads, "Number of threads, 0 for all cores")
      ->capture_default_str();
  yambda
      ->add_option("--events-per-user-day", options->events_per_user_day,
                   "Mean events per user and day; a single user has up to six times the mean")
      ->capture_default_str();
  yambda->add_option("--genres", options->genres, "Groups of artists; a user likes two to four of them")
      ->capture_default_str();
  yambda->add_option("--items-per-artist", options->items_per_artist, "Mean tracks of an artist")
      ->capture_default_str();
  yambda
      ->add_option("--popularity-exponent", options->popularity_exponent,
                   "Zipf exponent of artists within a genre: 0 makes all equally popular")
      ->capture_default_str();
  yambda
      ->add_option("--taste-days", options->taste_days,
                   "Mean days until a user replaces one liked genre by another")
      ->capture_default_str();
  yambda->callback([options] { print_summary(generate_yambda(*options), options->output); });

  add_generate_random_command(*generate);
  add_generate_shop_command(*generate);
}

}  // namespace hstu
