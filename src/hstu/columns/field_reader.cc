#include "hstu/columns/field_reader.h"

#include <utility>

#include <arrow/io/interfaces.h>
#include <arrow/result.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/csv_input.h"

namespace hstu {
namespace {

constexpr std::int64_t kReadAtOnce = std::int64_t{1} << 20;
constexpr std::size_t kMostFieldBytes = 4096;  // of a field
constexpr std::size_t kMostShown = 80;

bool is_blank(int byte) {
  return byte == ' ' || byte == '\t' || byte == '\r';
}

}  // namespace

std::string place_of(const Path& file, const LineField& field) {
  return fmt::format("{}: line {}: field {}", file.string(), field.line, field.number);
}

std::string shown_value(const std::string& text) {
  return printable(text.substr(0, kMostShown));
}

FieldReader::FieldReader(Path file, char delimiter, bool header)
    : file_(std::move(file)), delimiter_(delimiter), header_(header), input_(open_csv_bytes(file_)) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // that some programs write before UTF-8
  if (fill() && block_.starts_with(kMark)) at_ = kMark.size();
  if (header_) skip_header();
}

FieldReader::~FieldReader() = default;

bool FieldReader::fill() {
  block_.resize(static_cast<std::size_t>(kReadAtOnce));
  const arrow::Result<std::int64_t> read = input_->Read(kReadAtOnce, block_.data());
  check(read.ok(), "{}: cannot be read as text{} (it is truncated, damaged or of another format): {}",
        file_.string(), std::string_view(kind_of_csv(file_)).substr(3), read.status().message());
  block_.resize(static_cast<std::size_t>(*read));
  at_ = 0;
  return !block_.empty();
}

int FieldReader::look() {
  if (at_ == block_.size() && !fill()) return -1;
  return static_cast<unsigned char>(block_[at_]);
}

int FieldReader::take() {
  const int byte = look();
  if (byte == -1) return -1;
  ++at_;
  if (byte == '\n') {
    ++line_;
    fields_ = 0;
  }
  return byte;
}

void FieldReader::skip_header() {
  bool any = false;
  for (int byte = take(); byte != -1; byte = take()) {
    if (byte == '\n' && any) return;
    any = any || (byte != '\n' && !is_blank(byte));
  }
}

bool FieldReader::is_delimiter(int byte) const {
  return delimiter_ == ' ' ? is_blank(byte) : byte == delimiter_;
}

// Up to the first byte of a field.
bool FieldReader::begin_field() {
  for (;;) {
    const int byte = look();
    const bool nothing = byte == -1 || byte == '\n' || (delimiter_ != ' ' && byte == delimiter_);
    if (nothing && (owed_ || (byte == delimiter_ && byte != '\n'))) {
      fail("{}: line {}: field {} is empty: expected a user and an item, or a time, in every field",
           file_.string(), line_, fields_ + 1);
    }
    if (byte == -1) return false;
    if (!nothing && !is_blank(byte)) return true;
    take();
  }
}

bool FieldReader::next(LineField& field) {
  if (!begin_field()) return false;
  field.text.clear();
  field.line = line_;
  field.number = ++fields_;
  owed_ = false;
  for (int byte = look(); byte != -1 && byte != '\n' && !is_delimiter(byte); byte = look()) {
    check(byte != '\0', "{}: expected text, found a byte 0: it is no file of text", place_of(file_, field));
    check(field.text.size() < kMostFieldBytes,
          "{}: a field has more than {} bytes, beginning with \"{}\": the delimiter may be another one "
          "(--delimiter)",
          place_of(file_, field), kMostFieldBytes, shown_value(field.text));
    field.text += static_cast<char>(take());
  }
  while (is_blank(static_cast<unsigned char>(field.text.back()))) field.text.pop_back();
  if (delimiter_ != ' ' && look() == delimiter_) {
    take();
    owed_ = true;
  }
  return true;
}

}  // namespace hstu
