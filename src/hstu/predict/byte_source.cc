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

bool is_parquet(const Path& path) {
  return path.extension() == ".parquet";
}

ByteSource::ByteSource(const Path& path, std::string_view time_unit) : name_(path.string()) {
  check_input_file(path);
  if (is_parquet(path)) {
    const Converter converter =
        start_converter({"to-csv", path.string(), "--time-unit", std::string(time_unit)}, Direction::from);
    descriptor_ = converter.descriptor;
    converter_ = converter.process;
    return;
  }
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(descriptor_ >= 0, "cannot open {}: {}", name_, std::strerror(errno));
  check_is_text();
}

void ByteSource::check_is_text() {
  char begin[4] = {};
  const ssize_t size = ::pread(descriptor_, begin, sizeof begin, 0);
  const std::string_view bytes(begin, static_cast<std::size_t>(std::max<ssize_t>(0, size)));
  if (!bytes.starts_with("\x1f\x8b") && bytes != "PAR1") return;
  ::close(std::exchange(descriptor_, -1));
  fail_usage("{}: expected CSV, found {}", name_,
             bytes == "PAR1" ? "Parquet: give the file a name that ends in .parquet"
                             : "a file compressed by gzip: unpack it first, for example with gunzip --keep");
}

ByteSource::~ByteSource() {
  if (descriptor_ >= 0) ::close(descriptor_);  // ends a converter that still writes
  if (converter_ > 0) end_converter(converter_);
}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      converter_(std::exchange(other.converter_, -1)) {}

std::size_t ByteSource::read(char* to, std::size_t size) {
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
