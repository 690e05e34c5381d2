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

// What was measured on one H200 and on two and four NVIDIA H100 of one host, and what is assumed
// (docs/performance/ranks.md).
struct StepRates {
  double share_of_peak =
      0.52;  // model FLOPs over time x peak: 0.565 DLRMv4, 0.477 to 0.49 the ranking benchmark
  // By which an exchange of ids, rows or their gradients makes a step longer, by waits and by the kernels
  // beside it, which it takes multiprocessors from: DLRMv4 on two, 1.1 ms on four. Assumed: as much for each
  // doubling.
  double exchange_seconds = 5.4e-4;
  // The same of the two exchanges of a bucket of dense gradients, of which there are as many as there are
  // bucket_bytes: the ranking benchmark, 40 exchanges for 213 MB.
  double bucket_seconds = 2.2e-4, bucket_bytes = 9e6;
  // Assumed, of an exchange of a layer whose heads two ranks share.
  double head_seconds = 1e-4;
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
  double heads = 0;        // bytes of heads that ranks share, and the exchanges of layers
  double context = 0;      // bytes of the layers of long samples
  double messages = 0;     // the least that exchanges take
  double seconds() const { return model + rows + table_bytes + dense_bytes + heads + context + messages; }
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
