// Products with so many tiles that Hopper's clusters compute several each (gemm_sm90.cu): results have the
// bits of products of fewer rows, of which each cluster computes one tile.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/ops/convert.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/mlp.h"
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
    const Variable y = ops::linear(tape, relu, fixed(back), fixed(bias));
    const ops::LinearInput gelu = ops::linear_gelu(tape, y, fixed(back), fixed(bias));
    const Tensor in_product = gelu.gelu().value();
    const Variable sum = ops::linear_residual(tape, gelu, fixed(back), {}, residual);
    expect_same_bits(gelu.gelu().value(), in_product);  // computed once more, alone
    std::vector<Tensor> results{silu.y.value(), silu.activated.value(), y.value(), in_product, sum.value()};
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

// Trap: the parts of a long sum, and the kernel, are chosen by the number of rows.
TEST_F(ProductRoundsOnGpu, HaveTheBitsOfARowAloneWhereRowsAreStable) {
  gpu_.row_stable = true;
  constexpr std::int64_t kAllRows = 5000, kIn = 2048, kHidden = 64, kOut = 264;
  for (const DType type : {DType::f32, DType::bf16}) {
    const Tensor x = random(kAllRows, kIn, 1, type), weight = random(kIn, kOut, 2, type),
                 bias = random(1, kOut, 3, DType::f32), narrow = random(kAllRows, kHidden, 7, DType::f32),
                 in = random(kHidden, kHidden, 4, DType::f32), out = random(kHidden, kHidden, 5, DType::f32),
                 ones = random(1, kHidden, 6, DType::f32);
    const auto results = [&](std::int64_t first, std::int64_t end) {
      Tape tape(gpu_, false);
      const auto fixed = [](const Tensor& all) { return Variable::constant(all); };
      const Variable rows = fixed(x.row_range(first, end));
      std::vector<Tensor> all{
          ops::linear(tape, rows, fixed(weight), fixed(bias)).value(),
          ops::linear_silu(tape, rows, fixed(weight), fixed(bias), {{0, kOut}}, 64).activated.value()};
      if (type == DType::f32)
        all.push_back(ops::mlp(tape, fixed(narrow.row_range(first, end)),
                               {.weight1 = fixed(in),
                                .bias1 = fixed(ones),
                                .swish_weight = fixed(ones),
                                .swish_bias = fixed(ones),
                                .weight2 = fixed(out),
                                .bias2 = fixed(ones),
                                .norm_weight = {},
                                .norm_bias = {}},
                               1e-5, {})
                          .value());
      return all;
    };
    const std::vector<Tensor> all = results(0, kAllRows);
    for (const std::int64_t count : {1, 130, 4097}) {
      for (const std::int64_t first : {std::int64_t{0}, kAllRows - count}) {
        const std::vector<Tensor> some = results(first, first + count);
        for (std::size_t i = 0; i < all.size(); ++i)
          expect_same_bits(all[i].row_range(first, first + count), some[i]);
      }
    }
  }
}

}  // namespace
}  // namespace hstu
