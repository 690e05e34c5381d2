// The stored index of a dataset's anchors: its manifest and its four lists are rejected, or every position is
// an event of the dataset.
#include <nlohmann/json.hpp>

#include "fuzz/harness.h"
#include "fuzz/small_dataset.h"
#include "hstu/base/checksum.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/anchor_manifest.h"

namespace {

using namespace hstu;

// With the dataset, the rule and the checksums of the files, so that mutations of the rest pass these checks.
std::string sealed(std::string_view text, const Path& folder, const Dataset& dataset,
                   const AnchorRule& rule) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) return std::string(text);
  json["dataset"] = dataset.manifest().id;
  json["min_history"] = rule.min_history;
  json["window_seconds"] = rule.window_seconds;
  for (const ListFiles& files : {kTrainingUsers, kHeldOutUsers}) {
    for (const char* name : {files.positions, files.offsets}) {
      if (json.contains("checksums") && json["checksums"].is_object() &&
          std::filesystem::exists(folder / name))
        json["checksums"][name] = file_checksum(folder / name);
    }
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

// Input: the manifest, then the elements of the four lists, each after a zero byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  return fuzz::accept_or_refuse([&] {
    const Dataset dataset(fuzz::small_dataset());
    const AnchorRule rule{.min_history = 1, .window_seconds = 86'400, .users = {}};
    const Path folder = fuzz::small_dataset() / kAnchorFolder / rule.name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string_view manifest = fuzz::take_part(rest);
    for (const ListFiles& files : {kTrainingUsers, kHeldOutUsers}) {
      for (const char* name : {files.positions, files.offsets})
        fuzz::plain_npy<std::int64_t>(folder / name, fuzz::numbers_of(fuzz::take_part(rest)));
    }
    fuzz::plain_file(folder / kManifestFile, sealed(manifest, folder, dataset, rule));
    const auto index = read_anchor_index(dataset, rule);
    if (!index) return;
    for (std::int64_t w = 0; w < index->windows(); ++w) {
      const auto training = index->training_users.window(w), held_out = index->held_out_users.window(w);
      fuzz::touch(training.data(), training.size_bytes());
      fuzz::touch(held_out.data(), held_out.size_bytes());
    }
    verify_anchor_indices(dataset);
  });
}
