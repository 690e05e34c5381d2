#include "hstu/step/dense_sums.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/thread_stacks.h"

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

DenseSums::DenseSums(const ParameterSet& parameters, Communicator& comm, DeviceTransport* gpus,
                     Context compute, Context exchange, std::int64_t bucket_bytes)
    : gradients_(parameters.gradients()),
      world_{comm, gpus},
      replicas_(replicas_of(compute.groups, world_)),
      compute_(std::move(compute)),
      exchange_(std::move(exchange)) {
  if (comm.size() == 1) return;
  buckets_ = gradient_buckets(parameters, bucket_bytes);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    require(!buckets_[b].is_divided || compute_.groups != nullptr, "{} is divided among ranks without groups",
            buckets_[b].parameters.front()->name);
    missing_.push_back(buckets_[b].parameters.size());
    for (const Parameter* parameter : buckets_[b].parameters) bucket_of_[parameter] = b;
  }
}

DenseSums::~DenseSums() {
  const std::scoped_lock lock(mutex_);
  released_ = 0;
  closed_ = true;
  more_.notify_one();
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
  const std::size_t before = begun_;
  while (begun_ < buckets_.size() && missing_[begun_] == 0) ++begun_;
  if (begun_ == before) return;
  if (before == 0) {
    world_.host.enter("dense gradients");
    replicas_.host.enter("dense gradients");
  }
  if (world_.device != nullptr) {
    exchange_.stream.wait(compute_.stream);
    for (std::size_t b = before; b < begun_; ++b) {
      with_values(buckets_[b], [&](auto values) {
        all_reduce_sum(values.data(), std::ssize(values), *group_of(buckets_[b]).device, *exchange_.memory);
      });
    }
    exchanges_ = world_.device->begun();
    return;
  }
  if (before == 0) {
    thread_ = std::jthread([this] {
      name_this_thread("dense sums");
      exchange_all();
    });
  }
  const std::scoped_lock lock(mutex_);
  released_ = begun_;
  more_.notify_one();
}

void DenseSums::exchange_all() {
  failure_.run([&] {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return released_ > b || closed_; });
        if (released_ <= b) return;
      }
      with_values(buckets_[b], [&](auto values) { group_of(buckets_[b]).host.all_reduce_sum(values); });
    }
  });
}

void DenseSums::finish() {
  begin_rest();
  if (world_.device != nullptr) compute_.stream.wait(exchange_.stream);
  if (thread_.joinable()) thread_.join();
  failure_.rethrow();
}

void DenseSums::wait() const {
  if (world_.device != nullptr) world_.device->wait(exchanges_);
}

template <typename Exchange>
void DenseSums::with_values(const GradientBucket& bucket, const Exchange& exchange) {
  with_float_type(gradients_.dtype(), [&]<typename T>() {
    exchange(std::span(gradients_.mutable_data<T>() + bucket.begin,
                       static_cast<std::size_t>(bucket.end - bucket.begin)));
  });
}

}  // namespace hstu
