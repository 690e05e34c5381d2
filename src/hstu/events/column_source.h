// Typed columns read from a file batch by batch, whatever the file is: Parquet or one of MovieLens' text
// files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// One column of a batch of R rows. Where a row is null, its number is 0 and its text code -1.
struct RawColumn {
  enum class Kind {
    kInteger,  // `integers`: values; booleans are 0 and 1
    kReal,     // `reals`: values
    kText,     // `integers`: index into `texts`
    kSeconds,  // `integers`: seconds, from a type that knows its own unit (Parquet's timestamps)
  };

  std::string name;
  std::string type_name;  // as the file calls it: "uint32", "dictionary<values=string, ...>"
  Kind kind = Kind::kInteger;
  std::vector<std::int64_t> integers;  // (R)
  std::vector<double> reals;           // (R)
  std::vector<std::string> texts;      // the different texts; some may occur in no row
  std::vector<std::uint8_t> nulls;     // (R) 1 = null; empty: there is no null
};

struct RawBatch {
  std::string file;                // where the rows come from, for messages
  std::int64_t first_row = 0;      // number of the first row within the file, from 0
  std::int64_t rows = 0;           // R
  std::vector<RawColumn> columns;  // in the order they were asked for
};

class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  // The rows of each group, in the order of the file; groups can be read apart from each other. A file that
  // is no Parquet is one group of 0 rows: their number is not known before the end.
  virtual std::vector<std::int64_t> groups() const = 0;
  // The smallest and the largest value of a column in a group, as a column of two rows, where the file says
  // them. `column` counts the columns that were asked for.
  virtual std::optional<RawColumn> range(std::size_t column, std::size_t group) const = 0;
  // From here on next() gives the rows of this group. Without it, it gives those of all groups.
  virtual void select(std::size_t group) = 0;
  // Fills `batch` with the next rows; false at the end. Throws Error naming the file when it is torn.
  virtual bool next(RawBatch& batch) = 0;

  // Rows in all, or 0 when that is not known before the end.
  std::int64_t total_rows() const;
};

// How to read a file: `batch_rows` at a time at most; `threads`: several threads may decode columns.
struct ReadOptions {
  std::int64_t batch_rows = std::int64_t{1} << 16;
  bool threads = false;
};

// Opens `file` to read the named columns. *.parquet is Parquet, MovieLens' files are known by their names.
// Throws UsageError naming the file or column that is missing (with the nearest column there is) or of a type
// that cannot be read.
std::unique_ptr<ColumnSource> open_columns(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options = {});

// The position of every wanted name among the available ones. UsageError naming the file and the nearest
// name.
std::vector<std::size_t> find_columns(const Path& file, std::span<const std::string> wanted,
                                      std::span<const std::string> available);

}  // namespace hstu
