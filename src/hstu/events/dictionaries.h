// The texts of a dataset that have codes, for another log that is to have the same ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// By "context_NAME" and "attribute_NAME": the texts of codes 1, 2, ...
using Dictionaries = std::map<std::string, std::vector<std::string>>;

Dictionaries read_dictionaries(const Path& dataset, const Manifest& manifest);

}  // namespace hstu
