#include "hstu/ops/gather_sum.h"

#include "hstu/kernels/gather_sum.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable gather_sum(Tape& tape, const std::vector<GatherTerm>& terms, const kernels::Dropout& dropout) {
  require(!terms.empty(), "gather_sum: expected at least one term");
  const auto tokens = static_cast<std::int64_t>(terms.front().index->size());
  const std::int64_t width = terms.front().rows.cols();
  std::vector<Variable> inputs;
  for (const GatherTerm& term : terms) {
    require(term.rows.cols() == width && static_cast<std::int64_t>(term.index->size()) == tokens,
            "gather_sum: expected {} indices into rows of {}, found {} into {}", tokens, width,
            term.index->size(), to_string(term.rows.value().shape()));
    for (const std::int32_t row : *term.index) {
      require(row < term.rows.rows(), "gather_sum: row {} of {}", row, term.rows.rows());
    }
    inputs.push_back(term.rows);
  }
  Tensor y = Tensor::empty({tokens, width}, terms.front().rows.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    std::vector<kernels::GatherSource<T>> sources;
    for (const GatherTerm& term : terms) {
      sources.push_back({term.rows.value().data<T>(), term.index->data(), static_cast<T>(term.factor)});
    }
    kernels::gather_sum(sources, tokens, width, dropout, y.mutable_data<T>());
  });
  return tape.record(y, inputs, [terms, tokens, width, dropout](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      if (dropout.rate > 0)
        kernels::apply_dropout(dy.data<T>(), tokens, width, dropout, dy.mutable_data<T>());
      for (const GatherTerm& term : terms) {
        if (!term.rows.needs_gradient()) continue;
        kernels::scatter_add(dy.data<T>(), term.index->data(), tokens, width, static_cast<T>(term.factor),
                             term.rows.rows(), added_gradient(term.rows).mutable_data<T>());
      }
    });
  });
}

Variable gather_rows(Tape& tape, const Variable& rows, const RowIndex& index) {
  return gather_sum(tape, {{rows, index, 1}}, {});
}

}  // namespace hstu::ops
