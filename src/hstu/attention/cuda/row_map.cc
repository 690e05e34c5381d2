#include "hstu/attention/cuda/row_map.h"

#include <algorithm>

#include "hstu/device/cuda/tensor_map.h"

namespace hstu::cuda {

CUtensorMap row_map(const AttentionProblem& problem, const AttentionInput& rows, int box_rows,
                    int box_columns) {
  constexpr cuuint64_t kBytes = 2;
  const auto row = static_cast<cuuint64_t>(rows.row_stride) * kBytes;
  const auto head = static_cast<cuuint64_t>(rows.head_stride) * kBytes;
  const auto width = static_cast<cuuint64_t>(problem.head_dim);
  const cuuint64_t sizes[5] = {std::min<cuuint64_t>(64, width), kLongestSample,
                               std::max<cuuint64_t>(1, width / 64), static_cast<cuuint64_t>(problem.heads),
                               static_cast<cuuint64_t>(problem.tokens) + 1};
  const cuuint64_t strides[4] = {row, 64 * kBytes, head, row};
  const cuuint32_t box[5] = {64, static_cast<cuuint32_t>(box_rows), static_cast<cuuint32_t>(box_columns / 64),
                             1, 1};
  void* const base =
      static_cast<char*>(const_cast<void*>(rows.data)) - kLongestSample * static_cast<std::int64_t>(row);
  return tensor_map(problem.type == AttentionType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                        : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                    base, sizes, strides, box);
}

}  // namespace hstu::cuda
