// A checkpoint's manifest and the files that it lists: rejected, or complete.
#include <nlohmann/json.hpp>

#include "fuzz/harness.h"
#include "hstu/base/checksum.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/checkpoint/verify.h"

namespace {

// With the correct checksum of the text, so that mutations pass that check.
std::string sealed(std::string_view text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::string(text);
  json.erase("checksum");
  const auto replace = nlohmann::json::error_handler_t::replace;
  json["checksum"] = hstu::checksum(json.dump(2, ' ', false, replace));
  return json.dump(2, ' ', false, replace) + "\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  return fuzz::accept_or_refuse([&] {
    const Path folder = fuzz::fresh_folder();
    fuzz::plain_file(folder / "manifest.json", sealed(fuzz::text_of(data, size)));
    const CheckpointManifest manifest = read_checkpoint_manifest(folder);
    verify_checkpoint(folder, manifest);
    require(manifest.files.empty(), "a file that is not there counts as whole");
  });
}
