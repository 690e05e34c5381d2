// The whole model in double against the plain PyTorch form: logits, loss and the gradient of every parameter
// and every looked-up row, with the defaults and with the quirks of the DLRMv4 reference.
#include "hstu/kinds/dlrmv4/dlrmv4.h"

#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "hstu/kinds/dlrmv4/dlrmv4_objective.h"
#include "support/golden.h"

namespace hstu {
namespace {

using testing::expect_golden;
using testing::Golden;

Dlrmv4Config tiny_model() {
  Dlrmv4Config config;
  config.embedding_dim = config.dim = 16;
  config.layers = config.heads = 2;
  config.head_dim = 8;
  config.preprocessor_hidden = config.head_hidden = 12;
  config.positions = 20;
  config.time_buckets = 32;
  config.max_sequence = 32;
  config.loss_weight = 0.2;
  config.action_bits = {1, 2, 4};
  config.attributes = 2;
  config.context = 3;
  return config;
}

template <typename To, typename From>
std::vector<To> cast(const std::vector<From>& values) {
  return {values.begin(), values.end()};
}

// Every id is its own row number, so that the golden rows stand for themselves.
Samples tiny_samples(const Golden& g) {
  Samples samples;
  samples.history_offsets = g.values<std::int64_t>("history_offsets");
  samples.count = static_cast<std::int64_t>(samples.history_offsets.size()) - 1;
  samples.history_item = cast<std::int32_t>(g.values<std::int64_t>("history_item"));
  samples.history_action = g.values<std::uint8_t>("history_action");
  samples.history_time = g.values<std::int64_t>("history_time");
  samples.candidate_item = cast<std::int32_t>(g.values<std::int64_t>("candidate_item"));
  samples.candidate_time = g.values<std::int64_t>("candidate_time");
  samples.label = cast<float>(g.values<double>("label"));
  samples.items = g.values<std::int64_t>("items");
  std::vector<std::int64_t> item(samples.items.size()), sample(static_cast<std::size_t>(samples.count));
  std::iota(item.begin(), item.end(), 0);
  std::iota(sample.begin(), sample.end(), 0);
  samples.user = samples.position = sample;
  samples.attributes = {item, item};
  samples.context = {sample, sample, sample};
  return samples;
}

SampleFeatures tiny_features() {
  constexpr std::int64_t kMany = 1'000'000'000;
  return SampleFeatures({"item", kMany}, {{"artist", kMany}, {"album", kMany}},
                        {{"a", kMany}, {"b", kMany}, {"c", kMany}});
}

constexpr std::array kRowNames{"item_rows",      "attribute_rows.0", "attribute_rows.1",
                               "context_rows.0", "context_rows.1",   "context_rows.2"};

std::vector<Variable> tiny_rows(const Golden& g) {
  std::vector<Variable> rows;
  rows.reserve(kRowNames.size());
  for (const char* name : kRowNames) rows.push_back(g.variable(name));
  return rows;
}

Batch laid_out(const Dlrmv4& model, const Samples& samples) {
  Batch batch;
  LayoutScratch scratch;
  model.layout().lay_out(samples, scratch, batch);
  batch.supervised = samples.count;
  return batch;
}

void check_model(const Dlrmv4Config& config, const std::string& golden) {
  const Golden inputs("model_inputs"), expected(golden);
  const Dlrmv4 model(config, tiny_features(), 1, DType::f64);
  for (Parameter* parameter : model.parameters().all()) {
    const Tensor value = inputs.tensor(parameter->name);
    ASSERT_EQ(value.size(), parameter->value.size()) << parameter->name;
    std::copy_n(value.data<double>(), value.size(), parameter->value.mutable_data<double>());
  }
  const Batch batch = laid_out(model, tiny_samples(inputs));
  const std::vector<Variable> rows = tiny_rows(inputs);
  Tape tape;
  const Variable logits = model.forward(tape, batch, rows, Draws());
  const Variable loss = Dlrmv4Objective(config.loss_weight).loss({tape, batch, rows}, logits);
  tape.backward(loss);

  expect_golden(logits.value(), expected.tensor("logits"), "logits");
  expect_golden(loss.value(), expected.tensor("loss"), "loss");
  for (const Parameter* parameter : model.parameters().all()) {
    expect_golden(parameter->gradient, expected.tensor("gradient." + parameter->name), parameter->name);
  }
  for (std::size_t f = 0; f < kRowNames.size(); ++f) {
    const std::string name = kRowNames[f];
    expect_golden(rows[f].gradient(), expected.tensor("gradient." + name), name);
  }
}

TEST(GoldenModel, Defaults) {
  check_model(tiny_model(), "model");
}

TEST(GoldenModel, QuirksOfTheReference) {
  Dlrmv4Config config = tiny_model();
  config.attention_scale = AttentionScale::longest_in_batch;
  config.query_time = QueryTime::last_event;
  config.circle_constant = 3.14;
  check_model(config, "model_quirks");
}

// DLRMv4: 512 wide, 3 layers, 4 heads of 128, 8 contextual features, artist and album.
TEST(Dlrmv4, HasTheReferencesNumberOfParameters) {
  Dlrmv4Config config;
  config.embedding_dim = config.dim = config.head_hidden = 512;
  config.layers = 3;
  config.heads = 4;
  config.head_dim = 128;
  config.action_bits = {1, 2, 4};
  config.attributes = 2;
  config.context = 8;
  SampleFeatures features({"item", 10}, {{"artist", 10}, {"album", 10}});
  features.context.assign(8, {"context", 10});
  EXPECT_EQ(Dlrmv4(config, features, 1).parameters().count(), 15'243'057);
}

// Sample b of `whole` alone.
Samples only(const Samples& whole, std::int64_t b) {
  const auto s = static_cast<std::size_t>(b);
  const std::int64_t begin = whole.history_offsets[s], end = whole.history_offsets[s + 1];
  Samples one = whole;
  one.count = 1;
  one.history_offsets = {0, end - begin};
  const auto keep = [&](auto& values) { values = {values.begin() + begin, values.begin() + end}; };
  keep(one.history_item);
  keep(one.history_action);
  keep(one.history_time);
  const auto pick = [&](auto& values) { values = {values[s]}; };
  pick(one.candidate_item);
  pick(one.candidate_time);
  pick(one.label);
  pick(one.user);
  pick(one.position);
  for (auto& ids : one.context) pick(ids);
  return one;
}

// The rows that `batch` has of each context feature; items and attributes are those of the whole.
std::vector<Variable> rows_of_sample(const std::vector<Variable>& whole, std::int64_t b) {
  std::vector<Variable> rows(whole.begin(), whole.begin() + 3);
  for (std::size_t f = 3; f < whole.size(); ++f) rows.emplace_back(whole[f].value().row_range(b, b + 1));
  return rows;
}

// The defaults: what else is in the batch does not matter, and neither does it to what dropout draws.
TEST(Dlrmv4, ScoresASampleTheSameWhateverItsBatch) {
  const Golden inputs("model_inputs");
  const Dlrmv4 model(tiny_model(), tiny_features(), 3, DType::f64);
  const Samples whole = tiny_samples(inputs);
  const std::vector<Variable> rows = tiny_rows(inputs);
  for (const Draws& draws : {Draws(), Draws(5, 17)}) {
    Tape tape(false);
    const Variable together = model.forward(tape, laid_out(model, whole), rows, draws);
    for (std::int64_t b = 0; b < whole.count; ++b) {
      const Variable alone =
          model.forward(tape, laid_out(model, only(whole, b)), rows_of_sample(rows, b), draws);
      EXPECT_NEAR(alone.value().data<double>()[0], together.value().data<double>()[b], 1e-13)
          << "sample " << b;
    }
  }
}

TEST(Dlrmv4, DrawsOtherElementsAtEveryStep) {
  const Golden inputs("model_inputs");
  const Dlrmv4 model(tiny_model(), tiny_features(), 3, DType::f64);
  const Batch batch = laid_out(model, tiny_samples(inputs));
  const std::vector<Variable> rows = tiny_rows(inputs);
  const auto logit = [&](const Draws& draws) {
    Tape tape(false);
    return model.forward(tape, batch, rows, draws).value().data<double>()[0];
  };
  EXPECT_EQ(logit(Draws(5, 17)), logit(Draws(5, 17)));
  EXPECT_NE(logit(Draws(5, 17)), logit(Draws(5, 18)));
  EXPECT_NE(logit(Draws(5, 17)), logit(Draws(6, 17)));
  EXPECT_NE(logit(Draws(5, 17)), logit(Draws()));
}

TEST(Dlrmv4, CountsTheFlopsOfItsBatch) {
  Dlrmv4Config config;
  config.action_bits = {1};
  config.layers = 2;
  const Dlrmv4 model(config, SampleFeatures({"item", 10}), 1);
  Samples samples;
  samples.count = 2;
  samples.history_offsets = {0, 3, 3};
  samples.items = {4};
  samples.history_item = {0, 0, 0};
  samples.history_action = {1, 1, 1};
  samples.history_time = {10, 20, 30};
  samples.candidate_item = {0, 0};
  samples.candidate_time = {40, 40};
  samples.label = {1, 0};
  samples.user = {0, 1};
  samples.position = {0, 1};
  Batch batch;
  LayoutScratch scratch;
  model.layout().lay_out(samples, scratch, batch);
  const HstuLayerConfig layer{config.dim, config.heads, config.head_dim};
  LayerFlops whole, last;
  for (const int tokens : {4, 1}) {
    whole += layer_flops(layer, causal_mask(tokens), tokens);
    last += layer_flops(layer, causal_mask(tokens), 1);
  }
  const StackFlops flops = model.flops(batch);
  EXPECT_EQ(flops.model.step(), 2 * whole.step());
  EXPECT_EQ(flops.computed.step(), whole.step() + last.step());
  std::int64_t work = 0;
  for (const std::int64_t of_sample : batch.values<std::int64_t>(kWorkColumn)) work += of_sample;
  EXPECT_EQ(work, flops.model.forward());
}

}  // namespace
}  // namespace hstu
