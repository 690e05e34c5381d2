// Sums of token gradients by row, of whole numbers: every order of additions gives the same bits.
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/ops/op.h"
#include "support/tensor_values.h"

namespace hstu {
namespace {

struct SumByRow {
  std::int64_t tokens, rows, width;
  std::int64_t (*row)(std::int64_t token);  // negative: none
  bool accumulate = false;
  std::int64_t beside = 0;  // columns of others on both sides of the gradient
};

namespace row_of {
std::int64_t none(std::int64_t) {
  return -1;
}
std::int64_t first(std::int64_t) {
  return 0;
}
std::int64_t fourth(std::int64_t) {
  return 3;
}
std::int64_t one_each(std::int64_t t) {
  return t;
}
// A multiple of n for each third token, none for each third, and the same for the others.
template <int n, int rows>
std::int64_t some(std::int64_t t) {
  return t % 3 == 0 ? t * n % rows : t % 3 == 1 ? -1 - t : rows - 1;
}
template <int rows>
std::int64_t scattered(std::int64_t t) {
  return t * 7919 % rows;
}
}  // namespace row_of

// Each list is one call, and on a GPU few launches.
const std::vector<std::vector<SumByRow>> kCalls = {
    // As in the assembly of tokens.
    {{1490, 96, 32, row_of::some<5, 96>},
     {1490, 570, 32, row_of::scattered<570>, true},
     {1490, 30, 32, row_of::scattered<30>},
     {1490, 128, 32, row_of::some<1, 128>, true},
     {1490, 2049, 32, row_of::some<64, 2049>}},
    // All tokens in one row, up to the most and beyond.
    {{8192, 2049, 64, row_of::fourth},
     {8191, 1, 5, row_of::first, true},
     {8193, 5, 32, row_of::fourth},
     {33, 100, 160, row_of::fourth}},
    // Few tokens or none for many rows.
    {{32, 1490, 32, row_of::one_each},
     {1, 3073, 8, row_of::first},
     {0, 50, 24, row_of::none},
     {100, 3072, 24, row_of::none},
     {100, 3073, 24, row_of::none, true}},
    // No rows: a rank that has only samples that it shares with others.
    {{9000, 0, 32, row_of::none}, {10, 0, 32, row_of::none}},
    // More tokens than threads of a block by one; rows that end between two blocks' shares.
    {{513, 97, 24, row_of::scattered<97>},
     {2049, 33, 33, row_of::scattered<33>, true},
     {4097, 3073, 32, row_of::scattered<3073>}},
    // Rows apart and not at multiples of 16 bytes; widths that no group of lanes divides.
    {{700, 70, 160, row_of::some<3, 70>, false, 8},
     {700, 70, 33, row_of::some<3, 70>, true, 3},
     {511, 12, 5, row_of::scattered<12>, false, 1},
     {2000, 600, 1, row_of::scattered<600>, false, 2},
     {600, 31, 24, row_of::scattered<31>, true, 4}},
    // Wide rows; more sums than one launch has.
    {{100, 40, 1000, row_of::some<3, 40>},
     {64, 10, 2056, row_of::scattered<10>, true},
     {3000, 5, 520, row_of::scattered<5>},
     {64, 3, 40, row_of::scattered<3>},
     {64, 3, 8, row_of::scattered<3>},
     {64, 3, 7, row_of::scattered<3>},
     {64, 3, 129, row_of::scattered<3>},
     {64, 3, 256, row_of::scattered<3>},
     {64, 3, 257, row_of::scattered<3>},
     {64, 3, 48, row_of::scattered<3>}},
    // So many rows that tokens are sorted.
    {{300, 200'000, 8, row_of::scattered<200'000>}, {300, 200'000, 5, row_of::some<600, 200'000>, true}},
};

// Whole numbers from -4 to 4, in tensors of the host.
template <typename T>
Tensor numbers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  RandomStream random{seed};
  Tensor tensor = Tensor::empty({rows, columns}, dtype_of<T>());
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.mutable_data<T>()[i] = T(static_cast<float>(random.below(9)) - 4.0f);
  return tensor;
}

template <typename T, typename Out, typename DeviceStream>
void expect_sums(const std::vector<SumByRow>& sums, const Context& context, DeviceStream stream) {
  constexpr float kFactor = 0.5f;
  std::vector<Tensor> dys, indices, results;
  std::vector<std::vector<Out>> expected;
  std::vector<kernels::ScatterAdd<T, Out>> all;
  for (const SumByRow& sum : sums) {
    const std::int64_t stride = sum.width + 2 * sum.beside;
    const Tensor dy = numbers<T>(sum.tokens, stride, 1), before = numbers<Out>(sum.rows, sum.width, 2);
    Tensor index = Tensor::empty({sum.tokens}, DType::i32);
    std::vector<float> exact(static_cast<std::size_t>(before.size()));
    for (std::size_t i = 0; i < exact.size() && sum.accumulate; ++i)
      exact[i] = static_cast<float>(before.data<Out>()[i]);
    for (std::int64_t t = 0; t < sum.tokens; ++t) {
      const std::int64_t row = sum.row(t);
      index.mutable_data<std::int32_t>()[t] = static_cast<std::int32_t>(row);
      for (std::int64_t c = 0; c < sum.width && row >= 0; ++c)
        exact[static_cast<std::size_t>(row * sum.width + c)] +=
            kFactor * static_cast<float>(dy.data<T>()[t * stride + sum.beside + c]);
    }
    expected.emplace_back(exact.begin(), exact.end());
    dys.push_back(dy.copy(context));
    indices.push_back(index.copy(context));
    results.push_back(before.copy(context));
    all.push_back({.tokens = sum.tokens,
                   .width = sum.width,
                   .dy = dys.back().data<T>() + sum.beside,
                   .stride = stride,
                   .index = indices.back().data<std::int32_t>(),
                   .count = sum.rows,
                   .factor = kFactor,
                   .drows = {results.back().mutable_data<Out>(), sum.accumulate}});
  }
  kernels::scatter_add(std::span<const kernels::ScatterAdd<T, Out>>(all), stream);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << sums[i].tokens << " tokens, " << sums[i].rows << " rows of "
                                      << sums[i].width << ", sum " << i);
    const std::vector<Out> found = testing::values_of<Out>(results[i].to_host(context.stream));
    for (std::size_t e = 0; e < found.size(); ++e) {
      ASSERT_EQ(static_cast<float>(found[e]), static_cast<float>(expected[i][e])) << "element " << e;
    }
  }
}

void expect_all_sums(const Context& context, DType type) {
  for (const std::vector<SumByRow>& sums : kCalls) {
    ops::dispatch<ops::Operation::gather_sum>(context, type, [&]<typename T>(auto stream) {
      expect_sums<T, T>(sums, context, stream);
      if constexpr (!std::is_same_v<T, Accumulator<T>>) expect_sums<T, Accumulator<T>>(sums, context, stream);
    });
  }
}

TEST(ScatterAdd, OnTheHostHasTheExactSums) {
  expect_all_sums(host_context(), DType::f32);
  expect_all_sums(host_context(), DType::f64);
}
TEST(ScatterAdd, OnAGpuHasTheExactSums) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context gpu = make_context(Device::cuda(0));
  expect_all_sums(gpu, DType::f32);
  expect_all_sums(gpu, DType::bf16);
}

}  // namespace
}  // namespace hstu
