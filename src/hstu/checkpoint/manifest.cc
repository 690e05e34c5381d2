#include "hstu/checkpoint/manifest.h"

#include <utility>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "hstu-checkpoint";
constexpr int kVersion = 1, kVersionWithBase = 2;  // programs that know no base refuse the second

// The exact text of a manifest file: the document with its own checksum.
std::string sealed_text(json document) {
  document.erase("checksum");
  document["checksum"] = checksum(document.dump(2));
  return document.dump(2) + "\n";
}

// What readers of a table's entry rely on; what else it has is checked where it is read. Exports have no
// optimizer.
void check_tables(const json& tables, const Path& path) {
  check(tables.is_array(), "{}: tables: expected a list, found {}", path.string(), tables.type_name());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const json& table = tables[t];
    check(table.is_object(), "{}: tables[{}]: expected an object, found {}", path.string(), t,
          table.type_name());
    const auto expect = [&](const char* key, const json& value, bool fits, const char* what) {
      check(fits, "{}: tables[{}].{}: expected {}, found {}", path.string(), t, key, what, value.dump());
    };
    for (const auto& [key, otherwise] : {std::pair{"name", json()}, {"optimizer", json("")}}) {
      const json value = table.value(key, otherwise);
      expect(key, value, value.is_string(), "a text");
    }
    for (const auto& [key, otherwise] :
         {std::pair{"dim", json()}, {"rows", json()}, {"rows_alive", json()}, {"state_width", json(0)}}) {
      const json value = table.value(key, otherwise);
      expect(key, value, value.is_number_integer() && value >= 0, "a count");
    }
  }
}

}  // namespace

std::string CheckpointManifest::identity() const {
  const auto source = state.find("source");
  return source == state.end() ? checksum : source->at("checksum").get<std::string>();
}

void write_checkpoint_manifest(const Path& folder, CheckpointManifest& manifest) {
  json files = json::object();
  for (const auto& [name, file] : manifest.files)
    files[name] = {{"bytes", file.bytes}, {"checksum", file.checksum}};
  json document = {{"format", kFormat},         {"version", manifest.base ? kVersionWithBase : kVersion},
                   {"step", manifest.step},     {"state", manifest.state},
                   {"tables", manifest.tables}, {"files", files}};
  if (manifest.base) {
    document["base"] = {{"step", manifest.base->step},
                        {"checksum", manifest.base->checksum},
                        {"increments", manifest.base->increments}};
    if (!manifest.base->folder.empty()) document["base"]["folder"] = manifest.base->folder.string();
  }
  const std::string text = sealed_text(document);
  // NaN would be read back as null, without an error.
  require(json::parse(text)["state"] == manifest.state,
          "the state of a checkpoint holds a NaN or an infinity");
  manifest.checksum = json::parse(text)["checksum"];
  write_file(folder / kManifestName, text);
}

CheckpointManifest read_checkpoint_manifest(const Path& folder) {
  const Path path = folder / kManifestName;
  const std::string text = read_file(path);
  check_json_nesting(text, path);
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(document.is_object() && document.value("format", json()) == kFormat,
        "{} is not the manifest of a checkpoint, or it is torn", path.string());
  const json version = document.value("version", json());
  check(version == kVersion || version == kVersionWithBase,  // NOLINT(misc-redundant-expression): 1 or 2
        "{}: expected version {} or {}, found {}: use the hstu that wrote it", path.string(), kVersion,
        kVersionWithBase, version.dump());
  check(sealed_text(document) == text, "{} was altered after it was written", path.string());
  try {
    CheckpointManifest manifest{.step = document.at("step").get<std::int64_t>(),
                                .state = document.at("state"),
                                .tables = document.at("tables"),
                                .files = {}};
    check_tables(manifest.tables, path);
    for (const auto& [name, file] : document.at("files").items()) {
      check(is_path_below(name), "{}: files: \"{}\" is not a file of this folder", path.string(), name);
      manifest.files[name] = {file.at("bytes").get<std::uint64_t>(), file.at("checksum").get<std::string>()};
    }
    if (version == kVersionWithBase) {
      const json& base = document.at("base");
      manifest.base = {base.at("step").get<std::int64_t>(), base.at("checksum").get<std::string>(),
                       base.at("increments").get<std::int64_t>(), base.value("folder", std::string())};
    }
    manifest.checksum = document.at("checksum").get<std::string>();
    manifest.identity();  // which may lack what it needs
    return manifest;
  } catch (const json::exception& error) {
    fail("{} lacks what a manifest of version {} holds: {}", path.string(), version.dump(),
         json_problem(error));
  }
}

}  // namespace hstu
