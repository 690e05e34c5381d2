// A jagged batch on the GPU: q, k, v lie in one wider row, every row of no sample and everything between the
// slices is NaN.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "attention/reference.h"
#include "hstu/attention/attention.h"
#include "hstu/base/threads.h"

namespace hstu {

inline bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// Memory on the device, all bits set at first (NaN in every floating-point type).
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    if (bytes > 0 && cudaMalloc(&data_, bytes) != cudaSuccess) throw std::bad_alloc();
    if (bytes > 0) cudaMemset(data_, 0xff, bytes);
  }
  template <typename T>
  explicit DeviceBytes(const std::vector<T>& from) : DeviceBytes(from.size() * sizeof(T)) {
    if (bytes_ > 0) cudaMemcpy(data_, from.data(), bytes_, cudaMemcpyHostToDevice);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(data_); }
  template <typename T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  template <typename T>
  std::vector<T> read() const {
    std::vector<T> to(bytes_ / sizeof(T));
    cudaMemcpy(to.data(), data_, bytes_, cudaMemcpyDeviceToHost);
    return to;
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

struct DeviceCase {
  std::string name;
  std::vector<int> lengths;
  int heads = 2, head_dim = 64;
  AttentionType type = AttentionType::bf16;
  AttentionMask mask = {};
  std::vector<int> contexts = {}, targets = {};  // none: empty
  float alpha = 0;                               // 0: 1 / sqrt(D)
  double magnitude = 1;                          // of the inputs
  std::vector<int> poisoned = {};                // samples that hold NaN and Inf instead
  bool per_sample_scale = false;
  bool deterministic = false;
  AttentionKernel kernel = AttentionKernel::hopper;  // of the forward pass; mma is what older GPUs would take
};

template <typename T>
T from_double(double x) {
  return static_cast<T>(static_cast<float>(x));
}
template <typename T>
double round_to(double x) {
  return static_cast<double>(static_cast<float>(from_double<T>(x)));
}

// The case's inputs, and what the GPU makes of them.
template <typename T>
class DeviceRun {
 public:
  explicit DeviceRun(const DeviceCase& c) : case_(c) {
    offsets_.push_back(kBefore);
    for (const int n : c.lengths) offsets_.push_back(offsets_.back() + n);
    tokens_ = offsets_.back() + kAfter;
    std::mt19937 random(std::hash<std::string>()(c.name) & 0xffff);
    std::normal_distribution<double> normal;
    inputs_.assign(static_cast<std::size_t>(tokens_ * 5 * width()), from_double<T>(std::nan("")));
    for (std::size_t b = 0; b < c.lengths.size(); ++b) {
      const bool bad = std::count(c.poisoned.begin(), c.poisoned.end(), static_cast<int>(b)) > 0;
      for (std::int64_t row = offsets_[b]; row < offsets_[b + 1]; ++row) {
        for (std::int64_t i = 0; i < 4 * width(); ++i) {
          const double x = bad ? (i % 2 == 0 ? std::nan("") : std::numeric_limits<double>::infinity())
                               : c.magnitude * normal(random);
          inputs_[static_cast<std::size_t>(row * 5 * width() + width() + i)] = from_double<T>(x);
        }
      }
    }
    for (std::size_t b = 0; b < c.lengths.size(); ++b)
      scales_.push_back(c.per_sample_scale ? 1.0f / static_cast<float>(c.lengths[b] + 3) : 1.0f);
  }

  void run() {
    const DeviceBytes inputs(inputs_), offsets(offsets_), contexts(case_.contexts), targets(case_.targets),
        scales(scales_);
    const auto slice = [&](int i) {
      return AttentionRows{inputs.as<T>() + i * width(), 5 * width(), case_.head_dim};
    };
    AttentionProblem p;
    p.type = std::is_same_v<T, __half>  ? AttentionType::fp16
             : std::is_same_v<T, float> ? AttentionType::fp32
                                        : AttentionType::bf16;
    p.samples = static_cast<std::int64_t>(case_.lengths.size());
    p.tokens = tokens_, p.heads = case_.heads, p.head_dim = case_.head_dim;
    p.q = slice(1), p.k = slice(2), p.v = slice(3);
    p.offsets = offsets.as<std::int64_t>();
    p.contexts = case_.contexts.empty() ? nullptr : contexts.as<std::int32_t>();
    p.targets = case_.targets.empty() ? nullptr : targets.as<std::int32_t>();
    p.mask = case_.mask, p.alpha = alpha(), p.scale = kScale;
    p.sample_scale = case_.per_sample_scale ? scales.as<float>() : nullptr;
    p.deterministic = case_.deterministic;
    AttentionDevice device = attention_device();
    if (case_.kernel == AttentionKernel::mma) device.major = 8, device.minor = 0;
    const AttentionRoute route = choose_attention(p, device);
    ASSERT_EQ(route.forward, case_.kernel) << case_.name << ": " << route.why;
    const AttentionWorkspace bytes = attention_workspace(p, route);
    const DeviceBytes workspace(static_cast<std::size_t>(std::max(bytes.forward, bytes.backward)));
    const DeviceBytes outputs(static_cast<std::size_t>(tokens_ * 4 * width()) * sizeof(T));
    const auto output = [&](int i) {
      return AttentionRows{outputs.as<T>() + i * width(), 4 * width(), case_.head_dim};
    };
    attention_forward(p, device, output(0), workspace.as<void>(), nullptr);
    attention_backward(p, device, slice(4), output(1), output(2), output(3), workspace.as<void>(), nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess)
        << case_.name << ": " << cudaGetErrorString(cudaGetLastError());
    outputs_ = outputs.read<T>();
    why_ = route.why;
  }

  // At most twice the error of the same computation with every result rounded to T, against double.
  void compare() const {
    struct Place {
      std::size_t sample;
      int head;
    };
    std::vector<Place> places;
    for (std::size_t b = 0; b < case_.lengths.size(); ++b)
      for (int head = 0; head < case_.heads; ++head) places.push_back({b, head});
    std::vector<std::array<Distance, 8>> found(places.size());
    parallel_blocks(static_cast<std::int64_t>(places.size()), 1, [&](std::int64_t i, std::int64_t) {
      found[static_cast<std::size_t>(i)] =
          distances(places[static_cast<std::size_t>(i)].sample, places[static_cast<std::size_t>(i)].head);
    });
    std::array<Distance, 8> all{};
    for (const auto& one : found) {
      for (std::size_t i = 0; i < 8; ++i) {
        all[i].largest = one[i].largest <= all[i].largest ? all[i].largest : one[i].largest;
        all[i].sum += one[i].sum;
      }
    }
    static constexpr const char* kNames[] = {"o", "dq", "dk", "dv"};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_LE(all[i].largest, 2 * all[4 + i].largest + 1e-30)
          << case_.name << " " << kNames[i] << " (" << why_ << ")";
      EXPECT_LE(all[i].sum, 4 * all[4 + i].sum + 1e-60)
          << case_.name << " " << kNames[i] << " (" << why_ << ")";
      worst_ = std::max(worst_, all[i].largest / (all[4 + i].largest + 1e-30));
    }
    check_untouched();
  }

  const std::vector<T>& outputs() const { return outputs_; }
  double worst_ratio() const { return worst_; }

 private:
  static constexpr std::int64_t kBefore = 3, kAfter = 70;  // rows of no sample
  static constexpr float kScale = 1.0f / 64;

  std::int64_t width() const { return static_cast<std::int64_t>(case_.heads) * case_.head_dim; }
  float alpha() const {
    return case_.alpha != 0 ? case_.alpha : 1.0f / std::sqrt(static_cast<float>(case_.head_dim));
  }

  SampleMask mask_of(std::size_t b) const {
    const int n = case_.lengths[b];
    const int h = n - (case_.targets.empty() ? 0 : std::min(n, case_.targets[b]));
    const int c = case_.contexts.empty() ? 0 : std::min(h, case_.contexts[b]);
    const auto limit = [](int window) { return window < 0 ? kUnlimited : window; };
    return {n, c, h, case_.mask.target_group, limit(case_.mask.left), limit(case_.mask.right)};
  }

  Matrix matrix(const std::vector<T>& from, std::int64_t slices, std::int64_t slice, std::size_t b,
                int head) const {
    Matrix m;
    for (std::int64_t row = offsets_[b]; row < offsets_[b + 1]; ++row)
      for (int d = 0; d < case_.head_dim; ++d)
        m.push_back(static_cast<double>(static_cast<float>(
            from[static_cast<std::size_t>((row * slices + slice) * width() + head * case_.head_dim + d)])));
    return m;
  }

  // Of o, dq, dk, dv: the GPU's, then the rounded computation's.
  std::array<Distance, 8> distances(std::size_t b, int head) const {
    std::array<Distance, 8> result{};
    if (std::count(case_.poisoned.begin(), case_.poisoned.end(), static_cast<int>(b)) > 0) return result;
    const auto input = [&](int i) { return matrix(inputs_, 5, i, b, head); };
    const double scale = static_cast<double>(kScale) * static_cast<double>(scales_[b]);
    const auto compute = [&]<typename Sum>(const auto& round) {
      return reference_attention<Sum>(mask_of(b), case_.head_dim, input(1), input(2), input(3), input(4),
                                      static_cast<double>(alpha()), scale, round);
    };
    const AttentionResult exact = compute.template operator()<double>([](double x) { return x; });
    const AttentionResult rounded =
        compute.template operator()<float>([](double x) { return round_to<T>(x); });
    const Matrix* const of_exact[] = {&exact.o, &exact.dq, &exact.dk, &exact.dv};
    const Matrix* const of_rounded[] = {&rounded.o, &rounded.dq, &rounded.dk, &rounded.dv};
    for (std::size_t i = 0; i < 4; ++i) {
      const Matrix gpu = matrix(outputs_, 4, static_cast<std::int64_t>(i), b, head);
      for (std::size_t x = 0; x < gpu.size(); ++x) {
        result[i].add(gpu[x], (*of_exact[i])[x]);
        result[4 + i].add((*of_rounded[i])[x], (*of_exact[i])[x]);
      }
    }
    return result;
  }

  void check_untouched() const {
    const auto row_size = static_cast<std::size_t>(4 * width());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i / row_size);
      if (row >= offsets_.front() && row < offsets_.back()) continue;
      ASSERT_TRUE(std::isnan(static_cast<float>(outputs_[i])))
          << case_.name << ": row " << row << " of no sample was written";
    }
  }

  DeviceCase case_;
  std::vector<std::int64_t> offsets_;
  std::int64_t tokens_ = 0;
  std::vector<T> inputs_, outputs_;
  std::vector<float> scales_;
  std::string why_;
  mutable double worst_ = 0;
};

}  // namespace hstu
