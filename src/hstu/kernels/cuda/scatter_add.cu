#include <algorithm>
#include <bit>

#include <cub/device/device_radix_sort.cuh>

#include "hstu/device/cuda_calls.h"
#include "hstu/kernels/cuda/add_few_tokens.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/cuda/weighted_sums.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels {
namespace {

constexpr const char* kWhat = "scatter_add";

using namespace cuda;

// scatter_add of many tokens: they are sorted by row (stable, so that those of a row stay in ascending order)
// and cut into chunks. Threads with all its columns add up one chunk. A row whose tokens are within one
// chunk is finished there; of a row that goes over the end of a chunk, every chunk leaves its part in
// `parts`, and the threads of the chunk in which the row begins add them in order afterwards. So the sum has
// a fixed order without atomics, whatever the lengths of the rows.

// The unsigned key of a token: its row; tokens without a row go behind all others.
__global__ void sort_keys(std::int64_t tokens, const std::int32_t* index, std::uint32_t none,
                          std::uint32_t* key, std::uint32_t* token) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (t >= tokens) return;
  const std::int32_t row = index[t];
  if (row >= static_cast<std::int64_t>(none)) __trap();
  key[t] = row < 0 ? none : static_cast<std::uint32_t>(row);
  token[t] = static_cast<std::uint32_t>(t);
}

// Zeros for rows without a token, which are few: a warp looks at 32 rows and writes one after another.
template <typename Out>
__global__ void zero_absent(std::int64_t count, std::int64_t width, const std::uint8_t* present, Out* rows) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool absent = r < count && present[r] == 0;
  for (unsigned left = __ballot_sync(0xffffffffu, absent); left != 0; left &= left - 1) {
    const std::int64_t row = r - threadIdx.x % 32 + __ffs(left) - 1;
    for (std::int64_t c = threadIdx.x % 32; c < width; c += 32) rows[row * width + c] = from_float<Out>(0.0f);
  }
}

struct Sorted {
  const std::uint32_t *key, *token;  // (tokens)
  std::int64_t tokens, chunk;
  std::uint32_t none;

  __device__ bool continues(std::int64_t at) const {  // is `at` of the row of at - 1?
    return at > 0 && at < tokens && key[at] == key[at - 1];
  }
};

// present (rows), zeros before: 1 for rows with tokens. Sorted, because stores of many threads to one address
// take turns.
__global__ void mark_present(Sorted sorted, std::uint8_t* present) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (t < sorted.tokens && sorted.key[t] != sorted.none && !sorted.continues(t)) present[sorted.key[t]] = 1;
}

// What a token adds: its row of dy.
struct PlainTokens {
  __device__ std::int64_t row(std::uint32_t token) const { return token; }
  __device__ float factor(std::uint32_t /*token*/, float common) const { return common; }
};
// Its position's row, times its weight.
template <typename N>
struct WeightedPairs {
  const N* weights;
  std::uint32_t columns;

  __device__ std::int64_t row(std::uint32_t pair) const { return pair / columns; }
  __device__ float factor(std::uint32_t pair, float common) const { return common * to_float(weights[pair]); }
};

// A thread has eight columns of a chunk. blockDim.x threads have neighbouring columns, blockDim.y chunks.
dim3 chunk_threads(std::int64_t width) {
  unsigned x = 1;
  while (x < kThreads && x * kGroup < width) x *= 2;
  return {x, kThreads / x};
}

// parts (chunks, 2, width): of the row that comes in from the chunk before, and of the row that goes on into
// the next one. A row that does both leaves its part in the first. kWhole: of dy and rows (is_whole).
template <bool kWhole, typename N, typename Out, typename Tokens>
__global__ void __launch_bounds__(kThreads)
    add_chunks(Sorted sorted, Tokens tokens, std::int64_t width, const N* dy, std::int64_t stride,
               float factor, Target<Out> rows, float* parts) {
  hstu::cuda::wait_for_previous_launch();
  constexpr int kAtOnce = 4;  // loads under way
  const std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y,
                     begin = chunk * sorted.chunk;
  if (begin >= sorted.tokens) return;
  const std::int64_t end = min(sorted.tokens, begin + sorted.chunk);
  const bool enters = sorted.continues(begin), leaves = sorted.continues(end);
  for (std::int64_t c = kGroup * threadIdx.x; c < width; c += kGroup * blockDim.x) {
    float sum[kGroup] = {};
    bool comes_in = enters;
    for (std::int64_t first = begin; first < end; first += kAtOnce) {
      std::uint32_t key[kAtOnce + 1], token[kAtOnce];
      Packed<N> row[kAtOnce];
#pragma unroll
      for (int i = 0; i <= kAtOnce; ++i) key[i] = first + i < end ? sorted.key[first + i] : sorted.none;
      // Without a branch between loads, which would take turns: up to three tokens are read for nothing.
      if (key[0] == sorted.none) break;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) token[i] = sorted.token[min(first + i, end - 1)];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        row[i] = load_packed<kWhole>(dy + tokens.row(token[i]) * stride, c, width);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (key[i] == sorted.none) break;
        float v[kGroup];
        row[i].unpack(v);
        const float times = tokens.factor(token[i], factor);
#pragma unroll
        for (int e = 0; e < kGroup; ++e) sum[e] = fmaf(times, v[e], sum[e]);
        if (key[i + 1] == key[i]) continue;
        if (comes_in)
          put_group<kWhole>(Target<float>{parts}, 2 * chunk * width, c, width, sum);
        else if (leaves && first + i + 1 == end)
          put_group<kWhole>(Target<float>{parts}, (2 * chunk + 1) * width, c, width, sum);
        else
          put_group<kWhole>(rows, std::int64_t{key[i]} * width, c, width, sum);
#pragma unroll
        for (int e = 0; e < kGroup; ++e) sum[e] = 0;
        comes_in = false;
      }
    }
  }
}

template <bool kWhole, typename N>
__global__ void __launch_bounds__(kThreads)
    add_parts(Sorted sorted, std::int64_t width, Target<N> rows, const float* parts) {
  hstu::cuda::wait_for_previous_launch();
  constexpr int kAtOnce = 8;
  const std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y,
                     begin = chunk * sorted.chunk, end = min(sorted.tokens, begin + sorted.chunk);
  if (begin >= sorted.tokens || !sorted.continues(end)) return;
  const std::uint32_t row = sorted.key[end];
  if (row == sorted.none) return;
  if (sorted.key[begin] == row && sorted.continues(begin)) return;  // the row begins before this chunk
  // The chunks after this one that begin within the row: [chunk + 1, last).
  std::int64_t low = chunk + 1, last = (sorted.tokens + sorted.chunk - 1) / sorted.chunk;
  while (last - low > 1) {
    const std::int64_t middle = (low + last) / 2;
    (sorted.key[middle * sorted.chunk] == row ? low : last) = middle;
  }
  for (std::int64_t c = kGroup * threadIdx.x; c < width; c += kGroup * blockDim.x) {
    float sum[kGroup];
    load_group<kWhole>(parts + (2 * chunk + 1) * width, c, width, sum);
    for (std::int64_t next = chunk + 1; next < last; next += kAtOnce) {
      Packed<float> part[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (next + i < last) part[i] = load_packed<kWhole>(parts + 2 * (next + i) * width, c, width);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (next + i >= last) break;
        float v[kGroup];
        part[i].unpack(v);
#pragma unroll
        for (int e = 0; e < kGroup; ++e) sum[e] += v[e];
      }
    }
    put_group<kWhole>(rows, std::int64_t{row} * width, c, width, sum);
  }
}

template <typename T, typename Out, typename Tokens = PlainTokens>
void add_sorted(const ScatterAdd<T, Out>& p, CudaStream stream, const Tokens& tokens = {}) {
  const Target<Native<Out>> rows = target(p.drows);
  const auto none = static_cast<std::uint32_t>(p.count);
  const Scratch<std::uint32_t> words(stream, words_of_sorting(p.tokens));
  cub::DoubleBuffer<std::uint32_t> key(words.data(), words.data() + p.tokens),
      token(words.data() + 2 * p.tokens, words.data() + 3 * p.tokens);
  hstu::cuda::launch(kWhat, sort_keys, blocks_for(p.tokens, kThreads), kThreads, stream.handle, p.tokens,
                     p.index, none, key.Current(), token.Current());
  const auto items = static_cast<int>(p.tokens);
  const int bits = std::bit_width(none);
  std::size_t bytes = 0;
  const auto sort = [&](void* temporary) {
    hstu::cuda::check_cuda(
        cub::DeviceRadixSort::SortPairs(temporary, bytes, key, token, items, 0, bits, whole(stream)),
        "sorting tokens by row");
  };
  sort(nullptr);
  const Scratch<std::byte> temporary(stream, static_cast<std::int64_t>(bytes));
  sort(temporary.data());

  const Sorted sorted{key.Current(), token.Current(), p.tokens, tokens_of_chunk(p.tokens), none};
  const Scratch<float> parts(stream, floats_of_chunks(p.tokens, p.width));
  if (!p.drows.accumulate) {
    const Scratch<std::uint8_t> present(stream, p.count);
    hstu::cuda::set_zero(present.data(), static_cast<std::size_t>(p.count), whole(stream));
    hstu::cuda::launch(kWhat, mark_present, blocks_for(p.tokens, kThreads), kThreads, stream.handle, sorted,
                       present.data());
    hstu::cuda::launch(kWhat, zero_absent<Native<Out>>, blocks_for(p.count, kThreads), kThreads,
                       stream.handle, p.count, p.width, present.data(), native(p.drows.to));
  }
  const dim3 threads = chunk_threads(p.width);
  const unsigned blocks = blocks_for(count_of_chunks(p.tokens), static_cast<int>(threads.y));
  const bool all_whole = is_whole(p.dy, p.stride, p.width) && is_whole(p.drows.to, p.width, p.width);
  const auto of_chunks = all_whole ? add_chunks<true, Native<T>, Native<Out>, Tokens>
                                   : add_chunks<false, Native<T>, Native<Out>, Tokens>;
  hstu::cuda::launch(kWhat, of_chunks, blocks, threads, stream.handle, sorted, tokens, p.width, native(p.dy),
                     p.stride, p.factor, rows, parts.data());
  const auto of_parts = all_whole ? add_parts<true, Native<Out>> : add_parts<false, Native<Out>>;
  hstu::cuda::launch(kWhat, of_parts, blocks, threads, stream.handle, sorted, p.width, rows, parts.data());
}

void check_counts(std::int64_t tokens, std::int64_t rows) {
  require(tokens < (std::int64_t{1} << 31) && rows < (std::int64_t{1} << 31),
          "scatter_add: {} tokens of {} rows are too many for one kernel", tokens, rows);
}

template <typename T>
void zero_rows(const Gradient<T>& rows, std::int64_t elements, CudaStream stream) {
  if (!rows.accumulate)
    hstu::cuda::set_zero(rows.to, static_cast<std::size_t>(elements) * sizeof(T), whole(stream));
}

// Sums of one launch, in the order of add().
template <typename T, typename Out>
class FewTokenSums {
 public:
  explicit FewTokenSums(CudaStream stream) : stream_(stream) {}
  void add(const ScatterAdd<T, Out>& p, const TokenBlocks& blocks) {
    if (p.count == 0) return;
    const auto same = [&](const auto& other) { return other.rows.to == native(p.drows.to); };
    if (sums_.count == kMostSums || std::any_of(sums_.each, sums_.each + sums_.count, same)) launch();
    sums_.each[sums_.count++] = {
        .dy = native(p.dy),
        .index = p.index,
        .tokens = static_cast<int>(p.tokens),
        .width = p.width,
        .stride = p.stride,
        .factor = p.factor,
        .rows = target(p.drows),
        .count = static_cast<int>(p.count),
        .whole = is_whole(native(p.dy), p.stride, p.width) && is_whole(native(p.drows.to), p.width, p.width),
        .blocks = blocks,
        .first = sums_.blocks};
    sums_.blocks += static_cast<unsigned>(blocks.count());
  }
  void launch() {
    if (sums_.count > 0)
      hstu::cuda::launch(kWhat, add_few_tokens<Native<T>, Native<Out>>, sums_.blocks, kTokenThreads,
                         stream_.handle, sums_);
    sums_.count = 0;
    sums_.blocks = 0;
  }

 private:
  CudaStream stream_;
  ManyFewTokens<Native<T>, Native<Out>> sums_;
};

}  // namespace

template <typename T, typename Out>
void scatter_add(std::span<const ScatterAdd<T, Out>> all, CudaStream stream) {
  FewTokenSums<T, Out> few(stream);
  for (const ScatterAdd<T, Out>& p : all) {
    if (p.drows.to == nullptr || p.width == 0 || p.count == 0) continue;
    check_counts(p.tokens, p.count);
    const TokenBlocks blocks = token_blocks<Native<T>>(p.count, p.width);
    if (p.tokens > 0 && are_few_tokens(p.tokens, blocks)) {
      few.add(p, blocks);
      continue;
    }
    few.launch();
    if (p.tokens > 0)
      add_sorted(p, stream);
    else
      zero_rows(p.drows, p.count * p.width, stream);
  }
  few.launch();
}

template <typename T>
void cuda::add_weighted(const WeightedSums<T>& p, CudaStream stream) {
  if (p.sums.to == nullptr || p.width == 0) return;
  check_counts(p.pairs, p.count);
  if (p.pairs == 0 || p.count == 0) return zero_rows(p.sums, p.count * p.width, stream);
  const ScatterAdd<T, T> pairs{.tokens = p.pairs,
                               .width = p.width,
                               .dy = p.x,
                               .stride = p.width,
                               .index = p.index,
                               .count = p.count,
                               .factor = p.factor,
                               .drows = p.sums};
  add_sorted(pairs, stream,
             WeightedPairs<Native<T>>{native(p.weights), static_cast<std::uint32_t>(p.columns)});
}

template void scatter_add(std::span<const ScatterAdd<float>>, CudaStream);
template void scatter_add(std::span<const ScatterAdd<BFloat16>>, CudaStream);
template void scatter_add(std::span<const ScatterAdd<BFloat16, float>>, CudaStream);
template void cuda::add_weighted(const WeightedSums<float>&, CudaStream);
template void cuda::add_weighted(const WeightedSums<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
