// Files compressed by gzip, unpacked through a pipe: for hstu, which links no Arrow.
#pragma once

#include "hstu/base/files.h"

namespace hstu {

// Whether the file begins as gzip does, whatever its name.
bool begins_as_gzip(const Path& file);

// Writes the unpacked bytes to the descriptor. Throws Error naming a file that is damaged.
void write_unpacked(const Path& file, int descriptor);

}  // namespace hstu
