// Tables with limits: the input chooses the limits and a walk of steps; the table must agree with the model.
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "support/table_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t at = 0;
  // A number takes one byte, and the numbers after the end of the input are 0.
  const auto next = [&](std::int64_t bound) { return at < size ? data[at++] % bound : std::int64_t{0}; };
  hstu::RowLimits limits{.capacity = next(40),
                         .evict = hstu::kEvictions[next(std::size(hstu::kEvictions))].value,
                         .half_life = 1 + next(200),
                         .admit_after = next(5),
                         .ttl = 64 * next(12)};
  if (!limits.any()) limits.capacity = 10;
  const std::int64_t cache_rows = next(2) * 70;  // none, or room for the largest step
  hstu::testing_embedding::TableWalk walk(limits, 100, next, cache_rows);
  for (int step = 0; step < 24 && at < size; ++step) walk.step();  // an InternalError ends the program
  return 0;
}
