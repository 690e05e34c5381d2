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
  const Context& context = tape.context();
  check_devices<Operation::attention>(context, q, vk);
  const DType type = q.value().dtype();
  Tensor o = Tensor::empty({q.rows(), q.cols()}, type, context);
  dispatch<Operation::attention>(context, type, [&]<typename T>(HostStream) {
    with_problem<T>(*shape, q, vk,
                    [&](const auto& problem) { kernels::attention(problem, o.mutable_data<T>()); });
  });
  return tape.record(o, {q, vk}, [=](const Tensor& d_o) {
    dispatch<Operation::attention>(context, type, [&]<typename T>(HostStream) {
      GradientSlot dq = q.gradient_slot(context), dvk = vk.gradient_slot(context);
      with_problem<T>(*shape, q, vk, [&](const auto& problem) {
        kernels::attention_backward(problem, d_o.data<T>(), T(dq.accumulate), dq.tensor.mutable_data<T>(),
                                    T(dvk.accumulate), dvk.tensor.mutable_data<T>());
      });
    });
  });
}

}  // namespace hstu::ops
