// Verifies a checkpoint on disk: every byte is unchanged and every number finite.
#pragma once

#include "hstu/base/files.h"
#include "hstu/checkpoint/manifest.h"

namespace hstu {

// Throws Error naming the first file of the folder that is missing, extra, torn or altered, otherwise the
// first tensor (and id of a row) that holds a NaN or an infinity. Reads every file completely.
void verify_checkpoint(const Path& folder, const CheckpointManifest& manifest);

}  // namespace hstu
