#include "hstu/predict/csv_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;          // bytes read at a time
constexpr std::size_t kLongestRecord = std::size_t{1} << 26;  // of a row: lists of millions of candidates
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

CsvReader::CsvReader(ByteSource source) : source_(std::move(source)) {
  check(read_record(), "{}: expected a header line with the names of the columns, found nothing",
        source_.name());
  for (const std::string_view name : fields_) {
    if (name.empty()) refuse_line("a column has no name");
    if (has_column(name)) refuse_line(fmt::format("two columns are named \"{}\"", name));
    columns_.emplace_back(name);
  }
}

bool CsvReader::has_column(std::string_view name) const {
  return contains(columns_, name);
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) {
    fail_usage("{}: there is no column \"{}\"{}; --columns names the columns to read", source_.name(), name,
               suggestion(name, columns_));
  }
  return static_cast<std::size_t>(found - columns_.begin());
}

bool CsvReader::next() {
  if (!read_record()) return false;
  ++rows_;
  expect_fields();
  return true;
}

std::int64_t CsvReader::integer(std::size_t column) const {
  const auto value = parse_number<std::int64_t>(fields_[column]);
  if (!value) {
    refuse(column, fmt::format("expected a whole number of at most 64 bits, found \"{}\"", fields_[column]));
  }
  return *value;
}

std::string CsvReader::place(std::size_t column) const {
  return fmt::format("{} line {}: column {}", source_.name(), line_, columns_[column]);
}

void CsvReader::refuse(std::size_t column, const std::string& problem) const {
  fail("{}: {}", place(column), problem);
}

void CsvReader::refuse_line(const std::string& problem) const {
  fail("{} line {}: {}", source_.name(), line_, problem);
}

void CsvReader::expect_fields() const {
  if (fields_.size() == columns_.size()) return;
  refuse_line(
      fmt::format("expected {} fields, one for each column, found {}", columns_.size(), fields_.size()));
}

// Finds the line end at or after `from` and sets record_end_ and next_; false if nothing is left to read.
bool CsvReader::read_line(std::size_t from) {
  while (true) {
    // NOLINTNEXTLINE(bugprone-not-null-terminated-result): the buffer is no string
    if (const void* const end = std::memchr(buffer_.data() + from, '\n', buffer_.size() - from)) {
      record_end_ = static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data());
      next_ = record_end_ + 1;
      break;
    }
    if (ended_) {
      if (begin_ == buffer_.size()) return false;
      record_end_ = next_ = buffer_.size();
      break;
    }
    from = buffer_.size() - begin_;
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kLongestRecord)
      refuse_line(fmt::format("the row is longer than {}", human_bytes(kLongestRecord)));
    buffer_.resize(from + kBlock);
    const std::size_t n = source_.read(buffer_.data() + from, kBlock);
    buffer_.resize(from + n);
    ended_ = n == 0;
  }
  ++lines_read_;
  if (record_end_ > begin_ && buffer_[record_end_ - 1] == '\r') --record_end_;
  return true;
}

bool CsvReader::read_record() {
  begin_ = next_;
  line_ = lines_read_ + 1;
  if (!read_line(begin_)) return false;
  if (line_ == 1 && std::string_view(buffer_).starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
  fields_.clear();
  const std::string_view line(buffer_.data() + begin_, record_end_ - begin_);
  if (line.find('"') == std::string_view::npos) {
    split_plain(line);
  } else {
    split_quoted();
  }
  return true;
}

void CsvReader::split_plain(std::string_view rest) {
  while (true) {
    const std::size_t comma = rest.find(',');
    fields_.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
}

// Fields in quotes may contain line ends: the record then continues on the next line.
void CsvReader::split_quoted() {
  const auto quotes = [&] {
    return std::count(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
                      buffer_.begin() + static_cast<std::ptrdiff_t>(record_end_), '"');
  };
  while (quotes() % 2 != 0) {  // inside quotes
    const std::size_t read = next_ - begin_;
    if (!read_line(next_) || next_ - begin_ == read) refuse_line("a quote is never closed");
  }
  const std::string_view record(buffer_.data() + begin_, record_end_ - begin_);
  unquoted_.clear();
  unquoted_.reserve(record.size());  // the views below stay valid
  std::size_t at = 0;
  while (true) {
    if (at < record.size() && record[at] == '"') {
      const std::size_t begin = unquoted_.size();
      for (++at;; ++at) {
        if (record[at] != '"') {
          unquoted_ += record[at];
        } else if (at + 1 < record.size() && record[at + 1] == '"') {
          unquoted_ += record[at++];
        } else {
          break;
        }
      }
      ++at;
      fields_.emplace_back(unquoted_.data() + begin, unquoted_.size() - begin);
    } else {
      const std::size_t end = std::min(record.find(',', at), record.size());
      fields_.push_back(record.substr(at, end - at));
      if (fields_.back().find('"') != std::string_view::npos)
        refuse_line("a quote is inside a field that has none around it");
      at = end;
    }
    if (at == record.size()) return;
    if (record[at] != ',') refuse_line("a quoted field continues behind its closing quote");
    ++at;
  }
}

}  // namespace hstu
