// What comes before and after exponential sums (exp_sums_sm90.cu), a warp or a thread for each row.
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/exp_sums.h"

namespace hstu::kernels {
namespace {

using namespace cuda;
using Element = Native<BFloat16>;

__device__ const Element* elements(const BFloat16* x) {
  return reinterpret_cast<const Element*>(x);
}
__device__ Element* elements(BFloat16* x) {
  return reinterpret_cast<Element*>(x);
}

__device__ std::int64_t row_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}
__device__ std::int64_t row_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__global__ void make_unit(UnitRows p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_warp();
  if (r >= p.rows) return;
  const float* const x = p.x + r * p.width;
  float squares = 0;
  for (std::int64_t e = lane(); e < p.width; e += 32) squares = fmaf(x[e], x[e], squares);
  const float norm = sqrtf(warp_sum(squares)), factor = 1 / fmaxf(norm, p.epsilon);
  if (lane() == 0) p.norms[r] = norm;
  Element* const to = elements(p.unit) + r * p.padded;
  for (std::int64_t e = lane(); e < p.padded; e += 32)
    to[e] = from_float<Element>(e < p.width ? factor * x[e] : 0.0f);
}

__global__ void weigh(WeighRows p, float shift) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_warp();
  if (r >= p.rows) return;
  const float weight = p.log_sum == nullptr ? 1.0f : expf(shift - p.log_sum[r]);
  const Element* const from = elements(p.from) + r * p.width;
  Element* const to = elements(p.to) + r * p.padded;
  for (std::int64_t e = lane(); e < p.padded; e += 32)
    to[e] = from_float<Element>(e < p.width ? weight * to_float(from[e]) : 0.0f);
}

// The number in the block of a position's item; -1: it is not there.
__device__ std::int64_t own_row(const OwnItems& own, std::int64_t r) {
  const std::int64_t i = own.targets[r] - own.first;
  return own.targets[r] >= 0 && i >= 0 && i < own.items ? i : -1;
}

__global__ void find_logits(OwnLogits p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_warp();
  if (r >= p.own.positions) return;
  const std::int64_t i = own_row(p.own, r);
  if (i < 0) return;
  const Element *const vector = elements(p.own.vectors) + r * p.own.padded, *const row =
                                                                                elements(p.own.rows) +
                                                                                i * p.own.padded;
  float sum = 0;
  for (std::int64_t e = lane(); e < p.own.width; e += 32)
    sum = fmaf(to_float(vector[e]), to_float(row[e]), sum);
  sum = warp_sum(sum);
  if (lane() != 0) return;
  p.parts[r].positive = static_cast<float>(p.own.scale) * sum;
  p.parts[r].found = 1;
}

__global__ void take(TakeTotals p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_thread();
  if (r >= p.positions) return;
  p.parts[r].sum = p.totals[r];
  p.largest[r] = static_cast<float>(p.shift);
}

__global__ void scale_sums(PositionGradients p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_warp();
  if (r >= p.positions) return;
  // Nothing where all exponentials are too small for a float: this rank has no item that is likely.
  const float share = p.rounded[r] > 0 ? p.totals[r] / p.rounded[r] : 0.0f;
  const float times =
      static_cast<float>(*p.dloss * p.factor) * share * expf(static_cast<float>(p.shift) - p.log_sum[r]);
  for (std::int64_t i = r * p.width + lane(); i < (r + 1) * p.width; i += 32)
    p.dvectors[i] = times * p.sums[i];
}

__global__ void subtract_own(OwnItemGradients p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_warp();
  if (r >= p.own.positions) return;
  const std::int64_t i = own_row(p.own, r);
  if (i < 0) return;
  const auto times = static_cast<float>(*p.dloss * p.factor);
  const Element* const row = elements(p.own.rows) + i * p.own.padded;
  for (std::int64_t e = lane(); e < p.own.width; e += 32)
    p.dvectors[r * p.own.width + e] -= times * to_float(row[e]);
}

__global__ void add_gradients(RowGradients p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = row_of_warp();
  if (r >= p.rows) return;
  const float *const x = p.x + r * p.width, *const g = p.g + r * p.width;
  float product = 0;
  for (std::int64_t e = lane(); e < p.width; e += 32) product = fmaf(x[e], g[e], product);
  product = warp_sum(product);
  const float norm = p.norms[r];
  const bool is_short = norm < p.epsilon;
  const float inverse = 1 / (is_short ? p.epsilon : norm),
              along = is_short ? 0.0f : product * inverse * inverse,
              times = static_cast<float>(*p.dloss * p.factor) * inverse;
  for (std::int64_t e = lane(); e < p.width; e += 32) p.to[r * p.width + e] += times * (g[e] - x[e] * along);
}

// A warp for each row.
template <typename Arguments, typename... More>
void for_rows(const char* what, void (*kernel)(Arguments, More...), std::int64_t rows, CudaStream stream,
              const Arguments& arguments, const More&... more) {
  if (rows > 0)
    hstu::cuda::launch(what, kernel, blocks_for(rows, kWarps), kThreads, stream.handle, arguments, more...);
}
template <typename Arguments>
void for_numbers(const char* what, void (*kernel)(Arguments), std::int64_t count, CudaStream stream,
                 const Arguments& arguments) {
  if (count > 0)
    hstu::cuda::launch(what, kernel, blocks_for(count, kThreads), kThreads, stream.handle, arguments);
}

}  // namespace

void unit_rows(const UnitRows& p, CudaStream stream) {
  for_rows("unit rows", make_unit, p.rows, stream, p);
}
void weigh_rows(const WeighRows& p, CudaStream stream) {
  for_rows("weigh rows", weigh, p.rows, stream, p, static_cast<float>(p.shift));
}
void own_logits(const OwnLogits& p, CudaStream stream) {
  for_rows("own logits", find_logits, p.own.positions, stream, p);
}
void take_totals(const TakeTotals& p, CudaStream stream) {
  for_numbers("take totals", take, p.positions, stream, p);
}
void position_gradients(const PositionGradients& p, CudaStream stream) {
  for_rows("position gradients", scale_sums, p.positions, stream, p);
}
void own_item_gradients(const OwnItemGradients& p, CudaStream stream) {
  for_rows("own item gradients", subtract_own, p.own.positions, stream, p);
}
void row_gradients(const RowGradients& p, CudaStream stream) {
  for_rows("row gradients", add_gradients, p.rows, stream, p);
}

}  // namespace hstu::kernels
