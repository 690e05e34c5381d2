// The whole model in double against the plain PyTorch form: logits, loss and the gradient of every parameter
// and every looked-up row, with the defaults and with the quirks of the DLRMv4 reference.
#include <numeric>

#include <gtest/gtest.h>

#include "hstu/loss/binary_cross_entropy.h"
#include "hstu/model/ranker.h"
#include "support/golden.h"

namespace hstu {
namespace {

using testing::expect_golden;
using testing::Golden;

ModelConfig tiny_model() {
  ModelConfig config;
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

Batch tiny_batch(const Golden& g) {
  Batch batch;
  const auto set = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  set(batch.history_offsets, g.values<std::int64_t>("history_offsets"));
  batch.samples = static_cast<std::int64_t>(batch.history_offsets.size()) - 1;
  set(batch.history_item, cast<std::int32_t>(g.values<std::int64_t>("history_item")));
  set(batch.history_action, g.values<std::uint8_t>("history_action"));
  set(batch.history_time, g.values<std::int64_t>("history_time"));
  set(batch.candidate_item, cast<std::int32_t>(g.values<std::int64_t>("candidate_item")));
  set(batch.candidate_time, g.values<std::int64_t>("candidate_time"));
  set(batch.label, cast<float>(g.values<double>("label")));
  set(batch.items, g.values<std::int64_t>("items"));
  return batch;
}

Tensor every_row(std::int64_t n) {
  std::vector<std::int32_t> index(static_cast<std::size_t>(n));
  std::iota(index.begin(), index.end(), 0);
  return ops::row_index(index);
}

LookedUpRows tiny_rows(const Golden& g, const Batch& batch) {
  LookedUpRows rows{g.variable("item_rows"), {}, {}};
  for (const char* name : {"attribute_rows.0", "attribute_rows.1"}) {
    rows.attributes.push_back({g.variable(name), every_row(rows.items.rows())});
  }
  for (const char* name : {"context_rows.0", "context_rows.1", "context_rows.2"}) {
    rows.context.push_back({g.variable(name), every_row(batch.samples)});
  }
  return rows;
}

void check_model(const ModelConfig& config, const std::string& golden) {
  const Golden inputs("model_inputs"), expected(golden);
  const Ranker model(config, 1, DType::f64);
  for (Parameter* parameter : model.parameters().all()) {
    const Tensor value = inputs.tensor(parameter->name);
    ASSERT_EQ(value.size(), parameter->value.size()) << parameter->name;
    std::copy_n(value.data<double>(), value.size(), parameter->value.mutable_data<double>());
  }
  const Batch batch = tiny_batch(inputs);
  const LookedUpRows rows = tiny_rows(inputs, batch);
  Tape tape;
  const Variable logits = model(tape, batch, rows, 0);
  const Variable loss = loss::binary_cross_entropy(
      tape, logits, Tensor::from<float>({batch.samples}, {batch.label.begin(), batch.label.end()}),
      config.loss_weight / static_cast<double>(batch.samples));
  tape.backward(loss);

  expect_golden(logits.value(), expected.tensor("logits"), "logits");
  expect_golden(loss.value(), expected.tensor("loss"), "loss");
  for (const Parameter* parameter : model.parameters().all()) {
    expect_golden(parameter->gradient, expected.tensor("gradient." + parameter->name), parameter->name);
  }
  expect_golden(rows.items.gradient(), expected.tensor("gradient.item_rows"), "item_rows");
  for (std::size_t a = 0; a < 2; ++a) {
    const std::string name = "attribute_rows." + std::to_string(a);
    expect_golden(rows.attributes[a].rows.gradient(), expected.tensor("gradient." + name), name);
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const std::string name = "context_rows." + std::to_string(c);
    expect_golden(rows.context[c].rows.gradient(), expected.tensor("gradient." + name), name);
  }
}

TEST(GoldenModel, Defaults) {
  check_model(tiny_model(), "model");
}

TEST(GoldenModel, QuirksOfTheReference) {
  ModelConfig config = tiny_model();
  config.attention_scale = "longest_in_batch";
  config.query_time = "last_event";
  config.circle_constant = 3.14;
  check_model(config, "model_quirks");
}

// DLRMv4: 512 wide, 3 layers, 4 heads of 128, 8 contextual features, artist and album.
TEST(Ranker, HasTheReferencesNumberOfParameters) {
  ModelConfig config;
  config.embedding_dim = config.dim = config.head_hidden = 512;
  config.layers = 3;
  config.heads = 4;
  config.head_dim = 128;
  config.action_bits = {1, 2, 4};
  config.attributes = 2;
  config.context = 8;
  EXPECT_EQ(Ranker(config, 1).parameters().count(), 15'243'057);
}

// The defaults: what else is in the batch does not matter.
TEST(Ranker, ScoresASampleTheSameWhateverItsBatch) {
  const Golden inputs("model_inputs");
  const Ranker model(tiny_model(), 3, DType::f64);
  const Batch whole = tiny_batch(inputs);
  const LookedUpRows rows = tiny_rows(inputs, whole);
  Tape tape(false);
  const Variable together = model(tape, whole, rows, 0);
  for (std::int64_t b = 0; b < whole.samples; ++b) {
    const auto s = static_cast<std::size_t>(b);
    const std::int64_t begin = whole.history_offsets[s], end = whole.history_offsets[s + 1];
    Batch one = whole;
    one.samples = 1;
    one.history_offsets = {0, end - begin};
    const auto keep = [&](auto& values) { values = {values.begin() + begin, values.begin() + end}; };
    keep(one.history_item);
    keep(one.history_action);
    keep(one.history_time);
    one.candidate_item = {whole.candidate_item[s]};
    one.candidate_time = {whole.candidate_time[s]};
    LookedUpRows own = rows;
    for (FeatureRows& feature : own.context) feature.index = ops::row_index({static_cast<std::int32_t>(b)});
    const Variable alone = model(tape, one, own, 0);
    EXPECT_NEAR(alone.value().data<double>()[0], together.value().data<double>()[b], 1e-13) << "sample " << b;
  }
}

}  // namespace
}  // namespace hstu
