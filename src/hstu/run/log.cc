#include "hstu/run/log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "hstu/base/terminal.h"
#include "hstu/base/threads.h"
#include "hstu/device/gpu_condition.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

Json to_json(const LearnerCounts::ByName& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

// The work of each rank over the mean, to four places.
Json over_mean(const std::vector<std::int64_t>& work) {
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  Json shares = Json::array();
  for (const std::int64_t of_rank : work) {
    const double share =
        all > 0 ? static_cast<double>(of_rank) * static_cast<double>(work.size()) / all : 1.0;
    shares.push_back(std::round(share * 1e4) / 1e4);
  }
  return shares;
}

void add_work(Json& line, const DivisionFigures& division) {
  if (division.work.empty()) return;
  line["work_max_over_mean"] = imbalance(division.work);
  line["work_max_over_mean_of_slices"] = imbalance(division.work_of_slices);
  line["work_of_ranks"] = over_mean(division.work);
  line["work_of_ranks_in_slices"] = over_mean(division.work_of_slices);
}

// The maximum size of each table.
Json table_limits(const std::vector<RunFacts::Table>& tables) {
  Json json = Json::object();
  for (const RunFacts::Table& table : tables) json[table.name] = {{"rows", table.rows}, {"dim", table.dim}};
  return json;
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RunLog::RunLog(const Path& path, RunFacts facts, const MetricsSection& options, std::int64_t samples,
               std::int64_t total_samples, double training_seconds)
    : facts_(std::move(facts)),
      lines_(path),
      start_s_(wall_clock()),
      total_samples_(total_samples),
      progress_("train", total_samples, "samples", samples),
      throughput_(facts_.peak_flops),
      balance_(options.balance_window),
      training_ms_(1000 * training_seconds) {
  const std::vector<Json> lines = read_json_lines(path);
  if (!lines.empty()) start_s_ = std::max(start_s_, lines.back().value("time_s", 0.0));
  if (options.tensorboard) tensorboard_.emplace(path.parent_path(), lines);
}

double RunLog::seconds_since_1970() const {
  return std::round((start_s_ + seconds_since(start_)) * 1000) / 1000;
}

void RunLog::write(Json line) {
  line["time_s"] = seconds_since_1970();
  if (tensorboard_) tensorboard_->write(line);
  const bool waited = std::exchange(waits_, false);
  waiting_.push_back(std::move(line));
  try {
    for (; !waiting_.empty(); waiting_.pop_front()) lines_.write(waiting_.front());
    if (waited) print_note("\nmetrics.jsonl can be written again; no line is missing\n");
  } catch (const Error& error) {
    waits_ = true;
    if (!waited) print_note("\nWARNING: {}. The run continues and keeps its lines in memory\n", error.what());
  }
}

void RunLog::sync() {
  check(!waits_, "metrics.jsonl cannot be written");
  lines_.sync();
}

void RunLog::begin() {
  Json line{{"event", "run"},
            {"program", "hstu"},
            {"version", facts_.version},
            {"config_hash", config_hash(facts_.config)},
            {"dataset", facts_.dataset},
            {"seed", facts_.seed},
            {"device", facts_.device},
            {"attention", facts_.attention},
            {"threads", threads()},
            {"tables", table_limits(facts_.tables)},
            {"dense_parameters", facts_.dense_parameters},
            {"memory_plan_mib", static_cast<double>(facts_.planned_memory) / (1 << 20)},
            {"train_samples", facts_.train_samples},
            {"eval_samples", facts_.evaluation_samples},
            {"machine", to_json(this_machine())},
            {"warm_start", facts_.warm_start}};
  write(with_gpus(std::move(line)));
}

// Clocks, power limits and what holds GPUs back, where a run trains on one: its times depend on them.
Json RunLog::with_gpus(Json line) const {
  if (facts_.device != "host") line["gpus_now"] = report_gpus();
  return line;
}

void RunLog::resume(const RunState& state, const std::vector<ConfigDifference>& changed,
                    const std::optional<DataGrowth>& growth, bool others) {
  Json keys = Json::object();
  for (const ConfigDifference& d : changed) keys[d.key] = {{"before", d.before}, {"after", d.after}};
  Json line{{"event", "resume"},        {"step", state.step},
            {"samples", state.samples}, {"version", facts_.version},
            {"device", facts_.device},  {"threads", threads()},
            {"changed", keys},          {"machine", to_json(this_machine())}};
  if (others) line["evaluations"] = "of other samples";
  if (growth) line["data"] = {{"from", growth->from}, {"to", growth->to}, {"samples_left", growth->samples}};
  write(with_gpus(std::move(line)));
}

void RunLog::step(const StepResult& result, const StepTime& time, RunState& state,
                  const RunningMetrics& metrics, const std::optional<LearnerCounts>& counts) {
  throughput_.add(result, time.step_ms, time.wait_ms);
  balance_.add(result.division);
  training_ms_ += time.step_ms + time.wait_ms;
  state.loss_sum += result.loss;
  ++state.loss_steps;
  const double loss = state.loss_sum / static_cast<double>(state.loss_steps);
  progress_.advance_to(state.samples, fmt::format("step {}, window {}, loss {:.4f}{}", state.step,
                                                  state.next.window, loss, last_headline_));
  if (!counts) return;
  Json line{{"event", "train"},
            {"step", state.step},
            {"window", state.next.window},
            {"samples", state.samples},
            {"loss", loss},
            {"gradient_norm", result.gradient_norm},
            {"lr_dense", result.lr_dense},
            {"lr_sparse", result.lr_sparse}};
  line.update(hstu::to_json(metrics.training()));
  add_work(line, result.division);
  if (const Json balance = balance_.json(); !balance.is_null()) line["balance"] = balance;
  if (!counts->memory.is_null()) line["memory"] = counts->memory;
  if (!counts->attention.is_null()) line["attention"] = counts->attention;
  line["table_rows"] = to_json(counts->table_rows);
  if (!counts->tables.empty()) line["tables"] = counts->tables;
  if (!counts->caches.empty()) line["caches"] = counts->caches;
  line["bad_ids"] = to_json(counts->bad_ids);
  if (counts->beyond_wire > 0) line["beyond_wire"] = counts->beyond_wire;
  throughput_.move_to(line, total_samples_ - state.samples);
  write(std::move(line));
  state.loss_sum = 0;
  state.loss_steps = 0;
}

void RunLog::evaluation(const EvaluationResult& result, const RunState& state,
                        const RunningMetrics& metrics) {
  Json line{
      {"event", "eval"}, {"step", state.step}, {"window", state.next.window}, {"samples", state.samples}};
  line.update(hstu::to_json(result, facts_.metrics));
  line.update(hstu::to_json(metrics.evaluations()));
  if (!state.best.metric.empty()) line["best"] = to_json(state.best);
  line["eval_s"] = result.seconds;
  line["data_wait_ms"] = result.wait_ms;
  write(std::move(line));
  if (facts_.metrics.empty()) return;
  const MetricSpec& headline = facts_.metrics.front();
  if (const auto value = result.find(headline.name))
    last_headline_ = fmt::format(", {} {:.4f}", headline.title, *value);
}

void RunLog::checkpoint(const RunState& state, const std::string& reason, double save_seconds) {
  write({{"event", "checkpoint"},
         {"step", state.step},
         {"window", state.next.window},
         {"batch", state.next.batch},
         {"samples", state.samples},
         {"reason", reason},
         {"save_s", save_seconds},
         {"training_s", training_seconds()}});
  if (!waiting_.empty()) waiting_.pop_back();  // else it could be logged later without its checkpoint
  sync();
}

void RunLog::checkpoint_failed(const RunState& state, const std::string& reason, const std::string& error) {
  print_note("\nWARNING: the save of step {} failed: {}. Earlier checkpoints are unchanged\n", state.step,
             error);
  write({{"event", "checkpoint_failed"}, {"step", state.step}, {"reason", reason}, {"error", error}});
}

void RunLog::end(const std::string& reason, const RunState& state) {
  progress_.finish(reason);
  write({{"event", "end"},
         {"reason", reason},
         {"step", state.step},
         {"samples", state.samples},
         {"best", to_json(state.best)},
         {"training_s", training_seconds()}});
  sync();
}

}  // namespace hstu
