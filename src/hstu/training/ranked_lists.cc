#include "hstu/training/ranked_lists.h"

#include <map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// The column whose values divide a user's events; null: they are one list.
const MappedColumn* column_of(const Dataset& dataset, std::string_view by) {
  if (by == "user") return nullptr;
  if (by == "time") return &dataset.time();
  std::vector<std::string> words = dataset.manifest().context;
  words.insert(words.end(), {"user", "time", "sample"});
  for (const std::string& name : dataset.manifest().context)
    if (name == by) return &dataset.context(by);
  fail_usage("evaluation.ranking_list = \"{}\": expected one of {}", by, fmt::join(words, ", "));
}

}  // namespace

std::vector<std::int64_t> ranked_lists(const Dataset& dataset, std::span<const std::int64_t> positions,
                                       std::string_view by) {
  const bool apart = by == "sample";
  const MappedColumn* const column = apart ? nullptr : column_of(dataset, by);
  std::vector<std::int64_t> lists;
  lists.reserve(positions.size());
  // By user and value: held-out positions come window after window, so those of a user need not be together.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> list_of;
  for (const std::int64_t position : positions) {
    const std::int64_t value = column == nullptr ? 0 : (*column)[position];
    const std::pair key{dataset.user_at(position), apart ? position : value};
    lists.push_back(list_of.try_emplace(key, static_cast<std::int64_t>(list_of.size())).first->second);
  }
  return lists;
}

}  // namespace hstu
