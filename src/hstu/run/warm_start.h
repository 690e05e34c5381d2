// Starts a run with the parameters and table rows of another run's checkpoint, and with the states of its
// optimizers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/embedding/table_set.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/options/options.h"

namespace hstu {

// The ids that a dataset has for a table, and what they are: "items", "users" or "values".
struct KnownIds {
  std::string what;
  std::vector<std::int64_t> ids;  // ascending
};
// Of the tables of items, of their attributes and of users, by name. A pass over the events.
std::map<std::string, KnownIds> known_ids(const RunOptions& options, const Dataset& dataset);

// The rows that a checkpoint has for a table.
struct OfferedRows {
  std::string table, what;   // KnownIds::what; "": it is not known which ids the dataset has
  std::int64_t offered = 0;  // rows there
  std::int64_t known = 0;    // ids of the dataset
  std::int64_t fitting = 0;  // of these, those with a row
  bool frozen = false;
};

// The result of a warm start, by names of this model's parameters and tables ("table item").
struct WarmStartReport {
  Path checkpoint;
  std::int64_t step = 0;
  std::int64_t rows = 0;                // of tables; of those that ranks share, this rank's
  std::int64_t row_states = 0;          // of these rows, those that came with their optimizer's state
  std::int64_t parameter_states = 0;    // parameters that came with it
  std::string new_states;               // why some states begin at zero; "": none do
  std::vector<std::string> matched;     // copied under the same name
  std::vector<std::string> renamed;     // "mine, from theirs"
  std::vector<std::string> misfitting;  // "name: shape there, shape here"; at its initial value
  std::vector<std::string> initial;     // absent from the other model; at its initial value
  std::vector<std::string> unused;      // of the other model
  std::vector<OfferedRows> tables;      // that fit
  std::string refusal;                  // why no run may begin like this, for fail_usage(); "": it may
};

// A parameter takes the values of the parameter with its name, or with the name in the map, if the shapes are
// equal. A table takes every row in its range if the widths are equal. The map is a TOML file:
//   [parameters]
//   "head.0.weight" = "old_head.0.weight"    # this model's name = the other's
//   [tables]
//   item = "track"
// Throws UsageError if nothing fits, if the map has a name that one of the models does not have, or if rows
// are those of texts that cannot be matched (text_rows.h). States of optimizers come along if
// section.optimizer asks for them and the optimizers are of one kind. `checkpoint`: that of the section;
// `text_rows`: of match_text_rows(). The report refuses a start that takes no parameter and no row of an id
// that the dataset has, and frozen tables without such rows. `known`: of known_ids().
using TextRows = std::map<std::string, std::vector<std::int64_t>>;
WarmStartReport warm_start(const WarmStartSection& section, const Checkpoint& checkpoint,
                           DenseOptimizer& optimizer, TableSet& tables, const TextRows& text_rows = {},
                           const std::map<std::string, KnownIds>& known = {});

// The absolute path of the checkpoint at `path`, or of the newest one if `path` is a run. UsageError if it
// is neither.
Path warm_start_checkpoint(const Path& path);

std::string to_text(const WarmStartReport& report);
Json to_json(const WarmStartReport& report);

}  // namespace hstu
