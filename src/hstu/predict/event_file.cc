#include "hstu/predict/event_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/dataset/counted_times.h"
#include "hstu/dataset/event_sorter.h"
#include "hstu/dataset/names.h"
#include "hstu/dataset/user_order.h"
#include "hstu/dataset/writer.h"
#include "hstu/predict/item_columns.h"

namespace hstu {
namespace {

constexpr std::size_t kTableEvents = std::size_t{1} << 16;
constexpr std::int64_t kSorterBytes = std::int64_t{256} << 20;

// The part of a manifest that does not depend on events.
Manifest description_of(const Manifest& manifest) {
  Manifest description;
  description.name = manifest.name;
  description.actions = manifest.actions;
  description.label = manifest.label;
  description.pools = manifest.pools;
  description.context = manifest.context;
  return description;
}

// "listen|like", or 5.
std::uint8_t action_of(const CsvReader& rows, std::size_t column, const std::vector<ActionBit>& actions) {
  const std::string_view text = rows.field(column);
  if (const auto bits = parse_number<std::int64_t>(text)) {
    std::int64_t known = 0;
    for (const ActionBit& action : actions) known |= action.bit;
    if ((*bits & ~known) != 0)
      rows.refuse(column, fmt::format("expected a sum of bits of {}, found {}", known, *bits));
    return static_cast<std::uint8_t>(*bits);
  }
  std::uint8_t mask = 0;
  for (const std::string& name : split(text, '|')) {
    const auto found = std::find_if(actions.begin(), actions.end(),
                                    [&](const ActionBit& action) { return action.name == name; });
    if (found == actions.end()) {
      std::vector<std::string> known;
      known.reserve(actions.size());
      for (const ActionBit& action : actions) known.push_back(action.name);
      rows.refuse(column, fmt::format("there is no action \"{}\"{}", name, suggestion(name, known)));
    }
    mask |= found->bit;
  }
  return mask;
}

// A context column of the file, of numbers or of texts that the dataset has codes for; a text without one is
// 0.
struct ContextColumn {
  std::size_t column = 0;
  std::optional<Names> codes = {};

  std::int64_t unknown = 0;

  std::int64_t value(const CsvReader& rows) {
    if (!codes) return rows.integer(column);
    const auto code = codes->id_of(rows.field(column));
    if (!code && !rows.field(column).empty()) ++unknown;
    return code.value_or(0);
  }
};

std::vector<std::optional<ContextColumn>> context_columns(const CsvReader& rows, const Dataset& schema,
                                                          const std::vector<bool>& needed) {
  const Manifest& manifest = schema.manifest();
  std::vector<std::optional<ContextColumn>> columns(manifest.context.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!needed[c]) continue;
    columns[c].emplace(ContextColumn{.column = rows.column(manifest.context[c])});
    const std::string of = "context_" + manifest.context[c];
    if (contains(manifest.names, of)) columns[c]->codes.emplace(schema.folder(), manifest, of);
  }
  return columns;
}

// Rows as columns, until they make a table.
struct RowBlock {
  explicit RowBlock(std::size_t context) : values(context) {}

  EventTable table() {
    EventTable events;
    events.user.append(user);
    events.time.append(time);
    events.item.append(item);
    events.action = action;
    for (const auto& column : values) events.context.emplace_back().append(column);
    user.clear(), time.clear(), item.clear(), action.clear();
    for (auto& column : values) column.clear();
    return ordered(events);
  }

  std::vector<std::int64_t> user, time, item;
  std::vector<std::uint8_t> action;
  std::vector<std::vector<std::int64_t>> values;  // [context column]
};

}  // namespace

std::int64_t write_events(const Path& file, const ColumnNames& names, const Dataset& schema,
                          const std::vector<bool>& needed, const Path& folder) {
  const Manifest& manifest = schema.manifest();
  CsvReader rows{ByteSource(file, word_of(kTimeSteps, names.time_step))};
  const std::size_t user = rows.column(names.user), item = rows.column(names.item),
                    time = rows.column(names.time), action = rows.column(names.action);
  const TimeColumn times{time, names.time_step, counts_from_1970(manifest)};
  std::vector<std::optional<ContextColumn>> context = context_columns(rows, schema, needed);
  const bool user_texts = manifest.hashed.contains("user"), item_texts = manifest.hashed.contains("item");
  const auto not_negative = [&](std::size_t column, bool texts) {
    const std::int64_t id = read_id(rows, column, texts);
    if (id < 0) rows.refuse(column, fmt::format("expected an id of at least 0, found {}", id));
    return id;
  };
  EventSorter sorter(folder / "sort", kSorterBytes);
  RowBlock block(context.size());
  Progress progress("events", 0, "events");
  while (rows.next()) {
    block.user.push_back(not_negative(user, user_texts));
    block.item.push_back(not_negative(item, item_texts));
    block.time.push_back(seconds_of(rows, times));
    block.action.push_back(action_of(rows, action, manifest.actions));
    for (std::size_t c = 0; c < context.size(); ++c)
      block.values[c].push_back(context[c] ? context[c]->value(rows) : 0);
    if (block.action.size() < kTableEvents) continue;
    sorter.append(block.table());
    progress.advance_to(rows.rows());
  }
  check(rows.rows() > 0, "{}: there are no events below the header", file.string());
  if (!block.action.empty()) sorter.append(block.table());
  DatasetWriter writer(folder, description_of(manifest));
  sorter.merge_into(writer, [](std::int64_t) {});
  add_item_columns(schema, folder, writer.finish({}));
  progress.advance_to(rows.rows());
  progress.finish();
  std::int64_t unknown = 0;
  for (const std::optional<ContextColumn>& column : context) unknown += column ? column->unknown : 0;
  return unknown;
}

void write_schema(const Dataset& schema, const Path& folder) {
  Manifest description = description_of(schema.manifest());
  description.times = schema.manifest().times;
  Manifest manifest = DatasetWriter(folder, description).finish({});
  manifest.time = schema.manifest().time;
  add_item_columns(schema, folder, std::move(manifest));
}

}  // namespace hstu
