#include "hstu/ops/beam_step.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/device/built_with_cuda.h"
#include "hstu/kernels/beam_step.h"

namespace hstu::ops {

Beams first_beams(std::int64_t users, const Context& context) {
  return {.width = 1,
          .score = Tensor::zeros({users}, DType::f32, context),
          .node = Tensor::zeros({users}, DType::i32, context),
          .code = {},
          .ancestors = {}};
}

Beams beam_step(const TrieLevel& trie, const Beams& beams, std::int64_t level, const Tensor& logits,
                std::int64_t width, const Context& context) {
  require(width >= 1, "beam search: expected a width of at least 1");
  const std::int64_t users = beams.node.size() / beams.width;
  require(logits.rows() == beams.node.size(), "beam search: {} rows of logits for {} beams", logits.rows(),
          beams.node.size());
  const TraceRange range(context, "beam_step");
  const Shape shape{users * width};
  Beams next{.width = width,
             .score = Tensor::empty(shape, DType::f32, context),
             .node = Tensor::empty(shape, DType::i32, context),
             .code = Tensor::empty(shape, DType::i32, context),
             .ancestors = {}};
  if (level > 0) next.ancestors = Tensor::empty({users * width, level}, DType::i32, context);
  if (context.memory->dry() != nullptr) return next;
  const kernels::BeamStep p{
      .users = users,
      .before = beams.width,
      .width = width,
      .codes = logits.cols(),
      .logits = logits.data<float>(),
      .score = beams.score.data<float>(),
      .node = beams.node.data<std::int32_t>(),
      .first_child = trie.first_child.data<std::int32_t>(),
      .code = trie.code.data<std::int32_t>(),
      .steps = std::max<std::int64_t>(0, level - 1),
      .ancestors = beams.ancestors.defined() ? beams.ancestors.data<std::int32_t>() : nullptr,
      .next_score = next.score.mutable_data<float>(),
      .next_node = next.node.mutable_data<std::int32_t>(),
      .next_code = next.code.mutable_data<std::int32_t>(),
      .first_row = trie.first_row,
      .next_ancestors = level > 0 ? next.ancestors.mutable_data<std::int32_t>() : nullptr};
  if (context.device().is_host())
    kernels::beam_step(p, HostStream());
  else if constexpr (kBuiltWithCuda)
    kernels::beam_step(p, context.cuda());
  return next;
}

}  // namespace hstu::ops
