#include <algorithm>

#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/elementwise.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// A thread has eight elements.

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct ElementProduct {
  __device__ float operator()(float a, float b) const { return a * b; }
};

template <typename Of, typename N>
__global__ void combine_elements(std::int64_t size, const N* a, const N* b, Target<N> y) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t c = first_of_thread();
  if (c >= size) return;
  float x[kGroup], other[kGroup];
  load_group(a, c, size, x);
  load_group(b, c, size, other);
#pragma unroll
  for (int i = 0; i < kGroup; ++i) x[i] = Of()(x[i], other[i]);
  put_group(y, 0, c, size, x);
}

// Both gradients of a product.
template <typename N>
__global__ void multiply_gradients(std::int64_t size, const N* dy, const N* a, const N* b, Target<N> da,
                                   Target<N> db) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t c = first_of_thread();
  if (c >= size) return;
  float gradient[kGroup], x[kGroup], y[kGroup];
  load_group(dy, c, size, gradient);
  load_group(a, c, size, x);
  load_group(b, c, size, y);
#pragma unroll
  for (int i = 0; i < kGroup; ++i) x[i] *= gradient[i], y[i] *= gradient[i];
  put_group(da, 0, c, size, y);
  put_group(db, 0, c, size, x);
}

template <typename N>
__global__ void pass_elements(std::int64_t size, const N* dy, Target<N> dx) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t c = first_of_thread();
  if (c >= size) return;
  float gradient[kGroup];
  load_group(dy, c, size, gradient);
  put_group(dx, 0, c, size, gradient);
}

// Columns (rows, width) from one matrix to another, whose rows are `from_stride` and `to_stride` apart.
template <typename N>
struct Move {
  const N* from = nullptr;
  Target<N> to;
  std::int64_t width = 0, from_stride = 0, to_stride = 0;
  unsigned first = 0;  // block
};
inline constexpr int kMostMoves = 16;
template <typename N>
struct Moves {
  Move<N> each[kMostMoves];
  int count = 0;
};

template <typename N>
__global__ void move_columns(std::int64_t rows, const __grid_constant__ Moves<N> moves) {
  hstu::cuda::wait_for_previous_launch();
  const Move<N>& move = of_block(moves);
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x - move.first) * kThreads + threadIdx.x;
  if (i >= rows * move.width) return;
  const std::int64_t r = i / move.width, c = i % move.width;
  move.to.put(r * move.to_stride + c, to_float(move.from[r * move.from_stride + c]));
}

// Moves of one launch, in the order of add().
template <typename N>
class MoveColumns {
 public:
  MoveColumns(std::int64_t rows, CudaStream stream) : rows_(rows), stream_(stream) {}
  void add(Move<N> move) {
    if (rows_ * move.width == 0 || move.to.to == nullptr) return;
    const auto same = [&](const Move<N>& other) { return other.to.to == move.to.to; };
    if (moves_.count == kMostMoves || std::any_of(moves_.each, moves_.each + moves_.count, same)) launch();
    move.first = blocks_;
    blocks_ += blocks_for(rows_ * move.width, kThreads);
    moves_.each[moves_.count++] = move;
  }
  void launch() {
    if (blocks_ > 0)
      hstu::cuda::launch("moving columns", move_columns<N>, blocks_, kThreads, stream_.handle, rows_, moves_);
    moves_.count = 0;
    blocks_ = 0;
  }

 private:
  std::int64_t rows_;
  CudaStream stream_;
  Moves<N> moves_;
  unsigned blocks_ = 0;
};

}  // namespace

template <typename T>
void add(const Add<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  hstu::cuda::launch("add", combine_elements<Sum, Native<T>>, blocks_for(p.size, kGroup * kThreads), kThreads,
                     stream.handle, p.size, native(p.a), native(p.b), Target<Native<T>>{native(p.y)});
}

template <typename T>
void multiply(const Multiply<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  hstu::cuda::launch("multiply", combine_elements<ElementProduct, Native<T>>,
                     blocks_for(p.size, kGroup * kThreads), kThreads, stream.handle, p.size, native(p.a),
                     native(p.b), Target<Native<T>>{native(p.y)});
}

template <typename T>
void multiply_backward(const MultiplyBackward<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  constexpr const char* kWhat = "multiply, backward";
  const unsigned blocks = blocks_for(p.size, kGroup * kThreads);
  const auto times = [&](const T* other, const Gradient<T>& gradient) {
    if (gradient.to == nullptr) return;
    hstu::cuda::launch(kWhat, combine_elements<ElementProduct, Native<T>>, blocks, kThreads, stream.handle,
                       p.size, native(p.dy), native(other), target(gradient));
  };
  if (p.da.to != nullptr && p.db.to != nullptr) {
    hstu::cuda::launch(kWhat, multiply_gradients<Native<T>>, blocks, kThreads, stream.handle, p.size,
                       native(p.dy), native(p.a), native(p.b), target(p.da), target(p.db));
  } else {
    times(p.b, p.da);
    times(p.a, p.db);
  }
}

template <typename T>
void pass_gradient(const PassGradient<T>& p, CudaStream stream) {
  if (p.size == 0 || p.dx.to == nullptr) return;
  hstu::cuda::launch("passing a gradient", pass_elements<Native<T>>, blocks_for(p.size, kGroup * kThreads),
                     kThreads, stream.handle, p.size, native(p.dy), target(p.dx));
}

template <typename T>
void concat_columns(const ConcatColumns<T>& p, CudaStream stream) {
  std::int64_t n = 0, at = 0;
  for (const auto& part : p.parts) n += part.width;
  MoveColumns<Native<T>> moves(p.rows, stream);
  for (const auto& [x, width] : p.parts) {
    moves.add({native(x), {native(p.y + at)}, width, width, n});
    at += width;
  }
  moves.launch();
}

template <typename T>
void concat_columns_backward(const ConcatColumnsBackward<T>& p, CudaStream stream) {
  std::int64_t n = 0, at = 0;
  for (const auto& part : p.parts) n += part.width;
  MoveColumns<Native<T>> moves(p.rows, stream);
  for (const auto& [dx, width] : p.parts) {
    moves.add({native(p.dy + at), target(dx), width, n, width});
    at += width;
  }
  moves.launch();
}

template void add(const Add<float>&, CudaStream);
template void add(const Add<BFloat16>&, CudaStream);
template void multiply(const Multiply<float>&, CudaStream);
template void multiply(const Multiply<BFloat16>&, CudaStream);
template void multiply_backward(const MultiplyBackward<float>&, CudaStream);
template void multiply_backward(const MultiplyBackward<BFloat16>&, CudaStream);
template void pass_gradient(const PassGradient<float>&, CudaStream);
template void pass_gradient(const PassGradient<BFloat16>&, CudaStream);
template void concat_columns(const ConcatColumns<float>&, CudaStream);
template void concat_columns(const ConcatColumns<BFloat16>&, CudaStream);
template void concat_columns_backward(const ConcatColumnsBackward<float>&, CudaStream);
template void concat_columns_backward(const ConcatColumnsBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
