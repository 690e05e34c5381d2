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
  for (std::size_t p = all.size(); p-- > 0;) {
    bucket.begin = all[p]->gradient.data<float>() - parameters.gradients().data<float>();
    bucket.parameters.push_back(all[p]);
    if (p > 0 && (bucket.end - bucket.begin) * static_cast<std::int64_t>(sizeof(float)) < bytes) continue;
    buckets.push_back(std::exchange(bucket, {.end = bucket.begin}));
  }
  return buckets;
}

DenseSums::DenseSums(const ParameterSet& parameters, Communicator& comm, DeviceTransport* gpus,
                     Context compute, Context exchange, std::int64_t bucket_bytes)
    : gradients_(parameters.gradients()),
      comm_(comm),
      gpus_(gpus),
      compute_(std::move(compute)),
      exchange_(std::move(exchange)) {
  if (comm.size() == 1) return;
  buckets_ = gradient_buckets(parameters, bucket_bytes);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
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
  if (before == 0) comm_.enter("dense gradients");
  if (gpus_ != nullptr) {
    exchange_.stream.wait(compute_.stream);
    for (std::size_t b = before; b < begun_; ++b) {
      const std::span<float> bucket = values(buckets_[b]);
      all_reduce_sum(bucket.data(), std::ssize(bucket), *gpus_, *exchange_.memory);
    }
    exchanges_ = gpus_->begun();
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
      comm_.all_reduce_sum(values(buckets_[b]));
    }
  });
}

void DenseSums::finish() {
  begin_rest();
  if (gpus_ != nullptr) compute_.stream.wait(exchange_.stream);
  if (thread_.joinable()) thread_.join();
  failure_.rethrow();
}

void DenseSums::wait() const {
  if (gpus_ != nullptr) gpus_->wait(exchanges_);
}

std::span<float> DenseSums::values(const GradientBucket& bucket) {
  return std::span(gradients_.mutable_data<float>() + bucket.begin,
                   static_cast<std::size_t>(bucket.end - bucket.begin));
}

}  // namespace hstu
