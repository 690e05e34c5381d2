// The boxes of rows that the tensor copy engine moves.
#pragma once

#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

// Copies a box of a row_map (row_map.h): rows from `row` on of the sample that ends at `sample_end`,
// columns of 64 elements from `column` on, of one head.
struct Box {
  int x, column, head, sample_end;
};
__device__ __forceinline__ void load_box(std::uint32_t to, const CUtensorMap* map, const Box& box,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(0), "r"(box.x), "r"(box.column), "r"(box.head), "r"(box.sample_end)
      : "memory");
}
// The same to both blocks of a cluster of two, at the same address and barrier in each.
__device__ __forceinline__ void load_box_to_both(std::uint32_t to, const CUtensorMap* map, const Box& box,
                                                 std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(barrier), "h"(static_cast<std::uint16_t>(3)), "r"(0), "r"(box.x), "r"(box.column),
      "r"(box.head), "r"(box.sample_end)
      : "memory");
}
// Copies contiguous bytes, a multiple of 16, aligned to 16.
__device__ __forceinline__ void load_bytes(std::uint32_t to, const void* from, std::uint32_t bytes,
                                           std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
// Stores the rows of a box from shared memory, except those beyond the end. `from` may be overwritten after
// wait_for_stores.
__device__ __forceinline__ void store_box(const CUtensorMap* map, const Box& box, std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(
          map),
      "r"(from), "r"(0), "r"(box.x), "r"(box.column), "r"(box.head), "r"(box.sample_end)
      : "memory");
}

}  // namespace hstu::cuda
