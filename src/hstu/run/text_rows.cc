#include "hstu/run/text_rows.h"

#include <optional>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/dataset/names.h"
#include "hstu/run/state.h"

namespace hstu {
namespace {

using Ids = std::vector<std::int64_t>;

// A table, and the texts ("context_NAME", "attribute_NAME") whose codes are its ids or are hashed into them.
struct TableOfTexts {
  std::string table, of;
  bool hashed = false;
};

std::vector<TableOfTexts> tables_of_texts(const RunOptions& options, const Manifest& manifest) {
  std::vector<TableOfTexts> tables;
  const auto add = [&](const std::string& table, const std::string& column, bool hashed) {
    for (const std::string& of : {"attribute_" + column, "context_" + column})
      if (contains(manifest.names, of)) tables.push_back({table, of, hashed});
  };
  for (const AttributeSection& attribute : options.features.attributes)
    add(attribute.name, attribute.source(), false);
  for (const ContextualFeature& feature : options.features.context)
    for (const std::string& key : feature.keys) add(feature.name, key, feature.hashed);
  return tables;
}

// The dataset of the checkpoint's run, if it is where it was.
std::optional<Manifest> dataset_there(const Checkpoint& checkpoint, const Path& path) {
  if (path.empty() || !std::filesystem::exists(path / kManifestFile)) return std::nullopt;
  Manifest manifest = read_manifest(path);
  return manifest.extends_or_is(saved_dataset(checkpoint)) ? std::optional(std::move(manifest))
                                                           : std::nullopt;
}

std::string checksum_of_texts(const Manifest& manifest, const std::string& of) {
  const auto column = manifest.columns.find(names_file(of));
  return column == manifest.columns.end() ? "" : column->second.checksum;
}

// The code here of each code there; code 0 is no text.
Ids codes_here(const Names& there, const Names& here) {
  Ids codes{0};
  for (std::int64_t row = 0; row < there.size(); ++row)
    codes.push_back(here.id_of(there.name(row)).value_or(-1));
  return codes;
}

bool is_same(const Ids& codes) {
  for (std::size_t code = 0; code < codes.size(); ++code)
    if (codes[code] != static_cast<std::int64_t>(code)) return false;
  return true;
}

}  // namespace

std::map<std::string, Ids> match_text_rows(const Checkpoint& checkpoint, const RunOptions& options,
                                           const Dataset& dataset) {
  std::map<std::string, Ids> matched;
  const Manifest& manifest = dataset.manifest();
  if (!checkpoint.state().contains("dataset") || manifest.extends_or_is(saved_dataset(checkpoint)))
    return matched;
  if (saved_dataset(checkpoint).empty()) return matched;  // of NumPy: their ids are those of this dataset
  // An export of tables has no configuration.
  const Path path = checkpoint.state().contains("config") ? saved_options(checkpoint).data.path : Path();
  const std::optional<Manifest> there = dataset_there(checkpoint, path), saved = saved_manifest(checkpoint);
  for (const TableOfTexts& texts : tables_of_texts(options, manifest)) {
    const std::string expected = saved ? checksum_of_texts(*saved, texts.of) : "";
    if (!expected.empty() && expected == checksum_of_texts(manifest, texts.of)) continue;
    const auto refuse = [&](const std::string& why) {
      fail_usage(
          "--warm-start {}: table \"{}\": the texts of {} may have other codes in {} than in {}, {}: prepare "
          "the dataset with --codes-from that one, or leave the table out",
          checkpoint.path().string(), texts.table, texts.of, dataset.folder().string(),
          path.empty() ? "the dataset of the export" : path.string(), why);
    };
    if (!there) refuse(path.empty() ? "of which it says nothing" : "which is gone or was replaced");
    if (!contains(there->names, texts.of)) refuse("which has no such texts");
    Ids codes = codes_here(Names(path, *there, texts.of), Names(dataset.folder(), manifest, texts.of));
    if (is_same(codes)) continue;
    if (texts.hashed) refuse("and its ids are hashes of codes");
    matched[texts.table] = std::move(codes);
  }
  return matched;
}

}  // namespace hstu
