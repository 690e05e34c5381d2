// The dataset from which requests take their histories.
#pragma once

#include <cstdint>
#include <optional>

#include "hstu/base/files.h"
#include "hstu/dataset/dataset.h"
#include "hstu/predict/columns.h"
#include "hstu/score/model_folder.h"

namespace hstu {

class Histories {
 public:
  // The dataset `data`; the model's own if it is ""; or one made of the table `events`, which is in the
  // folder `scratch` as long as this object. Throws UsageError if the model cannot read it.
  Histories(const ModelFolder& model, const Path& data, const Path& events, const ColumnNames& columns,
            const Path& scratch);

  const Dataset& dataset() const { return *dataset_; }
  bool count_from_1970() const { return since_1970_; }
  // Of the table: texts of context columns that the dataset does not have.
  std::int64_t unknown_texts() const { return unknown_texts_; }
  // Of the table: events whose items the model (Scorer, Retriever) has no row for.
  template <typename Model>
  std::int64_t untrained_events(const Model& model) const {
    std::int64_t count = 0;
    for (std::int64_t p = 0; written_ && p < dataset_->events(); ++p)
      count += model.is_trained(dataset_->item()[p]) ? 0 : 1;
    return count;
  }

 private:
  std::optional<StagedFolder> written_;  // never committed
  std::optional<Dataset> dataset_;
  bool since_1970_ = true;  // TimeColumn::since_1970
  std::int64_t unknown_texts_ = 0;
};

}  // namespace hstu
