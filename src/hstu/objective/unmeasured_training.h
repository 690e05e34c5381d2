// What training keeps of an objective whose steps have a loss and no other metric.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hstu/objective/running_metrics.h"
#include "hstu/objective/tally.h"

namespace hstu {

// Counts examples alone: the elements of a column of i64.
class CountTally final : public Tally {
 public:
  explicit CountTally(std::string_view column) : column_(column) {}

  void add(const Batch& batch, const Tensor& /*outputs*/, const Stream& /*compute*/) override {
    part_ += std::ssize(batch.values<std::int64_t>(column_));
  }
  std::string collect(const Stream& /*stream*/) override {
    collected_ += std::exchange(part_, 0);
    return "";
  }
  void share(Communicator& comm) override { examples_ += comm.sum(std::exchange(collected_, 0)); }
  std::int64_t examples() const override { return examples_ + collected_; }

 private:
  std::string column_;
  std::int64_t part_ = 0, collected_ = 0, examples_ = 0;
};

class NoRunningMetrics final : public RunningMetrics {
 public:
  void add_step(const Tally& /*predictions*/) override {}
  void add_evaluation(const Tally& /*evaluation*/) override {}
  Measures training() const override { return {}; }
  Measures evaluations() const override { return {}; }
  Section section() override {
    return {.name = "metrics",
            .save = [](SectionWriter& writer) { writer.describe(Json::object()); },
            .load = [](const SectionReader&) {}};
  }
};

}  // namespace hstu
