#include <algorithm>

#include "hstu/device/cuda/random.cuh"
#include "hstu/embedding/cuda/row_kernels.cuh"
#include "hstu/embedding/row_store.h"

namespace hstu::cuda {
namespace {

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

// A warp exchanges a row. Reads from the host are under way while others write there: the link carries both.
__global__ void exchange(const RowTable table, const RowLines::Exchange* rows, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= n) return;
  const RowLines::Exchange row = rows[i];
  auto* const mine = reinterpret_cast<float4*>(values_of(record_of(table, row.line)));
  auto* const out = reinterpret_cast<float4*>(row.out);
  const auto* const in = reinterpret_cast<const float4*>(row.in);
  const std::int64_t quads = (table.dim + table.state_width + 3) / 4;
  constexpr int kAtOnce = 4;
  for (std::int64_t first = lane(); first < quads; first += 32 * kAtOnce) {
    float4 coming[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (in != nullptr && first + 32 * k < quads) coming[k] = in[first + 32 * k];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (out != nullptr && first + 32 * k < quads) out[first + 32 * k] = mine[first + 32 * k];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (in != nullptr && first + 32 * k < quads) mine[first + 32 * k] = coming[k];
  }
}

__global__ void reinsert(const IndexEntry* from, std::int64_t n, const RowTable table) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n && from[i].id != kNoId) insert(table, from[i].id)->slot = from[i].slot;
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

void exchange_rows(const RowTable& table, const RowLines::Exchange* rows, std::int64_t n,
                   cudaStream_t stream) {
  if (n == 0) return;
  exchange<<<blocks_of(n, kWarps), kThreads, 0, stream>>>(table, rows, n);
  check_cuda(cudaGetLastError(), "exchanging rows with host memory");
}

void rebuild_index(const IndexEntry* from, std::int64_t n, const RowTable& table, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(table.entries, kFilled,
                             static_cast<std::size_t>(table.mask + 1) * sizeof(IndexEntry), stream),
             "clearing an index of rows");
  if (n > 0) reinsert<<<blocks_of(n, kThreads), kThreads, 0, stream>>>(from, n, table);
  check_cuda(cudaGetLastError(), "rebuilding an index of rows");
}

}  // namespace hstu::cuda
