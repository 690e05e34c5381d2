#include "hstu/columns/csv_scanner.h"

#include <algorithm>

namespace hstu {

CsvScanner::CsvScanner(const CsvFormat& format, char delimiter, std::int64_t fields)
    : delimiter_(delimiter), quote_(format.quote), escape_(format.escape), fields_(fields) {}

bool CsvScanner::scan(std::string_view block) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // some programs begin UTF-8 with it
  if (offset_ == 0 && block.starts_with(kMark)) {
    offset_ += static_cast<std::int64_t>(kMark.size());
    block.remove_prefix(kMark.size());
  }
  while (!block.empty()) {
    if (const std::size_t skipped = skip(block); skipped > 0) {
      offset_ += static_cast<std::int64_t>(skipped);
      block.remove_prefix(skipped);
      continue;
    }
    if (!step(block.front())) return false;
    ++offset_;
    block.remove_prefix(1);
  }
  return true;
}

bool CsvScanner::scan_to(std::int64_t record, std::string_view block) {
  for (const char c : block) {
    const bool inside = state_ == State::kQuoted;
    if (c != '\n' && c != '\r' && blank_) {
      if (++records_ == record) return true;
      blank_ = false;
    }
    if (!step(c)) state_ = State::kPlain;
    ++offset_;
    if (c == '\n') {
      ++line_;
      blank_ = blank_ || !inside;
    }
  }
  return false;
}

// The bytes at the front of the block that change nothing but whether a field begins: memchr is many times
// faster than step().
std::size_t CsvScanner::skip(std::string_view block) {
  if (!quote_) return block.size();
  if (escape_ || state_ == State::kClosing) return 0;
  const std::size_t skipped = std::min(block.find(*quote_), block.size());
  const std::string_view part = block.substr(0, skipped);
  if (part.empty()) return 0;
  if (state_ == State::kQuoted) {
    breaks_ += std::count(part.begin(), part.end(), '\n');
    delimiters_ += std::count(part.begin(), part.end(), delimiter_);
  } else {
    state_ = ends_field(part.back()) ? State::kStart : State::kPlain;
  }
  return skipped;
}

bool CsvScanner::step(char c) {
  if (escaped_) {
    escaped_ = false;
    if (state_ == State::kStart) state_ = State::kPlain;
    return true;
  }
  if (state_ == State::kClosing) {
    if (c == quote_) {
      state_ = State::kQuoted;
      return true;
    }
    if (!ends_field(c)) return false;
    close_field();
  } else if (c == escape_) {
    escaped_ = true;
    return true;
  } else if (state_ == State::kQuoted) {
    if (c == quote_) state_ = State::kClosing;
    breaks_ += c == '\n' ? 1 : 0;
    delimiters_ += c == delimiter_ ? 1 : 0;
    return true;
  } else if (c == quote_ && state_ == State::kStart) {
    state_ = State::kQuoted;
    opened_ = offset_;
    breaks_ = delimiters_ = 0;
    return true;
  }
  state_ = ends_field(c) ? State::kStart : State::kPlain;
  return true;
}

void CsvScanner::close_field() {
  if (breaks_ == 0 || fields_ < 2 || delimiters_ < fields_ - 1) return;
  if (joined_.fields++ == 0) joined_.first = opened_;
}

std::optional<CsvScanner::Joined> CsvScanner::joined() const {
  return joined_.fields > 0 ? std::optional(joined_) : std::nullopt;
}

}  // namespace hstu
