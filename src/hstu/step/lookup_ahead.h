// The lookup of the next step's rows of tables that ranks share, beside a step's forward pass
// (ranks.pipeline).
#pragma once

#include "hstu/experiment/learner.h"
#include "hstu/step/part_source.h"

namespace hstu {

// On processors an exchange of the learner's queue, to which the tables belong until finish(). GPUs exchange
// on the tables' stream: finish() puts their work there.
class LookupAhead {
 public:
  // Of later() of `parts`. Null: nothing is looked up.
  LookupAhead(Learner& learner, PartSource* parts);
  ~LookupAhead();  // without finish(): after an error
  LookupAhead(const LookupAhead&) = delete;
  LookupAhead& operator=(const LookupAhead&) = delete;

  // Throws what the lookup has thrown.
  void finish();

 private:
  bool is_on_gpus() const { return learner_.tables.gpus() != nullptr; }
  void look_up();

  Learner& learner_;
  PartSource* parts_;  // null: nothing is left to do
  ExchangeQueue::Fence begun_ = 0;
};

}  // namespace hstu
