// What a program does before and after its work, so that neither its surroundings nor a file that changes
// under it can end it without a message or make it write where it must not.
#pragma once

#include <exception>
#include <string>

namespace hstu {

// The first call of main(). Descriptors 0 to 2 that are closed are opened on /dev/null: the first data file
// would otherwise become standard output, and messages would be written into it. A file that exceeds a limit
// of its size causes an error instead of SIGXFSZ. A mapped file that becomes shorter or unreadable (SIGBUS)
// ends the program with a message that names it and exit status 1, unless survive_lost_pages() was called
// (mapped_ranges.h).
void prepare_process();

// What a program says of an exception that ends it. The texts of the standard library's exceptions name
// neither file nor remedy: "filesystem error: ...", "vector::_M_default_append".
std::string words_of(const std::exception& error);

// The last call of main(): writes what standard output still holds. Returns `status`; 1, after a message, if
// standard output cannot be written (a full disk, /dev/full) and `status` is 0.
int finish_process(int status);

}  // namespace hstu
