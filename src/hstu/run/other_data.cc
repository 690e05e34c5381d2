#include "hstu/run/other_data.h"

#include <map>
#include <string>

#include "hstu/dataset/same_schema.h"
#include "hstu/run/state.h"

namespace hstu {

RunOptions with_table_rows(RunOptions options, const Checkpoint& checkpoint) {
  std::map<std::string, std::int64_t> rows;
  for (const auto& table : checkpoint.manifest().tables)
    rows[table.at("name").get<std::string>()] = table.at("rows").get<std::int64_t>();
  const auto take = [&](const std::string& name, std::int64_t& to) {
    if (const auto found = rows.find(name); found != rows.end()) to = found->second;
  };
  take("item", options.features.item_rows);
  for (AttributeSection& attribute : options.features.attributes) take(attribute.name, attribute.rows);
  for (ContextualFeature& feature : options.features.context) take(feature.name, feature.rows);
  for (const auto& [name, to] : options.model.options().table_rows()) take(name, *to);
  return options;
}

void check_readable(const Checkpoint& checkpoint, const Path& run_data, const Dataset& data) {
  const std::string id = saved_dataset(checkpoint);
  if (data.manifest().extends_or_is(id)) return;
  const bool there = std::filesystem::exists(run_data / kManifestFile);
  const bool unchanged = there && read_manifest(run_data).extends_or_is(id);
  if (const auto saved = saved_manifest(checkpoint); saved && !unchanged)
    return check_same_schema(*saved, fmt::format("the dataset {}", id), data.manifest(), data.folder());
  if (!std::filesystem::exists(run_data / kManifestFile)) {
    fail_usage(
        "{}: it is not the dataset of the run, and that one, {}, is not there to compare their schemas: "
        "restore its {}",
        data.folder().string(), run_data.string(), kManifestFile);
  }
  const Manifest own = read_manifest(run_data);
  if (!own.extends_or_is(id) && saved_reason(checkpoint) != kExportReason) {
    fail_usage(
        "{} is the dataset {}, and the run was trained on {}: whether actions, columns and texts mean the "
        "same "
        "is not known: put that dataset back",
        run_data.string(), own.id, id);
  }
  check_same_schema(own, run_data, data.manifest(), data.folder());
}

}  // namespace hstu
