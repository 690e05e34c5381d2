#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/attention/attention.h"
#include "hstu/benchmark/attention_benchmark.h"
#include "hstu/device/cuda/check.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

using cuda::check_cuda;

struct Free {
  void operator()(void* p) const { cudaFree(p); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(std::int64_t bytes) {
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 16)));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // or the next launch would report it
    throw OutOfMemory("the batch does not fit into the GPU's memory");
  }
  check_cuda(status, "attention benchmark");
  return Memory(p);
}

template <typename T>
Memory copy(const std::vector<T>& from) {
  Memory to = allocate(static_cast<std::int64_t>(from.size() * sizeof(T)));
  check_cuda(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
             "attention benchmark");
  return to;
}

// Normal numbers from a counter: zeros would take less power and run faster.
template <typename T>
__global__ void fill_normal(T* to, std::int64_t count, std::uint64_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    std::uint64_t z =
        (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ull + seed * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    const float u = (static_cast<float>(static_cast<std::uint32_t>(z)) + 0.5f) * 2.3283064e-10f;
    const float v = static_cast<float>(static_cast<std::uint32_t>(z >> 32)) * 2.3283064e-10f;
    to[i] = static_cast<T>(sqrtf(-2 * logf(fminf(u, 1.0f))) * cospif(2 * v));
  }
}

// The batch in device memory: q, k, v, dO side by side in one row, as the layer stores them.
class Batch {
 public:
  explicit Batch(const AttentionBenchmark& b) : device_(attention_device()), p_(benchmark_problem(b)) {
    if (b.device) device_ = device_as(device_, *b.device);
    std::vector<std::int64_t> offsets{0};
    for (const std::int64_t n : attention_lengths(b)) offsets.push_back(offsets.back() + n);
    offsets_ = copy(offsets);
    p_.offsets = static_cast<const std::int64_t*>(offsets_.get());
    if (b.contexts > 0) {
      contexts_ = copy(std::vector<std::int32_t>(static_cast<std::size_t>(b.samples), b.contexts));
      p_.contexts = static_cast<const std::int32_t*>(contexts_.get());
    }
    if (b.targets > 0) {
      targets_ = copy(std::vector<std::int32_t>(static_cast<std::size_t>(b.samples), b.targets));
      p_.targets = static_cast<const std::int32_t*>(targets_.get());
    }
    const std::int64_t width = b.heads * b.head_dim, count = p_.tokens * 4 * width;
    const std::int64_t bytes = b.type == AttentionType::fp32 ? 4 : 2;
    inputs_ = allocate(count * bytes);
    outputs_ = allocate(count * bytes);
    if (b.type == AttentionType::bf16)
      fill(static_cast<__nv_bfloat16*>(inputs_.get()), count);
    else if (b.type == AttentionType::fp16)
      fill(static_cast<__half*>(inputs_.get()), count);
    else
      fill(static_cast<float*>(inputs_.get()), count);
    const auto slice = [&](const Memory& m, std::int64_t i) {
      return AttentionRows{static_cast<char*>(m.get()) + i * width * bytes, 4 * width, b.head_dim};
    };
    for (std::int64_t i = 0; i < 4; ++i) out_[i] = slice(outputs_, i);
    p_.q = slice(inputs_, 0), p_.k = slice(inputs_, 1), p_.v = slice(inputs_, 2), d_o_ = slice(inputs_, 3);
    route_ = choose_attention(p_, device_);
    const AttentionWorkspace scratch = attention_workspace(p_, route_);
    workspace_ = allocate(std::max(scratch.forward, scratch.backward));
    row_bytes_ = static_cast<double>(p_.tokens * width * bytes);
    check_cuda(cudaDeviceSynchronize(), "attention benchmark");
  }
  void forward() const { attention_forward(p_, device_, out_[0], workspace_.get(), nullptr); }
  void backward() const {
    attention_backward(p_, device_, d_o_, out_[1], out_[2], out_[3], workspace_.get(), nullptr);
  }
  const AttentionRoute& route() const { return route_; }
  double row_bytes() const { return row_bytes_; }

 private:
  template <typename T>
  static void fill(T* to, std::int64_t count) {
    fill_normal<<<1056, 256>>>(to, count, 1);
  }
  AttentionDevice device_;
  AttentionProblem p_;
  AttentionRoute route_;
  AttentionRows d_o_, out_[4];
  Memory offsets_, contexts_, targets_, inputs_, outputs_, workspace_;
  double row_bytes_ = 0;
};

struct Event {
  cudaEvent_t event = nullptr;
  Event() { check_cuda(cudaEventCreate(&event), "attention benchmark"); }
  ~Event() { cudaEventDestroy(event); }
  void record() const { check_cuda(cudaEventRecord(event), "attention benchmark"); }
};

double milliseconds(const Event& from, const Event& to) {
  float ms = 0;
  check_cuda(cudaEventSynchronize(to.event), "attention benchmark");
  check_cuda(cudaEventElapsedTime(&ms, from.event, to.event), "attention benchmark");
  return static_cast<double>(ms);
}

void time_launches(const std::function<void()>& launch, bool sustained, AttentionTime& time) {
  constexpr int kWarmUp = 5, kTimed = 20;
  check_cuda(cudaDeviceSynchronize(), "attention benchmark");
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  // All are queued before the first is looked at: what the host does between launches is hidden as in
  // training.
  std::vector<Event> marks(2 * (kWarmUp + kTimed));
  for (std::size_t i = 0; i < marks.size(); i += 2) {
    marks[i].record();
    launch();
    marks[i + 1].record();
  }
  std::vector<double> all;
  for (std::size_t i = 2 * kWarmUp; i < marks.size(); i += 2)
    all.push_back(milliseconds(marks[i], marks[i + 1]));
  std::sort(all.begin(), all.end());
  time.burst_ms = all[kTimed / 2], time.fastest_ms = all[0];
  if (!sustained) return;
  const int launches = std::max(10, static_cast<int>(1000 / time.burst_ms));
  const Event from, to;
  from.record();
  for (int i = 0; i < launches; ++i) launch();
  to.record();
  time.sustained_ms = milliseconds(from, to) / launches;
}

}  // namespace

AttentionTime time_attention_forward(const AttentionBenchmark& b) {
  const Batch batch(b);
  AttentionTime time;
  time.route = batch.route();
  time.flops = attention_flops(b);
  time.bytes = 4 * batch.row_bytes();
  time_launches([&] { batch.forward(); }, b.sustained, time);
  return time;
}

AttentionTime time_attention_backward(const AttentionBenchmark& b) {
  const Batch batch(b);
  AttentionTime time;
  time.route = batch.route();
  time.flops = 2.5 * attention_flops(b);
  time.bytes = 7 * batch.row_bytes();
  time_launches([&] { batch.backward(); }, b.sustained, time);
  return time;
}

}  // namespace hstu
