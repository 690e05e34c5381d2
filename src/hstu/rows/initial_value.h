// The value of an embedding row before its first update: a pure function of (key, id, column), so it does not
// depend on when, where or by how many threads the row is first accessed.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"

namespace hstu {

enum class InitialKind { uniform, normal, truncated_normal, xavier, constant };
inline constexpr Choice<InitialKind> kInitialKinds[] = {{"uniform", InitialKind::uniform},
                                                        {"normal", InitialKind::normal},
                                                        {"truncated_normal", InitialKind::truncated_normal},
                                                        {"xavier", InitialKind::xavier},
                                                        {"constant", InitialKind::constant}};

struct InitialValue {
  InitialKind kind = InitialKind::uniform;
  double bound = 0;  // uniform: on [-bound, bound); 0: 1 / sqrt(V)
  double mean = 0;   // normal, truncated_normal
  double deviation = 0.01;
  double value = 0;  // constant
  bool operator==(const InitialValue&) const = default;
};

// The bound of the uniform kinds in a table of V rows of D values: `bound` or 1 / sqrt(V); xavier:
// sqrt(6 / (V + D)) (Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
// networks", AISTATS 2010). 0 for the other kinds.
float initial_bound(const InitialValue& initial, std::int64_t rows, std::int64_t dim);

// out (dim): columns first_column .. first_column + dim - 1 of the row. uniform and xavier: on [-bound,
// bound), columns 4k .. 4k+3 are the four words of philox(key, id, k). normal: column c from the first two
// words of philox(key, id, c) (Box-Muller). truncated_normal: the same, and while it is more than two
// deviations from the mean, from philox(key, id, c + n 2^32) for n = 1, 2, ...
void initial_row(std::uint64_t key, std::int64_t id, const InitialValue& initial, float bound,
                 std::int64_t dim, float* out, std::int64_t first_column = 0);

}  // namespace hstu
