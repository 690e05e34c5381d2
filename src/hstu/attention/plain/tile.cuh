// The arithmetic of the plain kernels. A block has a tile of `own` rows of one head of one sample, and reads
// the `other` rows that they meet in tiles, through shared memory:
//
//   output        own      other    sums, with S = alpha q . k and dP = dO . v
//   O             q        k, v     silu(S) v
//   dQ            q, dO    k, v     silu'(S) dP k
//   dK and dV     k, v     q, dO    silu'(S) dP q, silu(S) dO
//
// A thread keeps kElements of one own row and of its sums in registers. The threads that do not have another
// own row share out the other rows, so that a tile with a single row, as of a sample with one query, occupies
// all of them too. Their sums are added through shared memory in one order.
#pragma once

#include <algorithm>
#include <type_traits>

#include "hstu/attention/cuda/jagged_rows.cuh"
#include "hstu/attention/plain/bias.cuh"
#include "hstu/attention/plain/place.cuh"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/mma.cuh"

namespace hstu::cuda {

template <typename T>
struct PlainArguments {
  Samples samples;
  const std::int64_t* query_offsets;
  Rows<const T> own[2], other[2];
  Rows<T> sums[2];  // of other[0], of other[1]
  float alpha;
  std::int32_t head_dim;
  std::int32_t quads;       // rows may be read and written four elements at a time
  std::int32_t accumulate;  // the sums are added to what is there
};

template <typename T>
struct BiasedPlainArguments : PlainArguments<T> {
  Bias bias;
};

// kD: the head size that the kernel computes with; elements from head_dim on are zero.
template <PlainRole kRole, int kD>
struct PlainLayout {
  static constexpr bool kGradient = kRole != PlainRole::output;
  static constexpr bool kSumsFirst = kGradient, kSumsSecond = kRole != PlainRole::query_gradient;
  static constexpr int kSums = kSumsFirst + kSumsSecond;
  static constexpr int kElements = 16;
  static constexpr int kBlocks = kGradient ? 2 : 3;  // of a multiprocessor: more of them spill registers
  static constexpr int kLanes = kD / kElements;      // threads of one own row and one other row
  static constexpr int kQuads = kElements / 4;
  static constexpr int kOther = kD <= 32 ? 64 : 2048 / kD;  // rows of a tile
  static constexpr int kOwn = kOther < 32 ? kOther : 32;
  static constexpr int kAtOnce = kGradient ? 1 : 2;  // other rows of a thread
  // Lanes that read different rows find them in different banks.
  static constexpr int kStride = kD + 4 * kLanes % 32;
  static constexpr int kArray = kOther * kStride, kBuffer = 2 * kArray;
  static constexpr int kPart = kElements + 4;                 // a thread's sum in shared memory
  static constexpr int kParts = kPlainThreads * kPart + 256;  // with the gaps between shares
  static constexpr int kAllParts = kSums * kParts, kFloats = std::max(2 * kBuffer, kAllParts);
  static_assert(kOwn * kLanes <= kPlainThreads && 4 * kFloats <= 48 * 1024);
};

template <typename T>
struct alignas(4 * sizeof(T)) PlainQuad {
  T x[4];
};

// Brings `count` rows from `first` on to shared memory, and zeros in place of the others of kRows. What is
// fp32 is on its way until wait_for_copies.
template <int kRows, int kD, int kStride, typename T>
__device__ __forceinline__ void plain_fill(float* to, const Rows<const T>& from, int first, int count,
                                           int head, const PlainArguments<T>& a) {
  constexpr int kOfRow = kD / 4, kStep = kPlainThreads / kOfRow, kEach = (kRows + kStep - 1) / kStep;
  // A thread has the same elements of rows row, row + kStep, ...
  const int row = static_cast<int>(threadIdx.x) / kOfRow, column = static_cast<int>(threadIdx.x) % kOfRow * 4;
  if (kRows < kStep && row >= kRows) return;
  const int left = a.head_dim - column;  // elements of a row from `column` on
  const T* const at = from.at(first + row, head) + column;
  float* const slot = to + row * kStride + column;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const bool holds = row + i * kStep < count && left > 0;
      const T* const x = holds ? at + i * kStep * from.row_stride : from.data;
      const std::uint32_t address = shared_address(slot + i * kStep * kStride);
      if (a.quads) {
        copy_or_zero(address, x, holds ? 16 : 0);
        continue;
      }
      for (int e = 0; e < 4; ++e) {
        const bool is_element = holds && e < left;
        copy_word_or_zero(address + 4 * e, is_element ? x + e : from.data, is_element ? 4 : 0);
      }
    }
  } else {
    PlainQuad<T> quads[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const bool holds = row + i * kStep < count && left > 0;
      const T* const x = at + i * kStep * from.row_stride;
      if (a.quads && holds) {
        quads[i] = *reinterpret_cast<const PlainQuad<T>*>(x);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) quads[i].x[e] = holds && e < left ? x[e] : static_cast<T>(0.0f);
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const T* const x = quads[i].x;
      *reinterpret_cast<float4*>(slot + i * kStep * kStride) = {
          static_cast<float>(x[0]), static_cast<float>(x[1]), static_cast<float>(x[2]),
          static_cast<float>(x[3])};
    }
  }
}

// Elements `column` to column + 3 of a row.
template <typename T>
__device__ __forceinline__ void plain_store(T* row, int column, const float4& sum, float scale,
                                            const PlainArguments<T>& a) {
  const float x[4] = {sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale};
  T* const at = row + column;
  if (a.quads) {
    if (column >= a.head_dim) return;
    auto* const quad = reinterpret_cast<PlainQuad<T>*>(at);
    PlainQuad<T> result, before{};
    if (a.accumulate) before = *quad;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      result.x[e] = static_cast<T>(a.accumulate ? x[e] + static_cast<float>(before.x[e]) : x[e]);
    *quad = result;
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (column + e < a.head_dim)
        at[e] = static_cast<T>(a.accumulate ? x[e] + static_cast<float>(at[e]) : x[e]);
  }
}

// A thread's quads of one row: lane, lane + kLanes, ... `at` is where its first quad is in shared memory.
template <typename Layout>
struct PlainFragment {
  float4 quad[Layout::kQuads];

  __device__ static float4 quad_at(const float* at, int i) {
    return *reinterpret_cast<const float4*>(at + 4 * Layout::kLanes * i);
  }
  __device__ static PlainFragment zero() {
    PlainFragment f;
#pragma unroll
    for (int i = 0; i < Layout::kQuads; ++i) f.quad[i] = {0, 0, 0, 0};
    return f;
  }
  __device__ static PlainFragment read(const float* at) {
    PlainFragment f;
#pragma unroll
    for (int i = 0; i < Layout::kQuads; ++i) f.quad[i] = quad_at(at, i);
    return f;
  }
  // The product with another row, in all lanes of the two.
  __device__ float dot(const float* at) const {
    float even = 0, odd = 0;
#pragma unroll
    for (int i = 0; i < Layout::kQuads; ++i) {
      const float4 other = quad_at(at, i);
      even = fmaf(quad[i].x, other.x, even), odd = fmaf(quad[i].y, other.y, odd);
      even = fmaf(quad[i].z, other.z, even), odd = fmaf(quad[i].w, other.w, odd);
    }
    float sum = even + odd;
#pragma unroll
    for (int step = 1; step < Layout::kLanes; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
  }
  __device__ void add(float factor, const float* at) {
#pragma unroll
    for (int i = 0; i < Layout::kQuads; ++i) {
      const float4 other = quad_at(at, i);
      quad[i].x = fmaf(factor, other.x, quad[i].x), quad[i].y = fmaf(factor, other.y, quad[i].y);
      quad[i].z = fmaf(factor, other.z, quad[i].z), quad[i].w = fmaf(factor, other.w, quad[i].w);
    }
  }
};

// The smallest i with rows <= 2^i.
__device__ __forceinline__ int plain_log(int rows) {
  return 32 - __clz(rows - 1);
}

// Without the branches of a division that rounds correctly: they would keep neighbouring rows from being
// computed at the same time.
__device__ __forceinline__ Silu plain_silu(float x) {
  return silu_of(x, fast_reciprocal(1.0f + expf(-x)));
}

// How the threads of a block divide a tile of up to 2^log_rows own rows: a thread has row `row`, and of the
// other rows `share`, share + shares, ...
template <typename Layout>
struct PlainShares {
  int log_rows, shares, lane, row, share, first_of_warp;

  __device__ explicit PlainShares(int rows)
      : log_rows(plain_log(rows)),
        shares((kPlainThreads / Layout::kLanes) >> log_rows),
        lane(static_cast<int>(threadIdx.x) % Layout::kLanes),
        row((static_cast<int>(threadIdx.x) / Layout::kLanes) & ((1 << log_rows) - 1)),
        share((static_cast<int>(threadIdx.x) / Layout::kLanes) >> log_rows),
        first_of_warp((static_cast<int>(threadIdx.x) / 32 * 32 / Layout::kLanes) >> log_rows) {}
};

// Adds what a thread's share of `count` other rows contributes to its own row. `tile`: other[0] and other[1];
// the first row is the sample's token `token` and row `first_row` of the batch.
template <PlainRole kRole, typename Layout, typename OwnBias>
__device__ __forceinline__ void plain_meet(const float* tile, int token, int first_row, int count,
                                           const Intervals& seen, float alpha, const PlainShares<Layout>& t,
                                           const PlainFragment<Layout> (&own)[2],
                                           PlainFragment<Layout> (&sum)[2], OwnBias& bias) {
  constexpr int kAtOnce = Layout::kAtOnce;
  for (int base = 0; base + t.first_of_warp < count; base += kAtOnce * t.shares) {  // all lanes alike
    const float* at[kAtOnce];
    bool sees[kAtOnce], any = false;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int j = base + i * t.shares + t.share;
      sees[i] = j < count && seen.contains(token + j);
      any = any || sees[i];
      at[i] = tile + (j & (Layout::kOther - 1)) * Layout::kStride + 4 * t.lane;
    }
    if (!__any_sync(0xffffffffu, any)) continue;
    float first[kAtOnce], second[kAtOnce];  // factors of other[0] and of other[1]
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      float score = alpha * own[0].dot(at[i]);
      if constexpr (OwnBias::kAny) {
        const int j = base + i * t.shares + t.share;
        if (sees[i]) score += bias.of(token + j, static_cast<std::int64_t>(first_row) + j);
      }
      const Silu silu = plain_silu(score);
      second[i] = sees[i] ? silu.value : 0;
      if constexpr (Layout::kGradient) {
        const float through_value = own[1].dot(at[i] + Layout::kArray);  // all lanes: they exchange sums
        first[i] = sees[i] ? silu.slope * through_value : 0;
        if constexpr (OwnBias::kAny && kRole == PlainRole::query_gradient) {
          const int j = base + i * t.shares + t.share;
          if (sees[i] && t.lane == 0) bias.add(token + j, first[i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if constexpr (Layout::kSumsFirst) sum[0].add(first[i], at[i]);
      if constexpr (Layout::kSumsSecond) sum[1].add(second[i], at[i] + Layout::kArray);
    }
  }
}

// Adds the sums of all shares and writes them to the `rows` rows from `first` on. Overwrites `memory`.
template <PlainRole kRole, int kD, typename Layout, typename T>
__device__ __forceinline__ void plain_write(float* memory, int first, int rows, int head, float scale,
                                            const PlainArguments<T>& a, const PlainShares<Layout>& t,
                                            const PlainFragment<Layout> (&sum)[2]) {
  constexpr int kOfRow = kD / 4, kLanes = Layout::kLanes, kPart = Layout::kPart;
  constexpr int kLogOfAll = kD == 16 ? 6 : kD == 32 ? 5 : kD == 64 ? 4 : kD == 128 ? 3 : 2;  // 1024 / kD
  // Neighbouring threads help each other with one quad of the result where there are fewer quads than
  // threads. The gaps between shares give them different banks.
  const int log_helpers = smaller(5, larger(0, kLogOfAll - t.log_rows)), helpers = 1 << log_helpers;
  const int gap = log_helpers == 0 ? 0 : larger(4, 32 >> log_helpers);
  const int used = smaller(t.shares, Layout::kOther);  // the others have met no row
  const int helper = static_cast<int>(threadIdx.x) & (helpers - 1);
  constexpr int kSecond = Layout::kSumsFirst ? Layout::kParts : 0;
  __syncthreads();
  if (t.share < used) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!(i == 0 ? Layout::kSumsFirst : Layout::kSumsSecond)) continue;
      float* const to = memory + i * kSecond + static_cast<int>(threadIdx.x) * kPart + t.share * gap;
#pragma unroll
      for (int c = 0; c < Layout::kQuads; ++c) *reinterpret_cast<float4*>(to + 4 * c) = sum[i].quad[c];
    }
  }
  __syncthreads();
  for (int quad = static_cast<int>(threadIdx.x) >> log_helpers; quad < kOfRow << t.log_rows;
       quad += kPlainThreads >> log_helpers) {
    const int row = quad / kOfRow, of_row = quad % kOfRow;
    const int step = (kLanes * kPart << t.log_rows) + gap;  // from one share to the next
    const int from = (row * kLanes + of_row % kLanes) * kPart + of_row / kLanes * 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!(i == 0 ? Layout::kSumsFirst : Layout::kSumsSecond)) continue;
      float4 total{0, 0, 0, 0};
#pragma unroll 4
      for (int share = helper; share < used; share += helpers) {
        const float4 part = *reinterpret_cast<const float4*>(memory + i * kSecond + share * step + from);
        total.x += part.x, total.y += part.y, total.z += part.z, total.w += part.w;
      }
      for (int distance = 1; distance < helpers; distance *= 2) {
        total.x += __shfl_xor_sync(0xffffffffu, total.x, distance);
        total.y += __shfl_xor_sync(0xffffffffu, total.y, distance);
        total.z += __shfl_xor_sync(0xffffffffu, total.z, distance);
        total.w += __shfl_xor_sync(0xffffffffu, total.w, distance);
      }
      if (helper == 0 && row < rows)
        plain_store(a.sums[i].at(first + row, head), 4 * of_row, total, i == 0 ? scale * a.alpha : scale, a);
    }
  }
}

// What a block needs again after its first tile: in shared memory, as registers are short.
struct PlainLater {
  BlockWalk walk;  // tiles of other rows, counted from the sample's first other row
  SampleRows other;
  int first, rows;  // own rows
  float scale;
};

template <PlainRole kRole, int kD, typename T, typename Arguments>
__global__ void __launch_bounds__(kPlainThreads, PlainLayout<kRole, kD>::kBlocks)
    plain_kernel(const Arguments a) {
  constexpr bool kBias = std::is_same_v<Arguments, BiasedPlainArguments<T>>;
  using Layout = PlainLayout<kRole, kD>;
  using Fragment = PlainFragment<Layout>;
  constexpr bool kOfKeys = kRole == PlainRole::key_gradient;
  constexpr int kOwn = Layout::kOwn, kOther = Layout::kOther, kStride = Layout::kStride;
  wait_for_previous_launch();
  const PlainPlace place =
      plain_place<kOwn>(a.samples, a.query_offsets, kOfKeys ? a.samples.offsets : a.query_offsets, kOfKeys);
  if (!place.found) return;
  __shared__ __align__(16) float memory[Layout::kFloats];
  __shared__ __align__(16) unsigned char later_bytes[sizeof(PlainLater)];  // without a constructor
  PlainLater& later = *reinterpret_cast<PlainLater*>(later_bytes);
  const int head = blockIdx.y;
  const SampleRows own_rows = kOfKeys ? place.keys : place.queries,
                   other_rows = kOfKeys ? place.queries : place.keys;
  const int rows = smaller(kOwn, own_rows.count - place.begin), first = own_rows.first_row + place.begin;
  // The second buffer holds the own rows until they are in registers.
#pragma unroll
  for (int i = 0; i < 1 + Layout::kGradient; ++i)
    plain_fill<kOwn, kD, kStride>(memory + Layout::kBuffer + i * Layout::kArray, a.own[i], first, rows, head,
                                  a);
  const int token = own_rows.from + place.begin;
  Intervals any{other_rows.count, 0, 0, 0, 0};
  if (other_rows.count > kOther) {
    any = rows_of_tokens((kOfKeys ? queries_of_keys(place.mask, token, token + rows)
                                  : keys_of_queries(place.mask, token, token + rows))
                             .any,
                         other_rows);
  }
  const BlockWalk walk(any, kOther);
  const int steps = walk.count();
  if (threadIdx.x == 0) later = {walk, other_rows, first, rows, place.scale};
  const auto begin_tile = [&](const SampleRows& other, int step, int tile) {
    const int begin = tile * kOther;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      plain_fill<kOther, kD, kStride>(memory + step % 2 * Layout::kBuffer + i * Layout::kArray, a.other[i],
                                      other.first_row + begin, other.count - begin, head, a);
  };
  if (steps > 0) begin_tile(other_rows, 0, walk[0]);

  const PlainShares<Layout> t(rows);
  Intervals seen{0, 0, 0, 0, 0};
  if (t.row < rows)
    seen = kOfKeys ? queries_of_key(place.mask, token + t.row) : keys_of_query(place.mask, token + t.row);
  Fragment own[2], sum[2] = {Fragment::zero(), Fragment::zero()};
  wait_for_copies();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 1 + Layout::kGradient; ++i)
    own[i] = Fragment::read(memory + Layout::kBuffer + i * Layout::kArray + t.row * kStride + 4 * t.lane);
  if (steps > 1) __syncthreads();
  auto bias = [&] {
    if constexpr (kBias) {
      PlainBias<kRole> of_row{a.bias, head, token + t.row, place.scale};
      if (a.bias.time != nullptr && t.row < rows)
        of_row.time =
            (kOfKeys ? a.bias.keys : a.bias.queries).times[static_cast<std::int64_t>(first) + t.row];
      return of_row;
    } else {
      return PlainNoBias{};
    }
  }();
  for (int step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) begin_tile(later.other, step + 1, later.walk[step + 1]);
    const int begin = later.walk[step] * kOther;
    plain_meet<kRole>(memory + step % 2 * Layout::kBuffer, later.other.from + begin,
                      later.other.first_row + begin, smaller(kOther, later.other.count - begin), seen,
                      a.alpha, t, own, sum, bias);
    if (more) {
      wait_for_copies();
      __syncthreads();
    }
  }
  if constexpr (kBias && kRole == PlainRole::query_gradient) bias.finish();
  plain_write<kRole, kD>(memory, later.first, later.rows, head, later.scale, a, t, sum);
}

}  // namespace hstu::cuda
