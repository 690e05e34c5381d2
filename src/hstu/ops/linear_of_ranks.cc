#include "hstu/ops/linear_of_ranks.h"

#include <numeric>
#include <utility>

#include "hstu/comm/sum_terms.h"
#include "hstu/ops/exchange.h"
#include "hstu/ops/exchange_bytes.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

using Counts = std::vector<std::int64_t>;

// Rows [begin, end) of the tokens of all ranks.
struct RowRange {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};

// The tokens of all ranks, in the order of ranks.
struct TokensOfRanks {
  Counts counts;  // (ranks)
  const Group* group;
  RowRange own, before, after;
  std::int64_t all;

  TokensOfRanks(Operation operation, Counts rows, const Group& ranks)
      : counts(std::move(rows)), group(&ranks), own(), before(), after(), all() {
    require(std::ssize(counts) == ranks.size(), "{}: expected rows of {} ranks, found {}", name_of(operation),
            ranks.size(), counts.size());
    all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    own.begin = std::accumulate(counts.begin(), counts.begin() + ranks.rank(), std::int64_t{0});
    own.end = own.begin + counts[static_cast<std::size_t>(ranks.rank())];
    before = {0, own.begin};
    after = {own.end, all};
  }
  std::int64_t ranks() const { return std::ssize(counts); }

  // (ranks) bytes of as many rows of `of` as each rank has, or as this rank has, from each.
  Counts bytes(const Tensor& of) const { return bytes_of_rows(counts, of); }
  Counts own_bytes(const Tensor& of) const { return bytes_of_rows(Counts(counts.size(), own.count()), of); }
};

// d_own = this rank's rows of the sum of terms (ranks * T_r, K) in the order of ranks, + last or nothing.
template <typename T>
Tensor sum_of(const Tensor& terms, const TokensOfRanks& tokens, const T* last, const Context& context) {
  Tensor sum = Tensor::empty({tokens.own.count(), terms.cols()}, terms.dtype(), context);
  if (context.memory->dry() == nullptr)
    sum_terms<T>(terms.data<T>(), static_cast<int>(tokens.ranks()), sum.size(), last, sum.mutable_data<T>(),
                 context.stream);
  return sum;
}

}  // namespace

GatheredLinear linear_of_gathered(Tape& tape, const Variable& own, const Counts& rows, const Group& group,
                                  const Variable& weight, const Variable& bias,
                                  const std::vector<ColumnRange>& columns, std::int64_t silu_from) {
  constexpr Operation kOperation = Operation::linear_of_gathered;
  const Context& context = tape.context();
  check_devices<kOperation>(context, own, weight, bias);
  const TokensOfRanks tokens(kOperation, rows, group);
  require(own.rows() == tokens.own.count() && weight.rows() == own.cols(),
          "linear_of_gathered: {} rows for rank {}, shapes {} and {}", tokens.own.count(), group.rank(),
          ShapeText{own.value().shape()}, ShapeText{weight.value().shape()});
  const std::int64_t k = own.cols(), n = kernels::total_width(columns), m = weight.cols();
  const bool activate = silu_from >= 0;
  const DType type = own.value().dtype();
  const Variable x = Variable::constant(Tensor::empty({tokens.all, k}, type, context));
  Tensor y = Tensor::empty({tokens.all, n}, type, context), activated;
  if (activate) activated = Tensor::empty({tokens.all, n - silu_from}, type, context);
  ExchangeBeside messages(group, context, [&](const Context& beside) {
    exchange_bytes(own.value(), {}, x.value(), tokens.bytes(x.value()), group, beside);
  });
  dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
    tell_work(context, {tokens.all, k, n}, 2 * tokens.all * k * n);
    const auto multiply = [&](const RowRange& range, const T* from) {
      if (range.count() == 0) return;
      kernels::linear(
          kernels::LinearForward<T>{
              .rows = range.count(),
              .in = k,
              .weight_columns = m,
              .columns = columns,
              .x = from,
              .weight = weight.value().data<T>(),
              .bias = data_or_null<Accumulator<T>>(bias),
              .y = y.mutable_data<T>() + range.begin * n,
              .activated = activate ? activated.mutable_data<T>() + range.begin * (n - silu_from) : nullptr,
              .silu_from = silu_from,
              .row_stable = context.row_stable},
          stream);
    };
    multiply(tokens.own, own.value().data<T>());
    messages.finish();
    for (const RowRange& range : {tokens.before, tokens.after})
      multiply(range, x.value().data<T>() + range.begin * k);
  });
  const Variable result = tape.record(y, {own, weight, bias}, [=](const Tensor& dy) {
    dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
      tell_work(context, {tokens.all, k, n}, 4 * tokens.all * k * n);
      kernels::LinearBackward<T> product{.rows = tokens.all,
                                         .in = k,
                                         .weight_columns = m,
                                         .columns = columns,
                                         .x = x.value().data<T>(),
                                         .weight = weight.value().data<T>(),
                                         .dy = dy.data<T>()};
      Tensor dx = Tensor::empty({tokens.all, k}, type, context),
             terms = Tensor::empty({tokens.ranks() * tokens.own.count(), k}, type, context);
      product.dx = {dx.mutable_data<T>()};
      kernels::linear_backward(product, stream);
      ExchangeBeside gradients(*tokens.group, context, [&](const Context& beside) {
        exchange_bytes(dx, tokens.bytes(dx), terms, tokens.own_bytes(terms), *tokens.group, beside);
      });
      product.dx = {};
      product.dweight = gradient_of<Accumulator<T>>(weight, context);
      product.dbias = gradient_of<Accumulator<T>>(bias, context);
      kernels::linear_backward(product, stream);
      gradients.finish();
      pass_on<T>(sum_of<T>(terms, tokens, nullptr, context), own, context, stream);
    });
  });
  if (result.needs_gradient())
    x.recomputed_by([=] { return gathered_rows(own.value(), tokens.counts, *tokens.group, context); });
  if (!activate) return {{result, {}}, x};
  return {{result, with_silu(result, activated, silu_from, context)}, x};
}

Variable scattered_linear(Tape& tape, const Variable& x, const Variable& weight, const Counts& rows,
                          const Group& group, const Variable& residual) {
  constexpr Operation kOperation = Operation::scattered_linear;
  const Context& context = tape.context();
  check_devices<kOperation>(context, x, weight, residual);
  const TokensOfRanks tokens(kOperation, rows, group);
  const std::int64_t k = x.cols(), n = weight.cols(), mine = tokens.own.count();
  require(x.rows() == tokens.all && weight.rows() == k &&
              (!residual.defined() || (residual.rows() == mine && residual.cols() == n)),
          "scattered_linear: {} rows of {} for rank {}, shapes {} and {}", mine, tokens.all, group.rank(),
          ShapeText{x.value().shape()}, ShapeText{weight.value().shape()});
  const DType type = x.value().dtype();
  // The terms for this rank, of each rank; those for the others, where this rank's are left out.
  Tensor terms = Tensor::empty({tokens.ranks() * mine, n}, type, context),
         for_others = Tensor::empty({tokens.all, n}, type, context), y;
  dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
    const auto multiply = [&](const RowRange& range, T* to) {
      if (range.count() == 0) return;
      const ColumnRange all{0, n};
      kernels::linear(kernels::LinearForward<T>{.rows = range.count(),
                                                .in = k,
                                                .weight_columns = n,
                                                .columns = {&all, 1},
                                                .x = x.value().data<T>() + range.begin * k,
                                                .weight = weight.value().data<T>(),
                                                .y = to,
                                                .row_stable = context.row_stable},
                      stream);
    };
    for (const RowRange& range : {tokens.before, tokens.after})
      multiply(range, for_others.mutable_data<T>() + range.begin * n);
    ExchangeBeside messages(group, context, [&](const Context& beside) {
      exchange_bytes_of_others(for_others, tokens.bytes(for_others), terms, tokens.own_bytes(terms), group,
                               beside);
    });
    multiply(tokens.own, terms.mutable_data<T>() + group.rank() * mine * n);
    messages.finish();
    y = sum_of<T>(terms, tokens, data_or_null<T>(residual), context);
  });
  return tape.record(y, {x, weight, residual}, [=](const Tensor& dy) {
    dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
      Tensor all = Tensor::empty({tokens.all, n}, type, context);
      ExchangeBeside gradients(*tokens.group, context, [&](const Context& beside) {
        exchange_bytes(dy, {}, all, tokens.bytes(all), *tokens.group, beside);
      });
      const ColumnRange columns{0, n};
      const kernels::Gradient<T> dx = gradient_of<T>(x, context);
      const auto multiply = [&](const RowRange& range, const T* from) {
        if (range.count() == 0 || dx.to == nullptr) return;
        kernels::linear_backward(kernels::LinearBackward<T>{.rows = range.count(),
                                                            .in = k,
                                                            .weight_columns = n,
                                                            .columns = {&columns, 1},
                                                            .x = x.value().data<T>() + range.begin * k,
                                                            .weight = weight.value().data<T>(),
                                                            .dy = from,
                                                            .dx = dx + range.begin * k},
                                 stream);
      };
      multiply(tokens.own, dy.data<T>());
      gradients.finish();
      for (const RowRange& range : {tokens.before, tokens.after})
        multiply(range, all.data<T>() + range.begin * n);
      kernels::linear_backward(
          kernels::LinearBackward<T>{.rows = tokens.all,
                                     .in = k,
                                     .weight_columns = n,
                                     .columns = {&columns, 1},
                                     .x = x.value().data<T>(),
                                     .weight = weight.value().data<T>(),
                                     .dy = all.data<T>(),
                                     .dweight = gradient_of<Accumulator<T>>(weight, context)},
          stream);
      if (residual.defined()) pass_on<T>(dy, residual, context, stream);
    });
  });
}

}  // namespace hstu::ops
