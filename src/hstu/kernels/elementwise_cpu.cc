#include <algorithm>

#include "hstu/base/threads.h"
#include "hstu/kernels/elementwise.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kRows = 512;  // rows that one task copies

template <typename Body>
void for_elements(std::int64_t size, const Body& body) {
  parallel_blocks(size, std::int64_t{1} << 14, body);
}

// gradient = or += dy * other
template <typename T>
void add_product(std::int64_t size, const T* dy, const T* other, const Gradient<T>& gradient) {
  if (gradient.to == nullptr) return;
  T* const out = gradient.to;
  for_elements(size, [&](std::int64_t begin, std::int64_t end) {
    if (!gradient.accumulate) std::fill(out + begin, out + end, T(0));
    for (std::int64_t i = begin; i < end; ++i) out[i] += dy[i] * other[i];
  });
}

}  // namespace

template <typename T>
void add(const Add<T>& p, HostStream) {
  for_elements(p.size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) p.y[i] = p.a[i] + p.b[i];
  });
}

template <typename T>
void multiply(const Multiply<T>& p, HostStream) {
  for_elements(p.size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) p.y[i] = p.a[i] * p.b[i];
  });
}

template <typename T>
void multiply_backward(const MultiplyBackward<T>& p, HostStream) {
  add_product(p.size, p.dy, p.b, p.da);
  add_product(p.size, p.dy, p.a, p.db);
}

template <typename T>
void pass_gradient(const PassGradient<T>& p, HostStream) {
  if (p.dx.to == nullptr) return;
  for_elements(p.size, [&](std::int64_t begin, std::int64_t end) {
    if (p.dx.accumulate) {
      for (std::int64_t i = begin; i < end; ++i) p.dx.to[i] += p.dy[i];
    } else {
      std::copy(p.dy + begin, p.dy + end, p.dx.to + begin);
    }
  });
}

template <typename T>
void concat_columns(const ConcatColumns<T>& p, HostStream) {
  std::int64_t n = 0, at = 0;
  for (const auto& part : p.parts) n += part.width;
  for (const auto& part : p.parts) {
    parallel_blocks(p.rows, kRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        std::copy_n(part.x + r * part.width, part.width, p.y + r * n + at);
      }
    });
    at += part.width;
  }
}

template <typename T>
void concat_columns_backward(const ConcatColumnsBackward<T>& p, HostStream) {
  std::int64_t n = 0, at = 0;
  for (const auto& part : p.parts) n += part.width;
  for (const auto& [dx, width] : p.parts) {
    if (dx.to != nullptr) {
      parallel_blocks(p.rows, kRows, [&, dx = dx, width = width](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const T* const in = p.dy + r * n + at;
          T* const out = dx.to + r * width;
          if (!dx.accumulate) std::fill_n(out, width, T(0));
          for (std::int64_t c = 0; c < width; ++c) out[c] += in[c];
        }
      });
    }
    at += width;
  }
}

template void add(const Add<float>&, HostStream);
template void add(const Add<double>&, HostStream);
template void multiply(const Multiply<float>&, HostStream);
template void multiply(const Multiply<double>&, HostStream);
template void multiply_backward(const MultiplyBackward<float>&, HostStream);
template void multiply_backward(const MultiplyBackward<double>&, HostStream);
template void pass_gradient(const PassGradient<float>&, HostStream);
template void pass_gradient(const PassGradient<double>&, HostStream);
template void concat_columns(const ConcatColumns<float>&, HostStream);
template void concat_columns(const ConcatColumns<double>&, HostStream);
template void concat_columns_backward(const ConcatColumnsBackward<float>&, HostStream);
template void concat_columns_backward(const ConcatColumnsBackward<double>&, HostStream);

}  // namespace hstu::kernels
