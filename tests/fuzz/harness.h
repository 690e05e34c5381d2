// Shared by the harnesses: input may be accepted or rejected with an Error that has a message. Any other
// exception, in particular a violated contract inside the program (InternalError), ends the harness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"

namespace hstu::fuzz {

template <typename Body>
int accept_or_refuse(const Body& body) {
  try {
    body();
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) throw;
  }
  return 0;
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A folder of this process, emptied for every input.
inline Path fresh_folder() {
  static const Path folder =
      std::filesystem::temp_directory_path() / fmt::format("hstu_fuzz_{}", static_cast<int>(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Without the fsyncs of write_file(), for thousands of inputs per second.
inline Path plain_file(const Path& path, std::string_view bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  require(file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(),
          "cannot write {}", path.string());
  std::fclose(file);
  return path;
}

// Reads every byte, so that the sanitizer detects a span that is out of bounds.
inline void touch(const void* bytes, std::size_t size) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += static_cast<const unsigned char*>(bytes)[i];
  [[maybe_unused]] static volatile unsigned sink;
  sink = sum;
}

}  // namespace hstu::fuzz

// libFuzzer calls this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
