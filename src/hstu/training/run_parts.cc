#include "hstu/training/run_parts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/embedding/saved_rows.h"
#include "hstu/embedding/table_section.h"
#include "hstu/experiment/learner_without_data.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/objective/list_objective.h"
#include "hstu/optimizer/optimizer_section.h"

namespace hstu {
namespace {

void save(const BadIds& bad_ids, SectionWriter& writer) {
  nlohmann::json counts = nlohmann::json::object();
  for (const BadIds::Feature& feature : bad_ids.features()) {
    if (feature.count == 0) continue;
    counts[feature.name] = {
        {"count", feature.count}, {"first_id", feature.first_id}, {"first_sample", feature.first_sample}};
  }
  writer.describe(std::move(counts));
}

void load(BadIds& bad_ids, const SectionReader& reader) {
  for (const auto& [feature, counted] : reader.description().items()) {
    bad_ids.restore(feature, counted.at("count").get<std::int64_t>(),
                    counted.at("first_id").get<std::int64_t>(),
                    counted.at("first_sample").get<std::string>());
  }
}

// Section "bad_ids": the counts by feature.
Section bad_ids_section(BadIds& bad_ids) {
  return {"bad_ids", [&bad_ids](SectionWriter& writer) { save(bad_ids, writer); },
          [&bad_ids](const SectionReader& reader) { load(bad_ids, reader); }};
}

// Whether the model can learn the items of the dataset.
std::unique_ptr<TaskData> with_known_items(std::unique_ptr<TaskData> data, const RunOptions& options) {
  const Objective& objective = *data->task.objective;
  const std::string source = options.data.path.string();
  if (const std::int64_t rows = options.features.item_rows; objective.retrieval() != nullptr && rows > 0) {
    const std::int64_t largest = data->dataset.manifest().columns.at(kItemFile).max.value_or(0);
    if (largest >= rows)
      fail_usage(
          "features.item_rows = {}: {} has items up to {}, and this kind of model predicts every item: raise "
          "it, or set 0: the table then grows with the data",
          rows, source, largest);
  }
  if (objective.lists() != nullptr) {
    std::vector<std::int64_t> without;
    std::ranges::set_difference(data->catalogue, objective.lists()->items(), std::back_inserter(without));
    if (without.size() == data->catalogue.size())
      fail_usage("no item of {} has codes: name their codes by model.codes, or set model.first_item", source);
    if (!without.empty())
      print_note(
          "WARNING: {} of {} items of {} have no codes, the first is {}: they are zeros in histories, and "
          "neither learnt nor found: give them codes by hstu tokenize --append or, if the ids of the codes "
          "count from elsewhere, set model.first_item\n",
          with_separators(std::ssize(without)), with_separators(std::ssize(data->catalogue)), source,
          without.front());
  }
  return data;
}

}  // namespace

std::unique_ptr<RunningMetrics> running_metrics(const Experiment& experiment) {
  return experiment.learner().objective->running_metrics(experiment.options().metrics.window_samples);
}

std::unique_ptr<Learner> learner_before_data(const RunOptions& options,
                                             const std::optional<Checkpoint>& checkpoint,
                                             Communicator& comm) {
  if (!options.mlperf || checkpoint) return nullptr;
  std::unique_ptr<Learner> learner = learner_without_data(options, comm);
  comm.sum(std::int64_t{0});
  return learner;
}

std::unique_ptr<TaskData> open_data(const RunOptions& options, const std::optional<Checkpoint>& checkpoint) {
  if (!checkpoint) return with_known_items(std::make_unique<TaskData>(options), options);
  std::vector<std::string> earlier = saved_earlier_datasets(*checkpoint);
  const std::string id = saved_dataset(*checkpoint);
  Dataset dataset(options.data.path);
  check_extends(dataset, *checkpoint);
  if (dataset.manifest().id != id) earlier.push_back(id);
  return with_known_items(std::make_unique<TaskData>(options, std::move(dataset), earlier), options);
}

std::unique_ptr<TaskData> open_data_of(const RunOptions& options, const Checkpoint& checkpoint) {
  Dataset dataset(options.data.path, read_segments(options.data.path, saved_dataset(checkpoint)));
  check_extends(dataset, checkpoint);
  return std::make_unique<TaskData>(options, std::move(dataset), saved_earlier_datasets(checkpoint));
}

std::vector<Section> sections(Learner& learner, RunningMetrics& metrics, DenseState dense_state) {
  std::vector<Section> all{parameters_section(learner.model->parameters().all(), learner.compute.stream,
                                              std::move(dense_state.parameters)),
                           optimizer_section(learner.dense_optimizer, std::move(dense_state.optimizer))};
  for (Section& table : table_sections(learner.tables)) all.push_back(std::move(table));
  all.push_back(bad_ids_section(learner.bad_ids));
  all.push_back(metrics.section());
  return all;
}

RunState load_run(const Checkpoint& checkpoint, Experiment& experiment) {
  const auto unused = running_metrics(experiment);
  return load_run(checkpoint, experiment.dataset(), sections(experiment.learner(), *unused));
}

RunState load_run_for_other_data(const Checkpoint& checkpoint, Experiment& experiment) {
  const auto unused = running_metrics(experiment);
  return load_run(checkpoint, sections(experiment.learner(), *unused));
}

RunFacts facts_of(const Experiment& experiment) {
  RunFacts facts;
  facts.config = to_toml(experiment.options());
  facts.dataset = experiment.dataset().manifest().id;
  facts.seed = experiment.options().seed;
  facts.device = to_string(experiment.device().device);
  facts.attention = word_of(kAttentionChoices, experiment.options().attention);
  facts.peak_flops = peak_flops(experiment.device().device, experiment.options().precision);
  const TableSet& tables = experiment.learner().tables;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const TableConfig& config = tables[t].config();
    facts.tables.push_back({config.name, config.rows, config.dim});
  }
  facts.dense_parameters = experiment.learner().model->parameters().whole_count();
  facts.train_samples = experiment.train_samples();
  facts.evaluation_samples = experiment.anchors().evaluation.size();
  facts.metrics = experiment.options().model.metrics();
  return facts;
}

LearnerCounts counts_of(const Learner& learner, Communicator& comm) {
  LearnerCounts counts;
  const TableSet& tables = learner.tables;
  const std::vector<std::int64_t> table_rows = rows_alive(tables, comm);
  counts.beyond_wire = comm.sum(tables.values_beyond_wire());
  for (std::size_t t = 0; t < tables.size(); ++t)
    counts.table_rows.emplace_back(tables[t].config().name, table_rows[t]);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (!tables[t].has_limits()) continue;
    const RowCounts of_rows = counts_of_all_ranks(tables[t], comm);
    const std::int64_t waiting = tables[t].waiting().size();
    Json& table = counts.tables[tables[t].config().name] = to_json(of_rows);
    table["rows"] = table_rows[t];
    table["waiting"] = tables[t].owners().by_row() ? comm.sum(waiting) : waiting;
    if (const std::int64_t capacity = tables[t].config().limits.capacity; capacity > 0) {
      table["capacity"] = capacity;
      table["load"] = static_cast<double>(table_rows[t]) / static_cast<double>(capacity);
    }
  }
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const std::optional<CacheCounts> c = tables[t].cache_counts();
    if (!c) continue;
    std::array of_ranks{c->lines, c->hits, c->misses, c->prefetched, c->bytes_in, c->bytes_out};
    comm.all_reduce_sum<std::int64_t>(of_ranks);
    const auto& [rows, hits, misses, prefetched, bytes_in, bytes_out] = of_ranks;
    counts.caches[tables[t].config().name] = {{"rows", rows},         {"hits", hits},
                                              {"misses", misses},     {"prefetched", prefetched},
                                              {"bytes_in", bytes_in}, {"bytes_out", bytes_out}};
  }
  for (const BadIds::Feature& feature : learner.bad_ids.features())
    if (feature.count > 0) counts.bad_ids.emplace_back(feature.name, feature.count);
  return counts;
}

void tell_idle(const Learner& learner, int ranks) {
  if (learner.options.checkpoint.never()) {
    print_note(
        "note: this run saves nothing: checkpoint.final is false, every cadence is 0, and there is no best "
        "checkpoint\n");
  }
  const Pipeline pipeline = learner.options.ranks.pipeline;
  if (pipeline == Pipeline::plain || learner.tables.is_distributed()) return;
  print_note("note: ranks.pipeline = \"{}\" has nothing to exchange: {}\n", word_of(kPipelines, pipeline),
             ranks == 1 ? "there is one rank" : "every rank has all rows that it reads (tables.ranks)");
}

void fail_not_finite(const RunFolder& folder, const std::string& what) {
  const auto newest = latest_checkpoint(folder.checkpoints());
  fail("{}. Lower the learning rates, lengthen schedule.warmup_steps or look at the data. {}", what,
       newest ? fmt::format("The newest good checkpoint is {} (step {}): hstu train --resume {} continues "
                            "from it; change the rates with --set and --allow-change",
                            newest->path.string(), newest->step, folder.path.string())
              : std::string("No checkpoint was saved before: start a new run"));
}

void write_summary(const RunFolder& folder, const TrainResult& result, const RunState& state,
                   MetricSpecs metrics, double training_seconds) {
  Json summary{{"reason", result.reason},
               {"step", state.step},
               {"samples", state.samples},
               {"samples_per_s", result.samples_per_s},
               {"training_s", training_seconds},
               {"best", to_json(state.best)},
               {"eval", nullptr}};
  if (state.evaluation) summary["eval"] = to_json(*state.evaluation, metrics);
  write_file(folder.summary(), summary.dump(2) + "\n");
}

}  // namespace hstu
