#include "hstu/dataset/manifest.h"

#include <span>

#include <fmt/format.h>

#include "hstu/base/checksum.h"
#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/dataset/segments.h"

namespace hstu {

std::string context_file(std::string_view name) {
  return fmt::format("context_{}.npy", name);
}

std::string attribute_file(std::string_view name) {
  return fmt::format("attribute_{}.npy", name);
}

bool Manifest::extends_or_is(std::string_view wanted) const {
  return id == wanted || contains(extended, wanted);
}

std::uint8_t Manifest::action_bit(std::string_view action) const {
  std::vector<std::string> known;
  for (const ActionBit& candidate : actions) {
    if (candidate.name == action) return candidate.bit;
    known.push_back(candidate.name);
  }
  fail_usage("the dataset \"{}\" has no action \"{}\"{}", name, action, suggestion(action, known));
}

std::uint8_t Manifest::pool_bits() const {
  std::uint8_t bits = 0;
  for (const std::string& pool : pools) bits = static_cast<std::uint8_t>(bits | action_bit(pool));
  return bits;
}

std::string dataset_id(const std::map<std::string, ColumnInfo>& columns,
                       const std::optional<Extension>& extends) {
  std::string text;
  for (const auto& [file, column] : columns) {
    text += fmt::format("{} {} {} {}\n", file, column.type, column.count, column.checksum);
  }
  if (extends) text += fmt::format("extends {}\n", extends->dataset);
  return checksum(text);
}

Manifest read_manifest(const Path& dataset) {
  return manifest_of(read_segments(dataset));
}

Manifest read_own_manifest(const Path& dataset) {
  const Path file = dataset / kManifestFile;
  if (!std::filesystem::exists(file)) {
    if (dataset.empty()) fail_usage("data.path: expected the folder of a dataset, found \"\"");
    if (!std::filesystem::exists(dataset))
      fail_usage(
          "{} is not a dataset: it does not exist; create one with hstu prepare, or, if it was moved, name "
          "its "
          "folder by data.path (of a run: in its config.toml)",
          dataset.string());
    fail_usage("{} is not a dataset: it has no {}; create one with hstu prepare", dataset.string(),
               kManifestFile);
  }
  return manifest_from_json(read_file(file), file);
}

}  // namespace hstu
