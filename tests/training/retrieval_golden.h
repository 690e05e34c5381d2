// A step of training of a retrieval model beside that of PyTorch: the files retrieval_step_PRESET of
// tests/golden (its README has the tensors).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/experiment/experiment.h"
#include "hstu/step/step.h"
#include "support/golden.h"
#include "support/kind_options.h"
#include "temporary_folder.h"
#include "training/small_dataset.h"
#include "training/walks.h"

namespace hstu::testing {

struct GoldenStep {
  SequencePreset preset;
  RetrievalLossKind loss;
};
// Softmax over all items; and over drawn items, which each published recipe has: NVIDIA's are of the batch.
inline std::vector<GoldenStep> golden_steps() {
  std::vector<GoldenStep> steps;
  for (const auto& [word, preset] : kSequencePresets)
    for (const RetrievalLossKind loss :
         {RetrievalLossKind::full,
          preset == SequencePreset::nvidia ? RetrievalLossKind::batch_uniform : RetrievalLossKind::uniform})
      steps.push_back({preset, loss});
  return steps;
}

class RetrievalGolden : public ::testing::TestWithParam<GoldenStep> {
 protected:
  RetrievalGolden()
      : golden_("retrieval_step_" + std::string(word_of(kSequencePresets, GetParam().preset))),
        drawn_(GetParam().loss != RetrievalLossKind::full) {}

  void expect_the_step_of_pytorch(const std::string& device) {
    write_log();
    Experiment experiment(options(device));
    Learner& learner = experiment.learner();
    begin_as_pytorch(learner);
    std::array<Batch, 2> batches;
    std::int64_t given = 0;
    const StepContext context{.step = 0, .draws = Draws(1, 0), .compute = learner.compute};
    PartsOf source([&]() -> const Batch* {
      if (given == 1) return nullptr;
      Batch& batch = batches[static_cast<std::size_t>(given++)];
      lay_out(experiment, batch);
      batch.copy_to(learner.compute);
      return &batch;
    });
    const StepResult result = begin_step(learner, source, context).finish();
    EXPECT_NEAR(result.loss, expected("loss").at(0), 1e-5 * expected("loss").at(0));
    for (const Parameter* const p : learner.model->parameters().all()) {
      expect_near(values_of(p->gradient, learner.compute.stream), "d" + p->name);
      expect_near(values_of(p->value, learner.compute.stream), "after." + p->name);
    }
    std::vector<float> rows;
    for (const testing_embedding::Row& row : testing_embedding::rows_by_id(learner.tables[0]))
      rows.insert(rows.end(), row.values.begin(), row.values.end());
    expect_near(rows, "after.items");
  }

 private:
  std::string of_loss(const std::string& name) const { return (drawn_ ? "drawn." : "full.") + name; }
  std::vector<double> expected(const std::string& name) const {
    return golden_.values<double>(of_loss(name));
  }

  // Tables of positions have rows beyond those of the golden values, which begin as 0 and stay so.
  void expect_near(const std::vector<float>& found, const std::string& name) const {
    const std::vector<double> values = expected(name);
    ASSERT_GE(found.size(), values.size()) << name;
    double largest = 0;
    for (const double v : values) largest = std::max(largest, std::abs(v));
    // An update is up to 1e-3. Gradients of fp32 have errors against the largest.
    const double tolerance = name.starts_with("d") ? 2e-5 * largest + 1e-7 : 3e-6;
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], i < values.size() ? values[i] : 0, tolerance)
          << of_loss(name) << " element " << i;
  }

  static std::vector<float> values_of(const Tensor& tensor, const Stream& stream) {
    const Tensor host = tensor.to_host(stream);
    return {host.data<float>(), host.data<float>() + host.size()};
  }

  void write_log() const {
    Manifest description;
    description.name = "golden";
    description.actions = {{"event", 1}};
    description.label = "event";
    description.pools = {"event"};
    EventTable table;
    auto item = golden_.values<std::int64_t>("item");
    for (std::int64_t& i : item) i = walk_item(i);
    table.user.append(golden_.values<std::int64_t>("user"));
    table.item.append(item);
    table.time.append(golden_.values<std::int64_t>("time"));
    table.action.assign(item.size(), 1 | kRankableBit);
    std::filesystem::create_directories(folder_ / "log");
    write_dataset(folder_ / "log", description, table);
  }

  RunOptions options(const std::string& device) const {
    RunOptions options = small_run(folder_ / "log");
    options.device = device;
    options.features.context.clear();
    options.data.options.window_seconds = options.data.options.anchor_stride = 0;
    options.data.options.min_history = 1;
    options.data.options.history_length = golden_.values<std::int64_t>("history_length").at(0);
    options.evaluation = {};
    RetrievalConfig& model = retrieval_of(options);
    model.preset = GetParam().preset;
    model.embedding_dim = 8;
    model.layers = model.heads = 2;
    model.positions = 12;
    model.dropout = 0;
    model.loss = {.kind = GetParam().loss, .temperature = 0.05, .negatives = 4};
    const double rate = golden_.scalar("lr"), epsilon = golden_.scalar("eps"),
                 decay = golden_.scalar("weight_decay");
    options.dense = {
        .learning_rate = rate,
        .max_gradient_norm = 0,
        .config = {
            .kind = DenseOptimizerKind::adamw, .beta2 = 0.98, .epsilon = epsilon, .weight_decay = decay}};
    options.sparse = {.kind = RowOptimizerKind::adamw,
                      .learning_rate = rate,
                      .epsilon = epsilon,
                      .beta2 = 0.98,
                      .weight_decay = decay};
    options.tables.by_name["item"].updates = UpdatedRows::all;
    return options;
  }

  void begin_as_pytorch(Learner& learner) const {
    for (Parameter* const p : learner.model->parameters().all()) {
      const std::vector<double> values = golden_.values<double>(p->name);
      Tensor begin = Tensor::zeros(p->value.shape(), DType::f32);
      std::copy(values.begin(), values.end(), begin.mutable_data<float>());
      p->value.copy_from(begin, learner.compute.stream);
      learner.compute.stream.synchronize();  // `begin` ends here
    }
    const std::vector<double> rows = golden_.values<double>("items");
    EmbeddingTable& table = learner.tables[0];
    const auto items = static_cast<std::int64_t>(rows.size()) / table.width();
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < items; ++i) ids.push_back(walk_item(i));
    const std::vector<float> values(rows.begin(), rows.end()),
        state(static_cast<std::size_t>(items * table.state_width()), 0.0f);
    table.restore(ids, values.data(), state.data());
  }

  // All users in one batch, with the negatives of the golden values.
  void lay_out(const Experiment& experiment, Batch& batch) const {
    std::vector<std::int64_t> anchors;
    const auto users = golden_.values<std::int64_t>("user");
    for (std::size_t i = 0; i < users.size(); ++i)
      if (i + 1 == users.size() || users[i + 1] != users[i]) anchors.push_back(static_cast<std::int64_t>(i));
    Samples samples = experiment.samples().build(anchors);
    const auto negatives = golden_.values<std::int64_t>("negatives");
    if (drawn_) {
      ASSERT_EQ(samples.drawn_item.size(), negatives.size());
      ASSERT_EQ(samples.items.size(), 12u) << "the batch has every item, so that any may be drawn";
      std::copy(negatives.begin(), negatives.end(), samples.drawn_item.begin());
    }
    LayoutScratch scratch;
    experiment.learner().model->layout().lay_out(samples, scratch, batch);
    batch.supervised = batch.tokens;
    ASSERT_EQ(static_cast<std::size_t>(batch.tokens), negatives.size() / 4);
  }

  Golden golden_;
  bool drawn_;
  Path folder_ = temporary_folder();
};

inline std::string name_of_golden(const ::testing::TestParamInfo<GoldenStep>& step) {
  return std::string(word_of(kSequencePresets, step.param.preset)) + "_" +
         std::string(word_of(kRetrievalLosses, step.param.loss));
}

}  // namespace hstu::testing
