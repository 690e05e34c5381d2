// How long a step of many ranks will take, from rates that were measured and from bandwidths that are given,
// and at which number of ranks a run stops scaling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/device/gpu_specs.h"
#include "hstu/options/options.h"
#include "hstu/plan/rank_plan.h"

namespace hstu {

inline constexpr std::int64_t kEstimatedBatches = 4;  // first ones of the run, whose mean is estimated

// Bytes a second each way, of one GPU.
struct Interconnect {
  double link = 0;        // to the GPUs of its host
  double network = 50e9;  // to those of other hosts: an adapter of 400 Gbit/s for each GPU
  int gpus_per_host = 8;
};

// What was measured on one, two and four NVIDIA H100 of one host, and what is assumed
// (docs/performance/ranks.md).
struct StepRates {
  // FLOPs over time x peak, at the power limit: of the layers' products and of attention.
  double products = 0.51, attention = 0.594;
  // By which a step beside other ranks is longer: kernels that messages take multiprocessors from, and waits
  // for the slowest rank.
  double beside_others = 0.07;
  // Of an exchange, for each doubling of the ranks; of one inside a layer that ranks share. Fitted.
  double exchange_seconds = 3e-5, layer_exchange_seconds = 2e-4;
  double bucket_bytes = 9e6;        // of dense gradients, in two exchanges
  double share_of_bandwidth = 0.8;  // assumed: of memory, link and network
};

// Seconds. Nothing is assumed to happen beside anything else.
struct StepEstimate {
  int ranks = 1;
  double samples = 0;      // of the step
  double model = 0;        // work of the rank with the most, over the rates
  double rows = 0;         // rows that are gathered, merged and updated, over the memory's bandwidth
  double table_bytes = 0;  // bytes of ids, rows and their gradients over the links
  double dense_bytes = 0;  // bytes of the dense gradients
  double heads = 0;        // bytes of heads that ranks share, and the exchanges of layers
  double context = 0;      // bytes of the layers of long samples
  double messages = 0;     // what exchanges take whatever their bytes, waits, and slower kernels
  double seconds() const { return model + rows + table_bytes + dense_bytes + heads + context + messages; }
  double samples_per_s() const { return samples / seconds(); }
};

StepEstimate estimate_step(const RankPlan& plan, const GpuSpecs& gpu, Precision precision,
                           const Interconnect& net, const StepRates& rates = {});

// Of 1, 2, 4 ... and `ranks` ranks, by the first batches of the run.
std::vector<StepEstimate> estimate_scaling(const RunOptions& options, const GpuSpecs& gpu,
                                           const Interconnect& net, int ranks);

// The first number of ranks from which twice as many give less than 1.5 times the samples a second; 0: none.
int stops_scaling(const std::vector<StepEstimate>& steps);

std::string to_text(const std::vector<StepEstimate>& steps);
Json to_json(const std::vector<StepEstimate>& steps);

}  // namespace hstu
