// Which file is mapped where, for a signal handler, and what becomes of files that others change meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hstu {

// Registers and forgets the file of a mapping. Threads may call them at the same time.
void add_mapped_range(const void* begin, std::size_t bytes, const std::string& path);
void remove_mapped_range(const void* begin);

// The file that is mapped at `address`; nullptr if none is known. Safe in a signal handler.
const char* mapped_file_at(const void* address);

// From now on a page that a mapped file has lost reads as zeros, and the program does not end (process.h).
// Who computes from mapped files asks lost_file() before it uses what it found.
void survive_lost_pages();
// For the signal handler: false if the program has to end.
bool replace_lost_page(const void* address);
// So many so far.
std::int64_t lost_pages();
// A file under `folder` that has lost pages while it is mapped; "": there is none.
std::string lost_file(const std::string& folder);

// Copies the files that are mapped under `folder`, of those with is_kept(path), to memory: at their
// addresses, so that nobody who has one notices.
void keep_in_memory(const std::string& folder, const std::function<bool(const std::string&)>& is_kept);

}  // namespace hstu
