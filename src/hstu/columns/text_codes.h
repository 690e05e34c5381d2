// Texts of a log as numbers: ids of users and items by a hash, attributes and contexts by a vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hstu/columns/column_source.h"

namespace hstu {

// A column of texts with its own codes: 0 = null, i + 1 = texts[i].
struct TextCodes {
  std::vector<std::int64_t> codes;  // (R)
  std::vector<std::string> texts;   // in the order of their first rows; all occur
};
TextCodes codes_of(const RawColumn& column);

// The ids of a column of R texts (id_of_text), and the distinct texts with their ids. Error naming the first
// row that is empty. `role` is the use of the column in the schema.
struct TextIds {
  std::vector<std::int64_t> ids;                            // (R)
  std::vector<std::pair<std::int64_t, std::string>> names;  // in the order of their first rows
};
TextIds text_ids_of(const RawBatch& batch, const RawColumn& column, const char* role);

// The codes 1, 2, ... of the texts of a whole log, in the order in which they came first.
class Vocabulary {
 public:
  // UsageError if the texts take more than `memory` bytes; `what` names them there. `known` have their codes
  // already.
  Vocabulary(std::string what, std::int64_t memory, const std::vector<std::string>& known = {})
      : what_(std::move(what)), memory_(memory) {
    for (const std::string& text : known) code_of(text);
  }

  // The codes that the log has for a part's own `codes` of `texts` (TextCodes); new texts get theirs in the
  // order of `codes`.
  std::vector<std::int64_t> translate(const std::vector<std::int64_t>& codes,
                                      const std::vector<std::string>& texts);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::int64_t code_of(const std::string& text);

  std::string what_;
  std::int64_t memory_, bytes_ = 0;
  std::unordered_map<std::string, std::int64_t> codes_;
  std::vector<std::string> names_;
};

}  // namespace hstu
