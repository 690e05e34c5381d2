// The stacks of all threads of the process, for messages about a step that makes no progress.
#pragma once

#include <string>

namespace hstu {

// The name of the calling thread in thread_stacks(), debuggers and top; at most 15 characters.
void name_this_thread(const std::string& name);

// For each thread but the calling one: a line with its name and number, then its calls as
// stack_of_this_thread() writes them. Each is interrupted by a signal for that; it goes on afterwards. A
// thread that does not answer within a second (it blocks the signal, or the kernel holds it) is named
// without its calls.
std::string thread_stacks();

}  // namespace hstu
