// The configuration of a run: one struct per TOML section, one member per key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hstu/attention/problem.h"
#include "hstu/batching/bad_ids.h"
#include "hstu/batching/options.h"
#include "hstu/config/config.h"
#include "hstu/embedding/row_limits.h"
#include "hstu/embedding/row_owners.h"
#include "hstu/embedding/table_tier.h"
#include "hstu/objects/store_options.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/optimizer/schedule.h"
#include "hstu/options/model_section.h"
#include "hstu/options/submission_section.h"
#include "hstu/rows/initial_value.h"
#include "hstu/rows/row_optimizer.h"
#include "hstu/task/task_request.h"

namespace hstu {

struct DataSection {
  Path path;
  DataOptions options;
  double shuffle_fraction = 0;
  std::int64_t workers = 1;
};

struct SparseOptimizerSection {
  RowOptimizerKind kind = RowOptimizerKind::rowwise_adagrad;
  double learning_rate = 0.01;
  double epsilon = 1e-8;
  double beta1 = 0.9, beta2 = 0.999, weight_decay = 0.01;
};

struct DenseOptimizerSection {
  double learning_rate = 1e-3;
  double max_gradient_norm = 1.0;
  DenseOptimizerConfig config;
};

// The type in which rows travel between the GPUs of several ranks.
inline constexpr Choice<DType> kWireTypes[] = {
    {"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}};

// Of the values of rows.
inline constexpr Choice<DType> kRowTypes[] = {{"f32", DType::f32}, {"bf16", DType::bf16}};

// Which rows of a table a step updates.
enum class UpdatedRows {
  touched,  // those with a gradient
  all,      // every row: momentum and weight decay move the others too
};
inline constexpr Choice<UpdatedRows> kUpdatedRows[] = {{"touched", UpdatedRows::touched},
                                                       {"all", UpdatedRows::all}};

// [tables.NAME]; options/table_options.h reads the texts.
struct TableSection {
  std::string capacity = {}, memory = {};
  std::string place = {};          // "": tables.place
  std::string device_memory = {};  // with place = "cache" or "disk"
  std::string host_memory = {};    // with place = "disk"
  Evict evict = Evict::never;
  std::string score = {};
  std::int64_t half_life = 1000;
  std::int64_t admit_after = 0;
  std::string ttl = {};
  std::int64_t width = 0;  // of a row; 0: model.embedding_dim
  DType dtype = DType::f32;
  std::string optimizer = {};  // "": sparse_optimizer.kind
  UpdatedRows updates = UpdatedRows::touched;
  double rate_factor = 1;
  bool frozen = false;
  std::string ranks = {};  // "": tables.ranks
  InitialValue initial = {};
};

struct TablesSection {
  TableTier place = TableTier::device;
  Path disk_folder = {};
  TableRanks ranks = TableRanks::automatic;
  DType wire_rows = DType::f32, wire_gradients = DType::f32;
  std::map<std::string, TableSection> by_name;
};

// How GPUs of several ranks send each other rows and gradients.
enum class GpuMessages { nccl, host };
inline constexpr Choice<GpuMessages> kGpuMessages[] = {{"nccl", GpuMessages::nccl},
                                                       {"host", GpuMessages::host}};

// What a step does for the next one's lookup of rows that other ranks have (docs/ranks.md).
enum class Pipeline { plain, sparse, prefetch };
inline constexpr Choice<Pipeline> kPipelines[] = {
    {"plain", Pipeline::plain}, {"sparse", Pipeline::sparse}, {"prefetch", Pipeline::prefetch}};

struct RanksSection {
  double timeout = 600;  // seconds
  Pipeline pipeline = Pipeline::plain;
  GpuMessages gpu_messages = GpuMessages::nccl;
  bool shard_optimizer = false;
  bool overlap = true;                 // sums of dense gradients, with the backward pass
  std::int64_t tensor = 1;             // ranks that share the heads of the layers
  int context = 1;                     // ranks of a context group (comm/groups.h); 0: not chosen yet
  std::int64_t context_above = 16384;  // tokens; samples with more are long
};

// Shared by both optimizers; each has its own base rate.
struct ScheduleSection {
  std::int64_t warmup_steps = 0;
  double warmup_start = 0;
  bool warmup_from_zero_step = false;
  Decay decay = Decay::none;
  std::int64_t decay_steps = 0;
  double final_fraction = 0;
};

enum class Balance { work, nvidia, none };
inline constexpr Choice<Balance> kBalances[] = {
    {"work", Balance::work}, {"nvidia", Balance::nvidia}, {"none", Balance::none}};

struct TrainingSection {
  std::int64_t batch_size = 32;
  std::int64_t accumulate = 1;
  Balance balance = Balance::work;
  std::int64_t micro_batch_tokens = 0;
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;
  std::int64_t first_window = 0;
  std::int64_t windows = 0;
  bool drop_last = false;
  bool weighted = true;         // losses take the weights of the dataset, if it has any
  double silence_seconds = 60;  // base/progress_watch.h; 0: no watch

  std::int64_t samples_of_step() const { return batch_size * accumulate; }
};

struct EvaluationSection {
  HoldoutOptions holdout;
  std::int64_t batch_size = 0;
  bool at_start = false;
  bool next_window = false;  // instead of a hold-out
  std::int64_t every_windows = 0;
  double every_data_fraction = 0;
  double skip_until_fraction = 0;
  double target_auc = 0;
  std::int64_t patience = 0;
  double min_delta = 0;
  NegativeOptions negatives;  // exclude_seen is that of data.negatives
  std::int64_t max_samples = 0;
  std::vector<std::int64_t> ranking_k = {};  // cutoffs of NDCG and recall; empty: no list metrics
  // "user", "time", "sample" or a context column (training/ranked_lists.h); "": "sample" where negatives are
  // drawn, else "user".
  std::string ranking_list = {};
  bool weighted = false;  // metrics take the weights of the dataset
};

struct CheckpointSection {
  std::int64_t every_window_batches = 0;
  std::int64_t every_steps = 0;
  double every_seconds = 1800;
  std::int64_t every_windows = 0;
  std::int64_t keep = 2;
  std::string best = {};  // a metric of the kind of model (task/kind.h); "": no best checkpoint is kept
  bool incremental = false;
  std::int64_t full_every = 10;  // incremental: saves
  bool final = true;
  Path publish = {};  // "": not

  // No save of any kind, not even on a signal.
  bool never() const {
    return !final && best.empty() && every_window_batches == 0 && every_steps == 0 && every_seconds == 0 &&
           every_windows == 0;
  }
};

struct WarmStartSection {
  Path checkpoint, name_map;
  bool optimizer = true;
};

struct MetricsSection {
  std::int64_t every_steps = 50;
  std::int64_t window_samples = 2500;
  bool tensorboard = false;
  std::int64_t attention_every = 0;  // steps; 0: not
  std::int64_t balance_window = 0;   // steps; 0: not
  double memory_trim = 0;            // share of the device's memory; 0: not
};

// Of what a model computes for every token. Parameters, sums, statistics and tables are fp32 in any case.
enum class Precision { fp32, bf16 };
inline constexpr Choice<Precision> kPrecisions[] = {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}};

struct RunOptions {
  std::uint64_t seed = 1;
  std::string device = "auto";
  Precision precision = Precision::fp32;
  bool deterministic = true;
  bool mlperf = false;
  AttentionChoice attention = AttentionChoice::automatic;
  std::string device_memory = {};  // parse_bytes (table_options.h); "": all that the device has
  OnBadId on_bad_id = OnBadId::count;
  DataSection data;
  FeaturesSection features;
  ModelSection model;
  TrainingSection training;
  DenseOptimizerSection dense;
  SparseOptimizerSection sparse;
  TablesSection tables;
  RanksSection ranks;
  ScheduleSection schedule;
  EvaluationSection evaluation;
  CheckpointSection checkpoint;
  StoreOptions store;  // of checkpoint.publish
  WarmStartSection warm_start;
  MetricsSection metrics;
  SubmissionSection submission;
};

void describe(ConfigFields& fields, RunOptions& options);

// Samples of a batch of an evaluation: evaluation.batch_size, or training's.
std::int64_t evaluation_batch_size(const RunOptions& options);

TaskRequest task_request(const RunOptions& options);

// Throws UsageError for values that are valid separately but contradict each other.
void check_consistency(const RunOptions& options);

// The learning rate schedule for one optimizer's base rate.
LearningRateSchedule learning_rate(const ScheduleSection& schedule, double base);

}  // namespace hstu
