// Products with so many tiles that Hopper's clusters compute several each (gemm_sm90.cu): results have the
// bits of products of fewer rows, of which each cluster computes one tile.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/ops/convert.h"
#include "hstu/ops/linear.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

class ProductRoundsOnGpu : public testing::GpuTest {
 protected:
  Tensor random(std::int64_t rows, std::int64_t columns, int seed, DType type = DType::bf16) const {
    const Tensor x = testing::random_tensor({rows, columns}, DType::f32, seed).copy(gpu_);
    Tape tape(gpu_, false);
    return type == DType::f32 ? x : ops::convert(tape, Variable::constant(x), type).value();
  }
  void expect_same_bits(const Tensor& a, const Tensor& b) const {
    const Tensor x = a.to_host(gpu_.stream), y = b.to_host(gpu_.stream);
    ASSERT_EQ(x.bytes(), y.bytes());
    EXPECT_EQ(std::memcmp(x.raw(), y.raw(), x.bytes()), 0);
  }
};

TEST_F(ProductRoundsOnGpu, HaveTheBitsOfFewerRows) {
  // Of a GPU with 66 clusters: 33 pairs of blocks by two columns of tiles are one round, 67 are two rounds
  // and two tiles.
  constexpr std::int64_t kRound = 33 * 256, kAll = 67 * 256, kIn = 64, kOut = 264;
  const Tensor x = random(kAll, kIn, 1), weight = random(kIn, kOut, 2), wide = random(kAll, kOut, 3),
               bias = random(1, kOut, 4, DType::f32), back = random(kOut, kOut, 5);
  // Results and gradients of some rows.
  const auto products = [&](std::int64_t first, std::int64_t end) {
    Tape tape(gpu_);
    const auto rows = [&](const Tensor& all) { return Variable(all.row_range(first, end)); };
    const auto fixed = [](const Tensor& all) { return Variable::constant(all); };
    const Variable in = rows(x), residual = rows(wide);
    const ops::LinearSilu silu = ops::linear_silu(tape, in, fixed(weight), fixed(bias), {{0, kOut}}, 64);
    const ops::LinearInput relu = ops::linear_relu(tape, silu.y, fixed(back), fixed(bias));
    const Variable y = ops::linear(tape, relu, fixed(back), fixed(bias)),
                   sum = ops::linear_residual(tape, y, fixed(back), residual);
    std::vector<Tensor> results{silu.y.value(), silu.activated.value(), y.value(), sum.value()};
    tape.backward(sum, wide.row_range(first, end));
    results.push_back(in.gradient());
    return results;
  };
  const std::vector<Tensor> all = products(0, kAll), head = products(0, kRound),
                            tail = products(kAll - kRound, kAll);
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_bits(all[i].row_range(0, kRound), head[i]);
    expect_same_bits(all[i].row_range(kAll - kRound, kAll), tail[i]);
  }
}

}  // namespace
}  // namespace hstu
