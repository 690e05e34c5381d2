#include "hstu/training/ranked_lists.h"

#include <unordered_map>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// The column whose values divide a user's events; null: they are one list.
const MappedColumn* column_of(const Dataset& dataset, std::string_view by) {
  if (by == "user") return nullptr;
  if (by == "time") return &dataset.time();
  std::vector<std::string> words = dataset.manifest().context;
  words.insert(words.end(), {"user", "time"});
  for (const std::string& name : dataset.manifest().context)
    if (name == by) return &dataset.context(by);
  fail_usage("evaluation.ranking_list = \"{}\": expected one of {}", by, fmt::join(words, ", "));
}

}  // namespace

std::vector<std::int64_t> ranked_lists(const Dataset& dataset, std::span<const std::int64_t> positions,
                                       std::string_view by) {
  const MappedColumn* const column = column_of(dataset, by);
  std::vector<std::int64_t> lists;
  lists.reserve(positions.size());
  std::unordered_map<std::int64_t, std::int64_t> of_value;  // of the current user
  std::int64_t user = -1, count = 0;
  for (const std::int64_t position : positions) {
    if (const std::int64_t u = dataset.user_at(position); u != user) {
      of_value.clear();
      user = u;
    }
    const auto [list, added] = of_value.try_emplace(column == nullptr ? 0 : (*column)[position], count);
    if (added) ++count;
    lists.push_back(list->second);
  }
  return lists;
}

}  // namespace hstu
