// The value of an embedding row before its first update: a pure function of (key, id, column), so it does not
// depend on when, where or by how many threads the row is first accessed.
#pragma once

#include <cstdint>

namespace hstu {

// out (dim): uniform on [-bound, bound). Columns 4k .. 4k+3 are the four words of philox(key, id, k).
void initial_row(std::uint64_t key, std::int64_t id, float bound, std::int64_t dim, float* out);

}  // namespace hstu
