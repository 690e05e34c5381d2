#include "hstu/attention/hopper/launch.h"

#include "hstu/attention/cuda/launch_tensor_cores.h"
#include "hstu/attention/cuda/row_map.h"
#include "hstu/attention/cuda/softmax_statistics.h"
#include "hstu/attention/hopper/backward.h"
#include "hstu/attention/hopper/forward.h"

namespace hstu::cuda {
namespace {

// Twice as many as an H200 computes at once. At head size 256 two multiprocessors share a tile, and groups
// are smaller: tiles of one head that begin together wait for each other's turns.
TileOrder backward_order(int width) {
  return width == 256 ? TileOrder{false, 34, 66} : TileOrder{false, 256, 256};
}

// What the blocks of the backward pass share for dQ: fp32 sums, and the number of tiles that have added to
// each 64 rows of them (at head size 256 for each half of the columns). A head of one tile shares nothing.
std::int64_t sum_bytes(const AttentionProblem& p) {
  return 4 * shared_tiles(p, kBackwardTile) * kBackwardTile * width_of(p);
}
std::int64_t turn_bytes(const AttentionProblem& p) {
  return aligned(4 * shared_tiles(p, kBackwardTile) * (kBackwardTile / 64) * (width_of(p) == 256 ? 2 : 1));
}

// Whether the forward pass has two warpgroups at head sizes up to 64 too.
bool has_two_groups(const AttentionProblem& p) {
  return p.bias.any() || p.mask.hidden_period > 0 || p.dropout.rate > 0;
}

}  // namespace

std::int64_t hopper_forward_bytes(const AttentionProblem& p) {
  return aligned(
      schedule_bytes(p, forward_queries(width_of(p), 1, has_two_groups(p))));  // tiles of two are fewer
}

std::int64_t hopper_backward_bytes(const AttentionProblem& p) {
  return aligned(schedule_bytes(p, kBackwardTile)) + turn_bytes(p) + aligned(sum_bytes(p)) +
         softmax_statistics_bytes(p);
}

void hopper_forward(const AttentionProblem& p, const AttentionDevice& device, int cluster,
                    const AttentionRows& o, const Bias* bias, void* workspace, cudaStream_t stream) {
  const int width = width_of(p), keys = forward_keys(width);
  const Schedule schedule = schedule_at(workspace);
  make_schedule(p, forward_queries(width, cluster, has_two_groups(p)), forward_order(cluster), schedule,
                nullptr, 0, stream);
  const ForwardArguments arguments{.q = row_map(p, p.q, 64, width),
                                   .k = row_map(p, p.k, keys, width / cluster),
                                   .v = row_map(p, p.v, keys, width / cluster),
                                   .o = row_map(p, o, 64, width),
                                   .samples = samples_of(p),
                                   .schedule = schedule,
                                   .o_data = o.data,
                                   .o_row_stride = o.row_stride,
                                   .o_head_stride = o.head_stride,
                                   .half_alpha = score_factor_of(p),
                                   .head_dim = static_cast<int>(p.head_dim)};
  if (p.score == ScoreFunction::softmax) {
    const SoftmaxForwardArguments softmax{arguments, exponent_of(p), p.log_sums};
    const auto launch = [&](const auto& all) {
      with_softmax_kernel(p, [&]<typename T, int kD>() {
        if constexpr (kD > 64) {
          if (cluster == 2) return launch_forward_sm90<T, kD, 2>(all, device.multiprocessors, stream);
        }
        launch_forward_sm90<T, kD, 1>(all, device.multiprocessors, stream);
      });
    };
    const HidingForwardArguments hiding{softmax, hidden_keys_of(p)};
    if (p.dropout.rate > 0) return launch(DroppingForwardArguments{hiding, pair_dropout_of(p)});
    return p.mask.hidden_period > 0 ? launch(hiding) : launch(softmax);
  }
  with_kernel(p, [&]<typename T, int kD>() {
    with_bias<BiasedForwardArguments>(arguments, bias, [&](const auto& all) {
      constexpr bool kBias = std::is_same_v<std::remove_cvref_t<decltype(all)>, BiasedForwardArguments>;
      if constexpr (!kBias || kD < 256) {  // as choose_attention has it
        if constexpr (kD > 64) {
          if (cluster == 2) return launch_forward_sm90<T, kD, 2>(all, device.multiprocessors, stream);
        }
        launch_forward_sm90<T, kD, 1>(all, device.multiprocessors, stream);
      }
    });
  });
}

void hopper_backward(const AttentionProblem& p, const AttentionDevice& device, const AttentionGradients& g,
                     const Bias* bias, void* workspace, cudaStream_t stream) {
  const int width = width_of(p), keys = width == 256 ? 64 : kBackwardTile;
  const int columns = width == 256 ? 128 : width;  // of Q and dO that one block of a cluster loads
  const Schedule schedule = schedule_at(workspace);
  char* const turns_taken = static_cast<char*>(workspace) + aligned(schedule_bytes(p, kBackwardTile));
  char* const dq_sum = turns_taken + turn_bytes(p);
  make_schedule(p, kBackwardTile, backward_order(width), schedule, turns_taken, turn_bytes(p), stream);
  const auto before = [&](const void* x, const AttentionRows& rows, int box_columns) {
    return x == nullptr ? CUtensorMap{} : row_map(p, {x, rows.row_stride, rows.head_stride}, 64, box_columns);
  };
  const BackwardArguments arguments{.q = row_map(p, p.q, 64, columns),
                                    .k = row_map(p, p.k, keys, width),
                                    .v = row_map(p, p.v, keys, width),
                                    .d_o = row_map(p, g.d_o, 64, columns),
                                    .k_half = row_map(p, p.k, keys, columns),
                                    .q_before_half = before(g.q_before, g.dq, columns),
                                    .dq_map = row_map(p, g.dq, 16, 64),
                                    .dk_map = row_map(p, g.dk, keys, width),
                                    .dv_map = row_map(p, g.dv, keys, width),
                                    .samples = samples_of(p),
                                    .schedule = schedule,
                                    .dq_sum = reinterpret_cast<float*>(dq_sum),
                                    .turns_taken = reinterpret_cast<std::int32_t*>(turns_taken),
                                    .dq = g.dq.data,
                                    .dk = g.dk.data,
                                    .dv = g.dv.data,
                                    .q_before = g.q_before,
                                    .k_before = before(g.k_before, g.dk, width),
                                    .v_before = before(g.v_before, g.dv, columns),
                                    .dq_row_stride = g.dq.row_stride,
                                    .dq_head_stride = g.dq.head_stride,
                                    .dk_row_stride = g.dk.row_stride,
                                    .dk_head_stride = g.dk.head_stride,
                                    .dv_row_stride = g.dv.row_stride,
                                    .dv_head_stride = g.dv.head_stride,
                                    .half_alpha = score_factor_of(p),
                                    .head_dim = static_cast<int>(p.head_dim),
                                    .in_order = p.deterministic};
  if (p.score == ScoreFunction::softmax) {
    auto* const statistics = reinterpret_cast<float*>(dq_sum + aligned(sum_bytes(p)));
    make_softmax_statistics(p, g, schedule, statistics, stream);
    const SoftmaxBackwardArguments all{arguments, exponent_of(p), hidden_keys_of(p), statistics};
    const auto launch = [&](const auto& of_kind) {
      with_softmax_kernel(p, [&]<typename T, int kD>() {
        launch_backward_sm90<T, kD>(of_kind, device.multiprocessors, stream);
      });
    };
    return p.dropout.rate > 0 ? launch(DroppingBackwardArguments{all, pair_dropout_of(p)}) : launch(all);
  }
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD == 256)
      launch_backward_sm90_256<T>(arguments, device.multiprocessors, stream);
    else if constexpr (kD == 128)
      launch_backward_sm90<T, kD>(arguments, device.multiprocessors, stream);
    else
      with_bias<BiasedBackwardArguments>(arguments, bias, [&](const auto& all) {
        launch_backward_sm90<T, kD>(all, device.multiprocessors, stream);
      });
  });
}

}  // namespace hstu::cuda
