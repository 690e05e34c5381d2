#include <algorithm>

#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/random.cuh"
#include "hstu/rows/cuda/row_kernels.cuh"
#include "hstu/rows/cuda/row_values.cuh"
#include "hstu/rows/row_shape.h"

namespace hstu::cuda {
namespace {

__device__ std::int64_t home_of(const RowTable& t, std::int64_t id) {
  return static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(id))) & t.mask;
}

__device__ std::int64_t find(const RowTable& t, std::int64_t id) {
  if (id < 0 || id >= t.nominal_rows) return kNullRow;
  if (t.mask < 0) return kAbsentRow;
  std::int64_t place = home_of(t, id);
  while (t.entries[place].id != id) {
    if (t.entries[place].id == kNoId) return kAbsentRow;
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

__device__ double standard_normal(const RowTable& t, std::int64_t id, std::uint64_t counter) {
  std::uint32_t words[4];
  philox(t.key, static_cast<std::uint64_t>(id), counter, words);
  const double u = words[0] * 0x1p-32, v = words[1] * 0x1p-32;
  return sqrt(-2.0 * log(1.0 - u)) * cospi(2.0 * v);
}

// Four columns of the initial value of a row: initial_value.h. Normal values may differ from the host's in
// the last bit, because the logarithm and the cosine do.
__device__ Quad initial(const RowTable& t, std::int64_t id, std::int64_t column) {
  Quad out;
  if (t.initial == InitialKind::normal || t.initial == InitialKind::truncated_normal) {
    for (int w = 0; w < 4; ++w) {
      auto counter = static_cast<std::uint64_t>(t.first_column + column + w);
      double z = standard_normal(t, id, counter);
      while (t.initial == InitialKind::truncated_normal && fabs(z) > 2.0)
        z = standard_normal(t, id, counter += std::uint64_t{1} << 32);
      out.x[w] = static_cast<float>(t.middle + t.spread * z);
    }
    return out;
  }
  const auto spread = static_cast<float>(t.spread), middle = static_cast<float>(t.middle);
  std::uint32_t words[4];
  random_words(t.key, id, 0, t.first_column + column, 4, words);
#pragma unroll
  for (int w = 0; w < 4; ++w)
    out.x[w] = (2.0f * (static_cast<float>(words[w] >> 8) * 0x1p-24f) - 1.0f) * spread + middle;
  return out;
}

__device__ void begin(const RowTable& t, RowHeader* record) {
  float* const row = values_of(record);
  for (std::int64_t c = 4 * lane(); c < t.dim; c += 128) store_values(t, row, c, initial(t, record->id, c));
  for (std::int64_t c = lane(); c < t.state_width; c += 32) row[t.state_begin + c] = 0;
}

// A thread looks up an id, and its warp gives the new rows their initial values.
template <bool kCreate, typename Lists>
__global__ void look_up(const __grid_constant__ Lists lists) {
  wait_for_previous_launch();
  const RowList& list = lists.list[blockIdx.y];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  std::int64_t slot = kNullRow;
  bool is_new = false;
  if (i < list.size) {
    const std::int64_t id = list.ids[i];
    slot = find(list.table, id);
    is_new = kCreate && slot == kAbsentRow;
    if (is_new) {
      // Ids of a list are distinct, so no other thread inserts this one.
      IndexEntry* const entry = insert(list.table, id);
      slot =
          static_cast<std::int64_t>(atomicAdd(reinterpret_cast<unsigned long long*>(list.table.rows), 1ull));
      entry->slot = slot;
      RowHeader* const record = record_of(list.table, slot);
      record->id = id;
      record->stamp = list.number;
    }
    list.slots[i] = slot;
  }
  if (!kCreate) return;
  __syncwarp();
  for (unsigned created = __ballot_sync(kAllLanes, is_new); created != 0; created &= created - 1)
    begin(list.table, record_of(list.table, __shfl_sync(kAllLanes, slot, __ffs(created) - 1)));
}

// Reports to the host how many rows there are. One block a list.
template <typename Lists>
__global__ void report_rows(const __grid_constant__ Lists lists) {
  wait_for_previous_launch();
  const RowList& list = lists.list[blockIdx.y];
  list.table.report->rows = *list.table.rows;
  __threadfence_system();
  list.table.report->creation = list.number;
}

__global__ void begin_named(const __grid_constant__ RowList list) {
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  RowHeader* const record = record_of(list.table, list.slots[i]);
  if (lane() == 0) record->id = list.ids[i];
  __syncwarp();
  begin(list.table, record);
}

// What a lookup of an absent row gives is what a new row begins with.
__device__ Quad absent(const RowTable& t, std::int64_t id, std::int64_t c) {
  Quad quad = initial(t, id, c);
  for (float& x : quad.x)
    if (t.is_bf16) x = __bfloat162float(__float2bfloat16_rn(x));
  return quad;
}

__device__ void gather_row(const RowList& list, std::int64_t i, std::int64_t slot) {
  const RowTable& t = list.table;
  const float* const row = slot >= 0 ? values_of(record_of(t, slot)) : nullptr;
  for (std::int64_t c = 4 * lane(); c < t.dim; c += 128)
    store_quad(list.values + i * t.dim, c, t.dim,
               row != nullptr       ? load_values(t, row, c)
               : slot == kAbsentRow ? absent(t, list.ids[i], c)
                                    : Quad{});
}

inline constexpr int kGathered = 4;  // rows of a warp, which it reads at the same time

template <typename Lists>
__global__ void gather(const __grid_constant__ Lists lists) {
  wait_for_previous_launch();
  const RowList& list = lists.list[blockIdx.y];
  const std::int64_t first = kGathered * (static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32);
  const std::int64_t dim = list.table.dim;
  std::int64_t slots[kGathered];
  bool whole = dim % 4 == 0;
#pragma unroll
  for (int k = 0; k < kGathered; ++k) {
    slots[k] = first + k < list.size ? list.slots[first + k] : kNullRow;
    whole = whole && slots[k] >= 0;
  }
  if (!whole) {
    for (int k = 0; k < kGathered && first + k < list.size; ++k) gather_row(list, first + k, slots[k]);
    return;
  }
  const float* rows[kGathered];
#pragma unroll
  for (int k = 0; k < kGathered; ++k) rows[k] = values_of(record_of(list.table, slots[k]));
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    Quad x[kGathered];
#pragma unroll
    for (int k = 0; k < kGathered; ++k) x[k] = load_values(list.table, rows[k], c);
#pragma unroll
    for (int k = 0; k < kGathered; ++k) store_quad(list.values + (first + k) * dim, c, dim, x[k]);
  }
}

// A list has a row once, so no two warps of a launch touch one record.
template <typename Lists>
__global__ void merge(const __grid_constant__ Lists lists) {
  wait_for_previous_launch();
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
  if (lane() == 0) list.slots[i] = kMergedRow;
}

template <typename Lists>
__global__ void check_finite(const __grid_constant__ Lists lists, const std::size_t first,
                             unsigned long long* found) {
  wait_for_previous_launch();
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

__global__ void copy_headers(const RowTable table, std::int64_t n, std::int64_t* ids, std::uint32_t* stamps) {
  const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (slot >= n) return;
  const RowHeader* const record = record_of(table, slot);
  ids[slot] = record->id;
  stamps[slot] = record->stamp;
}

template <bool kWrite>
__global__ void transfer(const __grid_constant__ RowList list) {
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const RowTable& t = list.table;
  float* const mine = values_of(record_of(t, list.slots[i]));
  float* const theirs = list.values + i * (t.dim + t.state_width);
  for (std::int64_t c = lane(); c < t.dim; c += 32) {
    auto* const half = reinterpret_cast<__nv_bfloat16*>(mine) + c;
    if (kWrite && t.is_bf16)
      *half = __float2bfloat16_rn(theirs[c]);
    else if (kWrite)
      mine[c] = theirs[c];
    else
      theirs[c] = t.is_bf16 ? __bfloat162float(*half) : mine[c];
  }
  for (std::int64_t c = lane(); c < t.state_width; c += 32) {
    float &here = mine[t.state_begin + c], &there = theirs[t.dim + c];
    kWrite ? here = there : there = here;
  }
}

// Quads between `address` and the 128 bytes that it is in: a warp that begins there reads and writes whole
// lines of the link.
__device__ int quads_before(const void* address) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) / sizeof(float4) % 8);
}

// A warp exchanges a row, with kAtOnce quads of a lane under way. Reads from the host are under way while
// others write there: the link carries both.
template <int kAtOnce>
__device__ void exchange_row(const RowTable& table, const RowLines::Exchange& row) {
  auto* const mine = reinterpret_cast<float4*>(values_of(record_of(table, row.line)));
  auto* const out = reinterpret_cast<float4*>(row.out);
  const auto* const in = reinterpret_cast<const float4*>(row.in);
  const int quads = static_cast<int>((table.state_begin + table.state_width + 3) / 4);
  // Of a row in several turns, what comes in one would overwrite what leaves in the next.
  const bool one_turn = quads + 7 <= 32 * kAtOnce;
  const int from = lane() - (one_turn ? quads_before(in) : 0);
  const int to = lane() - (one_turn ? quads_before(out) : 0);
  for (int first = 0; first < quads; first += 32 * kAtOnce) {
    float4 coming[kAtOnce];
    const auto in_row = [&](int q) { return q >= 0 && q < quads; };
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int q = first + from + 32 * k;
      if (in != nullptr && in_row(q)) coming[k] = in[q];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int q = first + to + 32 * k;
      if (out != nullptr && in_row(q)) out[q] = mine[q];
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int q = first + from + 32 * k;
      if (in != nullptr && in_row(q)) mine[q] = coming[k];
    }
    __syncwarp();
  }
}

__global__ void exchange(const RowTable table, const RowLines::Exchange* rows, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i < n) exchange_row<4>(table, rows[i]);
}

// Blocks of one warp. The kernels of attention and products leave 1,024 registers of a multiprocessor: a warp
// of 32 is beside them, and they need not wait until it ends.
__global__ void __maxnreg__(32)
    exchange_beside(const RowTable table, const RowLines::Exchange* rows, std::int64_t n) {
  for (std::int64_t i = blockIdx.x; i < n; i += gridDim.x) exchange_row<2>(table, rows[i]);
}

__global__ void reinsert(const IndexEntry* from, std::int64_t n, const RowTable table) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n && from[i].id != kNoId) insert(table, from[i].id)->slot = from[i].slot;
}

}  // namespace

void find_rows(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kThreads, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t) {
    launch("looking rows up", &look_up<false, Lists>, blocks, kThreads, stream, some);
  });
}

void create_rows(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kThreads, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t) {
    launch("creating rows", &look_up<true, Lists>, blocks, kThreads, stream, some);
    launch("counting rows", &report_rows<Lists>, dim3(1, blocks.y), 1, stream, some);
  });
}

void gather_rows(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kGathered * kWarps, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t) {
    launch("gathering rows", &gather<Lists>, blocks, kThreads, stream, some);
  });
}

void merge_gradients(std::span<const RowList> lists, cudaStream_t stream) {
  for_lists(lists, kWarps, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t) {
    launch("merging gradients of rows", &merge<Lists>, blocks, kThreads, stream, some);
  });
}

void find_not_finite(std::span<const RowList> lists, std::uint64_t* found, cudaStream_t stream) {
  constexpr const char* kWhat = "looking for values that are not finite";
  check_cuda(cudaMemsetAsync(found, 0xff, sizeof *found, stream), kWhat);
  for_lists(lists, 16, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t first) {
    blocks.x = std::min(blocks.x, 1024u);
    launch(kWhat, &check_finite<Lists>, blocks, kThreads, stream, some, first,
           reinterpret_cast<unsigned long long*>(found));
  });
}

void list_rows(const RowList& list, std::int64_t* ids, std::uint32_t* stamps, cudaStream_t stream) {
  if (list.size == 0) return;
  copy_headers<<<blocks_of(list.size, kThreads), kThreads, 0, stream>>>(list.table, list.size, ids, stamps);
  check_cuda(cudaGetLastError(), "listing rows");
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

void exchange_rows(const RowTable& table, const RowLines::Exchange* rows, std::int64_t n, Pace pace,
                   cudaStream_t stream) {
  constexpr const char* kWhat = "exchanging rows with host memory";
  if (n == 0) return;
  if (pace == Pace::beside) {
    const int warps = current_device_attribute(cudaDevAttrMultiProcessorCount, kWhat);
    exchange_beside<<<static_cast<unsigned>(warps), 32, 0, stream>>>(table, rows, n);
  } else {
    exchange<<<blocks_of(n, kWarps), kThreads, 0, stream>>>(table, rows, n);
  }
  check_cuda(cudaGetLastError(), kWhat);
}

void rebuild_index(const IndexEntry* from, std::int64_t n, const RowTable& table, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(table.entries, kFilled,
                             static_cast<std::size_t>(table.mask + 1) * sizeof(IndexEntry), stream),
             "clearing an index of rows");
  if (n > 0) reinsert<<<blocks_of(n, kThreads), kThreads, 0, stream>>>(from, n, table);
  check_cuda(cudaGetLastError(), "rebuilding an index of rows");
}

}  // namespace hstu::cuda
