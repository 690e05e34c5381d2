// The part of a tensor that one rank of a group has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hstu/tensor/tensor.h"

namespace hstu {

struct AxisDivision {
  // Of the axis: [begin, end).
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  Shape whole = {};  // of all parts together
  std::size_t axis = 0;
  // Ascending and apart; the part has them one after another. None: the rank has the whole tensor.
  std::vector<Range> ranges = {};

  bool is_divided() const { return !ranges.empty(); }
};

// Which axis of a tensor the ranks of a group may divide: it has `blocks` blocks of one size, one after
// another (those of U, V, Q and K), of each of which every rank gets an equal piece, in the order of ranks.
struct Divisible {
  std::size_t axis = 0;
  std::int64_t blocks = 0;  // 0: every rank has the whole tensor
};
// What rank `rank` of `ranks` has of `whole`. Throws InternalError unless the ranks divide a block.
AxisDivision part_of_rank(const Divisible& divisible, const Shape& whole, int rank, int ranks);

// Throws InternalError naming `name` unless the ranges are in order and inside the axis.
void check_division(const AxisDivision& division, const std::string& name);

// Of a division that is one.
Shape shape_of_part(const AxisDivision& division);

// Calls visit(in_part, in_whole, elements) for each run of elements that follow each other in the part and in
// the whole, in ascending order of both.
template <typename Visit>
void for_each_run(const AxisDivision& division, const Visit& visit) {
  std::int64_t outer = 1, inner = 1, in_part = 0;
  for (std::size_t d = 0; d < division.whole.size(); ++d)
    if (d != division.axis) (d < division.axis ? outer : inner) *= division.whole[d];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const auto& [begin, end] : division.ranges) {
      const std::int64_t elements = (end - begin) * inner;
      visit(in_part, (o * division.whole[division.axis] + begin) * inner, elements);
      in_part += elements;
    }
  }
}

// Both in host memory, of the shapes of the division.
template <typename T>
void copy_from_whole(const AxisDivision& division, const T* whole, T* part) {
  for_each_run(division, [&](std::int64_t in_part, std::int64_t in_whole, std::int64_t n) {
    std::copy_n(whole + in_whole, n, part + in_part);
  });
}
template <typename T>
void copy_to_whole(const AxisDivision& division, const T* part, T* whole) {
  for_each_run(division, [&](std::int64_t in_part, std::int64_t in_whole, std::int64_t n) {
    std::copy_n(part + in_part, n, whole + in_whole);
  });
}

}  // namespace hstu
