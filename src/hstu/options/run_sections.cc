// [checkpoint], [store], [warm_start] and [metrics]: what a run keeps, begins with and reports.
#include "hstu/kinds/kinds.h"
#include "hstu/metrics/metric_spec.h"
#include "hstu/options/options.h"

namespace hstu {
namespace {

// "auc, ne, or with evaluation.ranking_k mrr, ndcg@K": those of all kinds that can be the best.
std::string names_of_metrics() {
  std::vector<MetricSpecs> of_kinds;
  for (const Kind& kind : kinds()) of_kinds.push_back(kind.metrics);
  std::vector<std::string> plain, of_lists;
  for (const MetricSpec& metric : metrics_of_all(of_kinds)) {
    if (metric.is_plain()) plain.emplace_back(metric.name);
    if (metric.of_lists) of_lists.push_back(std::string(metric.name) + (metric.has_cutoff ? "@K" : ""));
  }
  std::string text = fmt::format("{}", fmt::join(plain, ", "));
  if (!of_lists.empty()) text += fmt::format(", or with evaluation.ranking_k {}", fmt::join(of_lists, ", "));
  return text;
}

}  // namespace

void describe(ConfigFields& f, CheckpointSection& o) {
  f.field("every_window_batches", o.every_window_batches,
          "save after this many batches, counted from 0 in each window; 0: not", rule::at_least(0));
  f.field("every_steps", o.every_steps, "save after this many steps; 0: not", rule::at_least(0));
  f.field("every_seconds", o.every_seconds,
          "save when the last save is this long ago, whatever moved the system's clock; 0: not",
          rule::between(0, 1e9));
  f.field("every_windows", o.every_windows, "save at the end of every so many training windows; 0: not",
          rule::at_least(0));
  f.field("keep", o.keep, "newest checkpoints to keep; 0: all", rule::at_least(0));
  f.field("best", o.best,
          "keep the checkpoint of the best evaluation too, by this metric: " + names_of_metrics() +
              "; \"\": not");
  f.field(
      "incremental", o.incremental,
      "save only those rows of tables that changed since the last whole checkpoint, which is kept as long "
      "as one needs it");
  f.field("full_every", o.full_every, "incremental: every so many saves are whole", rule::between(1, 1e6));
  f.field("final", o.final,
          "save at the end of the run; false, with every cadence 0 and no best: the run saves nothing");
  f.field(
      "publish", o.publish,
      "folder or s3://BUCKET/FOLDER in which every checkpoint is published for hstu serve --watch, as hstu "
      "publish does; \"\": not");
  f.read_if(o.incremental, "full_every", "with incremental = true");
}

void describe(ConfigFields& f, StoreOptions& o) {
  f.field("endpoint", o.endpoint,
          "http://HOST:PORT or https://HOST of a store that is not AWS; \"\": that of the region");
  f.field("region", o.region, "of the bucket");
  f.field("credentials", o.credentials, "file of keys, as ~/.aws/credentials; \"\": requests are not signed");
  f.field("profile", o.profile, "section of that file");
  f.field("part_bytes", o.part_bytes, "longer files are sent in parts of so many bytes",
          rule::between(1, 5368709120));
}

void describe(ConfigFields& f, WarmStartSection& o) {
  f.field("checkpoint", o.checkpoint,
          "begin with the parameters and rows of this checkpoint; \"\": from scratch");
  f.field("name_map", o.name_map, "TOML file of names that differ there; \"\": none do");
  f.field("optimizer", o.optimizer,
          "also take the states of its optimizers, where they are of the same kind");
}

void describe(ConfigFields& f, MetricsSection& o) {
  f.field("every_steps", o.every_steps, "steps between two train lines of metrics.jsonl", rule::at_least(1));
  f.field("window_samples", o.window_samples,
          "latest training samples that the window metrics of a train line are over", rule::at_least(1));
  f.field("tensorboard", o.tensorboard, "write the same numbers as TensorBoard event files beside it");
  f.field("attention_every", o.attention_every,
          "steps between two measured ones, whose attention a train line has by layer; 0: none",
          rule::at_least(0));
  f.field("balance_window", o.balance_window,
          "latest steps over which a train line has the mean balance of ranks, before and after; 0: none",
          rule::at_least(0));
  f.field("memory_trim", o.memory_trim,
          "a pool gives back what it holds beyond what is used when that is more than this share of the "
          "device's memory; train lines then have the memory of every rank; 0: not",
          rule::between(0, 1));
}

}  // namespace hstu
