// Writes the vectors of a retrieval model for indices that search approximately. docs/predict.md
#pragma once

#include "hstu/predict/export.h"

namespace hstu {

// Writes the folder options.output, which appears when it is complete: items.f32.npy (V, D) and ids.i64.npy
// (V), ascending, of all items of the model's table, as they are compared; users.f32.npy (U, D) and
// user_ids.i64.npy (U) of the users of the dataset after their last event; the same as items.parquet and
// users.parquet (id, vector); and manifest.json. A score is the product of two vectors. Returns the manifest.
// Throws UsageError for a model of another kind than retrieval and if the folder exists.
Json export_vectors(const ExportOptions& options);

}  // namespace hstu
