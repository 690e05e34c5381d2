#include "hstu/predict/item_columns.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/dataset/names.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"

namespace hstu {
namespace {

constexpr std::int64_t kNameBytes = std::int64_t{256} << 20;

bool is_of_items(const std::string& file) {
  return file == kItemIdsFile || file.starts_with("attribute_") ||
         (file.starts_with("names_") && !file.starts_with("names_user"));
}

// Codes count in all segments: the last one has the names of all.
bool is_of_codes(const std::string& file) {
  return file.starts_with("names_context_") || file.starts_with("names_attribute_");
}

template <typename Wanted>
void copy_columns(const SegmentFolder& from, const Path& folder, Manifest& manifest, const Wanted& wanted) {
  for (const auto& [file, column] : from.manifest.columns) {
    if (!wanted(file)) continue;
    std::error_code error;
    std::filesystem::copy_file(from.folder / file, folder / file, error);
    check(!error, "cannot copy {} to {}: {}", (from.folder / file).string(), folder.string(),
          error.message());
    manifest.columns[file] = column;
  }
}

// The items that have attributes: by their ids if ids are hashes, otherwise all up to the largest.
std::vector<std::int64_t> items_of(const Dataset& from) {
  std::vector<std::int64_t> items;
  for (const AttributeColumn::Part& part : from.attribute(from.manifest().attributes.front()).parts()) {
    if (part.items) {
      items.insert(items.end(), part.items->begin(), part.items->end());
    } else {
      for (auto i = std::ssize(items); i < part.values.size(); ++i) items.push_back(i);
    }
  }
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

void join_segments(const Dataset& from, const Path& folder, Manifest& manifest) {
  const Manifest& source = from.manifest();
  copy_columns(from.folders().back(), folder, manifest, is_of_codes);
  if (contains(source.names, "item")) {
    const Names names(from.folder(), source, "item");
    NameCollector collector(folder / "names.spill", kNameBytes);
    for (std::int64_t row = 0; row < names.size(); ++row) collector.add(names.id(row), names.name(row));
    collector.write(folder, "item", manifest);
  }
  if (source.attributes.empty()) return;
  const std::vector<std::int64_t> items = items_of(from);
  std::vector<ItemAttribute> attributes;
  for (const std::string& name : source.attributes) {
    std::vector<std::int64_t> values;
    values.reserve(items.size());
    for (const std::int64_t item : items) values.push_back(from.attribute(name).of(item));
    attributes.emplace_back().name = name;
    attributes.back().values.append(values);
  }
  if (source.columns.contains(kItemIdsFile)) write_item_ids(folder, items, manifest);
  write_attributes(folder, attributes, manifest);
}

}  // namespace

void add_item_columns(const Dataset& from, const Path& folder, Manifest manifest) {
  const Manifest& source = from.manifest();
  if (from.folders().size() == 1) {
    copy_columns(from.folders().front(), folder, manifest, is_of_items);
  } else {
    join_segments(from, folder, manifest);
  }
  manifest.attributes = source.attributes;
  manifest.hashed = source.hashed;
  manifest.names = source.names;
  std::erase(manifest.names, "user");
  manifest.id = dataset_id(manifest.columns);
  write_file(folder / kManifestFile, manifest_to_json(manifest));
}

Items with_names(const std::vector<std::int64_t>& ids, const Dataset& dataset) {
  Items items{.ids = ids, .texts = {}};
  const auto& kinds = dataset.manifest().names;
  if (!contains(kinds, "item")) return items;
  const Names names(dataset.folder(), dataset.manifest(), "item");
  items.texts.reserve(ids.size());
  for (const std::int64_t id : ids) items.texts.emplace_back(names.name_of(id).value_or(std::to_string(id)));
  return items;
}

TableOutput::Type id_column_type(const Manifest& manifest, const char* of) {
  return manifest.hashed.contains(of) ? TableOutput::Type::text : TableOutput::Type::integer;
}

}  // namespace hstu
