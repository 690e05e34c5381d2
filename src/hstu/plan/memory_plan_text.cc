// A plan of memory in words and as JSON.
#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/options/table_options.h"
#include "hstu/plan/memory_plan.h"

namespace hstu {
namespace {

std::string gib(std::int64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

std::string advice(const MemoryPlan& plan) {
  const std::int64_t tables = plan.table_bytes(false), evaluation = plan.evaluation.passes();
  if (evaluation > std::max({plan.activations, tables, plan.dense_bytes()}))
    return "An evaluation is the largest: make evaluation.batch_size smaller";
  if (tables > plan.activations && tables > plan.dense_bytes())
    return "The tables are the largest: set tables.place = \"auto\" (docs/tables.md), make embedding_dim "
           "smaller "
           "or give features fewer rows";
  if (plan.dense_bytes() > plan.activations) return "The parameters are the largest: make the model narrower";
  return fmt::format(
      "Set training.micro_batch_tokens (parts of a batch one after the other, the same result){}; or make "
      "training.batch_size smaller",
      plan.saves_memory.empty() ? "" : " or " + plan.saves_memory);
}

// Where the rows of a table are, if not all are in the memory that is planned.
std::string where_of(const MemoryPlan::Table& table) {
  if (table.disk_bytes > 0)
    return fmt::format(": a cache of {} on the host; {} on the disk", with_separators(table.cache_rows),
                       gib(table.disk_bytes));
  if (table.cache_rows > 0 && table.host_bytes > 0)
    return fmt::format(": a cache of {}; {} on the host", with_separators(table.cache_rows),
                       gib(table.host_bytes));
  return table.host_bytes > 0 ? fmt::format("; {} on the host", gib(table.host_bytes)) : "";
}

Json to_json(const EvaluationPlan& plan) {
  return {{"samples", plan.samples},    {"tokens", plan.tokens},       {"activations", plan.activations},
          {"batches", plan.batches},    {"catalogue", plan.catalogue}, {"examples", plan.examples},
          {"baselines", plan.baselines}};
}

// How many ids there may be. The largest of hashes of texts says nothing.
std::string ids_of(const MemoryPlan::Table& table) {
  constexpr std::int64_t kMostNumbers = std::int64_t{1} << 53;
  return table.nominal_rows > kMostNumbers ? "ids that are hashes" : with_separators(table.nominal_rows);
}

}  // namespace

void check_fits(const MemoryPlan& plan, const PlannedDevice& device) {
  if (device.memory_bytes == 0 || plan.total(false) <= usable_bytes(device)) return;
  fail_usage(
      "{} has {}, and training{} needs {} at least: tables {}, parameters with gradients and optimizer {}, "
      "batches {}, activations of {} tokens {} or in their place an evaluation {}. {}. hstu plan prints the "
      "details",
      device.name, gib(device.memory_bytes),
      plan.ranks > 1 ? fmt::format(" on one of {} ranks", plan.ranks) : "", gib(plan.total(false)),
      gib(plan.table_bytes(false)), gib(plan.dense_bytes()), gib(plan.batches), with_separators(plan.tokens),
      gib(plan.activations), gib(plan.evaluation.passes()), advice(plan));
}

std::string to_text(const MemoryPlan& plan, const PlannedDevice& device) {
  std::vector<std::vector<std::string>> rows{
      {plan.ranks > 1 ? fmt::format("memory of one of {} ranks", plan.ranks) : "memory", "bytes", "", "of"}};
  const auto add = [&](const std::string& name, std::int64_t bytes, const std::string& of) {
    rows.push_back({name, with_separators(bytes), gib(bytes), of});
  };
  for (const MemoryPlan::Table& table : plan.tables) {
    add("table " + table.name, table.bytes,
        fmt::format("{}{} rows of {}{}{}", table.is_bound ? "at most " : "", with_separators(table.rows),
                    ids_of(table),
                    plan.ranks > 1 ? fmt::format(" ({})", word_of(kTableRanks, table.form)) : "",
                    where_of(table)));
  }
  add("parameters", plan.parameters, "");
  add("gradients", plan.gradients, "");
  add("optimizer", plan.optimizer, "of the parameters");
  add("activations", plan.activations,
      fmt::format("{} samples, {} tokens: {}", with_separators(plan.samples), with_separators(plan.tokens),
                  plan.source_of_part));
  add("batches", plan.batches, "ready before their step");
  if (const EvaluationPlan& of = plan.evaluation; of.samples > 0) {
    add("evaluation", of.passes(),
        fmt::format("{} samples, {} tokens: takes turns with the activations", with_separators(of.samples),
                    with_separators(of.tokens)));
    add("beside it", of.beside(), "batches ready, and all examples");
    if (of.baselines > 0) add("its baselines", of.baselines, "at most, before the evaluation");
  }
  if (plan.kept > 0) add("free blocks", plan.kept, "at most, for the next step");
  add("total", plan.total(), "");
  if (plan.host_bytes() > 0) add("beside it on the host", plan.host_bytes(), "tables");
  if (plan.table_bytes(true) > plan.table_bytes(false))
    add("total without bounds", plan.total(false), "tables with \"at most\" left out");
  std::string text = table(rows);
  if (!plan.assumption.empty()) text += plan.assumption + "\n";
  if (device.memory_bytes > 0) {
    const bool certain = plan.total(false) <= usable_bytes(device),
               all = plan.total() <= usable_bytes(device);
    text += fmt::format("{}: {}: {}\n", device.name, gib(device.memory_bytes),
                        all       ? "it fits"
                        : certain ? "it fits unless too many rows of the tables with \"at most\" occur"
                                  : "it does not fit. " + advice(plan));
  }
  return text;
}

Json to_json(const MemoryPlan& plan, const PlannedDevice& device) {
  Json tables = Json::array();
  for (const MemoryPlan::Table& table : plan.tables) {
    tables.push_back({{"name", table.name},
                      {"nominal_rows", table.nominal_rows},
                      {"rows", table.rows},
                      {"ranks", plan.ranks > 1 ? Json(word_of(kTableRanks, table.form)) : Json()},
                      {"rows_are_bound", table.is_bound},
                      {"bytes", table.bytes},
                      {"host_bytes", table.host_bytes},
                      {"disk_bytes", table.disk_bytes},
                      {"cache_rows", table.cache_rows},
                      {"place", word_of(kTableTiers, table.place)}});
  }
  return {{"device", device.name},
          {"ranks", plan.ranks},
          {"device_bytes", device.memory_bytes},
          {"tables", tables},
          {"host_bytes", plan.host_bytes()},
          {"parameters", plan.parameters},
          {"gradients", plan.gradients},
          {"optimizer", plan.optimizer},
          {"activations", plan.activations},
          {"batches", plan.batches},
          {"evaluation", to_json(plan.evaluation)},
          {"free_blocks", plan.kept},
          {"samples", plan.samples},
          {"tokens", plan.tokens},
          {"source_of_part", plan.source_of_part},
          {"assumption", plan.assumption.empty() ? Json() : Json(plan.assumption)},
          {"total", plan.total()},
          {"total_without_bounds", plan.total(false)},
          {"fits", device.memory_bytes == 0 || plan.total(false) <= usable_bytes(device)}};
}

}  // namespace hstu
