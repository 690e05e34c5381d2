// Requirement: attention on the CPU has heads of 4 to 256 columns, of every form: values by the definition,
// gradients by differences in fp64.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>

#include <gtest/gtest.h>

#include "support/op_cases.h"

namespace hstu {
namespace {

constexpr std::int64_t kHeads = 2, kPositions = 4;
constexpr double kScale = 0.25;
const std::vector<std::int64_t> kThresholds{2, 9, 20};

struct Form {
  std::int64_t head_dim;
  ScoreFunction score;
  bool biased;
};

std::string name_of(const Form& form) {
  return std::to_string(form.head_dim) + (form.score == ScoreFunction::silu ? "Silu" : "Softmax") +
         (form.biased ? "WithBias" : "");
}
void PrintTo(const Form& form, std::ostream* out) {
  *out << name_of(form);
}

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const std::int64_t head_dim : {4, 8, 16, 25, 32, 50, 64, 128, 256}) {
    for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
      for (const bool biased : {false, true}) all.push_back({head_dim, score, biased});
    }
  }
  return all;
}

// Samples of 3, 0, 1 and 5 tokens.
struct Batch {
  explicit Batch(const Form& of, DType type = DType::f64) : form(of) {
    const std::int64_t w = kHeads * form.head_dim;
    const std::vector<Shape> shapes{{tokens, w}, {tokens, w}, {tokens, w}, {1, 2 * kPositions - 1}, {1, 4}};
    for (std::size_t i = 0; i < (form.biased ? 5U : 3U); ++i)
      inputs.push_back(testing::random_tensor(shapes[i], type, i + 1));
    RandomStream random{7};
    for (std::int64_t t = 0; t < 2 * tokens; ++t)
      (t < tokens ? query_time : key_time).push_back(static_cast<std::int64_t>(random.below(40)));
  }
  Variable attention(Tape& tape, const std::vector<Variable>& v) const {
    ops::AttentionShape shape;
    shape.heads = kHeads, shape.head_dim = form.head_dim;
    shape.alpha = 1 / std::sqrt(static_cast<double>(form.head_dim)), shape.scale = kScale;
    shape.offsets = Tensor::from({std::ssize(offsets)}, offsets);
    shape.score = form.score;
    if (form.biased) {
      shape.bias = {v[3], v[4], Tensor::from({3}, kThresholds), Tensor::from({tokens}, query_time),
                    Tensor::from({tokens}, key_time)};
    }
    return ops::attention(tape, v[0], v[1], v[2], shape);
  }
  // Element (i, head, c) of the output, by the definition; i and begin are rows.
  double expected(std::int64_t begin, std::int64_t i, std::int64_t head, std::int64_t c) const {
    const auto at = [&](std::size_t input, std::int64_t row, std::int64_t column) {
      return inputs[input].data<double>()[row * kHeads * form.head_dim + head * form.head_dim + column];
    };
    double sum = 0, exponentials = 0;
    for (std::int64_t j = begin; j <= i; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < form.head_dim; ++d) score += at(0, i, d) * at(1, j, d);
      score /= std::sqrt(static_cast<double>(form.head_dim));
      if (form.biased) {
        const std::int64_t distance =
            std::abs(query_time[static_cast<std::size_t>(i)] - key_time[static_cast<std::size_t>(j)]);
        std::int64_t bucket = 0;
        for (const std::int64_t threshold : kThresholds) bucket += threshold <= distance ? 1 : 0;
        score += inputs[3].data<double>()[kPositions - 1 + std::max(j - i, 1 - kPositions)] +
                 inputs[4].data<double>()[bucket];
      }
      const bool softmax = form.score == ScoreFunction::softmax;
      const double weight = softmax ? std::exp(score) : score / (1 + std::exp(-score));
      sum += weight * at(2, j, c), exponentials += weight;
    }
    return kScale * sum / (form.score == ScoreFunction::softmax ? exponentials : 1);
  }

  static constexpr std::int64_t tokens = 9;
  const std::vector<std::int64_t> offsets{0, 3, 3, 4, 9};
  Form form;
  std::vector<Tensor> inputs;
  std::vector<std::int64_t> query_time, key_time;
};

std::vector<Variable> leaves(const std::vector<Tensor>& tensors) {
  std::vector<Variable> variables;
  variables.reserve(tensors.size());
  for (const Tensor& tensor : tensors) variables.emplace_back(tensor.copy());
  return variables;
}

double product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

class HeadSizes : public ::testing::TestWithParam<Form> {};

TEST_P(HeadSizes, GiveTheDefinition) {
  const Batch batch(GetParam());
  Tape tape(false);
  const Variable o = batch.attention(tape, leaves(batch.inputs));
  for (std::size_t b = 0; b + 1 < batch.offsets.size(); ++b) {
    for (std::int64_t i = batch.offsets[b]; i < batch.offsets[b + 1]; ++i) {
      for (std::int64_t c = 0; c < o.cols(); ++c) {
        ASSERT_NEAR(o.value().data<double>()[i * o.cols() + c],
                    batch.expected(batch.offsets[b], i, c / GetParam().head_dim, c % GetParam().head_dim),
                    1e-12)
            << "row " << i << " column " << c;
      }
    }
  }
}

// Along three directions in each input.
TEST_P(HeadSizes, HaveTheGradientsOfDifferences) {
  const Batch batch(GetParam());
  Tape tape;
  const std::vector<Variable> inputs = leaves(batch.inputs);
  const Variable o = batch.attention(tape, inputs);
  const Tensor d_o = testing::random_tensor(o.value().shape(), DType::f64, 30);
  tape.backward(o, d_o);
  constexpr double kShift = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::uint64_t seed = 40; seed < 43; ++seed) {
      const Tensor direction = testing::random_tensor(inputs[i].value().shape(), DType::f64, seed);
      const auto at = [&](double step) {
        std::vector<Variable> moved = leaves(batch.inputs);
        Tensor value = moved[i].value();
        for (std::int64_t e = 0; e < value.size(); ++e)
          value.mutable_data<double>()[e] += step * direction.data<double>()[e];
        Tape forward(false);
        return product(batch.attention(forward, moved).value(), d_o);
      };
      const double expected = (at(kShift) - at(-kShift)) / (2 * kShift);
      EXPECT_NEAR(product(inputs[i].gradient(), direction), expected, 1e-6 * (1 + std::abs(expected)))
          << "input " << i;
    }
  }
}

// The output and the gradients of the inputs.
std::vector<Tensor> results_of(const Form& form, DType type) {
  const Batch batch(form, type);
  Tape tape;
  const std::vector<Variable> inputs = leaves(batch.inputs);
  const Variable o = batch.attention(tape, inputs);
  tape.backward(o, testing::random_tensor(o.value().shape(), type, 30));
  std::vector<Tensor> tensors{o.value()};
  for (const Variable& input : inputs) tensors.push_back(input.gradient());
  return tensors;
}

TEST_P(HeadSizes, FollowDoubleInFloat) {
  const std::vector<Tensor> expected = results_of(GetParam(), DType::f64),
                            found = results_of(GetParam(), DType::f32);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t e = 0; e < expected[i].size(); ++e) {
      const double y = expected[i].data<double>()[e];
      ASSERT_NEAR(found[i].data<float>()[e], y, 1e-5 * (1 + std::abs(y)))
          << "result " << i << " element " << e;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HeadSizes, ::testing::ValuesIn(forms()),
                         [](const auto& instance) { return name_of(instance.param); });

// The bias is added behind alpha: without queries the scores are the tables'. Tables of programs that compute
// alpha (q . k + b) are imported times alpha.
TEST(HeadSizes, HaveTheirBiasBehindAlpha) {
  Batch batch({.head_dim = 16, .score = ScoreFunction::silu, .biased = true});
  batch.inputs[0].fill_zero();
  Tape tape(false);
  const Variable o = batch.attention(tape, leaves(batch.inputs));
  const std::int64_t distance = std::abs(batch.query_time[0] - batch.key_time[0]);
  const auto bucket = std::count_if(kThresholds.begin(), kThresholds.end(),
                                    [&](std::int64_t threshold) { return threshold <= distance; });
  const double score =
      batch.inputs[3].data<double>()[kPositions - 1] + batch.inputs[4].data<double>()[bucket];
  for (std::int64_t c = 0; c < 16; ++c)
    EXPECT_NEAR(o.value().data<double>()[c],
                kScale * score / (1 + std::exp(-score)) * batch.inputs[2].data<double>()[c], 1e-12);
}

}  // namespace
}  // namespace hstu
