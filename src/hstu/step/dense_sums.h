// Sums over ranks of the gradients of dense parameters, in buckets, beside the rest of the backward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/model/parameters.h"

namespace hstu {

// Of the gradients as one tensor: elements [begin, end), all of some parameters that follow each other, all
// of them divided or all whole.
struct GradientBucket {
  std::int64_t begin = 0, end = 0;
  bool is_divided = false;
  std::vector<const Parameter*> parameters = {};
};

// The gradients in buckets of at least `bytes`, but for the last one and those before a parameter that is
// divided where they are not, or the other way round. Depends on the list of parameters alone, so whole
// parameters have the same buckets on all ranks, and divided ones on all replicas. The first bucket has the
// last parameters, which a backward pass reaches first.
std::vector<GradientBucket> gradient_buckets(const ParameterSet& parameters, std::int64_t bytes);

// Of one step. Gradients of whole parameters are summed over all ranks, those of divided ones over the
// replicas of this rank's parts (comm/groups.h): each rank's gradient is a part of the sum. Every rank
// exchanges the same buckets in the same order, whatever the order in which its own backward pass completes
// them: a bucket that is complete waits for those before it. Sums are added in the order of ranks, so buckets
// change no bit. They are exchanges of the groups' queues, which own the communicators until finish().
class DenseSums {
 public:
  static constexpr std::int64_t kBucketBytes = std::int64_t{4} << 20;

  // After ParameterSet::move_to(). `world` has a queue unless it is one rank. On GPUs `exchange` is a context
  // beside `compute`, whose stream is the queue's. `compute` has the groups of divided parameters.
  DenseSums(const ParameterSet& parameters, const Group& world, Context compute, Context exchange,
            std::int64_t bucket_bytes = kBucketBytes);
  ~DenseSums();  // leaves out what has not begun
  DenseSums(const DenseSums&) = delete;
  DenseSums& operator=(const DenseSums&) = delete;

  // This rank adds to the gradient of `parameter` no more (Tape::on_final). Once for each parameter.
  void begin(const Parameter& parameter);
  // The same of all parameters.
  void begin_rest();
  // The gradients become their sums: on a GPU for later work on its stream.
  void finish();
  // After finish(), on GPUs: the host may wait for that work. Throws LostRank (DeviceTransport::wait).
  void wait() const;

 private:
  void begin_complete();

  Tensor gradients_;
  Group world_, replicas_;
  Context compute_, exchange_;
  std::vector<GradientBucket> buckets_;
  std::unordered_map<const Parameter*, std::size_t> bucket_of_;  // those that have not begun
  std::vector<std::size_t> missing_;                             // parameters of each bucket
  std::size_t begun_ = 0;                                        // buckets
  ExchangeQueue::Fence of_world_ = 0, of_replicas_ = 0;          // the last ones
  bool is_finished_ = false;
};

}  // namespace hstu
