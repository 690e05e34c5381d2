#include "hstu/options/table_options.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/rows/host_row_store.h"
#include "hstu/rows/row_record.h"

namespace hstu {
namespace {

struct Unit {
  std::string_view word;
  double factor;
};
constexpr Unit kThousands[] = {{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}};
constexpr Unit kBytes[] = {{"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                           {"TiB", 0x1p40}, {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
constexpr Unit kDurations[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};

std::int64_t parse(const std::string& text, std::span<const Unit> units, const char* expected) {
  if (text.empty()) return 0;
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_number<double>(text.substr(0, end));
  for (const Unit& unit : units) {
    if (!number || unit.word != std::string_view(text).substr(end)) continue;
    const double value = *number * unit.factor;
    if (value >= 1 && value <= 1e15) return std::llround(value);
  }
  fail_usage("expected {}, found \"{}\"", expected, text);
}

const TableSection& section_of(const RunOptions& options, const std::string& name) {
  static const TableSection kNone;
  const auto found = options.tables.by_name.find(name);
  return found == options.tables.by_name.end() ? kNone : found->second;
}

RowLimits limits_of(const std::string& name, const TableSection& section, const RowShape& shape) {
  const auto key = [&](const char* of) { return fmt::format("tables.{}.{}", name, of); };
  if (!section.capacity.empty() && !section.memory.empty())
    fail_usage("{} = \"{}\" and memory = \"{}\" are two limits of one table: set one of them",
               key("capacity"), section.capacity, section.memory);
  RowLimits limits{.capacity = parse_rows(section.capacity),
                   .evict = section.evict,
                   .half_life = section.half_life,
                   .admit_after = section.admit_after,
                   .ttl = parse_duration(section.ttl),
                   .score_column = section.score};
  if (!section.memory.empty()) {
    constexpr std::int64_t kRows = 1000;
    limits.capacity = parse_bytes(section.memory) * kRows / host_table_bytes(shape, kRows);
    if (limits.capacity < 1)
      fail_usage("{} = \"{}\" is less than one row: {} bytes", key("memory"), section.memory,
                 host_table_bytes(shape, kRows) / kRows);
  }
  if (limits.evict != Evict::never && limits.capacity == 0)
    fail_usage("{} = \"{}\" has no effect without a limit: set {}", key("evict"),
               word_of(kEvictions, limits.evict), key("capacity"));
  if (limits.evict == Evict::custom && section.score.empty())
    fail_usage("{} = \"custom\" needs {}: a context column of the dataset", key("evict"), key("score"));
  if (limits.evict != Evict::custom && !section.score.empty())
    fail_usage("{} = \"{}\" is for evict = \"custom\", found evict = \"{}\"", key("score"), section.score,
               word_of(kEvictions, limits.evict));
  return limits;
}

// The rows of a cache that takes `memory`: tables.NAME.`key`.
std::int64_t cache_rows_of(const std::string& name, const char* key, const std::string& memory,
                           const RowShape& shape) {
  if (memory.empty()) return 0;
  const std::int64_t rows = parse_bytes(memory) / record_bytes(shape);
  if (rows < 1)
    fail_usage("tables.{}.{} = \"{}\" is less than one row: {} bytes", name, key, memory,
               record_bytes(shape));
  return std::min(rows, shape.rows);
}

void check_caches(const std::string& name, const TableSection& section, TableTier place) {
  const auto needs = [&](const char* key, const std::string& memory) {
    if (memory.empty())
      fail_usage(
          "tables.{0}.{1}: the place of table {0} is \"{2}\", which needs the size of its cache, such as "
          "\"8GiB\"",
          name, key, word_of(kTableTiers, place));
  };
  const auto has_no = [&](const char* key, const std::string& memory, TableTier other) {
    if (!memory.empty())
      fail_usage(
          "tables.{0}.{1} = \"{2}\" is the size of a cache, and the place of table {0} is \"{3}\": set "
          "tables.{0}.place = \"{4}\", or leave {1} out",
          name, key, memory, word_of(kTableTiers, place), word_of(kTableTiers, other));
  };
  if (place == TableTier::cache) needs("device_memory", section.device_memory);
  if (place == TableTier::disk) return needs("host_memory", section.host_memory);
  if (place != TableTier::cache) has_no("device_memory", section.device_memory, TableTier::cache);
  has_no("host_memory", section.host_memory, TableTier::disk);
}

double rate_of(const std::string& name, const TableSection& section) {
  if (!section.frozen) {
    if (section.rate_factor == 0)
      fail_usage("tables.{0}.rate_factor = 0: expected more than 0; tables.{0}.frozen = true keeps its rows",
                 name);
    return section.rate_factor;
  }
  if (section.rate_factor != 1)
    fail_usage("tables.{0}.frozen = true and tables.{0}.rate_factor = {1} contradict each other: set one",
               name, section.rate_factor);
  return 0;
}

}  // namespace

std::int64_t parse_rows(const std::string& text) {
  return parse(text, kThousands, "a number of rows such as 5000, \"20k\" or \"200M\"");
}
std::int64_t parse_bytes(const std::string& text) {
  return parse(text, kBytes, "a size such as \"512MiB\" or \"48GiB\"");
}
std::int64_t parse_duration(const std::string& text) {
  return parse(text, kDurations, "a duration such as \"90s\", \"12h\" or \"30d\"");
}

void check_rows(const std::string& text) {
  parse_rows(text);
}
void check_bytes(const std::string& text) {
  parse_bytes(text);
}
void check_duration(const std::string& text) {
  parse_duration(text);
}
void check_row_optimizer(const std::string& text) {
  if (!text.empty()) parse_word(kRowOptimizers, text, "optimizer");
}
void check_table_ranks(const std::string& text) {
  if (!text.empty()) parse_word(kTableRanks, text, "ranks");
}

void check_place(const std::string& text) {
  if (!text.empty()) parse_word(kTableTiers, text, "place");
}

TableTier place_of(const RunOptions& options, const TableSection& section) {
  return section.place.empty() ? options.tables.place : parse_word(kTableTiers, section.place, "place");
}

std::vector<TableConfig> table_configs(const RunOptions& options, const std::vector<FeatureSpec>& features,
                                       std::int64_t dim, int ranks) {
  std::vector<std::string> names;
  names.reserve(features.size());
  for (const FeatureSpec& feature : features) names.push_back(feature.name);
  for (const auto& [name, section] : options.tables.by_name) {
    if (!contains(names, name))
      fail_usage("[tables.{}]: the model has no table \"{}\"{}", name, name, suggestion(name, names));
  }
  std::vector<TableConfig> configs;
  for (const FeatureSpec& feature : features) {
    const TableSection& section = section_of(options, feature.name);
    const std::int64_t width = section.width > 0 ? section.width : dim;
    TableConfig config{.name = feature.name, .rows = feature.rows, .dim = width, .initial = section.initial};
    if (!section.optimizer.empty())
      config.optimizer = parse_word(kRowOptimizers, section.optimizer, "optimizer");
    config.rate = rate_of(feature.name, section);
    config.ranks =
        section.ranks.empty() ? options.tables.ranks : parse_word(kTableRanks, section.ranks, "ranks");
    const RowOptimizer optimizer{.kind = config.optimizer.value_or(options.sparse.kind)};
    const auto shape_of = [&](std::int64_t columns) {
      return RowShape{.rows = feature.rows,
                      .dim = columns,
                      .state_width = optimizer.state_width(columns),
                      .dtype = section.dtype};
    };
    config.dtype = section.dtype;
    config.limits = limits_of(feature.name, section, shape_of(width));
    const TableTier place = place_of(options, section);
    check_caches(feature.name, section, place);
    const RowOwners owners{.ranks = ranks, .form = config.ranks};
    const RowShape shape = shape_of(owners.most_columns(width));
    config.cache_rows = cache_rows_of(feature.name, "device_memory", section.device_memory, shape);
    config.host_rows = cache_rows_of(feature.name, "host_memory", section.host_memory, shape);
    if (place == TableTier::disk) {
      config.disk_folder = options.tables.disk_folder;
      if (config.disk_folder.empty())
        fail_usage("tables.disk_folder: the place of table {} is \"disk\", which needs a folder for its rows",
                   feature.name);
    }
    config.place = place == TableTier::automatic ? TableTier::device : place;
    configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace hstu
