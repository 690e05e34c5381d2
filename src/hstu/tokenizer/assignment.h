// The assignment problem: one column for each row, no column twice, at the least total cost.
#pragma once

#include <cstdint>
#include <vector>

namespace hstu {

// Compared by `changes`, then by `distance`.
struct AssignmentCost {
  std::int64_t changes = 0;
  double distance = 0;

  AssignmentCost operator+(const AssignmentCost& o) const {
    return {changes + o.changes, distance + o.distance};
  }
  AssignmentCost operator-(const AssignmentCost& o) const {
    return {changes - o.changes, distance - o.distance};
  }
  bool operator<(const AssignmentCost& o) const {
    return changes != o.changes ? changes < o.changes : distance < o.distance;
  }
};

// (rows) the column of each row, from costs (rows, columns), rows <= columns: the Hungarian method with
// shortest augmenting paths (Jonker and Volgenant, 1987), O(rows^2 columns). A pure function of the costs.
std::vector<std::int64_t> assign_columns(const std::vector<AssignmentCost>& costs, std::int64_t rows,
                                         std::int64_t columns);

}  // namespace hstu
