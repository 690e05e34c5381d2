#include "hstu/plan/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/comm/thread_group.h"
#include "hstu/device/host_memory_pool.h"
#include "hstu/device/machine.h"
#include "hstu/embedding/table_division.h"
#include "hstu/experiment/divided_heads.h"
#include "hstu/experiment/division.h"
#include "hstu/experiment/experiment.h"
#include "hstu/options/make_task.h"
#include "hstu/options/table_options.h"
#include "hstu/plan/assumed_dataset.h"
#include "hstu/plan/dry_step.h"
#include "hstu/plan/largest_part.h"
#include "hstu/rows/host_row_store.h"
#include "hstu/rows/row_record.h"
#include "hstu/rows/tiered_row_store.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

// What the driver and the kernels' code take of a GPU, about: they are in no pool.
constexpr std::int64_t kDriverBytes = std::int64_t{512} << 20;

// The ids of a feature that can occur: those that the manifest counts, or a bound.
struct Ids {
  std::int64_t count = 0;
  bool is_bound = false;
};

Ids ids_of(const ContextualFeature& feature, const Manifest& manifest, std::int64_t samples) {
  if (feature.keys.size() == 1) {
    if (feature.keys.front() == "user") return {manifest.counts.users};
    if (feature.keys.front() == "item") return {manifest.counts.items};
    if (feature.keys.front() == "hour") return {24};
    if (feature.keys.front() == "weekday") return {7};
  }
  return {samples, true};  // one id for each sample
}

// Nothing is known of a feature that a model has of its own.
Ids ids_of(const std::string& feature, const FeaturesSection& features, const Manifest& manifest,
           std::int64_t samples) {
  if (feature == "item") return {manifest.counts.items};
  for (const AttributeSection& attribute : features.attributes)
    if (attribute.name == feature) return {manifest.counts.items, true};  // one for each item
  for (const ContextualFeature& contextual : features.context)
    if (contextual.name == feature) return ids_of(contextual, manifest, samples);
  return {std::numeric_limits<std::int64_t>::max(), true};
}

// The tables of the rank that has the most of those that are on one rank each.
std::vector<RowOwners> owners_on_fullest_rank(const RunOptions& options,
                                              const std::vector<TableConfig>& configs, int ranks) {
  std::vector<RowOwners> owners = divide_tables(configs, options.sparse.kind, 0, ranks);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(ranks), 0);
  for (std::size_t t = 0; t < owners.size(); ++t)
    if (owners[t].form == TableRanks::table)
      rows[static_cast<std::size_t>(owners[t].home)] += configs[t].rows;
  const auto fullest = std::max_element(rows.begin(), rows.end()) - rows.begin();
  for (RowOwners& of_table : owners) of_table.rank = static_cast<int>(fullest);
  return owners;
}

// Of `rows` rows, those of one rank: hashed ones with three deviations more than the mean.
std::int64_t rows_on_rank(const RowOwners& owners, std::int64_t rows) {
  if (!owners.by_row()) return rows;
  if (owners.form == TableRanks::table) return owners.rank == owners.home ? rows : 0;
  const double mean = static_cast<double>(rows) / owners.ranks;
  return std::min(rows, static_cast<std::int64_t>(std::ceil(mean + 3 * std::sqrt(mean))));
}

// The parts of a step on one of `ranks` ranks, if all are as large as this one.
std::int64_t equal_parts(const RunOptions& options, const Batch& part, int ranks) {
  const std::int64_t of_all = std::max<std::int64_t>(1, part.samples) * ranks;
  return (options.training.samples_of_step() + of_all - 1) / of_all;
}

// The plan of a table of which `ids` ids occur.
struct Planner {
  const RunOptions& options;
  std::int64_t dim;
  bool gpu_trains;
  const Batch& largest;  // part of a step

  void plan(std::int64_t ids, const RowOwners& owners, MemoryPlan::Table& table) const {
    RunOptions of_table = options;
    std::erase_if(of_table.tables.by_name, [&](const auto& section) { return section.first != table.name; });
    TableConfig config =
        table_configs(of_table, {{table.name, table.nominal_rows}}, dim, owners.ranks).front();
    const RowOptimizer optimizer{.kind = config.optimizer.value_or(options.sparse.kind)};
    table.form = owners.form;
    table.rows = std::min(table.nominal_rows, ids);
    if (config.limits.capacity > 0) table.rows = std::min(table.rows, config.limits.capacity);
    table.rows = rows_on_rank(owners, table.rows);
    config.dim = owners.most_columns(config.dim);
    table.place =
        place_of(options, options.tables.by_name.contains(table.name) ? options.tables.by_name.at(table.name)
                                                                      : TableSection{});
    const RowShape shape{.rows = config.rows,
                         .dim = config.dim,
                         .state_width = optimizer.state_width(config.dim),
                         .dtype = config.dtype};
    const std::int64_t part = std::ssize(largest.values<std::int64_t>(ids_column(table.name)));
    const std::int64_t step_rows = std::min(part * equal_parts(options, largest, 1), table.rows);
    table.step_bytes = step_rows * record_bytes(shape);
    const bool is_below = config.place == TableTier::host || config.place == TableTier::disk;
    const bool grows = gpu_trains && is_below && config.cache_rows == 0;
    const std::int64_t lines = grows ? grown_lines(shape, step_rows) : config.cache_rows;
    table.cache_rows = config.place == TableTier::disk ? config.host_rows : lines;
    const TableMemory memory = table_memory(config, shape.state_width, table.rows, gpu_trains, lines);
    table.bytes = memory.device;
    table.host_bytes = memory.host;
    table.disk_bytes = memory.disk;
  }
};

std::vector<MemoryPlan::Table> tables_of(const Planner& planner, const std::vector<FeatureSpec>& features,
                                         const std::vector<RowOwners>& owners, const Manifest& manifest,
                                         std::int64_t samples) {
  std::vector<MemoryPlan::Table> tables;
  for (std::size_t f = 0; f < features.size(); ++f) {
    const Ids ids = ids_of(features[f].name, planner.options.features, manifest, samples);
    tables.push_back({.name = features[f].name, .nominal_rows = features[f].rows, .is_bound = ids.is_bound});
    planner.plan(ids.count, owners[f], tables.back());
  }
  return tables;
}

// Of ranks.pipeline = "prefetch", beside a step: rows of the next one's first part that a rank has sent, that
// have arrived, and that it compares with those that it has sent. It sends about as many as it reads.
std::int64_t ahead_bytes(const Planner& planner, const Model& model, const std::vector<RowOwners>& owners) {
  if (planner.options.ranks.pipeline != Pipeline::prefetch) return 0;
  const std::vector<FeatureSpec> features = model.features();
  std::int64_t values = 0;
  for (std::size_t f = 0; f < features.size(); ++f)
    if (owners[f].is_distributed())
      values +=
          std::ssize(planner.largest.values<std::int64_t>(ids_column(features[f].name))) * model.row_width(f);
  return 3 * values * std::int64_t{sizeof(float)};
}

// What a plan without the run's dataset cannot know.
void assume(const Planner& planner, const std::vector<RowOwners>& owners, MemoryPlan& plan) {
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    planner.plan(plan.tables[t].nominal_rows, owners[t], plan.tables[t]);
    plan.tables[t].is_bound = true;
  }
  plan.source_of_part = "longest histories of distinct items";
  plan.assumption = fmt::format(
      "there is no dataset at \"{}\": the plan assumes full batches of the longest histories, and that all "
      "rows occur; where the configuration gives no rows, as few as the batch has ids",
      planner.options.data.path.string());
}

// A batch of an evaluation whose histories are the assumed ones.
std::vector<std::int64_t> assumed_evaluation(const RunOptions& options, const Anchors& anchors) {
  const std::vector<std::int64_t> assumed = anchors.training.first(anchors.training.size());
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < evaluation_batch_size(options); ++i)
    positions.push_back(assumed[static_cast<std::size_t>(i) % assumed.size()]);
  return positions;
}

// DenseOptimizer's tensors for each parameter.
std::int64_t states_of(const DenseOptimizerConfig& config) {
  if (config.kind != DenseOptimizerKind::sgd) return 2;
  return config.momentum > 0 ? 1 : 0;
}

// The bytes of the largest shard.
std::int64_t shard_bytes(const NamedTensors& parameters, int ranks) {
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t elements = 0;
    for (const ParameterBlock& piece : shard_of(parameters, {rank, ranks}))
      elements += piece.end - piece.begin;
    most = std::max(most, elements);
  }
  return most * std::int64_t{sizeof(float)};
}

}  // namespace

std::int64_t usable_bytes(const PlannedDevice& device) {
  return device.device.is_host() ? device.memory_bytes : device.memory_bytes - kDriverBytes;
}

TableMemory table_memory(const TableConfig& config, std::int64_t state_width, std::int64_t rows,
                         bool gpu_trains, std::int64_t lines) {
  const RowShape shape{
      .rows = config.rows, .dim = config.dim, .state_width = state_width, .dtype = config.dtype};
  lines = std::max(lines, config.cache_rows);
  if (config.place == TableTier::disk) {
    const std::int64_t row = stored_floats(shape) * std::int64_t{sizeof(float)};
    const std::int64_t host = config.host_rows * row + RowDirectory::most_bytes(rows) +
                              RowCache::most_bytes(rows, config.host_rows) +
                              (lines > 0 ? RowCache::most_bytes(rows, lines) : 0);
    const std::int64_t device = gpu_trains ? records_bytes(shape, lines) : lines * row;
    return gpu_trains ? TableMemory{.device = device, .host = host, .disk = rows * row}
                      : TableMemory{.device = device + host, .disk = rows * row};
  }
  if (lines > 0) {
    const TableMemory memory{.device = records_bytes(shape, lines),
                             .host = placed_host_bytes(shape, rows, lines)};
    return gpu_trains ? memory : TableMemory{.device = memory.device + memory.host};
  }
  if (rows == 0) return {};
  if (!gpu_trains) return {.device = host_table_bytes(shape, rows)};
  if (config.limits.any())
    return {.device = records_bytes(shape, rows), .host = placed_host_bytes(shape, rows, 0)};
  return {.device = table_bytes(shape, rows)};
}

std::int64_t MemoryPlan::table_bytes(bool bounds) const {
  std::int64_t bytes = 0;
  for (const Table& table : tables)
    bytes += bounds || !table.is_bound || table.cache_rows > 0 ? table.bytes : 0;
  return bytes;
}

std::int64_t MemoryPlan::host_bytes() const {
  std::int64_t bytes = 0;
  for (const Table& table : tables) bytes += table.host_bytes;
  return bytes;
}

PlannedDevice planned_device(Device device) {
  const Machine machine = this_machine();
  if (device.is_host()) return {"the host", {}, machine.memory_bytes};
  const auto index = static_cast<std::size_t>(device.index);
  check(index < machine.nvidia.gpus.size(), "{}: the driver does not describe this GPU", to_string(device));
  const Gpu& gpu = machine.nvidia.gpus[index];
  const std::vector<std::string> version = split(gpu.compute_capability, '.');
  return {gpu.name,
          {parse_number<int>(version.front()).value_or(0), parse_number<int>(version.back()).value_or(0),
           gpu.clocks.multiprocessors},
          gpu.memory_bytes};
}

PlannedDevice planned_gpu(const std::string& part_of_name) {
  const auto gpu = find_gpu(part_of_name);
  if (!gpu) fail_usage("no GPU of the table has \"{}\" in its name; known: {}", part_of_name, gpu_names());
  return {std::string(gpu->name), {gpu->major, gpu->minor, gpu->multiprocessors}, gpu->memory_bytes};
}

namespace {

// With a rank's part of the heads that ranks share; null: no rank shares any. A model of its own, because
// that of `data` is divided when the learner has its rank.
std::unique_ptr<Model> divided_model(const RunOptions& options, const TaskData& data, int ranks) {
  if (tensor_ranks(options, ranks) == 1) return nullptr;
  std::unique_ptr<Model> model = make_task(options, facts_of(data.dataset)).model;
  divide_heads(options, *model, 0, ranks);
  return model;
}

Batch laid_out(const TaskData& data, std::span<const std::int64_t> positions,
               std::span<const std::int64_t> batch_positions) {
  Batch batch;
  LayoutScratch scratch;
  data.task.model->layout().lay_out(data.samples.build(positions, batch_positions), scratch, batch);
  batch.supervised = std::max<std::int64_t>(batch.samples, 1);
  return batch;
}

// Of the rank of the part's context group that needs the most.
std::int64_t memory_of_group(const RunOptions& options, const TaskData& data, const LargestPart& part,
                             const DryDevice& device, std::int64_t parts) {
  std::vector<std::int64_t> of_ranks(part.group.size());
  run_ranks(static_cast<int>(of_ranks.size()), [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const Groups groups{.world = {},
                        .tensor = {},
                        .context = {comm},
                        .replicas = {},
                        .context_above = options.ranks.context_above};
    of_ranks[rank] =
        step_memory(*data.task.model, *data.task.objective, laid_out(data, part.group[rank], part.batch),
                    device, parts, data.catalogue, options.attention, 1, &groups);
  });
  return std::ranges::max(of_ranks);
}

// `asked`: the options of a run whose dataset `data` is assumed; null: it is the run's own.
MemoryPlan plan_memory(const RunOptions& options, const TaskData& data, const DryDevice& device, int ranks,
                       const RunOptions* asked) {
  const std::unique_ptr<Model> divided = divided_model(options, data, ranks);
  Model& model = divided ? *divided : *data.task.model;
  if (options.precision == Precision::bf16) model.move_to(host_context(), DType::bf16);

  const std::int64_t most_steps =
      options.training.max_steps > 0 ? options.training.max_steps : std::numeric_limits<std::int64_t>::max();
  const LargestPart part =
      largest_part(training_schedule(options, data.anchors, {}), data.samples,
                   division_of(options, model, ranks), most_steps, context_share(options, ranks));
  const Batch batch = laid_out(data, part.positions, part.batch);
  MemoryPlan plan;
  plan.ranks = ranks;
  const std::vector<FeatureSpec> features = model.features();
  const Planner planner{options, model.embedding_dim(), !device.is_host(), batch};
  const std::vector<RowOwners> owners =
      owners_on_fullest_rank(options, table_configs(options, features, planner.dim, ranks), ranks);
  plan.tables = tables_of(planner, features, owners, data.dataset.manifest(), data.anchors.training.size());
  plan.parameters = plan.gradients = model.parameters().count() * std::int64_t{sizeof(float)};
  const int tensor = tensor_ranks(options, ranks);
  plan.optimizer = shard_bytes(model.parameters().all(), options.ranks.shard_optimizer ? ranks / tensor : 1) *
                   states_of(options.dense.config);
  const std::int64_t parts = asked == nullptr ? part.parts : equal_parts(*asked, batch, ranks);
  plan.activations = part.group.empty() ? step_memory(model, *data.task.objective, batch, device, parts,
                                                      data.catalogue, options.attention, tensor)
                                        : memory_of_group(options, data, part, device, parts);
  plan.activations += ahead_bytes(planner, model, owners);
  // The slabs have a quarter more than they need (Batch::reserve).
  plan.batches = (training_batches_ready(options) + 1) * std::ssize(batch.slab()) * 5 / 4;
  plan.samples = static_cast<std::int64_t>(part.positions.size());
  plan.tokens = batch.tokens;
  plan.source_of_part = part.source;
  plan.saves_memory = data.task.saves_memory;
  const std::vector<std::int64_t> evaluated = asked == nullptr ? evaluated_positions(options, data.anchors)
                                                               : assumed_evaluation(*asked, data.anchors);
  plan.evaluation = plan_evaluation(options, data, evaluated, device, ranks);
  const std::int64_t peak = std::max(plan.activations, plan.evaluation.passes());
  if (device.is_host()) plan.kept = std::min(peak, HostMemoryPool::most_kept(peak));
  if (asked != nullptr) assume({*asked, planner.dim, planner.gpu_trains, batch}, owners, plan);
  return plan;
}

}  // namespace

PlannedDevice capped(PlannedDevice device, const RunOptions& options) {
  const std::int64_t most = parse_bytes(options.device_memory);
  if (most == 0 || (device.memory_bytes > 0 && device.memory_bytes <= most)) return device;
  device.memory_bytes = most;
  device.name += fmt::format(" (device_memory = \"{}\")", options.device_memory);
  return device;
}

MemoryPlan plan_memory(const RunOptions& options, const TaskData& data, const DryDevice& device, int ranks) {
  return plan_memory(options, data, device, ranks, nullptr);
}

MemoryPlan plan_memory(const RunOptions& options, const DryDevice& device, int ranks) {
  if (std::filesystem::exists(options.data.path / kManifestFile))
    return plan_memory(options, TaskData(options), device, ranks);
  const AssumedDataset assumed(options);
  return plan_memory(assumed.options(), TaskData(assumed.options()), device, ranks, &options);
}

}  // namespace hstu
