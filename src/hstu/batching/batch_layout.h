// BatchLayout: the layout of samples in a batch for a model. Runs on the loader's threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/distinct_ids.h"
#include "hstu/batching/samples.h"

namespace hstu {

// Scratch memory of one thread, reused from batch to batch.
struct LayoutScratch {
  DistinctIds distinct;
  std::vector<std::int32_t> index;
  std::vector<std::int64_t> ids;
};

class BatchLayout {
 public:
  virtual ~BatchLayout() = default;
  // Fills a cleared batch: the columns of every batch, those of each feature, and the model's own. A pure
  // function of the samples, whose draws are the only random numbers; called from several threads at once.
  virtual void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const = 0;
};

// A feature and the rows V of its table: valid ids are 0 .. V - 1.
struct FeatureSpec {
  std::string name;
  std::int64_t rows = 0;
};

// The features of samples in the order of lookup.
struct SampleFeatures {
  SampleFeatures() = default;
  explicit SampleFeatures(FeatureSpec of_item, std::vector<FeatureSpec> of_attributes = {},
                          std::vector<FeatureSpec> of_context = {})
      : item(std::move(of_item)), attributes(std::move(of_attributes)), context(std::move(of_context)) {}

  FeatureSpec item;
  std::vector<FeatureSpec> attributes;  // in the order of Samples::attributes
  std::vector<FeatureSpec> context;     // in the order of Samples::context

  std::vector<FeatureSpec> all() const;  // item, attributes, context
};

// Adds sample.user, sample.position, sample.label and sample.real, (B) each.
void add_sample_columns(const Samples& samples, Batch& batch);

// With Samples::catalogue_attributes: (V) i32, for each item of the catalogue the number of its attribute's
// id among those of the feature, which are then ascending and those of all items of the catalogue.
inline std::string catalogue_index_column(const std::string& feature) {
  return "catalogue." + feature + ".index";
}

// Adds ids and index of each attribute (index (I), by distinct item) and of each contextual feature (index
// (B)), and the ids of the item (I); the layout adds the item's index, because it defines the tokens.
// Distinct ids are in the order of first appearance, items ascending. Counts bad ids by occurrence: an
// attribute's in each token that has the item.
void add_feature_columns(const Samples& samples, const SampleFeatures& features, LayoutScratch& scratch,
                         Batch& batch);

// For a feature with an id at every event, ids (N) in the order of Samples::event_action: adds its distinct
// ids, writes the row of each event's id to scratch.index (N), and counts bad ids.
void add_event_ids(const FeatureSpec& feature, std::span<const std::int64_t> ids, const Samples& samples,
                   LayoutScratch& scratch, Batch& batch);

}  // namespace hstu
