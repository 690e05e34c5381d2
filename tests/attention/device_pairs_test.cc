// Attention pair by pair on GPUs (hidden keys, cached keys, dropout; softmax and SiLU) against the CPU form
// in fp64. The tests skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "attention/device_batch.h"
#include "attention/host_problem.h"

namespace hstu {
namespace {

struct PairsCase {
  std::string name;
  HostShape shape;
  double dropout = 0;
  std::vector<int> past = {};              // tokens of each past; empty: none
  std::vector<std::int32_t> past_of = {};  // (B)
};

// Both passes of a case, in host memory.
struct PairsResult {
  std::vector<double> o, dq, dk, dv;
  bool operator==(const PairsResult&) const = default;
};

template <typename T>
class PairsTest {
 public:
  PairsTest(const PairsCase& c, ScoreFunction score, int page = 3)
      : case_(c), host_(c.shape), score_(score), page_(page) {
    std::mt19937 random(c.shape.seed + 3);
    std::normal_distribution<double> normal;
    for (const int length : c.past) {
      lengths_.push_back(length);
      for (int p = 0; p * page_ < length; ++p) pages_.push_back(static_cast<std::int32_t>(pages_.size()));
      page_offsets_.push_back(std::ssize(pages_));
    }
    std::reverse(pages_.begin(), pages_.end());
    past_k_.resize(pages_.size() * static_cast<std::size_t>(page_ * past_stride()));
    past_v_.resize(past_k_.size());
    for (std::vector<double>* all : {&past_k_, &past_v_})
      for (double& x : *all) x = normal(random);
    for (std::int64_t r = 0; r < host_.query_rows(); ++r)
      row_names_.push_back(static_cast<std::int64_t>(random()));
    for (std::vector<double>* all : {&host_.q, &host_.k, &host_.v, &host_.d_o, &past_k_, &past_v_})
      for (double& x : *all)
        x = static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(x))));
    for (std::size_t i = 0; i < lengths_.size(); ++i) forget_rest_of_page(i);
  }

  PairsResult exact() {
    PairsResult r{memory(host_.query_rows()), memory(host_.query_rows()), memory(host_.tokens()),
                  memory(host_.tokens())};
    attention_forward(problem(), kHost, host_.query_row_view(r.o));
    attention_backward(problem(), kHost,
                       {.d_o = host_.query_row_view(host_.d_o),
                        .dq = host_.query_row_view(r.dq),
                        .dk = host_.token_row_view(r.dk),
                        .dv = host_.token_row_view(r.dv)});
    return r;
  }

  // `forward`: the kernel that is expected; `queries` has no backward pass.
  PairsResult on_gpu(AttentionKernel forward = AttentionKernel::softmax) {
    const DeviceBytes q(as_type(host_.q)), k(as_type(host_.k)), v(as_type(host_.v)), d_o(as_type(host_.d_o)),
        past_k(as_type(past_k_)), past_v(as_type(past_v_)), offsets(host_.offsets()),
        query_offsets(host_.query_offsets()), contexts(host_.contexts()), targets(host_.targets()),
        scale(std::vector<float>(host_.scale().begin(), host_.scale().end())), pages(pages_),
        page_offsets(page_offsets_), lengths(lengths_), past_of(case_.past_of), names(row_names_);
    AttentionProblem p = problem();
    const bool has_backward = forward == AttentionKernel::softmax;
    if (has_backward) p.kernels = AttentionChoice::plain;  // tensor cores compute some of these too
    p.type = std::is_same_v<T, float>    ? AttentionType::fp32
             : std::is_same_v<T, __half> ? AttentionType::fp16
                                         : AttentionType::bf16;
    p.q.data = q.as(), p.k.data = k.as(), p.v.data = v.as();
    p.offsets = offsets.as<std::int64_t>();
    if (p.query_offsets != nullptr) p.query_offsets = query_offsets.as<std::int64_t>();
    if (p.contexts != nullptr) p.contexts = contexts.as<std::int32_t>();
    if (p.targets != nullptr) p.targets = targets.as<std::int32_t>();
    p.sample_scale = scale.as();
    p.dropout.row_names = names.as<std::int64_t>();
    if (p.past.any()) {
      p.past.k = past_k.as(), p.past.v = past_v.as();
      p.past.pages = pages.as<std::int32_t>(), p.past.page_offsets = page_offsets.as<std::int64_t>();
      p.past.lengths = lengths.as<std::int64_t>(), p.past.past_of = past_of.as<std::int32_t>();
    }
    const AttentionDevice gpu = cuda::attention_device();
    const AttentionRoute route = choose_attention(p, gpu);
    EXPECT_EQ(route.forward, forward) << case_.name << ": " << route.why;
    if (has_backward) {
      EXPECT_EQ(route.backward, AttentionKernel::softmax) << case_.name << ": " << route.why;
    }
    const cuda::AttentionWorkspace needed = cuda::attention_workspace(p, route);
    const DeviceBytes workspace(std::max(needed.forward, needed.backward));
    const AttentionScratch scratch{workspace.as(), static_cast<std::int64_t>(workspace.bytes())};
    const DeviceBytes o(as_type(memory(host_.query_rows()))), dq(as_type(memory(host_.query_rows()))),
        dk(as_type(memory(host_.tokens()))), dv(as_type(memory(host_.tokens())));
    const auto at = [](AttentionRows rows, const DeviceBytes& data) {
      rows.data = data.as();
      return rows;
    };
    const AttentionRows of_queries = host_.query_row_view(host_.q), of_tokens = host_.token_row_view(host_.k);
    attention_forward(p, gpu, at(of_queries, o), scratch);
    if (has_backward)
      attention_backward(p, gpu,
                         {.d_o = at(of_queries, d_o),
                          .dq = at(of_queries, dq),
                          .dk = at(of_tokens, dk),
                          .dv = at(of_tokens, dv)},
                         scratch);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    return {read(o), read(dq), read(dk), read(dv)};
  }

 private:
  std::int64_t past_stride() const { return std::int64_t{case_.shape.heads} * case_.shape.head_dim; }
  // What a past's last page has behind its tokens is not a number.
  void forget_rest_of_page(std::size_t past) {
    const std::int64_t rest = lengths_[past] % page_;
    if (rest == 0) return;
    const std::int64_t page = pages_[static_cast<std::size_t>(page_offsets_[past + 1]) - 1];
    for (std::vector<double>* all : {&past_k_, &past_v_})
      std::fill(all->begin() + (page * page_ + rest) * past_stride(),
                all->begin() + (page + 1) * page_ * past_stride(), std::numeric_limits<double>::quiet_NaN());
  }
  std::vector<double> memory(std::int64_t rows) const { return host_.nan_memory(rows); }
  static std::vector<T> as_type(const std::vector<double>& from) {
    std::vector<T> to;
    to.reserve(from.size());
    for (const double x : from) to.push_back(static_cast<T>(static_cast<float>(x)));
    return to;
  }
  static std::vector<double> read(const DeviceBytes& from) {
    std::vector<double> all;
    for (const T x : from.read<T>(0, static_cast<std::int64_t>(from.bytes() / sizeof(T))))
      all.push_back(static_cast<double>(static_cast<float>(x)));
    return all;
  }
  AttentionProblem problem() {
    AttentionProblem p = host_.problem();
    p.score = score_;
    p.deterministic = true;
    p.dropout = {case_.dropout, 19, row_names_.data()};
    if (case_.past.empty()) return p;
    p.past = {.k = past_k_.data(),
              .v = past_v_.data(),
              .row_stride = past_stride(),
              .head_stride = case_.shape.head_dim,
              .page_tokens = page_,
              .pasts = std::ssize(case_.past),
              .pages = pages_.data(),
              .page_offsets = page_offsets_.data(),
              .lengths = lengths_.data(),
              .past_of = case_.past_of.data(),
              .time = nullptr};
    return p;
  }

  PairsCase case_;
  HostProblem<double> host_;
  ScoreFunction score_;
  int page_;  // tokens
  std::vector<double> past_k_, past_v_;
  std::vector<std::int32_t> pages_;
  std::vector<std::int64_t> page_offsets_{0}, lengths_, row_names_;
};

void expect_pairs(const std::vector<double>& found, const std::vector<double>& expected, double limit,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << what << ", element " << i;
    if (std::isnan(expected[i])) continue;
    error += (found[i] - expected[i]) * (found[i] - expected[i]), norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(error), limit * std::sqrt(norm)) << what;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

class AttentionByPairsOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
  template <typename T>
  static void expect_as_on_cpu(PairsCase c) {
    for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
      // SiLU without any of these has other kernels.
      if (score == ScoreFunction::silu && c.dropout == 0 && c.past.empty() && c.shape.mask.hidden_period == 0)
        continue;
      for (const int head_dim : {8, 25, 64, 128, 256}) {
        c.shape.head_dim = head_dim;
        const std::string what = fmt::format("{}, {} bytes, head size {}, softmax {}: ", c.name, sizeof(T),
                                             head_dim, score == ScoreFunction::softmax);
        PairsTest<T> test(c, score);
        const PairsResult exact = test.exact(), found = test.on_gpu();
        // Scores of large heads are about 30: their rounding is that of the weights.
        const double limit = sizeof(T) == 4 ? 1e-4 : 1.0 / 256;
        expect_pairs(found.o, exact.o, limit, what + "o");
        expect_pairs(found.dq, exact.dq, limit, what + "dq");
        expect_pairs(found.dk, exact.dk, limit, what + "dk");
        expect_pairs(found.dv, exact.dv, limit, what + "dv");
        const PairsResult again = test.on_gpu();
        for (const auto part : {&PairsResult::o, &PairsResult::dq, &PairsResult::dk, &PairsResult::dv})
          EXPECT_TRUE(same_bits(found.*part, again.*part)) << what << "two runs differ";
      }
    }
  }
  template <typename... Types>
  static void expect_types(const PairsCase& c) {
    (expect_as_on_cpu<Types>(c), ...);
  }
};

TEST_F(AttentionByPairsOnGpu, KeysThatAreHiddenFromOtherPeriods) {
  AttentionMask causal;
  causal.hidden_period = 5, causal.hidden_phase = 4;
  AttentionMask mixed{.left = 40, .right = 0, .target_group = 4};
  mixed.hidden_period = 3, mixed.hidden_phase = 1;
  expect_types<float, __nv_bfloat16, __half>(
      {.name = "hidden", .shape = {.lengths = {129, 1, 0, 70, 16, 33}, .mask = causal}});
  expect_types<float, __nv_bfloat16>({.name = "hidden, contexts and targets, dropout",
                                      .shape = {.lengths = {90, 5, 60},
                                                .contexts = {3, 0, 10},
                                                .targets = {12, 5, 20},
                                                .mask = mixed,
                                                .heads = 3},
                                      .dropout = 0.3});
}

TEST_F(AttentionByPairsOnGpu, CachedKeysInPages) {
  AttentionMask hidden;
  hidden.hidden_period = 4, hidden.hidden_phase = 2;
  const std::vector<int> past{50, 0, 7};
  const std::vector<std::int32_t> past_of{2, -1, 0, 0, 1};
  expect_types<float, __nv_bfloat16, __half>(
      {.name = "cached", .shape = {.lengths = {1, 40, 1, 33, 3}}, .past = past, .past_of = past_of});
  expect_types<float, __nv_bfloat16>({.name = "cached, few queries, hidden, contexts, dropout",
                                      .shape = {.lengths = {6, 40, 1, 33, 3},
                                                .queries = {1, 17, 1, 2, 0},
                                                .contexts = {3, 1, 2, 0, 1},
                                                .mask = hidden,
                                                .heads = 3},
                                      .dropout = 0.2,
                                      .past = past,
                                      .past_of = past_of});
}

// Few samples, whose keys several blocks share out, and many.
TEST_F(AttentionByPairsOnGpu, TilesOfQueries) {
  if (cuda::attention_device().major != 9) GTEST_SKIP() << "no Hopper here";
  const std::vector<int> past{50, 0, 700, 64};
  const std::vector<PairsCase> cases{
      {.name = "one past", .shape = {.lengths = {101}, .targets = {100}}, .past = past, .past_of = {2}},
      {.name = "pasts, few queries",
       .shape = {.lengths = {30, 200, 1, 33, 3, 70},
                 .queries = {30, 17, 1, 2, 0, 70},
                 .targets = {5, 40, 1, 30, 3, 0},
                 .heads = 3},
       .past = past,
       .past_of = {2, -1, 0, 0, 1, 3}},
      {.name = "pasts, many",
       .shape = {.lengths = std::vector<int>(70, 90), .targets = std::vector<int>(70, 81)},
       .past = past,
       .past_of = std::vector<std::int32_t>(70, 0)},
      {.name = "a long sample", .shape = {.lengths = {900}, .queries = {600}, .targets = {600}}},
      {.name = "windows and contexts",
       .shape = {.lengths = {300, 5, 170},
                 .queries = {150, 5, 100},
                 .contexts = {70, 0, 10},
                 .targets = {100, 5, 20},
                 .mask = {.left = 40, .right = 3, .target_group = 4}}}};
  for (PairsCase c : cases) {
    for (const int head_dim : {64, 128, 256}) {
      c.shape.head_dim = head_dim, c.shape.gap = 8;
      const std::string what = fmt::format("{}, head size {}", c.name, head_dim);
      constexpr int kPage = 16;  // tokens: whole boxes of the tensor copy engine
      PairsTest<__nv_bfloat16> test(c, ScoreFunction::silu, kPage);
      const PairsResult found = test.on_gpu(AttentionKernel::queries);
      expect_pairs(found.o, test.exact().o, 1.0 / 128, what);
      EXPECT_TRUE(same_bits(found.o, test.on_gpu(AttentionKernel::queries).o)) << what << ": two runs differ";
    }
  }
}

// Samples whose tokens are all queries, in so few tiles that several blocks share out the keys of each.
TEST_F(AttentionByPairsOnGpu, FewLongSamplesOfLargeHeads) {
  if (cuda::attention_device().major != 9) GTEST_SKIP() << "no Hopper here";
  const std::vector<PairsCase> cases{{.name = "one sample", .shape = {.lengths = {1300}, .targets = {100}}},
                                     {.name = "windows and contexts",
                                      .shape = {.lengths = {1100, 1030},
                                                .contexts = {5, 0},
                                                .targets = {0, 60},
                                                .mask = {.left = 300, .right = 0, .target_group = 2}}}};
  for (PairsCase c : cases) {
    c.shape.head_dim = 256, c.shape.gap = 8;
    PairsTest<__nv_bfloat16> test(c, ScoreFunction::silu);
    const PairsResult found = test.on_gpu(AttentionKernel::queries);
    expect_pairs(found.o, test.exact().o, 1.0 / 128, c.name);
    EXPECT_TRUE(same_bits(found.o, test.on_gpu(AttentionKernel::queries).o)) << c.name << ": two runs differ";
  }
}

TEST_F(AttentionByPairsOnGpu, DropoutOfWeights) {
  expect_types<float, __nv_bfloat16>({.name = "dropout", .shape = {.lengths = {130, 5, 64}}, .dropout = 0.4});
}

}  // namespace
}  // namespace hstu

#endif  // HSTU_WITH_CUDA
