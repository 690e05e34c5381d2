// A relative bias and the gradients of its tables on GPUs, against the CPU form in fp64. The tests skip on
// machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "attention/device_batch.h"
#include "attention/host_problem.h"

namespace hstu {
namespace {

enum class Times { sorted, unsorted, equal, far };

struct BiasCase {
  std::string name;
  HostShape shape;
  Times times = Times::sorted;
  std::int64_t positions = 1000, buckets = 40;  // 0: no such table
  bool of_heads = false;
  bool as_ampere = false;  // the kernels that an older GPU would take
};

// Thresholds that grow by a third.
std::vector<std::int64_t> thresholds_of(std::int64_t count) {
  std::vector<std::int64_t> all;
  for (std::int64_t next = 1; std::ssize(all) < count; next += 1 + next / 3) all.push_back(next);
  return all;
}

// Times of every row, samples apart: events come in bursts.
std::vector<std::int64_t> times_of(const std::vector<std::int64_t>& offsets, std::int64_t rows, Times kind,
                                   std::mt19937& random) {
  std::vector<std::int64_t> times(static_cast<std::size_t>(rows), 1'700'000'000);
  std::int64_t now = 1'700'000'000;
  for (std::int64_t row = offsets.front(); row < rows; ++row) {
    const std::uint32_t draw = random();
    if (kind == Times::unsorted)
      now = 1'700'000'000 + static_cast<std::int64_t>(draw % 1'000'000);
    else if (kind != Times::equal)
      now += draw % 10 == 0 ? draw / 16 % 200'000 : draw / 16 % 40;
    // More than 2^31 after the first event from the middle of the sample on.
    const bool late = kind == Times::far && row % 64 > 40;
    times[static_cast<std::size_t>(row)] = now + (late ? std::int64_t{5'000'000'000} : 0);
  }
  return times;
}

template <typename T>
std::vector<T> converted(const std::vector<double>& from) {
  std::vector<T> to;
  to.reserve(from.size());
  for (const double x : from) to.push_back(static_cast<T>(static_cast<float>(x)));
  return to;
}

struct Gradients {
  std::vector<double> o, dq, dk, dv, d_position, d_time;
};

template <typename T>
class BiasTest {
 public:
  explicit BiasTest(const BiasCase& c) : case_(c), host_(c.shape) {
    for (std::vector<double>* all : {&host_.q, &host_.k, &host_.v, &host_.d_o})
      for (double& x : *all) x = round_to<T>(x);
    std::mt19937 random(c.shape.seed + 7);
    std::normal_distribution<double> normal;
    const std::int64_t tables = c.of_heads ? c.shape.heads : 1;
    const auto table = [&](std::int64_t rows) {
      std::vector<double> all(static_cast<std::size_t>(tables * rows));
      for (double& x : all) x = round_to<float>(normal(random));
      return all;
    };
    if (c.positions > 0) position_ = table(2 * c.positions - 1);
    if (c.buckets > 0) time_ = table(c.buckets + 1);
    thresholds_ = thresholds_of(c.buckets);
    key_time_ = times_of(host_.offsets(), host_.tokens(), c.times, random);
    const std::vector<std::int64_t>& of_queries =
        c.shape.queries.empty() ? host_.offsets() : host_.query_offsets();
    query_time_ = times_of(of_queries, host_.query_rows(), c.times, random);
    if (c.shape.queries.empty() && c.times == Times::sorted) {  // that of the next event
      query_time_ = key_time_;
      std::rotate(query_time_.begin(), query_time_.begin() + 1, query_time_.end());
      query_time_.back() = key_time_.back();
    }
  }

  AttentionProblem problem() {
    AttentionProblem p = host_.problem();
    p.bias = {.position_table = position_.empty() ? nullptr : position_.data(),
              .time_table = time_.empty() ? nullptr : time_.data(),
              .tables = case_.of_heads ? case_.shape.heads : 1,
              .positions = case_.positions,
              .buckets = case_.buckets,
              .thresholds = thresholds_.data(),
              .query_time = query_time_.data(),
              .key_time = key_time_.data()};
    return p;
  }
  Gradients exact() {
    Gradients r{host_.nan_memory(host_.query_rows()),  host_.nan_memory(host_.query_rows()),
                host_.nan_memory(host_.tokens()),      host_.nan_memory(host_.tokens()),
                std::vector<double>(position_.size()), std::vector<double>(time_.size())};
    attention_forward(problem(), kHost, host_.query_row_view(r.o));
    attention_backward(problem(), kHost,
                       {.d_o = host_.query_row_view(host_.d_o),
                        .dq = host_.query_row_view(r.dq),
                        .dk = host_.token_row_view(r.dk),
                        .dv = host_.token_row_view(r.dv),
                        .d_position_table = position_.empty() ? nullptr : r.d_position.data(),
                        .d_time_table = time_.empty() ? nullptr : r.d_time.data()});
    return r;
  }
  // Gradients of tables are added to `before`.
  Gradients on_gpu(AttentionKernel forward_kernel, AttentionKernel backward_kernel, float before = 0) {
    const DeviceBytes q(converted<T>(host_.q)), k(converted<T>(host_.k)), v(converted<T>(host_.v)),
        d_o(converted<T>(host_.d_o)), offsets(host_.offsets()), query_offsets(host_.query_offsets()),
        contexts(host_.contexts()), targets(host_.targets()), scale(converted<float>(host_.scale())),
        position(converted<float>(position_)), time(converted<float>(time_)), thresholds(thresholds_),
        query_time(query_time_), key_time(key_time_);
    AttentionProblem p = problem();
    p.type = std::is_same_v<T, float>    ? AttentionType::fp32
             : std::is_same_v<T, __half> ? AttentionType::fp16
                                         : AttentionType::bf16;
    p.deterministic = true;
    p.q.data = q.as(), p.k.data = k.as(), p.v.data = v.as();
    p.offsets = offsets.as<std::int64_t>();
    if (p.query_offsets != nullptr) p.query_offsets = query_offsets.as<std::int64_t>();
    if (p.contexts != nullptr) p.contexts = contexts.as<std::int32_t>();
    if (p.targets != nullptr) p.targets = targets.as<std::int32_t>();
    if (p.sample_scale != nullptr) p.sample_scale = scale.as();
    if (!position_.empty()) p.bias.position_table = position.as();
    if (!time_.empty()) p.bias.time_table = time.as();
    p.bias.thresholds = thresholds.as<std::int64_t>();
    p.bias.query_time = query_time.as<std::int64_t>(), p.bias.key_time = key_time.as<std::int64_t>();

    AttentionDevice gpu = cuda::attention_device();
    if (case_.as_ampere) gpu.major = 8, gpu.minor = 0;
    const AttentionRoute route = choose_attention(p, gpu);
    EXPECT_EQ(route.forward, forward_kernel) << case_.name << ": " << route.why;
    EXPECT_EQ(route.backward, backward_kernel) << case_.name << ": " << route.why;
    const cuda::AttentionWorkspace needed = cuda::attention_workspace(p, route);
    const DeviceBytes workspace(std::max(needed.forward, needed.backward));
    const AttentionScratch scratch{workspace.as(), static_cast<std::int64_t>(workspace.bytes())};
    const DeviceBytes o(converted<T>(host_.nan_memory(host_.query_rows()))),
        dq(converted<T>(host_.nan_memory(host_.query_rows()))),
        dk(converted<T>(host_.nan_memory(host_.tokens()))),
        dv(converted<T>(host_.nan_memory(host_.tokens()))),
        d_position(std::vector<float>(position_.size(), before)),
        d_time(std::vector<float>(time_.size(), before));
    const auto at = [](AttentionRows rows, const DeviceBytes& data) {
      rows.data = data.as();
      return rows;
    };
    const AttentionRows of_queries = host_.query_row_view(host_.q), of_tokens = host_.token_row_view(host_.k);
    attention_forward(p, gpu, at(of_queries, o), scratch);
    attention_backward(p, gpu,
                       {.d_o = at(of_queries, d_o),
                        .dq = at(of_queries, dq),
                        .dk = at(of_tokens, dk),
                        .dv = at(of_tokens, dv),
                        .d_position_table = position_.empty() ? nullptr : d_position.as(),
                        .d_time_table = time_.empty() ? nullptr : d_time.as()},
                       scratch);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    const auto read = [](const DeviceBytes& from, auto type) {
      using Element = decltype(type);
      std::vector<double> all;
      for (const Element x : from.read<Element>(0, static_cast<std::int64_t>(from.bytes() / sizeof(Element))))
        all.push_back(to_double(x));
      return all;
    };
    return {read(o, T()),  read(dq, T()),          read(dk, T()),
            read(dv, T()), read(d_position, 0.0f), read(d_time, 0.0f)};
  }

 private:
  BiasCase case_;
  HostProblem<double> host_;
  std::vector<double> position_, time_;
  std::vector<std::int64_t> thresholds_, query_time_, key_time_;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double limit,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << what << ": element " << i << " of no sample was written";
      continue;
    }
    error += (found[i] - expected[i]) * (found[i] - expected[i]), norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(error), limit * std::sqrt(norm)) << what;
}

template <typename T>
void expect_as_on_cpu(const BiasCase& c, AttentionKernel forward, AttentionKernel backward) {
  BiasTest<T> test(c);
  const Gradients exact = test.exact(), found = test.on_gpu(forward, backward);
  const double of_rows = sizeof(T) == 4 ? 1e-5 : 1.0 / 256, of_tables = sizeof(T) == 4 ? 1e-5 : 1e-3;
  const std::string what = fmt::format("{}, {} bytes, head size {}: ", c.name, sizeof(T), c.shape.head_dim);
  expect_near(found.o, exact.o, of_rows, what + "o");
  expect_near(found.dq, exact.dq, of_rows, what + "dq");
  expect_near(found.dk, exact.dk, of_rows, what + "dk");
  expect_near(found.dv, exact.dv, of_rows, what + "dv");
  expect_near(found.d_position, exact.d_position, of_tables, what + "position table");
  expect_near(found.d_time, exact.d_time, of_tables, what + "time table");
}

std::vector<BiasCase> cases() {
  const HostShape causal{.lengths = {129, 1, 0, 300, 64, 7, 200}};
  const HostShape mixed{.lengths = {140, 5, 130, 260},
                        .contexts = {3, 0, 10, 70},
                        .targets = {12, 5, 60, 33},
                        .mask = {90, 0, 4},
                        .heads = 3};
  return {{"both tables", causal},
          {"both tables of heads", causal, Times::sorted, 1000, 40, true},
          {"positions alone", causal, Times::sorted, 1000, 0},
          {"few positions", mixed, Times::sorted, 30, 0, true},
          {"times alone", causal, Times::sorted, 0, 71},
          {"unsorted times", mixed, Times::unsorted, 0, 60},
          {"equal times", causal, Times::equal, 0, 9},
          {"far times", causal, Times::far, 500, 128},
          {"contexts and targets", mixed, Times::sorted, 300, 40, true},
          {"full mask", {.lengths = {70, 130, 33}, .mask = {-1, -1}}, Times::sorted, 200, 40},
          {"no tokens", {.lengths = {0, 0}}, Times::sorted, 10, 5}};
}

class AttentionBiasOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
  static void need_ampere() {
    if (cuda::attention_device().major < 8) GTEST_SKIP() << "older than Ampere";
  }
};

constexpr AttentionKernel kPlain = AttentionKernel::plain, kMma = AttentionKernel::mma;

TEST_F(AttentionBiasOnGpu, PlainKernelsOfEveryHeadSize) {
  for (BiasCase c : cases()) {
    for (const int head_dim : {8, 16, 25, 32, 50, 64, 128, 256}) {
      c.shape.head_dim = head_dim;
      expect_as_on_cpu<float>(c, kPlain, kPlain);
    }
    for (const int head_dim : {4, 25, 50}) {
      c.shape.head_dim = head_dim;
      expect_as_on_cpu<__nv_bfloat16>(c, kPlain, kPlain);
    }
  }
}

TEST_F(AttentionBiasOnGpu, QueriesThatAreTheLastTokens) {
  BiasCase c{"few queries",
             {.lengths = {130, 5, 64, 90}, .queries = {30, 5, 1, 0}, .head_dim = 32, .gap = 8}};
  expect_as_on_cpu<float>(c, kPlain, kPlain);
  expect_as_on_cpu<__nv_bfloat16>(c, kPlain, kPlain);
}

TEST_F(AttentionBiasOnGpu, KernelsForTensorCores) {
  need_ampere();
  for (BiasCase c : cases()) {
    c.as_ampere = true;
    for (const int head_dim : {32, 64, 128, 256}) {
      c.shape.head_dim = head_dim, c.shape.gap = 8;
      expect_as_on_cpu<__nv_bfloat16>(c, kMma, kMma);
      if (head_dim == 64) expect_as_on_cpu<__half>(c, kMma, kMma);
    }
  }
}

// Whatever this GPU takes.
TEST_F(AttentionBiasOnGpu, KernelsOfThisGpu) {
  need_ampere();
  AttentionProblem p;
  p.samples = p.tokens = 1, p.heads = 1;
  static const float table[1] = {};
  p.bias.position_table = table, p.bias.positions = 1;
  for (BiasCase c : cases()) {
    for (const int head_dim : {32, 64, 128, 256}) {
      p.head_dim = head_dim, p.q = p.k = p.v = {nullptr, 256, 256};
      const AttentionRoute route = choose_attention(p, cuda::attention_device());
      c.shape.head_dim = head_dim, c.shape.gap = 8;
      expect_as_on_cpu<__nv_bfloat16>(c, route.forward, route.backward);
      if (head_dim == 64) expect_as_on_cpu<__half>(c, route.forward, route.backward);
    }
  }
}

template <typename T>
void expect_the_same_bits(BiasCase c, AttentionKernel forward, AttentionKernel backward, int times) {
  BiasTest<T> test(c);
  const Gradients first = test.on_gpu(forward, backward);
  for (int i = 1; i < times; ++i) {
    const Gradients again = test.on_gpu(forward, backward);
    for (const auto& [a, b] : {std::pair{&first.o, &again.o},
                               {&first.dq, &again.dq},
                               {&first.dk, &again.dk},
                               {&first.dv, &again.dv},
                               {&first.d_position, &again.d_position},
                               {&first.d_time, &again.d_time}})
      ASSERT_EQ(std::memcmp(a->data(), b->data(), a->size() * sizeof(double)), 0) << c.name << ", run " << i;
  }
}

TEST_F(AttentionBiasOnGpu, GradientsOfTablesHaveTheSameBitsEveryTime) {
  need_ampere();
  BiasCase c{"bits", {.lengths = {500, 64, 1, 700, 300, 129, 513}, .heads = 4, .head_dim = 64, .gap = 8}};
  expect_the_same_bits<float>(c, kPlain, kPlain, 5);
  c.as_ampere = true;
  expect_the_same_bits<__nv_bfloat16>(c, kMma, kMma, 20);
}

TEST_F(AttentionBiasOnGpu, GradientsOfTablesAreAdded) {
  BiasCase c{"added", {.lengths = {40, 70}, .head_dim = 50}};
  BiasTest<float> test(c);
  const Gradients zero = test.on_gpu(kPlain, kPlain), two = test.on_gpu(kPlain, kPlain, 2);
  for (const auto& [from, to] : {std::pair{&zero.d_position, &two.d_position}, {&zero.d_time, &two.d_time}})
    for (std::size_t i = 0; i < from->size(); ++i) EXPECT_NEAR((*to)[i], (*from)[i] + 2, 1e-5);
}

}  // namespace
}  // namespace hstu

#endif
