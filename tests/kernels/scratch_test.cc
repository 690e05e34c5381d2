#include "hstu/kernels/scratch.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "hstu/base/threads.h"

namespace hstu::kernels {
namespace {

TEST(Scratch, SeveralAtATimeShareNothing) {
  parallel_blocks(8, 1, [](std::int64_t begin, std::int64_t) {
    const auto mine = static_cast<double>(begin);
    const Scratch<double> outer(1000);
    std::fill_n(outer.data(), 1000, mine);
    for (const std::int64_t count : {0, 1, 5, 30'000, 200'000}) {  // the last one is larger than the stack
      const Scratch<double> inner(count);
      const Scratch<float> beside(3);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(inner.data()) % 64, 0);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(beside.data()) % 64, 0);
      std::fill_n(inner.data(), count, mine + 1);
      std::fill_n(beside.data(), 3, -1.0f);
      EXPECT_EQ(std::count(inner.data(), inner.data() + count, mine + 1), count);
    }
    EXPECT_EQ(std::count(outer.data(), outer.data() + 1000, mine), 1000);
  });
}

}  // namespace
}  // namespace hstu::kernels
