// A step and the attention of a beam search on a GPU against the host's.
#include <cmath>
#include <numeric>

#include "hstu/ops/beam_attention.h"
#include "hstu/ops/beam_step.h"
#include "hstu/ops/convert.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"
#include "support/tensor_values.h"

namespace hstu {
namespace {

using testing::random_tensor;
using testing::values_of;

class BeamsOnGpu : public testing::GpuTest {
 protected:
  Tensor to_gpu(const Tensor& x) const { return x.defined() ? x.copy(gpu_) : Tensor(); }
  ops::Beams to_gpu(const ops::Beams& b) const {
    return {b.width, to_gpu(b.score), to_gpu(b.node), to_gpu(b.code), to_gpu(b.ancestors)};
  }
  template <typename T>
  std::vector<T> from_gpu(const Tensor& x) const {
    return values_of<T>(x.to_host(gpu_.stream));
  }
};

template <typename T>
Tensor list(const std::vector<T>& values) {
  return Tensor::from<T>({std::ssize(values)}, values);
}

struct StepCase {
  std::int64_t users, nodes, codes, width, next;
  double step;       // of logits: scores that are multiples of it are often equal; 0: any
  double empty = 0;  // share of places without a beam
};

// Beams of disjoint nodes, each with some of the codes as children.
struct StepProblem {
  explicit StepProblem(const StepCase& c)
      : logits(random_tensor({c.users * c.width, c.codes}, DType::f32, 1)) {
    RandomStream random{2};
    std::vector<std::int32_t> first{0}, code, node, ancestors;
    for (std::int64_t n = 0; n < c.nodes; ++n) {
      for (std::int64_t child = 0; child < c.codes; ++child)
        if (random.below(3) != 0) code.push_back(static_cast<std::int32_t>(child));
      first.push_back(static_cast<std::int32_t>(code.size()));
    }
    trie = {list(code), list(first), 100};
    for (std::int64_t b = 0; b < c.users * c.width; ++b) {
      const bool is_empty = static_cast<double>(random.below(1000)) < 1000 * c.empty;
      node.push_back(is_empty ? -1 : static_cast<std::int32_t>(b % c.width));
      ancestors.push_back(static_cast<std::int32_t>(b)),
          ancestors.push_back(static_cast<std::int32_t>(b / 2));
    }
    beams = {c.width, random_tensor({c.users * c.width}, DType::f32, 3), list(node), list(node),
             list(ancestors).reshaped({c.users * c.width, 2})};
    if (c.step > 0) {
      for (Tensor* x : {&logits, &beams.score})
        for (std::int64_t i = 0; i < x->size(); ++i) x->mutable_data<float>()[i] = 0;
    }
    logits.mutable_data<float>()[1] = std::nanf("");
  }
  Tensor logits;
  ops::TrieLevel trie;
  ops::Beams beams;
};

TEST_F(BeamsOnGpu, AStepChoosesThePrefixesOfTheHost) {
  for (const StepCase& c : {StepCase{1, 1, 256, 1, 200, 0},           // the first level
                            StepCase{3, 200, 256, 200, 200, 0},       // a later one
                            StepCase{3, 200, 256, 200, 200, 1},       // equal scores: the order of tuples
                            StepCase{2, 200, 256, 200, 300, 0, 0.5},  // empty places
                            StepCase{2, 40, 9, 40, 300, 0, 0.2},      // fewer prefixes than places
                            StepCase{2, 30, 5, 30, 10, 0, 1},         // none
                            StepCase{1, 1500, 40, 1500, 1100, 0}}) {  // more than threads of a block
    const StepProblem p(c);
    const ops::Beams expected = ops::beam_step(p.trie, p.beams, 3, p.logits, c.next, host_context());
    const ops::TrieLevel trie{to_gpu(p.trie.code), to_gpu(p.trie.first_child), p.trie.first_row};
    const ops::Beams found = ops::beam_step(trie, to_gpu(p.beams), 3, to_gpu(p.logits), c.next, gpu_);
    const auto score = values_of<float>(expected.score), on_gpu = from_gpu<float>(found.score);
    const auto node = values_of<std::int32_t>(expected.node),
               node_on_gpu = from_gpu<std::int32_t>(found.node);
    const auto code = values_of<std::int32_t>(expected.code),
               code_on_gpu = from_gpu<std::int32_t>(found.code);
    const auto ancestors = values_of<std::int32_t>(expected.ancestors),
               ancestors_on_gpu = from_gpu<std::int32_t>(found.ancestors);
    std::int64_t other = 0;  // sums of exponentials differ in the last bits
    for (std::size_t i = 0; i < score.size(); ++i) {
      if (std::isfinite(score[i]))
        EXPECT_NEAR(on_gpu[i], score[i], 1e-5) << i;
      else
        EXPECT_EQ(on_gpu[i], score[i]) << i;
      if (node[i] != node_on_gpu[i]) {
        ++other;
        continue;
      }
      EXPECT_EQ(code_on_gpu[i], code[i]) << i;
      for (std::size_t a = 3 * i; a < 3 * i + 3; ++a) EXPECT_EQ(ancestors_on_gpu[a], ancestors[a]) << a;
    }
    EXPECT_LE(other, c.step > 0 ? 0 : std::ssize(score) / 50) << c.nodes;
  }
}

struct BeamCase {
  std::int64_t users, beams, heads, head_dim, codes, longest;
};

// q, k and v are columns of one product, as a decoder has them.
struct BeamProblem {
  explicit BeamProblem(const BeamCase& c) {
    const std::int64_t w = c.heads * c.head_dim, n = c.users * c.beams;
    RandomStream random{5};
    offsets.push_back(0);
    for (std::int64_t u = 0; u < c.users; ++u)
      offsets.push_back(offsets.back() + 1 +
                        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(c.longest))));
    history = random_tensor({offsets.back(), 3 * w}, DType::f32, 6);
    for (std::int64_t i = 0; i < c.codes; ++i)
      tokens.push_back(random_tensor({n, 3 * w}, DType::f32, 7 + static_cast<std::uint64_t>(i)));
    for (std::int64_t b = 0; b < n; ++b)
      for (std::int64_t i = 0; i + 1 < c.codes; ++i)
        ancestors.push_back(static_cast<std::int32_t>(
            b / c.beams * c.beams +
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(c.beams)))));
  }

  Tensor run(const BeamCase& c, const Context& context, DType type) const {
    Tape tape(context, false);
    const std::int64_t w = c.heads * c.head_dim;
    const auto in = [&](const Tensor& x) {
      return ops::convert(tape, Variable::constant(x.copy(context)), type);
    };
    const auto columns = [&](const Variable& x, std::int64_t i) { return ops::Columns(x, i * w, w); };
    ops::BeamShape shape{.beams = c.beams,
                         .heads = c.heads,
                         .head_dim = c.head_dim,
                         .alpha = 1 / std::sqrt(static_cast<double>(c.head_dim)),
                         .offsets = list(offsets).copy(context),
                         .ancestors = {},
                         .codes = {}};
    if (c.codes > 1) shape.ancestors = list(ancestors).copy(context);
    const Variable all = in(history);
    Variable last = in(history.row_range(0, c.users));
    for (const Tensor& x : tokens) {
      last = in(x);
      shape.codes.push_back({columns(last, 1), columns(last, 2)});
    }
    const Variable o = ops::beam_attention(tape, columns(last, 0), columns(all, 1), columns(all, 2), shape);
    return ops::convert(tape, o, DType::f32).value().to_host(context.stream);
  }

  std::vector<std::int64_t> offsets;
  Tensor history;
  std::vector<Tensor> tokens;
  std::vector<std::int32_t> ancestors;
};

TEST_F(BeamsOnGpu, AttentionOfBeamsIsThatOfTheHost) {
  for (const BeamCase& c : {BeamCase{3, 12, 3, 16, 3, 40},      // no tensor cores
                            BeamCase{1, 200, 2, 128, 3, 700},   // blocks share out the keys
                            BeamCase{2, 70, 2, 64, 1, 300},     // the first code
                            BeamCase{20, 200, 4, 128, 2, 200},  // large blocks
                            BeamCase{40, 120, 4, 64, 3, 100}, BeamCase{3, 5, 1, 128, 2, 1}}) {
    const BeamProblem p(c);
    const Tensor expected = p.run(c, host_context(), DType::f32);
    for (const DType type : {DType::f32, DType::bf16}) {
      const Tensor found = p.run(c, gpu_, type);
      double error = 0, norm = 0;
      for (std::int64_t i = 0; i < found.size(); ++i) {
        const double x = found.data<float>()[i], y = expected.data<float>()[i];
        error += (x - y) * (x - y), norm += y * y;
      }
      EXPECT_LE(std::sqrt(error), (type == DType::f32 ? 1e-5 : 0.01) * std::sqrt(norm))
          << c.users << " users, " << c.beams << " beams, heads of " << c.head_dim;
    }
  }
}

}  // namespace
}  // namespace hstu
