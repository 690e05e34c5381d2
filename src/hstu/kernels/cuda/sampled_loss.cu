// Losses of positions with a positive and some negatives each, on GPUs: a warp has a position.
#include "hstu/kernels/cuda/loss_sum.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/row_weight.h"
#include "hstu/kernels/sampled_loss.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// From here on softplus(x) is x and sigmoid(x) is 1, to the last bit of a float.
constexpr float kLargeLogit = 40;

__device__ float softplus(float x) {
  return x > kLargeLogit ? x : log1pf(expf(x));
}
__device__ double warp_total(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

template <typename N>
struct Position {
  const N* logits;
  std::int64_t columns;

  __device__ float operator[](std::int64_t c) const { return to_float(logits[c]); }
  // log(sum of e^logit); all lanes get it.
  __device__ double log_sum() const {
    float most = -INFINITY, sum = 0;
    for (std::int64_t c = lane(); c < columns; c += 32) most = fmaxf(most, (*this)[c]);
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    for (std::int64_t c = lane(); c < columns; c += 32) sum += expf((*this)[c] - most);
    return static_cast<double>(most) + log(static_cast<double>(warp_sum(sum)));
  }
  __device__ double loss(const SampledLossForm form, double beta) const {
    const float positive = (*this)[0];
    if (form == SampledLossForm::softmax) return log_sum() - static_cast<double>(positive);
    double sum = 0;
    for (std::int64_t c = lane(); c < columns; c += 32)
      sum +=
          c > 0 ? static_cast<double>(softplus((*this)[c])) : beta * static_cast<double>(softplus(-positive));
    return warp_total(sum) / static_cast<double>(columns);
  }
};

struct LossForm {
  SampledLossForm form;
  std::int64_t positions, columns;
  double beta;
  const float* weights;  // (R) or null
};

__device__ std::int64_t loss_row_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}

template <typename N>
__global__ void row_losses(LossForm form, const N* logits, double* loss) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = loss_row_of_warp();
  if (r >= form.positions) return;
  const double mine = Position<N>{logits + r * form.columns, form.columns}.loss(form.form, form.beta);
  if (lane() == 0) loss[r] = weight_of(form.weights, r) * mine;
}

template <typename N>
__global__ void loss_gradients(LossForm form, const N* logits, const float* dloss, double factor,
                               Target<N> dlogits) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = loss_row_of_warp();
  if (r >= form.positions) return;
  const Position<N> z{logits + r * form.columns, form.columns};
  const auto times = static_cast<float>(*dloss * factor * weight_of(form.weights, r));
  if (form.form == SampledLossForm::softmax) {
    const auto log_sum = static_cast<float>(z.log_sum());
    for (std::int64_t c = lane(); c < form.columns; c += 32)
      dlogits.put(r * form.columns + c, times * (expf(z[c] - log_sum) - (c == 0 ? 1.0f : 0.0f)));
    return;
  }
  const float each = times / static_cast<float>(form.columns), beta = static_cast<float>(form.beta);
  for (std::int64_t c = lane(); c < form.columns; c += 32)
    dlogits.put(r * form.columns + c, c == 0 ? -each * beta * sigmoid(-z[0]) : each * sigmoid(z[c]));
}

template <typename T>
LossForm form_of(const SampledLoss<T>& p) {
  return {p.form, p.positions, p.columns, p.beta, p.weights};
}

struct LossOfPosition {
  const double* loss;
  __device__ double operator()(std::int64_t r) const { return loss[r]; }
};

}  // namespace

template <typename T>
void sampled_loss(const SampledLoss<T>& p, CudaStream stream) {
  const Scratch<double> of_positions(stream, p.positions);
  if (p.positions > 0)
    hstu::cuda::launch("sampled loss", row_losses<Native<T>>, blocks_for(p.positions, kWarps), kThreads,
                       stream.handle, form_of(p), native(p.logits), of_positions.data());
  sum_losses(p.positions, p.factor, LossOfPosition{of_positions.data()}, p.loss, stream);
}

template <typename T>
void sampled_loss_backward(const SampledLossBackward<T>& p, CudaStream stream) {
  const SampledLoss<T>& f = p.forward;
  if (p.dlogits.to == nullptr || f.positions == 0) return;
  hstu::cuda::launch("sampled loss, backward", loss_gradients<Native<T>>, blocks_for(f.positions, kWarps),
                     kThreads, stream.handle, form_of(f), native(f.logits), p.dloss, f.factor,
                     target(p.dlogits));
}

template void sampled_loss(const SampledLoss<float>&, CudaStream);
template void sampled_loss(const SampledLoss<BFloat16>&, CudaStream);
template void sampled_loss_backward(const SampledLossBackward<float>&, CudaStream);
template void sampled_loss_backward(const SampledLossBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
