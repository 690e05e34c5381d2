// Several requests to a store at a time.
#pragma once

#include <cstddef>
#include <functional>

namespace hstu {

// Calls work(index) for each index below `count`, by several threads, the lower ones first; throws what the
// first failure threw, after which no further one begins.
void for_each_by_connections(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace hstu
