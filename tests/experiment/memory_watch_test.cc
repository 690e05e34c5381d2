#include "hstu/experiment/memory_watch.h"

#include <gtest/gtest.h>

#include "hstu/tensor/tensor.h"
#include "sanitizers.h"

namespace hstu {
namespace {

TEST(MemoryWatch, GivesBackWhatThePoolHoldsInVain) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer the pool keeps no memory";
  const Context context = make_context(Device::host());
  MemoryWatch off(0), wide(0.99), narrow(1e-12);
  const Tensor kept = Tensor::empty({1024}, DType::f32, context);
  Tensor::empty({1 << 20}, DType::f32, context);  // the pool holds it
  EXPECT_TRUE(off.look(context, one_rank()).is_null());
  const Json before = wide.look(context, one_rank());
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].at("trims"), 0);
  EXPECT_GE(before[0].at("held_mib").get<double>() - before[0].at("in_use_mib").get<double>(), 3.9);
  EXPECT_GT(before[0].at("device_mib").get<double>(), before[0].at("held_mib").get<double>());
  EXPECT_GT(before[0].at("device_free_mib").get<double>(), 0);
  EXPECT_EQ(narrow.look(context, one_rank())[0].at("trims"), 1);
  EXPECT_LT(wide.look(context, one_rank())[0].at("held_mib").get<double>(), 1);
}

}  // namespace
}  // namespace hstu
