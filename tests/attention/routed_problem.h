// What the tests of routes ask about.
#pragma once

#include <cstdint>

#include "hstu/attention/route.h"

namespace hstu {

inline constexpr AttentionDevice kHopper{9, 0, 132}, kAmpere{8, 0, 108};

inline AttentionProblem routed_problem() {
  AttentionProblem p;
  p.samples = 4, p.tokens = 1000, p.heads = 4, p.head_dim = 128;
  p.q = p.k = p.v = {nullptr, 4 * 512, 128};
  p.alpha = 0.1;
  return p;
}

// Cached keys of a problem, of which the pointers are read by nothing.
inline CachedKeys any_past() {
  static const std::int64_t offsets[2] = {};
  alignas(16) static const std::int32_t pages[1] = {};
  return {.k = pages,
          .v = pages,
          .page_tokens = 1,
          .pasts = 1,
          .pages = pages,
          .page_offsets = offsets,
          .lengths = offsets,
          .past_of = pages};
}

}  // namespace hstu
