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
const Number* list_of(const Tensor& list) {
  return list.defined() ? list.data<Number>() : nullptr;
}

template <typename T>
AttentionProblem problem_of(const AttentionShape& shape, const Variable& q, const Variable& vk) {
  AttentionProblem p;
  p.type = std::is_same_v<T, float> ? AttentionType::fp32 : AttentionType::fp64;
  p.samples = shape.offsets.size() - 1;
  p.tokens = vk.rows(), p.queries = q.rows();
  p.heads = shape.heads, p.head_dim = shape.head_dim;
  p.q = queries_at(shape, q.value().data<T>());
  p.k = keys_at(shape, vk.value().data<T>());
  p.v = values_at(shape, vk.value().data<T>());
  p.offsets = shape.offsets.data<std::int64_t>();
  p.query_offsets = list_of<std::int64_t>(shape.query_offsets);
  p.contexts = list_of<std::int32_t>(shape.contexts), p.targets = list_of<std::int32_t>(shape.targets);
  p.mask = shape.mask;
  p.alpha = shape.alpha, p.scale = shape.scale;
  p.sample_scale = list_of<Accumulator<T>>(shape.sample_scale);
  return p;
}

void check_list(const char* name, const Tensor& list, std::int64_t count) {
  require(!list.defined() || list.size() == count, "attention: {}: expected {} numbers, found {}", name,
          count, list.size());
}

void check_shape(const AttentionShape& shape, const Variable& q, const Variable& vk) {
  require(shape.offsets.defined() && shape.offsets.size() > 0, "attention: expected offsets");
  const std::int64_t samples = shape.offsets.size() - 1, width = shape.heads * shape.head_dim;
  check_list("query_offsets", shape.query_offsets, samples + 1);
  check_list("sample_scale", shape.sample_scale, samples);
  check_list("contexts", shape.contexts, samples);
  check_list("targets", shape.targets, samples);
  require(
      q.cols() == width && vk.cols() == 2 * width && (shape.query_offsets.defined() || q.rows() == vk.rows()),
      "attention: shapes {} and {} do not fit {} heads of {}", to_string(q.value().shape()),
      to_string(vk.value().shape()), shape.heads, shape.head_dim);
}

}  // namespace

Variable attention(Tape& tape, const Variable& q, const Variable& vk, const AttentionShape& shape) {
  check_shape(shape, q, vk);
  const Context& context = tape.context();
  check_devices<Operation::attention>(context, q, vk, shape.offsets, shape.query_offsets, shape.sample_scale,
                                      shape.contexts, shape.targets);
  const DType type = q.value().dtype();
  Tensor o = Tensor::empty({q.rows(), q.cols()}, type, context);
  dispatch<Operation::attention>(context, type, [&]<typename T>(HostStream) {
    attention_forward(problem_of<T>(shape, q, vk), kHost, queries_at(shape, o.mutable_data<T>()));
  });
  return tape.record(o, {q, vk}, [=](const Tensor& d_o) {
    dispatch<Operation::attention>(context, type, [&]<typename T>(HostStream) {
      GradientSlot dq = q.gradient_slot(context), dvk = vk.gradient_slot(context);
      attention_backward(problem_of<T>(shape, q, vk), kHost,
                         {.d_o = queries_at(shape, d_o.data<T>()),
                          .dq = queries_at(shape, dq.tensor.mutable_data<T>()),
                          .dk = keys_at(shape, dvk.tensor.mutable_data<T>()),
                          .dv = values_at(shape, dvk.tensor.mutable_data<T>()),
                          .accumulate_dq = dq.accumulate,
                          .accumulate_dkv = dvk.accumulate});
    });
  });
}

}  // namespace hstu::ops
