#include "hstu/mlperf/submission_facts.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/base/text.h"
#include "hstu/config/config_difference.h"
#include "hstu/mlperf/closed_values.h"
#include "hstu/mlperf/grid.h"
#include "hstu/task/kind.h"

namespace hstu {
namespace {

// The official RCP reader looks for these anywhere in a line, not in its key alone.
constexpr std::string_view kReservedWords[] = {"global_batch_size", "submission_benchmark", "eval_accuracy",
                                               "eval_error", "run_stop"};

class Refusals {
 public:
  template <typename... Args>
  void add(bool is_wrong, fmt::format_string<Args...> text, Args&&... args) {
    if (is_wrong) text_ += "\n  " + fmt::format(text, std::forward<Args>(args)...);
  }
  void finish(std::string_view what) const {
    if (!text_.empty()) fail_usage("mlperf = true: {} forbids values of this configuration:{}", what, text_);
  }

 private:
  std::string text_;
};

void refuse_names(const SubmissionSection& o, Refusals& refusals) {
  for (const auto& [key, value] :
       {std::pair("organization", o.organization), std::pair("platform", o.platform)}) {
    const std::string name = fmt::format("submission.{} = \"{}\"", key, value);
    refusals.add(value.empty(), "{}: give it a name", name);
    refusals.add(!is_file_name(value) || value.starts_with(".") || value.starts_with("-") ||
                     value.find(' ') != std::string::npos,
                 "{}: it names a folder: no blank, no slash, no control characters, no dot or dash in front",
                 name);
    for (const std::string_view word : kReservedWords)
      refusals.add(value.find(word) != std::string::npos,
                   "{}: the official tools would take the word {} for a key", name, word);
  }
  refusals.add(o.rules == SubmissionRules::rehearsal && o.organization != "rehearsal",
               "submission.organization = \"{}\": a rehearsal says so: \"rehearsal\"", o.organization);
}

bool chooses_places(const TablesSection& tables) {
  const std::string automatic = word_of(kTableTiers, TableTier::automatic);
  return tables.place == TableTier::automatic || std::ranges::any_of(tables.by_name, [&](const auto& table) {
           return table.second.place == automatic;
         });
}

// What every log needs, whatever it is checked against.
void refuse_form(const RunOptions& o, int ranks, Refusals& refusals) {
  const EvaluationSection& e = o.evaluation;
  refusals.add(
      chooses_places(o.tables),
      "tables.place = \"auto\": it looks into the dataset, which is not open before the clock starts: "
      "name the place");
  refusals.add(
      o.ranks.context == 0,
      "ranks.context = 0: a plan reads the dataset, which is not open before the clock starts: set what hstu "
      "plan chooses");
  refusals.add(!o.training.drop_last,
               "training.drop_last = false: counts of samples are multiples of a batch: true");
  refusals.add(o.training.batch_size % ranks != 0,
               "training.batch_size = {}: micro_batch_size needs a multiple of the {} ranks",
               o.training.batch_size, ranks);
  refusals.add(e.at_start, "evaluation.at_start = true: evaluations are those of the grid: false");
  refusals.add(e.next_window, "evaluation.next_window = true: one hold-out serves the whole run: false");
  refusals.add(e.every_windows > 0, "evaluation.every_windows = {}: evaluations are those of the grid: 0",
               e.every_windows);
  refusals.add(e.every_data_fraction <= 0,
               "evaluation.every_data_fraction = 0: the grid needs its distance: {}", kEvaluationFraction);
  refusals.add(e.target_auc <= 0, "evaluation.target_auc = 0: a run ends at its target: {}",
               kBenchmarkTarget);
  refusals.add(o.model.kind().name != kBenchmark, "model.kind = \"{}\": the benchmark is \"{}\"",
               o.model.kind().name, kBenchmark);
}

// The band of both divisions. closed: the rate of rows is that of the dense part.
void refuse_rates(const RunOptions& o, Refusals& refusals) {
  const std::int64_t batch = o.training.samples_of_step();
  const RateBand band = rate_band(static_cast<double>(batch));
  const double dense = o.dense.learning_rate, sparse = o.sparse.learning_rate;
  refusals.add(!band.has(dense),
               "dense_optimizer.learning_rate = {}: must be, with a batch of {}, from {:.4g} to {:.4g}",
               dense, batch, band.low, band.high);
  const bool closed = o.submission.division == SubmissionDivision::closed;
  refusals.add(closed && sparse != dense,
               "sparse_optimizer.learning_rate = {}: must be dense_optimizer.learning_rate, {}", sparse,
               dense);
  refusals.add(!closed && !band.has(sparse),
               "sparse_optimizer.learning_rate = {}: must be, with a batch of {}, from {:.4g} to "
               "{:.4g}",
               sparse, batch, band.low, band.high);
}

std::map<std::string, std::string, std::less<>> closed_values() {
  std::map<std::string, std::string, std::less<>> values;
  for (const std::string& line : split(std::string(kClosedValues), '\n')) {
    const std::size_t end = line.find(" = ");
    if (end != std::string::npos) values.emplace(line.substr(0, end), line.substr(end + 3));
  }
  return values;
}

// The options with tables that have a place of their own and nothing else.
RunOptions with_plain_tables(RunOptions options) {
  for (auto& [name, section] : options.tables.by_name) {
    TableSection plain;
    plain.place = section.place, plain.device_memory = section.device_memory;
    plain.host_memory = section.host_memory, plain.ranks = section.ranks;
    section = plain;
  }
  return options;
}

// A key of [model] that the list does not know has its default, unless it saves memory alone.
bool is_unknown_to_the_benchmark(const std::string& key) {
  return key.starts_with("features.") || (key.starts_with("model.") && !key.starts_with("model.recompute_"));
}

void refuse_closed(const RunOptions& options, Refusals& refusals) {
  const auto expected = closed_values();
  const ConfigFlattener::Values values = config_values(options), defaults = config_values(RunOptions{});
  for (const auto& [key, value] : values) {
    const auto found = expected.find(key);
    if (found == expected.end())
      refusals.add(is_unknown_to_the_benchmark(key) &&
                       std::ranges::find(defaults, std::pair(key, value)) == defaults.end(),
                   "{} = {}: the benchmark does not have it", key, value);
    else
      refusals.add(value != found->second, "{} = {}: must be {}", key, value, found->second);
  }
  for (const auto& wanted : expected) {
    const bool is_there =
        std::ranges::any_of(values, [&](const auto& of) { return of.first == wanted.first; });
    refusals.add(!is_there, "{} is missing: must be {}", wanted.first, wanted.second);
  }
  for (const ConfigDifference& d : differences(config_values(with_plain_tables(options)), values))
    refusals.add(true, "{} = {}: must be {}", d.key, d.after, d.before);
}

std::string precision_of(Precision precision) {
  return precision == Precision::bf16 ? "bfloat16" : "fp32";
}

// The ranks that share layers: their heads, and the tokens of long samples. One rank shares nothing.
struct LayerRanks {
  std::int64_t tensor = 1, context = 1;

  LayerRanks(const RunOptions& options, int ranks) {
    if (ranks == 1) return;
    tensor = options.ranks.tensor;
    context = std::max<std::int64_t>(1, options.ranks.context);
  }
  std::int64_t all() const { return tensor * context; }
};

// The lowest type on any wire. Sums of dense gradients travel as fp32, tokens of shared layers in the
// precision of the model; one rank sends nothing.
std::string precision_of_messages(const RunOptions& o, int ranks) {
  const auto sends = [&](DType type) {
    return ranks > 1 && (o.tables.wire_rows == type || o.tables.wire_gradients == type);
  };
  const bool sends_tokens = LayerRanks(o, ranks).all() > 1;
  if (sends(DType::bf16) || (sends_tokens && o.precision == Precision::bf16)) return "bfloat16";
  return sends(DType::f16) ? "fp16" : "fp32";
}

std::string name_of(DenseOptimizerKind kind) {
  return kind == DenseOptimizerKind::adam ? "Adam" : word_of(kDenseOptimizers, kind);
}
std::string name_of(RowOptimizerKind kind) {
  return kind == RowOptimizerKind::rowwise_adagrad ? "RowWiseAdagrad" : word_of(kRowOptimizers, kind);
}

std::int64_t max_sequence(const RunOptions& options) {
  for (const auto& [key, value] : config_values(options))
    if (key == "model.max_sequence") return std::stoll(value);
  return 0;
}

// The values that a rehearsal has in its log.
RunOptions as_benchmark(RunOptions o) {
  o.training.batch_size = kRehearsalBatch;
  o.training.accumulate = 1;
  o.dense.learning_rate = o.sparse.learning_rate = kRehearsalRate;
  o.dense.config.kind = DenseOptimizerKind::adam;
  o.dense.config.beta1 = 0.95, o.dense.config.beta2 = 0.999, o.dense.config.epsilon = 1e-8;
  o.dense.config.weight_decay = 0, o.dense.max_gradient_norm = 1;
  o.sparse.kind = RowOptimizerKind::rowwise_adagrad;
  o.schedule.warmup_steps = 24'000, o.schedule.warmup_start = 0;
  o.evaluation.every_data_fraction = kEvaluationFraction;
  return o;
}

}  // namespace

void check_submission(const RunOptions& options, int ranks) {
  const SubmissionSection& submission = options.submission;
  Refusals refusals;
  refuse_names(submission, refusals);
  refuse_form(options, ranks, refusals);
  if (submission.rules == SubmissionRules::v6_1) {
    refuse_rates(options, refusals);
    if (submission.division == SubmissionDivision::closed) refuse_closed(options, refusals);
  }
  refusals.finish(fmt::format("the {} division (submission.rules = \"{}\")",
                              word_of(kSubmissionDivisions, submission.division),
                              word_of(kSubmissionRules, submission.rules)));
}

void check_submitter(const SubmissionSection& submission) {
  Refusals refusals;
  refuse_names(submission, refusals);
  refusals.finish("a submission");
}

SubmissionFacts submission_facts(const RunOptions& options, int ranks) {
  const bool rehearses = options.submission.rules == SubmissionRules::rehearsal;
  const RunOptions o = rehearses ? as_benchmark(options) : options;
  const DenseOptimizerConfig& dense = o.dense.config;
  const std::int64_t longest = rehearses ? 4096 : max_sequence(o);
  const LayerRanks layers(o, ranks);
  SubmissionFacts facts;
  facts.batch = o.training.samples_of_step();
  facts.header = {{"submission_benchmark", kBenchmark},
                  {"submission_org", o.submission.organization},
                  {"submission_division", word_of(kSubmissionDivisions, o.submission.division)},
                  {"submission_platform", o.submission.platform},
                  {"global_batch_size", facts.batch},
                  {"gradient_accumulation_steps", o.training.accumulate},
                  {"micro_batch_size", o.training.batch_size * layers.all() / ranks},
                  {"seed", o.seed},
                  {"config_filename", "config.toml"},
                  {"lowest_numerical_precision_in_linear", precision_of(o.precision)},
                  {"lowest_numerical_precision_in_attn", precision_of(o.precision)},
                  {"lowest_numerical_precision_in_comm", precision_of_messages(o, ranks)},
                  {"tensor_parallelism", layers.tensor},
                  {"pipeline_parallelism", 1},
                  {"context_parallelism", layers.context},
                  {"expert_parallelism", 1},
                  {"max_sequence_length", longest},
                  {"opt_name", name_of(dense.kind)},
                  {"opt_base_learning_rate", o.dense.learning_rate},
                  {"opt_adam_beta_1", dense.beta1},
                  {"opt_adam_beta_2", dense.beta2},
                  {"opt_adam_epsilon", dense.epsilon},
                  {"opt_weight_decay", dense.weight_decay},
                  {"opt_gradient_clip_norm", o.dense.max_gradient_norm},
                  {"opt_learning_rate_warmup_steps", o.schedule.warmup_steps},
                  {"opt_learning_rate_warmup_start_lr", o.schedule.warmup_start},
                  {"opt_sparse_name", name_of(o.sparse.kind)},
                  {"opt_sparse_base_learning_rate", o.sparse.learning_rate},
                  {"eval_every_data_pct", o.evaluation.every_data_fraction}};
  return facts;
}

SubmissionData submission_data(const RunOptions& options, std::int64_t train_samples,
                               std::int64_t evaluation_samples) {
  const EvaluationSection& e = options.evaluation;
  const std::int64_t batch = options.training.samples_of_step();
  const auto benchmark = [](std::int64_t of_step) {
    return SubmissionData{kBenchmarkTrainSamples, kBenchmarkEvaluationSamples, benchmark_grid(of_step)};
  };
  switch (options.submission.rules) {
    case SubmissionRules::rehearsal:
      return benchmark(kRehearsalBatch);
    case SubmissionRules::stand_in:
      return {train_samples, evaluation_samples,
              grid_of(batch, train_samples, e.every_data_fraction, e.skip_until_fraction)};
    case SubmissionRules::v6_1:
      break;
  }
  check(train_samples == kBenchmarkTrainSamples && evaluation_samples == kBenchmarkEvaluationSamples,
        "{} has {} samples to train and {} to score, the benchmark {} and {}: prepare Yambda-5b, whole",
        options.data.path.string(), with_separators(train_samples), with_separators(evaluation_samples),
        with_separators(kBenchmarkTrainSamples), with_separators(kBenchmarkEvaluationSamples));
  return benchmark(batch);
}

}  // namespace hstu
