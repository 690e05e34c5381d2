// The encoders of retrieval: golden steps of PyTorch, gradients by differences, what is computed for fewer
// rows.
#include "hstu/model/sequence_encoder.h"

#include <cmath>
#include <map>
#include <ostream>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/model/sequence_presets.h"
#include "support/golden.h"
#include "support/op_cases.h"

namespace hstu {

void PrintTo(SequencePreset preset, std::ostream* out) {  // where GoogleTest looks for it
  *out << word_of(kSequencePresets, preset);
}

namespace {

using testing::expect_golden;
using testing::Golden;

constexpr SequencePreset kPresets[] = {SequencePreset::meta, SequencePreset::nvidia, SequencePreset::sasrec};

std::string name_of(SequencePreset preset) {
  for (const auto& [name, value] : kSequencePresets) {
    if (value == preset) return std::string(name);
  }
  return "?";
}

// The sizes of tools/golden.py.
SequenceEncoderConfig golden_config(SequencePreset preset, double dropout = 0) {
  SequenceEncoderConfig config = sequence_preset(
      preset,
      {.dim = 10, .layers = 2, .heads = 2, .head_dim = 7, .longest = 12, .dropout = dropout, .times = true});
  config.positions = 12;
  return config;
}

// The places of tokens in their samples.
Tensor places(const std::vector<std::int64_t>& offsets) {
  std::vector<std::int32_t> places;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (std::int64_t t = offsets[b]; t < offsets[b + 1]; ++t)
      places.push_back(static_cast<std::int32_t>(t - offsets[b]));
  }
  return ops::row_index(places);
}

SequenceTokens every_token(const Golden& g) {
  const auto item = g.values<std::int64_t>("item"), offsets = g.values<std::int64_t>("offsets");
  StackRows all{{}, g.tensor("offsets"), testing::random_names(std::ssize(item), 4)};
  all.query_time = g.tensor("query_time"), all.key_time = g.tensor("key_time");
  return {ops::row_index({item.begin(), item.end()}), places(offsets), all, all};
}

// The same with the last token of each sample that has one.
SequenceTokens last_tokens(const Golden& g, std::vector<std::int32_t>& rows) {
  SequenceTokens tokens = every_token(g);
  const auto offsets = g.values<std::int64_t>("offsets"), times = g.values<std::int64_t>("query_time");
  std::vector<std::int64_t> wanted{0}, names, query_time;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    if (offsets[b + 1] > offsets[b]) {
      const std::int64_t last = offsets[b + 1] - 1;
      rows.push_back(static_cast<std::int32_t>(last));
      names.push_back(tokens.all.names.data<std::int64_t>()[last]);
      query_time.push_back(times[static_cast<std::size_t>(last)]);
    }
    wanted.push_back(std::ssize(rows));
  }
  const std::int64_t n = std::ssize(rows);
  tokens.wanted = {ops::row_index(rows), Tensor::from({std::ssize(wanted)}, wanted),
                   Tensor::from({n}, names)};
  tokens.wanted.query_time = Tensor::from({n}, query_time);
  return tokens;
}

struct Encoder {
  explicit Encoder(const SequenceEncoderConfig& config, const Golden& g)
      : parameters(5, DType::f64), encoder(parameters, config) {
    for (Parameter* const parameter : parameters.all()) parameter->value.copy_from(g.tensor(parameter->name));
  }
  ParameterSet parameters;
  SequenceEncoder encoder;
};

class SequencePresets : public ::testing::TestWithParam<SequencePreset> {};

TEST_P(SequencePresets, AreThoseOfPyTorch) {
  const Golden g("sequence_" + name_of(GetParam()));
  const Encoder e(golden_config(GetParam()), g);
  Tape tape;
  const Variable items = g.variable("items");
  const Variable y = e.encoder(tape, items, every_token(g), {});
  tape.backward(y, g.tensor("dy"));
  expect_golden(y.value(), g.tensor("y"), "y");
  expect_golden(items.gradient(), g.tensor("ditems"), "ditems");
  std::size_t gradients = 0;
  for (const Parameter* const parameter : e.parameters.all()) {
    expect_golden(parameter->gradient, g.tensor("d" + parameter->name), parameter->name);
    ++gradients;
  }
  EXPECT_GE(gradients, 8U);
}

TEST_P(SequencePresets, GiveTheLastTokensTheRowsThatTheyHaveAmongAll) {
  const Golden g("sequence_" + name_of(GetParam()));
  const Encoder e(golden_config(GetParam()), g);
  Tape tape(false);
  std::vector<std::int32_t> rows;
  const SequenceTokens last = last_tokens(g, rows);
  const Variable y = e.encoder(tape, g.variable("items"), last, {});
  const Tensor all = g.tensor("y");
  ASSERT_EQ(y.rows(), 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t c = 0; c < y.cols(); ++c)
      EXPECT_NEAR(y.value().data<double>()[static_cast<std::int64_t>(i) * y.cols() + c],
                  all.data<double>()[rows[i] * y.cols() + c], 1e-12);
  }
}

// Along one direction in each input and parameter; with dropout, and for some rows alone.
TEST_P(SequencePresets, HaveTheGradientsOfDifferences) {
  const Golden g("sequence_" + name_of(GetParam()));
  const Encoder e(golden_config(GetParam(), 0.3), g);
  std::vector<std::int32_t> rows;
  const SequenceTokens tokens = last_tokens(g, rows);
  Tensor items = g.tensor("items");
  const Tensor dy = testing::random_tensor({std::ssize(rows), 10}, DType::f64, 9);
  const auto loss = [&] {
    Tape tape(false);
    const Variable y = e.encoder(tape, Variable(items), tokens, Draws(3, 1));
    double sum = 0;
    for (std::int64_t i = 0; i < dy.size(); ++i) sum += y.value().data<double>()[i] * dy.data<double>()[i];
    return sum;
  };
  Tape tape;
  const Variable leaf(items.copy());
  tape.backward(e.encoder(tape, leaf, tokens, Draws(3, 1)), dy);

  constexpr double kStep = 1e-5;
  std::uint64_t seed = 20;
  const auto check = [&](Tensor& value, const Tensor& gradient, const std::string& name) {
    const Tensor direction = testing::random_tensor(value.shape(), DType::f64, ++seed), before = value.copy();
    const auto at = [&](double step) {
      for (std::int64_t i = 0; i < value.size(); ++i)
        value.mutable_data<double>()[i] = before.data<double>()[i] + step * direction.data<double>()[i];
      return loss();
    };
    const double expected = (at(kStep) - at(-kStep)) / (2 * kStep);
    value.copy_from(before);
    double found = 0;
    for (std::int64_t i = 0; i < value.size(); ++i)
      found += gradient.data<double>()[i] * direction.data<double>()[i];
    EXPECT_NEAR(found, expected, 1e-6 * (1 + std::abs(expected))) << name;
  };
  check(items, leaf.gradient(), "items");
  for (Parameter* const parameter : e.parameters.all())
    check(parameter->value, parameter->gradient, parameter->name);
}

INSTANTIATE_TEST_SUITE_P(All, SequencePresets, ::testing::ValuesIn(kPresets),
                         [](const auto& instance) { return name_of(instance.param); });

std::map<std::string, Shape> shapes_of(const SequenceEncoderConfig& config) {
  ParameterSet set(1, DType::f32);
  const SequenceEncoder encoder(set, config);
  std::map<std::string, Shape> shapes;
  for (const Parameter* const parameter : set.all())
    shapes.emplace(parameter->name, parameter->value.shape());
  return shapes;
}

TEST(SequenceEncoder, OfMetaHasItsParametersAlone) {
  const SequenceEncoderConfig config = sequence_preset(SequencePreset::meta, {.layers = 1});
  const std::map<std::string, Shape> expected{
      {"encoder.position", {211, 50}},      {"layers.0.uvqk.weight", {50, 200}},
      {"layers.0.output.weight", {50, 50}}, {"layers.0.output.bias", {50}},
      {"layers.0.bias.position", {1, 421}}, {"layers.0.bias.time", {1, 129}}};
  EXPECT_EQ(shapes_of(config), expected);
}

TEST(SequenceEncoder, OfLogsWithoutTimesHasNoTimeTableAndNeedsNoTimes) {
  const SequenceEncoderConfig config = sequence_preset(SequencePreset::meta, {.layers = 1, .times = false});
  EXPECT_FALSE(shapes_of(config).contains("layers.0.bias.time"));
  ParameterSet set(1, DType::f32);
  const SequenceEncoder encoder(set, config);
  EXPECT_FALSE(encoder.needs_times());
  const StackRows rows{{}, Tensor::from<std::int64_t>({2}, {0, 2}), testing::random_names(2, 1)};
  Tape tape(false);
  const Variable items(testing::random_tensor({3, 50}, DType::f32, 1));
  const Tensor index = ops::row_index({0, 1});
  EXPECT_EQ(encoder(tape, items, {index, index, rows, rows}, {}).rows(), 2);
}

// The deviation of what is drawn, of a parameter without a mean.
double deviation_of(const SequenceEncoderConfig& config, const std::string& name) {
  ParameterSet set(1, DType::f64);
  const SequenceEncoder encoder(set, config);
  const Tensor& value = set.find(name).value;
  double sum = 0;
  for (std::int64_t i = 0; i < value.size(); ++i) sum += value.data<double>()[i] * value.data<double>()[i];
  return std::sqrt(sum / static_cast<double>(value.size()));
}

TEST(SequenceEncoder, DrawsTheInitialValuesOfItsPreset) {
  const SequenceSizes sizes{.dim = 64, .layers = 1, .heads = 2, .head_dim = 32, .longest = 211};
  const SequenceEncoderConfig meta = sequence_preset(SequencePreset::meta, sizes);
  EXPECT_NEAR(deviation_of(meta, "encoder.position"), std::sqrt(2.0 / (211 + 64)), 2e-3);
  EXPECT_NEAR(deviation_of(meta, "layers.0.uvqk.weight"), 0.02, 4e-4);
  EXPECT_NEAR(deviation_of(meta, "layers.0.output.weight"), std::sqrt(2.0 / (64 + 64)), 4e-3);
  EXPECT_NEAR(deviation_of(meta, "layers.0.output.bias"), std::sqrt(1.0 / 64 / 3), 1.5e-2);
  EXPECT_NEAR(deviation_of(meta, "layers.0.bias.position"), 0.02, 2e-3);
  EXPECT_NEAR(deviation_of(meta, "layers.0.bias.time"), 0.02, 4e-3);
  const SequenceEncoderConfig nvidia = sequence_preset(SequencePreset::nvidia, sizes);
  EXPECT_NEAR(deviation_of(nvidia, "encoder.position"), std::sqrt(1.0 / 8192 / 3), 1e-4);
  EXPECT_NEAR(deviation_of(nvidia, "layers.0.uvqk.weight"), std::sqrt(2.0 / (64 + 256)), 2e-3);
  const SequenceEncoderConfig sasrec = sequence_preset(SequencePreset::sasrec, sizes);
  EXPECT_NEAR(deviation_of(sasrec, "encoder.position"), std::sqrt(1.0 / 64), 3e-3);
  EXPECT_NEAR(deviation_of(sasrec, "layers.0.query.weight"), std::sqrt(2.0 / 256), 3e-3);
  EXPECT_EQ(deviation_of(sasrec, "layers.0.query.bias"), 0);
  EXPECT_NEAR(deviation_of(sasrec, "layers.0.mlp.0.weight"), std::sqrt(2.0 / 128), 4e-3);
}

TEST(SequenceEncoder, RefusesHeadsThatDoNotDivideTheWidthOfSasrec) {
  ParameterSet set(1, DType::f32);
  EXPECT_THROW(SequenceEncoder(set, sequence_preset(SequencePreset::sasrec, {.dim = 50, .heads = 4})),
               UsageError);
}

}  // namespace
}  // namespace hstu
