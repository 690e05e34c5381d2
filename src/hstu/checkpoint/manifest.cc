#include "hstu/checkpoint/manifest.h"

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "hstu-checkpoint";
constexpr int kVersion = 1;

// The exact text of a manifest file: the document with its own checksum.
std::string sealed_text(json document) {
  document.erase("checksum");
  document["checksum"] = checksum(document.dump(2));
  return document.dump(2) + "\n";
}

}  // namespace

void write_checkpoint_manifest(const Path& folder, const CheckpointManifest& manifest) {
  json files = json::object();
  for (const auto& [name, file] : manifest.files)
    files[name] = {{"bytes", file.bytes}, {"checksum", file.checksum}};
  const json document = {{"format", kFormat},       {"version", kVersion},       {"step", manifest.step},
                         {"state", manifest.state}, {"tables", manifest.tables}, {"files", files}};
  const std::string text = sealed_text(document);
  // NaN would be read back as null, without an error.
  require(json::parse(text)["state"] == manifest.state,
          "the state of a checkpoint holds a NaN or an infinity");
  write_file(folder / kManifestName, text);
}

CheckpointManifest read_checkpoint_manifest(const Path& folder) {
  const Path path = folder / kManifestName;
  const std::string text = read_file(path);
  check_json_nesting(text, path);
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(document.is_object() && document.value("format", json()) == kFormat,
        "{} is not the manifest of a checkpoint, or it is torn", path.string());
  check(document.value("version", json()) == kVersion,
        "{}: expected version {}, found {}: use the hstu that wrote it", path.string(), kVersion,
        document.value("version", json()).dump());
  check(sealed_text(document) == text, "{} was altered after it was written", path.string());
  try {
    CheckpointManifest manifest{.step = document.at("step").get<std::int64_t>(),
                                .state = document.at("state"),
                                .tables = document.at("tables"),
                                .files = {}};
    for (const auto& [name, file] : document.at("files").items()) {
      const Path relative(name);
      check(relative.is_relative() && relative.lexically_normal() == relative && *relative.begin() != "..",
            "{}: files: \"{}\" is not a file of this folder", path.string(), name);
      manifest.files[name] = {file.at("bytes").get<std::uint64_t>(), file.at("checksum").get<std::string>()};
    }
    return manifest;
  } catch (const json::exception& error) {
    fail("{} lacks what a manifest of version {} holds: {}", path.string(), kVersion, json_problem(error));
  }
}

}  // namespace hstu
