// Semantic ids as a kind of model: its keys, their checks, its task.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hstu/kinds/semantic_ids/semantic_ids_config.h"
#include "hstu/task/kind.h"

namespace hstu {

struct SemanticIdsOptions final : KindOptions {
  SemanticIdsConfig config;

  std::unique_ptr<KindOptions> clone() const override { return std::make_unique<SemanticIdsOptions>(*this); }
  void describe(ConfigFields& fields) override;
  std::int64_t* beam() override { return &config.beam; }
  void settle() override;
  void continue_from(const KindOptions& before) override;
  void export_files(const Path& folder) override;
  void open_export(const Path& folder) override;
};

namespace semantic_ids {

void check(const TaskRequest& request);
Task make(const TaskRequest& request, const DatasetFacts& facts);
std::string propose(const Proposal& proposal);
inline constexpr std::string_view kOptimizers =
    "[dense_optimizer]\nkind = \"adamw\"\nlearning_rate = 1e-3\nweight_decay = 0.05\n\n"
    "[sparse_optimizer]\nkind = \"adamw\"\nlearning_rate = 1e-3\nweight_decay = 0.0\n\n"
    "[tables.code]\ninitial = { kind = \"truncated_normal\", deviation = 0.02 }\n";

}  // namespace semantic_ids
}  // namespace hstu
