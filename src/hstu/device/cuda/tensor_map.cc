#include "hstu/device/cuda/tensor_map.h"

#include <string>

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

template <typename T>
std::string list(std::span<const T> numbers) {
  std::string text;
  for (const T number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

}  // namespace

CUtensorMap tensor_map(CUtensorMapDataType type, const void* base, std::span<const cuuint64_t> sizes,
                       std::span<const cuuint64_t> strides, std::span<const cuuint32_t> box) {
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encode()(&map, type, static_cast<cuuint32_t>(sizes.size()), const_cast<void*>(base), sizes.data(),
               strides.data(), box.data(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(status == CUDA_SUCCESS,
        "the driver refuses a tensor map (error {}): sizes [{}], strides [{}], box [{}]",
        static_cast<int>(status), list(sizes), list(strides), list(box));
  return map;
}

CUtensorMap matrix_map(const void* data, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                       int box_rows) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(stride) * 2};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)};
  return tensor_map(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, data, sizes, strides, box);
}

}  // namespace hstu::cuda
