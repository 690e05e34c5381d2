#include "hstu/plan/rank_plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/median.h"
#include "hstu/base/text.h"
#include "hstu/embedding/table_division.h"
#include "hstu/experiment/divided_heads.h"
#include "hstu/experiment/division.h"
#include "hstu/experiment/experiment.h"
#include "hstu/kernels/gate.h"
#include "hstu/options/table_options.h"

namespace hstu {
namespace {

// The largest over the mean; 1 where there is nothing.
double largest_over_mean(const std::vector<double>& of_ranks) {
  double sum = 0;
  for (const double x : of_ranks) sum += x;
  return sum > 0 ? *std::max_element(of_ranks.begin(), of_ranks.end()) *
                       static_cast<double>(of_ranks.size()) / sum
                 : 1;
}

// The work of one rank for a batch. Rows that are read and written in the forward and the backward pass, as
// the kernels of GPUs do (docs/performance/gpu.md): by norms 2 and 4 of the stream; by gates 3 and 5 of the
// heads, or 5 and 7 where the gate keeps its factors; measured, 36 of the stream before and behind the layers
// (docs/performance/ranks.md).
RankPlan::Work work_of(const HstuStackConfig& stack, const LayerFlops& flops, std::int64_t tokens) {
  const HstuLayerConfig& layer = stack.layer;
  const std::int64_t forward = layer.recompute.layer ? 2 : 1, parts = kernels::gate_parts(layer.gate);
  RankPlan::Work work;
  work.products = static_cast<double>((forward + 2) * (flops.uvqk + flops.projection));
  work.attention = (static_cast<double>(forward) + 2.5) * static_cast<double>(flops.attention);
  if (stack.layers == 0) return work;
  const std::int64_t norms = tokens * layer.dim * stack.layers,
                     gates = flops.projection / (2 * layer.dim * parts);
  work.values =
      static_cast<double>(norms * (2 * forward + 4) +
                          gates * (parts == 1 ? 3 * forward + 5 : 5 * forward + 7) + 36 * tokens * layer.dim);
  return work;
}

// What the ranks have of one batch, laid out one after another.
class BatchOfRanks {
 public:
  BatchOfRanks(const Model& model, const SampleBuilder& samples, const std::vector<RowOwners>& owners)
      : model_(model), samples_(samples), owners_(owners), ids_(owners.size(), 0) {
    const auto ranks = static_cast<std::size_t>(owners.front().ranks);
    rows_.resize(ranks);
    occurrences_.resize(ranks);
  }

  // `batch`: of all samples of the step.
  void add_rank(std::span<const std::int64_t> positions, std::span<const std::int64_t> batch) {
    if (positions.empty()) return read_.push_back(0);  // more ranks than samples
    batch_.clear();
    model_.layout().lay_out(samples_.build(positions, batch), scratch_, batch_);
    const RankPlan::Work work = work_of(model_.layers(), model_.flops(batch_).computed, batch_.tokens);
    if (work.flops() > most_work_.flops()) most_work_ = work;
    all_work_ += work;
    tokens_ += static_cast<double>(batch_.tokens);
    read_.push_back(0);
    const std::vector<FeatureSpec> features = model_.features();
    for (std::size_t t = 0; t < features.size(); ++t) {
      const auto ids = batch_.values<std::int64_t>(ids_column(features[t].name));
      ids_[t] += static_cast<double>(ids.size());
      read_.back() += static_cast<double>(ids.size());
      if (!owners_[t].by_row()) continue;
      for (const std::int64_t id : ids) ++rows_[static_cast<std::size_t>(owners_[t].owner(id))];
      for (const std::int32_t place : batch_.values<std::int32_t>(index_column(features[t].name)))
        if (place >= 0)
          ++occurrences_[static_cast<std::size_t>(owners_[t].owner(ids[static_cast<std::size_t>(place)]))];
    }
  }

  const std::vector<double>& ids() const { return ids_; }         // distinct, by table, of all ranks
  const RankPlan::Work& most_work() const { return most_work_; }  // of the rank with the most
  const RankPlan::Work& all_work() const { return all_work_; }    // of all ranks
  double tokens() const { return tokens_; }                       // of all ranks
  double most_ids() const { return largest_over_mean(read_); }
  double most_rows() const { return largest_over_mean(rows_); }
  double most_occurrences() const { return largest_over_mean(occurrences_); }

 private:
  const Model& model_;
  const SampleBuilder& samples_;
  const std::vector<RowOwners>& owners_;
  LayoutScratch scratch_;
  Batch batch_;
  std::vector<double> ids_, read_, rows_, occurrences_;
  RankPlan::Work most_work_, all_work_;
  double tokens_ = 0;
};

// plan.heads and what they need; plan.dense, of which divided parameters are summed over fewer ranks.
void add_dense(const RunOptions& options, const Model& model, RankPlan& plan) {
  plan.tensor = tensor_ranks(options, plan.ranks);
  double whole = 0, divided = 0;
  for (const Parameter* p : model.parameters().all())
    (p->divisible.blocks > 0 && plan.tensor > 1 ? divided : whole) += static_cast<double>(p->value.size());
  const auto sent = [](double values, double ranks) {
    return 2 * (ranks - 1) / ranks * sizeof(float) * values;
  };
  plan.dense =
      sent(whole, plan.ranks) + sent(divided / plan.tensor, static_cast<double>(plan.ranks) / plan.tensor);
  if (plan.tensor == 1) return;
  const HstuStackConfig stack = model.layers();
  const double others = plan.tensor - 1, value = options.precision == Precision::bf16 ? 2 : 4;
  const double tokens = 4 * others * static_cast<double>(stack.layer.dim) * value;
  const double statistics = 2 * others * plan.tensor * 2 * sizeof(float);
  // A layer that is computed again sends again what the forward pass sent.
  const double passes = stack.layer.recompute.layer ? 1.5 : stack.layer.recompute.norm ? 1.25 : 1;
  plan.heads = passes * static_cast<double>(stack.layers) * plan.tokens * (tokens + statistics);
  plan.head_exchanges = passes * static_cast<double>(stack.layers) * 6;
}

// What leaves a rank for `n` distinct ids of a table of D values: a rank keeps its own part of an exchange.
RankPlan::Traffic traffic(const RowOwners& owners, double n, std::int64_t dim) {
  const double others = owners.ranks - 1, share = others / owners.ranks;
  const double ids = n * sizeof(std::int64_t), rows = n * sizeof(float) * static_cast<double>(dim);
  if (owners.by_row()) return {share * ids, share * rows, share * (ids + rows)};
  if (owners.by_column()) return {others * ids, share * rows, others * ids + share * rows};
  return {0, 0, others * (ids + rows)};
}

// What all ranks send for a token of a long sample: once the token and what the layers made of it, and in
// each layer and pass Q, K, V and O or their gradients, of the heads of other ranks. Where ranks do not
// divide the heads, K and V for each other rank that sees them, of p under a causal mask 3 / 4 (p - 1).
double bytes_of_long_token(const HstuStackConfig& stack, int tensor, int ranks, Precision precision) {
  const HstuLayerConfig& layer = stack.layer;
  const bool divides = layer.heads / tensor % ranks == 0;
  const double others = ranks - 1, share = others / ranks;
  const double in = divides ? 3 * share : 1.5 * others, out = divides ? share : 0;
  const double of_layer = (layer.recompute.layer ? 3 : 2) * (in + out) + (layer.recompute.silu ? in : 0);
  const double numbers = static_cast<double>(stack.layers * layer.heads * layer.head_dim) * of_layer +
                         static_cast<double>(4 * layer.dim) * share;
  return numbers * (precision == Precision::bf16 ? 2 : 4);
}

}  // namespace

RankPlan::Traffic RankPlan::sent() const {
  Traffic sum;
  for (const Table& table : tables) {
    sum.ids += table.sent.ids;
    sum.rows += table.sent.rows;
    sum.row_gradients += table.sent.row_gradients;
  }
  return sum;
}

RankPlan plan_ranks(const RunOptions& options, int ranks, std::int64_t most_samples) {
  return plan_ranks(options, TaskData(options), ranks, most_samples);
}

RankPlan plan_ranks(const RunOptions& options, const TaskData& data, int ranks, std::int64_t most_samples) {
  const SampleBuilder& samples = data.samples;
  const Model& model = *data.task.model;
  BatchSchedule schedule = training_schedule(options, data.anchors, {});

  RankPlan plan;
  plan.ranks = ranks;
  const std::vector<FeatureSpec> features = model.features();
  const std::vector<RowOwners> owners = divide_tables(
      table_configs(options, features, model.embedding_dim(), ranks), options.sparse.kind, 0, ranks);
  for (std::size_t t = 0; t < features.size(); ++t)
    plan.tables.push_back({.name = features[t].name, .form = owners[t].form, .sent = {}});
  std::vector<double> division_ms;
  const ContextShare context = context_share(options, ranks);
  double long_tokens = 0, imbalances = 0, imbalances_of_slices = 0, most_ids = 0, most_rows = 0,
         most_occurrences = 0;
  const auto add = [&](const DividedPiece& piece, std::int64_t piece_samples,
                       std::span<const std::int64_t> batch) {
    if (plan.batches > 0 && piece_samples < options.training.batch_size) return;  // the end of a window
    division_ms.push_back(1000 * seconds_between(piece.begin, piece.end));
    imbalances += piece.division.imbalance;
    imbalances_of_slices += piece.division.imbalance_of_slices;
    BatchOfRanks of_ranks(model, samples, owners);
    for (const SamplesOfRank& of_rank : piece.ranks) of_ranks.add_rank(of_rank.positions, batch);
    for (std::size_t t = 0; t < owners.size(); ++t) plan.tables[t].distinct_ids += of_ranks.ids()[t] / ranks;
    most_ids += of_ranks.most_ids();
    most_rows += of_ranks.most_rows();
    most_occurrences += of_ranks.most_occurrences();
    plan.tokens += of_ranks.tokens() / ranks;
    // A rank computes its part of others' samples too.
    const bool shares = context.ranks > 1 || context.tensor > 1;
    plan.work += shares ? of_ranks.all_work() * (piece.division.imbalance / ranks) : of_ranks.most_work();
    if (context.ranks > 1)
      for (const SamplesOfRank& of_rank : piece.ranks)
        for (const std::int64_t position : of_rank.positions)
          if (const std::int64_t n = samples.most_tokens(position); n > context.above)
            long_tokens += static_cast<double>(n);
    plan.parts += static_cast<double>(piece.parts);
    ++plan.batches;
    plan.samples += piece_samples;
  };
  const DivisionRule rule = division_of(options, model, ranks);
  while (plan.samples < most_samples) {
    const auto job = schedule.next();
    if (!job || job->cursor.epoch > 0) break;
    BatchDivision pieces(job->positions, rule, samples);
    while (const auto piece = pieces.next()) {
      std::int64_t piece_samples = 0;
      for (const SamplesOfRank& of_rank : piece->ranks) piece_samples += std::ssize(of_rank.positions);
      add(*piece, piece_samples, job->positions);
    }
  }
  const auto batches = static_cast<double>(std::max<std::int64_t>(plan.batches, 1));
  plan.imbalance = imbalances / batches;
  plan.imbalance_of_slices = imbalances_of_slices / batches;
  plan.most_ids_over_mean = most_ids / batches;
  plan.most_rows_over_mean = most_rows / batches;
  plan.most_occurrences_over_mean = most_occurrences / batches;
  plan.work = plan.work * (1 / batches);
  plan.tokens /= batches;
  plan.parts /= batches;
  plan.accumulate = options.training.accumulate;
  for (std::size_t t = 0; t < features.size(); ++t) plan.dim = std::max(plan.dim, model.row_width(t));
  plan.division_ms = median(std::move(division_ms));
  for (std::size_t t = 0; t < features.size(); ++t) {
    RankPlan::Table& table = plan.tables[t];
    table.distinct_ids /= batches;
    table.sent = traffic(owners[t], table.distinct_ids, model.row_width(t));
  }
  add_dense(options, model, plan);
  // In each layer and pass tokens against heads and back; where it is computed again, once more.
  if (long_tokens > 0)
    plan.context_exchanges =
        static_cast<double>(model.layers().layers) * (model.layers().layer.recompute.layer ? 6 : 4);
  plan.context = long_tokens / batches / ranks *
                 bytes_of_long_token(model.layers(), plan.tensor, context.ranks, options.precision);
  return plan;
}

std::string to_text(const RankPlan& plan) {
  std::vector<std::vector<std::string>> rows{{fmt::format("{} ranks", plan.ranks), "", "of"}};
  rows.push_back(
      {"work, largest over mean", fmt::format("{:.3f}", plan.imbalance),
       fmt::format("{} batches, {} samples", with_separators(plan.batches), with_separators(plan.samples))});
  rows.push_back({"the same in slices", fmt::format("{:.3f}", plan.imbalance_of_slices), ""});
  rows.push_back({"division", fmt::format("{:.2f} ms", plan.division_ms), "one batch, beside the steps"});
  const auto bytes = [&](const char* name, double n, const char* of) {
    rows.push_back({name, human_bytes(n), of});
  };
  bytes("dense gradients", plan.dense, "sent by a rank for each batch: all-reduce");
  if (plan.tensor > 1) bytes("heads", plan.heads, "tokens and sums of layers whose heads ranks share");
  if (plan.context > 0)
    bytes("long samples", plan.context, "of layers whose tokens ranks share: all-to-all in a group");
  bytes("ids", plan.sent().ids, "all-to-all");
  bytes("rows", plan.sent().rows, "all-to-all");
  const auto evenness = [&](const char* name, double x, const char* of) {
    rows.push_back({name, fmt::format("{:.3f}", x), of});
  };
  evenness("ids, largest over mean", plan.most_ids_over_mean, "that a rank reads");
  evenness("rows, largest over mean", plan.most_rows_over_mean,
           "that a rank sends of split and whole tables");
  evenness("the same by occurrence", plan.most_occurrences_over_mean, "if ids were not made distinct first");
  bytes("row gradients", plan.sent().row_gradients, "all-to-all, with ids");
  bytes("total sent", plan.bytes(), "by a rank for each batch");
  return table(rows);
}

std::string tables_text(const RankPlan& plan, const MemoryPlan& memory) {
  std::vector<std::vector<std::string>> rows{{"table", "ranks", "a rank has", "", "it reads", "it sends"}};
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    const RankPlan::Table& table = plan.tables[t];
    const MemoryPlan::Table& of = memory.tables[t];
    rows.push_back({table.name, std::string(word_of(kTableRanks, table.form)),
                    fmt::format("{}{} rows", of.is_bound ? "at most " : "", with_separators(of.rows)),
                    human_bytes(static_cast<double>(of.bytes + of.host_bytes)),
                    fmt::format("{} rows", with_separators(std::llround(table.distinct_ids))),
                    human_bytes(table.sent.ids + table.sent.rows + table.sent.row_gradients) + " a batch"});
  }
  return hstu::table(rows);
}

Json to_json(const RankPlan& plan) {
  Json tables = Json::array();
  for (const RankPlan::Table& table : plan.tables) {
    tables.push_back({{"name", table.name},
                      {"ranks", word_of(kTableRanks, table.form)},
                      {"distinct_ids", table.distinct_ids},
                      {"sent_bytes",
                       {{"ids", table.sent.ids},
                        {"rows", table.sent.rows},
                        {"row_gradients", table.sent.row_gradients}}}});
  }
  return {{"ranks", plan.ranks},
          {"batches", plan.batches},
          {"samples", plan.samples},
          {"tables", tables},
          {"work_max_over_mean", plan.imbalance},
          {"work_max_over_mean_of_slices", plan.imbalance_of_slices},
          {"division_ms", plan.division_ms},
          {"ids_max_over_mean", plan.most_ids_over_mean},
          {"rows_max_over_mean", plan.most_rows_over_mean},
          {"occurrences_max_over_mean", plan.most_occurrences_over_mean},
          {"sent_bytes",
           {{"dense_gradients", plan.dense},
            {"heads", plan.heads},
            {"long_samples", plan.context},
            {"ids", plan.sent().ids},
            {"rows", plan.sent().rows},
            {"row_gradients", plan.sent().row_gradients}}}};
}

}  // namespace hstu
