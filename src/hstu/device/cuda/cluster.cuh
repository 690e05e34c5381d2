// A barrier of the blocks of a cluster that orders reads alone.
#pragma once

namespace hstu::cuda {

// Until all blocks of the cluster have come here: what they have read by then may be overwritten, and a block
// whose shared memory they have read may end. Their writes need not be visible, which would take a
// microsecond more than cluster_barrier() (ptx.cuh).
__device__ __forceinline__ void cluster_barrier_of_reads() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

}  // namespace hstu::cuda
