#include <algorithm>
#include <cmath>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/random.cuh"
#include "hstu/embedding/cuda/row_kernels.h"
#include "hstu/embedding/row_store.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr std::size_t kMostLists = 64;  // of one launch: they travel as its argument

struct Lists {
  RowList list[kMostLists];
};

__device__ RowHeader* record_of(const RowTable& t, std::int64_t slot) {
  std::byte* const chunk = t.chunks[slot >> t.shift];
  return reinterpret_cast<RowHeader*>(chunk + (slot & ((std::int64_t{1} << t.shift) - 1)) * t.record_bytes);
}
__device__ float* values_of(RowHeader* record) {
  return reinterpret_cast<float*>(record + 1);
}

__device__ std::int64_t home_of(const RowTable& t, std::int64_t id) {
  return static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(id))) & t.mask;
}

__device__ std::int64_t find(const RowTable& t, std::int64_t id) {
  if (id < 0 || id >= t.nominal_rows) return RowStore::kNull;
  if (t.mask < 0) return RowStore::kAbsent;
  std::int64_t place = home_of(t, id);
  while (t.entries[place].id != id) {
    if (t.entries[place].id == kNoId) return RowStore::kAbsent;
    place = (place + 1) & t.mask;
  }
  return t.entries[place].slot;
}

// Takes the first free entry for an id that is not there.
__device__ IndexEntry* insert(const RowTable& t, std::int64_t id) {
  std::int64_t place = home_of(t, id);
  while (true) {
    auto* const entry = reinterpret_cast<unsigned long long*>(&t.entries[place].id);
    if (atomicCAS(entry, static_cast<unsigned long long>(kNoId), static_cast<unsigned long long>(id)) ==
        static_cast<unsigned long long>(kNoId))
      return &t.entries[place];
    place = (place + 1) & t.mask;
  }
}

// Four columns of the initial value of a row: initial_value.h.
__device__ void initial(const RowTable& t, std::int64_t id, std::int64_t column, float (&out)[4]) {
  std::uint32_t words[4];
  philox(t.key, static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(column / 4), words);
#pragma unroll
  for (int w = 0; w < 4; ++w)
    out[w] = (2.0f * (static_cast<float>(words[w] >> 8) * 0x1p-24f) - 1.0f) * t.bound + t.middle;
}

__device__ float sum_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// The row of this warp; false: none.
__device__ bool row_of_warp(const RowList& list, std::int64_t& row) {
  row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  return row < list.size;
}
__device__ int lane() {
  return static_cast<int>(threadIdx.x % 32);
}

template <bool kCreate>
__global__ void look_up(const __grid_constant__ Lists lists) {
  const RowList& list = lists.list[blockIdx.y];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= list.size) return;
  const std::int64_t id = list.ids[i];
  std::int64_t slot = find(list.table, id);
  if (kCreate && slot == RowStore::kAbsent) {
    // Ids of a list are distinct, so no other thread inserts this one.
    IndexEntry* const entry = insert(list.table, id);
    slot = static_cast<std::int64_t>(atomicAdd(reinterpret_cast<unsigned long long*>(list.table.rows), 1ull));
    entry->slot = slot;
    RowHeader* const record = record_of(list.table, slot);
    record->id = id;
    record->stamp = list.number;  // new, for begin_rows
  }
  list.slots[i] = slot;
}

__device__ void begin(const RowTable& t, RowHeader* record) {
  float* const row = values_of(record);
  const std::int64_t dim = t.dim, width = dim + t.state_width;
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    float x[4];
    initial(t, record->id, c, x);
    for (int w = 0; w < 4 && c + w < dim; ++w) row[c + w] = x[w];
  }
  for (std::int64_t c = dim + lane(); c < width; c += 32) row[c] = 0;
}

// Gives new rows their initial values, and reports to the host how many rows there are.
__global__ void begin_created(const __grid_constant__ Lists lists) {
  const RowList& list = lists.list[blockIdx.y];
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    list.table.report->rows = *list.table.rows;
    __threadfence_system();
    list.table.report->creation = list.number;
  }
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const std::int64_t slot = list.slots[i];
  if (slot < 0) return;
  RowHeader* const record = record_of(list.table, slot);
  const bool is_new = record->stamp == list.number;
  __syncwarp();
  if (is_new) begin(list.table, record);
}

__global__ void begin_named(const __grid_constant__ RowList list) {
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  RowHeader* const record = record_of(list.table, list.slots[i]);
  if (lane() == 0) record->id = list.ids[i];
  __syncwarp();
  begin(list.table, record);
}

__global__ void gather(const __grid_constant__ Lists lists) {
  const RowList& list = lists.list[blockIdx.y];
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const std::int64_t slot = list.slots[i], dim = list.table.dim;
  float* const out = list.values + i * dim;
  const float* const row = slot >= 0 ? values_of(record_of(list.table, slot)) : nullptr;
  if (row != nullptr && dim % 4 == 0) {
    for (std::int64_t c = 4 * lane(); c < dim; c += 128)
      *reinterpret_cast<float4*>(out + c) = *reinterpret_cast<const float4*>(row + c);
    return;
  }
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    float x[4] = {};
    if (slot == RowStore::kAbsent) initial(list.table, list.ids[i], c, x);
    for (int w = 0; w < 4 && c + w < dim; ++w) out[c + w] = row != nullptr ? row[c + w] : x[w];
  }
}

// The numbers of one update, as row_optimizer.cc computes them.
struct Numbers {
  RowOptimizerKind kind;
  double lr, epsilon, beta1, beta2;
};

__device__ void update_adagrad(const Numbers& u, std::int64_t dim, const float* gradient, float* row,
                               float* state) {
  float squares = 0;
  for (std::int64_t c = lane(); c < dim; c += 32) squares += gradient[c] * gradient[c];
  const float sum = state[0] + sum_of_warp(squares) / static_cast<float>(dim);
  __syncwarp();
  if (lane() == 0) state[0] = sum;
  const auto rate = static_cast<float>(u.lr / (sqrt(static_cast<double>(sum)) + u.epsilon));
  for (std::int64_t c = lane(); c < dim; c += 32) row[c] -= rate * gradient[c];
}

__device__ void update_adam(const Numbers& u, std::int64_t dim, const float* gradient, float* row,
                            float* state) {
  float* const m = state;
  float* const v = state + dim;
  const float updates = state[2 * dim] + 1.0f;
  __syncwarp();
  if (lane() == 0) state[2 * dim] = updates;
  const double t = updates;
  const auto beta1 = static_cast<float>(u.beta1), rest1 = static_cast<float>(1.0 - u.beta1);
  const auto beta2 = static_cast<float>(u.beta2), rest2 = static_cast<float>(1.0 - u.beta2);
  const auto rate = static_cast<float>(u.lr / (1.0 - pow(u.beta1, t)));
  const auto root = static_cast<float>(1.0 / sqrt(1.0 - pow(u.beta2, t)));
  const auto epsilon = static_cast<float>(u.epsilon);
  for (std::int64_t c = lane(); c < dim; c += 32) {
    const float g = gradient[c];
    m[c] = beta1 * m[c] + rest1 * g;
    v[c] = beta2 * v[c] + rest2 * g * g;
    row[c] -= rate * m[c] / (sqrtf(v[c]) * root + epsilon);
  }
}

__global__ void update(const __grid_constant__ Lists lists, const Numbers u) {
  const RowList& list = lists.list[blockIdx.y];
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const std::int64_t slot = list.slots[i], dim = list.table.dim;
  if (slot < 0) return;
  RowHeader* const record = record_of(list.table, slot);
  if (lane() == 0 && atomicExch(&record->stamp, list.number) == list.number) list.table.report->twice = 1;
  float* const row = values_of(record);
  const float* const gradient = list.values + i * dim;
  if (u.kind == RowOptimizerKind::rowwise_adagrad) {
    update_adagrad(u, dim, gradient, row, row + dim);
  } else if (u.kind == RowOptimizerKind::adam) {
    update_adam(u, dim, gradient, row, row + dim);
  } else {
    const auto rate = static_cast<float>(u.lr);
    for (std::int64_t c = lane(); c < dim; c += 32) row[c] -= rate * gradient[c];
  }
}

// A list has a row once, so no two warps of a launch touch one record.
__global__ void merge(const __grid_constant__ Lists lists) {
  const RowList& list = lists.list[blockIdx.y];
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const std::int64_t slot = list.slots[i], dim = list.table.dim;
  if (slot < 0) return;
  RowHeader* const record = record_of(list.table, slot);
  float* const gradient = list.values + i * dim;
  const bool had = record->stamp == list.number;
  __syncwarp();
  if (!had) {
    if (lane() == 0) record->stamp = list.number, record->owner = gradient;
    return;
  }
  float* const owner = record->owner;
  for (std::int64_t c = lane(); c < dim; c += 32) owner[c] += gradient[c];
  if (lane() == 0) list.slots[i] = kMerged;
}

__global__ void check_finite(const __grid_constant__ Lists lists, const std::size_t first,
                             unsigned long long* found) {
  const RowList& list = lists.list[blockIdx.y];
  const std::int64_t dim = list.table.dim, n = list.size * dim;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < n; e += step) {
    if (isfinite(list.values[e])) continue;
    atomicMin(found, (static_cast<unsigned long long>(first + blockIdx.y) << 40) +
                         static_cast<unsigned long long>(e / dim));
    return;
  }
}

__global__ void copy_ids(const RowTable table, std::int64_t n, std::int64_t* ids) {
  const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (slot < n) ids[slot] = record_of(table, slot)->id;
}

template <bool kWrite>
__global__ void transfer(const __grid_constant__ RowList list) {
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const std::int64_t width = list.table.dim + list.table.state_width;
  float* const mine = values_of(record_of(list.table, list.slots[i]));
  float* const theirs = list.values + i * width;
  for (std::int64_t c = lane(); c < width; c += 32) kWrite ? mine[c] = theirs[c] : theirs[c] = mine[c];
}

__global__ void reinsert(const IndexEntry* from, std::int64_t n, const RowTable table) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n && from[i].id != kNoId) insert(table, from[i].id)->slot = from[i].slot;
}

unsigned blocks_of(std::int64_t n, std::int64_t per_block) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

// launch(blocks, lists, number of the first) for every kMostLists lists, where one has rows.
template <typename Launch>
void for_lists(std::span<const RowList> lists, std::int64_t per_block, const Launch& launch) {
  for (std::size_t first = 0; first < lists.size(); first += kMostLists) {
    const auto some = lists.subspan(first, std::min(kMostLists, lists.size() - first));
    Lists argument{};
    std::copy(some.begin(), some.end(), argument.list);
    std::int64_t longest = 0;
    for (const RowList& list : some) longest = std::max(longest, list.size);
    if (longest == 0) continue;
    launch(dim3(blocks_of(longest, per_block), static_cast<unsigned>(some.size())), argument, first);
  }
  check_cuda(cudaGetLastError(), "embedding rows");
}

}  // namespace

void find_rows(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kThreads, [&](dim3 blocks, const Lists& some, std::size_t) {
    look_up<false><<<blocks, kThreads, 0, stream>>>(some);
  });
}

void create_rows(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kThreads, [&](dim3 blocks, const Lists& some, std::size_t) {
    look_up<true><<<blocks, kThreads, 0, stream>>>(some);
  });
  for_lists(lists, kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
    begin_created<<<blocks, kThreads, 0, stream>>>(some);
  });
}

void gather_rows(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
    gather<<<blocks, kThreads, 0, stream>>>(some);
  });
}

void update_rows(std::span<const RowList> lists, const RowOptimizer& optimizer, double learning_rate,
                 cudaStream_t stream) {
  const Numbers numbers{optimizer.kind, learning_rate, optimizer.epsilon, optimizer.beta1, optimizer.beta2};
  for_lists(lists, kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
    update<<<blocks, kThreads, 0, stream>>>(some, numbers);
  });
}

void merge_gradients(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
    merge<<<blocks, kThreads, 0, stream>>>(some);
  });
}

void find_not_finite(std::span<const RowList> lists, std::uint64_t* found, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(found, 0xff, sizeof *found, stream), "looking for values that are not finite");
  for_lists(lists, 16, [&](dim3 blocks, const Lists& some, std::size_t first) {
    blocks.x = std::min(blocks.x, 1024u);
    check_finite<<<blocks, kThreads, 0, stream>>>(some, first, reinterpret_cast<unsigned long long*>(found));
  });
}

void list_ids(const RowList& list, std::int64_t* ids, cudaStream_t stream) {
  if (list.size == 0) return;
  copy_ids<<<blocks_of(list.size, kThreads), kThreads, 0, stream>>>(list.table, list.size, ids);
  check_cuda(cudaGetLastError(), "listing the ids of rows");
}

void begin_rows(const RowList& list, cudaStream_t stream) {
  if (list.size == 0) return;
  begin_named<<<blocks_of(list.size, kWarps), kThreads, 0, stream>>>(list);
  check_cuda(cudaGetLastError(), "beginning rows");
}

void read_rows(const RowList& list, cudaStream_t stream) {
  if (list.size == 0) return;
  transfer<false><<<blocks_of(list.size, kWarps), kThreads, 0, stream>>>(list);
  check_cuda(cudaGetLastError(), "reading rows");
}

void write_rows(const RowList& list, cudaStream_t stream) {
  if (list.size == 0) return;
  transfer<true><<<blocks_of(list.size, kWarps), kThreads, 0, stream>>>(list);
  check_cuda(cudaGetLastError(), "writing rows");
}

void rebuild_index(const IndexEntry* from, std::int64_t n, const RowTable& table, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(table.entries, kFilled,
                             static_cast<std::size_t>(table.mask + 1) * sizeof(IndexEntry), stream),
             "clearing an index of rows");
  if (n > 0) reinsert<<<blocks_of(n, kThreads), kThreads, 0, stream>>>(from, n, table);
  check_cuda(cudaGetLastError(), "rebuilding an index of rows");
}

}  // namespace hstu::cuda
