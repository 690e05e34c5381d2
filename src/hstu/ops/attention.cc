#include "hstu/ops/attention.h"

#include <type_traits>

#include "hstu/attention/attention.h"
#include "hstu/attention/attention_cuda.h"
#include "hstu/kernels/elementwise.h"
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
constexpr AttentionType type_of() {
  if constexpr (std::is_same_v<T, BFloat16>) return AttentionType::bf16;
  return std::is_same_v<T, float> ? AttentionType::fp32 : AttentionType::fp64;
}

template <typename T>
AttentionProblem problem_of(const AttentionShape& shape, const Variable& q, const Variable& vk) {
  AttentionProblem p;
  p.type = type_of<T>();
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

template <typename DeviceStream>
void forward(const AttentionProblem& p, const AttentionRows& o, DeviceStream stream) {
  if constexpr (std::is_same_v<DeviceStream, HostStream>) {
    attention_forward(p, kHost, o);
  } else {
    const AttentionDevice device = cuda::attention_device();
    const std::int64_t bytes = cuda::attention_workspace(p, choose_attention(p, device)).forward;
    const Buffer scratch = stream.memory->allocate(bytes);
    attention_forward(p, device, o, {scratch.data(), bytes}, stream.handle);
  }
}

template <typename DeviceStream>
void backward(const AttentionProblem& p, const AttentionGradients& gradients, DeviceStream stream) {
  if constexpr (std::is_same_v<DeviceStream, HostStream>) {
    attention_backward(p, kHost, gradients);
  } else {
    const AttentionDevice device = cuda::attention_device();
    const std::int64_t bytes = cuda::attention_workspace(p, choose_attention(p, device)).backward;
    const Buffer scratch = stream.memory->allocate(bytes);
    attention_backward(p, device, gradients, {scratch.data(), bytes}, stream.handle);
  }
}

// Where a backward kernel writes a gradient: its slot or, because the kernels for tensor cores do not add to
// what their outputs hold, memory that is added to the slot afterwards.
template <typename T>
class Written {
 public:
  Written(const Variable& variable, const Context& context)
      : context_(context), slot_(variable.gradient_slot(context)), tensor_(slot_.tensor) {
    if (adds_afterwards()) tensor_ = Tensor::empty(slot_.tensor.shape(), slot_.tensor.dtype(), context);
  }
  T* data() { return tensor_.template mutable_data<T>(); }
  bool accumulate() const { return slot_.accumulate && !adds_afterwards(); }
  template <typename DeviceStream>
  void finish(DeviceStream stream) {
    if (!adds_afterwards()) return;
    kernels::pass_gradient(
        kernels::PassGradient<T>{
            .size = tensor_.size(), .dy = data(), .dx = {slot_.tensor.template mutable_data<T>(), true}},
        stream);
  }

 private:
  bool adds_afterwards() const { return slot_.accumulate && !context_.device().is_host(); }

  const Context& context_;
  GradientSlot slot_;
  Tensor tensor_;
};

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
  dispatch<Operation::attention>(context, type, [&]<typename T>(auto stream) {
    forward(problem_of<T>(shape, q, vk), queries_at(shape, o.mutable_data<T>()), stream);
  });
  return tape.record(o, {q, vk}, [=](const Tensor& d_o) {
    dispatch<Operation::attention>(context, type, [&]<typename T>(auto stream) {
      Written<T> dq(q, context), dvk(vk, context);
      backward(problem_of<T>(shape, q, vk),
               {.d_o = queries_at(shape, d_o.data<T>()),
                .dq = queries_at(shape, dq.data()),
                .dk = keys_at(shape, dvk.data()),
                .dv = values_at(shape, dvk.data()),
                .accumulate_dq = dq.accumulate(),
                .accumulate_dkv = dvk.accumulate()},
               stream);
      dq.finish(stream);
      dvk.finish(stream);
    });
  });
}

}  // namespace hstu::ops
