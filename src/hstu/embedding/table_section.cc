#include "hstu/embedding/table_section.h"

#include <algorithm>
#include <memory>
#include <span>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/embedding/saved_rows.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr std::size_t kBlockRows = 1 << 14;  // copied out of a table at a time

// What must agree between a table and the one saved: rows and key decide the values of rows not seen yet.
json identity(const EmbeddingTable& table) {
  json identity{{"name", table.config().name},
                {"rows", table.config().rows},
                {"dim", table.config().dim},
                {"key", fmt::format("{:016x}", table.key())},
                {"optimizer", word_of(kRowOptimizers, table.optimizer().kind)},
                {"state_width", table.state_width()}};
  const InitialValue& initial = table.config().initial;
  if (initial != InitialValue{}) {
    identity["initial"] = {word_of(kInitialKinds, initial.kind), initial.bound, initial.mean,
                           initial.deviation, initial.value};
  }
  return identity;
}

RowCounts counts_of(const json& saved) {
  const auto count = [&](const char* name) { return saved.at(name).get<std::int64_t>(); };
  return {count("inserted"), count("admitted"), count("refused"), count("evicted"),
          count("expired"),  count("hits"),     count("misses")};
}

// What a table with limits has beside its rows.
json limits_of(const RowKeeper& keeper, const RowCounts& counts, std::size_t waiting) {
  const RowKeeper::State state = keeper.state();
  return {{"capacity", keeper.limits().capacity},
          {"evict", word_of(kEvictions, keeper.limits().evict)},
          {"step", state.step},
          {"time", state.time},
          {"history", state.history},
          {"counts", to_json(counts)},
          {"waiting", waiting}};
}

void check_rows(const EmbeddingTable& table, std::span<const std::int64_t> ids,
                const std::vector<float>& values, std::int64_t width, const char* what) {
  const auto n = static_cast<std::int64_t>(ids.size());
  const std::int64_t bad =
      parallel_find(n, 256, [&](std::int64_t i) { return !all_finite(values.data() + i * width, width); });
  if (bad == n) return;
  throw NotFiniteError(fmt::format("{} of id {} in embedding table {} is not finite", what,
                                   ids[static_cast<std::size_t>(bad)], table.config().name));
}

// Checks and writes the values of all rows, or their state.
void write_rows(const EmbeddingTable& table, SavedRows& rows, bool state, SectionWriter& writer) {
  const std::int64_t width = state ? table.state_width() : table.config().dim;
  const std::span<const std::int64_t> ids = rows.ids();
  std::vector<float> values(std::min(kBlockRows, ids.size()) * static_cast<std::size_t>(width));
  for (std::size_t first = 0; first < ids.size() && width > 0; first += kBlockRows) {
    const std::size_t count = std::min(kBlockRows, ids.size() - first);
    rows.read(first, count, state, values.data());
    check_rows(table, ids.subspan(first, count), values, width, state ? "the optimizer's state" : "the row");
    writer.write(values.data(), count * static_cast<std::size_t>(width) * sizeof(float));
  }
}

void write_limits(SavedRows& rows, const WaitingIds::List& waiting, SectionWriter& writer) {
  const std::size_t n = rows.ids().size();
  std::vector<std::int64_t> history(2 * std::min(kBlockRows, n));
  for (std::size_t first = 0; first < n; first += kBlockRows) {
    const std::size_t count = std::min(kBlockRows, n - first);
    rows.read_history(first, count, history.data());
    writer.write(history.data(), 2 * count * sizeof(std::int64_t));
  }
  writer.write(waiting.ids.data(), waiting.ids.size() * sizeof(std::int64_t));
  writer.write(waiting.counts.data(), waiting.counts.size() * sizeof(std::int64_t));
}

void save(TableSet& tables, std::size_t t, SectionWriter& writer) {
  const EmbeddingTable& table = tables[t];
  const std::unique_ptr<SavedRows> rows = saved_rows(tables, t);
  const auto n = static_cast<std::int64_t>(rows->ids().size());
  json description = identity(table);
  description["rows_alive"] = n;
  std::vector<TensorSpec> tensors{{"ids", DType::i64, {n}}};  // 64-bit numbers first, which aligns them
  WaitingIds::List waiting;
  if (const RowKeeper* const keeper = table.keeper()) {
    waiting = rows->waiting();
    const auto m = static_cast<std::int64_t>(waiting.ids.size());
    description["limits"] = limits_of(*keeper, rows->counts(), waiting.ids.size());
    tensors.push_back({"history", DType::i64, {n, 2}});
    tensors.push_back({"waiting_ids", DType::i64, {m}});
    tensors.push_back({"waiting_counts", DType::i64, {m}});
  }
  tensors.push_back({"rows", DType::f32, {n, table.config().dim}});
  tensors.push_back({"state", DType::f32, {n, table.state_width()}});
  writer.describe(std::move(description));
  writer.begin(tensors);
  writer.write(rows->ids().data(), rows->ids().size_bytes());
  if (table.keeper() != nullptr) write_limits(*rows, waiting, writer);
  write_rows(table, *rows, false, writer);
  write_rows(table, *rows, true, writer);
}

// Of a table without limits nothing; scores have a meaning for the eviction that counted them alone.
void load_limits(EmbeddingTable& table, const json& limits, const SafetensorsFile& file,
                 std::span<const std::int64_t> ids) {
  RowKeeper& keeper = *table.keeper();
  const bool same = limits.at("evict") == word_of(kEvictions, keeper.limits().evict);
  const auto n = static_cast<std::int64_t>(ids.size());
  const auto m = limits.at("waiting").get<std::int64_t>();
  const auto history = file.values<std::int64_t>("history", {n, 2});
  std::vector<std::int64_t> seen, scores;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    seen.push_back(history[2 * i]);
    scores.push_back(same ? history[2 * i + 1] : 0);
  }
  RowKeeper::State state;
  state.step = limits.at("step").get<std::int64_t>();
  state.time = limits.at("time").get<std::int64_t>();
  state.history = limits.at("history").get<decltype(state.history)>();
  state.counts = counts_of(limits.at("counts"));
  table.restore_history(state, ids, seen, scores, file.values<std::int64_t>("waiting_ids", {m}),
                        file.values<std::int64_t>("waiting_counts", {m}));
}

void load(EmbeddingTable& table, const SectionReader& reader) {
  json saved = reader.description();
  const auto n = saved.at("rows_alive").get<std::int64_t>();
  saved.erase("rows_alive");
  const json limits = saved.value("limits", json());
  saved.erase("limits");
  const json expected = identity(table);
  check(saved == expected,
        "{}: embedding table {}: expected {}, found {}: the configuration or the seed changed",
        reader.folder().string(), table.config().name, expected.dump(), saved.dump());
  const SafetensorsFile file = reader.file();
  const auto ids = file.values<std::int64_t>("ids", {n});
  table.restore(ids, file.values<float>("rows", {n, table.config().dim}).data(),
                file.values<float>("state", {n, table.state_width()}).data());
  if (table.keeper() != nullptr && limits.is_object()) load_limits(table, limits, file, ids);
}

}  // namespace

json to_json(const RowCounts& counts) {
  return {{"inserted", counts.inserted}, {"admitted", counts.admitted}, {"refused", counts.refused},
          {"evicted", counts.evicted},   {"expired", counts.expired},   {"hits", counts.hits},
          {"misses", counts.misses}};
}

std::vector<Section> table_sections(TableSet& tables) {
  std::vector<Section> sections;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    EmbeddingTable& table = tables[t];
    sections.push_back({"tables/" + table.config().name,
                        [&tables, t](SectionWriter& writer) { save(tables, t, writer); },
                        [&table](const SectionReader& reader) { load(table, reader); }});
  }
  return sections;
}

}  // namespace hstu
