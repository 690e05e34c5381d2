// The list of this test program, in place of src/hstu/kinds/kinds.cc.
#include "hstu/kinds/kinds.h"

#include "toy/toy.h"

namespace hstu {

std::span<const Kind> kinds() {
  static constexpr Kind kKinds[] = {
      {.name = "toy",
       .title = "the smallest example",
       .options = default_options<toy::Options>,
       .check = toy::check,
       .make = toy::make,
       .propose = nullptr},
  };
  return kKinds;
}

}  // namespace hstu
