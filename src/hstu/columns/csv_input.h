// The bytes of a CSV file, decompressed, on their way to Arrow.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <arrow/io/interfaces.h>
#include <arrow/result.h>

#include "hstu/base/files.h"
#include "hstu/columns/csv_format.h"
#include "hstu/columns/csv_scanner.h"

namespace hstu {

// What separates the fields of the file.
char delimiter_of(const Path& file, const CsvFormat& format);

// "CSV compressed by gzip", "CSV".
const char* kind_of_csv(const Path& file);

// The decompressed bytes. Error naming the file if it cannot be opened.
std::shared_ptr<arrow::io::InputStream> open_csv_bytes(const Path& file);

// The line on which a record begins; both count from 1, blank lines are no records. Reads the file again,
// because Arrow counts records alone and quoted fields contain line ends.
std::int64_t line_of_record(const Path& file, const CsvFormat& format, std::int64_t record);

// Passes bytes on and ends with an invalid status where quotes contradict RFC 4180: text behind the closing
// quote of a field, or a quote that is never closed.
class CheckedQuotes : public arrow::io::InputStream {
 public:
  // `fields` of a record, or 0: not known.
  CheckedQuotes(Path file, const CsvFormat& format, std::int64_t fields);

  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* to) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override;
  arrow::Result<std::int64_t> Tell() const override { return input_->Tell(); }
  arrow::Status Close() override { return input_->Close(); }
  bool closed() const override { return input_->closed(); }

  // Why the stream has ended early, with file and line.
  std::optional<std::string> fault() const;
  // After the end: a warning if quoted fields look like several records; "" if none does.
  std::string remark() const;

 private:
  arrow::Status check(std::string_view bytes);

  Path file_;
  std::shared_ptr<arrow::io::InputStream> input_;
  CsvScanner scanner_;
  std::shared_ptr<arrow::Buffer> next_;
  enum class Fault { none, behind, open };
  std::atomic<Fault> fault_ = Fault::none;  // Arrow reads ahead, on a thread of its own
};

}  // namespace hstu
