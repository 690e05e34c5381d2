// The manifest of a stored anchor index: its dataset, its rule, and checksums of its files.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "hstu/base/files.h"
#include "hstu/dataset/anchor_index.h"

namespace hstu {

// Of one list: positions by window, and the (W + 1) offsets of the windows.
struct ListFiles {
  const char* positions;
  const char* offsets;
};
inline constexpr ListFiles kTrainingUsers{"training.npy", "training_offsets.npy"};
inline constexpr ListFiles kHeldOutUsers{"held_out.npy", "held_out_offsets.npy"};

struct AnchorManifest {
  std::string dataset;  // id of the dataset
  AnchorRule rule;
  std::int64_t time_min = 0, time_max = 0;
  std::int64_t first_window = 0;                 // its begin; time_min in the first segment
  std::map<std::string, std::string> checksums;  // file_checksum() by file name
};

std::string anchor_manifest_to_json(const AnchorManifest& manifest);

// The manifest of the index in `folder`. Throws Error naming the file and the missing or wrong field.
AnchorManifest read_anchor_manifest(const Path& folder);

}  // namespace hstu
