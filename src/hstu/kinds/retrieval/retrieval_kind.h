// Retrieval as a kind of model: its keys, their checks, its task.
#pragma once

#include <memory>
#include <string>

#include "hstu/kinds/retrieval/retrieval_config.h"
#include "hstu/task/kind.h"

namespace hstu {

struct RetrievalOptions final : KindOptions {
  RetrievalConfig config;

  std::unique_ptr<KindOptions> clone() const override { return std::make_unique<RetrievalOptions>(*this); }
  void describe(ConfigFields& fields) override;
};

namespace retrieval {

void check(const TaskRequest& request);
Task make(const TaskRequest& request, const DatasetFacts& facts);
std::string propose(const Proposal& proposal);

}  // namespace retrieval
}  // namespace hstu
