// Retrieval as a kind of model: its keys, their checks, its task.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hstu/kinds/retrieval/retrieval_config.h"
#include "hstu/task/kind.h"

namespace hstu {

struct RetrievalOptions final : KindOptions {
  RetrievalConfig config;

  std::unique_ptr<KindOptions> clone() const override { return std::make_unique<RetrievalOptions>(*this); }
  void describe(ConfigFields& fields) override;
  DataNeeds data_needs() const override {
    DataNeeds needs;
    needs.user_contexts = true;
    return needs;
  }
};

namespace retrieval {

void check(const TaskRequest& request);
Task make(const TaskRequest& request, const DatasetFacts& facts);
std::string propose(const Proposal& proposal);
inline constexpr std::string_view kOptimizers =
    "# Items and weights learn in the same way, as in the published recipe.\n"
    "[dense_optimizer]\nkind = \"adamw\"\nlearning_rate = 1e-3\nbeta2 = 0.98\nweight_decay = 0.0\n"
    "max_gradient_norm = 0.0\n\n"
    "[sparse_optimizer]\nkind = \"adamw\"\nlearning_rate = 1e-3\nbeta2 = 0.98\nweight_decay = 0.0\n\n"
    "[tables.item]\nupdates = \"all\"\n"
    "initial = { kind = \"truncated_normal\", deviation = 0.02 }\n";

}  // namespace retrieval
}  // namespace hstu
