#include "hstu/model/embeddings.h"

#include <algorithm>

#include "hstu/embedding/unique.h"

namespace hstu {
namespace {

std::vector<TableConfig> table_configs(const FeatureTables& features, std::int64_t dim) {
  std::vector<TableConfig> configs{{features.item.name, features.item.rows, dim}};
  for (const FeatureTable& f : features.attributes) configs.push_back({f.name, f.rows, dim});
  for (const FeatureTable& f : features.context) configs.push_back({f.name, f.rows, dim});
  return configs;
}

std::string describe_sample(const Batch& batch, std::int64_t sample) {
  const auto b = static_cast<std::size_t>(sample);
  return fmt::format("the sample of user {} at event {}", batch.user[b], batch.position[b]);
}

// The first sample whose history or candidate has the distinct item `item`.
std::int64_t sample_with_item(const Batch& batch, std::int64_t item) {
  for (std::int64_t b = 0; b < batch.samples; ++b) {
    const auto sample = static_cast<std::size_t>(b);
    if (batch.candidate_item[sample] == item) return b;
    const auto begin = batch.history_item.begin() + batch.history_offsets[sample];
    const auto end = batch.history_item.begin() + batch.history_offsets[sample + 1];
    if (std::find(begin, end, item) != end) return b;
  }
  return 0;
}

}  // namespace

Embeddings::Embeddings(const FeatureTables& features, std::int64_t dim, RowOptimizer optimizer,
                       std::uint64_t seed, OnBadId on_bad_id)
    : dim_(dim),
      attributes_(features.attributes.size()),
      tables_(table_configs(features, dim), optimizer, seed),
      bad_ids_(on_bad_id) {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const TableConfig& config = tables_[t].config();
    bad_ids_.add_feature(config.name, config.name, config.rows);
  }
}

void Embeddings::inspect(const Batch& batch) {
  const auto of_item = [&](std::int64_t i) { return describe_sample(batch, sample_with_item(batch, i)); };
  bad_ids_.inspect(0, batch.items, of_item);
  for (std::size_t a = 0; a < attributes_; ++a) bad_ids_.inspect(1 + a, batch.attributes[a], of_item);
  for (std::size_t c = 0; c < batch.context.size(); ++c) {
    bad_ids_.inspect(1 + attributes_ + c, batch.context[c],
                     [&](std::int64_t b) { return describe_sample(batch, b); });
  }
}

template <typename Fetch>
Embeddings::Lookup Embeddings::lookup(const Batch& batch, const Fetch& fetch) {
  inspect(batch);
  Lookup lookup;
  const auto read = [&](std::size_t table, std::vector<std::int64_t> ids) {
    Tensor rows = Tensor::empty({static_cast<std::int64_t>(ids.size()), dim_}, DType::f32);
    fetch(tables_[table], ids, rows.mutable_data<float>());
    lookup.touched.push_back({table, std::move(ids), Variable(rows)});
    return lookup.touched.back().rows;
  };
  const auto read_distinct = [&](std::size_t table, std::span<const std::int64_t> ids) {
    UniqueIds distinct = unique(ids);
    const Variable rows = read(table, std::move(distinct.ids));
    return FeatureRows{rows, ops::row_index(std::move(distinct.index))};
  };
  lookup.rows.items = read(0, {batch.items.begin(), batch.items.end()});
  for (std::size_t a = 0; a < attributes_; ++a) {
    lookup.rows.attributes.push_back(read_distinct(1 + a, batch.attributes[a]));
  }
  for (std::size_t c = 0; c < batch.context.size(); ++c) {
    lookup.rows.context.push_back(read_distinct(1 + attributes_ + c, batch.context[c]));
  }
  return lookup;
}

Embeddings::Lookup Embeddings::lookup_for_training(const Batch& batch) {
  return lookup(batch, [](EmbeddingTable& table, std::span<const std::int64_t> ids, float* out) {
    table.lookup_for_training(ids, out);
  });
}

Embeddings::Lookup Embeddings::lookup_for_evaluation(const Batch& batch) {
  return lookup(batch, [](const EmbeddingTable& table, std::span<const std::int64_t> ids, float* out) {
    table.lookup(ids, out);
  });
}

void Embeddings::apply_gradients(const Lookup& lookup, double learning_rate) {
  for (const Lookup::Touched& touched : lookup.touched) {
    if (!touched.rows.has_gradient()) continue;
    tables_[touched.table].apply_gradients(touched.ids, touched.rows.gradient().data<float>(), learning_rate);
  }
}

}  // namespace hstu
