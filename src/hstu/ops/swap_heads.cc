#include "hstu/ops/swap_heads.h"

#include <numeric>

#include "hstu/kernels/copy_rows.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/ops/exchange_bytes.h"
#include "hstu/ops/give_columns.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

constexpr auto kSwap = Operation::swap_heads;

template <typename Number>
Tensor list(const std::vector<Number>& values, const Context& context) {
  return Tensor::from({std::ssize(values)}, values).copy(context);
}

// Bytes of the messages to and from each rank: this rank's rows of that one's heads, and that one's rows of
// this rank's heads.
struct Messages {
  std::vector<std::int64_t> of_rows, of_heads;

  Messages(const DividedRows& rows, const SharedHeads& heads, DType type) {
    const std::int64_t head_bytes = heads.head_dim * static_cast<std::int64_t>(size_of(type));
    for (int r = 0; r < heads.group.size(); ++r) {
      of_rows.push_back(rows.mine() * heads.heads_of(r).width() * head_bytes);
      of_heads.push_back(rows.of_ranks[static_cast<std::size_t>(r)] * heads.mine() * head_bytes);
    }
  }
};

// x: (T_r, H * D), rows `stride` apart. (T, H_r * D).
template <typename T, typename DeviceStream>
Tensor to_heads(const T* x, std::int64_t stride, DType type, const DividedRows& rows,
                const SharedHeads& heads, const Context& context, DeviceStream stream) {
  const std::int64_t width = heads.mine() * heads.head_dim;
  Tensor packed = Tensor::empty({rows.mine(), heads.heads * heads.head_dim}, type, context);
  for (int r = 0; r < heads.group.size(); ++r) {
    const ColumnRange of_rank = heads.heads_of(r);
    const std::int64_t first = of_rank.begin * heads.head_dim;
    kernels::copy_rows(kernels::CopyRows<T>{.rows = rows.mine(),
                                            .width = of_rank.width() * heads.head_dim,
                                            .x = x + first,
                                            .x_stride = stride,
                                            .from = rows.own.data<std::int32_t>(),
                                            .to = rows.own_places.data<std::int64_t>(),
                                            .y = packed.mutable_data<T>() + rows.mine() * first},
                       stream);
  }
  const Messages messages(rows, heads, type);
  Tensor received = Tensor::empty({rows.all(), width}, type, context);
  exchange_bytes(packed, messages.of_rows, received, messages.of_heads, heads.group, context);
  Tensor y = Tensor::empty({rows.all(), width}, type, context);
  const kernels::GatherRows<T> sorted{.tokens = rows.all(),
                                      .width = width,
                                      .rows = received.data<T>(),
                                      .count = rows.all(),
                                      .index = rows.from.data<std::int32_t>(),
                                      .y = y.mutable_data<T>(),
                                      .stride = width};
  kernels::gather_rows(std::span(&sorted, 1), stream);
  return y;
}

// x (T, H_r * D). y: (T_r, H * D), rows `stride` apart.
template <typename T, typename DeviceStream>
void to_rows(const Tensor& x, const DividedRows& rows, const SharedHeads& heads, T* y, std::int64_t stride,
             const Context& context, DeviceStream stream) {
  Tensor sorted = Tensor::empty(x.shape(), x.dtype(), context);
  const kernels::GatherRows<T> by_rank{.tokens = rows.all(),
                                       .width = x.cols(),
                                       .rows = x.data<T>(),
                                       .count = rows.all(),
                                       .index = rows.to.data<std::int32_t>(),
                                       .y = sorted.mutable_data<T>(),
                                       .stride = x.cols()};
  kernels::gather_rows(std::span(&by_rank, 1), stream);
  const Messages messages(rows, heads, x.dtype());
  Tensor received = Tensor::empty({rows.mine(), heads.heads * heads.head_dim}, x.dtype(), context);
  exchange_bytes(sorted, messages.of_heads, received, messages.of_rows, heads.group, context);
  std::vector<kernels::GatherRows<T>> parts;
  for (int r = 0; r < heads.group.size(); ++r) {
    const ColumnRange of_rank = heads.heads_of(r);
    const std::int64_t first = of_rank.begin * heads.head_dim;
    parts.push_back({.tokens = rows.mine(),
                     .width = of_rank.width() * heads.head_dim,
                     .rows = received.data<T>() + rows.mine() * first,
                     .count = rows.mine(),
                     .index = rows.own.data<std::int32_t>(),
                     .y = y + first,
                     .stride = stride});
  }
  kernels::gather_rows(std::span<const kernels::GatherRows<T>>(parts), stream);
}

void check_sizes(const char* name, std::int64_t rows, std::int64_t width, std::int64_t expected_rows,
                 std::int64_t expected_heads, const DividedRows& divided, const SharedHeads& heads) {
  require(heads.heads >= heads.group.size() && std::ssize(divided.of_ranks) == heads.group.size(),
          "{}: {} ranks cannot share {} heads of rows of {} ranks", name, heads.group.size(), heads.heads,
          divided.of_ranks.size());
  require(rows == expected_rows && width == expected_heads * heads.head_dim,
          "{}: expected {} rows of {} heads of {}, found {} x {}", name, expected_rows, expected_heads,
          heads.head_dim, rows, width);
}

}  // namespace

DividedRows divided_rows(std::span<const std::int32_t> rank_of_row, const Group& group,
                         const Context& context) {
  DividedRows rows;
  rows.of_ranks.resize(static_cast<std::size_t>(group.size()));
  for (const std::int32_t rank : rank_of_row) ++rows.of_ranks.at(static_cast<std::size_t>(rank));
  std::vector<std::int64_t> next(rows.of_ranks.size());
  std::exclusive_scan(rows.of_ranks.begin(), rows.of_ranks.end(), next.begin(), std::int64_t{0});
  std::vector<std::int32_t> from(rank_of_row.size()), to(rank_of_row.size());
  for (std::size_t t = 0; t < rank_of_row.size(); ++t) {
    const std::int64_t place = next[static_cast<std::size_t>(rank_of_row[t])]++;
    from[t] = static_cast<std::int32_t>(place);
    to[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(t);
  }
  const auto mine = static_cast<std::size_t>(rows.of_ranks[static_cast<std::size_t>(group.rank())]);
  std::vector<std::int32_t> own(mine);
  std::iota(own.begin(), own.end(), 0);
  rows.from = list(from, context), rows.to = list(to, context), rows.own = list(own, context);
  rows.own_places = list(std::vector<std::int64_t>(own.begin(), own.end()), context);
  return rows;
}

Variable swap_to_heads(Tape& tape, const Columns& x, const DividedRows& rows, const SharedHeads& heads) {
  check_sizes("swap_to_heads", x.rows(), x.width(), rows.mine(), heads.heads, rows, heads);
  const Context& context = tape.context();
  check_devices<kSwap>(context, x.variable, rows.from);
  const DType type = x.variable.value().dtype();
  const auto swapped = [=] {
    Tensor y;
    dispatch<kSwap>(context, type, [&]<typename T>(auto stream) {
      y = to_heads<T>(x.data<T>(), x.stride(), type, rows, heads, context, stream);
    });
    return y;
  };
  Variable y = tape.record(swapped(), {x.variable}, [=](const Tensor& dy) {
    dispatch<kSwap>(context, type, [&]<typename T>(auto stream) {
      give_columns<T>(x, context, stream, [&](T* to, std::int64_t stride) {
        to_rows(dy, rows, heads, to, stride, context, stream);
      });
    });
  });
  if (y.needs_gradient()) {
    y.recomputed_by([=] {
      Tensor again = swapped();
      if (x.activated.defined()) x.activated.drop_value();
      return again;
    });
  }
  return y;
}

Variable swap_to_rows(Tape& tape, const Variable& x, const DividedRows& rows, const SharedHeads& heads) {
  check_sizes("swap_to_rows", x.rows(), x.cols(), rows.all(), heads.mine(), rows, heads);
  const Context& context = tape.context();
  check_devices<kSwap>(context, x, rows.from);
  const DType type = x.value().dtype();
  const std::int64_t width = heads.heads * heads.head_dim;
  Tensor y = Tensor::empty({rows.mine(), width}, type, context);
  dispatch<kSwap>(context, type, [&]<typename T>(auto stream) {
    to_rows(x.value(), rows, heads, y.mutable_data<T>(), width, context, stream);
  });
  return tape.record(y, {x}, [=](const Tensor& dy) {
    dispatch<kSwap>(context, type, [&]<typename T>(auto stream) {
      pass_on<T>(to_heads<T>(dy.data<T>(), width, type, rows, heads, context, stream), x, context, stream);
    });
  });
}

}  // namespace hstu::ops
