#include "hstu/step/dense_sums.h"

#include <algorithm>
#include <span>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {

std::vector<GradientBucket> gradient_buckets(const ParameterSet& parameters, std::int64_t bytes) {
  const NamedTensors all = parameters.all();
  std::vector<GradientBucket> buckets;
  GradientBucket bucket{.end = parameters.gradients().size()};
  const auto element_bytes = static_cast<std::int64_t>(size_of(parameters.gradients().dtype()));
  for (std::size_t p = all.size(); p-- > 0;) {
    bucket.begin = (all[p]->gradient.raw() - parameters.gradients().raw()) / element_bytes;
    bucket.is_divided = all[p]->division.is_divided();
    bucket.parameters.push_back(all[p]);
    const bool next_is_like_it = p > 0 && all[p - 1]->division.is_divided() == bucket.is_divided;
    if (next_is_like_it && (bucket.end - bucket.begin) * element_bytes < bytes) continue;
    buckets.push_back(std::exchange(bucket, {.end = bucket.begin}));
  }
  return buckets;
}

namespace {

// The values (n), floats or doubles, become their sums over the group.
void sum_over(const Group& group, Tensor values, MemoryPool& memory) {
  with_float_type(values.dtype(), [&]<typename T>() {
    T* const first = values.mutable_data<T>();
    if (group.device != nullptr)
      all_reduce_sum(first, values.size(), *group.device, memory);
    else
      group.host.all_reduce_sum(std::span(first, static_cast<std::size_t>(values.size())));
  });
}

}  // namespace

DenseSums::DenseSums(const ParameterSet& parameters, const Group& world, Context compute, Context exchange,
                     std::int64_t bucket_bytes)
    : gradients_(parameters.gradients()),
      world_(world),
      replicas_(replicas_of(compute.groups, world)),
      compute_(std::move(compute)),
      exchange_(std::move(exchange)) {
  if (world.size() == 1) return;
  buckets_ = gradient_buckets(parameters, bucket_bytes);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    require(!buckets_[b].is_divided || compute_.groups != nullptr, "{} is divided among ranks without groups",
            buckets_[b].parameters.front()->name);
    missing_.push_back(buckets_[b].parameters.size());
    for (const Parameter* parameter : buckets_[b].parameters) bucket_of_[parameter] = b;
  }
}

DenseSums::~DenseSums() {
  if (begun_ == 0 || is_finished_) return;
  world_.queue->drop();
  replicas_.queue->drop();
}

void DenseSums::begin(const Parameter& parameter) {
  if (buckets_.empty()) return;
  const auto bucket = bucket_of_.find(&parameter);
  require(bucket != bucket_of_.end(), "the gradient of {} is not among these sums, or was final before",
          parameter.name);
  --missing_[bucket->second];
  bucket_of_.erase(bucket);
  begin_complete();
}

void DenseSums::begin_rest() {
  std::fill(missing_.begin(), missing_.end(), 0);
  begin_complete();
}

void DenseSums::begin_complete() {
  for (; begun_ < buckets_.size() && missing_[begun_] == 0; ++begun_) {
    const GradientBucket& bucket = buckets_[begun_];
    const Group& group = bucket.is_divided ? replicas_ : world_;
    (bucket.is_divided ? of_replicas_ : of_world_) =
        group.queue->submit("dense gradients", compute_.stream,
                            [group, values = gradients_.row_range(bucket.begin, bucket.end),
                             memory = exchange_.memory] { sum_over(group, values, *memory); });
  }
}

void DenseSums::finish() {
  begin_rest();
  is_finished_ = true;
  if (buckets_.empty()) return;
  world_.queue->order_after(of_world_, compute_.stream);
  replicas_.queue->order_after(of_replicas_, compute_.stream);
}

void DenseSums::wait() const {
  if (buckets_.empty()) return;
  world_.queue->wait(of_world_);
  replicas_.queue->wait(of_replicas_);
}

}  // namespace hstu
