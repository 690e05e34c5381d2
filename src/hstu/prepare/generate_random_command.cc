#include "hstu/prepare/generate_random_command.h"

#include <memory>
#include <string>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/synthetic/generate_random.h"

namespace hstu {
namespace {

struct RandomWords {
  RandomOptions options;
  std::string lengths = "zipf", items = "uniform";
};

void run(RandomWords& words) {
  RandomOptions& o = words.options;
  o.lengths.kind = parse_word(kDistributionKinds, words.lengths, "--lengths");
  o.items.kind = parse_word(kDistributionKinds, words.items, "--item-ids");
  const RandomCounts counts = generate_random(o);
  const double mean = static_cast<double>(counts.events) / static_cast<double>(counts.users);
  fmt::print("{}",
             table({{"sequences", with_separators(counts.users)},
                    {"events", with_separators(counts.events)},
                    {"length", fmt::format("mean {:.1f}, longest {}", mean, with_separators(counts.longest))},
                    {"next", fmt::format("hstu prepare parquet --schema {0}/schema.toml --input {0} --output "
                                         "DATASET",
                                         o.output.string())}}));
}

}  // namespace

void add_generate_random_command(CLI::App& generate) {
  CLI::App* const random =
      generate.add_subcommand("random",
                              "Write random sequences as NVIDIA's ranking benchmark draws them, for "
                              "measuring speed: there is nothing "
                              "to learn.\nThe output has a schema file for hstu prepare parquet.");
  random->footer(
      "Example: the 20 batches of 32 sequences of configs/nvidia-ranking-benchmark.toml\n"
      "  hstu generate random --users 640 --output events\n"
      "  hstu prepare parquet --schema events/schema.toml --input events --output dataset\n"
      "Distributions: uniform over [low, high); normal and lognormal by mean and deviation, rounded; zipf "
      "with\n"
      "P(z) ~ z^-alpha over z = 1, 2, ..., beginning at low; these three are clamped to [low, high]; "
      "bounded_zipf,\n"
      "the same within [low, high). Ids of items are within [0, --items): zipf is bounded_zipf there.");
  const auto words = std::make_shared<RandomWords>();
  RandomOptions& o = words->options;
  const auto add = [random](const char* name, auto& value, const char* meaning) {
    return random->add_option(name, value, meaning);
  };
  add("--users", o.users, "Number of sequences")->required();
  add("--output", o.output, "Folder to write; must not exist yet")->required();
  add("--seed", o.seed, "Seed of the random numbers")->capture_default_str();
  add("--lengths", words->lengths, "Distribution of the items of a sequence")->capture_default_str();
  add("--length-low", o.lengths.low, "Least length")->capture_default_str();
  add("--length-high", o.lengths.high, "Greatest length")->capture_default_str();
  add("--length-mean", o.lengths.mean, "Mean of normal and lognormal lengths");
  add("--length-std", o.lengths.std, "Their deviation; lognormal: half the mean if it is not given");
  add("--length-alpha", o.lengths.alpha, "Exponent of zipf lengths")->capture_default_str();
  add("--item-ids", words->items, "Distribution of item ids")->capture_default_str();
  add("--items", o.items.high, "Item ids are below this")->capture_default_str();
  add("--item-alpha", o.items.alpha, "Exponent of zipf item ids")->capture_default_str();
  add("--actions", o.actions, "Action ids are uniform below this")->capture_default_str();
  add("--tasks", o.tasks, "Bits of a label")->capture_default_str();
  add("--ages", o.ages, "Values of user_age")->capture_default_str();
  add("--categories", o.categories, "Values of item_category_l1")->capture_default_str();
  random->callback([words] { run(*words); });
}

}  // namespace hstu
