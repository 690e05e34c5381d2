#include "hstu/attention/visible_pairs.h"

#include <algorithm>

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

double conventional_pairs(const SampleMask& m) {
  const std::int64_t history = m.h - m.c;
  const bool is_causal = m.right == 0 && m.left >= history;
  return static_cast<double>(visible_pairs(m)) - (is_causal ? static_cast<double>(history) / 2 : 0);
}

}  // namespace hstu
