// manifest.json of a checkpoint: the content of the folder, with checksums that cover every byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "hstu/base/files.h"

namespace hstu {

inline constexpr const char* kManifestName = "manifest.json";

struct ManifestFile {
  std::uint64_t bytes = 0;
  std::string checksum;  // XXH3-128, 32 hexadecimal digits
};

// The checkpoint that another one continues.
struct CheckpointLink {
  std::int64_t step = 0;
  std::string checksum;         // identity() of its manifest
  std::int64_t increments = 0;  // saves since then, with this one, without those of interruptions
  Path folder = {};             // relative to the one that continues it; "": beside it, by its step
};

struct CheckpointManifest {  // NOLINT(bugprone-exception-escape): a move of nlohmann::json throws nothing
  std::int64_t step = 0;
  nlohmann::json state;                       // values of the caller; descriptions of sections by name
  nlohmann::json tables;                      // array: descriptions of the sections "tables/..."
  std::map<std::string, ManifestFile> files;  // by path relative to the checkpoint, "/" between parts
  std::optional<CheckpointLink> base = {};    // its tables have only what changed since this one
  std::string checksum = {};                  // of the manifest; written last, and read

  // What a link names: the checksum, or the one of the checkpoint that an export was made from.
  std::string identity() const;
};

// A checkpoint's folder and its manifest.
struct CheckpointLayer {  // NOLINT(bugprone-exception-escape): as above
  Path path;
  CheckpointManifest manifest;
};

// Writes folder/manifest.json and sets `manifest.checksum`. Throws InternalError if `state` holds a value
// that JSON lacks (NaN, infinity).
void write_checkpoint_manifest(const Path& folder, CheckpointManifest& manifest);

// Reads folder/manifest.json. Throws Error naming the file if it is missing, torn, altered in any byte or of
// another version.
CheckpointManifest read_checkpoint_manifest(const Path& folder);

}  // namespace hstu
