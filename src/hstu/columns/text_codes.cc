#include "hstu/columns/text_codes.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

constexpr std::int64_t kEntryBytes = 160;  // of a text in a vocabulary, besides its characters: about

}  // namespace

TextCodes codes_of(const RawColumn& column) {
  TextCodes result;
  result.codes.reserve(column.integers.size());
  std::vector<std::int64_t> known(column.texts.size());
  for (const std::int64_t text : column.integers) {
    if (text < 0) {
      result.codes.push_back(0);
      continue;
    }
    std::int64_t& code = known[static_cast<std::size_t>(text)];
    if (code == 0) {
      result.texts.push_back(column.texts[static_cast<std::size_t>(text)]);
      code = static_cast<std::int64_t>(result.texts.size());
    }
    result.codes.push_back(code);
  }
  return result;
}

TextIds text_ids_of(const RawBatch& batch, const RawColumn& column, const char* role) {
  TextCodes codes = codes_of(column);
  const auto empty = std::find(codes.texts.begin(), codes.texts.end(), "");
  if (empty != codes.texts.end()) {
    const auto row = std::find(codes.codes.begin(), codes.codes.end(), empty - codes.texts.begin() + 1);
    fail("{}: expected a text for the {}, found an empty one",
         place_of(batch, column, row - codes.codes.begin()), role);
  }
  TextIds result;
  result.names.reserve(codes.texts.size());
  for (std::string& text : codes.texts) {
    const std::int64_t id = id_of_text(text);
    result.names.emplace_back(id, std::move(text));
  }
  result.ids.reserve(codes.codes.size());
  for (const std::int64_t code : codes.codes)
    result.ids.push_back(result.names[static_cast<std::size_t>(code) - 1].first);
  return result;
}

std::vector<std::int64_t> Vocabulary::translate(const std::vector<std::int64_t>& codes,
                                                const std::vector<std::string>& texts) {
  std::vector<std::int64_t> known(texts.size() + 1);
  std::vector<std::int64_t> translated;
  translated.reserve(codes.size());
  for (const std::int64_t code : codes) {
    std::int64_t& global = known[static_cast<std::size_t>(code)];
    if (code > 0 && global == 0) global = code_of(texts[static_cast<std::size_t>(code) - 1]);
    translated.push_back(global);
  }
  return translated;
}

std::int64_t Vocabulary::code_of(const std::string& text) {
  const auto [entry, added] = codes_.try_emplace(text, static_cast<std::int64_t>(names_.size()) + 1);
  if (!added) return entry->second;
  names_.push_back(text);
  bytes_ += kEntryBytes + 2 * static_cast<std::int64_t>(text.size());
  if (bytes_ > memory_) {
    fail_usage(
        "{}: {} different texts take more than --memory allows ({}): use a column with fewer values, or "
        "increase --memory",
        what_, with_separators(static_cast<std::int64_t>(names_.size())),
        human_bytes(static_cast<double>(memory_)));
  }
  return entry->second;
}

}  // namespace hstu
