// What kinds of models make of a configuration's features in the same way.
#pragma once

#include "hstu/batching/batch_layout.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {

// The features of samples, with the rows of each table as the configuration gives them, or as many as the
// dataset's ids ask for.
SampleFeatures sample_features(const TaskRequest& request, const DatasetFacts& facts);

// The rules for samples, with the attributes and contextual features of the configuration.
DataOptions data_options(const TaskRequest& request);

}  // namespace hstu
