// From which moment the times of a dataset count.
#pragma once

#include "hstu/dataset/manifest.h"

namespace hstu {

// False: its times are of no plausible year. Of a dataset that has neither events nor times nothing is known.
bool counts_from_1970(const Manifest& manifest);

}  // namespace hstu
