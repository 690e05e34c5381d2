#include "hstu/batching/batch_layout.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {
namespace {

template <typename T>
void add_copy(Batch& batch, std::string_view name, std::span<const T> values) {
  const auto column = batch.add<T>(name, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), column.begin());
}

bool is_bad(std::int64_t id, std::int64_t rows) {
  return static_cast<std::uint64_t>(id) >= static_cast<std::uint64_t>(rows);  // a negative id is a huge one
}

bool any_bad(std::span<const std::int64_t> ids, std::int64_t rows) {
  return std::any_of(ids.begin(), ids.end(), [&](std::int64_t id) { return is_bad(id, rows); });
}

// Counts the bad ids among the calls body(sample, id) of `walk`, one per occurrence in the order of samples.
template <typename Walk>
void count_bad(const FeatureSpec& feature, const Samples& samples, Batch& batch, const Walk& walk) {
  BadIdCount bad{.feature = feature.name};
  walk([&](std::size_t sample, std::int64_t id) {
    if (!is_bad(id, feature.rows)) return;
    if (bad.occurrences++ > 0) return;
    bad.first_id = id;
    bad.first_user = samples.user[sample];
    bad.first_position = samples.position[sample];
  });
  batch.bad_ids.push_back(std::move(bad));
}

// For a feature whose id depends only on the item: ids (I). Every token of the item is an occurrence.
void count_bad_of_items(const FeatureSpec& feature, std::span<const std::int64_t> ids, const Samples& samples,
                        Batch& batch) {
  if (!any_bad(ids, feature.rows)) return;
  count_bad(feature, samples, batch, [&](const auto& see) {
    for (std::size_t b = 0; b < static_cast<std::size_t>(samples.count); ++b) {
      for (std::int64_t t = samples.history_offsets[b]; t < samples.history_offsets[b + 1]; ++t)
        see(b, ids[static_cast<std::size_t>(samples.history_item[static_cast<std::size_t>(t)])]);
      for (std::int64_t c = samples.candidate_begin(b); c < samples.candidate_begin(b + 1); ++c)
        see(b, ids[static_cast<std::size_t>(samples.candidate_item[static_cast<std::size_t>(c)])]);
    }
  });
}

void add_distinct(const FeatureSpec& feature, std::span<const std::int64_t> ids, LayoutScratch& scratch,
                  Batch& batch) {
  const auto index =
      batch.add<std::int32_t>(index_column(feature.name), {static_cast<std::int64_t>(ids.size())});
  scratch.distinct.clear();
  scratch.distinct.insert(ids, index.data());
  add_copy(batch, ids_column(feature.name), scratch.distinct.in_order_of_appearance());
}

// The ids of all items of the catalogue, the index of the batch's, and the number of each item's id.
void add_of_catalogue(const FeatureSpec& feature, std::span<const std::int64_t> ids,
                      const CatalogueAttribute& catalogue, Batch& batch) {
  add_copy<std::int64_t>(batch, ids_column(feature.name), catalogue.distinct);
  const auto index =
      batch.add<std::int32_t>(index_column(feature.name), {static_cast<std::int64_t>(ids.size())});
  std::transform(ids.begin(), ids.end(), index.begin(),
                 [&](std::int64_t id) { return catalogue.number_of(id); });
  add_copy<std::int32_t>(batch, catalogue_index_column(feature.name), catalogue.number);
}

}  // namespace

std::vector<FeatureSpec> SampleFeatures::all() const {
  std::vector<FeatureSpec> all{item};
  all.insert(all.end(), attributes.begin(), attributes.end());
  all.insert(all.end(), context.begin(), context.end());
  return all;
}

void add_sample_columns(const Samples& samples, Batch& batch) {
  batch.samples = samples.count;
  batch.anchors = 0;
  for (std::size_t b = 0; b < samples.position.size(); ++b)
    batch.anchors += b == 0 || samples.position[b] != samples.position[b - 1] ? 1 : 0;
  add_copy<std::int64_t>(batch, kUserColumn, samples.user);
  add_copy<std::int64_t>(batch, kPositionColumn, samples.position);
  add_copy<float>(batch, kLabelColumn, samples.label);
  const auto real = batch.add<float>(kRealColumn, {samples.count});
  std::fill(real.begin(), real.end(), 1.0f);
}

void add_feature_columns(const Samples& samples, const SampleFeatures& features, LayoutScratch& scratch,
                         Batch& batch) {
  require(features.attributes.size() == samples.attributes.size() &&
              features.context.size() == samples.context.size(),
          "expected {} attributes and {} contextual features, found {} and {}", features.attributes.size(),
          features.context.size(), samples.attributes.size(), samples.context.size());
  add_copy<std::int64_t>(batch, ids_column(features.item.name), samples.items);
  count_bad_of_items(features.item, samples.items, samples, batch);
  for (std::size_t a = 0; a < features.attributes.size(); ++a) {
    if (samples.catalogue_attributes != nullptr)
      add_of_catalogue(features.attributes[a], samples.attributes[a], (*samples.catalogue_attributes)[a],
                       batch);
    else
      add_distinct(features.attributes[a], samples.attributes[a], scratch, batch);
    count_bad_of_items(features.attributes[a], samples.attributes[a], samples, batch);
  }
  for (std::size_t c = 0; c < features.context.size(); ++c) {
    const std::vector<std::int64_t>& ids = samples.context[c];
    add_distinct(features.context[c], ids, scratch, batch);
    if (!any_bad(ids, features.context[c].rows)) continue;
    count_bad(features.context[c], samples, batch, [&](const auto& see) {
      for (std::size_t b = 0; b < ids.size(); ++b) see(b, ids[b]);
    });
  }
}

void add_event_ids(const FeatureSpec& feature, std::span<const std::int64_t> ids, const Samples& samples,
                   LayoutScratch& scratch, Batch& batch) {
  scratch.index.resize(ids.size());
  scratch.distinct.clear();
  scratch.distinct.insert(ids, scratch.index.data());
  add_copy(batch, ids_column(feature.name), scratch.distinct.in_order_of_appearance());
  if (!any_bad(ids, feature.rows)) return;
  count_bad(feature, samples, batch, [&](const auto& see) {
    std::size_t event = 0;
    for (std::size_t b = 0; b < static_cast<std::size_t>(samples.count); ++b) {
      const auto events = static_cast<std::size_t>(samples.events_of(b));
      for (std::size_t e = 0; e < events; ++e) see(b, ids[event++]);
    }
  });
}

}  // namespace hstu
