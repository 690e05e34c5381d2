#include "hstu/ops/beam_attention.h"

#include "hstu/attention/beams.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

template <typename T>
constexpr AttentionType type_of_beams() {
  if constexpr (std::is_same_v<T, BFloat16>) return AttentionType::bf16;
  return std::is_same_v<T, float> ? AttentionType::fp32 : AttentionType::fp64;
}

template <typename T>
BeamAttention problem_of(const Columns& q, const Columns& k, const Columns& v, const BeamShape& shape) {
  const auto rows_of = [&](const Columns& x) {
    return AttentionInput{x.data<T>(), x.stride(), shape.head_dim};
  };
  BeamAttention p{.type = type_of_beams<T>(),
                  .users = shape.offsets.size() - 1,
                  .beams = shape.beams,
                  .heads = shape.heads,
                  .head_dim = shape.head_dim,
                  .alpha = shape.alpha,
                  .q = rows_of(q),
                  .k = rows_of(k),
                  .v = rows_of(v),
                  .tokens = k.rows(),
                  .offsets = shape.offsets.data<std::int64_t>(),
                  .codes = std::ssize(shape.codes),
                  .ancestors = shape.ancestors.defined() ? shape.ancestors.data<std::int32_t>() : nullptr,
                  .code = {}};
  for (std::size_t c = 0; c < shape.codes.size(); ++c)
    p.code[c] = {rows_of(shape.codes[c].k), rows_of(shape.codes[c].v)};
  return p;
}

}  // namespace

Variable beam_attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                        const BeamShape& shape) {
  const std::int64_t users = shape.offsets.size() - 1, width = shape.heads * shape.head_dim,
                     codes = std::ssize(shape.codes);
  require(!tape.recording(), "attention of beams has no backward pass");
  require(0 <= codes && codes <= BeamAttention::kMostCodes, "attention of beams: {} codes", codes);
  require(q.rows() == users * shape.beams && q.width() == width && k.width() == width && v.width() == width,
          "attention of beams: {} x {} and {} x {} do not fit {} beams of {} users, {} heads of {}", q.rows(),
          q.width(), k.rows(), k.width(), shape.beams, users, shape.heads, shape.head_dim);
  require(codes <= 1 || shape.ancestors.size() == q.rows() * (codes - 1),
          "attention of beams: expected ancestors of {} codes", codes - 1);
  const Context& context = tape.context();
  check_devices<Operation::attention>(context, q.variable, k.variable, v.variable, shape.offsets,
                                      shape.ancestors);
  const DType type = q.variable.value().dtype();
  Tensor o = Tensor::empty({q.rows(), width}, type, context);
  dispatch<Operation::attention>(context, type, [&]<typename T>(auto stream) {
    BeamAttention p = problem_of<T>(q, k, v, shape);
    p.row_stable = context.row_stable;
    const AttentionRows rows{o.mutable_data<T>(), width, shape.head_dim};
    if constexpr (std::is_same_v<decltype(stream), HostStream>)
      hstu::beam_attention(p, rows);
    else if constexpr (std::is_same_v<decltype(stream), CudaStream>)
      cuda::beam_attention(p, rows, stream.handle);
  });
  return Variable::constant(o);
}

}  // namespace hstu::ops
