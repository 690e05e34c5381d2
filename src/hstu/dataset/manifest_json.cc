// The manifest as JSON, and the checks that it must pass before it is used.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/base/json_text.h"
#include "hstu/dataset/filter_json.h"
#include "hstu/dataset/json_field.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/names.h"
#include "hstu/dataset/pool_counts.h"

namespace hstu {
namespace {

constexpr const char* kFormat = "hstu-dataset";
constexpr int kVersion = 2;
constexpr Choice<Times> kTimes[] = {{"seconds", Times::kSeconds}, {"order", Times::kOrder}};

using Field = JsonField;

Json optional_to_json(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json counts_to_json(const EventCounts& counts) {
  return {{"events", counts.events},
          {"users", counts.users},
          {"items", counts.items},
          {"rankable", counts.rankable},
          {"positives", counts.positives}};
}

EventCounts read_counts(const Field& field) {
  return {.events = field["events"].count(),
          .users = field["users"].count(),
          .items = field["items"].count(),
          .rankable = field["rankable"].count(),
          .positives = field["positives"].count()};
}

std::vector<ActionBit> read_actions(const Field& field) {
  std::vector<ActionBit> actions;
  unsigned taken = 0;
  for (const Field& element : field.elements()) {
    const std::int64_t bit = element["bit"].integer();
    check(bit >= 1 && bit <= 64 && std::has_single_bit(static_cast<unsigned>(bit)),
          "{}: expected a bit of 1, 2, 4, ..., 64, found {}", element.place(), bit);
    check((taken & static_cast<unsigned>(bit)) == 0, "{}: two actions share the bit {}", element.place(),
          bit);
    taken |= static_cast<unsigned>(bit);
    check(is_one_line(element["name"].text()), "{}: name: expected {}", element.place(), kOneLine);
    actions.push_back({.name = element["name"].text(), .bit = static_cast<std::uint8_t>(bit)});
  }
  return actions;
}

ColumnInfo read_column(const Field& field) {
  return {.type = field["type"].text(),
          .count = field["count"].count(),
          .bytes = field["bytes"].count(),
          .checksum = field["checksum"].text(),
          .min = field["min"].optional_integer(),
          .max = field["max"].optional_integer()};
}

void expect_column(const Manifest& manifest, const std::string& file, std::int64_t count,
                   const Path& source) {
  const auto found = manifest.columns.find(file);
  check(found != manifest.columns.end(), "{}: columns: the column {} is missing", source.string(), file);
  check(found->second.count == count, "{}: columns: {}: expected {} elements, found {}", source.string(),
        file, count, found->second.count);
}

// The files of names, which names.h reads.
void check_names(const Manifest& manifest, const Path& source) {
  for (const std::string& of : manifest.names) {
    const auto ids = manifest.columns.find(name_ids_file(of));
    check(ids != manifest.columns.end() && manifest.columns.contains(names_file(of)),
          "{}: names: the columns {} and {} are missing", source.string(), name_ids_file(of), names_file(of));
    expect_column(manifest, name_offsets_file(of), ids->second.count + 1, source);
    if (manifest.columns.contains(name_order_file(of)))
      expect_column(manifest, name_order_file(of), ids->second.count, source);
  }
}

// Checks that relate one field to another.
void check_consistency(const Manifest& manifest, const Path& source) {
  const EventCounts& counts = manifest.counts;
  expect_column(manifest, kUserIdsFile, counts.users, source);
  expect_column(manifest, kUserOffsetsFile, counts.users + 1, source);
  for (const char* file : {kItemFile, kTimestampFile, kActionFile}) {
    expect_column(manifest, file, counts.events, source);
  }
  expect_column(manifest, kPoolCountsFile,
                (counts.events / kPoolBlock + 1) * static_cast<std::int64_t>(manifest.actions.size()),
                source);
  for (const std::string& name : manifest.context) {
    expect_column(manifest, context_file(name), counts.events, source);
  }
  check(manifest.weighted == manifest.columns.contains(kWeightFile),
        "{}: weighted: expected it to be true where columns has {}, and only there", source.string(),
        kWeightFile);
  if (manifest.weighted) expect_column(manifest, kWeightFile, counts.events, source);
  const auto item_ids = manifest.columns.find(kItemIdsFile);
  for (const std::string& name : manifest.attributes) {
    const auto found = manifest.columns.find(attribute_file(name));
    check(found != manifest.columns.end(), "{}: columns: the column {} is missing", source.string(),
          attribute_file(name));
    if (item_ids != manifest.columns.end())
      expect_column(manifest, attribute_file(name), item_ids->second.count, source);
  }
  check_names(manifest, source);
  check(counts.rankable <= counts.events && counts.positives <= counts.rankable,
        "{}: counts: expected positives <= rankable <= events, found {}, {}, {}", source.string(),
        counts.positives, counts.rankable, counts.events);
  for (const auto& [file, column] : manifest.columns) {
    check(is_file_name(file), "{}: columns: \"{}\" is not the name of a file in this folder", source.string(),
          file);
    check(column.min.has_value() == column.max.has_value() && column.min <= column.max,
          "{}: columns: {}: expected min <= max, or null for both, found {} and {}", source.string(), file,
          optional_to_json(column.min).dump(), optional_to_json(column.max).dump());
  }
  check(manifest.time.min <= manifest.time.max, "{}: time: expected min <= max, found {} and {}",
        source.string(), manifest.time.min, manifest.time.max);
  try {
    manifest.label_bit();
    manifest.pool_bits();
  } catch (const Error& error) {
    fail("{}: label or pools: {}", source.string(), error.what());
  }
  const std::string id = dataset_id(manifest.columns, manifest.extends);
  check(manifest.id == id, "{}: id: expected {} from the columns' checksums, found {}: the file was altered",
        source.string(), id, manifest.id);
}

Manifest read_fields(const Field& root) {
  Manifest manifest;
  manifest.name = root["name"].text();
  manifest.id = root["id"].text();
  manifest.counts = read_counts(root["counts"]);
  manifest.time = {.min = root["time"]["min"].integer(), .max = root["time"]["max"].integer()};
  if (root.has("times")) manifest.times = root["times"].choice(kTimes);
  if (const Field split = root["split"]; !split.is_null()) {
    manifest.split = TimeSplit{.train_start = split["train_start"].integer(),
                               .train_end = split["train_end"].integer(),
                               .test_start = split["test_start"].integer(),
                               .test_end = split["test_end"].integer()};
  }
  if (root.has("ties")) manifest.ties = read_ties(root["ties"]);
  if (root.has("filters")) manifest.filters = read_filters(root["filters"]);
  manifest.actions = read_actions(root["actions"]);
  manifest.label = root["label"].text();
  manifest.pools = root["pools"].texts();
  manifest.context = root["context"].texts();
  if (root.has("rules")) manifest.rules = root["rules"].texts();
  if (root.has("weighted")) manifest.weighted = root["weighted"].boolean();
  manifest.attributes = root["attributes"].texts();
  const Field columns = root["columns"];
  for (const std::string& file : columns.keys()) manifest.columns[file] = read_column(columns[file]);
  if (const Field test = root["test_events"]; !test.is_null()) manifest.test_events = read_counts(test);
  if (root.has("hashed")) {
    const Field hashed = root["hashed"];
    for (const std::string& of : hashed.keys())
      manifest.hashed[of] = hashed[of]["collisions"].optional_integer();
  }
  if (root.has("names")) manifest.names = root["names"].texts();
  if (root.has("extends")) {
    const Field extends = root["extends"];
    manifest.extends = {.dataset = extends["dataset"].text(), .counts = read_counts(extends["counts"])};
  }
  return manifest;
}

}  // namespace

std::string manifest_to_json(const Manifest& manifest) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["name"] = manifest.name;
  json["id"] = manifest.id;
  json["counts"] = counts_to_json(manifest.counts);
  json["time"] = {{"min", manifest.time.min}, {"max", manifest.time.max}};
  if (manifest.times != Times::kSeconds) json["times"] = word_of(kTimes, manifest.times);
  if (manifest.ties) json["ties"] = to_json(*manifest.ties);
  if (manifest.filters) json["filters"] = to_json(*manifest.filters);
  json["split"] = nullptr;
  if (const auto& split = manifest.split) {
    json["split"] = {{"train_start", split->train_start},
                     {"train_end", split->train_end},
                     {"test_start", split->test_start},
                     {"test_end", split->test_end}};
  }
  json["actions"] = Json::array();
  for (const ActionBit& action : manifest.actions) {
    json["actions"].push_back({{"name", action.name}, {"bit", action.bit}});
  }
  json["label"] = manifest.label;
  json["pools"] = manifest.pools;
  json["context"] = manifest.context;
  if (!manifest.rules.empty()) json["rules"] = manifest.rules;
  if (manifest.weighted) json["weighted"] = true;
  json["attributes"] = manifest.attributes;
  json["columns"] = Json::object();
  for (const auto& [file, column] : manifest.columns) {
    json["columns"][file] = {{"type", column.type},
                             {"count", column.count},
                             {"bytes", column.bytes},
                             {"checksum", column.checksum},
                             {"min", optional_to_json(column.min)},
                             {"max", optional_to_json(column.max)}};
  }
  json["test_events"] = manifest.test_events ? counts_to_json(*manifest.test_events) : Json(nullptr);
  // Absent unless the log names ids by texts.
  for (const auto& [of, collisions] : manifest.hashed)
    json["hashed"][of] = {{"collisions", optional_to_json(collisions)}};
  if (!manifest.names.empty()) json["names"] = manifest.names;
  if (manifest.extends)
    json["extends"] = {{"dataset", manifest.extends->dataset},
                       {"counts", counts_to_json(manifest.extends->counts)}};
  return json.dump(2) + "\n";
}

Manifest manifest_from_json(std::string_view text, const Path& source) {
  const Json json = parse_json(text, source);
  const Field root(json, source.string());
  const std::string format = root["format"].text();
  check(format == kFormat, "{}: format: expected \"{}\", found \"{}\"", source.string(), kFormat, format);
  const std::int64_t version = root["version"].integer();
  check(version == kVersion,
        "{}: version: expected {}, found {}: prepare the dataset again with this program", source.string(),
        kVersion, version);
  Manifest manifest = read_fields(root);
  check_consistency(manifest, source);
  return manifest;
}

}  // namespace hstu
