#include <algorithm>

#include "hstu/kernels/copy_pieces.h"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/cuda/units.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

inline constexpr int kMostPieces = 32;

template <typename Unit>
struct Pieces {
  struct Piece {
    const Unit* x;
    Unit* y;
    std::int64_t rows, width, x_stride, y_stride;
    unsigned first;  // block
  } each[kMostPieces];
  int count = 0;
  unsigned blocks = 0;
};

template <typename Unit>
__global__ void copy_all(const __grid_constant__ Pieces<Unit> pieces) {
  hstu::cuda::wait_for_previous_launch();
  const auto& piece = of_block(pieces);
  copy_units<Unit>(
      blockIdx.x - piece.first, piece.rows, piece.width,
      [&](std::int64_t row, std::int64_t column) { return piece.x + row * piece.x_stride + column; },
      [&](std::int64_t row, std::int64_t column) { return piece.y + row * piece.y_stride + column; });
}

template <typename Unit, typename T>
void launch(std::span<const CopyPiece<T>> all, CudaStream stream) {
  constexpr std::int64_t kElements = sizeof(Unit) / sizeof(T);
  Pieces<Unit> pieces;
  const auto launch_pieces = [&] {
    if (pieces.blocks > 0)
      hstu::cuda::launch("copy of pieces", copy_all<Unit>, pieces.blocks, kThreads, stream.handle, pieces);
    pieces.count = 0;
    pieces.blocks = 0;
  };
  for (const CopyPiece<T>& p : all) {
    if (p.rows * p.width == 0) continue;
    if (pieces.count == kMostPieces) launch_pieces();
    const std::int64_t width = p.width / kElements;
    pieces.each[pieces.count++] = {reinterpret_cast<const Unit*>(p.x),
                                   reinterpret_cast<Unit*>(p.y),
                                   p.rows,
                                   width,
                                   p.x_stride / kElements,
                                   p.y_stride / kElements,
                                   pieces.blocks};
    pieces.blocks += blocks_for(p.rows * width, kUnitsOfBlock);
  }
  launch_pieces();
}

}  // namespace

template <typename T>
void copy_pieces(std::span<const CopyPiece<T>> all, CudaStream stream) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const bool is_whole = std::ranges::all_of(all, [](const CopyPiece<T>& p) {
    return are_whole_units((p.width | p.x_stride | p.y_stride) * kBytes, p.x, p.y);
  });
  is_whole ? launch<uint4>(all, stream) : launch<Native<T>>(all, stream);
}

template void copy_pieces(std::span<const CopyPiece<float>>, CudaStream);
template void copy_pieces(std::span<const CopyPiece<BFloat16>>, CudaStream);

}  // namespace hstu::kernels
