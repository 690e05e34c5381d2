#include "hstu/mlperf/check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/mlperf/grid.h"
#include "hstu/mlperf/rule_engine.h"

namespace hstu {
namespace {

using Count = KeyRule::Count;
using Check = std::pair<Condition, std::string>;

constexpr double kClosedInitMinutes = 30, kOpenInitMinutes = 240;

bool has(const MllogLine& line, std::string_view member) {
  return line.metadata.is_object() && line.metadata.contains(member);
}
std::optional<double> member(const MllogLine& line, const char* name) {
  return has(line, name) ? as_number(line.metadata[name]) : std::nullopt;
}

Check not_empty() {
  return {[](const MllogLine& line, const RuleState&) { return line.value != Json(""); }, "expected a text"};
}
Check one_of(std::vector<std::string> words) {
  std::string expected = fmt::format("expected one of {}", fmt::join(words, ", "));
  return {[words = std::move(words)](const MllogLine& line, const RuleState&) {
            return std::ranges::any_of(words, [&](const std::string& word) { return line.value == word; });
          },
          std::move(expected)};
}
Check equals(double expected) {
  return {[=](const MllogLine& line, const RuleState&) { return as_number(line.value) == expected; },
          fmt::format("expected {}", expected)};
}
Check integer_from(double low) {
  return {[=](const MllogLine& line, const RuleState&) {
            return is_integral(line.value) && *as_number(line.value) >= low;
          },
          fmt::format("expected an integer of at least {}", low)};
}
Check integer_above_zero() {
  return {[](const MllogLine& line, const RuleState&) {
            return is_integral(line.value) && *as_number(line.value) > 0;
          },
          "expected an integer above 0"};
}
Check in_band() {
  return {[](const MllogLine& line, const RuleState& s) {
            const auto rate = as_number(line.value);
            return rate && RateBand{s.band.first, s.band.second}.has(*rate);
          },
          "expected a rate from half to one and a half of 1e-6 global_batch_size / 8192, in a line behind "
          "global_batch_size"};
}
Check is_auc() {
  return {[](const MllogLine& line, const RuleState&) {
            const auto auc = as_number(line.value);
            return auc && 0 <= *auc && *auc <= 1;
          },
          "expected an AUC from 0 to 1"};
}
Check reaches_target() {
  return {[](const MllogLine& line, const RuleState&) {
            return as_number(line.value).value_or(0) >= kBenchmarkTarget;
          },
          fmt::format("no evaluation reached {}", kBenchmarkTarget)};
}
Check counts_of(const char* other) {
  return {
      [=](const MllogLine& line, const RuleState&) { return has(line, other) || has(line, "samples_count"); },
      fmt::format("expected samples_count or {} in its metadata", other)};
}
Check when(bool RuleState::*member, bool expected, const char* words) {
  return {[=](const MllogLine&, const RuleState& s) { return s.*member == expected; }, words};
}

void take_batch(const MllogLine& line, RuleState& state) {
  state.batch = as_number(line.value);
  if (!state.batch || !(*state.batch > 0)) return;
  const GridSamples grid = benchmark_grid_samples(*state.batch);
  state.interval = grid.interval, state.first_evaluation = grid.first;
  const RateBand band = rate_band(*state.batch);
  state.band = {band.low, band.high};
}

Check block_counts() {
  return {
      [](const MllogLine& line, const RuleState&) {
        if (!has(line, "epoch_count") && !has(line, "samples_count")) return false;
        if (has(line, "epoch_count") && !(has(line, "first_epoch_num") && member(line, "epoch_count") > 0.0))
          return false;
        return !has(line, "samples_count") || member(line, "samples_count") >= 0.0;
      },
      "expected samples_count of at least 0, or epoch_count above 0 with first_epoch_num, in its metadata"};
}

const Rules& common_rules() {
  const auto precision = one_of({"fp64", "fp32", "tf32", "fp16", "fp8", "mxfp6", "nvfp4", "mxfp4", "bfloat16",
                                 "Graphcore FLOAT 16.16", "int8", "uint8", "int4", "uint4"});
  const auto after_run_start = when(&RuleState::run_started, true, "expected behind run_start");
  const auto before_run_start = when(&RuleState::run_started, false, "expected in front of run_start");
  static const Rules rules = {
      {"submission_org", Count::one, {not_empty()}},
      {"submission_platform", Count::one, {not_empty()}},
      {"submission_division",
       Count::one,
       {one_of({"closed", "open"})},
       [](const MllogLine& line, RuleState& s) {
         s.next = line.value.is_string() ? line.value.get<std::string>() : "";
         s.init_limit_minutes = s.next == "open" ? kOpenInitMinutes : kClosedInitMinutes;
       }},
      {"cache_clear", Count::some},
      {"init_start",
       Count::some,
       {when(&RuleState::init_stopped, false, "expected in front of init_stop"), before_run_start},
       [](const MllogLine& line, RuleState& s) {
         s.init_started = true, s.first_init_ms = std::min(s.first_init_ms, line.time_ms);
       }},
      {"init_stop",
       Count::one,
       {when(&RuleState::init_started, true, "expected behind init_start"),
        before_run_start,
        {[](const MllogLine& line, const RuleState& s) {
           return line.time_ms - s.first_init_ms < s.init_limit_minutes * 60e3;
         },
         "initialisation took too long: less than 30 minutes (open: 240), and submission_division in front "
         "of it"}},
       [](const MllogLine&, RuleState& s) { s.init_stopped = true; }},
      {"run_start",
       Count::one,
       {when(&RuleState::init_stopped, true, "expected behind init_stop")},
       [](const MllogLine&, RuleState& s) { s.run_started = true; }},
      {"run_stop",
       Count::one,
       {after_run_start,
        {[](const MllogLine& line, const RuleState&) { return has(line, "status"); },
         "expected status in its metadata"}}},
      {"block_start", Count::any, {after_run_start, block_counts()}, {}, {"epoch_start"}},
      {"block_stop", Count::any, {counts_of("first_epoch_num")}, {}, {"epoch_stop"}},
      {"epoch_start", Count::any, {counts_of("epoch_num")}, {}, {"block_start"}},
      {"epoch_stop", Count::any, {counts_of("epoch_num")}, {}, {"block_stop"}},
      {"eval_start", Count::any, {counts_of("epoch_num")}, {}, {"block_start"}},
      {"eval_stop", Count::any, {counts_of("epoch_num")}, {}, {"block_stop"}},
      {"eval_accuracy", Count::some, {counts_of("epoch_num")}},
      {"train_samples", Count::one, {not_empty()}},
      {"eval_samples", Count::one, {not_empty()}},
      {"lowest_numerical_precision_in_linear", Count::one, {precision}},
      {"lowest_numerical_precision_in_attn", Count::one, {precision}},
      {"lowest_numerical_precision_in_comm", Count::one, {precision}},
      {"tensor_parallelism", Count::one, {integer_from(1)}},
      {"pipeline_parallelism", Count::one, {integer_from(1)}},
      {"context_parallelism", Count::one, {integer_from(1)}},
      {"expert_parallelism", Count::one, {integer_from(1)}},
      {"micro_batch_size", Count::one, {integer_from(1)}},
      {"config_filename", Count::one, {not_empty()}}};
  return rules;
}

KeyRule benchmark_rule() {
  return {
      "submission_benchmark", Count::one, {one_of({kBenchmark})}, [](const MllogLine& line, RuleState& s) {
        s.next = line.value.is_string() ? line.value.get<std::string>() : "";
      }};
}

const Rules& division_rules(bool closed) {
  static const Rules open_rules = {benchmark_rule()};
  static const Rules closed_rules = {
      benchmark_rule(),
      {"gradient_accumulation_steps",
       Count::one,
       {{[](const MllogLine& line, const RuleState&) { return as_number(line.value) > 0.0; },
         "expected more than 0"}}}};
  return closed ? closed_rules : open_rules;
}

const Rules& closed_dlrmv4_rules() {
  static const Rules rules = {
      {"global_batch_size", Count::one, {integer_above_zero()}, take_batch},
      {"train_samples", Count::one, {equals(static_cast<double>(kBenchmarkTrainSamples))}},
      {"eval_samples", Count::one, {equals(static_cast<double>(kBenchmarkEvaluationSamples))}},
      {"max_sequence_length", Count::one, {equals(4096)}},
      {"opt_name", Count::one, {one_of({"Adam"})}},
      {"opt_base_learning_rate",
       Count::one,
       {in_band()},
       [](const MllogLine& line, RuleState& s) { s.rate = as_number(line.value); }},
      {"opt_adam_beta_1", Count::one, {equals(0.95)}},
      {"opt_adam_beta_2", Count::one, {equals(0.999)}},
      {"opt_adam_epsilon", Count::one, {equals(1e-8)}},
      {"opt_weight_decay", Count::one, {equals(0)}},
      {"opt_gradient_clip_norm", Count::one, {equals(1)}},
      {"opt_sparse_name", Count::one, {one_of({"RowWiseAdagrad"})}},
      {"opt_sparse_base_learning_rate",
       Count::one,
       {{[](const MllogLine& line, const RuleState& s) { return s.rate && as_number(line.value) == s.rate; },
         "expected opt_base_learning_rate, in a line behind it"}}},
      {"opt_learning_rate_warmup_steps", Count::one, {equals(24000)}},
      {"opt_learning_rate_warmup_start_lr", Count::one, {equals(0)}},
      {"eval_every_data_pct", Count::one, {equals(kEvaluationFraction)}},
      {"eval_accuracy",
       Count::some,
       {{[](const MllogLine& line, const RuleState& s) {
           const auto samples = member(line, "samples_count");
           return samples && s.interval && std::fmod(*samples, *s.interval) == 0;
         },
         "expected samples_count at a point of the grid, behind global_batch_size"},
        is_auc()},
       {},
       {},
       {[](const MllogLine& line, const RuleState& s) {
          const auto samples = member(line, "samples_count");
          return samples && s.first_evaluation && std::trunc(*samples) == *s.first_evaluation;
        },
        "the first evaluation is not at the first point of the grid"},
       reaches_target()}};
  return rules;
}

const Rules& open_dlrmv4_rules() {
  static const Rules rules = {
      {"global_batch_size", Count::one, {integer_above_zero()}, take_batch},
      {"gradient_accumulation_steps", Count::one, {integer_above_zero()}},
      {"train_samples", Count::one, {equals(static_cast<double>(kBenchmarkTrainSamples))}},
      {"eval_samples", Count::one, {equals(static_cast<double>(kBenchmarkEvaluationSamples))}},
      {"max_sequence_length", Count::one, {integer_above_zero()}},
      {"opt_name"},
      {"opt_base_learning_rate", Count::one, {in_band()}},
      {"opt_adam_beta_1"},
      {"opt_adam_beta_2"},
      {"opt_adam_epsilon"},
      {"opt_weight_decay"},
      {"opt_gradient_clip_norm"},
      {"opt_sparse_name"},
      {"opt_sparse_base_learning_rate", Count::one, {in_band()}},
      {"opt_learning_rate_warmup_steps"},
      {"opt_learning_rate_warmup_start_lr"},
      {"eval_every_data_pct"},
      {"eval_accuracy",
       Count::some,
       {{[](const MllogLine& line, const RuleState&) { return has(line, "samples_count"); },
         "expected samples_count in its metadata"},
        is_auc()},
       {},
       {},
       {},
       reaches_target()}};
  return rules;
}

}  // namespace

LogVerdict check_mllog(const MllogFile& log) {
  RuleEngine engine(log);
  const std::string division = engine.apply(common_rules()).next;
  if (division == "closed" || division == "open") {
    const bool closed = division == "closed";
    if (engine.apply(division_rules(closed)).next == kBenchmark)
      engine.apply(closed ? closed_dlrmv4_rules() : open_dlrmv4_rules());
  }
  return {engine.errors(), engine.warnings()};
}

LogVerdict check_mllog(const Path& file) {
  return check_mllog(read_mllog(file));
}

LoggedRun logged_run(const MllogFile& log) {
  LoggedRun run;
  std::optional<double> init, start;
  for (const MllogLine& line : log.lines) {
    if (line.key == "init_start" && !init) init = line.time_ms;
    if (line.key == "init_stop" && init) run.init_seconds = (line.time_ms - *init) / 1000;
    if (line.key == "run_start" && !start) start = line.time_ms;
    if (line.key == "global_batch_size") run.batch = as_number(line.value);
    if (line.key == "submission_division" && line.value.is_string())
      run.division = line.value.get<std::string>();
    if (line.key == "eval_accuracy" && run.status.empty())
      run.samples = member(line, "samples_count"), run.auc = as_number(line.value);
    if (line.key != "run_stop" || !run.status.empty()) continue;
    run.status = has(line, "status") && line.metadata["status"].is_string()
                     ? line.metadata["status"].get<std::string>()
                     : "without a status";
    if (start) run.run_seconds = (line.time_ms - *start) / 1000;
  }
  return run;
}

}  // namespace hstu
