#include "hstu/attention/cuda/tensor_map.h"

#include <algorithm>

#include <cuda_runtime_api.h>

#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"

namespace hstu::cuda {
namespace {

using Encode = CUresult(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                        const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                        CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's function is looked up at run time, so that programs link only the CUDA runtime and start
// without a driver.
Encode* encode() {
  static Encode* const function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check_cuda(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
        "cuTensorMapEncodeTiled");
    check(found != nullptr, "the NVIDIA driver is too old for tensor maps: version 525 or newer is needed");
    return reinterpret_cast<Encode*>(found);
  }();
  return function;
}

}  // namespace

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
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  void* const base =
      static_cast<char*>(const_cast<void*>(rows.data)) - kLongestSample * static_cast<std::int64_t>(row);
  CUtensorMap map;
  const CUresult status =
      encode()(&map,
               problem.type == AttentionType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                   : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
               5, base, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(
      status == CUDA_SUCCESS,
      "attention: the driver refuses a tensor map (error {}): row stride {}, head stride {}, {} heads of {}",
      static_cast<int>(status), rows.row_stride, rows.head_stride, problem.heads, problem.head_dim);
  return map;
}

}  // namespace hstu::cuda
