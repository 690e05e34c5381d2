// How blocks get their tiles: the first without the schedule, all others by ticket. One warp plans each tile
// and passes it to the others.
#pragma once

#include "hstu/attention/cuda/work.cuh"

namespace hstu::cuda {

// The tile that the blocks of a cluster begin with before the schedule is written: of the first tiles of the
// batch, counted sample by sample, the one with the cluster's number. The lanes of a warp hold it together;
// each looks at one of the first 32 samples. (The launch of the schedule lets this kernel begin when all
// launches before it have ended, so their results can be read.)
struct FirstTiles {
  int rows;                 // of a tile
  std::int32_t before = 0;  // tiles of all heads of the samples before the lane's
  // True if such a tile exists.
  __device__ __forceinline__ bool begin(const Samples& s, int number, ScheduleItem& item) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t first = lane < s.count ? s.offsets[lane] : 0;
    const auto length = static_cast<std::int32_t>(lane < s.count ? s.offsets[lane + 1] - first : 0);
    const std::int32_t tiles = tiles_of(length);
    std::int32_t end = tiles * s.heads;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t sum = __shfl_up_sync(0xffffffffu, end, step);
      if (lane >= step) end += sum;
    }
    before = end - tiles * s.heads;
    const unsigned found = __ballot_sync(0xffffffffu, number < end);
    const int sample = __ffs(static_cast<int>(found)) - 1;
    if (sample < 0) return false;
    const auto of_sample = [&](std::int32_t x) { return __shfl_sync(0xffffffffu, x, sample); };
    const std::int32_t at = number - of_sample(before), of_head = of_sample(tiles);
    item = {sample, static_cast<std::uint32_t>(at / of_head) << kTileBits | at % of_head,
            of_sample(static_cast<std::int32_t>(first)), of_sample(length), 0};
    return true;
  }
  // True if one of `clusters` began with it.
  __device__ __forceinline__ bool has(const ScheduleItem& item, int clusters) const {
    const std::int32_t first = __shfl_sync(0xffffffffu, before, item.sample % 32);
    return item.sample < 32 && first + item.head() * tiles_of(item.length) + item.tile() < clusters;
  }
  __device__ __forceinline__ std::int32_t tiles_of(std::int32_t length) const {
    return (length + rows - 1) / rows;
  }
};
// Every tile comes from the schedule.
struct NoFirstTiles {
  __device__ __forceinline__ bool begin(const Samples&, int, ScheduleItem&) { return false; }
  __device__ __forceinline__ bool has(const ScheduleItem&, int) const { return false; }
};

// How the blocks of a cluster get the same tiles: the first takes tickets and sends each to the second.
template <int kCluster>
struct Tickets {
  static constexpr int kBytes = kCluster == 1 ? 0 : 20 * kWorkSlots;  // of shared memory
  std::uint32_t base, sent = 0;
  __device__ __forceinline__ std::uint32_t full() const { return base + 8 * (sent % kWorkSlots); }
  __device__ __forceinline__ std::uint32_t empty() const { return full() + 8 * kWorkSlots; }
  __device__ __forceinline__ std::uint32_t word() const {
    return base + 16 * kWorkSlots + 4 * (sent % kWorkSlots);
  }
  __device__ __forceinline__ std::uint32_t phase() const { return sent / kWorkSlots & 1; }
  __device__ __forceinline__ void init() const {
    if constexpr (kCluster > 1)
      for (std::uint32_t i = 0; i < 2 * kWorkSlots; ++i) barrier_init(base + 8 * i, 1);
  }
  // One thread of the first block, one of the second.
  __device__ __forceinline__ void send(std::int32_t ticket) {
    barrier_wait_idle(empty(), phase() ^ 1);
    store_to_peer(peer_address(word(), 1), ticket, peer_address(full(), 1));
  }
  __device__ __forceinline__ std::int32_t receive() {
    barrier_expect(full(), 4);
    barrier_wait_idle(full(), phase());
    const auto ticket = static_cast<std::int32_t>(load_shared(word()));
    barrier_arrive_peer(peer_address(empty(), 0));
    return ticket;
  }
};

// Runs in one warp of each block of a cluster and takes tiles until none is left. `plan(samples, work, tile,
// lane, turn)` fills in what the kernel does with a tile; one lane calls `finish(turn)` for the rest of a
// tile after the next has been handed out. A ticket is taken when it is `due` and not before: no other block
// can take a tile that waits in this one, which matters when the last tiles are shared out.
template <int kCluster, typename First, typename Plan, typename Finish>
__device__ __forceinline__ void hand_out(const Samples& samples, const Schedule& schedule,
                                         const WorkRing& works, Tickets<kCluster> tickets, std::uint32_t due,
                                         First first, const Plan& plan, const Finish& finish) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool takes = kCluster == 1 || cluster_rank() == 0;
  ScheduleItem item;
  bool found = first.begin(samples, static_cast<int>(blockIdx.x) / kCluster, item);
  for (std::uint32_t turn = 0;; ++turn) {
    const std::uint32_t slot = turn % kWorkSlots;
    Work& work = works.slots[slot];
    if (takes && turn > 0) barrier_wait_idle(due, (turn - 1) & 1);
    barrier_wait_idle(works.empty + 8 * slot, (turn / kWorkSlots & 1) ^ 1);
    if (turn > 0 || !found) {
      wait_for_previous_launch();  // which wrote the schedule
      std::int32_t ticket;
      do {
        const std::int32_t items = schedule.counters[1];
        ticket = 0;
        if (lane == 0) ticket = takes ? atomicAdd(schedule.counters, 1) : tickets.receive();
        ticket = __shfl_sync(0xffffffffu, ticket, 0);
        found = ticket < items;
        if (found) item = schedule.items[ticket];
      } while (found && first.has(item, static_cast<int>(gridDim.x) / kCluster));
      if constexpr (kCluster > 1) {
        if (takes && lane == 0) tickets.send(ticket);
        ++tickets.sent;
      }
    }
    if (lane == 0) {
      if (found)
        begin_work(work, samples, item);
      else
        work.head = kNoWork;
    }
    __syncwarp();
    if (found) plan(samples, work, item.tile(), lane, turn);
    __syncwarp();
    if (lane == 0) {
      barrier_arrive(works.full + 8 * slot);
      if (turn > 0) finish(turn - 1);
    }
    __syncwarp();
    if (!found) return;
  }
}

}  // namespace hstu::cuda
