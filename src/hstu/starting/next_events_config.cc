#include "hstu/starting/next_events_config.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/batching/all_items.h"
#include "hstu/config/config.h"
#include "hstu/config/config_template.h"

namespace hstu {
namespace {

// Sizes that suit a number of users.
struct Size {
  std::int64_t users;  // up to so many
  std::int64_t dim, layers, heads, batch, epochs;
  double dropout;
};
constexpr Size kSizes[] = {{50'000, 64, 2, 2, 128, 200, 0.5},
                           {1'000'000, 128, 4, 4, 256, 50, 0.2},
                           {std::int64_t{1} << 62, 256, 8, 4, 1024, 5, 0.1}};
constexpr std::int64_t kShortest = 20, kLongest = 200;  // of histories

void line(std::string& text, const std::string& words) {
  text += words + "\n";
}

std::string data_section(const DatasetProfile& p, std::int64_t history) {
  std::string text = fmt::format("[data]\npath = {}\n",
                                 toml_quoted(std::filesystem::absolute(p.path).lexically_normal().string()));
  text += toml_comment(
      "A sample is a user: the last history_length events, of which each predicts the next, and one more. "
      "Nine of ten users have no more events than that, or it is the limit of a first try.");
  line(text, fmt::format("history_length = {}\nhistory_strategy = \"last_n\"\nmin_history = 1", history));
  text += toml_comment(
      "One sample of each user in an epoch: anchor_stride = 0 takes the last one that trains. "
      "anchor_stride = history_length would use older events too, each once.");
  line(text, "window_seconds = 0\nanchor_stride = 0\nshuffle_fraction = 1.0\n");
  return text;
}

std::string training_section(const DatasetProfile& p, const Kind& kind, const Size& size) {
  std::string text =
      fmt::format("[training]\nbatch_size = {}\nepochs = {}\n\n",
                  std::min<std::int64_t>(size.batch, std::max<std::int64_t>(4, p.manifest.counts.users / 20)),
                  size.epochs);
  line(text, std::string(kind.optimizers));
  return text;
}

std::string evaluation_section(const DatasetProfile& p) {
  std::string text = "[evaluation]\n";
  text += toml_comment(
      "The last event of each user is the test (hstu eval RUN --split test), and the one before it chooses "
      "the model: neither trains. \"paper\": there is no validation, and the best epoch is chosen by the "
      "test.");
  line(text, "split = \"valid\"");
  if (p.manifest.times == Times::kSeconds) {
    constexpr std::int64_t kDay = 86'400, kShare = 50;
    text += toml_comment(
        "Such a run cannot go on with new events (docs/daily.md): they change which event is a user's last. "
        "One that is to go on every day holds out the latest events instead of them:");
    const TimeRange& time = p.manifest.time;
    line(text, fmt::format("#split = \"\"\n#holdout_seconds = {}",
                           std::clamp<std::int64_t>((time.max - time.min) / kShare, 1, kDay)));
  }
  line(text, "batch_size = 256");
  text += toml_comment(
      "Every epoch is evaluated among all items; ten evaluations in a row without an improvement end the "
      "run.");
  line(text, "every_data_fraction = 1.0\npatience = 10\n\n[checkpoint]\nbest = \"ndcg@10\"");
  return text;
}

}  // namespace

std::string next_events_config(const DatasetProfile& p, const Kind& kind, const Path& codes) {
  const EventCounts& counts = p.manifest.counts;
  const Size& size = *std::find_if(std::begin(kSizes), std::end(kSizes),
                                   [&](const Size& s) { return counts.users <= s.users; });
  const std::int64_t history = std::clamp(p.long_events, kShortest, kLongest);
  std::string text = toml_comment(fmt::format(
      "A configuration to start from, made for the dataset {}: {} events of {} users and {} items. A user "
      "has "
      "{} events in the median; nine of ten have at most {}.",
      toml_quoted(p.manifest.name), with_separators(counts.events), with_separators(counts.users),
      with_separators(counts.items), with_separators(p.median_events), with_separators(p.long_events)));
  text += toml_comment("docs/retrieval.md explains it; hstu config --template --kind " +
                       std::string(kind.name) + " lists every other key.");
  text += "seed = 1\n\n" + data_section(p, history);
  text += fmt::format("[model]\nkind = {}\n", toml_quoted(kind.name));
  text += kind.propose({.dim = size.dim,
                        .layers = size.layers,
                        .heads = size.heads,
                        .dropout = size.dropout,
                        .history = history,
                        .items = counts.items,
                        .has_times = p.manifest.times == Times::kSeconds,
                        .codes = codes,
                        .item_ids = codes.empty() ? std::vector<std::int64_t>() : all_items(Dataset(p.path)),
                        .repeated = p.repeated});
  return text + "\n" + training_section(p, kind, size) + evaluation_section(p);
}

}  // namespace hstu
