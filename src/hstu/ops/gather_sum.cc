#include "hstu/ops/gather_sum.h"

#include <functional>
#include <type_traits>

#include "hstu/kernels/gather_sum.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// The gradients of the rows of terms that `takes` names.
template <typename T, typename Out, typename DeviceStream, typename Takes>
void scatter(const std::vector<GatherTerm>& terms, const Tensor& dy, const Context& context,
             DeviceStream stream, const Takes& takes) {
  std::vector<kernels::ScatterAdd<T, Out>> all;
  for (const GatherTerm& term : terms) {
    if (!takes(term)) continue;
    all.push_back({.tokens = dy.rows(),
                   .width = dy.cols(),
                   .dy = dy.data<T>(),
                   .index = term.index.data<std::int32_t>(),
                   .count = term.rows.rows(),
                   .factor = static_cast<Accumulator<T>>(term.factor),
                   .drows = gradient_of<Out>(term.rows, context)});
  }
  kernels::scatter_add(std::span<const kernels::ScatterAdd<T, Out>>(all), stream);
}

}  // namespace

Variable gather_sum(Tape& tape, const std::vector<GatherTerm>& terms, const Dropout& dropout) {
  require(!terms.empty(), "gather_sum: expected at least one term");
  const Context& context = tape.context();
  const std::int64_t tokens = terms.front().index.size(), width = terms.front().rows.cols();
  std::vector<Variable> inputs;
  for (const GatherTerm& term : terms) {
    require(term.rows.cols() == width && term.index.size() == tokens,
            "gather_sum: expected {} indices into rows of {}, found {} into {}", tokens, width,
            term.index.size(), ShapeText{term.rows.value().shape()});
    check_devices<Operation::gather_sum>(context, term.rows, term.index, dropout.row_names);
    inputs.push_back(term.rows);
  }
  const DType type = terms.front().rows.value().dtype();
  Tensor y = Tensor::empty({tokens, width}, type, context);
  dispatch<Operation::gather_sum>(context, type, [&]<typename T>(auto stream) {
    kernels::GatherSum<T> p{.tokens = tokens,
                            .width = width,
                            .sources = {},
                            .y = y.mutable_data<T>(),
                            .dropout = dropout.of_rows(tokens)};
    for (const GatherTerm& term : terms) {
      p.sources.push_back({.rows = term.rows.value().data<T>(),
                           .count = term.rows.rows(),
                           .index = term.index.data<std::int32_t>(),
                           .factor = static_cast<Accumulator<T>>(term.factor)});
    }
    kernels::gather_sum(p, stream);
  });
  return tape.record(y, inputs, [=](Tensor& dy) {
    dispatch<Operation::gather_sum>(context, type, [&]<typename T>(auto stream) {
      if (dropout.rate > 0) {
        kernels::apply_dropout(kernels::ApplyDropout<T>{.rows = tokens,
                                                        .width = width,
                                                        .x = dy.data<T>(),
                                                        .y = dy.mutable_data<T>(),
                                                        .dropout = dropout.of_rows(tokens)},
                               stream);
      }
      // The gradient of a parameter is kept in the type of sums, whatever type its rows are read in.
      const auto is_parameter = [](const GatherTerm& term) { return term.rows.parameter() != nullptr; };
      if constexpr (std::is_same_v<T, Accumulator<T>>) {
        scatter<T, T>(terms, dy, context, stream, [](const GatherTerm&) { return true; });
      } else {
        scatter<T, Accumulator<T>>(terms, dy, context, stream, is_parameter);
        scatter<T, T>(terms, dy, context, stream, std::not_fn(is_parameter));
      }
    });
  });
}

Variable gather_rows(Tape& tape, const Variable& rows, const Tensor& index) {
  return gather_sum(tape, {{rows, index, 1}}, {});
}

}  // namespace hstu::ops
