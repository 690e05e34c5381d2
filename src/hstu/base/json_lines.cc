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

namespace hstu {
namespace {

// body(line, number) for every whole line, without its line end; numbers count from 1.
template <typename Body>
void for_each_line(std::string_view text, const Body& body) {
  std::int64_t number = 1;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; ++number) {
    body(text.substr(0, end), number);
    text.remove_prefix(end + 1);
  }
}

Json parse_line(std::string_view line, std::int64_t number, const Path& path) {
  Json json = Json::parse(line, nullptr, false);
  check(json.is_object(), "{} line {}: expected a JSON object, found \"{}\"", path.string(), number,
        line.substr(0, 80));
  return json;
}

}  // namespace

JsonLinesWriter::JsonLinesWriter(Path path) : path_(std::move(path)) {
  if (std::filesystem::exists(path_)) remove_torn_line(path_);
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
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : ENOSPC;
      const bool cut = done == 0 || ::ftruncate(descriptor_, size_) == 0;
      fail("cannot write {}: {}{}", path_.string(), std::strerror(error),
           cut ? "" : "; its last line is torn and will be removed when the run goes on");
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += static_cast<std::int64_t>(text.size());
}

std::vector<Json> read_json_lines(const Path& path) {
  std::vector<Json> lines;
  for_each_line(read_file(path), [&](std::string_view line, std::int64_t number) {
    lines.push_back(parse_line(line, number, path));
  });
  return lines;
}

std::int64_t remove_torn_line(const Path& path) {
  const std::string text = read_file(path);
  const std::size_t last = text.rfind('\n');
  const std::size_t whole = last == std::string::npos ? 0 : last + 1;
  if (whole == text.size()) return 0;
  std::error_code error;
  std::filesystem::resize_file(path, whole, error);
  check(!error, "cannot remove the torn last line of {}: {}", path.string(), error.message());
  return static_cast<std::int64_t>(text.size() - whole);
}

std::int64_t remove_lines_after(const Path& path, std::int64_t step) {
  std::string kept;
  std::int64_t removed = 0;
  for_each_line(read_file(path), [&](std::string_view line, std::int64_t number) {
    const Json json = parse_line(line, number, path);
    const auto at = json.find("step");
    if (at != json.end() && at->is_number() && at->get<std::int64_t>() > step) {
      ++removed;
    } else {
      kept += line;
      kept += '\n';
    }
  });
  if (removed > 0) write_file(path, kept);
  return removed;
}

}  // namespace hstu
