#include <algorithm>

#include "hstu/kernels/copy_pieces.h"

namespace hstu::kernels {

template <typename T>
void copy_pieces(std::span<const CopyPiece<T>> all, HostStream) {
  for (const CopyPiece<T>& p : all)
    for (std::int64_t i = 0; i < p.rows; ++i)
      std::copy_n(p.x + i * p.x_stride, p.width, p.y + i * p.y_stride);
}

template void copy_pieces(std::span<const CopyPiece<float>>, HostStream);
template void copy_pieces(std::span<const CopyPiece<double>>, HostStream);

}  // namespace hstu::kernels
