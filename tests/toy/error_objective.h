// An objective that ranks nothing: the mean absolute error of a probability, which is better when smaller. No
// metric of hstu has its names.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/npy.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/loss/binary_cross_entropy.h"
#include "hstu/objective/objective.h"

namespace hstu::toy {

inline constexpr MetricSpec kErrorMetrics[] = {
    {.name = "mae", .title = "MAE", .better = Better::smaller, .in_tables = true, .in_summary = true},
    {.name = "bias", .title = "bias", .better = Better::neither},
    {.name = "count", .title = "examples", .better = Better::neither}};

struct Errors {
  double absolute = 0, sum = 0;
  std::int64_t count = 0;

  Errors& operator+=(const Errors& other) {
    absolute += other.absolute;
    sum += other.sum;
    count += other.count;
    return *this;
  }
  void add_to(Measures& measures, const std::string& prefix = "") const {
    const auto mean = [&](double x) {
      return count == 0 ? std::nullopt : std::optional(x / static_cast<double>(count));
    };
    measures.add(prefix + "mae", mean(absolute));
    measures.add(prefix + "bias", mean(sum));
    measures.add_count(prefix + "count", count);
  }
};

class ErrorTally final : public Tally {
 public:
  void add(const Batch& batch, const Tensor& outputs, const Stream& compute) override {
    const auto labels = batch.values<float>(kLabelColumn);
    const Tensor logits = outputs.to_host(compute);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double p = 1 / (1 + std::exp(-static_cast<double>(logits.data<float>()[i]))), y = labels[i];
      part_ += {std::abs(p - y), p - y, 1};
    }
  }
  std::string collect(const Stream& /*stream*/) override {
    const Errors part = std::exchange(part_, {});
    if (!std::isfinite(part.absolute)) return "a score is not finite";
    collected_ += part;
    return "";
  }
  void share(Communicator& comm) override {
    errors_ += {comm.sum(collected_.absolute), comm.sum(collected_.sum), comm.sum(collected_.count)};
    collected_ = {};
  }
  std::int64_t examples() const override { return errors_.count + collected_.count; }
  const Errors& errors() const { return errors_; }

 private:
  Errors part_, collected_, errors_;
};

inline const Errors& errors_of(const Tally& tally) {
  return dynamic_cast<const ErrorTally&>(tally).errors();
}

class ErrorRunningMetrics final : public RunningMetrics {
 public:
  void add_step(const Tally& predictions) override { training_ += errors_of(predictions); }
  void add_evaluation(const Tally& evaluation) override { evaluations_ += errors_of(evaluation); }
  Measures training() const override { return measures_of(training_); }
  Measures evaluations() const override { return measures_of(evaluations_); }
  Section section() override {
    return {.name = "metrics",
            .save =
                [this](SectionWriter& writer) {
                  writer.describe({training_.absolute, training_.sum, training_.count, evaluations_.absolute,
                                   evaluations_.sum, evaluations_.count});
                },
            .load =
                [this](const SectionReader& reader) {
                  const auto sums = reader.description();
                  training_ = {sums.at(0), sums.at(1), sums.at(2)};
                  evaluations_ = {sums.at(3), sums.at(4), sums.at(5)};
                }};
  }

 private:
  static Measures measures_of(const Errors& errors) {
    Measures measures;
    errors.add_to(measures, "lifetime_");
    return measures;
  }

  Errors training_, evaluations_;
};

class ErrorObjective final : public Objective {
 public:
  Variable loss(const Pass& pass, const Variable& outputs) const override {
    const Batch& batch = pass.batch;
    return loss::binary_cross_entropy(pass.tape, outputs, batch.tensor(kLabelColumn),
                                      batch.tensor(kRealColumn), 1 / static_cast<double>(batch.supervised));
  }
  std::unique_ptr<Tally> step_tally() const override { return std::make_unique<ErrorTally>(); }
  std::unique_ptr<Tally> evaluation_tally(const EvaluationSource& /*source*/) const override {
    return std::make_unique<ErrorTally>();
  }
  std::unique_ptr<RunningMetrics> running_metrics(std::int64_t /*window_samples*/) const override {
    return std::make_unique<ErrorRunningMetrics>();
  }
  void measure(const Tally& evaluation, const ListQuestion& /*question*/,
               EvaluationResult& result) const override {
    errors_of(evaluation).add_to(result.model);
  }
  void write_predictions(const Tally& evaluation, const Path& folder) const override {
    write_npy(folder / "mae.npy", std::vector<double>{errors_of(evaluation).absolute});
  }
};

}  // namespace hstu::toy
