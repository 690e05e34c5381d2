#include "hstu/tensor/axis_division.h"

namespace hstu {

void check_division(const AxisDivision& division, const std::string& name) {
  if (!division.is_divided()) return;
  require(division.axis < division.whole.size(), "parameter \"{}\": axis {} of {}", name, division.axis,
          ShapeText{division.whole});
  std::int64_t last = 0;
  for (const auto& [begin, end] : division.ranges) {
    require(last <= begin && begin <= end && end <= division.whole[division.axis],
            "parameter \"{}\": range [{}, {}) of axis {} of {}", name, begin, end, division.axis,
            ShapeText{division.whole});
    last = end;
  }
}

AxisDivision part_of_rank(const Divisible& divisible, const Shape& whole, int rank, int ranks) {
  const std::int64_t extent = whole[divisible.axis], block = extent / divisible.blocks, piece = block / ranks;
  require(extent == divisible.blocks * ranks * piece, "axis {} of {}: {} blocks for {} ranks", divisible.axis,
          ShapeText{whole}, divisible.blocks, ranks);
  AxisDivision division{.whole = whole, .axis = divisible.axis};
  for (std::int64_t b = 0; b < divisible.blocks; ++b)
    division.ranges.push_back({b * block + rank * piece, b * block + (rank + 1) * piece});
  return division;
}

Shape shape_of_part(const AxisDivision& division) {
  std::int64_t extent = 0;
  for (const auto& [begin, end] : division.ranges) extent += end - begin;
  Shape shape;
  for (std::size_t d = 0; d < division.whole.size(); ++d)
    shape.push_back(d == division.axis ? extent : division.whole[d]);
  return shape;
}

}  // namespace hstu
