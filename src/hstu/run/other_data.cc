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
  if (data.manifest().extends_or_is(saved_dataset(checkpoint))) return;
  if (!std::filesystem::exists(run_data / kManifestFile)) {
    fail_usage(
        "{}: it is not the dataset of the run, and that one, {}, is not there to compare their schemas: "
        "restore its {}",
        data.folder().string(), run_data.string(), kManifestFile);
  }
  check_same_schema(read_manifest(run_data), run_data, data.manifest(), data.folder());
}

}  // namespace hstu
