// The bytes of a table: of a CSV file, or of a Parquet file that hstu-prepare turns into CSV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "hstu/base/files.h"

namespace hstu {

// A path that ends in .parquet.
bool is_parquet(const Path& path);

class ByteSource {
 public:
  // Timestamps of Parquet are read in `time_unit`: s, ms or us. Throws Error naming a file that cannot be
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
  void check_is_text();

  std::string name_;
  int descriptor_ = -1;
  pid_t converter_ = -1;  // hstu-prepare
};

}  // namespace hstu
