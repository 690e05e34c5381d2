// What must not change a bit: repetition, a CUDA graph's replay, neighbours in the batch. O, dK and dV are
// sums in one order; so is dQ, except in the backward pass for Hopper, which adds with atomics. The tests
// skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <cstring>

#include "attention/device_kernels.h"

namespace hstu {
namespace {

using Type = __nv_bfloat16;
constexpr double kUnit = 1.0 / 128;  // of Type: neighbours of x differ by at most |x| times it

// Outputs in memory that the device writes quickly.
class PinnedRows {
 public:
  explicit PinnedRows(std::size_t bytes) {
    if (cudaMallocHost(&data_, bytes) != cudaSuccess) throw std::bad_alloc();
  }
  PinnedRows(const PinnedRows&) = delete;
  PinnedRows& operator=(const PinnedRows&) = delete;
  ~PinnedRows() { cudaFreeHost(data_); }
  void read(const DeviceBytes& from) {
    ASSERT_EQ(cudaMemcpy(data_, from.as<void>(), from.bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
  }
  const Type* data() const { return static_cast<const Type*>(data_); }

 private:
  void* data_ = nullptr;
};

// Rows of o, dq, dk and dv of `width` elements each.
struct Outputs {
  const Type* data;
  std::int64_t rows, width;
  Outputs(const Type* from, std::int64_t row_count, std::int64_t row_width)
      : data(from), rows(row_count), width(row_width) {}
  Outputs(const std::vector<Type>& from, std::int64_t row_width)
      : Outputs(from.data(), static_cast<std::int64_t>(from.size()) / (4 * row_width), row_width) {}
};

double largest_dq(const Outputs& all) {
  double largest = 0;
  for (std::int64_t row = 0; row < all.rows; ++row)
    for (std::int64_t i = 0; i < all.width; ++i)
      largest = std::fmax(largest, std::abs(to_double(all.data[(row * 4 + 1) * all.width + i])));
  return largest;
}

bool are_near(const Type* a, const Type* b, std::int64_t count, double more) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = to_double(a[i]), y = to_double(b[i]);
    const bool both_unwritten = std::isnan(x) && std::isnan(y);
    if (!both_unwritten && !(std::abs(x - y) <= 2 * kUnit * std::abs(x) + more)) return false;
  }
  return true;
}

// How many rows differ, of each output; "" where none does. In another order of its terms elements of dQ may
// differ by two units of Type, and where large terms cancel by the rounding of sums in fp32.
std::string differences(const Outputs& first, const Outputs& again, bool dq_in_any_order) {
  if (first.rows != again.rows) return "not as many rows";
  const double more = dq_in_any_order ? largest_dq(first) * 0x1p-16 : 0;
  constexpr std::int64_t kBlock = 64;
  std::vector<std::array<int, 4>> found(static_cast<std::size_t>(first.rows / kBlock + 1));
  parallel_blocks(first.rows, kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin * 4; part < end * 4; ++part) {
      const Type* const a = first.data + part * first.width;
      const Type* const b = again.data + part * first.width;
      if (std::memcmp(a, b, static_cast<std::size_t>(first.width) * sizeof(Type)) == 0) continue;
      if (part % 4 == 1 && dq_in_any_order && are_near(a, b, first.width, more)) continue;
      ++found[static_cast<std::size_t>(begin / kBlock)][static_cast<std::size_t>(part % 4)];
    }
  });
  std::string text;
  for (std::size_t i = 0; i < 4; ++i) {
    int rows = 0;
    for (const auto& one : found) rows += one[i];
    if (rows > 0) text += fmt::format("{} differs in {} of {} rows\n", kOutputNames[i], rows, first.rows);
  }
  return text;
}

template <typename T>
bool adds_dq_in_any_order(const DeviceBatch<T>& batch, const DeviceCase& c) {
  return batch.route().backward == AttentionKernel::hopper && !c.deterministic;
}

class AttentionBitsOnGpu : public OnGpu {
 protected:
  static void repeat(const DeviceCase& c, int times) {
    const HostBatch<Type> host(c);
    DeviceBatch<Type> device(host);
    device.run();
    if (HasFatalFailure()) return;
    expect_right_rows(host, device, choose_rows(host, 0, host.samples(), 10));
    PinnedRows first(device.output_memory().bytes()), again(device.output_memory().bytes());
    first.read(device.output_memory());
    for (int i = 1; i < times; ++i) {
      device.forget_outputs();
      device.run();
      again.read(device.output_memory());
      if (HasFatalFailure()) return;
      ASSERT_EQ(differences({first.data(), host.tokens(), host.width()},
                            {again.data(), host.tokens(), host.width()}, adds_dq_in_any_order(device, c)),
                "")
          << c.name << ": run " << i << " (" << device.route().why << ")";
    }
  }
};

DeviceCase mixed_lengths() {
  return {.name = "mixed lengths",
          .lengths = {513, 1, 64, 0, 300, 65, 129, 700, 7, 255},
          .heads = 4,
          .mask = {-1, 0, 3},
          .contexts = {3, 0, 1, 0, 70, 9, 0, 4, 1, 0},
          .targets = {20, 0, 5, 0, 3, 64, 129, 100, 2, 1}};
}

TEST_P(AttentionBitsOnGpu, AThousandRunsAreTheSame) {
  repeat(with_kernels(mixed_lengths()), 1000);
}

TEST_P(AttentionBitsOnGpu, AThousandDeterministicRunsAreTheSameInDqToo) {
  DeviceCase c = with_kernels(mixed_lengths());
  c.deterministic = true;
  if (c.kernel == AttentionKernel::mma) GTEST_SKIP() << "the mma route is deterministic in any case";
  repeat(c, 1000);
}

// Of many tiles a head, more heads than are computed at once.
TEST_P(AttentionBitsOnGpu, DeterministicRunsOfLongSamplesAreTheSame) {
  DeviceCase c =
      with_kernels({.name = "long samples", .lengths = {4000, 900, 2500, 1, 3000, 4096}, .heads = 4});
  c.deterministic = true;
  repeat(c, 20);
}

// The work is listed on the device: a graph captured with one batch serves others of as many tokens and
// samples.
TEST_P(AttentionBitsOnGpu, AGraphReplayedWithOtherOffsetsGivesWhatDirectCallsGive) {
  DeviceCase one = with_kernels({.name = "graph",
                                 .lengths = {300, 64, 0, 513, 7, 129},
                                 .mask = {-1, 0, 3},
                                 .contexts = {3, 0, 1, 70, 9, 5},
                                 .targets = {20, 5, 7, 0, 100, 3}});
  DeviceCase other = one;
  other.lengths = {129, 0, 513, 1, 300, 70};
  const HostBatch<Type> host_one(one), host_other(other);  // the same rows, since they have one name
  ASSERT_EQ(host_one.tokens(), host_other.tokens());
  DeviceBatch<Type> direct_one(host_one), direct_other(host_other), replayed(host_one);
  direct_one.run();
  direct_other.run();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  replayed.forward(stream);
  replayed.backward(stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (const bool with_other : {true, false, true}) {
    replayed.set_offsets((with_other ? host_other : host_one).offsets());
    replayed.forget_outputs();
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const std::vector<Type> expected = (with_other ? direct_other : direct_one).outputs();
    EXPECT_EQ(differences({expected, host_one.width()}, {replayed.outputs(), host_one.width()},
                          adds_dq_in_any_order(replayed, one)),
              "")
        << (with_other ? "other offsets" : "the offsets of the capture");
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_P(AttentionBitsOnGpu, ASampleAmongNeighboursThatHoldNanIsWhatItIsAlone) {
  const DeviceCase all = with_kernels({.name = "poison",
                                       .lengths = {130, 64, 1, 257, 31, 600},
                                       .mask = {200, 0, 3},
                                       .contexts = {3, 0, 1, 70, 9, 5},
                                       .targets = {20, 5, 0, 10, 31, 3}});
  for (std::size_t b = 0; b < all.lengths.size(); ++b) {
    DeviceCase poisoned = all, alone = all;
    for (std::size_t other = 0; other < all.lengths.size(); ++other)
      if (other != b) poisoned.poisoned.push_back(static_cast<int>(other));
    alone.lengths = {all.lengths[b]}, alone.contexts = {all.contexts[b]}, alone.targets = {all.targets[b]};
    const HostBatch<Type> host(poisoned);
    HostBatch<Type> host_alone(alone);
    host_alone.copy_sample(0, host, b);
    DeviceBatch<Type> device(host), device_alone(host_alone);
    device.run();
    device_alone.run();
    if (HasFatalFailure()) return;
    if (all.lengths[b] >= 64)  // of fewer, there are too few elements to judge
      expect_right_rows(host_alone, device_alone, choose_rows(host_alone, 0, 1, 100));
    const std::vector<Type> found = device.outputs(host.offsets()[b], host.offsets()[b + 1]);
    const std::vector<Type> expected = device_alone.outputs(host_alone.offsets()[0], host_alone.offsets()[1]);
    EXPECT_EQ(differences({expected, host.width()}, {found, host.width()}, adds_dq_in_any_order(device, all)),
              "")
        << "sample " << b << " of " << all.lengths[b] << " tokens (" << device.route().why << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionBitsOnGpu, ::testing::ValuesIn(all_kernels()), name_of);

}  // namespace
}  // namespace hstu

#endif
