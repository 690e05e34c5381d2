// The bytes of a table: of a CSV file or standard input, or of a Parquet file or one compressed by gzip,
// which hstu-prepare turns into CSV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "hstu/base/files.h"
#include "hstu/base/first_bytes.h"

namespace hstu {

// A path that ends in .parquet.
bool is_parquet(const Path& path);

// "-", which names standard input or output.
bool is_standard_stream(const Path& path);

class ByteSource {
 public:
  // Timestamps of Parquet are read in `time_unit`: s, ms, us or ns. Throws Error naming a file that cannot be
  // read.
  explicit ByteSource(const Path& path, std::string_view time_unit = "s");
  ~ByteSource();
  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;
  ByteSource(const ByteSource&) = delete;

  // Reads at most `size` bytes; 0 at the end. Throws Error if the file cannot be read to its end.
  std::size_t read(char* to, std::size_t size);
  const std::string& name() const { return name_; }

 private:
  void convert(const Path& path, std::string_view time_unit);
  // Reads begin_; known_first_bytes().
  const FirstBytes* look();
  void close();
  std::size_t read_some(char* to, std::size_t size);

  std::string name_;
  std::string begin_;  // read to see what it is, and not passed on yet
  int descriptor_ = -1;
  pid_t converter_ = -1;  // hstu-prepare
};

}  // namespace hstu
