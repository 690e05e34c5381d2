#include "hstu/benchmark/attention_benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "hstu/attention/attention.h"
#include "hstu/attention/attention_cuda.h"
#include "hstu/benchmark/attention_bias.h"
#include "hstu/benchmark/cuda/fill_normal.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

constexpr Device kGpu = Device::cuda(0);

// The batch in device memory: q, k, v, dO side by side in one row, as the layer stores them.
class Batch {
 public:
  explicit Batch(const AttentionBenchmark& b) : device_(cuda::attention_device()), p_(benchmark_problem(b)) {
    if (b.device) device_ = device_as(device_, *b.device);
    std::vector<std::int64_t> offsets{0};
    for (const std::int64_t n : attention_lengths(b)) offsets.push_back(offsets.back() + n);
    p_.offsets = copied(offsets);
    const auto of_each_sample = [&](std::int32_t count) {
      return count == 0 ? nullptr
                        : copied(std::vector<std::int32_t>(static_cast<std::size_t>(b.samples), count));
    };
    p_.contexts = of_each_sample(b.contexts), p_.targets = of_each_sample(b.targets);

    add_bias(b);

    const std::int64_t width = b.heads * b.head_dim, count = p_.tokens * 4 * width;
    const std::int64_t bytes = b.type == AttentionType::fp32 ? 4 : 2;
    std::byte* const inputs = allocated(count * bytes);
    std::byte* const outputs = allocated(count * bytes);
    fill_normal(b.type, inputs, count, stream_.cuda());
    const auto slice = [&](std::byte* rows, std::int64_t i) {
      return AttentionRows{rows + i * width * bytes, 4 * width, b.head_dim};
    };
    p_.q = slice(inputs, 0), p_.k = slice(inputs, 1), p_.v = slice(inputs, 2);
    o_ = slice(outputs, 0);
    gradients_.d_o = slice(inputs, 3);
    gradients_.dq = slice(outputs, 1), gradients_.dk = slice(outputs, 2), gradients_.dv = slice(outputs, 3);
    if (p_.log_sums != nullptr)
      p_.log_sums =
          reinterpret_cast<float*>(allocated(p_.tokens * b.heads * static_cast<std::int64_t>(sizeof(float))));
    gradients_.o = o_;
    route_ = choose_attention(p_, device_);
    const cuda::AttentionWorkspace needed = cuda::attention_workspace(p_, route_);
    scratch_.bytes = std::max(needed.forward, needed.backward);
    scratch_.data = allocated(scratch_.bytes);
    row_bytes_ = static_cast<double>(p_.tokens * width * bytes);
    if (p_.log_sums != nullptr) forward();  // the backward pass reads its results
    stream_.synchronize();
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    buffers_.clear();
    pool_->trim();  // the next batch finds the memory free
  }

  void forward() const { attention_forward(p_, device_, o_, scratch_, stream_.cuda()); }
  void backward() const { attention_backward(p_, device_, gradients_, scratch_, stream_.cuda()); }
  const AttentionRoute& route() const { return route_; }
  const Stream& stream() const { return stream_; }
  double row_bytes() const { return row_bytes_; }

 private:
  void add_bias(const AttentionBenchmark& b) {
    const AttentionBenchmarkBias bias = attention_bias(b);
    const auto zeros = [&](std::size_t count) {
      return const_cast<float*>(copied(std::vector<float>(count, 0.0f)));
    };
    if (b.position_bias) {
      p_.bias.position_table = copied(bias.position);
      gradients_.d_position_table = zeros(bias.position.size());
    }
    if (!b.time_bias) return;
    p_.bias.time_table = copied(bias.time), gradients_.d_time_table = zeros(bias.time.size());
    p_.bias.thresholds = copied(bias.thresholds);
    p_.bias.query_time = copied(bias.query_time), p_.bias.key_time = copied(bias.key_time);
  }
  std::byte* allocated(std::int64_t bytes) { return buffers_.emplace_back(pool_->allocate(bytes)).data(); }
  template <typename T>
  const T* copied(const std::vector<T>& from) {
    std::byte* const to = allocated(static_cast<std::int64_t>(from.size() * sizeof(T)));
    copy_bytes(to, from.data(), from.size() * sizeof(T), stream_);
    stream_.synchronize();  // before `from` ends
    return reinterpret_cast<const T*>(to);
  }

  AttentionDevice device_;
  AttentionProblem p_;
  AttentionRoute route_;
  Stream stream_{kGpu};
  std::shared_ptr<MemoryPool> pool_ = MemoryPool::create(stream_);
  std::list<Buffer> buffers_;
  AttentionRows o_;
  AttentionGradients gradients_;
  AttentionScratch scratch_;
  double row_bytes_ = 0;
};

void time_launches(const Stream& stream, const std::function<void()>& launch, const AttentionBenchmark& b,
                   AttentionTime& time) {
  stream.synchronize();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  // All are queued before the first is waited for, which hides what the host does between launches, as in
  // training.
  std::vector<Event> marks;
  marks.reserve(2 * static_cast<std::size_t>(b.warmup + b.timed));
  for (int i = 0; i < 2 * (b.warmup + b.timed); ++i) marks.emplace_back(kGpu, true);
  for (std::size_t i = 0; i < marks.size(); i += 2) {
    marks[i].record(stream);
    launch();
    marks[i + 1].record(stream);
  }
  marks.back().synchronize();
  std::vector<double> all;
  for (auto i = 2 * static_cast<std::size_t>(b.warmup); i < marks.size(); i += 2)
    all.push_back(marks[i + 1].milliseconds_since(marks[i]));
  std::sort(all.begin(), all.end());
  const auto quantile = [&](double share) {
    return all[std::min(all.size() - 1, static_cast<std::size_t>(share * static_cast<double>(all.size())))];
  };
  time.burst_ms = quantile(b.quantile), time.fastest_ms = all[0];
  for (const double share : {0.01, 0.1, 0.2, 0.5, 1.0}) time.percentiles_ms.push_back(quantile(share));
  if (!b.sustained) return;
  const int launches = std::max(10, static_cast<int>(1000 / time.burst_ms));
  Event from(kGpu, true), to(kGpu, true);
  from.record(stream);
  for (int i = 0; i < launches; ++i) launch();
  to.record(stream);
  to.synchronize();
  time.sustained_ms = to.milliseconds_since(from) / launches;
}

}  // namespace

AttentionTime time_attention_forward(const AttentionBenchmark& b) {
  const Batch batch(b);
  AttentionTime time;
  time.route = batch.route();
  time.flops = attention_flops(b);
  time.bytes = 4 * batch.row_bytes();
  time_launches(
      batch.stream(), [&] { batch.forward(); }, b, time);
  return time;
}

AttentionTime time_attention_backward(const AttentionBenchmark& b) {
  const Batch batch(b);
  AttentionTime time;
  time.route = batch.route();
  time.flops = 2.5 * attention_flops(b);
  time.bytes = 7 * batch.row_bytes();
  time_launches(
      batch.stream(), [&] { batch.backward(); }, b, time);
  return time;
}

}  // namespace hstu
