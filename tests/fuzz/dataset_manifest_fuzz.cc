// A dataset's manifest: rejected, or written and read again as an equal one.
#include <nlohmann/json.hpp>

#include "fuzz/harness.h"
#include "hstu/dataset/manifest.h"

namespace {

// With the correct id of its columns, so that mutations pass that check.
std::string with_its_id(std::string_view text) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("columns") || !json["columns"].is_object())
    return std::string(text);
  std::map<std::string, hstu::ColumnInfo> columns;
  for (const auto& [file, column] : json["columns"].items()) {
    if (!column.is_object()) continue;
    hstu::ColumnInfo& info = columns[file];
    if (column.contains("type") && column["type"].is_string()) info.type = column["type"].get<std::string>();
    if (column.contains("count") && column["count"].is_number_integer()) info.count = column["count"];
    if (column.contains("checksum") && column["checksum"].is_string()) info.checksum = column["checksum"];
  }
  json["id"] = hstu::dataset_id(columns);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Manifest manifest = manifest_from_json(with_its_id(fuzz::text_of(data, size)), "manifest.json");
    require(manifest_from_json(manifest_to_json(manifest), "again.json") == manifest,
            "not the same after a round trip");
  });
}
