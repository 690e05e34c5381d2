// Attention of the beams of a search on CUDA cores, a warp for each beam and head, and the choice of a
// kernel.
#include "hstu/attention/few_queries/beams.cuh"
#include "hstu/base/error.h"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kPlainWarps = 8, kMostColumns = 8;  // 32 columns each

template <typename T>
__global__ void __launch_bounds__(32 * kPlainWarps) beams_plain(const __grid_constant__ BeamArguments<T> a) {
  wait_for_previous_launch();
  const int lane = threadIdx.x % 32, head = blockIdx.y;
  const std::int64_t user = blockIdx.z,
                     in_user = static_cast<std::int64_t>(blockIdx.x) * kPlainWarps + threadIdx.x / 32;
  if (in_user >= a.beams) return;
  const std::int64_t beam = user * a.beams + in_user;
  float q[kMostColumns], sum[kMostColumns] = {}, largest = -INFINITY, weights = 0;
  const auto load = [&](const T* row, float(&to)[kMostColumns]) {
#pragma unroll
    for (int c = 0; c < kMostColumns; ++c)
      to[c] = lane + 32 * c < a.head_dim ? static_cast<float>(row[lane + 32 * c]) : 0.0f;
  };
  load(a.q.at(beam, head), q);
  const auto visit = [&](const T* key, const T* value) {
    float x[kMostColumns], score = 0;
    load(key, x);
#pragma unroll
    for (int c = 0; c < kMostColumns; ++c) score = fmaf(q[c], x[c], score);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffu, score, step);
    score *= a.scale;
    const float most = fmaxf(largest, score);
    const float before = exp2f(largest - most), weight = exp2f(score - most);
    largest = most, weights = weights * before + weight;
    load(value, x);
#pragma unroll
    for (int c = 0; c < kMostColumns; ++c) sum[c] = fmaf(weight, x[c], sum[c] * before);
  };
  for (std::int64_t j = a.offsets[user]; j < a.offsets[user + 1]; ++j)
    visit(a.k.at(j, head), a.v.at(j, head));
  for (int c = 0; c < a.codes; ++c) {
    const std::int64_t row = a.row_of(beam, c);
    visit(a.code_k[c].at(row, head), a.code_v[c].at(row, head));
  }
#pragma unroll
  for (int c = 0; c < kMostColumns; ++c)
    if (lane + 32 * c < a.head_dim) a.o.at(beam, head)[lane + 32 * c] = static_cast<T>(sum[c] / weights);
}

template <typename T>
void launch_plain(const BeamAttention& p, const AttentionRows& o, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((p.beams + kPlainWarps - 1) / kPlainWarps),
                    static_cast<unsigned>(p.heads), static_cast<unsigned>(p.users));
  launch(kBeamsWhat, beams_plain<T>, blocks, 32 * kPlainWarps, stream, beam_arguments<T>(p, o));
}

bool is_aligned_to_16(const AttentionInput& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.row_stride % 8 == 0 &&
         rows.head_stride % 8 == 0;
}

}  // namespace

void beam_attention(const BeamAttention& p, const AttentionRows& o, CUstream_st* stream) {
  require(0 <= p.codes && p.codes <= BeamAttention::kMostCodes, "attention of beams: {} codes", p.codes);
  check(p.head_dim <= 32 * kMostColumns, "attention of beams: heads of {} are wider than {}", p.head_dim,
        32 * kMostColumns);
  if (p.users == 0 || p.beams == 0) return;
  if (p.type == AttentionType::fp32) return launch_plain<float>(p, o, stream);
  require(p.type == AttentionType::bf16, "attention of beams on a GPU: expected fp32 or bf16");
  bool fits = !p.row_stable && (p.head_dim == 64 || p.head_dim == 128) && is_aligned_to_16(p.q) &&
              is_aligned_to_16(p.k) && is_aligned_to_16(p.v) && is_aligned_to_16(o) &&
              current_device_attribute(cudaDevAttrComputeCapabilityMajor, kBeamsWhat) >= 9;
  for (std::size_t c = 0; c < static_cast<std::size_t>(p.codes); ++c)
    fits = fits && is_aligned_to_16(p.code[c].k) && is_aligned_to_16(p.code[c].v);
  if (!fits) return launch_plain<__nv_bfloat16>(p, o, stream);
  beam_attention_sm90(p, o, stream);
}

}  // namespace hstu::cuda
