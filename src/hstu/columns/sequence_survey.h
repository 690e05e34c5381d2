// What files with lines of ids are, as far as nobody has said it: found by reading them once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/columns/sequence_format.h"

namespace hstu {

// Whether the first line of a file names its fields: it does, it does not, or it must not look so.
enum class HeaderLine { kSkipped, kNone, kFind };

// What the user says; what is absent is found.
struct SequenceQuestions {
  std::vector<Path> files;
  std::vector<Path> times = {};  // one for each file, or none
  std::optional<SequenceLayout> layout = {};
  std::optional<char> delimiter = {};
  HeaderLine header = HeaderLine::kFind;
  std::optional<bool> user_texts = {}, item_texts = {};
};

struct SequenceAnswer {
  SequenceFormat format;
  std::vector<std::string> notes;  // what was found, and where
};

// In memory that does not depend on the files. Layout: a line of more than three fields is a user with items;
// lines of two or of three fields each are rows. Delimiter: the only one of tab, comma and blank on the first
// line. Ids: integers if all of them are plain ones (plain_id). UsageError naming file and line where lines
// contradict each other, may have two delimiters, or look like a header.
SequenceAnswer survey_sequences(const SequenceQuestions& questions);

}  // namespace hstu
