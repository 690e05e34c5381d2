// What a task must know of its dataset: no values of events.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/dataset/dataset.h"
#include "hstu/task/task_request.h"

namespace hstu {

struct DatasetFacts {
  std::string source;  // that the manifest describes, in messages
  Manifest
      manifest;  // actions, label, pools, names of columns, counts; of `columns` the largest values alone

  // Rows for every id of "user", "item", "hour", "weekday", an item attribute or a context column. UsageError
  // if there is no such column, Error if its largest value is not known.
  std::int64_t rows_of(const std::string& key) const;
  std::int64_t rows_of_attribute(const std::string& name) const;
};

DatasetFacts facts_of(const Dataset& dataset);

// What the configuration alone states of its dataset: the actions and columns that it names, and the rows of
// tables. It is all that the task needs if the rows of every table are given and every action is named.
DatasetFacts stated_facts(const TaskRequest& request);

}  // namespace hstu
