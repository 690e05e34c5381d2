#include "hstu/ops/attention.h"

#include <utility>

#include "hstu/kernels/attention.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// Calls body with the kernel's view of the problem.
template <typename T, typename Body>
void with_problem(const AttentionShape& shape, const Variable& q, const Variable& vk, const Body& body) {
  const std::vector<T> scale(shape.scale.begin(), shape.scale.end());
  const T* const v = vk.value().data<T>();
  body(kernels::AttentionProblem<T>{static_cast<std::int64_t>(scale.size()), shape.heads, shape.head_dim,
                                    shape.offsets.data(), shape.query_offsets.data(),
                                    static_cast<T>(shape.alpha), scale.data(), q.value().data<T>(), v,
                                    v + shape.heads * shape.head_dim});
}

void check_shape(const AttentionShape& shape, const Variable& q, const Variable& vk) {
  const std::size_t samples = shape.scale.size();
  const std::int64_t width = shape.heads * shape.head_dim;
  require(shape.offsets.size() == samples + 1 && shape.query_offsets.size() == samples + 1,
          "attention: expected {} offsets, found {} and {}", samples + 1, shape.offsets.size(),
          shape.query_offsets.size());
  require(q.rows() == shape.query_offsets.back() && q.cols() == width && vk.rows() == shape.offsets.back() &&
              vk.cols() == 2 * width,
          "attention: shapes {} and {} do not fit {} heads of {}", to_string(q.value().shape()),
          to_string(vk.value().shape()), shape.heads, shape.head_dim);
  for (std::size_t b = 0; b < samples; ++b) {
    const std::int64_t queries = shape.query_offsets[b + 1] - shape.query_offsets[b];
    require(0 <= queries && queries <= shape.offsets[b + 1] - shape.offsets[b],
            "attention: sample {} has {} queries for {} tokens", b, queries,
            shape.offsets[b + 1] - shape.offsets[b]);
  }
}

}  // namespace

Variable attention(Tape& tape, const Variable& q, const Variable& vk,
                   std::shared_ptr<const AttentionShape> shape) {
  check_shape(*shape, q, vk);
  Tensor o = Tensor::empty({q.rows(), q.cols()}, q.value().dtype());
  dispatch(o.dtype(), [&]<typename T>() {
    with_problem<T>(*shape, q, vk,
                    [&](const auto& problem) { kernels::attention(problem, o.mutable_data<T>()); });
  });
  return tape.record(o, {q, vk}, [q, vk, shape = std::move(shape)](Tensor& d_o) {
    dispatch(d_o.dtype(), [&]<typename T>() {
      GradientSlot dq = q.gradient_slot(), dvk = vk.gradient_slot();
      with_problem<T>(*shape, q, vk, [&](const auto& problem) {
        kernels::attention_backward(problem, d_o.data<T>(), dq.beta<T>(), dq.data<T>(), dvk.beta<T>(),
                                    dvk.data<T>());
      });
    });
  });
}

}  // namespace hstu::ops
