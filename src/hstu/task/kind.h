// A kind of model, as a row of a list (kinds/kinds.h). All else knows a kind by this row and by the Task that
// it makes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hstu/metrics/metric_spec.h"
#include "hstu/task/dataset_facts.h"
#include "hstu/task/kind_options.h"
#include "hstu/task/proposal.h"
#include "hstu/task/task.h"
#include "hstu/task/task_request.h"

namespace hstu {

struct Kind {
  std::string_view name;                      // model.kind
  std::string_view title;                     // for people
  MetricSpecs metrics;                        // of its objective
  std::unique_ptr<KindOptions> (*options)();  // with their defaults
  // UsageError for values that are valid separately but contradict each other.
  void (*check)(const TaskRequest& request);
  // UsageError where the request and the dataset do not fit.
  Task (*make)(const TaskRequest& request, const DatasetFacts& facts);
  // Lines of section [model] of a configuration to start from. Null: the kind proposes none.
  std::string (*propose)(const Proposal& proposal);
  // An event is a sample, and those of its history are predicted too; each action can be a task of its own.
  bool predicts_histories = false;
  bool reads_attributes = true;  // of items, as features
  bool reads_actions = false;    // features.actions
  bool reads_items = true;       // features.item_rows
  // Its samples are users, each event of whom predicts the next; else an event is a sample.
  bool samples_are_users = false;
  // With samples_are_users: lines from section [dense_optimizer] to [tables.NAME] of the same configuration.
  std::string_view optimizers = {};
};

template <typename Options>
std::unique_ptr<KindOptions> default_options() {
  return std::make_unique<Options>();
}

}  // namespace hstu
