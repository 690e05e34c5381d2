// Reads requests: for a user at a time, the items to score.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/dataset/dataset.h"
#include "hstu/dataset/names.h"
#include "hstu/predict/columns.h"
#include "hstu/predict/csv_reader.h"

namespace hstu {

struct Request {
  std::int64_t number = 0;  // of the row, from 1
  std::string id;           // the column request; without it the number
  std::int64_t user = 0, time = 0;
  std::string user_text;              // of the table
  Items items;                        // candidates in their order; none: those of a catalogue
  std::vector<std::int64_t> context;  // in the order of the dataset's context columns; 0 where not asked for
};

class RequestReader {
 public:
  // The file must have the context columns of the dataset that `needed` marks. It has a column of items or of
  // lists of candidates, and neither if there is a catalogue. Throws UsageError naming the column that is
  // missing or not expected. `since_1970`: TimeColumn::since_1970.
  RequestReader(const Path& file, const ColumnNames& names, const Dataset& dataset,
                const std::vector<bool>& needed, bool catalogue, bool since_1970 = true);

  // Reads the next request; false at the end. Throws Error naming file, line and column of what is wrong.
  bool next(Request& request);
  // Texts of context columns that the dataset does not have: read as 0.
  std::int64_t unknown_texts() const { return unknown_texts_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t optional_column(const std::string& name) const;

  CsvReader rows_;
  TimeColumn time_;
  std::size_t user_, request_, item_, candidates_;
  struct ContextColumn {
    std::size_t column = kNone;  // not needed
    std::optional<Names> codes;  // of its texts
  };
  std::int64_t context_value(const ContextColumn& context);

  bool user_texts_, item_texts_;
  std::vector<ContextColumn> context_;
  std::int64_t unknown_texts_ = 0;
};

// The items of a catalogue file, in its order; `texts`: their ids are hashes of texts. Throws Error if it has
// none or one twice.
Items read_catalogue(const Path& file, const ColumnNames& names, bool texts);

}  // namespace hstu
