// The mask as its definition reads (mask.h), one pair at a time.
#pragma once

#include <string>

#include <fmt/format.h>

#include "hstu/attention/mask.h"

namespace hstu {

inline bool sees(const SampleMask& m, int query, int key) {
  const auto is_context = [&](int x) { return x < m.c; };
  const auto is_target = [&](int x) { return x >= m.h; };
  if (is_context(query)) return !is_target(key);
  if (is_context(key)) return true;
  if (!is_target(query)) return !is_target(key) && query - m.left <= key && key <= query + m.right;
  if (!is_target(key)) return key >= m.h - m.left;
  return (query - m.h) / m.group == (key - m.h) / m.group && key <= query + m.right;
}

inline std::string describe(const SampleMask& m) {
  return fmt::format("n {} contexts {} targets {} group {} left {} right {}", m.n, m.c, m.n - m.h, m.group,
                     m.left, m.right);
}

}  // namespace hstu
