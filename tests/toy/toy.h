// A kind of model for the smallest example of one: a sample is the mean of the rows of its last events' items
// and of its contextual features, times the row of the candidate; a linear head makes a logit of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hstu/loss/binary_cross_entropy.h"
#include "hstu/model/mlp.h"
#include "hstu/objective/ranking_objective.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/task/features.h"
#include "hstu/task/kind.h"
#include "toy/error_objective.h"

namespace hstu::toy {

// The keys of [model].
struct Options final : KindOptions {
  std::int64_t dim = 8;     // E, of rows
  std::int64_t events = 4;  // that the mean is over, at most

  std::unique_ptr<KindOptions> clone() const override { return std::make_unique<Options>(*this); }
  void describe(ConfigFields& fields) override {
    fields.field("dim", dim, "width of rows", rule::between(1, 1024));
    fields.field("events", events, "the mean is over so many of the last events", rule::between(1, 64));
  }
};

inline std::string event_column(std::int64_t n) {  // (B) i32: the item of the n-th last event, -1 for none
  return "toy.event" + std::to_string(n);
}
constexpr const char* kCandidate = "toy.candidate";  // (B) i32

class Layout final : public BatchLayout {
 public:
  Layout(std::int64_t events, SampleFeatures features) : events_(events), features_(std::move(features)) {}

  const SampleFeatures& features() const { return features_; }
  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override {
    const std::int64_t n = samples.count;
    batch.tokens = samples.history_offsets.back() + n;
    add_sample_columns(samples, batch);
    add_feature_columns(samples, features_, scratch, batch);
    // The tokens of a sample are its history and its candidate. A column is filled before the next is added,
    // which may move it.
    const auto first_token = [&](std::size_t b) {
      return samples.history_offsets[b] + static_cast<std::int64_t>(b);
    };
    const auto offsets = batch.add<std::int64_t>(kTokenOffsetsColumn, {n + 1});
    for (std::size_t b = 0; b < offsets.size(); ++b) {
      offsets[b] = first_token(b);
      if (b > 0) batch.longest = std::max(batch.longest, offsets[b] - offsets[b - 1]);
    }
    const auto item = batch.add<std::int32_t>(index_column(features_.item.name), {batch.tokens});
    for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b) {
      const auto begin = samples.history_item.begin() + samples.history_offsets[b],
                 end = samples.history_item.begin() + samples.history_offsets[b + 1];
      *std::copy(begin, end, item.begin() + first_token(b)) = samples.candidate_item[b];
    }
    const auto candidate = batch.add<std::int32_t>(kCandidate, {n});
    std::copy(samples.candidate_item.begin(), samples.candidate_item.end(), candidate.begin());
    for (std::int64_t e = 0; e < events_; ++e) {
      const auto column = batch.add<std::int32_t>(event_column(e), {n});
      for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b) {
        const std::int64_t event = samples.history_offsets[b + 1] - 1 - e;
        column[b] =
            event < samples.history_offsets[b] ? -1 : samples.history_item[static_cast<std::size_t>(event)];
      }
    }
  }

 private:
  std::int64_t events_;
  SampleFeatures features_;
};

class Toy final : public Model {
 public:
  Toy(const Options& options, SampleFeatures features, std::uint64_t seed)
      : options_(options),
        layout_(options.events, std::move(features)),
        parameters_(derive_key(seed, "toy parameters"), DType::f32),
        head_(add_linear(parameters_, "head", options.dim, 1, Initializer::ones())) {}

  const ParameterSet& parameters() const override { return parameters_; }
  ParameterSet& parameters() override { return parameters_; }
  void move_to(const Context& context, DType /*compute*/) override { parameters_.move_to(context); }
  std::vector<FeatureSpec> features() const override { return layout_.features().all(); }
  std::int64_t embedding_dim() const override { return options_.dim; }
  const BatchLayout& layout() const override { return layout_; }

  Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                   const Draws& /*draws*/) const override {
    const std::vector<FeatureSpec>& context = layout_.features().context;
    const double factor = 1 / static_cast<double>(options_.events + std::ssize(context));
    std::vector<ops::GatherTerm> terms;
    for (std::int64_t e = 0; e < options_.events; ++e)
      terms.push_back({rows[0], batch.tensor(event_column(e)), factor});
    for (std::size_t c = 0; c < context.size(); ++c)
      terms.push_back({rows[1 + c], batch.tensor(index_column(context[c].name)), factor});
    const Variable user = ops::gather_sum(tape, terms, {});
    const Variable candidate = ops::gather_rows(tape, rows[0], batch.tensor(kCandidate));
    return ops::linear(tape, ops::multiply(tape, user, candidate), Variable(head_.weight),
                       Variable(head_.bias));
  }

 private:
  Options options_;
  Layout layout_;
  ParameterSet parameters_;
  LinearParameters head_;
};

// Whether the candidate's event has the dataset's label.
class ToyObjective final : public RankingObjective {
 public:
  std::vector<std::string> tasks() const override { return {"label"}; }
  Examples examples(const Batch& batch) const override {
    const auto user = batch.values<std::int64_t>(kUserColumn),
               position = batch.values<std::int64_t>(kPositionColumn);
    Examples rows{{user.begin(), user.end()}, {position.begin(), position.end()}, {}};
    for (const float label : batch.values<float>(kLabelColumn)) rows.label.push_back(label > 0.5f ? 1 : 0);
    return rows;
  }
  double probability(std::span<const float> logits, std::size_t /*task*/) const override {
    return 1 / (1 + std::exp(-static_cast<double>(logits[0])));
  }
  Variable loss(const Pass& pass, const Variable& logits) const override {
    const Batch& batch = pass.batch;
    return loss::binary_cross_entropy(pass.tape, logits, batch.tensor(kLabelColumn),
                                      batch.tensor(kRealColumn), 1 / static_cast<double>(batch.supervised));
  }
};

inline void check(const TaskRequest& request) {
  if (!request.features.attributes.empty()) fail_usage("features.attributes: the model toy has none");
}

// How often a task was made.
inline int made = 0;

inline Task make(const TaskRequest& request, const DatasetFacts& facts) {
  ++made;
  const auto& options = options_as<Options>(request.model);
  const DataOptions data = data_options(request);
  return {std::make_unique<Toy>(options, sample_features(request, facts), request.seed),
          std::make_unique<ToyObjective>(), data, data};
}

inline Task make_with_error(const TaskRequest& request, const DatasetFacts& facts) {
  Task task = make(request, facts);
  task.objective = std::make_unique<ErrorObjective>();
  task.has_baseline = false;
  task.no_requests = "the kind scores no single candidates";
  return task;
}

}  // namespace hstu::toy
