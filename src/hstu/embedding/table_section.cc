#include "hstu/embedding/table_section.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/base/float16.h"
#include "hstu/embedding/saved_rows.h"
#include "hstu/embedding/saved_table.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr std::size_t kBlockRows = 1 << 14;  // copied out of a table at a time

// What a table and the one saved have in common, but for the rows, which may become more. "first_rows": those
// of the run's first start, if others. They and the key decide the values of rows not seen yet.
json identity(const EmbeddingTable& table) {
  json identity{{"name", table.config().name},
                {"rows", table.config().rows},
                {"dim", table.config().dim},
                {"key", fmt::format("{:016x}", table.key())},
                {"optimizer", word_of(kRowOptimizers, table.optimizer().kind)},
                {"state_width", table.state_width()}};
  if (table.first_size() != table.config().rows) identity["first_rows"] = table.first_size();
  if (table.config().dtype != DType::f32) identity["dtype"] = to_string(table.config().dtype);
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
json limits_of(const EmbeddingTable& table, const RowCounts& counts, std::size_t waiting) {
  const RowLimiter::State state = table.limits_state();
  return {{"capacity", table.config().limits.capacity},
          {"evict", eviction_of(table.config().limits)},
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
    const std::size_t n = count * static_cast<std::size_t>(width);
    if (state || table.config().dtype == DType::f32) {
      writer.write(values.data(), n * sizeof(float));
      continue;
    }
    std::vector<BFloat16> stored;
    for (std::size_t i = 0; i < n; ++i) stored.emplace_back(values[i]);  // exact
    writer.write(stored.data(), n * sizeof(BFloat16));
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

// Whether a section of changes may follow the section `before`: scores have a meaning for one eviction alone.
bool continues(const json& before, const json& now) {
  const auto eviction = [](const json& of) { return of.contains("limits") ? of["limits"]["evict"] : json(); };
  return identity_of(before) == identity_of(now) && eviction(before) == eviction(now);
}

// The rows of `before` that do not exist any more, and the number of rows now.
struct Alive {
  std::vector<std::int64_t> gone;
  std::int64_t rows = 0;
};
Alive compare(std::span<const std::int64_t> before, bool rows_may_leave, SavedRows& changed) {
  Alive alive;
  if (rows_may_leave) {
    const std::vector<std::int64_t> now = changed.all_ids();
    std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(alive.gone));
    alive.rows = static_cast<std::int64_t>(now.size());
  } else {
    std::vector<std::int64_t> all;
    const std::span<const std::int64_t> ids = changed.ids();
    std::set_union(before.begin(), before.end(), ids.begin(), ids.end(), std::back_inserter(all));
    alive.rows = static_cast<std::int64_t>(all.size());
  }
  return alive;
}

void save(TableSet& tables, std::size_t t, SectionWriter& writer) {
  const EmbeddingTable& table = tables[t];
  json description = identity(table);
  if (table.has_limits()) description["limits"] = {{"evict", eviction_of(table.config().limits)}};
  const auto base = writer.base();
  const bool is_increment = base && continues(base->description(), description);
  const std::unique_ptr<SavedRows> rows =
      saved_rows(tables, t, is_increment ? RowsToSave::changed : RowsToSave::all);
  const auto n = static_cast<std::int64_t>(rows->ids().size());
  std::vector<TensorSpec> tensors{{"ids", DType::i64, {n}}};  // 64-bit numbers first, which aligns them
  Alive alive{{}, n};
  if (is_increment) {
    const SafetensorsFile before = base->file();
    alive = compare(before.column<std::int64_t>("ids"), table.has_limits(), *rows);
    const auto gone = static_cast<std::int64_t>(alive.gone.size());
    description["increment"] = {{"rows", n}, {"gone", gone}};
    tensors.push_back({"gone", DType::i64, {gone}});
  }
  description["rows_alive"] = alive.rows;
  WaitingIds::List waiting;
  if (table.has_limits()) {
    waiting = rows->waiting();
    const auto m = static_cast<std::int64_t>(waiting.ids.size());
    description["limits"] = limits_of(table, rows->counts(), waiting.ids.size());
    tensors.push_back({"history", DType::i64, {n, 2}});
    tensors.push_back({"waiting_ids", DType::i64, {m}});
    tensors.push_back({"waiting_counts", DType::i64, {m}});
  }
  const bool rows_last = table.config().dtype != DType::f32;  // the widest types come first
  const TensorSpec values{"rows", table.config().dtype, {n, table.config().dim}};
  const TensorSpec state{"state", DType::f32, {n, table.state_width()}};
  tensors.push_back(rows_last ? state : values);
  tensors.push_back(rows_last ? values : state);
  writer.describe(std::move(description));
  writer.begin(tensors);
  writer.write(rows->ids().data(), rows->ids().size_bytes());
  writer.write(alive.gone.data(), alive.gone.size() * sizeof(std::int64_t));
  if (table.has_limits()) write_limits(*rows, waiting, writer);
  for (const bool of_state : {rows_last, !rows_last}) write_rows(table, *rows, of_state, writer);
}

// What a table relies on and no checksum shows: ids of the table, and the numbers of its limits.
void check_contents(const SavedTable& saved, const EmbeddingTable& table, const Path& folder) {
  const std::string name = fmt::format("{}: table {}", folder.string(), table.config().name);
  if (const auto ids = saved.ids(); !ids.empty()) {  // they ascend
    const std::int64_t last = table.config().rows - 1;
    check(ids.front() >= 0 && ids.back() <= last, "{}: expected ids from 0 to {}, found {}", name, last,
          ids.front() < 0 ? ids.front() : ids.back());
  }
  if (!table.has_limits() || !saved.description().contains("limits")) return;
  const auto step = saved.description().at("limits").at("step").get<std::int64_t>();
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const std::int64_t seen = saved.history(i)[0];
    check(seen >= 0 && seen <= step, "{}: the row of id {} was seen in step {}, and the last one was {}",
          name, saved.ids()[i], seen, step);
  }
  const auto waiting = saved.waiting_ids(), counts = saved.waiting_counts();
  check(waiting.size() == counts.size(), "{}: it has {} waiting ids, and {} counts", name, waiting.size(),
        counts.size());
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    check(i == 0 || waiting[i - 1] < waiting[i], "{}: expected ascending waiting ids, found {} after {}",
          name, waiting[i], waiting[i == 0 ? 0 : i - 1]);
    check(counts[i] >= 1 && counts[i] < std::int64_t{1} << 32, "{}: id {} waits with a count of {}", name,
          waiting[i], counts[i]);
  }
}

// Of a table without limits nothing; scores have a meaning for the eviction that counted them alone.
void load_limits(EmbeddingTable& table, const SavedTable& saved) {
  const json& limits = saved.description().at("limits");
  const bool same = limits.at("evict") == eviction_of(table.config().limits);
  std::vector<std::int64_t> seen, scores;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    seen.push_back(saved.history(i)[0]);
    scores.push_back(same ? saved.history(i)[1] : 0);
  }
  RowLimiter::State state;
  state.step = limits.at("step").get<std::int64_t>();
  state.time = limits.at("time").get<std::int64_t>();
  state.history = limits.at("history").get<decltype(state.history)>();
  state.counts = counts_of(limits.at("counts"));
  table.restore_history(state, saved.ids(), seen, scores, saved.waiting_ids(), saved.waiting_counts());
}

json without_rows(json identity) {
  for (const char* size : {"rows", "first_rows"}) identity.erase(size);
  return identity;
}

// Ids without a row have the same values as where the table was saved. Throws Error if that one has more ids.
void take_first_size(EmbeddingTable& table, const SavedTable& saved) {
  const json& description = saved.description();
  const json& rows = description.at("rows");
  const json first = description.value("first_rows", rows);
  const std::string where =
      fmt::format("{}: embedding table {}", saved.folder().string(), table.config().name);
  const auto is_size = [](const json& size) { return size.is_number_integer() && size > 0; };
  check(is_size(rows) && is_size(first) && first <= rows,
        "{}: expected first_rows from 1 to rows, found {} and {}", where, first.dump(), rows.dump());
  check(rows <= table.config().rows,
        "{}: the checkpoint has {} ids, the configuration {}: a table may get more ids, not fewer", where,
        rows.dump(), table.config().rows);
  table.set_first_size(first.get<std::int64_t>());
}

void load(EmbeddingTable& table, const SectionReader& reader) {
  const json expected = without_rows(identity(table)),
             found = without_rows(identity_of(reader.description()));
  check(found == expected,
        "{}: embedding table {}: expected {}, found {}: the configuration or the seed changed",
        reader.folder().string(), table.config().name, expected.dump(), found.dump());
  const SavedTable saved(reader);
  take_first_size(table, saved);
  check_contents(saved, table, reader.folder());
  restore_rows(table, saved, true);
  if (table.has_limits() && saved.description().contains("limits")) load_limits(table, saved);
}

}  // namespace

json to_json(const RowCounts& counts) {
  return {{"inserted", counts.inserted}, {"admitted", counts.admitted}, {"refused", counts.refused},
          {"evicted", counts.evicted},   {"expired", counts.expired},   {"hits", counts.hits},
          {"misses", counts.misses}};
}

namespace {

// Rows on their way into a table, block by block.
class RestoredRows {
 public:
  RestoredRows(EmbeddingTable& table, const SavedTable& saved, bool with_state)
      : table_(table), saved_(saved), with_state_(with_state) {}

  // Row i of the saved table gets this id; ids ascend between two calls of flush().
  void add(std::int64_t id, std::size_t i) {
    if (id < 0 || id >= table_.config().rows) return;
    ids_.push_back(id);
    rows_.insert(rows_.end(), saved_.row(i).begin(), saved_.row(i).end());
    if (with_state_)
      state_.insert(state_.end(), saved_.state(i).begin(), saved_.state(i).end());
    else
      state_.resize(state_.size() + static_cast<std::size_t>(table_.state_width()), 0.0f);
    if (ids_.size() == kBlockRows) flush();
  }
  void flush() {
    if (!ids_.empty()) table_.restore(ids_, rows_.data(), state_.data());
    ids_.clear();
    rows_.clear();
    state_.clear();
  }

 private:
  EmbeddingTable& table_;
  const SavedTable& saved_;
  bool with_state_;
  std::vector<std::int64_t> ids_;
  std::vector<float> rows_, state_;
};

}  // namespace

void restore_rows(EmbeddingTable& table, const SavedTable& saved, bool with_state) {
  RestoredRows restored(table, saved, with_state);
  for (const bool changed : {false, true}) {
    for (std::size_t i = 0; i < saved.size(); ++i)
      if (saved.is_changed(i) == changed) restored.add(saved.ids()[i], i);
    restored.flush();
    if (!changed) table.begin_changes();
  }
}

void restore_rows(EmbeddingTable& table, const SavedTable& saved, bool with_state,
                  std::span<const std::int64_t> new_ids) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // id, row of `saved`
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const std::int64_t id = saved.ids()[i];
    if (id < std::ssize(new_ids)) order.emplace_back(new_ids[static_cast<std::size_t>(id)], i);
  }
  std::sort(order.begin(), order.end());
  RestoredRows restored(table, saved, with_state);
  for (const auto& [id, i] : order) restored.add(id, i);
  restored.flush();
  table.begin_changes();
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
