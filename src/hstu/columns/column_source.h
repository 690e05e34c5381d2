// Typed columns, read from a file batch by batch: Parquet, CSV or one of MovieLens' text files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/columns/csv_format.h"
#include "hstu/columns/sequence_format.h"

namespace hstu {

inline constexpr double kLargestExact = 9007199254740992.0;  // 2^53: larger doubles skip integers
inline constexpr double kLargestExactFloat = 16777216.0;     // 2^24: larger floats do

// One column of a batch of R rows. A null has the number 0 or the text code -1.
struct RawColumn {
  enum class Kind {
    kInteger,  // `integers`: values; booleans are 0 and 1
    kReal,     // `reals`: values
    kText,     // `integers`: index into `texts`
    kSeconds,  // `integers`: seconds, from a type with its own unit (Parquet's timestamps and dates)
  };

  std::string name;
  std::string type_name;  // the file's name for it: "uint32", "dictionary<values=string, ...>"
  Kind kind = Kind::kInteger;
  std::vector<std::int64_t> integers;     // (R)
  std::vector<std::int64_t> nanoseconds;  // (R) of kSeconds: the rest of each time; empty: all 0
  std::vector<double> reals;              // (R)
  double exact = kLargestExact;           // of kReal: below it every integer is a value of the file's type
  std::vector<std::string> texts;         // the distinct texts; some may occur in no row
  std::vector<std::uint8_t> nulls;        // (R) 1 = null; empty: no row is null
  bool untyped = false;                   // the file says no type, and every row is null
};

struct RawBatch {
  std::string file;                // of the rows, for messages
  std::int64_t first_row = 0;      // number of the first row within the file, from 0
  std::int64_t rows = 0;           // R
  std::vector<RawColumn> columns;  // in the order of the request
  // (R) of each row its place among those that were read, from 0; empty: no row has been left out
  std::vector<std::int64_t> places = {};
  // Of text files: the line (from 1) of a row of the file (from 0). It may read the file again.
  std::function<std::int64_t(std::int64_t row)> line_of = {};
};

// "log.csv: column "uid": line 19", or of a file without lines "log.parquet: column "uid": row 17 (counted
// from 0)". `r`: a row of the batch.
std::string place_of(const RawBatch& batch, const RawColumn& column, std::int64_t r);

class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  // The number of rows of each group, in the order of the file; groups can be read separately. A file that
  // is not Parquet is one group of 0 rows: their number is not known before the end.
  virtual std::vector<std::int64_t> groups() const = 0;
  // The smallest and the largest value of a column in a group, as a column of two rows, if the file contains
  // them. `column` is an index into the requested columns.
  virtual std::optional<RawColumn> range(std::size_t column, std::size_t group) const = 0;
  // Whether the batches have the column as texts.
  virtual bool is_text(std::size_t column) const = 0;
  // Whether the file says no type for the column, which has nulls alone: it fits any other file.
  virtual bool is_untyped(std::size_t /*column*/) const { return false; }
  // Makes next() return the rows of this group only. Without this call it returns those of all groups.
  virtual void select(std::size_t group) = 0;
  // Fills `batch` with the next rows; false at the end. Throws Error naming the file if it is truncated.
  virtual bool next(RawBatch& batch) = 0;
  // After the end: a warning about what was read, with file and place; "" if there is none.
  virtual std::string remark() const { return {}; }

  // Total number of rows, or 0 if it is not known before the end.
  std::int64_t total_rows() const;
};

// How to read a file: at most `batch_rows` at a time; `threads`: several threads may decode columns.
struct ReadOptions {
  std::int64_t batch_rows = std::int64_t{1} << 16;
  bool threads = false;
  std::optional<CsvFormat> csv =
      {};  // of files that are neither Parquet nor MovieLens'; without: there are none
  std::optional<SequenceFormat> sequences = {};  // of files with lines of ids alone
  std::vector<std::string> lists = {};  // columns that may contain lists, whose first elements are read
  std::vector<std::string> nulls = {};  // texts that mean null; in CSV without quotes alone
};

// Opens `file` to read the named columns. If a format of CSV is given, its first bytes decide whether it is
// CSV or Parquet (file_format.h), and columns that it lacks may be folders KEY=VALUE of its path
// (folder_columns.h); otherwise it is one of MovieLens' files if it has such a name, else Parquet. Throws
// UsageError naming a file or column that is missing (with the nearest existing column) or of an unsupported
// type.
std::unique_ptr<ColumnSource> open_columns(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options = {});

// The position of every wanted name among the available ones. UsageError naming the file and the nearest
// name.
std::vector<std::size_t> find_columns(const Path& file, std::span<const std::string> wanted,
                                      std::span<const std::string> available);

}  // namespace hstu
