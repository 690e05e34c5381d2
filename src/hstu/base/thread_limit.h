// A limit of what a person asks for: far more threads than any machine has cores end OpenMP.
#pragma once

namespace hstu {

inline constexpr int kMostThreads = 4096;

}  // namespace hstu
