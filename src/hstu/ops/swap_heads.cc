#include "hstu/ops/swap_heads.h"

#include "hstu/kernels/copy_pieces.h"
#include "hstu/ops/exchange_bytes.h"
#include "hstu/ops/give_columns.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

constexpr auto kSwap = Operation::swap_heads;

// Rows of all heads and heads of all rows, of one rank. Between them are blocks, one for each other rank:
// this rank's rows of that rank's heads, which are sent, or have been received.
template <typename T>
class Swap {
 public:
  // all_heads: (T_r, H * D), rows `stride` apart. all_rows: (T, H_r * D). Neither is written where it is
  // sent.
  Swap(const DividedRows& rows, const SharedHeads& heads, T* all_heads, std::int64_t stride, T* all_rows,
       const Context& context)
      : rows_(rows),
        heads_(heads),
        all_heads_(all_heads),
        stride_(stride),
        all_rows_(all_rows),
        context_(context) {
    const std::int64_t width = heads.heads * heads.head_dim - width_of(rank());
    blocks_ = Tensor::empty({rows.mine(), width}, dtype_of<T>(), context);
  }

  template <typename DeviceStream>
  void to_heads(DeviceStream stream) {
    copy(blocks(), true, stream);
    ExchangeBeside messages(heads_.group, context_, [&](const Context& beside) {
      exchange_messages(messages_of_blocks(), messages_of_rows(), heads_.group, beside);
    });
    copy(own(), true, stream);
    messages.finish();
  }
  template <typename DeviceStream>
  void to_rows(DeviceStream stream) {
    ExchangeBeside messages(heads_.group, context_, [&](const Context& beside) {
      exchange_messages(messages_of_rows(), messages_of_blocks(), heads_.group, beside);
    });
    copy(own(), false, stream);
    messages.finish();
    copy(blocks(), false, stream);
  }

 private:
  // The same numbers at two places.
  struct Place {
    std::int64_t rows, width;
    T* of_all_heads;
    T* other;  // rows other_stride apart
    std::int64_t other_stride;
  };

  int rank() const { return heads_.group.rank(); }
  std::int64_t first_column(int r) const { return heads_.heads_of(r).begin * heads_.head_dim; }
  std::int64_t width_of(int r) const { return heads_.heads_of(r).width() * heads_.head_dim; }
  T* block(int r) {
    return blocks_.mutable_data<T>() + rows_.mine() * (first_column(r) - (r > rank() ? width_of(rank()) : 0));
  }

  std::vector<Place> blocks() {
    std::vector<Place> places;
    for (int r = 0; r < heads_.group.size(); ++r)
      if (r != rank())
        places.push_back({rows_.mine(), width_of(r), all_heads_ + first_column(r), block(r), width_of(r)});
    return places;
  }
  std::vector<Place> own() const {
    std::vector<Place> places;
    const std::int64_t width = width_of(rank());
    T* next = all_heads_ + first_column(rank());
    for (const RowRun& run : rows_.runs) {
      if (run.rank != rank()) continue;
      places.push_back({run.rows, width, next, all_rows_ + run.first * width, width});
      next += run.rows * stride_;
    }
    return places;
  }
  template <typename DeviceStream>
  void copy(const std::vector<Place>& places, bool from_all_heads, DeviceStream stream) const {
    std::vector<kernels::CopyPiece<T>> pieces;
    for (const Place& p : places) {
      if (from_all_heads)
        pieces.push_back({p.rows, p.width, p.of_all_heads, stride_, p.other, p.other_stride});
      else
        pieces.push_back({p.rows, p.width, p.other, p.other_stride, p.of_all_heads, stride_});
    }
    kernels::copy_pieces(std::span<const kernels::CopyPiece<T>>(pieces), stream);
  }

  static DeviceMessage message(int r, T* at, std::int64_t numbers) {
    return {r, reinterpret_cast<std::byte*>(at), numbers * static_cast<std::int64_t>(sizeof(T))};
  }
  // A message has one run, because its rows are together on the rank that has heads of all of them.
  std::vector<DeviceMessage> messages_of_blocks() {
    std::vector<DeviceMessage> messages;
    for (int r = 0; r < heads_.group.size(); ++r) {
      if (r == rank()) continue;
      T* next = block(r);
      for (const RowRun& run : rows_.runs) {
        if (run.rank != rank()) continue;
        messages.push_back(message(r, next, run.rows * width_of(r)));
        next += run.rows * width_of(r);
      }
    }
    return messages;
  }
  std::vector<DeviceMessage> messages_of_rows() const {
    std::vector<DeviceMessage> messages;
    const std::int64_t width = width_of(rank());
    for (int r = 0; r < heads_.group.size(); ++r)
      for (const RowRun& run : rows_.runs)
        if (run.rank == r && r != rank())
          messages.push_back(message(r, all_rows_ + run.first * width, run.rows * width));
    return messages;
  }

  const DividedRows& rows_;
  const SharedHeads& heads_;
  T* all_heads_;
  std::int64_t stride_;
  T* all_rows_;
  const Context& context_;
  Tensor blocks_;
};

// x: (T_r, H * D), rows `stride` apart. (T, H_r * D).
template <typename T, typename DeviceStream>
Tensor to_heads(const T* x, std::int64_t stride, DType type, const DividedRows& rows,
                const SharedHeads& heads, const Context& context, DeviceStream stream) {
  Tensor y = Tensor::empty({rows.all(), heads.mine() * heads.head_dim}, type, context);
  Swap<T>(rows, heads, const_cast<T*>(x), stride, y.mutable_data<T>(), context).to_heads(stream);
  return y;
}

// x (T, H_r * D). y: (T_r, H * D), rows `stride` apart.
template <typename T, typename DeviceStream>
void to_rows(Tensor x, const DividedRows& rows, const SharedHeads& heads, T* y, std::int64_t stride,
             const Context& context, DeviceStream stream) {
  Swap<T>(rows, heads, y, stride, x.mutable_data<T>(), context).to_rows(stream);
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

DividedRows divided_rows(std::span<const std::int32_t> rank_of_row, const Group& group) {
  DividedRows rows;
  rows.of_ranks.resize(static_cast<std::size_t>(group.size()));
  for (std::int64_t t = 0; t < std::ssize(rank_of_row); ++t) {
    const std::int32_t rank = rank_of_row[static_cast<std::size_t>(t)];
    ++rows.of_ranks.at(static_cast<std::size_t>(rank));
    if (rows.runs.empty() || rows.runs.back().rank != rank) rows.runs.push_back({rank, t, 0});
    ++rows.runs.back().rows;
  }
  rows.own = rows.of_ranks[static_cast<std::size_t>(group.rank())];
  return rows;
}

Variable swap_to_heads(Tape& tape, const Columns& x, const DividedRows& rows, const SharedHeads& heads) {
  check_sizes("swap_to_heads", x.rows(), x.width(), rows.mine(), heads.heads, rows, heads);
  const Context& context = tape.context();
  check_devices<kSwap>(context, x.variable);
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
  check_devices<kSwap>(context, x);
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
