// The list of the kinds of models.
#pragma once

#include <span>

#include "hstu/task/kind.h"

namespace hstu {

// The first one is that of a configuration that names none. A program that defines this function has a list
// of its own: kinds.cc has nothing else, so that it is then not linked.
std::span<const Kind> kinds();

}  // namespace hstu
