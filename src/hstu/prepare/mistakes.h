// Warnings about a schema that fits the files but hardly the intention.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/log_stream.h"
#include "hstu/events/schema.h"

namespace hstu {

// One line each: what reading remarked (LogStream), a condition that matches nothing, no rankable event, no
// positive, no negative in spite of conditions, times outside the years 1990 to 2100, texts that are no
// categories. `files`: of the log, to show what a column
// contains.
std::vector<std::string> mistakes_of(const Schema& schema, const std::vector<Path>& files,
                                     const StreamedLog& log, const Manifest& manifest);

}  // namespace hstu
