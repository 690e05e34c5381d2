#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/rows/wire_rows.h"

namespace hstu {
namespace {

TEST(WireOnGpu, RowsTravelInAnotherOrderAndCountWhatTheTypeCannotHold) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  make_current(Device::cuda(0));
  const Context gpu = make_context(Device::cuda(0));
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor rows = Tensor::from<float>({3, 2}, {1, -2, 70000, 4, -infinity, 0.5f});  // f16 ends at 65,504
  const Tensor places = Tensor::from<std::int32_t>({3}, {2, 0, 1});
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool ordered : {false, true}) {
      WireRows there{rows.copy(gpu), ordered ? Tensor() : places.copy(gpu), Tensor::empty({3, 2}, type, gpu)};
      const Tensor beyond = Tensor::zeros({1}, DType::i64, gpu);
      cuda::to_wire(std::span(&there, 1), beyond, gpu.stream);
      EXPECT_EQ(beyond.to_host(gpu.stream).data<std::int64_t>()[0], type == DType::f16 ? 1 : 0)
          << to_string(type);
      const WireRows back{Tensor::zeros({3, 2}, DType::f32, gpu), there.places, there.wire};
      cuda::from_wire(std::span(&back, 1), gpu.stream);
      const Tensor found = back.rows.to_host(gpu.stream);
      for (std::int64_t i = 0; i < 6; ++i) {
        const float x = rows.data<float>()[i];
        const float expected = x != 70000            ? x
                               : type == DType::f32  ? x
                               : type == DType::bf16 ? 70144.0f
                                                     : infinity;
        EXPECT_EQ(found.data<float>()[i], expected) << to_string(type) << " " << i;
      }
      if (type != DType::f32 || ordered) continue;
      const Tensor wire = there.wire.to_host(gpu.stream);
      EXPECT_EQ(wire.data<float>()[0], -infinity) << "row places[0] travels first";
    }
  }
}

TEST(WireOnGpu, ColumnsTravelAlone) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  make_current(Device::cuda(0));
  const Context gpu = make_context(Device::cuda(0));
  const Tensor rows = Tensor::from<float>({3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  const Tensor places = Tensor::from<std::int32_t>({2}, {2, 0}).copy(gpu);
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const WireRows there{rows.copy(gpu), places, Tensor::empty({2, 2}, type, gpu), 1};
    cuda::to_wire(std::span(&there, 1), Tensor::zeros({1}, DType::i64, gpu), gpu.stream);
    const WireRows back{Tensor::zeros({3, 4}, DType::f32, gpu), places, there.wire, 1};
    cuda::from_wire(std::span(&back, 1), gpu.stream);
    const Tensor found = back.rows.to_host(gpu.stream);
    EXPECT_EQ(std::vector(found.data<float>(), found.data<float>() + found.size()),
              (std::vector<float>{0, 1, 2, 0, 0, 0, 0, 0, 0, 21, 22, 0}))
        << to_string(type);
  }
}

}  // namespace
}  // namespace hstu
