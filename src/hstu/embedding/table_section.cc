#include "hstu/embedding/table_section.h"

#include "hstu/base/error.h"
#include "hstu/base/finite.h"

namespace hstu {
namespace {

using nlohmann::json;
using Rows = std::vector<EmbeddingTable::Row>;

// What must agree between a table and the one saved: rows and key decide the values of rows not seen yet.
json identity(const EmbeddingTable& table) {
  return {{"name", table.config().name},
          {"rows", table.config().rows},
          {"dim", table.config().dim},
          {"key", fmt::format("{:016x}", table.key())},
          {"optimizer", word_of(kRowOptimizers, table.optimizer().kind)},
          {"state_width", table.state_width()}};
}

void check_rows(const EmbeddingTable& table, const Rows& rows) {
  const std::int64_t dim = table.config().dim, width = table.state_width();
  const auto n = static_cast<std::int64_t>(rows.size());
  const auto row = [&](std::int64_t i) -> const EmbeddingTable::Row& {
    return rows[static_cast<std::size_t>(i)];
  };
  const std::int64_t bad = parallel_find(n, 256, [&](std::int64_t i) {
    return !all_finite(row(i).values, dim) || !all_finite(row(i).state, width);
  });
  if (bad == n) return;
  throw NotFiniteError(fmt::format("{} of id {} in embedding table {} is not finite",
                                   all_finite(row(bad).values, dim) ? "the optimizer's state" : "the row",
                                   row(bad).id, table.config().name));
}

void save(const EmbeddingTable& table, SectionWriter& writer) {
  const Rows rows = table.rows_by_id();
  check_rows(table, rows);
  const auto n = static_cast<std::int64_t>(rows.size());
  const std::int64_t dim = table.config().dim, width = table.state_width();
  json description = identity(table);
  description["rows_alive"] = n;
  writer.describe(std::move(description));
  writer.begin({{"ids", DType::i64, {n}}, {"rows", DType::f32, {n, dim}}, {"state", DType::f32, {n, width}}});
  for (const auto& row : rows) writer.write(&row.id, sizeof row.id);
  for (const auto& row : rows) writer.write(row.values, static_cast<std::size_t>(dim) * sizeof(float));
  for (const auto& row : rows) writer.write(row.state, static_cast<std::size_t>(width) * sizeof(float));
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
                        [&table](SectionWriter& writer) { save(table, writer); },
                        [&table](const SectionReader& reader) { load(table, reader); }});
  }
  return sections;
}

}  // namespace hstu
