#include "hstu/dataset/anchor_manifest.h"

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

constexpr const char* kIndexFormat = "hstu-anchors";
constexpr int kIndexVersion = 1;

}  // namespace

std::string anchor_manifest_to_json(const AnchorManifest& manifest) {
  Json json{{"format", kIndexFormat},
            {"version", kIndexVersion},
            {"dataset", manifest.dataset},
            {"min_history", manifest.rule.min_history},
            {"window_seconds", manifest.rule.window_seconds},
            {"train_user_fraction", manifest.rule.users.train_fraction},
            {"split_salt", manifest.rule.users.salt},
            {"time", {{"min", manifest.time_min}, {"max", manifest.time_max}}},
            {"checksums", manifest.checksums}};
  if (manifest.first_window != manifest.time_min) json["first_window"] = manifest.first_window;
  return json.dump(2) + "\n";
}

AnchorManifest read_anchor_manifest(const Path& folder) {
  const Path file = folder / kManifestFile;
  try {
    const Json json = parse_json(read_file(file), file);
    const auto format = json.at("format").get<std::string>();
    const auto version = json.at("version").get<std::int64_t>();
    check(format == kIndexFormat && version == kIndexVersion, "expected {} version {}, found {} version {}",
          kIndexFormat, kIndexVersion, format, version);
    AnchorManifest manifest;
    manifest.dataset = json.at("dataset").get<std::string>();
    manifest.rule = {.min_history = json.at("min_history").get<std::int64_t>(),
                     .window_seconds = json.at("window_seconds").get<std::int64_t>(),
                     .users = {.train_fraction = json.at("train_user_fraction").get<double>(),
                               .salt = json.at("split_salt").get<std::int64_t>()}};
    manifest.time_min = json.at("time").at("min").get<std::int64_t>();
    manifest.time_max = json.at("time").at("max").get<std::int64_t>();
    manifest.first_window = json.value("first_window", manifest.time_min);
    check(manifest.rule.window_seconds >= 0 && manifest.first_window <= manifest.time_min &&
              manifest.time_min <= manifest.time_max,
          "window_seconds, first_window or time is out of range");
    manifest.checksums = json.at("checksums").get<std::map<std::string, std::string>>();
    for (const ListFiles& files : {kTrainingUsers, kHeldOutUsers}) {
      for (const char* name : {files.positions, files.offsets})
        check(manifest.checksums.contains(name), "checksums: {} is missing", name);
    }
    check(manifest.checksums.size() == 4, "checksums: expected 4 files, found {}", manifest.checksums.size());
    return manifest;
  } catch (const std::exception& error) {
    fail("{}: not the manifest of an anchor index ({}); remove {}, and the next run builds it again",
         file.string(), json_problem(error), folder.string());
  }
}

}  // namespace hstu
