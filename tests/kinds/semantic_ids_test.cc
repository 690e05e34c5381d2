// The model of semantic ids by hand and against PyTorch: layout, loss, gradients, search.
#include "hstu/kinds/semantic_ids/semantic_ids.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/kinds/semantic_ids/semantic_ids_objective.h"
#include "hstu/model/draws.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using namespace semantic_ids;

// Two levels of 3 and 2 codes. Items 4 and 9 share a tuple.
std::shared_ptr<const ItemCodes> three_tuples() {
  return std::make_shared<const ItemCodes>(
      ItemCodes{.sizes = {3, 2}, .items = {1, 4, 7, 9}, .codes = {2, 1, 0, 1, 0, 0, 0, 1}});
}

// Users with the histories 1 4 7, none, and 7 (of whom 5 has no codes); the candidates are 1, 4 and 4.
Samples users_of_codes(bool predicts_next_events, bool one = false) {
  Samples samples;
  samples.count = one ? 1 : 3;
  samples.predicts_next_events = predicts_next_events;
  samples.items = {1, 4, 5, 7};
  samples.history_offsets = {0, 3};
  samples.history_item = {0, 1, 3};
  samples.candidate_item = {0};
  samples.user = {70}, samples.position = {50};
  if (!one) {
    samples.history_offsets = {0, 3, 3, 5};
    samples.history_item = {0, 1, 3, 3, 2};
    samples.candidate_item = {0, 1, 1};
    samples.user = {70, 80, 90}, samples.position = {50, 60, 70};
  }
  samples.history_action.assign(samples.history_item.size(), 0);
  samples.history_time.assign(samples.history_item.size(), 1);
  samples.candidate_time.assign(samples.user.size(), 2);
  samples.label.assign(samples.user.size(), 1);
  return samples;
}

SemanticIdsConfig small_config() {
  SemanticIdsConfig config;
  config.dim = 4, config.layers = 1, config.heads = 2, config.head_dim = 2, config.hidden = 6;
  config.dropout = 0;
  config.history = 3;
  config.beam = 3;
  return config;
}

Batch batch_of(const SemanticIds& model, const Samples& samples) {
  LayoutScratch scratch;
  Batch batch;
  model.layout().lay_out(samples, scratch, batch);
  batch.supervised = 3;
  return batch;
}

struct Built {
  explicit Built(const SemanticIdsConfig& config, DType type = DType::f32)
      : codes(three_tuples()),
        trie(std::make_shared<const CodeTrie>(*codes)),
        model(config, codes, trie, 3, type),
        objective(model, config, codes, trie) {}

  std::shared_ptr<const ItemCodes> codes;
  std::shared_ptr<const CodeTrie> trie;
  SemanticIds model;
  SemanticIdsObjective objective;
};

TEST(SemanticIdsLayout, EveryItemButTheFirstIsATarget) {
  const Built built(small_config());
  const Batch batch = batch_of(built.model, users_of_codes(true));
  EXPECT_THAT(batch.values<std::int64_t>(kCodeOffsets), ElementsAre(0, 10, 10, 17));
  // rows of level 2 begin at 3.
  EXPECT_THAT(batch.values<std::int32_t>("code.index"),
              ElementsAre(2, 4, -1, 0, 4, -1, 0, 3, -1, 2, 0, 3, -1, -1, -1, -1, 0));
  EXPECT_THAT(batch.values<std::int32_t>(kBos),
              ElementsAre(-1, -1, 0, -1, -1, 0, -1, -1, 0, -1, -1, -1, 0, -1, -1, 0, -1));
  EXPECT_THAT(batch.values<std::int32_t>(kPlace),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6));
  // Items 4, 7, 1 and 4: item 5 has no codes.
  EXPECT_THAT(batch.values<std::int32_t>(kTargetToken), ElementsAre(2, 5, 8, 15, 3, 6, 9, 16));
  EXPECT_THAT(batch.values<std::int64_t>(kTargetCode), ElementsAre(0, 0, 2, 0, 1, 0, 1, 1));
  ASSERT_EQ(batch.bad_ids.size(), 1U);
  EXPECT_EQ(batch.bad_ids[0].feature, "code");
  EXPECT_EQ(batch.bad_ids[0].first_id, 5);
  EXPECT_EQ(batch.bad_ids[0].first_user, 90);
  EXPECT_EQ(batch.tokens, 17);
}

TEST(SemanticIdsLayout, TheCandidateAloneHasABosBeforeIt) {
  SemanticIdsConfig config = small_config();
  config.targets = CodeTargets::candidate, config.head = CodeHeads::shared;
  const Built built(config);
  const Batch batch = batch_of(built.model, users_of_codes(false, true));
  EXPECT_THAT(batch.values<std::int32_t>("code.index"), ElementsAre(2, 4, 0, 4, 0, 3, -1, 2));
  EXPECT_THAT(batch.values<std::int32_t>(kPlace), ElementsAre(0, 1, 3, 4, 6, 7, 8, 9));
  EXPECT_THAT(batch.values<std::int32_t>(kTargetToken), ElementsAre(6, 7));
  EXPECT_THAT(batch.values<std::int64_t>(kTargetCode), ElementsAre(2, 4));  // of all levels
  EXPECT_THAT(batch.values<std::int32_t>(kEventCodes), ElementsAre(2, 4, 0, 4, 0, 3));
}

double wave(std::int64_t i, double phase, double base) {
  return 0.5 * std::sin(0.7 * static_cast<double>(i) + phase) + base;
}

template <typename T>
Tensor waves(const Shape& shape, double phase, double base = 0) {
  Tensor tensor = Tensor::empty(shape, dtype_of<T>());
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.mutable_data<T>()[i] = static_cast<T>(wave(i, phase, base));
  return tensor;
}

// The parameters of the PyTorch form, by name: phase and base of their waves.
template <typename T>
Variable fill(const SemanticIds& model) {
  const std::map<std::string, std::pair<int, int>> phases{{"bos", {2, 0}},
                                                          {"place", {3, 0}},
                                                          {"output_norm.weight", {4, 1}},
                                                          {"head.weight", {5, 0}},
                                                          {"layers.0.attention_norm.weight", {6, 1}},
                                                          {"layers.0.qkv.weight", {7, 0}},
                                                          {"layers.0.qkv.bias", {8, 0}},
                                                          {"layers.0.output.weight", {9, 0}},
                                                          {"layers.0.output.bias", {10, 0}},
                                                          {"layers.0.mlp_norm.weight", {11, 1}},
                                                          {"layers.0.mlp.0.weight", {12, 0}},
                                                          {"layers.0.mlp.0.bias", {13, 0}},
                                                          {"layers.0.mlp.1.weight", {14, 0}},
                                                          {"layers.0.mlp.1.bias", {15, 0}}};
  for (const Parameter* parameter : model.parameters().all()) {
    Tensor value = parameter->value;
    const auto& [phase, base] = phases.at(parameter->name);
    value.copy_from(waves<T>(value.shape(), phase, base));
  }
  return Variable(waves<T>({5, 4}, 1));
}

double dot_with_waves(const Tensor& gradient) {
  double sum = 0;
  for (std::int64_t i = 0; i < gradient.size(); ++i)
    sum += gradient.data<double>()[i] * std::cos(1.3 * static_cast<double>(i));
  return sum;
}

struct CodesGolden {
  CodePositions positions;
  CodeHeads head;
  CodeTargets targets;
  double loss, table, bos, head_weight, qkv, mlp_norm;
};

// Losses and gradients of a form in PyTorch with dense masks.
TEST(SemanticIds, HasTheLossAndGradientsOfPyTorch) {
  const CodesGolden all[] = {
      {CodePositions::learned, CodeHeads::separate, CodeTargets::every_item, 0.958606946360, 0.0039142491,
       0.0169262568, 1.1182386986, -0.0025817261, 0.0027906767},
      {CodePositions::none, CodeHeads::shared, CodeTargets::every_item, 1.656473636633, -0.0138810853,
       -0.0153760009, 0.7358581981, -0.0214910512, -0.0047066617},
      {CodePositions::rotary, CodeHeads::separate, CodeTargets::candidate, 0.799511153068, 0.1578042808,
       0.0277406828, -0.0932843151, -0.0000386011, -0.0009711569}};
  for (const CodesGolden& golden : all) {
    SemanticIdsConfig config = small_config();
    config.positions = golden.positions, config.head = golden.head, config.targets = golden.targets;
    const Built built(config, DType::f64);
    const bool every = golden.targets == CodeTargets::every_item;
    Batch batch = batch_of(built.model, users_of_codes(every, true));
    batch.supervised = every ? 3 : 1;
    const std::vector<Variable> rows{fill<double>(built.model)};
    built.model.parameters().clear_gradients();
    Tape tape;
    const Variable outputs = built.model.forward(tape, batch, rows, Draws());
    const Variable loss = built.objective.loss({.tape = tape, .batch = batch, .rows = rows}, outputs);
    EXPECT_NEAR(loss.value().data<double>()[0], golden.loss, 1e-10);
    tape.backward(loss);
    const auto gradient = [&](const char* name) {
      return dot_with_waves(built.model.parameters().find(name).gradient);
    };
    EXPECT_NEAR(dot_with_waves(rows[0].gradient()), golden.table, 1e-9);
    EXPECT_NEAR(gradient("bos"), golden.bos, 1e-9);
    EXPECT_NEAR(gradient("head.weight"), golden.head_weight, 1e-9);
    EXPECT_NEAR(gradient("layers.0.qkv.weight"), golden.qkv, 1e-9);
    EXPECT_NEAR(gradient("layers.0.mlp_norm.weight"), golden.mlp_norm, 1e-9);
  }
}

// the same with both heads, as a search takes the softmax of the level's codes.
TEST(SemanticIds, FindsTheTuplesOfPyTorchWithTheirLogProbabilities) {
  for (const CodeHeads head : {CodeHeads::separate, CodeHeads::shared}) {
    for (const CodePositions positions : {CodePositions::learned, CodePositions::rotary}) {
      SemanticIdsConfig config = small_config();
      config.positions = positions, config.head = head;
      const Built built(config);
      const Batch batch = batch_of(built.model, users_of_codes(false, true));
      Tape tape(false);
      const Tensor found = built.model.search(tape, batch, fill<float>(built.model));
      ASSERT_EQ(found.size(), 9);
      const bool learned = positions == CodePositions::learned;
      const float expected[] = {2, 1, learned ? -1.5503456F : -1.59902231F,
                                0, 0, learned ? -2.14218212F : -2.07696644F,
                                0, 1, learned ? -2.29012254F : -2.21709275F};
      for (std::int64_t i = 0; i < 9; ++i) EXPECT_NEAR(found.data<float>()[i], expected[i], 1e-5) << i;
      const std::vector<kernels::ScoredItem> items = built.objective.list(std::span(found.data<float>(), 9));
      std::vector<std::int64_t> ids(items.size());
      std::transform(items.begin(), items.end(), ids.begin(), [](const auto& item) { return item.id; });
      EXPECT_THAT(ids, ElementsAre(1, 7, 4, 9));  // of one tuple by their ids
    }
  }
}

// Four levels and several users: continuing from cached keys gives the log-probabilities that one pass over
// the history and the whole tuple gives, with both blocks, and every result is a tuple of an item.
TEST(SemanticIds, DecodingStepByStepIsDecodingAtOnce) {
  ItemCodes many{.sizes = {5, 5, 5, 5}, .items = {}, .codes = {}};
  RandomStream random{7};
  for (std::int64_t i = 0; i < 60; ++i) {
    many.items.push_back(i);
    for (int l = 0; l < 4; ++l) many.codes.push_back(static_cast<std::int32_t>(random.below(5)));
  }
  const auto codes = std::make_shared<const ItemCodes>(many);
  const auto trie = std::make_shared<const CodeTrie>(many);
  for (const CodeBlocks block : {CodeBlocks::softmax, CodeBlocks::hstu}) {
    SemanticIdsConfig config = small_config();
    config.block = block, config.layers = 2, config.dim = 8, config.beam = 60, config.history = 4;
    SemanticIds model(config, codes, trie, 11);
    const SemanticIdsObjective objective(model, config, codes, trie);
    Samples samples;
    samples.count = 2;
    for (std::int64_t i = 0; i < 60; ++i) samples.items.push_back(i);
    samples.history_offsets = {0, 4, 5};
    samples.history_item = {3, 14, 15, 9, 26};
    samples.history_action.assign(5, 0), samples.history_time.assign(5, 1);
    samples.candidate_time = {2, 2}, samples.label = {1, 1}, samples.user = {1, 2}, samples.position = {8, 9};
    samples.candidate_item = {0, 0};
    const Variable rows(waves<float>({20, 8}, 1));
    Tape tape(false);
    const Batch asked = batch_of(model, samples);
    const Tensor found = model.search(tape, asked, rows);
    for (std::int64_t u = 0; u < 2; ++u) {
      const float* const output = found.data<float>() + u * found.cols();
      std::int64_t tuples = 0;
      for (const kernels::ScoredItem& item : objective.list(std::span(output, 300))) {
        if (tuples++ % 7 != 0) continue;  // some of them
        // The loss of the candidate alone, with the other user's left out.
        Samples one = samples;
        one.count = 1;
        const auto begin = samples.history_offsets[static_cast<std::size_t>(u)],
                   end = samples.history_offsets[static_cast<std::size_t>(u) + 1];
        one.history_offsets = {0, end - begin};
        one.history_item.assign(samples.history_item.begin() + begin, samples.history_item.begin() + end);
        one.history_action.resize(one.history_item.size()), one.history_time.resize(one.history_item.size());
        one.candidate_time = {2}, one.label = {1}, one.user = {1}, one.position = {8};
        one.candidate_item = {static_cast<std::int32_t>(item.id)};
        SemanticIdsConfig alone = config;
        alone.targets = CodeTargets::candidate;
        SemanticIds same(alone, codes, trie, 11);
        Batch batch = batch_of(same, one);
        batch.supervised = 1;
        Tape record;
        const std::vector<Variable> leaves{rows};
        const SemanticIdsObjective loss(same, alone, codes, trie);
        const Variable value = loss.loss({.tape = record, .batch = batch, .rows = leaves},
                                         same.forward(record, batch, leaves, Draws()));
        EXPECT_NEAR(item.score, -4 * value.value().data<float>()[0], 1e-4);
      }
      EXPECT_EQ(tuples, 60);  // every item, and none twice
    }
  }
}

// A search of width 2 by hand: prefixes 0 and 2 of the first level, then 2 1 and the better of 0 0 and 0 1.
TEST(BeamSearch, KeepsTheBestPrefixesThatExist) {
  const auto codes = three_tuples();
  const CodeTrie trie(*codes);
  const std::vector<ops::TrieLevel> levels = trie_levels(trie, *codes);
  const Context& host = host_context();
  const auto logits = [](const Shape& shape, const std::vector<float>& values) {
    return Tensor::from<float>(shape, values);
  };
  const auto ints = [](const Tensor& x) {
    return std::vector(x.data<std::int32_t>(), x.data<std::int32_t>() + x.size());
  };
  const ops::Beams none = ops::first_beams(1, host);
  // 1 is no item's code: its probability is lost.
  const ops::Beams one = ops::beam_step(levels[0], none, 0, logits({1, 3}, {0, 5, 1}), 2, host);
  EXPECT_THAT(ints(one.code), ElementsAre(2, 0));
  const ops::Beams two =
      ops::beam_step(levels[1], one, 1, logits({2, 2}, {3, 0, 0, 4}), 4, host);  // behind 2, behind 0
  EXPECT_THAT(ints(two.ancestors), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(ints(two.code), ElementsAre(4, 4, 3, -1));  // numbers of level 2 begin at 3
  EXPECT_THAT(ints(two.node), ElementsAre(1, 2, 0, -1));
  const auto log_of = [](double z, std::initializer_list<double> all) {
    double sum = 0;
    for (const double x : all) sum += std::exp(x);
    return z - std::log(sum);
  };
  const float* const score = two.score.data<float>();
  EXPECT_NEAR(score[0], log_of(0, {0, 5, 1}) + log_of(4, {0, 4}), 1e-6);
  EXPECT_NEAR(score[1], log_of(1, {0, 5, 1}) + log_of(0, {3, 0}), 1e-6);
  EXPECT_EQ(score[3], -std::numeric_limits<float>::infinity());
  const ops::Beams equal = ops::beam_step(levels[0], none, 0, logits({1, 3}, {1, 1, 1}), 1, host);
  EXPECT_THAT(ints(equal.code), ElementsAre(0));  // by tuple
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ops::Beams lost = ops::beam_step(levels[1], one, 1, logits({2, 2}, {0, nan, 0, 4}), 2, host);
  EXPECT_THAT(ints(lost.code), ElementsAre(4, 3));  // those behind 2 are no numbers
}

}  // namespace
}  // namespace hstu
