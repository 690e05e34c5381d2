// A learner that is made before its dataset is opened.
#pragma once

#include <memory>

#include "hstu/comm/communicator.h"
#include "hstu/experiment/learner.h"
#include "hstu/experiment/task_data.h"

namespace hstu {

// Made of what the configuration alone states (stated_facts): the rows of every table and the actions. All
// ranks call it together. Error if rows of a table are not given.
std::unique_ptr<Learner> learner_without_data(const RunOptions& options, Communicator& comm);

// Whether the learner that the dataset asks for is the same: equal tables, and actions with equal bits in the
// same order.
bool is_learner_of(const RunOptions& options, const Learner& learner, const TaskData& data);

}  // namespace hstu
