// Ties and filters of a manifest as JSON.
#pragma once

#include "hstu/base/json_text.h"
#include "hstu/dataset/json_field.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

Json to_json(const Ties& ties);
Json to_json(const FilterReport& filters);

// Error naming a field that is missing or of the wrong type.
Ties read_ties(const JsonField& field);
FilterReport read_filters(const JsonField& field);

}  // namespace hstu
