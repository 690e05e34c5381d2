// How files say who had what, in lines of ids without quotes and names of columns.
#pragma once

#include <map>

#include "hstu/base/choice.h"
#include "hstu/base/files.h"

namespace hstu {

// A line is a user and all of its items, the oldest first; or one event: user, item and maybe a time.
enum class SequenceLayout { kLines, kRows };
inline constexpr Choice<SequenceLayout> kSequenceLayouts[] = {{"lines", SequenceLayout::kLines},
                                                              {"rows", SequenceLayout::kRows}};

struct SequenceFormat {
  SequenceLayout layout = SequenceLayout::kLines;
  char delimiter = ' ';     // between fields; a blank: any number of blanks and tabs
  bool header = false;      // the first line of a file is none of the data
  bool user_texts = false;  // users are texts, not integers from 0 to 2^63 - 2
  bool item_texts = false;  // items are
  bool timed = false;       // events have times
  // Of lines that are timed: of each file the one that has a time for each of its items, place by place.
  std::map<Path, Path> times_of = {};
};

}  // namespace hstu
