// The calls that led to a place, for messages about processes that wait.
#pragma once

#include <span>
#include <string>

namespace hstu {

// One line a call, the innermost first: "  hstu::begin_step(...) + 0x1c4", and "  hstu + 0x2f310" for a
// function whose name the program does not keep (addr2line -Cfe hstu 0x2f310 names it).
std::string stack_of_this_thread();
// The same lines for return addresses that backtrace() gave.
std::string lines_of(std::span<void* const> calls);

}  // namespace hstu
