// Before and after the kernels of a problem with a relative bias.
#include <algorithm>

#include "hstu/attention/checks.h"
#include "hstu/attention/cuda/bias.cuh"
#include "hstu/attention/cuda/launch_tensor_cores.h"
#include "hstu/base/error.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kBiasThreads = 256, kMostBlocks = 528;
constexpr std::int64_t kRowsBehind = 256;  // that tiles beyond the end of the last sample may read

std::int64_t position_entries(const RelativeBias& b) {
  return b.position_table == nullptr ? 0 : b.tables * (2 * b.positions - 1);
}
std::int64_t time_entries(const RelativeBias& b) {
  return b.time_table == nullptr ? 0 : b.tables * (b.buckets + 1);
}
std::int64_t time_copies(const RelativeBias& b) {
  return std::max<std::int64_t>(1, 32 / b.tables);
}

// One block counts the thresholds of all classes.
bool has_classes(const RelativeBias& b) {
  constexpr std::int64_t kMost = 1024;
  return b.time_table != nullptr && b.buckets <= kMost;
}

// Where the parts are in memory.
struct Places {
  std::int64_t rows[2] = {}, spans[2] = {}, short_spans[2] = {};  // of queries, of keys
  std::int64_t steps = 0, classes = 0, halves[2] = {};            // halves: of positions, of times
  std::int64_t flags = 0, position = 0, time = 0, end = 0;        // from `flags` on: zeros at first
};
Places places_of(const AttentionProblem& p, bool ticks, bool gradients) {
  Places at;
  const auto take = [&](std::int64_t& place, std::int64_t bytes) {
    place = at.end;
    at.end += aligned(bytes);
  };
  if (ticks && p.bias.time_table != nullptr) {
    const std::int64_t rows = p.tokens + kRowsBehind;
    for (int side = 0; side < 2; ++side) {
      take(at.rows[side], 4 * rows);
      take(at.spans[side], 8 * rows);
      take(at.short_spans[side], 8 * rows);
    }
  }
  if (has_classes(p.bias)) {
    take(at.steps, 4 * (p.bias.buckets + 2));
    take(at.classes, 8 * kDistanceClasses);
  }
  if (ticks) {
    take(at.halves[0], 4 * position_entries(p.bias));
    take(at.halves[1], 4 * time_entries(p.bias));
  }
  if (gradients) {
    take(at.flags, 8);
    take(at.position, 8 * kExponentBins * position_entries(p.bias));
    take(at.time, 8 * kExponentBins * time_entries(p.bias) * time_copies(p.bias));
  }
  return at;
}

struct PrepareArguments {
  const std::int64_t *offsets, *thresholds;
  const std::int64_t* times[2];  // of queries, of keys
  std::int32_t* rows[2];         // null: no times are wanted
  int2 *spans[2], *short_spans[2];
  std::int32_t* steps;
  int2* classes;
  const float* tables[2];
  float* halves[2];
  std::int64_t entries[2];  // 0: no halves are wanted
  uint4* zeroed;
  std::int64_t zeroed_count, tokens;
  std::int32_t samples, buckets;
};

// The sample of a row: the last whose first row is not behind it.
__device__ int sample_of(const PrepareArguments& a, std::int64_t row) {
  int begin = 0, end = a.samples;
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    if (a.offsets[middle] <= row)
      begin = middle;
    else
      end = middle;
  }
  return begin;
}

__device__ void write_steps(const PrepareArguments& a) {
  constexpr std::int64_t kMost = 2147483647;
  const int t = static_cast<int>(threadIdx.x);
  const auto step = [&](int i) {
    return static_cast<std::int32_t>(i >= a.buckets ? kMost
                                                    : max(std::int64_t{0}, min(kMost, a.thresholds[i])));
  };
  for (int i = t; i < a.buckets + 2; i += kBiasThreads) a.steps[i] = step(i);
  for (int i = t; i < kDistanceClasses; i += kBiasThreads) {
    // The smallest distance of a class.
    const auto smallest = [](int of) {
      return static_cast<std::int64_t>(of == 0 ? 0.0f : ceilf(__uint_as_float((of + 507u) << 21)));
    };
    const std::int64_t distance = smallest(i);
    int count = 0;
    while (count < a.buckets && a.thresholds[count] <= distance) ++count;
    const bool several = step(count + 1) < smallest(i + 1);
    a.classes[i] = make_int2(count + (several ? kSeveralThresholds : 0), step(count));
  }
}

// The ticks and spans of kBiasThreads rows from `first` on.
__device__ void write_ticks(const PrepareArguments& a, int side, std::int64_t first) {
  __shared__ std::int32_t ticks[kBiasThreads + kRowsOfSpan];
  __shared__ std::int64_t ends[kBiasThreads];
  constexpr std::int64_t kMost = std::int64_t{1} << 29;
  const int t = static_cast<int>(threadIdx.x);
  __syncthreads();
  for (int i = t; i < kBiasThreads + kRowsOfSpan; i += kBiasThreads) {
    const std::int64_t row = first + i;
    std::int32_t tick = 0;
    if (row < a.tokens) {
      const int sample = sample_of(a, row);
      const std::int64_t begin = a.offsets[sample], end = a.offsets[sample + 1];
      if (i < kBiasThreads) ends[i] = end;
      if (row >= begin && row < end) {  // rows of no sample have no times
        const std::int64_t distance = a.times[side][row] - a.times[1][begin];
        tick = distance > -kMost && distance < kMost ? static_cast<std::int32_t>(distance) : kFarTick;
      }
    } else if (i < kBiasThreads) {
      ends[i] = row;
    }
    ticks[i] = tick;
  }
  __syncthreads();
  const std::int64_t row = first + t;
  if (row >= a.tokens + kRowsBehind) return;
  const int count = static_cast<int>(min(std::int64_t{kRowsOfSpan}, ends[t] - row));
  const auto put = [&](int2* spans, int2 span) { spans[row] = span.x == kFarTick ? make_int2(1, 0) : span; };
  int2 span = make_int2(ticks[t], ticks[t]);
  for (int i = 1; i < count; ++i) {
    if (i == kRowsOfShortSpan) put(a.short_spans[side], span);
    span.x = min(span.x, ticks[t + i]);
    span.y = max(span.y, ticks[t + i]);
  }
  if (count <= kRowsOfShortSpan) put(a.short_spans[side], span);
  put(a.spans[side], span);
  a.rows[side][row] = ticks[t];
}

__global__ void __launch_bounds__(kBiasThreads) prepare_kernel(const __grid_constant__ PrepareArguments a) {
  wait_for_previous_launch();
  let_next_launch_begin();
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBiasThreads;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kBiasThreads;
  for (std::int64_t i = begin + threadIdx.x; i < a.zeroed_count; i += stride)
    a.zeroed[i] = make_uint4(0, 0, 0, 0);
  for (int table = 0; table < 2; ++table)
    for (std::int64_t i = begin + threadIdx.x; i < a.entries[table]; i += stride)
      a.halves[table][i] = 0.5f * a.tables[table][i];
  if (blockIdx.x == 0 && a.classes != nullptr) write_steps(a);
  if (a.rows[0] == nullptr) return;
  for (std::int64_t first = begin; first < a.tokens + kRowsBehind; first += stride)
    for (int side = 0; side < 2; ++side) write_ticks(a, side, first);
}

struct FinishArguments {
  ExactSums sums[2];
  float* to[2];
};

// A warp for each entry of both tables: a lane has the sum of eight powers of two.
__global__ void __launch_bounds__(kBiasThreads) finish_kernel(const __grid_constant__ FinishArguments a) {
  wait_for_previous_launch();
  let_next_launch_begin();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::int64_t entry = static_cast<std::int64_t>(blockIdx.x) * (kBiasThreads / 32) + threadIdx.x / 32;
  const int table = entry < a.sums[0].entries ? 0 : 1;
  if (table == 1) entry -= a.sums[0].entries;
  const ExactSums& sums = a.sums[table];
  if (entry >= sums.entries || a.to[table] == nullptr) return;
  long long of_bin = 0;
  for (int copy = 0; copy < sums.copies; ++copy)
    of_bin += static_cast<long long>(
        sums.bins[(static_cast<std::int64_t>(copy) * kExponentBins + lane) * sums.entries + entry]);
  double sum = ldexp(static_cast<double>(of_bin), 8 * lane - 150);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane != 0) return;
  if (*sums.not_finite != 0) sum = __longlong_as_double(0x7ff8000000000000ll);
  a.to[table][entry] += static_cast<float>(sum);
}

}  // namespace

static_assert(kExponentBins == 32);

std::int64_t bias_bytes(const AttentionProblem& p, bool ticks, bool gradients) {
  return p.bias.any() ? places_of(p, ticks, gradients).end : 0;
}

Bias bias_as_it_is(const RelativeBias& from) {
  Bias b;
  b.position = static_cast<const float*>(from.position_table);
  b.time = static_cast<const float*>(from.time_table);
  b.positions = static_cast<std::int32_t>(from.positions),
  b.buckets = static_cast<std::int32_t>(from.buckets);
  b.tables = static_cast<std::int32_t>(from.tables), b.thresholds = from.thresholds;
  b.queries.times = from.query_time, b.keys.times = from.key_time;
  return b;
}

Bias prepare_bias(const AttentionProblem& p, bool ticks, const AttentionGradients* g, void* memory,
                  cudaStream_t stream) {
  const RelativeBias& from = p.bias;
  const Places at = places_of(p, ticks, g != nullptr);
  char* const base = static_cast<char*>(memory);
  const auto place = [&]<typename T>(std::int64_t offset, T*) { return reinterpret_cast<T*>(base + offset); };
  Bias b = bias_as_it_is(from);
  PrepareArguments a{};
  a.offsets = p.offsets, a.thresholds = from.thresholds, a.tokens = p.tokens;
  a.samples = static_cast<std::int32_t>(p.samples), a.buckets = b.buckets;
  if (ticks && b.time != nullptr) {
    a.times[0] = from.query_time, a.times[1] = from.key_time;
    for (int side = 0; side < 2; ++side) {
      a.rows[side] = place(at.rows[side], a.rows[side]);
      a.spans[side] = place(at.spans[side], a.spans[side]);
      a.short_spans[side] = place(at.short_spans[side], a.short_spans[side]);
      Ticks& ticks_of = side == 0 ? b.queries : b.keys;
      ticks_of.of_rows = a.rows[side], ticks_of.spans = a.spans[side];
      ticks_of.short_spans = a.short_spans[side];
    }
  }
  if (has_classes(from)) {
    a.steps = place(at.steps, a.steps), a.classes = place(at.classes, a.classes);
    b.steps = a.steps, b.classes = a.classes;
  }
  if (ticks) {
    const std::int64_t entries[2] = {position_entries(from), time_entries(from)};
    for (int table = 0; table < 2; ++table) {
      const float*& of_kernel = table == 0 ? b.position : b.time;
      a.tables[table] = of_kernel, a.entries[table] = entries[table];
      if (of_kernel == nullptr) continue;
      a.halves[table] = place(at.halves[table], a.halves[table]);
      of_kernel = a.halves[table];
    }
  }
  if (g != nullptr) {
    std::uint32_t* const flags = place(at.flags, static_cast<std::uint32_t*>(nullptr));
    const auto sums = [&](void* to, std::int64_t offset, std::int64_t entries, std::int64_t copies,
                          std::uint32_t* flag) -> ExactSums {
      if (to == nullptr || entries == 0) return {};
      return {place(offset, static_cast<unsigned long long*>(nullptr)), static_cast<std::int32_t>(entries),
              static_cast<std::int32_t>(copies), flag};
    };
    b.d_position = sums(g->d_position_table, at.position, position_entries(from), 1, flags);
    b.d_time = sums(g->d_time_table, at.time, time_entries(from), time_copies(from), flags + 1);
    if (b.d_position.bins != nullptr || b.d_time.bins != nullptr) {
      a.zeroed = place(at.flags, a.zeroed);
      a.zeroed_count = (at.end - at.flags) / 16;
    }
  }
  const std::int64_t rows = a.rows[0] == nullptr ? 0 : p.tokens + kRowsBehind;
  const std::int64_t most =
      std::max({rows, a.zeroed_count / 4, a.entries[0], a.entries[1], std::int64_t{a.classes != nullptr}});
  const std::int64_t blocks = (most + kBiasThreads - 1) / kBiasThreads;
  if (blocks > 0)
    launch("attention bias", prepare_kernel,
           static_cast<unsigned>(std::min<std::int64_t>(blocks, kMostBlocks)), kBiasThreads, stream, a);
  return b;
}

void finish_bias(const Bias& b, const AttentionGradients& g, cudaStream_t stream) {
  if (b.d_position.bins == nullptr && b.d_time.bins == nullptr) return;
  const FinishArguments a{{b.d_position, b.d_time},
                          {static_cast<float*>(g.d_position_table), static_cast<float*>(g.d_time_table)}};
  const std::int64_t entries = b.d_position.entries + static_cast<std::int64_t>(b.d_time.entries);
  launch("attention bias gradients", finish_kernel,
         static_cast<unsigned>((entries + kBiasThreads / 32 - 1) / (kBiasThreads / 32)), kBiasThreads, stream,
         a);
}

}  // namespace hstu::cuda
