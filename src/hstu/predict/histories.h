// The dataset from which requests take their histories.
#pragma once

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

 private:
  std::optional<StagedFolder> written_;  // never committed
  std::optional<Dataset> dataset_;
  bool since_1970_ = true;  // TimeColumn::since_1970
};

}  // namespace hstu
