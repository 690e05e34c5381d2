// RankingGR as a kind of model: its keys, their checks, its task.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "hstu/kinds/ranking_gr/ranking_gr_config.h"
#include "hstu/task/kind.h"

namespace hstu {

struct RankingGrOptions final : KindOptions {
  RankingGrConfig config;

  std::unique_ptr<KindOptions> clone() const override { return std::make_unique<RankingGrOptions>(*this); }
  void describe(ConfigFields& fields) override;
  DataNeeds data_needs() const override;
  std::map<std::string, std::int64_t*> table_rows() override { return {{"action", &config.action_rows}}; }
};

namespace ranking_gr {

void check(const TaskRequest& request);
Task make(const TaskRequest& request, const DatasetFacts& facts);
std::string propose(const Proposal& proposal);

}  // namespace ranking_gr
}  // namespace hstu
