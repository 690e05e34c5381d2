// What becomes of items with the same tuple of codes.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/tokenizer/residual_kmeans.h"

namespace hstu {

enum class Collisions {
  keep,      // they share it
  extra,     // a further level numbers the items of each tuple, in the order of their ids
  reassign,  // the last level is assigned again, so that few items change their code, and by little distance
};
inline constexpr Choice<Collisions> kCollisions[] = {
    {"keep", Collisions::keep}, {"extra", Collisions::extra}, {"reassign", Collisions::reassign}};

// Changes the codes. `reassign`: among the items of each prefix of all levels but the last, in which some
// collide, the fewest change their last code, and of such solutions the sum of squared distances to the
// centers is least. Of a prefix with more items than the level has codes, all codes get as many items, but
// for one: the nearest keep theirs, and each of the others gets the nearest of those that the fewest have.
// Returns how many items changed a code or, with `extra`, how many codes the further level has.
std::int64_t resolve_collisions(TokenizedItems& items, Collisions rule);

// The same of items that come to others, `known`, which keep their codes and were made by the same rule: an
// item gets the nearest last code of those that the fewest have. The number of codes of a level stays, also
// with `extra`.
std::int64_t resolve_collisions(TokenizedItems& items, const ItemCodes& known, Collisions rule);

}  // namespace hstu
