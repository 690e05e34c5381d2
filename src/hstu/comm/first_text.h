// What one rank has to tell all: the reason of an error.
#pragma once

#include <string>

#include "hstu/comm/communicator.h"

namespace hstu {

// The text of the first rank that has one, with its number if there are others: "a score is NaN (rank 2)"; ""
// if none has. Texts have no line breaks. All ranks call it together.
std::string first_text(const std::string& mine, Communicator& comm);

}  // namespace hstu
