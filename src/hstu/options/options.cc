#include "hstu/options/options.h"

#include <algorithm>

#include "hstu/options/table_options.h"
#include "hstu/task/kind.h"

namespace hstu {

// run_sections.cc
void describe(ConfigFields& f, CheckpointSection& o);
void describe(ConfigFields& f, WarmStartSection& o);
void describe(ConfigFields& f, MetricsSection& o);
void describe(ConfigFields& f, StoreOptions& o);
// table_section.cc
void describe(ConfigFields& f, TablesSection& o);

namespace {

constexpr double kMostNegatives = 10'000, kMostOfEvaluation = 100'000;

}  // namespace

void describe(ConfigFields& f, ContextualFeature& o) {
  f.field("name", o.name, "of the feature and its table", rule::required());
  f.field("keys", o.keys, "user, item, hour, weekday, an item attribute or a context column",
          rule::required());
  f.field("rows", o.rows, "of its table; 0 (not hashed only): as many as the dataset's ids ask for",
          rule::at_least(0));
  f.field("hashed", o.hashed, "XXH64 of the keys modulo rows; false: the id of the only key as it is");
}

void describe(ConfigFields& f, AttributeSection& o) {
  f.field("name", o.name, "of the feature and its table", rule::required());
  f.field("key", o.key,
          "an item attribute of the dataset; \"\": the name; \"item\": the item's id, for vectors of items");
  f.field("rows", o.rows, "of its table; 0: as many as the dataset's ids ask for", rule::at_least(0));
}

void describe(ConfigFields& f, FeaturesSection& o) {
  f.field("item_rows", o.item_rows, "rows of the item table; 0: as many as the dataset's ids ask for",
          rule::at_least(0));
  f.field("actions", o.actions, "actions the action encoder sees; []: every action of the dataset",
          rule::distinct());
  f.sections("attributes", o.attributes, "item attributes with an embedding");
  f.sections("context", o.context,
             "contextual features, one token each before the history; of kind retrieval: of a user, added to "
             "every token");
}

void describe(ConfigFields& f, NegativeOptions& o) {
  f.field("per_positive", o.per_positive,
          "items drawn for each positive sample, which train with it as candidates of label 0; 0: none",
          rule::between(0, kMostNegatives));
  f.choice("from", o.from, kNegativeSources,
           "of the training part's positives: items in proportion to their number, all alike, or in "
           "proportion to those of the sample's day (UTC)");
  f.field("exclude_seen", o.exclude_seen, "draw no item of an earlier event of the user");
  f.read_if(o.per_positive > 0, "from", "with per_positive > 0");
}

void describe(ConfigFields& f, DataSection& o) {
  f.field("path", o.path, "folder of the prepared dataset (hstu prepare)", rule::required());
  f.field("history_length", o.options.history_length, "L: events of a history, at most",
          rule::between(1, 1 << 24));
  f.choice("history_strategy", o.options.strategy, kHistoryStrategies,
           "interleaved: the last L / pools events of every pool; last_n: the last L events of any pool");
  f.field("pools", o.options.pools, "actions whose events enter histories; []: as the dataset says",
          rule::distinct());
  f.field("scan_limit", o.options.scan_limit,
          "a history comes from this many events before the candidate, at most", rule::between(1, 1e12));
  f.field("same_second", o.options.same_second,
          "a history has the events of its candidate's own second that the log has before it; false: none of "
          "that second, as in hstu predict");
  f.field("min_history", o.options.min_history,
          "events of any kind a user must have before a candidate counts", rule::at_least(0));
  f.field("anchor_stride", o.options.anchor_stride,
          "training uses every n-th candidate of a user in a window, counted back from the last: with a "
          "model that predicts at every item, history_length + 1 uses each event once; 0: only the last",
          rule::at_least(0));
  f.field("window_seconds", o.options.window_seconds, "training goes window by window in time; 0: one window",
          rule::at_least(0));
  f.field(
      "shuffle_fraction", o.shuffle_fraction,
      "samples are shuffled inside runs of this fraction of a window; 0: in user order; 1: the whole window",
      rule::between(0, 1));
  f.field("workers", o.workers, "threads that prepare batches ahead of the training step",
          rule::between(1, 1024));
  f.section("negatives", o.options.negatives, "for logs without negatives: clicks, purchases, plays");
}

void describe(ConfigFields& f, TrainingSection& o) {
  f.field("batch_size", o.batch_size,
          "samples computed together, by all ranks; a step has batch_size x accumulate of them",
          rule::between(1, 1 << 24));
  f.field(
      "accumulate", o.accumulate,
      "batches of a step, computed one after another: their gradients make one update, that of a batch as "
      "large as all of them",
      rule::between(1, 1 << 20));
  f.choice("balance", o.balance, kBalances,
           "how several ranks divide a batch: even work by the layers' FLOPs; even work and the same number "
           "of samples, as NVIDIA's recsys-examples does; or slices (none)");
  f.field("micro_batch_tokens", o.micro_batch_tokens,
          "tokens computed at once: the gradients of parts of a batch are added up; 0: the whole batch",
          rule::at_least(0));
  f.field("epochs", o.epochs, "passes over the training windows", rule::between(1, 1e6));
  f.field("max_steps", o.max_steps, "stop after this many steps; 0: no limit", rule::at_least(0));
  f.field("first_window", o.first_window, "window to begin with", rule::at_least(0));
  f.field("windows", o.windows, "windows to train; 0: all", rule::at_least(0));
  f.field("drop_last", o.drop_last, "leave out a window's last batch when it is not full (DLRMv4 reference)");
  f.field("weighted", o.weighted, "multiply losses by the weights of the dataset, if it has any");
  f.field("silence_seconds", o.silence_seconds,
          "a step, an evaluation or a save that makes no progress for so long is reported with the stacks of "
          "all threads; 0: never",
          rule::at_least(0));
}

void describe(ConfigFields& f, DenseOptimizerSection& o) {
  f.choice("kind", o.config.kind, kDenseOptimizers, "of the dense parameters' optimizer");
  f.field("learning_rate", o.learning_rate, "base rate", rule::at_least(0));
  f.field("beta1", o.config.beta1, "Adam", rule::between(0, 0.99999));
  f.field("beta2", o.config.beta2, "Adam", rule::between(0, 0.9999999));
  f.field("epsilon", o.config.epsilon, "Adam", rule::positive());
  f.field("weight_decay", o.config.weight_decay, "added to the gradient; decoupled for adamw",
          rule::at_least(0));
  f.field("momentum", o.config.momentum, "sgd", rule::between(0, 0.99999));
  f.field("max_gradient_norm", o.max_gradient_norm,
          "gradients longer than this are scaled down to it; 0: never", rule::at_least(0));
  f.field("adam_starts_at_t2", o.config.adam_starts_at_t2,
          "the first update counts as the second (DLRMv4 reference)");
  const bool is_adam = o.config.kind != DenseOptimizerKind::sgd;
  for (const char* const key : {"beta1", "beta2", "epsilon", "adam_starts_at_t2"})
    f.read_if(is_adam, key, "with kind = \"adam\" or \"adamw\"");
  f.read_if(!is_adam, "momentum", "with kind = \"sgd\"");
}

void describe(ConfigFields& f, SparseOptimizerSection& o) {
  f.choice("kind", o.kind, kRowOptimizers, "of the embedding rows' optimizer");
  f.field("learning_rate", o.learning_rate, "base rate", rule::at_least(0));
  f.field("epsilon", o.epsilon, "rowwise_adagrad, adagrad, adam, adamw", rule::positive());
  f.field("beta1", o.beta1, "adam, adamw", rule::between(0, 0.99999));
  f.field("beta2", o.beta2, "adam, adamw", rule::between(0, 0.9999999));
  f.field(
      "weight_decay", o.weight_decay,
      "adamw: an update first multiplies the row by 1 - rate x weight_decay; rows without a gradient keep "
      "their values",
      rule::at_least(0));
}

void describe(ConfigFields& f, RanksSection& o) {
  f.field("timeout", o.timeout,
          "seconds that a rank waits for another one that makes no progress; then all end",
          rule::between(1, 1e6));
  f.choice("pipeline", o.pipeline, kPipelines,
           "beside a step, for the next one's rows that other ranks have: nothing, ids are sent, or rows are "
           "sent too, and again if the step changes them; the results have the same bits");
  f.choice(
      "gpu_messages", o.gpu_messages, kGpuMessages,
      "between the GPUs of several ranks: through NCCL, or through the memory of the host, which is slow");
  f.field(
      "overlap", o.overlap,
      "dense gradients are summed over the ranks while the backward pass computes others; false: after it, "
      "to compare; the results have the same bits");
  f.field(
      "shard_optimizer", o.shard_optimizer,
      "each rank updates a part of the dense parameters and has the optimizer's state of that part alone; "
      "the results have the same bits");
  f.field("tensor", o.tensor,
          "ranks that share the heads of the HSTU layers; divides the number of ranks and model.heads; for "
          "samples that do not fit one GPU: 1 is faster",
          rule::between(1, 1 << 16));
  f.field(
      "context", o.context,
      "ranks that share the tokens of long samples in the layers; divides the number of ranks; 0: chosen by "
      "a plan at the start of the run",
      rule::at_least(0));
  f.field("context_above", o.context_above,
          "samples with more tokens than this are long; the others are computed by one rank each",
          rule::at_least(1));
}

void describe(ConfigFields& f, ScheduleSection& o) {
  f.field("warmup_steps", o.warmup_steps, "rates rise linearly over this many steps", rule::at_least(0));
  f.field("warmup_start", o.warmup_start, "rate where they begin", rule::at_least(0));
  f.field("warmup_from_zero_step", o.warmup_from_zero_step,
          "step 0 has the starting rate itself (DLRMv4 reference)");
  f.choice("decay", o.decay, kDecays, "after the warm-up");
  f.field("decay_steps", o.decay_steps, "step at which the decay ends", rule::at_least(0));
  f.field("final_fraction", o.final_fraction, "of the base rate, after the decay", rule::between(0, 1));
  for (const char* const key : {"warmup_start", "warmup_from_zero_step"})
    f.read_if(o.warmup_steps > 0, key, "with warmup_steps > 0");
  for (const char* const key : {"decay_steps", "final_fraction"})
    f.read_if(o.decay != Decay::none, key, "with a decay other than \"none\"");
}

void describe(ConfigFields& f, EvaluationSection& o) {
  f.field("holdout_windows", o.holdout.windows, "hold out this many windows", rule::at_least(0));
  f.field("holdout_first_window", o.holdout.first_window, "the first of them; -1: the last ones",
          rule::at_least(-1));
  f.field("holdout_fraction", o.holdout.fraction, "hold out the latest samples, this fraction",
          rule::between(0, 0.99));
  f.field("holdout_seconds", o.holdout.seconds, "hold out the last seconds", rule::at_least(0));
  f.field("holdout_last", o.holdout.last,
          "hold out the last n samples of each user, all of one who has no more: 1 leaves one out",
          rule::at_least(0));
  f.choice(
      "split", o.holdout.split, kLastSplits,
      "hold out the end of each user: valid: the last sample is the test (hstu eval --split test), and the "
      "one before it is scored during training; paper: the last one is scored during training; \"\": not");
  f.field("train_user_fraction", o.holdout.train_user_fraction, "users that train; the others are held out",
          rule::between(0, 1));
  f.field("split_salt", o.holdout.split_salt, "of the users' split hash");
  f.field("batch_size", o.batch_size, "samples scored at once; 0: as in training", rule::at_least(0));
  f.field("at_start", o.at_start, "evaluate before the first step");
  f.field("next_window", o.next_window,
          "instead of a hold-out: score each window just before the run trains it for the first time");
  f.field("every_windows", o.every_windows, "evaluate after this many training windows; 0: not",
          rule::at_least(0));
  f.field("every_data_fraction", o.every_data_fraction,
          "evaluate after this fraction of an epoch's steps, rounded up to steps; 0: not",
          rule::between(0, 1));
  f.field("skip_until_fraction", o.skip_until_fraction,
          "no evaluation by either cadence before this fraction of an epoch's steps", rule::between(0, 1));
  f.field("target_auc", o.target_auc,
          "stop when an evaluation reaches this AUC, or of a model over a catalogue this NDCG@10; 0: never",
          rule::between(0, 1));
  f.field("patience", o.patience,
          "stop after this many evaluations in a row that do not improve checkpoint.best; 0: never",
          rule::at_least(0));
  f.field("min_delta", o.min_delta, "patience: a smaller improvement of the metric is none",
          rule::at_least(0));
  f.field("negatives", o.negatives.per_positive,
          "items drawn for each positive sample, always the same, and scored with it; 0: none",
          rule::between(0, kMostOfEvaluation));
  f.choice("negatives_from", o.negatives.from, kEvaluationNegatives, "as data.negatives.from, or all items");
  f.field("max_samples", o.max_samples, "score the first samples only; 0: all", rule::at_least(0));
  f.field("ranking_k", o.ranking_k,
          "NDCG and recall at these places, and MRR, of lists of held-out samples; []: not",
          rule::distinct(rule::between(1, 1e6)));
  f.field("ranking_list", o.ranking_list,
          "what a list contains: user: a user's samples; time: those of them with one time; sample: a sample "
          "and its negatives; or a context column of the dataset, such as a request or session: those with "
          "one value; \"\": sample with evaluation.negatives, else user");
  f.field("weighted", o.weighted, "metrics and baselines count samples with the weights of the dataset");
  f.read_if(o.holdout.train_user_fraction < 1, "split_salt", "with train_user_fraction < 1");
  f.read_if(o.patience > 0, "min_delta", "with patience > 0");
  f.read_if(o.negatives.per_positive > 0, "negatives_from", "with negatives > 0");
  f.read_if(!o.ranking_k.empty(), "ranking_list", "with ranking_k");
}

namespace {

// Whether some table's rows have one of these optimizers.
bool any_table_has(const RunOptions& o, std::initializer_list<RowOptimizerKind> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](RowOptimizerKind kind) {
    const std::string word(word_of(kRowOptimizers, kind));
    return kind == o.sparse.kind ||
           std::any_of(o.tables.by_name.begin(), o.tables.by_name.end(),
                       [&](const auto& table) { return table.second.optimizer == word; });
  });
}

void check_sparse_keys(ConfigFields& f, const RunOptions& o) {
  using enum RowOptimizerKind;
  f.read_if(any_table_has(o, {rowwise_adagrad, adagrad, adam, adamw}), "sparse_optimizer.epsilon",
            "by every kind but \"sgd\"");
  for (const char* const key : {"sparse_optimizer.beta1", "sparse_optimizer.beta2"})
    f.read_if(any_table_has(o, {adam, adamw}), key, "with kind = \"adam\" or \"adamw\"");
  f.read_if(o.sparse.weight_decay == 0 || any_table_has(o, {adamw}), "sparse_optimizer.weight_decay",
            "with kind = \"adamw\"");
}

struct IdsSection {
  OnBadId& on_bad;
};

void describe(ConfigFields& f, IdsSection& o) {
  f.choice("on_bad", o.on_bad, kOnBadId,
           "an id outside its table: count it and read zeros, or stop with an error");
}

}  // namespace

void describe(ConfigFields& f, RunOptions& o) {
  f.field("device", o.device,
          "where the model computes: host, cuda, cuda:N, or auto: the first GPU, if there is one. A run "
          "keeps what "
          "auto chose");
  f.choice("precision", o.precision, kPrecisions,
           "of what is computed for every token; parameters and sums are fp32. bf16 needs a GPU");
  f.choice("attention", o.attention, kAttentionChoices,
           "kernels of attention on a GPU: auto takes the fastest that compute the model; another word is "
           "refused where those do not");
  f.field("device_memory", o.device_memory,
          "of the device that trains, the most that a rank may use, such as \"20GiB\"; \"\": all",
          rule::parsed_by([](const std::string& text) { parse_bytes(text); }));
  f.field("deterministic", o.deterministic,
          "two runs have the same bytes. On a GPU false saves up to a tenth of attention's backward pass");
  f.field("seed", o.seed,
          "of initial values, dropout and shuffles; \"random\": drawn, and recorded in the run",
          rule::or_random());
  f.field("mlperf", o.mlperf, "write RUN/mlperf/result_0.txt, the log of MLPerf Training (docs/mlperf.md)");
  f.section("data", o.data, "the prepared dataset and the samples made of it");
  f.section("features", o.features, "ids with embeddings");
  f.section("model", o.model, "the ranking model and its sizes");
  f.read_if(o.model.kind().reads_actions, "features.actions", "by another model.kind");
  f.read_if(o.model.kind().reads_items, "features.item_rows", "by another model.kind");
  f.section("training", o.training, "the loop over the data");
  f.section("dense_optimizer", o.dense, "of weights and biases");
  f.section("sparse_optimizer", o.sparse, "of embedding rows");
  f.section("tables", o.tables, "the embedding tables");
  check_sparse_keys(f, o);
  f.section("ranks", o.ranks, "the processes that share a run");
  f.section("schedule", o.schedule, "of both learning rates");
  f.section("evaluation", o.evaluation, "what is held out and when it is scored");
  f.read_if(!o.model.kind().samples_are_users, "evaluation.ranking_list", "by another model.kind");
  f.section("checkpoint", o.checkpoint,
            "when to save; the end of a run and an interruption save in any case");
  f.section("store", o.store, "the object store that checkpoint.publish names");
  f.section("warm_start", o.warm_start, "what a run begins with");
  f.section("metrics", o.metrics, "what is reported");
  f.section("submission", o.submission, "with mlperf: what the log says of its submitter");
  IdsSection ids{o.on_bad_id};
  f.section("ids", ids, "what to do with ids outside their tables");
}

std::int64_t evaluation_batch_size(const RunOptions& options) {
  return options.evaluation.batch_size > 0 ? options.evaluation.batch_size : options.training.batch_size;
}

TaskRequest task_request(const RunOptions& options) {
  return {options.seed, options.features, options.data.options, options.model.options(),
          options.evaluation.negatives};
}

}  // namespace hstu
