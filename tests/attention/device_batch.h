// A batch on the GPU. Rows of no sample, the gaps between the inputs, and outputs before they are written are
// NaN.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "attention/compare.h"
#include "attention/device_case.h"
#include "attention/sampled_rows.h"
#include "hstu/attention/attention.h"
#include "hstu/attention/attention_cuda.h"

namespace hstu {

inline bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// Memory on the device, all bits set at first (NaN in every floating-point type).
class DeviceBytes {
 public:
  explicit DeviceBytes(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    if (bytes > 0 && cudaMalloc(&data_, bytes_) != cudaSuccess) throw std::bad_alloc();
    set_all_bits(0, bytes);
  }
  template <typename T>
  explicit DeviceBytes(const std::vector<T>& from)
      : DeviceBytes(static_cast<std::int64_t>(from.size() * sizeof(T))) {
    write(from);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(data_); }

  template <typename T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }
  void set_all_bits(std::int64_t begin, std::int64_t end) {
    if (begin < end)
      cudaMemset(static_cast<char*>(data_) + begin, 0xff, static_cast<std::size_t>(end - begin));
  }
  template <typename T>
  void write(const std::vector<T>& from) {
    if (!from.empty()) cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  // `from` again and again, until the memory is full.
  template <typename T>
  void repeat(const std::vector<T>& from) {
    write(from);
    char* const all = static_cast<char*>(data_);
    for (std::size_t done = from.size() * sizeof(T); done > 0 && done < bytes_; done *= 2)
      cudaMemcpy(all + done, all, std::min(done, bytes_ - done), cudaMemcpyDeviceToDevice);
  }
  template <typename T>
  std::vector<T> read(std::int64_t begin, std::int64_t end) const {
    std::vector<T> to(static_cast<std::size_t>(end - begin));
    if (!to.empty()) cudaMemcpy(to.data(), as<T>() + begin, to.size() * sizeof(T), cudaMemcpyDeviceToHost);
    return to;
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

template <typename T>
class DeviceBatch {
 public:
  explicit DeviceBatch(const HostBatch<T>& host)
      : DeviceBatch(host.description(), host, choose_attention(problem_of(host), device_of(host))) {}

  static std::int64_t bytes_needed(const HostBatch<T>& host) {
    const AttentionProblem p = problem_of(host);
    return input_bytes(host) + output_bytes(host) + workspace_bytes(p, choose_attention(p, device_of(host)));
  }

  const AttentionRoute& route() const { return route_; }
  void forward(cudaStream_t stream = nullptr) {
    attention_forward(problem_, device_, output(0), scratch(), stream);
  }
  void backward(cudaStream_t stream = nullptr) {
    attention_backward(problem_, device_, gradients(), scratch(), stream);
  }
  // The same through SiLU of `before`, which has the rows of the outputs.
  void backward_through_silu(const T* before) {
    AttentionGradients g = gradients();
    g.q_before = before + width_, g.k_before = before + 2 * width_, g.v_before = before + 3 * width_;
    attention_backward(problem_, device_, g, scratch(), nullptr);
  }
  // Runs both passes with the kernels that the case names, and waits for them.
  void run() {
    ASSERT_EQ(route_.forward, case_.kernel) << case_.name << ": " << route_.why;
    forward();
    backward();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess)
        << case_.name << ": " << cudaGetErrorString(cudaGetLastError());
  }

  // o, dq, dk and dv of all heads, of the rows [begin, end) of the batch.
  std::vector<T> outputs(std::int64_t begin, std::int64_t end) const {
    return outputs_.read<T>(begin * 4 * width_, end * 4 * width_);
  }
  std::vector<T> outputs() const { return outputs(0, problem_.tokens); }
  const DeviceBytes& output_memory() const { return outputs_; }
  void forget_outputs() { outputs_.set_all_bits(0, static_cast<std::int64_t>(outputs_.bytes())); }
  void set_offsets(const std::vector<std::int64_t>& offsets) { offsets_.write(offsets); }

 private:
  DeviceBatch(const DeviceCase& c, const HostBatch<T>& host, const AttentionRoute& route)
      : case_(c),
        width_(host.width()),
        problem_(problem_of(host)),
        device_(device_of(host)),
        route_(route),
        inputs_(input_bytes(host)),
        outputs_(output_bytes(host)),
        workspace_(workspace_bytes(problem_, route)),
        offsets_(host.offsets()),
        contexts_(c.contexts),
        targets_(c.targets),
        scales_(host.scales()),
        row_names_(host.row_names()),
        log_sums_(problem_.log_sums == nullptr ? 0 : 4 * problem_.tokens * problem_.heads) {
    const std::int64_t row_bytes = host.kParts * width_ * static_cast<std::int64_t>(sizeof(T));
    inputs_.repeat(host.rows());
    inputs_.set_all_bits(0, host.offsets().front() * row_bytes);
    inputs_.set_all_bits(host.offsets().back() * row_bytes, problem_.tokens * row_bytes);
    problem_.q = input(kQ), problem_.k = input(kK), problem_.v = input(kV);
    problem_.offsets = offsets_.template as<std::int64_t>();
    if (!c.contexts.empty()) problem_.contexts = contexts_.template as<std::int32_t>();
    if (!c.targets.empty()) problem_.targets = targets_.template as<std::int32_t>();
    if (c.per_sample_scale) problem_.sample_scale = scales_.template as<float>();
    if (c.dropout > 0) problem_.dropout.row_names = row_names_.template as<std::int64_t>();
    if (problem_.log_sums != nullptr) problem_.log_sums = log_sums_.template as<float>();
  }

  // Without the addresses: strides decide the choice of kernels.
  static AttentionProblem problem_of(const HostBatch<T>& host) {
    const DeviceCase& c = host.description();
    AttentionProblem p;
    p.type = std::is_same_v<T, __half>  ? AttentionType::fp16
             : std::is_same_v<T, float> ? AttentionType::fp32
                                        : AttentionType::bf16;
    p.samples = static_cast<std::int64_t>(host.samples());
    p.tokens = host.tokens(), p.heads = c.heads, p.head_dim = c.head_dim;
    if (c.states_longest) p.longest = *std::max_element(c.lengths.begin(), c.lengths.end());
    p.q = p.k = p.v = {nullptr, host.kParts * host.width(), c.head_dim};
    p.mask = c.mask;
    p.alpha = static_cast<double>(host.alpha()), p.scale = static_cast<double>(host.kScale);
    p.deterministic = c.deterministic;
    p.dropout = host.dropout();
    static float log_sum = 0;
    p.score = c.score;
    if (c.score == ScoreFunction::softmax) p.log_sums = &log_sum;
    return p;
  }
  static AttentionDevice device_of(const HostBatch<T>& host) {
    AttentionDevice device = cuda::attention_device();
    if (host.description().kernel == AttentionKernel::mma) device.major = 8, device.minor = 0;
    return device;
  }
  static std::int64_t input_bytes(const HostBatch<T>& host) {
    return host.tokens() * host.kParts * host.width() * static_cast<std::int64_t>(sizeof(T));
  }
  static std::int64_t output_bytes(const HostBatch<T>& host) {
    return host.tokens() * 4 * host.width() * static_cast<std::int64_t>(sizeof(T));
  }
  static std::int64_t workspace_bytes(const AttentionProblem& p, const AttentionRoute& route) {
    const cuda::AttentionWorkspace bytes = cuda::attention_workspace(p, route);
    return std::max(bytes.forward, bytes.backward);
  }

  AttentionScratch scratch() const {
    return {workspace_.as<void>(), static_cast<std::int64_t>(workspace_.bytes())};
  }
  AttentionInput input(InputPart part) const {
    return {inputs_.as<T>() + part * width_, HostBatch<T>::kParts * width_, case_.head_dim};
  }
  AttentionGradients gradients() const {
    return {.d_o = input(kDo), .o = output(0), .dq = output(1), .dk = output(2), .dv = output(3)};
  }
  AttentionRows output(int i) const { return {outputs_.as<T>() + i * width_, 4 * width_, case_.head_dim}; }

  DeviceCase case_;
  std::int64_t width_;
  AttentionProblem problem_;
  AttentionDevice device_;
  AttentionRoute route_;
  DeviceBytes inputs_, outputs_, workspace_, offsets_, contexts_, targets_, scales_, row_names_, log_sums_;
};

// Rows of no sample must be as they were.
template <typename T>
void expect_untouched(const HostBatch<T>& host, const DeviceBatch<T>& device) {
  for (const auto& [begin, end] : {std::pair{std::int64_t{0}, host.offsets().front()},
                                   std::pair{host.offsets().back(), host.tokens()}}) {
    const std::vector<T> rows = device.outputs(begin, end);
    EXPECT_TRUE(std::all_of(rows.begin(), rows.end(), [](T x) { return std::isnan(to_double(x)); }))
        << host.description().name << ": a row of no sample was written, from row " << begin;
  }
}

// Runs a case and compares everything, or some rows of each sample.
template <typename T>
void run_and_compare(const DeviceCase& c) {
  const HostBatch<T> host(c);
  DeviceBatch<T> device(host);
  device.run();
  if (::testing::Test::HasFatalFailure()) return;
  EXPECT_EQ(compare_all(host, device.outputs()).complaint(), "")
      << c.name << " (" << device.route().why << ")";
  expect_untouched(host, device);
}

template <typename T>
void expect_right_rows(const HostBatch<T>& host, const DeviceBatch<T>& device,
                       const std::vector<SampledRow>& rows) {
  EXPECT_EQ(compare_rows(host, rows, [&](std::int64_t row) { return device.outputs(row, row + 1); }), "")
      << host.description().name << " (" << device.route().why << ")";
  expect_untouched(host, device);
}

template <typename T>
void run_and_sample(const DeviceCase& c, std::size_t more_rows) {
  const HostBatch<T> host(c);
  DeviceBatch<T> device(host);
  device.run();
  if (::testing::Test::HasFatalFailure()) return;
  expect_right_rows(host, device, choose_rows(host, 0, host.samples(), more_rows));
}

}  // namespace hstu
