// The tokens of a batch of the retrieval model; objective/retrieval_columns.h has its columns.
#pragma once

#include <cstdint>
#include <utility>

#include "hstu/batching/batch_layout.h"
#include "hstu/objective/retrieval_columns.h"

namespace hstu {

class RetrievalLayout final : public BatchLayout {
 public:
  // `drawn`: items that training draws for each target (DataOptions::drawn_items).
  explicit RetrievalLayout(SampleFeatures features, std::int64_t drawn = 0)
      : features_(std::move(features)), drawn_(drawn) {}

  const SampleFeatures& sample_features() const { return features_; }
  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override;

 private:
  void add_tokens(const Samples& samples, Batch& batch) const;

  void add_drawn(const Samples& samples, Batch& batch) const;

  SampleFeatures features_;
  std::int64_t drawn_;
};

}  // namespace hstu
