// What a run on several ranks will be like: how even their work is, and what they send each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/embedding/row_owners.h"
#include "hstu/plan/memory_plan.h"

namespace hstu {

struct RankPlan {
  int ranks = 1;
  std::int64_t batches = 0, samples = 0;  // that were divided, of the run's first
  // The largest work of a rank over the mean, averaged over the batches: as divided, and in slices.
  double imbalance = 1, imbalance_of_slices = 1;
  // Of the rank with the most, averaged over the batches.
  struct Work {
    // FLOPs of both passes (StackFlops::computed), and once more of the forward pass where layers are
    // computed again.
    double products = 0, attention = 0;
    // Values that are read and written for the tokens outside of products and attention.
    double values = 0;

    double flops() const { return products + attention; }
    Work& operator+=(const Work& other) {
      products += other.products, attention += other.attention, values += other.values;
      return *this;
    }
    Work operator*(double factor) const { return {factor * products, factor * attention, factor * values}; }
  };
  Work work;
  double parts = 0;
  std::int64_t accumulate = 1;  // batches of a step
  std::int64_t dim = 0;         // values of the widest row
  double division_ms = 0;       // of one batch on one thread, the median
  // Bytes that leave a rank in a batch, the mean over ranks and batches: for the ids and rows of the lookup,
  // and for the row gradients with their ids.
  struct Traffic {
    double ids = 0, rows = 0, row_gradients = 0;
  };
  struct Table {
    std::string name;
    TableRanks form = TableRanks::split;
    double distinct_ids = 0;  // of a rank's part, the mean
    Traffic sent;
  };
  std::vector<Table> tables;
  double dense = 0;   // bytes that leave a rank for the sum of dense gradients
  int tensor = 1;     // ranks that share heads
  double tokens = 0;  // of a rank's part, the mean
  // Bytes that leave a rank in a batch for heads that ranks share: tokens to all of the group and sums back,
  // in both passes, and the statistics of norms.
  double heads = 0;
  double head_exchanges = 0;  // of a batch's part
  // Bytes that leave a rank in a batch for the layers of long samples, the mean: ranks.context.
  double context = 0;
  double context_exchanges = 0;  // of a batch's part
  // Of the rank with the most, over the mean, averaged over the batches: distinct ids that it reads; rows of
  // split and whole tables that it sends to those that read them; and rows that it would send if an id were
  // sent as often as it occurs.
  double most_ids_over_mean = 1, most_rows_over_mean = 1, most_occurrences_over_mean = 1;

  Traffic sent() const;  // for all tables
  double bytes() const { return dense + heads + context + sent().ids + sent().rows + sent().row_gradients; }
};

// Divides and lays out the first batches of the run, until they have so many samples. `data`: of the options.
RankPlan plan_ranks(const RunOptions& options, const TaskData& data, int ranks,
                    std::int64_t most_samples = 100'000);
// Opens the dataset. Throws UsageError as TaskData does.
RankPlan plan_ranks(const RunOptions& options, int ranks, std::int64_t most_samples = 100'000);

std::string to_text(const RankPlan& plan);
// The form of each table, what a rank has of it, by `memory`, the plan for as many ranks, and what it sends.
std::string tables_text(const RankPlan& plan, const MemoryPlan& memory);
Json to_json(const RankPlan& plan);

}  // namespace hstu
