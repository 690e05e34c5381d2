// manifest.json of a checkpoint: the content of the folder, with checksums that cover every byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "hstu/base/files.h"

namespace hstu {

inline constexpr const char* kManifestName = "manifest.json";

struct ManifestFile {
  std::uint64_t bytes = 0;
  std::string checksum;  // XXH3-128, 32 hexadecimal digits
};

struct CheckpointManifest {  // NOLINT(bugprone-exception-escape): a move of nlohmann::json throws nothing
  std::int64_t step = 0;
  nlohmann::json state;                       // values of the caller; descriptions of sections by name
  nlohmann::json tables;                      // array: descriptions of the sections "tables/..."
  std::map<std::string, ManifestFile> files;  // by path relative to the checkpoint, "/" between parts
};

// Writes folder/manifest.json. Throws InternalError if `state` holds a value that JSON lacks (NaN, infinity).
void write_checkpoint_manifest(const Path& folder, const CheckpointManifest& manifest);

// Reads folder/manifest.json. Throws Error naming the file if it is missing, torn, altered in any byte or of
// another version.
CheckpointManifest read_checkpoint_manifest(const Path& folder);

}  // namespace hstu
