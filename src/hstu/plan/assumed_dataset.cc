#include "hstu/plan/assumed_dataset.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/batching/attribute_of_items.h"
#include "hstu/dataset/writer.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

Path new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "hstu-plan-XXXXXX").string();
  check(mkdtemp(name.data()) != nullptr, "cannot make a folder {}", name);
  return name;
}

std::int64_t users_of(const RunOptions& options) {
  const std::int64_t most = options.training.micro_batch_tokens / options.data.options.history_length + 1;
  return options.training.micro_batch_tokens > 0 ? std::min(most, options.training.batch_size)
                                                 : options.training.batch_size;
}

// Events of one user at a time: all of them may be more than fit.
void write_events(const RunOptions& options, const Manifest& description, const Path& folder) {
  const std::int64_t users = users_of(options), events = options.data.options.history_length + 1;
  const std::int64_t rows = options.features.item_rows, items = users * events;
  // Anchors are the last events. Those that negatives are drawn for are the largest samples.
  const bool draws = options.data.options.negatives.per_positive > 0;
  const auto item_of = [&](std::int64_t n) { return rows > 0 ? n % rows : n; };
  DatasetWriter writer(folder, description);
  for (std::int64_t u = 0; u < users; ++u) {
    std::vector<std::int64_t> user, item, time;
    EventTable table;
    for (std::int64_t n = 0; n < events; ++n) {
      user.push_back(u), time.push_back(n), item.push_back(item_of(u * events + n));
      const auto pool = static_cast<std::size_t>(n) % description.pools.size();
      const std::uint8_t label = draws && n + 1 == events ? description.label_bit() : 0;
      table.action.push_back(description.action_bit(description.pools[pool]) | label | kRankableBit);
    }
    table.user.append(user), table.item.append(item), table.time.append(time);
    for (std::size_t c = 0; c < description.context.size(); ++c)
      table.context.emplace_back().resize(events);  // any value in range: 0
    writer.append(std::move(table));
  }
  std::vector<ItemAttribute> attributes;
  for (const AttributeSection& section : options.features.attributes) {
    if (section.source() == kOwnId) continue;
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < (rows > 0 ? std::min(rows, items) : items); ++i)
      values.push_back(section.rows > 0 ? i % section.rows : i);
    attributes.emplace_back().name = section.source();
    attributes.back().values.append(values);
  }
  writer.finish(attributes);
}

}  // namespace

AssumedDataset::AssumedDataset(const RunOptions& options) : options_(options) {
  options_.data.path = new_folder();
  options_.data.options.min_history = options.data.options.history_length;
  options_.data.options.window_seconds = 0;
  options_.data.shuffle_fraction = 0;
  options_.training.epochs = 1;
  options_.training.max_steps = options_.training.first_window = options_.training.windows = 0;
  options_.training.drop_last = false;
  options_.evaluation.holdout = {};
  try {
    Manifest description = stated_facts(task_request(options_)).manifest;
    description.columns.clear();
    description.attributes.clear();  // both as they are written
    write_events(options_, description, options_.data.path);
  } catch (...) {
    std::filesystem::remove_all(options_.data.path);
    throw;
  }
}

AssumedDataset::~AssumedDataset() {
  std::error_code ignored;
  std::filesystem::remove_all(options_.data.path, ignored);
}

}  // namespace hstu
