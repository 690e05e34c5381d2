// A schema file to start from, guessed from the files of a log.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// The text of a schema file (TOML) for the event files, with comments that give the reason of every guess and
// list the other columns. read_schema() accepts it. Where no column can be the user, the
// item or the time, it has an empty name and a comment. Reads the columns' names of all files and the first
// rows of the first one. UsageError for a file without rows, Error for one that is not whole. The schema's
// `files` are relative to the folder that contains them all, which is the --input of the command in the first
// comment.
std::string suggest_schema(const std::vector<Path>& files);

}  // namespace hstu
