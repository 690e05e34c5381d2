// Sends published exports to a store of objects, whose layout is that of objects/publication.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/base/files.h"
#include "hstu/objects/object_store.h"

namespace hstu {

// Sends the export at `path` and its base, lets `current` name it, then removes what neither it nor the
// `keep` latest exports need. Readers see the earlier export or this one, whenever this is interrupted;
// calling it again sends what is missing. Returns the export's name there. Exports that cannot be removed are
// a warning. Throws Error.
std::string publish_to_store(const ObjectStore& store, const ObjectUrl& url, const Path& path,
                             const std::optional<Path>& base, std::int64_t keep, std::int64_t part_bytes);

}  // namespace hstu
