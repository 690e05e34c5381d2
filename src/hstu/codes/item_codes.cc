#include "hstu/codes/item_codes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostLevels = 16, kMostCodes = std::int64_t{1} << 24;

bool same(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

CodeStatistics::Level statistics_of(const ItemCodes& codes, std::int64_t level) {
  CodeStatistics::Level result{.size = codes.sizes[static_cast<std::size_t>(level)]};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(result.size), 0);
  for (std::int64_t i = 0; i < codes.size(); ++i)
    ++counts[static_cast<std::size_t>(codes.tuple(i)[static_cast<std::size_t>(level)])];
  double entropy = 0;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    ++result.used;
    const double share = static_cast<double>(count) / static_cast<double>(codes.size());
    entropy -= share * std::log(share);
  }
  result.perplexity = std::exp(entropy);
  return result;
}

}  // namespace

std::int64_t ItemCodes::first_row(std::int64_t level) const {
  return std::accumulate(sizes.begin(), sizes.begin() + level, std::int64_t{0});
}

std::optional<std::int64_t> ItemCodes::find(std::int64_t item) const {
  const auto found = std::lower_bound(items.begin(), items.end(), item);
  if (found == items.end() || *found != item) return std::nullopt;
  return found - items.begin();
}

void ItemCodes::check_valid(const std::string& source) const {
  check(levels() >= 1 && levels() <= kMostLevels, "{}: expected 1 to {} levels of codes, found {}", source,
        kMostLevels, levels());
  check(size() >= 1, "{}: no item has codes", source);
  std::int64_t all = 0;
  for (const std::int64_t codes_of_level : sizes) {
    check(codes_of_level >= 1 && codes_of_level <= kMostCodes && all + codes_of_level <= kMostCodes,
          "{}: expected 1 to {} codes in all levels together", source, kMostCodes);
    all += codes_of_level;
  }
  check(codes.size() == items.size() * sizes.size(), "{}: expected {} codes of {} items, found {}", source,
        items.size() * sizes.size(), items.size(), codes.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    check(items[i] >= 0, "{}: expected ids of items from 0, found {}", source, items[i]);
    check(i == 0 || items[i - 1] < items[i], "{}: item {} is there twice, or ids do not ascend", source,
          items[i]);
    for (std::size_t l = 0; l < sizes.size(); ++l) {
      const std::int32_t code = codes[i * sizes.size() + l];
      check(code >= 0 && code < sizes[l], "{}: item {}: expected codes from 0 to {} at level {}, found {}",
            source, items[i], sizes[l] - 1, l + 1, code);
    }
  }
}

std::vector<std::int64_t> order_by_tuple(const ItemCodes& codes) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(codes.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto left = codes.tuple(a), right = codes.tuple(b);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  });
  return order;
}

CodeStatistics code_statistics(const ItemCodes& codes) {
  CodeStatistics result;
  for (std::int64_t l = 0; l < codes.levels(); ++l) result.levels.push_back(statistics_of(codes, l));
  result.items = codes.size();
  const std::vector<std::int64_t> order = order_by_tuple(codes);
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && same(codes.tuple(order[begin]), codes.tuple(order[end]))) ++end;
    const auto group = static_cast<std::int64_t>(end - begin);
    ++result.tuples;
    if (group > 1) result.colliding += group;
    result.largest_group = std::max(result.largest_group, group);
  }
  return result;
}

Json to_json(const CodeStatistics& statistics) {
  Json json{{"items", statistics.items},
            {"tuples", statistics.tuples},
            {"colliding_items", statistics.colliding},
            {"largest_group", statistics.largest_group}};
  json["levels"] = Json::array();
  for (const CodeStatistics::Level& level : statistics.levels)
    json["levels"].push_back({{"codes", level.size}, {"used", level.used}, {"perplexity", level.perplexity}});
  return json;
}

}  // namespace hstu
