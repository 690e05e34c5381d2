// Query offsets and accumulation, and the check of lists in device memory. The tests
// skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <gmock/gmock.h>

#include "attention/device_batch.h"
#include "attention/host_problem.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

// The copy of a HostProblem in device memory, with elements of type T.
template <typename T>
class DeviceProblem {
 public:
  explicit DeviceProblem(HostProblem<float>& host)
      : host_(host),
        q_(converted(host.q)),
        k_(converted(host.k)),
        v_(converted(host.v)),
        d_o_(converted(host.d_o)),
        offsets_(host.offsets()),
        query_offsets_(host.query_offsets()),
        query_first_(host.query_first()),
        contexts_(host.contexts()),
        targets_(host.targets()),
        scale_(host.scale()) {}

  AttentionProblem problem() {
    AttentionProblem p = host_.problem();
    p.type = std::is_same_v<T, float>    ? AttentionType::fp32
             : std::is_same_v<T, __half> ? AttentionType::fp16
                                         : AttentionType::bf16;
    p.q.data = q_.as(), p.k.data = k_.as(), p.v.data = v_.as();
    p.offsets = offsets_.as<std::int64_t>();
    if (p.query_offsets != nullptr) p.query_offsets = query_offsets_.as<std::int64_t>();
    if (p.query_first != nullptr) p.query_first = query_first_.as<std::int32_t>();
    if (p.contexts != nullptr) p.contexts = contexts_.as<std::int32_t>();
    if (p.targets != nullptr) p.targets = targets_.as<std::int32_t>();
    if (p.sample_scale != nullptr) p.sample_scale = scale_.as();
    return p;
  }
  AttentionRows d_o() {
    AttentionRows rows = host_.query_row_view(host_.d_o);
    rows.data = d_o_.as();
    return rows;
  }

  static std::vector<T> converted(const std::vector<float>& from) {
    std::vector<T> to;
    to.reserve(from.size());
    for (const float x : from) to.push_back(static_cast<T>(x));
    return to;
  }

 private:
  HostProblem<float>& host_;
  DeviceBytes q_, k_, v_, d_o_, offsets_, query_offsets_, query_first_, contexts_, targets_, scale_;
};

// The relative error that rounding to T makes.
template <typename T>
constexpr double kRounding = sizeof(T) == 4 ? 1e-5 : 1.0 / 256;

// The norm of the differences is at most `kRounding` of the norm; NaN is where it is expected, and nowhere
// else.
template <typename T>
void expect_near(const DeviceBytes& found, const std::vector<double>& expected, double added,
                 const std::string& what) {
  const std::vector<T> values = found.read<T>(0, static_cast<std::int64_t>(expected.size()));
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double value = to_double(values[i]);
    if (std::isnan(expected[i]) && added == 0) {
      ASSERT_TRUE(std::isnan(value)) << what << ": element " << i << " of no sample was written";
      continue;
    }
    const double right = std::isnan(expected[i]) ? added : expected[i] + added;
    error += (value - right) * (value - right), norm += right * right;
  }
  EXPECT_LE(std::sqrt(error), kRounding<T> * std::sqrt(norm)) << what;
}

// The kernels against the CPU form in fp64. `added`: the gradients are added to this number.
template <typename T>
void expect_as_on_cpu(const HostShape& shape, float added = 0) {
  HostProblem<float> host(shape);
  for (std::vector<float>* all : {&host.q, &host.k, &host.v, &host.d_o})
    for (float& x : *all) x = static_cast<float>(static_cast<T>(x));
  HostProblem<double> exact(host);
  std::vector<double> o = exact.nan_memory(exact.query_rows()), dq = o, dk = exact.nan_memory(exact.tokens()),
                      dv = dk;
  attention_forward(exact.problem(), kHost, exact.query_row_view(o));
  attention_backward(exact.problem(), kHost,
                     {.d_o = exact.query_row_view(exact.d_o),
                      .dq = exact.query_row_view(dq),
                      .dk = exact.token_row_view(dk),
                      .dv = exact.token_row_view(dv)});

  DeviceProblem<T> device(host);
  const bool adds = added != 0;
  const auto memory = [&](std::int64_t rows) {
    return DeviceBytes(DeviceProblem<T>::converted(adds ? host.memory(rows, added) : host.nan_memory(rows)));
  };
  const DeviceBytes found_o(DeviceProblem<T>::converted(host.nan_memory(host.query_rows()))),
      found_dq = memory(host.query_rows()), found_dk = memory(host.tokens()),
      found_dv = memory(host.tokens());
  const auto at = [](AttentionRows rows, const DeviceBytes& data) {
    rows.data = data.as();
    return rows;
  };
  const AttentionRows of_queries = host.query_row_view(host.q), of_tokens = host.token_row_view(host.k);
  const AttentionProblem p = device.problem();
  const AttentionDevice gpu = cuda::attention_device();
  const bool is_few = p.query_offsets != nullptr && p.query_first == nullptr &&
                      std::is_same_v<T, __nv_bfloat16> && shape.gap == 8;
  const bool has_tiles = is_few && gpu.major == 9 && p.head_dim >= 64 && p.queries >= 16 * p.samples;
  ASSERT_EQ(choose_attention(p, gpu).forward, has_tiles ? AttentionKernel::queries
                                              : is_few  ? AttentionKernel::few_queries
                                                        : AttentionKernel::plain);
  attention_forward(p, gpu, at(of_queries, found_o));
  attention_backward(p, gpu,
                     {.d_o = device.d_o(),
                      .dq = at(of_queries, found_dq),
                      .dk = at(of_tokens, found_dk),
                      .dv = at(of_tokens, found_dv),
                      .accumulate_dq = adds,
                      .accumulate_dkv = adds});
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
  expect_near<T>(found_o, o, 0, "o");
  expect_near<T>(found_dq, dq, static_cast<double>(added), "dq");
  expect_near<T>(found_dk, dk, static_cast<double>(added), "dk");
  expect_near<T>(found_dv, dv, static_cast<double>(added), "dv");
}

// Writes the output of the forward pass row by row to `found`.
template <typename T>
void forward_row_by_row(HostProblem<float>& host, const DeviceBytes& found) {
  DeviceProblem<T> device(host);
  AttentionProblem p = device.problem();
  p.row_stable = true;
  const AttentionDevice gpu = cuda::attention_device();
  EXPECT_EQ(choose_attention(p, gpu).forward, AttentionKernel::single_rows);
  AttentionRows o = host.query_row_view(host.q);
  o.data = found.as();
  attention_forward(p, gpu, o);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
}

template <typename T>
void expect_stable_rows_as_on_cpu(const HostShape& shape) {
  HostProblem<float> host(shape);
  for (std::vector<float>* all : {&host.q, &host.k, &host.v})
    for (float& x : *all) x = static_cast<float>(static_cast<T>(x));
  HostProblem<double> exact(host);
  std::vector<double> o = exact.nan_memory(exact.query_rows());
  attention_forward(exact.problem(), kHost, exact.query_row_view(o));
  const DeviceBytes found(DeviceProblem<T>::converted(host.nan_memory(host.query_rows())));
  forward_row_by_row<T>(host, found);
  expect_near<T>(found, o, 0, "o");
}

// The last of 300 targets beside the same target as the only one of the same history.
template <typename T>
void expect_the_bits_of_another_place(int head_dim) {
  constexpr int kHistory = 330, kTargets = 300;
  HostShape shape{.lengths = {kHistory + kTargets, kHistory + 1},
                  .targets = {kTargets, 1},
                  .mask = {-1, 0, 1},
                  .head_dim = head_dim,
                  .per_sample_scale = false};
  HostProblem<float> host(shape);
  const std::int64_t stride = host.token_row_view(host.k).row_stride;
  const std::int64_t far = host.offsets()[1] - 1, alone = host.offsets()[2] - 1;
  for (std::vector<float>* all : {&host.q, &host.k, &host.v}) {
    const auto copy_rows = [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      std::copy_n(all->begin() + from * stride, count * stride, all->begin() + to * stride);
    };
    copy_rows(host.offsets()[0], host.offsets()[1], kHistory);
    copy_rows(far, alone, 1);
  }
  const DeviceBytes found(DeviceProblem<T>::converted(host.nan_memory(host.query_rows())));
  forward_row_by_row<T>(host, found);
  const std::vector<T> o = found.read<T>(0, std::ssize(host.q));
  for (std::int64_t d = 0; d < std::int64_t{shape.heads} * head_dim; ++d)
    ASSERT_EQ(to_double(o[static_cast<std::size_t>(far * stride + d)]),
              to_double(o[static_cast<std::size_t>(alone * stride + d)]));
}

std::vector<HostShape> shapes() {
  return {
      {.lengths = {300, 1, 0, 64, 7}, .queries = {1, 1, 0, 64, 3}},
      {.lengths = {70, 5, 130}, .queries = {70, 0, 10}, .mask = {20, 3, 1}, .heads_apart = true},
      {.lengths = {70, 5, 130},
       .queries = {30, 5, 129},
       .contexts = {3, 0, 10},
       .targets = {12, 5, 60},
       .mask = {-1, 0, 4},
       .heads = 3,
       .head_dim = 40},
      {.lengths = {90, 33}, .queries = {17, 33}, .contexts = {80, 2}, .targets = {9, 0}, .mask = {30, 0, 3}},
      {.lengths = {20, 30}, .queries = {0, 0}},
      {.lengths = {300, 150, 70, 9},
       .queries = {120, 1, 33, 0},
       .first = {70, 149, 0, 4},
       .contexts = {80, 2, 0, 1},
       .targets = {9, 1, 40, 0},
       .mask = {30, 2, 3}}};
}

// The same with rows that the kernels for few queries take.
std::vector<HostShape> aligned_shapes() {
  std::vector<HostShape> all;
  for (const int head_dim : {32, 64, 128, 256}) {
    for (HostShape shape : shapes()) {
      shape.head_dim = head_dim, shape.gap = 8;
      all.push_back(shape);
    }
  }
  return all;
}

// Around the edges of tiles of the plain kernels, and of more samples than a block has threads.
std::vector<HostShape> tiled_shapes() {
  std::vector<HostShape> all{{.lengths = {31, 32, 33, 0, 63, 64, 65, 1, 128, 129}},
                             {.lengths = {300, 129, 128, 65, 64, 40}, .queries = {1, 33, 32, 31, 2, 5}},
                             {.lengths = {200, 129, 65, 90}, .queries = {1, 129, 64, 3}, .mask = {70, 2, 1}},
                             {.lengths = {160, 97, 200},
                              .queries = {100, 97, 1},
                              .contexts = {40, 0, 3},
                              .targets = {50, 33, 130},
                              .mask = {60, 0, 7}},
                             {.lengths = {400, 200, 129},
                              .queries = {170, 33, 32},
                              .first = {129, 0, 60},
                              .contexts = {2, 40, 0},
                              .targets = {0, 30, 66}}};
  HostShape many{.mask = {-1, 0, 2}};
  for (int b = 0; b < 600; ++b) {
    many.lengths.push_back(b % 7), many.queries.push_back(b % 7 / 2);
    many.contexts.push_back(b % 3), many.targets.push_back(b % 2);
  }
  all.push_back(many);
  many.queries.clear();
  all.push_back(many);
  return all;
}

class AttentionQueriesOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_F(AttentionQueriesOnGpu, AreTheLastTokensOfEachSample) {
  for (const HostShape& shape : shapes()) {
    expect_as_on_cpu<float>(shape);
    expect_as_on_cpu<__nv_bfloat16>(shape);
    expect_as_on_cpu<__half>(shape);
  }
  for (const HostShape& shape : aligned_shapes()) {
    expect_as_on_cpu<float>(shape);
    expect_as_on_cpu<__nv_bfloat16>(shape);
    expect_as_on_cpu<__half>(shape);
  }
}

TEST_F(AttentionQueriesOnGpu, RowsByThemselvesAreThoseOfTheCpu) {
  for (HostShape shape : tiled_shapes()) {
    for (const int head_dim : {1, 24, 64, 128, 256}) {
      shape.head_dim = head_dim, shape.gap = 3;
      expect_stable_rows_as_on_cpu<float>(shape);
      expect_stable_rows_as_on_cpu<__nv_bfloat16>(shape);
      expect_stable_rows_as_on_cpu<__half>(shape);
    }
  }
}

TEST_F(AttentionQueriesOnGpu, RowsByThemselvesDoNotDependOnTheirPlace) {
  for (const int head_dim : {24, 64, 256}) {
    expect_the_bits_of_another_place<float>(head_dim);
    expect_the_bits_of_another_place<__nv_bfloat16>(head_dim);
  }
}

TEST_F(AttentionQueriesOnGpu, GradientsAreAddedWhereThatIsAsked) {
  for (HostShape shape : shapes()) {
    expect_as_on_cpu<float>(shape, 2);
    shape.queries.clear(), shape.first.clear();
    expect_as_on_cpu<float>(shape, 2);
  }
  for (const HostShape& shape : aligned_shapes()) {
    expect_as_on_cpu<float>(shape, 2);
    expect_as_on_cpu<__nv_bfloat16>(shape, 2);
  }
}

TEST_F(AttentionQueriesOnGpu, PlainKernelsAreRightAtTheEdgesOfTiles) {
  for (HostShape shape : tiled_shapes()) {
    for (const int head_dim : {16, 24, 32, 64, 72, 256}) {
      for (const int gap : {3, 4}) {  // rows that are read one and four elements at a time
        shape.head_dim = head_dim, shape.gap = gap;
        expect_as_on_cpu<float>(shape);
        if (gap == 3) expect_as_on_cpu<float>(shape, 2);
      }
    }
    shape.gap = 3, shape.head_dim = 33;
    expect_as_on_cpu<__nv_bfloat16>(shape);
    shape.gap = 4, shape.head_dim = 72;
    expect_as_on_cpu<__half>(shape, 2);
  }
}

TEST_F(AttentionQueriesOnGpu, FastKernelsRefuseToAddBeforeTheyLaunch) {
  if (cuda::attention_device().major < 8) GTEST_SKIP() << "this GPU has the plain kernels only";
  AttentionProblem p;
  p.samples = p.tokens = 1, p.heads = 1, p.head_dim = 64;
  p.q = p.k = p.v = {nullptr, 64, 64};
  const AttentionRows rows{nullptr, 64, 64};
  AttentionGradients g{
      .d_o = rows, .dq = rows, .dk = rows, .dv = rows, .accumulate_dq = true, .accumulate_dkv = false};
  try {
    attention_backward(p, cuda::attention_device(), g);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot add"));
  }
}

class CheckListsOnGpu : public AttentionQueriesOnGpu {
 protected:
  std::string refusal(const AttentionProblem& p) {
    try {
      cuda::check_attention_lists(p, nullptr);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }
  HostShape shape_{.lengths = {10, 4}, .queries = {3, 1}, .contexts = {2, 0}, .targets = {5, 1}};
};

TEST_F(CheckListsOnGpu, NameTheFirstWrongEntry) {
  HostProblem<float> host(shape_);
  DeviceProblem<float> right(host);
  EXPECT_EQ(refusal(right.problem()), "none");
  host.offsets()[1] = 1;
  DeviceProblem<float> decreasing(host);
  EXPECT_THAT(refusal(decreasing.problem()), HasSubstr("offsets must not decrease"));
  HostProblem<float> clamped(shape_);
  clamped.contexts()[1] = 4;
  DeviceProblem<float> too_many(clamped);
  EXPECT_THAT(refusal(too_many.problem()), HasSubstr("contexts[1] is 4, expected 0 to 3"));
}

TEST_F(CheckListsOnGpu, NameHostPointers) {
  int device = 0, reads_host_memory = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&reads_host_memory, cudaDevAttrPageableMemoryAccess, device);
  if (reads_host_memory != 0) GTEST_SKIP() << "this GPU reads host memory";
  HostProblem<float> host(shape_);
  DeviceProblem<float> on_device(host);
  AttentionProblem p = on_device.problem();
  p.offsets = host.offsets().data();
  EXPECT_THAT(refusal(p), HasSubstr("offsets is not device memory"));
  p = on_device.problem(), p.k.data = host.k.data();
  EXPECT_THAT(refusal(p), HasSubstr("k is not device memory"));
}

}  // namespace
}  // namespace hstu

#endif
