#include "hstu/experiment/over_ranks.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace hstu {

void sum_over_ranks(std::span<StepResult> steps, Communicator& comm) {
  if (comm.size() == 1) return;
  std::vector<std::int64_t*> counts;
  std::vector<std::int64_t> sums;
  std::vector<double> losses;
  losses.reserve(steps.size());
  for (StepResult& step : steps) {
    LayerFlops &model = step.flops.model, &computed = step.flops.computed;
    counts.insert(counts.end(),
                  {&step.samples, &step.tokens, &model.uvqk, &model.attention, &model.projection,
                   &computed.uvqk, &computed.attention, &computed.projection});
    losses.push_back(step.loss);
  }
  sums.reserve(counts.size());
  for (const std::int64_t* count : counts) sums.push_back(*count);
  comm.all_reduce_sum(std::span(sums));
  comm.all_reduce_sum(std::span(losses));
  for (std::size_t i = 0; i < counts.size(); ++i) *counts[i] = sums[i];
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].loss = losses[i];
}

std::vector<std::int64_t> rows_alive(const TableSet& tables, Communicator& comm) {
  std::vector<std::int64_t> rows;
  for (std::size_t t = 0; t < tables.size(); ++t)
    rows.push_back(!tables.is_distributed() || tables[t].owners().reports() ? tables[t].rows_alive() : 0);
  if (tables.is_distributed()) comm.all_reduce_sum(std::span<std::int64_t>(rows));
  return rows;
}

std::vector<Json> gather(const std::vector<Json>& values, Communicator& comm) {
  std::string mine;
  for (const Json& value : values) mine += value.dump() + "\n";
  const std::vector<char> all = comm.all_gather(std::span<const char>(mine));
  std::vector<Json> gathered;
  for (auto at = all.begin(); at != all.end();) {
    const auto end = std::find(at, all.end(), '\n');
    gathered.push_back(Json::parse(at, end));
    at = end + 1;
  }
  return gathered;
}

std::vector<BadIdCount> gather(const std::vector<BadIdCount>& counts, Communicator& comm) {
  const auto any = static_cast<std::int64_t>(counts.size());
  if (comm.size() == 1 || comm.sum(any) == 0) return counts;
  std::vector<Json> mine;
  mine.reserve(counts.size());
  for (const BadIdCount& c : counts)
    mine.push_back({c.feature, c.occurrences, c.first_id, c.first_user, c.first_position});
  std::vector<BadIdCount> gathered;
  for (const Json& c : gather(mine, comm)) gathered.push_back({c[0], c[1], c[2], c[3], c[4]});
  return gathered;
}

}  // namespace hstu
