// Which file is mapped where, for a signal handler.
#pragma once

#include <cstddef>
#include <string>

namespace hstu {

// Registers and forgets the file of a mapping. Threads may call them at the same time.
void add_mapped_range(const void* begin, std::size_t bytes, const std::string& path);
void remove_mapped_range(const void* begin);

// The file that is mapped at `address`; nullptr if none is known. Safe in a signal handler.
const char* mapped_file_at(const void* address);

}  // namespace hstu
