// DLRMv4 as a kind of model: its keys, their checks, its task.
#pragma once

#include <memory>
#include <string>

#include "hstu/kinds/dlrmv4/dlrmv4_config.h"
#include "hstu/task/kind.h"

namespace hstu {

struct Dlrmv4Options final : KindOptions {
  Dlrmv4Config config;

  std::unique_ptr<KindOptions> clone() const override { return std::make_unique<Dlrmv4Options>(*this); }
  void describe(ConfigFields& fields) override;
};

namespace dlrmv4 {

void check(const TaskRequest& request);
Task make(const TaskRequest& request, const DatasetFacts& facts);
std::string propose(const Proposal& proposal);

}  // namespace dlrmv4
}  // namespace hstu
