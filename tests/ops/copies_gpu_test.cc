// Copies of rows on a GPU, in units of 16 bytes and one by one, against those of the host.
#ifdef HSTU_WITH_CUDA

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/kernels/copy_pieces.h"
#include "hstu/kernels/copy_rows.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

class CopiesOnGpu : public testing::GpuTest {
 protected:
  // All of to, where what is not copied is zero.
  template <typename Copy>
  std::vector<float> copied(const Tensor& from, const Shape& shape, const Context& context,
                            const Copy& copy) const {
    const Tensor x = from.copy(context);
    Tensor y = Tensor::zeros(shape, DType::f32, context);
    copy(x.data<float>(), y.mutable_data<float>());
    const Tensor here = context.device().is_host() ? y : y.to_host(context.stream);
    return {here.data<float>(), here.data<float>() + here.size()};
  }
};

TEST_F(CopiesOnGpu, OfPiecesOfWholeAndOddWidths) {
  constexpr std::int64_t kStride = 72, kRows = 501;
  const Tensor x = testing::random_tensor({kRows, kStride}, DType::f32, 1);
  for (const std::int64_t width : {64, 8, 7, 1}) {
    SCOPED_TRACE(width);
    // More than one launch takes, some of no rows, of up to several blocks; to every second row of y.
    const auto pieces = [&](const float* from, float* to) {
      std::vector<kernels::CopyPiece<float>> all;
      std::int64_t row = 0;
      for (int i = 0; i < 40; ++i) {
        const std::int64_t rows = i == 7 ? 300 : i % 6;
        all.push_back({rows, width, from + row * kStride, kStride, to + 2 * row * kStride, 2 * kStride});
        row += rows;
      }
      EXPECT_LE(row, kRows);
      return all;
    };
    const Shape shape{2 * kRows, kStride};
    const auto expected = copied(x, shape, host_context(), [&](const float* from, float* to) {
      kernels::copy_pieces(std::span<const kernels::CopyPiece<float>>(pieces(from, to)), HostStream());
    });
    EXPECT_EQ(copied(x, shape, gpu_,
                     [&](const float* from, float* to) {
                       kernels::copy_pieces(std::span<const kernels::CopyPiece<float>>(pieces(from, to)),
                                            gpu_.cuda());
                     }),
              expected);
  }
}

TEST_F(CopiesOnGpu, OfRowsOfWholeAndOddWidths) {
  constexpr std::int64_t kStride = 24, kRows = 300;
  const Tensor x = testing::random_tensor({kRows, kStride}, DType::f32, 2);
  std::vector<std::int32_t> from(kRows);
  std::vector<std::int64_t> to(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    from[i] = static_cast<std::int32_t>(i * 7 % kRows);
    to[i] = static_cast<std::int64_t>(kRows - 1 - i);
  }
  const Tensor from_host = Tensor::from({kRows}, from), to_host = Tensor::from({kRows}, to),
               from_gpu = from_host.copy(gpu_), to_gpu = to_host.copy(gpu_);
  for (const std::int64_t width : {24, 8, 5}) {
    SCOPED_TRACE(width);
    const auto rows = [&](const float* at, float* target, const Tensor& of, const Tensor& places) {
      return kernels::CopyRows<float>{.rows = kRows,
                                      .width = width,
                                      .x = at,
                                      .x_stride = kStride,
                                      .from = of.data<std::int32_t>(),
                                      .to = places.data<std::int64_t>(),
                                      .y = target};
    };
    const auto expected = copied(x, {kRows, width}, host_context(), [&](const float* at, float* target) {
      kernels::copy_rows(rows(at, target, from_host, to_host), HostStream());
    });
    EXPECT_EQ(copied(x, {kRows, width}, gpu_,
                     [&](const float* at, float* target) {
                       kernels::copy_rows(rows(at, target, from_gpu, to_gpu), gpu_.cuda());
                     }),
              expected);
  }
}

}  // namespace
}  // namespace hstu

#endif  // HSTU_WITH_CUDA
