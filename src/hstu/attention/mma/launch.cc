#include "hstu/attention/mma/launch.h"

#include "hstu/attention/cuda/launch_tensor_cores.h"
#include "hstu/attention/cuda/softmax_statistics.h"
#include "hstu/attention/mma/mma.h"

namespace hstu::cuda {
namespace {

// Keys of a tile of the first launch of the backward pass: dK and dV, or dV alone.
int mma_key_rows(int width) {
  return width == 256 ? sum_mma_rows(width) : key_gradient_mma_rows(width);
}

// All passes of a softmax have tiles of kBackwardTile rows, and the backward pass one schedule.
bool is_softmax(const AttentionProblem& p) {
  return p.score == ScoreFunction::softmax;
}

MmaArguments mma_arguments(const AttentionProblem& p, int rows, void* workspace, cudaStream_t stream) {
  const Schedule schedule = schedule_at(workspace);
  make_schedule(p, rows, forward_order(1), schedule, nullptr, 0, stream);
  return {.samples = samples_of(p),
          .schedule = schedule,
          .sides = {},
          .half_alpha = score_factor_of(p),
          .head_dim = static_cast<int>(p.head_dim)};
}

SoftmaxMmaArguments softmax_arguments(const AttentionProblem& p, const MmaArguments& arguments,
                                      const MmaSide& side, const float* statistics) {
  SoftmaxMmaArguments all{arguments, exponent_of(p), hidden_keys_of(p), p.log_sums, statistics};
  all.sides[0] = side;
  return all;
}

void softmax_mma_backward(const AttentionProblem& p, const AttentionGradients& g, const MmaSide& keys,
                          const MmaSide& queries, void* workspace, cudaStream_t stream) {
  const MmaArguments arguments = mma_arguments(p, kBackwardTile, workspace, stream);
  auto* const statistics =
      reinterpret_cast<float*>(static_cast<char*>(workspace) + aligned(schedule_bytes(p, kBackwardTile)));
  make_softmax_statistics(p, g, arguments.schedule, statistics, stream);
  const std::int64_t items = schedule_items(p, kBackwardTile);
  with_softmax_kernel(p, [&]<typename T, int kD>() {
    launch_softmax_key_gradient_mma<T, kD>(softmax_arguments(p, arguments, keys, statistics), items, stream);
    launch_softmax_gradient_mma<T, kD>(softmax_arguments(p, arguments, queries, statistics), items, stream);
  });
}

}  // namespace

std::int64_t mma_forward_bytes(const AttentionProblem& p) {
  return aligned(schedule_bytes(p, is_softmax(p) ? kBackwardTile : sum_mma_rows(width_of(p))));
}

std::int64_t mma_backward_bytes(const AttentionProblem& p) {
  if (is_softmax(p)) return aligned(schedule_bytes(p, kBackwardTile)) + softmax_statistics_bytes(p);
  return aligned(schedule_bytes(p, mma_key_rows(width_of(p)))) +
         aligned(schedule_bytes(p, gradient_mma_rows(width_of(p), p.bias.any())));
}

void mma_forward(const AttentionProblem& p, const AttentionRows& o, const Bias* bias, void* workspace,
                 cudaStream_t stream) {
  const int rows = is_softmax(p) ? kBackwardTile : sum_mma_rows(width_of(p));
  MmaArguments arguments = mma_arguments(p, rows, workspace, stream);
  arguments.sides[0] = {.own = p.q,
                        .own_value = {},
                        .other = p.k,
                        .other_value = p.v,
                        .out = o,
                        .out_value = {},
                        .of_keys = false};
  if (is_softmax(p)) {
    return with_softmax_kernel(p, [&]<typename T, int kD>() {
      launch_softmax_sum_mma<T, kD>(softmax_arguments(p, arguments, arguments.sides[0], nullptr),
                                    schedule_items(p, rows), stream);
    });
  }
  with_kernel(p, [&]<typename T, int kD>() {
    with_bias<BiasedMmaArguments>(arguments, bias, [&](const auto& all) {
      launch_sum_mma<T, kD>(all, schedule_items(p, rows), stream);
    });
  });
}

void mma_backward(const AttentionProblem& p, const AttentionGradients& g, const Bias* bias, void* workspace,
                  cudaStream_t stream) {
  const MmaSide keys{.own = p.k,
                     .own_value = p.v,
                     .other = p.q,
                     .other_value = g.d_o,
                     .out = g.dk,
                     .out_value = g.dv,
                     .of_keys = true};
  const MmaSide queries{.own = p.q,
                        .own_value = g.d_o,
                        .other = p.k,
                        .other_value = p.v,
                        .out = g.dq,
                        .out_value = {},
                        .of_keys = false};
  if (is_softmax(p)) return softmax_mma_backward(p, g, keys, queries, workspace, stream);
  const int width = width_of(p), key_rows = mma_key_rows(width),
            rows = gradient_mma_rows(width, bias != nullptr);
  void* const second_workspace = static_cast<char*>(workspace) + aligned(schedule_bytes(p, key_rows));
  MmaArguments first = mma_arguments(p, key_rows, workspace, stream);
  MmaArguments second = rows == key_rows ? first : mma_arguments(p, rows, second_workspace, stream);
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD == 256) {
      first.sides[0] = {.own = p.k,
                        .own_value = {},
                        .other = p.q,
                        .other_value = g.d_o,
                        .out = g.dv,
                        .out_value = {},
                        .of_keys = true};
      second.sides[0] = keys, second.sides[1] = queries;
      with_bias<BiasedMmaArguments>(first, bias, [&](const auto& all) {
        launch_sum_mma<T, kD>(all, schedule_items(p, key_rows), stream);
      });
    } else {
      first.sides[0] = keys, second.sides[0] = queries;
      with_bias<BiasedMmaArguments>(first, bias, [&](const auto& all) {
        launch_key_gradient_mma<T, kD>(all, schedule_items(p, key_rows), stream);
      });
    }
    with_bias<BiasedMmaArguments>(second, bias, [&](const auto& all) {
      launch_gradient_mma<T, kD>(all, schedule_items(p, rows), stream);
    });
  });
}

}  // namespace hstu::cuda
