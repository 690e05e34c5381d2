// How long a step of many ranks will take, from rates that were measured and from bandwidths that are given,
// and at which number of ranks a run stops scaling.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/device/gpu_specs.h"
#include "hstu/options/options.h"
#include "hstu/plan/rank_plan.h"

namespace hstu {

// Bytes a second each way, of one GPU.
struct Interconnect {
  double link = 0;        // to the GPUs of its host
  double network = 50e9;  // to those of other hosts: an adapter of 400 Gbit/s for each GPU
  int gpus_per_host = 8;
};

// What was measured on two NVIDIA H200 of one host, and what is assumed (docs/performance/ranks.md).
struct StepRates {
  double share_of_peak = 0.52;      // model FLOPs over time x peak: 0.565 DLRMv4, 0.477 the ranking benchmark
  double exchange_seconds = 3e-4;   // of a message to every rank and back with few bytes: 0.2 to 0.4 ms
  double peer_seconds = 1e-5;       // assumed: each further rank adds to it
  double share_of_bandwidth = 0.8;  // assumed: of memory, link and network
};

// Seconds. Nothing is assumed to happen beside anything else.
struct StepEstimate {
  int ranks = 1;
  double samples = 0;      // of the step
  double model = 0;        // FLOPs of the rank with the most, over the rate
  double rows = 0;         // rows that are gathered, merged and updated, over the memory's bandwidth
  double table_bytes = 0;  // bytes of ids, rows and their gradients over the links
  double dense_bytes = 0;  // bytes of the dense gradients
  double messages = 0;     // the least that exchanges take
  double seconds() const { return model + rows + table_bytes + dense_bytes + messages; }
  double samples_per_s() const { return samples / seconds(); }
};

StepEstimate estimate_step(const RankPlan& plan, const GpuSpecs& gpu, Precision precision,
                           const Interconnect& net, const StepRates& rates = {});

// Of 1, 2, 4 ... and `ranks` ranks, by the first batch of the run.
std::vector<StepEstimate> estimate_scaling(const RunOptions& options, const GpuSpecs& gpu,
                                           const Interconnect& net, int ranks);

// The first number of ranks from which twice as many give less than 1.5 times the samples a second; 0: none.
int stops_scaling(const std::vector<StepEstimate>& steps);

std::string to_text(const std::vector<StepEstimate>& steps);
Json to_json(const std::vector<StepEstimate>& steps);

}  // namespace hstu
