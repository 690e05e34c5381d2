// The manifest of an export in a store: refused, or files below a folder of exports.
#include "fuzz/harness.h"
#include "hstu/base/checksum.h"
#include "hstu/objects/publication.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  const std::string_view text = fuzz::text_of(data, size);
  const ObjectUrl url = parse_object_url("s3://models/shop");
  fuzz::accept_or_refuse([&] { require(!parse_current(text, url).empty(), "a name without characters"); });
  return fuzz::accept_or_refuse([&] {
    const StoredExport stored = parse_stored_export("step_00000004-" + checksum(text), text);
    require(stored.folder == "step_00000004", "the folder of another export");
    for (const auto& [path, file] : stored.files) {
      require(file.bytes >= 0, "a file without a size");
      relative_path(path, "");
    }
  });
}
