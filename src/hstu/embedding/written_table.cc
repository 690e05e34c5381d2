#include "hstu/embedding/written_table.h"

#include <cstring>
#include <string>
#include <utility>

#include "hstu/base/float16.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr std::size_t kRowsAtOnce = 1 << 14;  // written at a time

using RowAt = std::function<std::span<const float>(std::size_t i)>;

bool is_narrow(const json& description) {
  return description.contains("optimizer") && description.value("dtype", "") == "bf16";
}

// Values of f32 rows, as they are or in bf16, which is exact for rows that a table keeps so.
template <typename Value>
void write_values(SectionWriter& writer, std::size_t n, const RowAt& row) {
  std::vector<Value> block;
  for (std::size_t i = 0; i < n; ++i) {
    for (const float value : row(i)) block.emplace_back(value);
    if (i + 1 < n && (i + 1) % kRowsAtOnce != 0) continue;
    writer.write(block.data(), block.size() * sizeof(Value));
    block.clear();
  }
}

// `gone`: of changes. 64-bit numbers come first, which aligns them.
void write_table(SectionWriter& writer, json description, const std::vector<std::int64_t>& ids,
                 const std::vector<std::int64_t>* gone, const RowAt& row) {
  const auto n = static_cast<std::int64_t>(ids.size());
  const bool narrow = is_narrow(description);
  std::vector<TensorSpec> tensors{{"ids", DType::i64, {n}}};
  if (gone != nullptr) tensors.push_back({"gone", DType::i64, {static_cast<std::int64_t>(gone->size())}});
  tensors.push_back(
      {"rows", narrow ? DType::bf16 : DType::f32, {n, description.at("dim").get<std::int64_t>()}});
  writer.describe(std::move(description));
  writer.begin(tensors);
  writer.write(ids.data(), ids.size() * sizeof(std::int64_t));
  if (gone != nullptr) writer.write(gone->data(), gone->size() * sizeof(std::int64_t));
  narrow ? write_values<BFloat16>(writer, ids.size(), row) : write_values<float>(writer, ids.size(), row);
  writer.close();
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

void write_rows(SectionWriter& writer, json description, const std::vector<std::int64_t>& ids,
                const RowAt& row) {
  description["rows_alive"] = ids.size();
  write_table(writer, std::move(description), ids, nullptr, row);
}

void write_whole(SectionWriter& writer, json description, const SavedTable& table) {
  write_rows(writer, std::move(description), {table.ids().begin(), table.ids().end()},
             [&](std::size_t i) { return table.row(i); });
}

void write_changes(SectionWriter& writer, json description, const SavedTable& before, const SavedTable& now) {
  std::vector<std::size_t> rows;
  std::vector<std::int64_t> ids, gone;
  std::size_t old = 0;
  for (std::size_t i = 0; i <= now.size(); ++i) {
    for (; old < before.size() && (i == now.size() || before.ids()[old] < now.ids()[i]); ++old)
      gone.push_back(before.ids()[old]);
    if (i == now.size()) break;
    const bool had = old < before.size() && before.ids()[old] == now.ids()[i];
    if (had && same_bits(before.row(old++), now.row(i))) continue;
    rows.push_back(i);
    ids.push_back(now.ids()[i]);
  }
  description["rows_alive"] = now.size();
  description["increment"] = {{"rows", ids.size()}, {"gone", gone.size()}};
  write_table(writer, std::move(description), ids, &gone, [&](std::size_t i) { return now.row(rows[i]); });
}

}  // namespace hstu
