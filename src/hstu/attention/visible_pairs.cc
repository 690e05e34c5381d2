#include "hstu/attention/visible_pairs.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// The pairs that a window cuts off one side of a square of n tokens: 1 + 2 + ... + (n - 1 - window).
std::int64_t cut_off(std::int64_t n, std::int64_t window) {
  const std::int64_t longest = std::max<std::int64_t>(0, n - 1 - window);
  return longest * (longest + 1) / 2;
}

// Pairs of one group of targets.
std::int64_t group_pairs(std::int64_t targets, std::int64_t right) {
  return targets * targets - cut_off(targets, right);
}

}  // namespace

std::int64_t visible_pairs(const SampleMask& m) {
  const std::int64_t contexts = m.c, history = m.h - m.c, targets = m.n - m.h, left = m.left, right = m.right;
  const std::int64_t of_contexts = contexts * (contexts + history);
  const std::int64_t of_history =
      history * (contexts + history) - cut_off(history, left) - cut_off(history, right);
  const std::int64_t of_targets = targets * (contexts + std::min(history, left)) +
                                  targets / m.group * group_pairs(m.group, right) +
                                  group_pairs(targets % m.group, right);
  return of_contexts + of_history + of_targets;
}

std::int64_t visible_pairs(const SampleMask& m, std::int32_t queries) {
  require(0 <= queries && queries <= m.n, "expected queries in [0, {}], found {}", m.n, queries);
  if (queries == m.n) return visible_pairs(m);
  std::int64_t pairs = 0;
  for (std::int32_t i = m.n - queries; i < m.n; ++i) {
    const Intervals keys = keys_of_query(m, i);
    for (const std::int32_t length :
         {smaller(keys.end0, m.n), smaller(keys.hi1, m.n) - larger(keys.lo1, 0), keys.hi2 - keys.lo2})
      pairs += larger(0, length);
  }
  return pairs;
}

double conventional_pairs(const SampleMask& m) {
  const std::int64_t history = m.h - m.c;
  const bool is_causal = m.right == 0 && m.left >= history;
  return static_cast<double>(visible_pairs(m)) - (is_causal ? static_cast<double>(history) / 2 : 0);
}

}  // namespace hstu
