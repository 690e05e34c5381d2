#include "hstu/ops/attention.h"

#include <type_traits>

#include "hstu/attention/attention.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// Rows of `columns` elements from column `first` on: AttentionInput of a const T, AttentionRows of a T.
template <typename T>
auto rows_at(const AttentionShape& shape, T* data, std::int64_t first, std::int64_t columns) {
  using Rows = std::conditional_t<std::is_const_v<T>, AttentionInput, AttentionRows>;
  return Rows{data == nullptr ? nullptr : data + first, columns, shape.head_dim};
}
template <typename T>
auto queries_at(const AttentionShape& shape, T* q) {
  return rows_at(shape, q, 0, shape.heads * shape.head_dim);
}
// A row has the values, then the keys.
template <typename T>
auto values_at(const AttentionShape& shape, T* vk) {
  return rows_at(shape, vk, 0, 2 * shape.heads * shape.head_dim);
}
template <typename T>
auto keys_at(const AttentionShape& shape, T* vk) {
  return rows_at(shape, vk, shape.heads * shape.head_dim, 2 * shape.heads * shape.head_dim);
}

template <typename Number>
const Number* list_of(const std::vector<Number>& list) {
  return list.empty() ? nullptr : list.data();
}

// The description of the attention of q and vk in host memory. It refers to `shape` and to `scale`.
template <typename T>
AttentionProblem problem_of(const AttentionShape& shape, const Variable& q, const Variable& vk,
                            const std::vector<T>& scale) {
  AttentionProblem p;
  p.type = std::is_same_v<T, float> ? AttentionType::fp32 : AttentionType::fp64;
  p.samples = static_cast<std::int64_t>(scale.size());
  p.tokens = vk.rows(), p.queries = q.rows();
  p.heads = shape.heads, p.head_dim = shape.head_dim;
  p.q = queries_at(shape, q.value().data<T>());
  p.k = keys_at(shape, vk.value().data<T>());
  p.v = values_at(shape, vk.value().data<T>());
  p.offsets = shape.offsets.data(), p.query_offsets = shape.query_offsets.data();
  p.contexts = list_of(shape.contexts), p.targets = list_of(shape.targets);
  p.mask = shape.mask;
  p.alpha = shape.alpha, p.sample_scale = scale.data();
  return p;
}

template <typename T>
std::vector<T> scale_of(const AttentionShape& shape) {
  return {shape.scale.begin(), shape.scale.end()};
}

void check_shape(const AttentionShape& shape, const Variable& q, const Variable& vk) {
  const std::size_t samples = shape.scale.size();
  const std::int64_t width = shape.heads * shape.head_dim;
  require(shape.offsets.size() == samples + 1 && shape.query_offsets.size() == samples + 1,
          "attention: expected {} offsets, found {} and {}", samples + 1, shape.offsets.size(),
          shape.query_offsets.size());
  require((shape.contexts.empty() || shape.contexts.size() == samples) &&
              (shape.targets.empty() || shape.targets.size() == samples),
          "attention: expected {} contexts and targets, found {} and {}", samples, shape.contexts.size(),
          shape.targets.size());
  require(q.rows() == shape.query_offsets.back() && q.cols() == width && vk.rows() == shape.offsets.back() &&
              vk.cols() == 2 * width,
          "attention: shapes {} and {} do not fit {} heads of {}", to_string(q.value().shape()),
          to_string(vk.value().shape()), shape.heads, shape.head_dim);
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
    const std::vector<T> scale = scale_of<T>(*shape);
    attention_forward(problem_of(*shape, q, vk, scale), kHost, queries_at(*shape, o.mutable_data<T>()));
  });
  return tape.record(o, {q, vk}, [=](const Tensor& d_o) {
    dispatch<Operation::attention>(context, type, [&]<typename T>(HostStream) {
      GradientSlot dq = q.gradient_slot(context), dvk = vk.gradient_slot(context);
      const std::vector<T> scale = scale_of<T>(*shape);
      attention_backward(problem_of(*shape, q, vk, scale), kHost,
                         {.d_o = queries_at(*shape, d_o.data<T>()),
                          .dq = queries_at(*shape, dq.tensor.mutable_data<T>()),
                          .dk = keys_at(*shape, dvk.tensor.mutable_data<T>()),
                          .dv = values_at(*shape, dvk.tensor.mutable_data<T>()),
                          .accumulate_dq = dq.accumulate,
                          .accumulate_dkv = dvk.accumulate});
    });
  });
}

}  // namespace hstu::ops
