#include "hstu/kernels/cuda/dropout.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/gather_sum.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

inline constexpr int kMostSources = 8;

template <typename N>
struct Source {
  const N* rows;
  const std::int32_t* index;
  std::int64_t count;
  float factor;
};
template <typename N>
struct Sources {
  Source<N> each[kMostSources];
  int count;
};

// The token and the first column of this thread; columns beyond the width are none.
struct TokenPlace {
  std::int64_t token, column;
};
__device__ TokenPlace place_of(std::int64_t width, unsigned block) {
  const std::int64_t i = static_cast<std::int64_t>(block) * kThreads + threadIdx.x;
  const std::int64_t groups = (width + kGroup - 1) / kGroup;
  return {i / groups, i % groups * kGroup};
}
unsigned blocks_of_groups(std::int64_t rows, std::int64_t width) {
  return blocks_for(rows * ((width + kGroup - 1) / kGroup), kThreads);
}

// All indices of a token are under way together, then all its rows, and the dropout's random numbers beside
// them. kWhole: of all rows and y (is_whole). kMost: sources at most; each of them takes registers.
template <bool kWhole, int kMost, typename N>
__global__ void __launch_bounds__(kThreads)
    gather(std::int64_t tokens, std::int64_t width, const __grid_constant__ Sources<N> sources,
           DropoutRows dropout, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const auto [t, c0] = place_of(width, blockIdx.x);
  if (t >= tokens) return;
  std::int32_t row[kMost];
#pragma unroll
  for (int s = 0; s < kMost; ++s) row[s] = s < sources.count ? sources.each[s].index[t] : -1;
  const std::uint64_t dropout_row = dropout.row(t);
  bool is_beyond = false;
  unsigned present = 0;  // bit s: source s has a row
#pragma unroll
  for (int s = 0; s < kMost; ++s) {
    is_beyond |= row[s] >= sources.each[s].count;
    present |= row[s] >= 0 ? 1u << s : 0u;
  }
  if (is_beyond) __trap();  // the host's kernel throws; here the stream fails
  Packed<N> columns[kMost];
#pragma unroll
  for (int s = 0; s < kMost; ++s) {
    if (row[s] >= 0)
      columns[s] = load_packed<kWhole>(sources.each[s].rows + std::int64_t{row[s]} * width, c0, width);
  }
  // Hides from the compiler that the sums have the conditions of the loads: it would add up the first row,
  // and wait for it, before it loads the others.
  asm volatile("" : "+r"(present));
  float sum[kGroup] = {}, factors[kGroup];
  dropout.factors(dropout_row, c0, factors);
#pragma unroll
  for (int s = 0; s < kMost; ++s) {
    float v[kGroup];
    columns[s].unpack(v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      sum[i] = (present >> s & 1) != 0 ? fmaf(sources.each[s].factor, v[i], sum[i]) : sum[i];
  }
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sum[i] *= factors[i];
  put_group<kWhole>(Target<N>{y}, t * width, c0, width, sum);
}

// The same where a warp has columns of one token (width a multiple of kWarpColumns, all whole): each lane
// reads the index of one source, and the sources without a row cost nothing.
template <typename N>
__global__ void __launch_bounds__(kThreads)
    gather_wide(std::int64_t tokens, std::int64_t width, const __grid_constant__ Sources<N> sources,
                DropoutRows dropout, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const auto [t, c0] = place_of(width, blockIdx.x);
  if (t >= tokens) return;
  std::int32_t own = -1;
  if (lane() < sources.count) {
    const Source<N>& source = sources.each[lane()];
    own = source.index[t];
    if (own >= source.count) __trap();  // the host's kernel throws
  }
  unsigned present = __ballot_sync(0xffffffffu, own >= 0);  // bit s: source s has a row
  const auto next = [&] {
    const int s = __ffs(static_cast<int>(present)) - 1;
    present &= present - 1;
    return s;
  };
  const auto columns = [&](int s) {
    return load_packed<true>(sources.each[s].rows + std::int64_t{__shfl_sync(0xffffffffu, own, s)} * width,
                             c0, width);
  };
  float sum[kGroup] = {}, factors[kGroup];
  const auto add = [&](int s, const Packed<N>& packed) {
    float v[kGroup];
    packed.unpack(v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum[i] = fmaf(sources.each[s].factor, v[i], sum[i]);
  };
  dropout.factors(dropout.row(t), c0, factors);
  while (present != 0) {  // two rows under way; without a second, the first twice
    const int a = next(), b = present != 0 ? next() : -1;
    const Packed<N> of_a = columns(a), of_b = columns(max(b, a));
    add(a, of_a);
    if (b >= 0) add(b, of_b);
  }
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sum[i] *= factors[i];
  put_group<true>(Target<N>{y}, t * width, c0, width, sum);
}

template <typename N>
struct GatherPart {
  const N* rows = nullptr;
  const std::int32_t* index = nullptr;
  std::int64_t tokens = 0, width = 0, count = 0, stride = 0;
  N* y = nullptr;
  unsigned first = 0;  // block
};
inline constexpr int kMostParts = 16;
template <typename N>
struct GatherParts {
  GatherPart<N> each[kMostParts];
  int count = 0;
  unsigned blocks = 0;
};

template <typename N>
__global__ void gather_parts(const __grid_constant__ GatherParts<N> parts) {
  hstu::cuda::wait_for_previous_launch();
  const GatherPart<N>& part = of_block(parts);
  const auto [t, c0] = place_of(part.width, blockIdx.x - part.first);
  if (t >= part.tokens) return;
  const std::int64_t row = part.index[t];
  if (row >= part.count) __trap();  // the host's kernel throws
  float v[kGroup] = {};
  if (row >= 0) load_group(part.rows + row * part.width, c0, part.width, v);
  put_group(Target<N>{part.y}, t * part.stride, c0, part.width, v);
}

// kWhole: of x and y.
template <bool kWhole, typename N>
__global__ void drop(std::int64_t rows, std::int64_t width, const N* x, DropoutRows dropout, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const auto [r, c0] = place_of(width, blockIdx.x);
  if (r >= rows) return;
  float factors[kGroup], v[kGroup];
  dropout.factors(dropout.row(r), c0, factors);
  load_group<kWhole>(x + r * width, c0, width, v);
#pragma unroll
  for (int i = 0; i < kGroup; ++i) v[i] *= factors[i];
  put_group<kWhole>(Target<N>{y}, r * width, c0, width, v);
}

}  // namespace

template <typename T>
void gather_sum(const GatherSum<T>& p, CudaStream stream) {
  if (p.tokens == 0 || p.width == 0) return;
  require(p.sources.size() <= kMostSources, "gather_sum: expected at most {} sources, found {}", kMostSources,
          p.sources.size());
  Sources<Native<T>> sources{{}, static_cast<int>(p.sources.size())};
  bool all_whole = is_whole(native(p.y), p.width, p.width);
  for (std::size_t s = 0; s < p.sources.size(); ++s) {
    const GatherSource<T>& from = p.sources[s];
    sources.each[s] = {native(from.rows), from.index, from.count, from.factor};
    all_whole = all_whole && is_whole(native(from.rows), p.width, p.width);
  }
  using Kernel = decltype(&gather<true, 1, Native<T>>);
  const Kernel one = all_whole ? gather<true, 1, Native<T>> : gather<false, 1, Native<T>>,
               several =
                   all_whole ? gather<true, kMostSources, Native<T>> : gather<false, kMostSources, Native<T>>,
               kernel = sources.count == 1                         ? one
                        : all_whole && p.width % kWarpColumns == 0 ? gather_wide<Native<T>>
                                                                   : several;
  hstu::cuda::launch("gather_sum", kernel, blocks_of_groups(p.tokens, p.width), kThreads, stream.handle,
                     p.tokens, p.width, sources, DropoutRows(p.dropout), native(p.y));
}

template <typename T>
void gather_rows(std::span<const GatherRows<T>> all, CudaStream stream) {
  GatherParts<Native<T>> parts;
  const auto launch_parts = [&] {
    if (parts.blocks > 0)
      hstu::cuda::launch("gathering rows", gather_parts<Native<T>>, parts.blocks, kThreads, stream.handle,
                         parts);
    parts.count = 0;
    parts.blocks = 0;
  };
  for (const GatherRows<T>& p : all) {
    if (p.tokens * p.width == 0) continue;
    if (parts.count == kMostParts) launch_parts();
    parts.each[parts.count++] = {native(p.rows), p.index,  p.tokens,    p.width,
                                 p.count,        p.stride, native(p.y), parts.blocks};
    parts.blocks += blocks_of_groups(p.tokens, p.width);
  }
  launch_parts();
}

template <typename T>
void apply_dropout(const ApplyDropout<T>& p, CudaStream stream) {
  if (p.rows == 0 || p.width == 0) return;
  const bool all_whole = is_whole(native(p.x), p.width, p.width) && is_whole(native(p.y), p.width, p.width);
  hstu::cuda::launch("dropout", all_whole ? drop<true, Native<T>> : drop<false, Native<T>>,
                     blocks_of_groups(p.rows, p.width), kThreads, stream.handle, p.rows, p.width, native(p.x),
                     DropoutRows(p.dropout), native(p.y));
}

template void gather_sum(const GatherSum<float>&, CudaStream);
template void gather_sum(const GatherSum<BFloat16>&, CudaStream);
template void gather_rows(std::span<const GatherRows<float>>, CudaStream);
template void gather_rows(std::span<const GatherRows<BFloat16>>, CudaStream);
template void apply_dropout(const ApplyDropout<float>&, CudaStream);
template void apply_dropout(const ApplyDropout<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
