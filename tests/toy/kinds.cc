// The list of this test program, in place of src/hstu/kinds/kinds.cc.
#include "hstu/kinds/kinds.h"

#include "hstu/metrics/ranking.h"
#include "toy/toy.h"

namespace hstu {

std::span<const Kind> kinds() {
  static constexpr Kind kKinds[] = {
      {.name = "toy",
       .title = "the smallest example",
       .metrics = kRankingMetrics,
       .options = default_options<toy::Options>,
       .check = toy::check,
       .make = toy::make,
       .propose = nullptr},
      {.name = "error",
       .title = "the same with metrics of its own",
       .metrics = toy::kErrorMetrics,
       .options = default_options<toy::Options>,
       .check = toy::check,
       .make = toy::make_with_error,
       .propose = nullptr},
  };
  return kKinds;
}

}  // namespace hstu
