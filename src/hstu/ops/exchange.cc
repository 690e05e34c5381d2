#include "hstu/ops/exchange.h"

#include <numeric>
#include <span>
#include <utility>

#include "hstu/comm/sum_terms.h"
#include "hstu/kernels/shift.h"
#include "hstu/ops/exchange_bytes.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// How rows are divided among the ranks of a group.
struct Rows {
  std::vector<std::int64_t> of_ranks;  // (ranks)
  const Group* group;

  Rows(std::vector<std::int64_t> rows, const Group& ranks) : of_ranks(std::move(rows)), group(&ranks) {}
  std::int64_t all() const { return std::accumulate(of_ranks.begin(), of_ranks.end(), std::int64_t{0}); }
  std::int64_t mine() const { return of_ranks[static_cast<std::size_t>(group->rank())]; }
};

Rows checked(Operation operation, const Variable& x, const std::vector<std::int64_t>& rows,
             const Group& group) {
  require(x.value().shape().size() == 2 && std::ssize(rows) == group.size(),
          "{}: expected rows of {} ranks, found {} of {}", name_of(operation), group.size(),
          ShapeText{x.value().shape()}, rows.size());
  Rows result(rows, group);
  const std::int64_t expected = operation == Operation::all_gather_rows ? result.mine() : result.all();
  require(x.rows() == expected, "{}: expected {} rows, found {}", name_of(operation), expected, x.rows());
  return result;
}

using Counts = std::vector<std::int64_t>;

// Sends `from`, in as many rows as `sent` has for each rank, and receives `to` in the same way. Where all
// ranks get the same rows, `sent` is empty.
void exchange(const Tensor& from, const Counts& sent, const Tensor& to, const Counts& received,
              const Group& group, const Context& context) {
  exchange_bytes(from, bytes_of_rows(sent, from), to, bytes_of_rows(received, to), group, context);
}

// x (T_r, ...) of all ranks: (T, ...).
Tensor gathered(const Tensor& x, const Rows& rows, const Context& context) {
  Shape shape = x.shape();
  shape.front() = rows.all();
  Tensor y = Tensor::empty(shape, x.dtype(), context);
  exchange(x, {}, y, rows.of_ranks, *rows.group, context);
  return y;
}

// This rank's rows of the sum of x (T, W) over ranks: (T_r, W).
template <typename T>
Tensor scattered_sum(const Tensor& x, const Rows& rows, const Context& context) {
  const int ranks = rows.group->size();
  const std::vector<std::int64_t> received(static_cast<std::size_t>(ranks), rows.mine());
  Tensor terms = Tensor::empty({ranks * rows.mine(), x.cols()}, x.dtype(), context);
  exchange(x, rows.of_ranks, terms, received, *rows.group, context);
  Tensor y = Tensor::empty({rows.mine(), x.cols()}, x.dtype(), context);
  if (context.memory->dry() == nullptr)
    sum_terms<T>(terms.data<T>(), ranks, y.size(), nullptr, y.mutable_data<T>(), context.stream);
  return y;
}

template <typename T>
Tensor moved(bool gathers, const Tensor& x, const Rows& rows, const Context& context) {
  return gathers ? gathered(x, rows, context) : scattered_sum<T>(x, rows, context);
}

// all_gather_rows or reduce_scatter_rows: each is the other's backward pass.
template <Operation operation>
Variable exchange_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& of_ranks,
                       const Group& group) {
  constexpr bool kGathers = operation == Operation::all_gather_rows;
  const Context& context = tape.context();
  check_devices<operation>(context, x);
  const Rows rows = checked(operation, x, of_ranks, group);
  const DType type = x.value().dtype();
  Tensor y;
  dispatch<operation>(context, type,
                      [&]<typename T>(auto) { y = moved<T>(kGathers, x.value(), rows, context); });
  Variable result = tape.record(y, {x}, [=](const Tensor& dy) {
    dispatch<operation>(context, type, [&]<typename T>(auto stream) {
      pass_on<T>(moved<T>(!kGathers, dy, rows, context), x, context, stream);
    });
  });
  if (kGathers && result.needs_gradient())
    result.recomputed_by([=] { return gathered(x.value(), rows, context); });
  return result;
}

// x in as many rows as `sent` has for each rank: those of all ranks for this one.
Tensor sent_rows(const Tensor& x, const Counts& sent, const Counts& received, const Group& group,
                 const Context& context) {
  const std::int64_t rows = std::accumulate(received.begin(), received.end(), std::int64_t{0});
  Tensor y = Tensor::empty({rows, x.cols()}, x.dtype(), context);
  exchange(x, sent, y, received, group, context);
  return y;
}

}  // namespace

std::vector<std::int64_t> rows_of_ranks(std::int64_t mine, const Group& group) {
  return group.host.all_gather(std::span<const std::int64_t>(&mine, 1));
}

Tensor gathered_rows(const Tensor& x, const std::vector<std::int64_t>& rows, const Group& group,
                     const Context& context) {
  return gathered(x, Rows(rows, group), context);
}

Tensor gathered_places(const Tensor& x, std::int64_t before, const std::vector<std::int64_t>& rows,
                       const Group& group, const Context& context) {
  Tensor moved = Tensor::empty(x.shape(), x.dtype(), context);
  const auto move = [&]<typename T>() {
    const kernels::Shift<T> p{x.size(), x.data<T>(), static_cast<T>(before), moved.mutable_data<T>()};
    if (context.memory->dry() != nullptr) return;
    if (context.device().is_host()) return kernels::shift(p, HostStream());
    if constexpr (kBuiltWithCuda) return kernels::shift(p, context.cuda());
  };
  x.dtype() == DType::i32 ? move.operator()<std::int32_t>() : move.operator()<std::int64_t>();
  return gathered_rows(moved, rows, group, context);
}

Tensor summed_over_ranks(const Tensor& x, const Group& group, const Context& context) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const Tensor terms = gathered(x, Rows(std::vector(ranks, x.rows()), group), context);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), context);
  if (context.memory->dry() != nullptr) return y;
  with_float_type(x.dtype(), [&]<typename T>() {
    sum_terms<T>(terms.data<T>(), group.size(), y.size(), nullptr, y.mutable_data<T>(), context.stream);
  });
  return y;
}

Variable all_gather_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& of_ranks,
                         const Group& group) {
  return exchange_rows<Operation::all_gather_rows>(tape, x, of_ranks, group);
}

Variable reduce_scatter_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& of_ranks,
                             const Group& group) {
  return exchange_rows<Operation::reduce_scatter_rows>(tape, x, of_ranks, group);
}

Variable exchange_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& sent,
                       const std::vector<std::int64_t>& received, const Group& group) {
  const Context& context = tape.context();
  check_devices<Operation::exchange_rows>(context, x);
  require(std::ssize(sent) == group.size() && std::ssize(received) == group.size() &&
              x.rows() == std::accumulate(sent.begin(), sent.end(), std::int64_t{0}),
          "exchange_rows: expected rows for {} ranks, found {} for {} and from {}", group.size(), x.rows(),
          sent.size(), received.size());
  const DType type = x.value().dtype();
  Tensor y;
  dispatch<Operation::exchange_rows>(
      context, type, [&]<typename T>(auto) { y = sent_rows(x.value(), sent, received, group, context); });
  return tape.record(y, {x}, [=](const Tensor& dy) {
    dispatch<Operation::exchange_rows>(context, type, [&]<typename T>(auto stream) {
      pass_on<T>(sent_rows(dy, received, sent, group, context), x, context, stream);
    });
  });
}

}  // namespace hstu::ops
