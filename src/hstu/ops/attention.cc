#include "hstu/ops/attention.h"

#include <utility>
#include <vector>

#include "hstu/attention/attention.h"
#include "hstu/attention/attention_cuda.h"
#include "hstu/kernels/activation.h"
#include "hstu/kernels/copy_rows.h"
#include "hstu/kernels/elementwise.h"
#include "hstu/ops/divided_attention.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

AttentionInput rows_of(const AttentionShape& shape, const void* data, std::int64_t stride) {
  return {data, stride, shape.head_dim};
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

template <typename Number>
RelativeBias bias_of(const AttentionBias& bias) {
  RelativeBias b;
  const auto take = [&](const Variable& table, const void*& data) {
    if (!table.defined()) return;
    data = table.value().data<Number>();
    b.tables = table.rows();
  };
  take(bias.position_table, b.position_table);
  take(bias.time_table, b.time_table);
  if (bias.position_table.defined()) b.positions = (bias.position_table.cols() + 1) / 2;
  if (bias.time_table.defined()) b.buckets = bias.time_table.cols() - 1;
  b.thresholds = list_of<std::int64_t>(bias.thresholds);
  b.query_time = list_of<std::int64_t>(bias.query_time), b.key_time = list_of<std::int64_t>(bias.key_time);
  return b;
}

template <typename T>
CachedKeys past_of(const AttentionShape& shape) {
  const AttentionPast& past = shape.past;
  if (!past.k.defined()) return {};
  return {.k = past.k.data<T>(),
          .v = past.v.data<T>(),
          .row_stride = shape.heads * shape.head_dim,
          .head_stride = shape.head_dim,
          .page_tokens = past.page_tokens,
          .pasts = past.lengths.size(),
          .pages = past.pages.data<std::int32_t>(),
          .page_offsets = past.page_offsets.data<std::int64_t>(),
          .lengths = past.lengths.data<std::int64_t>(),
          .past_of = past.past_of.data<std::int32_t>(),
          .time = list_of<std::int64_t>(past.time)};
}

template <typename T>
AttentionProblem problem_of(const AttentionShape& shape, const Columns& q, const Columns& k, const Columns& v,
                            const Context& context) {
  AttentionProblem p;
  p.deterministic = context.deterministic, p.row_stable = context.row_stable;
  p.kernels = context.attention;
  p.type = type_of<T>();
  p.samples = shape.offsets.size() - 1;
  p.tokens = k.rows(), p.queries = q.rows();
  p.heads = shape.heads, p.head_dim = shape.head_dim;
  p.q = rows_of(shape, q.data<T>(), q.stride());
  p.k = rows_of(shape, k.data<T>(), k.stride());
  p.v = rows_of(shape, v.data<T>(), v.stride());
  p.offsets = shape.offsets.data<std::int64_t>();
  p.query_offsets = list_of<std::int64_t>(shape.query_offsets);
  p.query_first = list_of<std::int32_t>(shape.query_first);
  p.contexts = list_of<std::int32_t>(shape.contexts), p.targets = list_of<std::int32_t>(shape.targets);
  p.mask = shape.mask;
  p.alpha = shape.alpha, p.scale = shape.scale;
  p.sample_scale = list_of<Accumulator<T>>(shape.sample_scale);
  p.score = shape.score;
  p.bias = bias_of<Accumulator<T>>(shape.bias);
  p.past = past_of<T>(shape);
  p.dropout = shape.dropout.of_rows(q.rows());
  return p;
}

// Whether the backward pass of the problem reads what the forward pass then keeps: o and the log_sums.
bool keeps_log_sums(AttentionProblem p, const AttentionDevice& device) {
  if (device.is_host() || p.score != ScoreFunction::softmax) return false;
  float any = 0;
  p.log_sums = &any;  // asked for, not read
  return choose_attention(p, device).backward != AttentionKernel::softmax;
}
template <typename DeviceStream>
bool keeps_log_sums(const AttentionProblem& p, const DeviceStream& stream) {
  if constexpr (std::is_same_v<DeviceStream, HostStream>)
    return false;
  else if constexpr (std::is_same_v<DeviceStream, DryStream>)
    return keeps_log_sums(
        p, AttentionDevice{stream.device.major, stream.device.minor, stream.device.multiprocessors});
  else
    return keeps_log_sums(p, cuda::attention_device());
}

// Bytes of the scratch memory on a GPU.
cuda::AttentionWorkspace workspace(const AttentionProblem& p, const AttentionDevice& device) {
  return cuda::attention_workspace(p, choose_attention(p, device));
}
cuda::AttentionWorkspace workspace(const AttentionProblem& p, const DryDevice& device) {
  if (device.is_host()) return {};
  return workspace(p, AttentionDevice{device.major, device.minor, device.multiprocessors});
}

template <typename DeviceStream>
void forward(const AttentionProblem& p, const AttentionRows& o, DeviceStream stream) {
  if constexpr (std::is_same_v<DeviceStream, HostStream>) {
    attention_forward(p, kHost, o);
  } else if constexpr (std::is_same_v<DeviceStream, DryStream>) {
    kernels::dry::take(stream, workspace(p, stream.device).forward);
  } else {
    const AttentionDevice device = cuda::attention_device();
    const std::int64_t bytes = workspace(p, device).forward;
    const Buffer scratch = stream.memory->allocate(bytes);
    attention_forward(p, device, o, {scratch.data(), bytes}, stream.handle);
  }
}

// Returns whether the gradients are already those before SiLU, where `gradients` asks for them.
template <typename DeviceStream>
bool backward(const AttentionProblem& p, AttentionGradients gradients, DeviceStream stream) {
  AttentionDevice device = kHost;
  if constexpr (std::is_same_v<DeviceStream, CudaStream>) device = cuda::attention_device();
  if constexpr (std::is_same_v<DeviceStream, DryStream>) {
    kernels::dry::take(stream, workspace(p, stream.device).backward);
    return true;
  } else {
    const bool sloped = multiplies_slope(choose_attention(p, device).backward);
    if (!sloped) gradients.q_before = gradients.k_before = gradients.v_before = nullptr;
    if constexpr (std::is_same_v<DeviceStream, HostStream>) {
      attention_backward(p, device, gradients);
    } else {
      const std::int64_t bytes = workspace(p, device).backward;
      const Buffer scratch = stream.memory->allocate(bytes);
      attention_backward(p, device, gradients, {scratch.data(), bytes}, stream.handle);
    }
    return sloped;
  }
}

// Where a backward kernel writes a gradient: its slot or, because the kernels for GPUs do not add to what
// their outputs hold, memory that is added to the slot afterwards.
template <typename T>
class Written {
 public:
  Written(const Columns& x, const Context& context)
      : x_(x), slot_(gradient_of<T>(x, context)), size_(x.rows() * x.width()), stride_(x.variable.cols()) {
    require(!x.activated.defined() || !slot_.accumulate,
            "attention: columns through SiLU are an operand twice");
    if (context.device().is_host() || !slot_.accumulate) return;
    require(x.width() == stride_, "attention: columns [{}, {}) are an operand twice", x.range.begin,
            x.range.end);
    apart_ = Tensor::empty({x.rows(), x.width()}, x.variable.value().dtype(), context);
  }
  AttentionRows rows(const AttentionShape& shape) {
    return {apart_.defined() ? apart_.mutable_data<T>() : slot_.to, stride_, shape.head_dim};
  }
  bool accumulate() const { return slot_.accumulate && !apart_.defined(); }
  const T* before_silu() const { return x_.activated.defined() ? x_.template before<T>() : nullptr; }
  // sloped: the kernel has multiplied by the slope of SiLU where the operand is SiLU of its columns.
  template <typename DeviceStream>
  void finish(bool sloped, DeviceStream stream) {
    if (x_.activated.defined() && !sloped && slot_.to != nullptr)
      kernels::silu_slope(
          kernels::SiluSlope<T>{x_.rows(), x_.width(), stride_, x_.template before<T>(), slot_.to}, stream);
    if (!apart_.defined()) return;
    kernels::pass_gradient(kernels::PassGradient<T>{.size = size_, .dy = apart_.data<T>(), .dx = slot_},
                           stream);
  }

 private:
  const Columns& x_;
  kernels::Gradient<T> slot_;
  std::int64_t size_, stride_;
  Tensor apart_;
};

// The gradient of a bias table, to which the backward pass adds; null: it has none.
template <typename Number>
void* gradient_of_table(const Variable& table, const Context& context) {
  if (!table.defined()) return nullptr;
  const kernels::Gradient<Number> slot = gradient_of<Number>(table, context);
  const bool dry = context.memory->dry() != nullptr;
  if (slot.to != nullptr && !slot.accumulate && !dry)
    set_zero(slot.to, static_cast<std::size_t>(table.value().size()) * sizeof(Number), context.stream);
  return slot.to;
}

void check_list(const char* name, const Tensor& list, std::int64_t count) {
  require(!list.defined() || list.size() == count, "attention: {}: expected {} numbers, found {}", name,
          count, list.size());
}

void check_shape(const AttentionShape& shape, const Columns& q, const Columns& k, const Columns& v) {
  require(shape.offsets.defined() && shape.offsets.size() > 0, "attention: expected offsets");
  const std::int64_t samples = shape.offsets.size() - 1, width = shape.heads * shape.head_dim;
  check_list("query_offsets", shape.query_offsets, samples + 1);
  check_list("query_first", shape.query_first, samples);
  check_list("sample_scale", shape.sample_scale, samples);
  check_list("contexts", shape.contexts, samples);
  check_list("targets", shape.targets, samples);
  const AttentionBias& bias = shape.bias;
  require(!bias.position_table.defined() || !bias.time_table.defined() ||
              bias.position_table.rows() == bias.time_table.rows(),
          "attention: both bias tables have rows for one head or for all");
  if (bias.position_table.defined())
    require(bias.position_table.cols() % 2 == 1,
            "attention: a position table has an odd number of columns, found {}", bias.position_table.cols());
  if (bias.time_table.defined()) {
    require(bias.query_time.defined() && bias.key_time.defined(), "attention: a time table needs times");
    check_list("thresholds", bias.thresholds, bias.time_table.cols() - 1);
    check_list("query_time", bias.query_time, q.rows());
    check_list("key_time", bias.key_time, k.rows());
  }
  check_list("past_of", shape.past.past_of, samples);
  require(q.width() == width && k.width() == width && v.width() == width && k.rows() == v.rows() &&
              (shape.query_offsets.defined() || q.rows() == k.rows()),
          "attention: {} x {}, {} x {} and {} x {} do not fit {} heads of {}", q.rows(), q.width(), k.rows(),
          k.width(), v.rows(), v.width(), shape.heads, shape.head_dim);
}

template <typename T, typename DeviceStream>
void keep(const Columns& x, const AttentionKept& kept, Tensor to, DeviceStream stream) {
  kernels::copy_rows(kernels::CopyRows<T>{.rows = kept.tokens.size(),
                                          .width = x.width(),
                                          .x = x.data<T>(),
                                          .x_stride = x.stride(),
                                          .from = kept.tokens.data<std::int32_t>(),
                                          .to = kept.slots.data<std::int64_t>(),
                                          .y = to.mutable_data<T>()},
                     stream);
}

template <typename DeviceStream>
void keep_times(const Tensor& time, const AttentionKept& kept, Tensor to, DeviceStream stream) {
  kernels::copy_rows(kernels::CopyRows<std::int64_t>{.rows = kept.tokens.size(),
                                                     .width = 1,
                                                     .x = time.data<std::int64_t>(),
                                                     .x_stride = 1,
                                                     .from = kept.tokens.data<std::int32_t>(),
                                                     .to = kept.slots.data<std::int64_t>(),
                                                     .y = to.mutable_data<std::int64_t>()},
                     stream);
}

}  // namespace

Variable attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                   const AttentionShape& shape) {
  if (shape.division != nullptr) return divided_attention(tape, q, k, v, shape);
  check_shape(shape, q, k, v);
  const Context& context = tape.context();
  check_devices<Operation::attention>(context, q.variable, k.variable, v.variable, shape.offsets,
                                      shape.query_offsets, shape.query_first, shape.sample_scale,
                                      shape.contexts, shape.targets, shape.past.k, shape.past.pages,
                                      shape.past.past_of, shape.kept.k, shape.kept.tokens);
  const DType type = q.variable.value().dtype();
  Tensor o = Tensor::empty({q.rows(), q.width()}, type, context);
  Tensor log_sums;
  // The FLOPs depend on which pairs the mask lets through.
  const auto tell_sizes = [context, samples = shape.offsets.size() - 1, queries = q.rows(), keys = k.rows(),
                           heads = shape.heads, head_dim = shape.head_dim] {
    tell_work(context, {samples, queries, keys, heads, head_dim}, 0);
  };
  dispatch<Operation::attention>(context, type, [&]<typename T>(auto stream) {
    tell_sizes();
    AttentionProblem p = problem_of<T>(shape, q, k, v, context);
    if (keeps_log_sums(p, stream)) {
      log_sums = Tensor::empty({q.rows(), shape.heads}, DType::f32, context);
      p.log_sums = log_sums.template mutable_data<float>();
    }
    forward(p, {o.mutable_data<T>(), q.width(), shape.head_dim}, stream);
    if (!shape.kept.tokens.defined()) return;
    keep<T>(k, shape.kept, shape.kept.k, stream);
    keep<T>(v, shape.kept, shape.kept.v, stream);
    if (shape.kept.time.defined() && shape.bias.key_time.defined())
      keep_times(shape.bias.key_time, shape.kept, shape.kept.time, stream);
  });
  auto differentiate = [=, kept_o = log_sums.defined() ? o : Tensor()](const Tensor& d_o) mutable {
    dispatch<Operation::attention>(context, type, [&]<typename T>(auto stream) {
      tell_sizes();
      Written<T> dq(q, context), dk(k, context), dv(v, context);
      require(dk.accumulate() == dv.accumulate(), "attention: keys and values are used unequally often");
      AttentionProblem p = problem_of<T>(shape, q, k, v, context);
      AttentionInput of_forward;
      if (log_sums.defined()) {
        p.log_sums = log_sums.template mutable_data<float>();
        of_forward = rows_of(shape, kept_o.template data<T>(), q.width());
      }
      const bool sloped =
          backward(p,
                   {.d_o = rows_of(shape, d_o.data<T>(), q.width()),
                    .o = of_forward,
                    .dq = dq.rows(shape),
                    .dk = dk.rows(shape),
                    .dv = dv.rows(shape),
                    .accumulate_dq = dq.accumulate(),
                    .accumulate_dkv = dk.accumulate(),
                    .d_position_table = gradient_of_table<Accumulator<T>>(shape.bias.position_table, context),
                    .d_time_table = gradient_of_table<Accumulator<T>>(shape.bias.time_table, context),
                    .q_before = dq.before_silu(),
                    .k_before = dk.before_silu(),
                    .v_before = dv.before_silu()},
                   stream);
      dq.finish(sloped, stream);
      dk.finish(sloped, stream);
      dv.finish(sloped, stream);
    });
  };
  // Backward: the gradients too and, to multiply by the slope, the columns before SiLU.
  const auto value_bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t queries = q.rows() * q.width() * value_bytes,
                     operands = queries + 2 * k.rows() * k.width() * value_bytes;
  return tape.record(o,
                     {q.variable, k.variable, v.variable, shape.bias.position_table, shape.bias.time_table},
                     std::move(differentiate),
                     MovedBytes{operands + queries, queries + (q.activated.defined() ? 3 : 2) * operands});
}

}  // namespace hstu::ops
