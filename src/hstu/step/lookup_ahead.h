// The lookup of the next step's rows of tables that ranks share, beside a step's forward pass
// (ranks.pipeline).
#pragma once

#include <thread>

#include "hstu/base/threads.h"
#include "hstu/experiment/learner.h"
#include "hstu/step/part_source.h"

namespace hstu {

// On processors a thread exchanges, and the communicator and the tables belong to it until finish(). GPUs
// exchange on the tables' stream: finish() puts their work there.
class LookupAhead {
 public:
  // Of later() of `parts`. Null: nothing is looked up.
  LookupAhead(Learner& learner, Communicator& comm, PartSource* parts);
  LookupAhead(const LookupAhead&) = delete;
  LookupAhead& operator=(const LookupAhead&) = delete;

  // Throws what the lookup has thrown.
  void finish();

 private:
  void look_up();

  Learner& learner_;
  Communicator& comm_;
  PartSource* parts_;
  FirstException failure_;
  std::jthread thread_;  // last: joined before the other members are destroyed
};

}  // namespace hstu
