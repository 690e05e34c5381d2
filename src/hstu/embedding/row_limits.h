// The limits of a table: how many rows it keeps, which rows leave, and which ids get a row at all.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/choice.h"

namespace hstu {

// Which rows leave a table that is beyond its capacity: those with the lowest score, and of equal scores
// those with the lowest id.
enum class Evict {
  never,    // none: the rows that a step creates beyond the capacity are refused, the highest ids first
  lru,      // the score is the last step that trained the row
  lfu,      // the occurrences of the id in training
  step,     // the step that created the row
  lru_lfu,  // the occurrences, halved every half_life steps (row_score.h)
  custom,   // the largest value of a column of the data among the samples that trained the row
};
inline constexpr Choice<Evict> kEvictions[] = {{"never", Evict::never},     {"lru", Evict::lru},
                                               {"lfu", Evict::lfu},         {"step", Evict::step},
                                               {"lru+lfu", Evict::lru_lfu}, {"custom", Evict::custom}};

struct RowLimits {
  std::int64_t capacity = 0;  // rows that a table has after a step, over all ranks; 0: no limit
  Evict evict = Evict::never;
  std::int64_t half_life = 1000;  // steps
  std::int64_t admit_after = 0;   // occurrences of an id in training before it gets a row; 0: none
  std::int64_t ttl = 0;           // seconds of event time after which an unseen row leaves; 0: never
  std::string score_column = {};  // custom: a context column of the dataset

  bool any() const { return capacity > 0 || admit_after > 0 || ttl > 0; }
};

// What scores mean, for checkpoints: the word of the eviction, followed by the column of a custom one.
inline std::string eviction_of(const RowLimits& limits) {
  const std::string word = word_of(kEvictions, limits.evict);
  return limits.evict == Evict::custom ? word + " " + limits.score_column : word;
}

}  // namespace hstu
