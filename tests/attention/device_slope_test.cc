// Gradients through the slope of SiLU in the backward kernels, against the gradients without it times the
// slope.
#ifdef HSTU_WITH_CUDA

#include "attention/device_kernels.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

class AttentionSlopeOnGpu : public OnGpu {};

template <typename T>
void expect_slopes(DeviceCase c) {
  c.deterministic = true;  // so that both passes round the same sums
  const HostBatch<T> host(c);
  DeviceBatch<T> device(host);
  const std::int64_t width = host.width(), size = host.tokens() * 4 * width;
  std::vector<T> before(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < before.size(); ++i)
    before[i] = from_double<T>(static_cast<double>(i * 7919 % 1601) / 100 - 8);
  const DeviceBytes on_device(before);
  if (!multiplies_slope(device.route().backward)) {
    EXPECT_THROW(device.backward_through_silu(on_device.as<T>()), hstu::Error);
    return;
  }
  device.backward();
  const std::vector<T> plain = device.outputs();
  device.forget_outputs();
  device.backward_through_silu(on_device.as<T>());
  const std::vector<T> found = device.outputs();
  expect_untouched(host, device);
  for (std::int64_t row = host.offsets().front(); row < host.offsets().back(); ++row) {
    for (std::int64_t i = (row * 4 + 1) * width; i < (row + 1) * 4 * width; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double x = to_double(before[at]), s = 1 / (1 + std::exp(-x)), slope = s * (1 + x * (1 - s)),
                   expected = to_double(plain[at]) * slope;
      // Two roundings of T, one of a slope as fp16, its error near its zeros, and the smallest steps of T.
      const double step = std::is_same_v<T, __half> ? 0x1p-23 : 1e-30,
                   allowed =
                       std::abs(expected) * (0x1p-7 + 0x1p-11) + std::abs(to_double(plain[at])) * 1e-5 + step;
      ASSERT_NEAR(to_double(found[at]), expected, allowed)
          << c.name << ", row " << row << ", column " << i % (4 * width) << ", before SiLU " << x;
    }
  }
}

const std::vector<int> kSlopeLengths{1, 2, 0, 63, 64, 65, 129, 300, 513};

TEST_P(AttentionSlopeOnGpu, IsThatOfTheNumbersBeforeSilu) {
  expect_slopes<__nv_bfloat16>(with_kernels({.name = "slope", .lengths = kSlopeLengths}));
  expect_slopes<__nv_bfloat16>(with_kernels({.name = "slope, targets",
                                             .lengths = kSlopeLengths,
                                             .contexts = {0, 1, 0, 3, 3, 3, 3, 3, 3},
                                             .targets = {1, 1, 0, 20, 0, 5, 64, 100, 200},
                                             .per_sample_scale = true}));
  expect_slopes<__half>(
      with_kernels({.name = "slope, fp16", .lengths = kSlopeLengths, .type = AttentionType::fp16}));
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionSlopeOnGpu, ::testing::ValuesIn(all_kernels()), name_of);

}  // namespace
}  // namespace hstu

#endif
