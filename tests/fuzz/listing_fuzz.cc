// The answers of an object store: refused, or objects with keys and sizes.
#include "fuzz/harness.h"
#include "hstu/objects/listing.h"
#include "hstu/objects/object_url.h"
#include "hstu/objects/upload_answers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hstu;
  const std::string_view text = fuzz::text_of(data, size);
  parse_store_error(text);
  fuzz::accept_or_refuse([&] {
    for (const BegunUpload& upload : parse_uploads(text).uploads)
      require(!upload.key.empty() && !upload.id.empty(), "an upload without key or id");
  });
  fuzz::accept_or_refuse([&] {
    for (const auto& [number, part] : parse_parts(text).parts)
      require(number > 0 && part.size >= 0, "a part without number or size");
  });
  return fuzz::accept_or_refuse([&] {
    for (const StoredObject& object : parse_listing(text).objects) {
      require(object.size >= 0 && !object.key.empty(), "an object without a size or a key");
      relative_path(object.key, "");
    }
  });
}
