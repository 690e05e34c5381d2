// The tokens of a batch of the retrieval model; objective/retrieval_columns.h has its columns.
#pragma once

#include <utility>

#include "hstu/batching/batch_layout.h"
#include "hstu/objective/retrieval_columns.h"

namespace hstu {

class RetrievalLayout final : public BatchLayout {
 public:
  explicit RetrievalLayout(SampleFeatures features) : features_(std::move(features)) {}

  const SampleFeatures& sample_features() const { return features_; }
  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override;

 private:
  void add_tokens(const Samples& samples, Batch& batch) const;

  SampleFeatures features_;
};

}  // namespace hstu
