#include "hstu/embedding/table_section.h"

#include <algorithm>
#include <span>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"

namespace hstu {
namespace {

using nlohmann::json;
using Places = std::span<const EmbeddingTable::Place>;

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

void check_rows(const EmbeddingTable& table, Places places, const std::vector<float>& values,
                std::int64_t width, const char* what) {
  const auto n = static_cast<std::int64_t>(places.size());
  const std::int64_t bad =
      parallel_find(n, 256, [&](std::int64_t i) { return !all_finite(values.data() + i * width, width); });
  if (bad == n) return;
  throw NotFiniteError(fmt::format("{} of id {} in embedding table {} is not finite", what,
                                   places[static_cast<std::size_t>(bad)].id, table.config().name));
}

// Checks and writes the values of all rows, or their state.
void write_rows(const EmbeddingTable& table, Places all, bool state, SectionWriter& writer) {
  const std::int64_t width = state ? table.state_width() : table.config().dim;
  std::vector<float> values(std::min(kBlockRows, all.size()) * static_cast<std::size_t>(width));
  for (std::size_t first = 0; first < all.size() && width > 0; first += kBlockRows) {
    const Places places = all.subspan(first, std::min(kBlockRows, all.size() - first));
    table.read(places, state ? nullptr : values.data(), state ? values.data() : nullptr);
    check_rows(table, places, values, width, state ? "the optimizer's state" : "the row");
    writer.write(values.data(), places.size() * static_cast<std::size_t>(width) * sizeof(float));
  }
}

void save(const EmbeddingTable& table, SectionWriter& writer) {
  const std::vector<EmbeddingTable::Place> places = table.places_by_id();
  const auto n = static_cast<std::int64_t>(places.size());
  json description = identity(table);
  description["rows_alive"] = n;
  writer.describe(std::move(description));
  writer.begin({{"ids", DType::i64, {n}},
                {"rows", DType::f32, {n, table.config().dim}},
                {"state", DType::f32, {n, table.state_width()}}});
  for (const auto& place : places) writer.write(&place.id, sizeof place.id);
  write_rows(table, places, false, writer);
  write_rows(table, places, true, writer);
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
