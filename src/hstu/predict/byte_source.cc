#include "hstu/predict/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/predict/converter.h"

namespace hstu {
namespace {

constexpr std::size_t kFirstBytes = 16;  // as many as known_first_bytes() needs
constexpr std::string_view kGzip = "\x1f\x8b";

}  // namespace

bool is_parquet(const Path& path) {
  return path.extension() == ".parquet";
}

bool is_standard_stream(const Path& path) {
  return path == "-";
}

ByteSource::ByteSource(const Path& path, std::string_view time_unit) {
  const bool piped = is_standard_stream(path);
  name_ = piped ? "standard input" : path.string();
  if (!piped) check_input_file(path);
  if (is_parquet(path)) {
    convert(path, time_unit);
    return;
  }
  descriptor_ =
      piped ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(descriptor_ >= 0, "cannot open {}: {}", name_, std::strerror(errno));
  const FirstBytes* known = look();
  const bool packed = known != nullptr && known->bytes == kGzip && !piped;
  if (packed) {
    close();
    begin_.clear();
    convert(path, time_unit);
    known = look();
  }
  if (known == nullptr) return;
  close();
  fail_usage("{}: expected CSV, and it {} {}: {}", name_, packed ? "contains" : "is", known->what,
             !piped                  ? known->advice
             : known->bytes == kGzip ? "name the file, or unpack it with gunzip -c"
                                     : "name a file of CSV or Parquet");
}

const FirstBytes* ByteSource::look() {
  char begin[kFirstBytes];
  for (std::size_t n = 1; n > 0 && begin_.size() < kFirstBytes; begin_.append(begin, n))
    n = read_some(begin, kFirstBytes - begin_.size());
  return known_first_bytes(begin_);
}

void ByteSource::convert(const Path& path, std::string_view time_unit) {
  const Converter converter =
      start_converter({"to-csv", path.string(), "--time-unit", std::string(time_unit)}, Direction::from);
  descriptor_ = converter.descriptor;
  converter_ = converter.process;
}

ByteSource::~ByteSource() {
  close();
}

void ByteSource::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));  // ends a converter that still writes
  if (converter_ > 0) end_converter(std::exchange(converter_, -1));
}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : name_(std::move(other.name_)),
      begin_(std::move(other.begin_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      converter_(std::exchange(other.converter_, -1)) {}

std::size_t ByteSource::read(char* to, std::size_t size) {
  if (begin_.empty()) return read_some(to, size);
  const std::size_t n = begin_.copy(to, size);
  begin_.erase(0, n);
  return n;
}

std::size_t ByteSource::read_some(char* to, std::size_t size) {
  ssize_t n = 0;
  do n = ::read(descriptor_, to, size);
  while (n < 0 && errno == EINTR);
  check(n >= 0, "cannot read {}: {}", name_, std::strerror(errno));
  if (n == 0 && converter_ > 0) {
    const int status = end_converter(std::exchange(converter_, -1));
    check(status == 0, "{} could not be read to its end: see the message of hstu prepare above", name_);
  }
  return static_cast<std::size_t>(n);
}

}  // namespace hstu
