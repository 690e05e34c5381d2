#include "hstu/experiment/learner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hstu/batching/attribute_of_items.h"
#include "hstu/comm/groups.h"
#include "hstu/embedding/device_lookup.h"
#include "hstu/embedding/shared_rows.h"
#include "hstu/embedding/table_division.h"
#include "hstu/experiment/divided_heads.h"
#include "hstu/experiment/rank_device.h"
#include "hstu/options/table_options.h"
#include "hstu/tensor/tape.h"

namespace hstu {
namespace {

RowOptimizer row_optimizer(const SparseOptimizerSection& section) {
  return {.kind = section.kind,
          .epsilon = section.epsilon,
          .beta1 = section.beta1,
          .beta2 = section.beta2,
          .weight_decay = section.weight_decay};
}

std::vector<TableConfig> table_configs(const RunOptions& options, const Model& model, int ranks) {
  return table_configs(options, model.features(), model.embedding_dim(), ranks);
}

std::vector<RowOwners> owners_of(const RunOptions& options, const Model& model, const Communicator& comm) {
  return divide_tables(table_configs(options, model, comm.size()), options.sparse.kind, comm.rank(),
                       comm.size());
}

// Tables on a GPU have a stream of their own if their work can be beside the model's: rows come from other
// places, or a step has several parts. Otherwise one would wait for the other at every turn.
Context context_of_tables(const RunOptions& run, const Model& model, const Context& compute,
                          const Communicator& comm) {
  const std::vector<TableConfig> configs = table_configs(run, model, comm.size());
  const std::int64_t limit = parse_bytes(run.device_memory);
  const bool come_from_elsewhere =
      comm.size() > 1 || std::any_of(configs.begin(), configs.end(), [](const TableConfig& table) {
        return table.place != TableTier::device;
      });
  const bool has_parts = run.training.accumulate > 1 || run.training.micro_batch_tokens > 0;
  if (compute.device().is_host() || come_from_elsewhere || has_parts)
    return own_context(compute.device(), limit);
  return {compute.stream, MemoryPool::create(compute.stream, limit)};
}

// Parameters move before anything refers to their memory.
std::unique_ptr<Model> moved(std::unique_ptr<Model> model, const Context& context, Precision precision) {
  const bool on_gpu = !context.device().is_host();
  model->move_to(context, on_gpu && precision == Precision::bf16 ? DType::bf16 : DType::f32);
  return model;
}

// All rows of a table are at hand where the objective reads them.
void check_updates(const RunOptions& run, const Model& model, const Objective& objective) {
  const std::vector<FeatureSpec> features = model.features();
  const std::vector<CatalogueUse> uses = objective.catalogues();
  for (const auto& [name, section] : run.tables.by_name) {
    const bool is_read = std::any_of(uses.begin(), uses.end(), [&, &table = name](const CatalogueUse& use) {
      return features[use.feature].name == table;
    });
    if (section.updates == UpdatedRows::all && !is_read)
      fail_usage(
          "tables.{}.updates = \"all\": no loss of this model reads the whole table: set \"touched\", or "
          "model.kind = \"retrieval\" with the table item",
          name);
  }
}

std::unique_ptr<Model> divided_among(const RunOptions& run, std::unique_ptr<Model> model,
                                     const Communicator& comm) {
  divide_heads(run, *model, comm.rank(), comm.size());
  return model;
}

// Of several ranks; `divided` may be null.
Groups groups_of(const DividedRanks* divided, const Group& world, std::int64_t context_above) {
  if (divided == nullptr)
    return {.world = world, .tensor = {}, .context = {}, .replicas = world, .context_above = context_above};
  const Groups& of = divided->groups();
  return {.world = world,
          .tensor = of.tensor,
          .context = of.context,
          .replicas = of.tensor.size() == 1 ? world : of.replicas,  // 1: every rank has all parameters
          .context_above = context_above};
}

Context with_groups(Context context, const Groups& groups) {
  if (context.groups == nullptr && groups.world.size() > 1) context.groups = &groups;
  return context;
}

// Ids outside of a table are read as a null row, which is no row of it.
void erase_outside(const EmbeddingTable& table, std::vector<std::int64_t>& ids) {
  std::erase_if(ids, [&](std::int64_t id) { return id < 0 || id >= table.config().rows; });
}

Shard shard_among(const Communicator& ranks) {
  return {ranks.rank(), ranks.size()};
}

}  // namespace

Learner::Learner(const RunOptions& run, std::unique_ptr<Model> trained, std::unique_ptr<Objective> asked,
                 Context where, Communicator& comm)
    : options(run),
      compute(std::move(where)),
      model(moved(divided_among(run, std::move(trained), comm), compute, run.precision)),
      objective(std::move(asked)),
      gpus(gpu_transport(run, compute.device(), comm)),
      tables(table_configs(run, *model, comm.size()), row_optimizer(run.sparse), run.seed,
             context_of_tables(run, *model, compute, comm), owners_of(run, *model, comm)),
      gradient_of_loss(
          hstu::gradient_of_loss(model->parameters().all().front()->value.dtype()).copy(compute)),
      exchange(own_context(gpus != nullptr ? compute.device() : Device::host())),
      exchanges(comm, gpus.get(), exchange.stream),
      divided(divide_ranks(run, *model, {comm, gpus.get(), &exchanges})),
      groups(groups_of(divided.get(), {comm, gpus.get(), &exchanges}, run.ranks.context_above)),
      copies(compute.device()),
      dense_optimizer(model->parameters().all(), run.dense.config, with_groups(compute, groups),
                      run.ranks.shard_optimizer ? shard_among(groups.replicas.host) : Shard{}),
      bad_ids(run.on_bad_id, model->features()) {
  compute = with_groups(compute, groups);
  compute.deterministic = run.deterministic;
  compute.attention = run.attention;
  check_updates(run, *model, *objective);
  if (comm.size() == 1) {
    if (tables.are_on_gpu()) update_check = std::make_unique<UpdateCheck>(compute);
    return;
  }
  const bool exact = run.tables.wire_rows == DType::f32 && run.tables.wire_gradients == DType::f32;
  const bool only_copies = run.tables.ranks == TableRanks::copy && !tables.is_distributed();
  if (!exact && (tables.device().is_host() || only_copies)) {
    fail_usage(
        "tables.wire_rows and tables.wire_gradients are for rows that travel between GPUs: set both to "
        "\"fp32\", or tables.ranks = \"split\" on GPUs");
  }
  tables.share_over(comm, gpus.get(), {run.tables.wire_rows, run.tables.wire_gradients});
}

void Learner::open_catalogues(const std::vector<std::int64_t>& ids, const Dataset& dataset) {
  catalogues.clear();
  const auto open = [&](std::size_t feature, std::vector<std::int64_t> of) {
    erase_outside(tables[feature], of);
    catalogues.push_back(std::make_unique<Catalogue>(tables, feature, of, RowAccess::read));
  };
  for (const CatalogueUse& use : objective->catalogues()) {
    if (use.attribute.empty())
      open(use.feature, ids);
    else
      open(use.feature, CatalogueAttribute(AttributeOfItems(dataset, use.attribute).of(ids)).distinct);
  }
}

std::vector<std::int64_t> Learner::known_items(std::vector<std::int64_t> ids, bool learnt) const {
  const EmbeddingTable& items = tables[0];
  if (!learnt && objective->catalogues().size() == 1) ids.clear();
  erase_outside(items, ids);
  for (const auto& place : items.places_by_id()) ids.push_back(place.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool Learner::updates_all(const Catalogue& catalogue) const {
  const auto section = options.tables.by_name.find(tables[catalogue.table()].config().name);
  return section != options.tables.by_name.end() && section->second.updates == UpdatedRows::all;
}

// The tables may have a stream of their own, and rows another width than the model's.
void Learner::read(const Catalogue& catalogue, std::int64_t first, Tensor& block) const {
  const std::int64_t width = tables[catalogue.table()].width();
  const bool projects = width != block.cols();
  Tensor raw = projects ? Tensor::empty({block.rows(), width}, DType::f32, compute) : block;
  const bool apart = !(tables.stream() == compute.stream);
  if (apart) tables.stream().wait(compute.stream);
  catalogue.read(first, raw);
  if (apart) compute.stream.wait(tables.stream());
  if (!projects) return;
  Tape forward(compute, false);
  const Variable rows = model->projected(forward, catalogue.table(), Variable::constant(raw));
  block.copy_from(rows.value(), compute.stream);
}

std::vector<CatalogueRows> Learner::catalogue_rows(bool with_gradients) const {
  const std::vector<CatalogueUse> uses = objective->catalogues();
  require(catalogues.size() == uses.size(), "{} of {} catalogues are open", catalogues.size(), uses.size());
  std::vector<CatalogueRows> all;
  for (std::size_t c = 0; c < uses.size(); ++c) {
    Catalogue& catalogue = *catalogues[c];
    CatalogueRows rows;
    rows.size = catalogue.size();
    rows.width = model->embedding_dim();
    rows.ids = catalogue.ids();
    rows.places = catalogue.places();
    rows.read = [this, &catalogue](std::int64_t first, Tensor& block) { read(catalogue, first, block); };
    if (!tables.device().is_host()) rows.device_ids = catalogue.device_ids();
    if (with_gradients && uses[c].has_gradient)
      rows.gradient = [this, &catalogue] {
        Tensor gradient = catalogue.gradient();  // zeros of the tables' stream, at first
        if (!(tables.stream() == compute.stream)) compute.stream.wait(tables.stream());
        return gradient;
      };
    all.push_back(std::move(rows));
  }
  return all;
}

namespace {

std::vector<Tensor> host_ids_of(const Learner& learner, const Batch& batch) {
  std::vector<Tensor> ids;
  for (const FeatureSpec& feature : learner.model->features())
    ids.push_back(batch.host_tensor(ids_column(feature.name)));
  return ids;
}

std::unique_ptr<RowLookup> begin_lookup(Learner& learner, const Batch& batch) {
  if (learner.tables.gpus() == nullptr)
    return std::make_unique<HostLookup>(learner.tables, host_ids_of(learner, batch));
  std::vector<Route> routes;
  for (std::size_t t = 0; t < batch.routes(); ++t) routes.push_back(batch.route(t));
  return std::make_unique<DeviceLookup>(learner.tables, std::move(routes));
}

std::unique_ptr<RowLookup> take_ahead(Learner& learner, const Batch& batch) {
  require(learner.ahead.batch == batch.number, "the lookup that has begun is of batch {}, not of {}",
          learner.ahead.batch, batch.number);
  return std::move(learner.ahead.lookup);
}

// The rows of tables that ranks share.
BatchRows fetch(Learner& learner, const Batch& batch, RowAccess access) {
  const bool has_begun = access == RowAccess::train && learner.ahead.lookup != nullptr;
  FetchedRows fetched =
      (has_begun ? take_ahead(learner, batch) : begin_lookup(learner, batch))->finish(access);
  BatchRows rows;
  for (Tensor& values : fetched.rows) rows.leaves.emplace_back(std::move(values));
  rows.selection.sent = std::move(fetched.sent);
  if (rows.selection.sent) return rows;
  for (Tensor& ids : host_ids_of(learner, batch))
    rows.selection.tables.push_back({.ids = std::move(ids), .handles = {}});
  return rows;
}

RowSelection select_rows(Learner& learner, const Batch& batch, RowAccess access) {
  const std::vector<Tensor> host_ids = host_ids_of(learner, batch);
  if (learner.tables.device().is_host()) return learner.tables.select(host_ids, access);
  std::vector<Tensor> ids;
  for (const FeatureSpec& feature : learner.model->features())
    ids.push_back(batch.tensor(ids_column(feature.name)));
  return learner.tables.select(ids, access, host_ids);
}

}  // namespace

std::vector<Stream> Learner::streams() const {
  if (tables.stream() == compute.stream) return {compute.stream};
  return {compute.stream, tables.stream()};
}

BatchRows look_up(Learner& learner, const Batch& batch, RowAccess access, std::span<const Tensor> into) {
  const TableSet& tables = learner.tables;
  // The memory of leaves that the model has done with may be used again.
  if (!tables.device().is_host()) tables.stream().wait(learner.compute.stream);
  BatchRows rows;
  if (tables.is_distributed()) {
    require(into.empty(), "rows that ranks share are in new memory");
    rows = fetch(learner, batch, access);
  } else {
    rows.selection = select_rows(learner, batch, access);
    std::vector<Tensor> values(into.begin(), into.end());
    if (values.empty())
      values = tables.gather(rows.selection);
    else
      tables.gather(rows.selection, values);
    for (Tensor& of_feature : values) rows.leaves.emplace_back(std::move(of_feature));
  }
  if (tables.stream() == learner.compute.stream) return rows;
  rows.ready = Event(tables.device());
  rows.ready.record(tables.stream());
  return rows;
}

void begin_ahead(Learner& learner, const Batch& batch) {
  learner.ahead.lookup = begin_lookup(learner, batch);
  learner.ahead.batch = batch.number;
  learner.ahead.lookup->prefetch();
  if (learner.options.ranks.pipeline == Pipeline::prefetch) learner.ahead.lookup->read_ahead();
}

namespace {

// The largest of `values` by id of a feature (n); one value for each entry of the feature's index.
std::vector<std::int64_t> largest_by_id(const Batch& batch, const std::string& feature,
                                        std::span<const std::int64_t> values) {
  const auto index = batch.values<std::int32_t>(index_column(feature));
  std::vector<std::int64_t> largest(batch.values<std::int64_t>(ids_column(feature)).size(),
                                    std::numeric_limits<std::int64_t>::min());
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0) continue;
    std::int64_t& of_id = largest[static_cast<std::size_t>(index[i])];
    of_id = std::max(of_id, values[i]);
  }
  return largest;
}

// The values of a custom score by id of a feature (n).
std::vector<std::int64_t> score_values(const Batch& batch, const MappedColumn& column,
                                       const std::string& item, const std::string& feature, bool of_item) {
  std::vector<std::int64_t> of_samples, of_tokens;
  const auto offsets = batch.values<std::int64_t>(kTokenOffsetsColumn);
  for (const std::int64_t position : batch.values<std::int64_t>(kPositionColumn)) {
    of_samples.push_back(column[position]);
    of_tokens.resize(static_cast<std::size_t>(offsets[of_samples.size()]), of_samples.back());
  }
  if (of_item) return largest_by_id(batch, feature, largest_by_id(batch, item, of_tokens));
  const bool by_sample = batch.values<std::int32_t>(index_column(feature)).size() == of_samples.size();
  return largest_by_id(batch, feature, by_sample ? of_samples : of_tokens);
}

}  // namespace

void count_visits(const Learner& learner, const Batch& batch, const RowSelection& selection,
                  RowVisits& visits) {
  const std::vector<FeatureSpec> features = learner.model->features();
  std::vector<std::int64_t> of_items;
  for (std::size_t t = 0; t < features.size(); ++t) {
    const auto ids = batch.values<std::int64_t>(ids_column(features[t].name));
    const auto index = batch.values<std::int32_t>(index_column(features[t].name));
    const auto& attributes = learner.options.features.attributes;
    const bool of_item = std::any_of(attributes.begin(), attributes.end(), [&](const auto& attribute) {
      return attribute.name == features[t].name;
    });
    std::vector<std::int64_t> occurrences(ids.size(), 0);
    for (std::size_t i = 0; i < index.size(); ++i)
      if (index[i] >= 0) occurrences[static_cast<std::size_t>(index[i])] += of_item ? of_items[i] : 1;
    if (learner.tables[t].has_limits()) {
      const Tensor slots =
          selection.tables.size() == features.size() ? selection.tables[t].host_slots : Tensor();
      std::vector<std::int64_t> values;
      if (t < learner.scores.size() && learner.scores[t] != nullptr)
        values = score_values(batch, *learner.scores[t], features.front().name, features[t].name, of_item);
      visits.add(t, ids, occurrences,
                 slots.defined() ? std::span(slots.data<std::int64_t>(), ids.size())
                                 : std::span<const std::int64_t>(),
                 values);
    }
    if (t == 0) of_items = std::move(occurrences);
  }
}

void prefetch_rows(Learner& learner, const Batch& batch) {
  std::vector<Tensor> ids = host_ids_of(learner, batch);
  for (std::size_t t = 0; t < ids.size(); ++t)
    if (learner.tables[t].owners().is_distributed()) ids[t] = {};
  learner.tables.prefetch(ids);
}

}  // namespace hstu
