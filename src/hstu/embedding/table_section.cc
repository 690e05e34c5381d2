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
  return {{"name", table.config().name},
          {"rows", table.config().rows},
          {"dim", table.config().dim},
          {"key", fmt::format("{:016x}", table.key())},
          {"optimizer", word_of(kRowOptimizers, table.optimizer().kind)},
          {"state_width", table.state_width()}};
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

void save(TableSet& tables, std::size_t t, SectionWriter& writer) {
  const EmbeddingTable& table = tables[t];
  const std::unique_ptr<SavedRows> rows = saved_rows(tables, t);
  const auto n = static_cast<std::int64_t>(rows->ids().size());
  json description = identity(table);
  description["rows_alive"] = n;
  writer.describe(std::move(description));
  writer.begin({{"ids", DType::i64, {n}},
                {"rows", DType::f32, {n, table.config().dim}},
                {"state", DType::f32, {n, table.state_width()}}});
  writer.write(rows->ids().data(), rows->ids().size_bytes());
  write_rows(table, *rows, false, writer);
  write_rows(table, *rows, true, writer);
}

void load(EmbeddingTable& table, const SectionReader& reader) {
  json saved = reader.description();
  const auto n = saved.at("rows_alive").get<std::int64_t>();
  saved.erase("rows_alive");
  const json expected = identity(table);
  check(saved == expected,
        "{}: embedding table {}: expected {}, found {}: the configuration or the seed changed",
        reader.folder().string(), table.config().name, expected.dump(), saved.dump());
  const SafetensorsFile file = reader.file();
  table.restore(file.values<std::int64_t>("ids", {n}),
                file.values<float>("rows", {n, table.config().dim}).data(),
                file.values<float>("state", {n, table.state_width()}).data());
}

}  // namespace

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
