#include "hstu/tokenizer/assignment.h"

#include <limits>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr AssignmentCost kEndless{std::numeric_limits<std::int64_t>::max() / 4, 0};

// Rows and columns are counted from 1; column 0 is where a path begins.
class Assignment {
 public:
  Assignment(const std::vector<AssignmentCost>& costs, std::int64_t rows, std::int64_t columns)
      : costs_(costs),
        columns_(static_cast<std::size_t>(columns)),
        of_row_(static_cast<std::size_t>(rows) + 1),
        of_column_(columns_ + 1),
        row_at_(columns_ + 1, 0),
        before_(columns_ + 1, 0) {}

  // Gives `row` a column, and other rows new ones where that is cheaper.
  void add(std::size_t row) {
    std::vector<AssignmentCost> shortest(columns_ + 1, kEndless);
    std::vector<bool> done(columns_ + 1, false);
    row_at_[0] = row;
    std::size_t column = 0;
    do {
      done[column] = true;
      const std::size_t from = row_at_[column];
      AssignmentCost step = kEndless;
      std::size_t next = 0;
      for (std::size_t j = 1; j <= columns_; ++j) {
        if (done[j]) continue;
        const AssignmentCost cost = costs_[(from - 1) * columns_ + j - 1] - of_row_[from] - of_column_[j];
        if (cost < shortest[j]) shortest[j] = cost, before_[j] = column;
        if (shortest[j] < step) step = shortest[j], next = j;
      }
      for (std::size_t j = 0; j <= columns_; ++j) {
        if (done[j])
          of_row_[row_at_[j]] = of_row_[row_at_[j]] + step, of_column_[j] = of_column_[j] - step;
        else
          shortest[j] = shortest[j] - step;
      }
      column = next;
    } while (row_at_[column] != 0);
    for (; column != 0; column = before_[column]) row_at_[column] = row_at_[before_[column]];
  }

  std::size_t row_of(std::size_t column) const { return row_at_[column]; }

 private:
  const std::vector<AssignmentCost>& costs_;
  std::size_t columns_;
  std::vector<AssignmentCost> of_row_, of_column_;  // potentials
  std::vector<std::size_t> row_at_, before_;        // by column; 0: no row
};

}  // namespace

std::vector<std::int64_t> assign_columns(const std::vector<AssignmentCost>& costs, std::int64_t rows,
                                         std::int64_t columns) {
  require(rows <= columns && std::ssize(costs) == rows * columns, "expected costs of {} x {}", rows, columns);
  Assignment assignment(costs, rows, columns);
  for (std::int64_t r = 1; r <= rows; ++r) assignment.add(static_cast<std::size_t>(r));
  std::vector<std::int64_t> column_of(static_cast<std::size_t>(rows), -1);
  for (std::int64_t j = 1; j <= columns; ++j) {
    if (const std::size_t row = assignment.row_of(static_cast<std::size_t>(j)); row != 0)
      column_of[row - 1] = j - 1;
  }
  return column_of;
}

}  // namespace hstu
