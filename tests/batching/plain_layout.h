// A layout without a model: the content of the samples, column by column.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "hstu/batching/batch_layout.h"

namespace hstu::small {

class PlainLayout final : public BatchLayout {
 public:
  explicit PlainLayout(SampleFeatures features) : features_(std::move(features)) {}

  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override {
    add_sample_columns(samples, batch);
    add_feature_columns(samples, features_, scratch, batch);
    copy<std::int64_t>(batch, "history.offsets", samples.history_offsets);
    copy<std::int32_t>(batch, "history.item", samples.history_item);
    copy<std::uint8_t>(batch, "history.action", samples.history_action);
    copy<std::int64_t>(batch, "history.time", samples.history_time);
    copy<std::int32_t>(batch, "candidate.item", samples.candidate_item);
    copy<std::int64_t>(batch, "candidate.time", samples.candidate_time);
    batch.tokens = static_cast<std::int64_t>(samples.history_item.size()) + samples.count;
  }

 private:
  template <typename T>
  static void copy(Batch& batch, const char* name, const std::vector<T>& values) {
    const auto column = batch.add<T>(name, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), column.begin());
  }
  SampleFeatures features_;
};

// The values of every column, as bytes by name.
inline std::vector<std::pair<std::string, std::string>> contents(const Batch& batch) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Batch::Column& column : batch.columns()) {
    const auto* const begin = reinterpret_cast<const char*>(batch.slab().data() + column.offset);
    all.emplace_back(column.name, std::string(begin, column.elements() * size_of(column.type)));
  }
  return all;
}

}  // namespace hstu::small
