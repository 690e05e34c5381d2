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
  all.reserve(terms.size());
  for (const GatherTerm& term : terms) {
    if (!takes(term)) continue;
    all.push_back({.tokens = dy.rows(),
                   .width = dy.cols(),
                   .dy = dy.data<T>(),
                   .stride = dy.cols(),
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
  inputs.reserve(terms.size());
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
    p.sources.reserve(terms.size());
    for (const GatherTerm& term : terms) {
      p.sources.push_back({.rows = term.rows.value().data<T>(),
                           .count = term.rows.rows(),
                           .index = term.index.data<std::int32_t>(),
                           .factor = static_cast<Accumulator<T>>(term.factor)});
    }
    kernels::gather_sum(p, stream);
  });
  // `terms = terms` is no const copy, which would be copied again when the record takes it.
  return tape.record(y, inputs, [=, terms = terms](Tensor& dy) {
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

namespace {

// y (tokens, width), which the parts fill; places: the element of y at which each of them begins.
Variable gather_to(Tape& tape, const std::vector<Gathered>& parts, const std::vector<std::int64_t>& places,
                   std::int64_t tokens, std::int64_t width) {
  const Context& context = tape.context();
  std::vector<Variable> inputs;
  inputs.reserve(parts.size());
  for (const Gathered& part : parts) {
    check_devices<Operation::gather_sum>(context, part.rows, part.index);
    inputs.push_back(part.rows);
  }
  const DType type = parts.front().rows.value().dtype();
  Tensor y = Tensor::empty({tokens, width}, type, context);
  dispatch<Operation::gather_sum>(context, type, [&]<typename T>(auto stream) {
    std::vector<kernels::GatherRows<T>> all;
    all.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Variable& rows = parts[i].rows;
      all.push_back({.tokens = parts[i].index.size(),
                     .width = rows.cols(),
                     .rows = rows.value().data<T>(),
                     .count = rows.rows(),
                     .index = parts[i].index.data<std::int32_t>(),
                     .y = y.mutable_data<T>() + places[i],
                     .stride = width});
    }
    kernels::gather_rows(std::span<const kernels::GatherRows<T>>(all), stream);
  });
  // As in gather_sum(): no const copies.
  return tape.record(y, inputs, [=, parts = parts, places = places](const Tensor& dy) {
    dispatch<Operation::gather_sum>(context, type, [&]<typename T>(auto stream) {
      std::vector<kernels::ScatterAdd<T>> all;
      all.reserve(parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const Variable& rows = parts[i].rows;
        all.push_back({.tokens = parts[i].index.size(),
                       .width = rows.cols(),
                       .dy = dy.data<T>() + places[i],
                       .stride = width,
                       .index = parts[i].index.data<std::int32_t>(),
                       .count = rows.rows(),
                       .drows = gradient_of<T>(rows, context)});
      }
      kernels::scatter_add(std::span<const kernels::ScatterAdd<T>>(all), stream);
    });
  });
}

}  // namespace

Variable gather_rows(Tape& tape, const Variable& rows, const Tensor& index) {
  return gather_columns(tape, {{rows, index}});
}

Variable gather_columns(Tape& tape, const std::vector<Gathered>& parts) {
  require(!parts.empty(), "gather_columns: expected at least one part");
  const std::int64_t tokens = parts.front().index.size();
  std::int64_t width = 0;
  std::vector<std::int64_t> places;
  for (const Gathered& part : parts) {
    require(part.index.size() == tokens, "gather_columns: expected {} indices, found {}", tokens,
            part.index.size());
    places.push_back(width);
    width += part.rows.cols();
  }
  return gather_to(tape, parts, places, tokens, width);
}

Variable gather_blocks(Tape& tape, const std::vector<Gathered>& parts) {
  require(!parts.empty(), "gather_blocks: expected at least one part");
  const std::int64_t width = parts.front().rows.cols();
  std::int64_t tokens = 0;
  std::vector<std::int64_t> places;
  for (const Gathered& part : parts) {
    require(part.rows.cols() == width, "gather_blocks: expected rows of {}, found {}", width,
            part.rows.cols());
    places.push_back(tokens * width);
    tokens += part.index.size();
  }
  return gather_to(tape, parts, places, tokens, width);
}

}  // namespace hstu::ops
