// The dataset from which requests take their histories.
#pragma once

#include <optional>

#include "hstu/base/files.h"
#include "hstu/dataset/dataset.h"
#include "hstu/predict/columns.h"
#include "hstu/predict/model_folder.h"

namespace hstu {

class Histories {
 public:
  // The dataset `data`; the model's own if it is ""; or one made of the table `events`, which is in the
  // folder `scratch` as long as this object. Throws UsageError if the model cannot read it.
  Histories(const ModelFolder& model, const Path& data, const Path& events, const ColumnNames& columns,
            const Path& scratch);

  const Dataset& dataset() const { return *dataset_; }
  bool count_from_1970() const { return since_1970_; }

 private:
  std::optional<StagedFolder> written_;  // never committed
  std::optional<Dataset> dataset_;
  bool since_1970_ = true;  // TimeColumn::since_1970
};

// For each context column of the dataset, whether a request must have it: contextual features read it.
std::vector<bool> context_of_requests(const RunOptions& options, const Manifest& manifest);

}  // namespace hstu
