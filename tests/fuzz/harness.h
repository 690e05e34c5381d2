// Shared by the harnesses: input may be accepted or rejected with an Error that has a message. Any other
// exception, in particular a violated contract inside the program (InternalError), ends the harness.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/npy.h"

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

// A folder that is made once for a process: make(folder) fills it. `name` tells it from others.
template <typename Make>
Path made_folder(const char* name, const Make& make) {
  const Path folder =
      std::filesystem::temp_directory_path() / fmt::format("hstu_fuzz_{}_{}", name, ::getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  make(folder);
  return folder;
}

// Removes and returns what is before the first zero byte, or everything.
inline std::string_view take_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

// A number for each byte: 'a' is 0, 'b' is 1, '`' is -1; '!' and '~' are the ends of 64 bits.
inline std::vector<std::int64_t> numbers_of(std::string_view part) {
  std::vector<std::int64_t> numbers;
  for (const char c : part) {
    numbers.push_back(c == '!'   ? std::numeric_limits<std::int64_t>::min()
                      : c == '~' ? std::numeric_limits<std::int64_t>::max()
                                 : static_cast<signed char>(c) - 'a');
  }
  return numbers;
}

// As write_npy(), without its fsync.
template <typename T>
void plain_npy(const Path& path, const std::vector<std::int64_t>& numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::string bytes = npy_header(npy_type<T>(), std::span(&count, 1));
  for (const std::int64_t number : numbers) {
    const auto value = static_cast<T>(number);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  plain_file(path, bytes);
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
