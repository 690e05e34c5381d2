// The embedding tables of a model's features: a batch in, looked-up rows out, gradients back into the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/embedding/bad_ids.h"
#include "hstu/embedding/table_set.h"
#include "hstu/model/ranker.h"

namespace hstu {

// A feature's name and the rows V of its table: ids are 0 .. V - 1.
struct FeatureTable {
  std::string name;
  std::int64_t rows = 0;
};

struct FeatureTables {
  FeatureTable item;
  std::vector<FeatureTable> attributes;  // in the order of Batch::attributes
  std::vector<FeatureTable> context;     // in the order of Batch::context
};

class Embeddings {
 public:
  Embeddings(const FeatureTables& features, std::int64_t dim, RowOptimizer optimizer, std::uint64_t seed,
             OnBadId on_bad_id);

  // The rows of one batch. Each table is asked once for each distinct id, so the gradient of `rows` is summed
  // over all occurrences before the table sees it.
  struct Lookup {
    LookedUpRows rows;
    struct Touched {
      std::size_t table;
      std::vector<std::int64_t> ids;  // (n) each once
      Variable rows;                  // (n, E)
    };
    std::vector<Touched> touched;  // one a table
  };

  // Rows that training touches come to life; evaluation creates nothing and sees the same values.
  Lookup lookup_for_training(const Batch& batch);
  Lookup lookup_for_evaluation(const Batch& batch);

  // Moves every touched row by the gradient that arrived for it.
  void apply_gradients(const Lookup& lookup, double learning_rate);

  TableSet& tables() { return tables_; }
  const TableSet& tables() const { return tables_; }
  BadIds& bad_ids() { return bad_ids_; }
  const BadIds& bad_ids() const { return bad_ids_; }

 private:
  // fetch(table, ids, out) reads rows.
  template <typename Fetch>
  Lookup lookup(const Batch& batch, const Fetch& fetch);
  void inspect(const Batch& batch);

  std::int64_t dim_;
  std::size_t attributes_;
  TableSet tables_;  // item, attributes, contextual features
  BadIds bad_ids_;   // features numbered like the tables
};

}  // namespace hstu
