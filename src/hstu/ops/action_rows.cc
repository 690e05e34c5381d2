#include "hstu/ops/action_rows.h"

#include <algorithm>
#include <utility>

#include "hstu/ops/op.h"

namespace hstu::ops {

Variable action_rows(Tape& tape, const Variable& table, const Variable& target,
                     std::vector<std::uint8_t> actions, std::vector<std::uint8_t> bits) {
  const auto n = static_cast<std::int64_t>(actions.size()), count = static_cast<std::int64_t>(bits.size());
  const std::int64_t width = table.cols(), row = count * width;
  require(table.rows() == count && target.value().size() == row,
          "action_rows: shapes {} and {} do not fit {} bits", to_string(table.value().shape()),
          to_string(target.value().shape()), count);
  Tensor y = Tensor::zeros({n + 1, row}, table.value().dtype());
  const auto has = [actions = std::move(actions), bits = std::move(bits)](std::int64_t i, std::int64_t b) {
    return (actions[static_cast<std::size_t>(i)] & bits[static_cast<std::size_t>(b)]) != 0;
  };
  dispatch(y.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t b = 0; b < count; ++b) {
        if (has(i, b)) {
          std::copy_n(table.value().data<T>() + b * width, width, y.mutable_data<T>() + i * row + b * width);
        }
      }
    }
    std::copy_n(target.value().data<T>(), row, y.mutable_data<T>() + n * row);
  });
  return tape.record(y, {table, target}, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      T* const dtable = added_gradient(table).mutable_data<T>();
      T* const dtarget = added_gradient(target).mutable_data<T>();
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < row; ++j) {
          if (has(i, j / width)) dtable[j] += dy.data<T>()[i * row + j];
        }
      }
      for (std::int64_t j = 0; j < row; ++j) dtarget[j] += dy.data<T>()[n * row + j];
    });
  });
}

}  // namespace hstu::ops
