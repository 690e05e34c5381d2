// The tokens of a batch of the retrieval model; objective/retrieval_columns.h has its columns.
#pragma once

#include <utility>

#include "hstu/batching/batch_layout.h"
#include "hstu/batching/options.h"
#include "hstu/objective/retrieval_columns.h"

namespace hstu {

class RetrievalLayout final : public BatchLayout {
 public:
  // `drawn`: what training draws; `has_pool`: the targets of a batch are a pool, with what is drawn for it;
  // `actions`: tokens have kAction.
  explicit RetrievalLayout(SampleFeatures features, const CatalogueDrawOptions& drawn = {},
                           bool has_pool = false, bool actions = false)
      : features_(std::move(features)), drawn_(drawn), has_pool_(has_pool), actions_(actions) {}

  const SampleFeatures& sample_features() const { return features_; }
  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override;

 private:
  void add_tokens(const Samples& samples, Batch& batch) const;
  void add_contexts(const Samples& samples, Batch& batch) const;
  void add_drawn(const Samples& samples, Batch& batch) const;

  SampleFeatures features_;
  CatalogueDrawOptions drawn_;
  bool has_pool_, actions_;
};

}  // namespace hstu
