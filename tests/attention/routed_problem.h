// What the tests of routes ask about.
#pragma once

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

}  // namespace hstu
