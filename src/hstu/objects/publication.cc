#include "hstu/objects/publication.h"

#include <fmt/format.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr const char* kFormat = "hstu-stored-export";
constexpr int kVersion = 1;

}  // namespace

std::string StoredExport::manifest() const {
  Json json{{"format", kFormat},
            {"version", kVersion},
            {"folder", folder},
            {"base", base},
            {"files", Json::object()}};
  for (const auto& [path, file] : files)
    json["files"][path] = {{"bytes", file.bytes}, {"checksum", file.checksum}};
  return json.dump(2) + "\n";
}

std::string StoredExport::name() const {
  return fmt::format("{}-{}", folder, checksum(std::string_view(manifest())));
}

StoredExport parse_stored_export(const std::string& name, std::string_view manifest) {
  const Json json = parse_json(manifest, name + ".json");
  StoredExport stored;
  try {
    check(json.at("format") == kFormat && json.at("version") == kVersion,
          "{}: expected the files of a published export, of version {}: use the hstu that published it", name,
          kVersion);
    json.at("folder").get_to(stored.folder);
    json.at("base").get_to(stored.base);
    for (const auto& [path, file] : json.at("files").items())
      stored.files[path] = {file.at("bytes").get<std::int64_t>(), file.at("checksum").get<std::string>()};
  } catch (const Json::exception& error) {
    fail("{}: expected the files of a published export: {}", name, json_problem(error));
  }
  check(is_plain_name(stored.folder) && stored.folder.starts_with("step_"),
        "{}: folder: expected step_ and its number, found \"{}\"", name, stored.folder);
  check(stored.base.empty() || is_plain_name(stored.base), "{}: base: expected {}, found \"{}\"", name,
        kPlainName, stored.base);
  for (const auto& [path, file] : stored.files) {
    relative_path(path, "");
    check(file.bytes >= 0, "{}: {}: expected its size, found {}", name, path, file.bytes);
  }
  check(name == fmt::format("{}-{}", stored.folder, checksum(manifest)),
        "{}: is not as it was published: publish again", name);
  return stored;
}

std::string current_key(const ObjectUrl& url) {
  return url.prefix + "current";
}

std::string manifest_key(const ObjectUrl& url, const std::string& name) {
  return url.prefix + name + ".json";
}

std::string files_prefix(const ObjectUrl& url, const std::string& name) {
  return url.prefix + name + "/";
}

std::string parse_current(std::string_view text, const ObjectUrl& url) {
  std::string name(text);
  if (name.ends_with('\n')) name.pop_back();
  constexpr std::size_t kLongest = 255;
  check(is_plain_name(name) && name.size() <= kLongest,
        "{}: expected the name of a published export, found \"{}\"",
        object_name(url.bucket, current_key(url)), printable(name.substr(0, 100)));
  return name;
}

}  // namespace hstu
