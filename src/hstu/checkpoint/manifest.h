// manifest.json of a checkpoint: what the folder holds, and a checksum for every byte of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "hstu/base/files.h"

namespace hstu {

struct ManifestFile {
  std::uint64_t bytes = 0;
  std::string checksum;  // XXH3-128, 32 hexadecimal digits
};

struct CheckpointManifest {
  std::int64_t step = 0;
  nlohmann::json state;   // the caller's: counters, positions, metrics
  nlohmann::json tables;  // array of {name, rows, dim, key, optimizer, state_width, rows_alive}
  std::map<std::string, ManifestFile> files;  // by path relative to the checkpoint, "/" between parts
};

// Writes folder/manifest.json. Throws InternalError when `state` holds what JSON cannot (NaN, infinity).
void write_checkpoint_manifest(const Path& folder, const CheckpointManifest& manifest);

// Reads folder/manifest.json. Throws Error naming the file when it is missing, torn, altered by a single byte
// or of another version.
CheckpointManifest read_checkpoint_manifest(const Path& folder);

// Throws Error naming the first file of the folder that is missing, extra, of another size or (with `bytes`,
// by reading everything) of another content than the manifest says.
void verify_files(const Path& folder, const CheckpointManifest& manifest, bool bytes);

}  // namespace hstu
