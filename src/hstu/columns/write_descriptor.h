// Writes to a pipe whose reader may end early.
#pragma once

#include <string_view>

namespace hstu {

// False if the reader has what it wants and closed its end. Throws Error for any other failure.
bool write_to(int descriptor, std::string_view text);

}  // namespace hstu
