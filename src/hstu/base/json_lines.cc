#include "hstu/base/json_lines.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

// Calls body(line, number) for every complete line, without its line end; numbers count from 1.
template <typename Body>
void for_each_line(std::string_view text, const Body& body) {
  std::int64_t number = 1;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; ++number) {
    body(text.substr(0, end), number);
    text.remove_prefix(end + 1);
  }
}

Json parse_line(std::string_view line, std::int64_t number, const Path& path) {
  std::string why;
  try {
    Json json = parse_json(line);
    if (json.is_object()) return json;
  } catch (const Error& error) {
    why = fmt::format(": {}", error.what());
  }
  fail("{} line {}: expected a JSON object, found \"{}\"{}", path.string(), number, line.substr(0, 80), why);
}

// Removes the bytes after the last line end.
void remove_incomplete_line(const Path& path) {
  const std::string text = read_file(path);
  const std::size_t last = text.rfind('\n');
  const std::size_t complete = last == std::string::npos ? 0 : last + 1;
  if (complete == text.size()) return;
  std::error_code error;
  std::filesystem::resize_file(path, complete, error);
  check(!error, "cannot remove the incomplete last line of {}: {}", path.string(), error.message());
}

}  // namespace

JsonLinesWriter::JsonLinesWriter(Path path) : path_(std::move(path)) {
  if (std::filesystem::is_regular_file(path_)) remove_incomplete_line(path_);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot open {} for appending: {}", path_.string(), std::strerror(errno));
  struct stat info {};
  if (::fstat(descriptor_, &info) == 0) size_ = info.st_size;
}

JsonLinesWriter::~JsonLinesWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void JsonLinesWriter::write(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // One system call; two only under a test that ends the program between the two halves.
  std::size_t done = 0, until = fault_points_are_watched() ? text.size() / 2 : text.size();
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor_, text.data() + done, until - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : ENOSPC;
      const bool cut = done == 0 || ::ftruncate(descriptor_, size_) == 0;
      fail("cannot write {}: {}{}", path_.string(), std::strerror(error),
           cut ? "" : "; its incomplete last line will be removed when the run is resumed");
    }
    done += static_cast<std::size_t>(written);
    if (done < until || done == text.size()) continue;
    until = text.size();
    fault_point("log.line");
  }
  size_ += static_cast<std::int64_t>(text.size());
}

void JsonLinesWriter::sync() {
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL)  // EINVAL: a pipe or device, nothing to sync
    fail("cannot write {}: {}", path_.string(), std::strerror(errno));
}

std::vector<Json> read_json_lines(const Path& path) {
  std::vector<Json> lines;
  for_each_line(read_file(path), [&](std::string_view line, std::int64_t number) {
    lines.push_back(parse_line(line, number, path));
  });
  return lines;
}

std::optional<std::int64_t> cut_lines_behind(const Path& path,
                                             const std::function<bool(const Json&)>& is_last) {
  std::uintmax_t bytes = 0, kept_bytes = 0;
  std::int64_t lines = 0, kept = -1;
  for_each_line(read_file(path), [&](std::string_view line, std::int64_t number) {
    bytes += line.size() + 1;
    lines = number;
    if (!is_last(parse_line(line, number, path))) return;
    kept_bytes = bytes;
    kept = number;
  });
  if (kept < 0) return std::nullopt;
  std::error_code error;
  std::filesystem::resize_file(path, kept_bytes, error);
  check(!error, "cannot truncate {} after line {}: {}", path.string(), kept, error.message());
  return lines - kept;
}

}  // namespace hstu
