#include <algorithm>
#include <cmath>
#include <limits>

#include "hstu/base/threads.h"
#include "hstu/kernels/catalogue_softmax.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/row_weight.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {
namespace {

// A task has the logits of kRows positions and kColumns items, which stay in its processor's cache. Gradients
// keep those of kChunk positions and the block, so that both products read them. All sums have an order that
// depends on these and on the shape.
constexpr std::int64_t kRows = 48, kColumns = 512, kChunk = 4096, kDepth = 256, kPackColumns = 256;
static_assert(kColumns % kPackedColumns == 0 && kPackColumns % kPackedColumns == 0);

// A packed matrix (k, n), whose depth a product walks in pieces that stay in the cache.
template <typename T>
struct Packed {
  Packed(std::int64_t depth, std::int64_t columns)
      : k(depth), n(columns), memory(packed_size(depth, columns)) {}

  // op(B) times alpha; B has `stride`.
  void fill(const T* b, std::int64_t stride, bool transposed, T alpha) const {
    parallel_blocks(n, kPackColumns, [&](std::int64_t begin, std::int64_t end) {
      loops<T>().pack({.k = k,
                       .n = end - begin,
                       .b = b + (transposed ? begin * stride : begin),
                       .stride = stride,
                       .transposed = transposed,
                       .alpha = alpha,
                       .packed = memory.data() + begin * k});
    });
  }
  // c (m, columns) = start (columns) + op(A) (m, k) times the columns from `first` on; A begins at `a`.
  void multiply(const T* a, std::int64_t a_stride, bool a_transposed, std::int64_t m, std::int64_t first,
                std::int64_t columns, T* c, std::int64_t c_stride, const T* start = nullptr) const {
    for (std::int64_t l = 0; l < k; l += kDepth) {
      loops<T>().multiply({.m = m,
                           .n = columns,
                           .k = std::min(kDepth, k - l),
                           .a = a + (a_transposed ? l * a_stride : l),
                           .a_stride = a_stride,
                           .a_transposed = a_transposed,
                           .b = memory.data() + first * k,
                           .packed_rows = k,
                           .packed_columns = n - first,
                           .first_row = l,
                           .start = l == 0 ? start : c,
                           .start_stride = l == 0 ? 0 : c_stride,
                           .c = c,
                           .c_stride = c_stride});
    }
  }

  std::int64_t k, n;
  Scratch<T> memory;
};

template <typename T>
void add(const T* from, std::int64_t count, T* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// z (m, columns): logits of positions [begin, begin + m) and of the block's items [column, column + columns),
// rows `stride` apart. `packed`: the block, times scale.
template <typename T>
void put_logits(const CatalogueBlock<T>& block, const Packed<T>& packed, std::int64_t begin, std::int64_t m,
                std::int64_t column, std::int64_t columns, T* z, std::int64_t stride) {
  const std::int64_t width = block.width;
  packed.multiply(block.vectors + begin * width, width, false, m, column, columns, z, stride,
                  block.bias == nullptr ? nullptr : block.bias + column);
  for (std::int64_t r = 0; r < m && block.bias != nullptr; ++r) {
    const std::int64_t own = block.targets[begin + r] - block.first;
    if (own < column || own >= column + columns) continue;
    const T *const f = block.vectors + (begin + r) * width, *const row = block.rows + own * width;
    T sum = 0;
    for (std::int64_t e = 0; e < width; ++e) sum += f[e] * row[e];
    z[r * stride + own - column] = block.scale * sum;
  }
}

// One position takes the logits z (n), which it may overwrite.
template <typename T>
void take_logits(T* z, std::int64_t n, T& largest, T& sum) {
  const T most = loops<T>().largest(z, n);
  if (most > largest) {
    sum *= std::exp(largest - most);
    largest = most;
  }
  sum += loops<T>().exponentials(z, n, largest, T(1));
}

// G of positions [begin, end), from their logits: rows n apart.
template <typename T>
void to_gradient(const SoftmaxGradients<T>& p, std::int64_t begin, std::int64_t end, T* g) {
  const std::int64_t n = p.block.items;
  for (std::int64_t r = begin; r < end; ++r, g += n) {
    const T factor = static_cast<T>(*p.dloss * p.factor * weight_of(p.weights, r)) * p.block.scale;
    loops<T>().exponentials(g, n, p.log_sum[r], factor);
    const std::int64_t own = p.block.targets[r] - p.block.first;
    if (own >= 0 && own < n) g[own] -= factor;
  }
}

// Gradients of one chunk of positions after the other.
template <typename T>
class BlockGradients {
 public:
  explicit BlockGradients(const SoftmaxGradients<T>& p)
      : p_(p),
        for_logits_(p.block.width, p.block.items),
        rows_(p.block.items, p.dvectors != nullptr ? p.block.width : 0),
        vectors_(std::min(kChunk, p.block.positions), p.drows != nullptr ? p.block.width : 0),
        g_(std::min(kChunk, p.block.positions) * p.block.items) {
    for_logits_.fill(p.block.rows, p.block.width, true, p.block.scale);
    if (p.dvectors != nullptr) rows_.fill(p.block.rows, p.block.width, false, T(1));
    if (p.drows != nullptr) std::fill_n(p.drows, p.block.items * p.block.width, T(0));
  }

  void run() {
    for (std::int64_t begin = 0; begin < p_.block.positions; begin += kChunk) {
      const std::int64_t count = std::min(kChunk, p_.block.positions - begin);
      parallel_blocks(count, kRows, [&](std::int64_t from, std::int64_t to) {
        positions(begin + from, begin + to, g_.data() + from * p_.block.items);
      });
      if (p_.drows != nullptr) items(begin, count);
    }
  }

 private:
  // G and dvectors of some positions.
  void positions(std::int64_t begin, std::int64_t end, T* g) const {
    const std::int64_t width = p_.block.width, n = p_.block.items, m = end - begin;
    for (std::int64_t column = 0; column < n; column += kColumns)
      put_logits(p_.block, for_logits_, begin, m, column, std::min(kColumns, n - column), g + column, n);
    to_gradient(p_, begin, end, g);
    if (p_.dvectors == nullptr) return;
    const Scratch<T> sum(m * width);
    rows_.multiply(g, n, false, m, 0, width, sum.data(), width);
    add(sum.data(), m * width, p_.dvectors + begin * width);
  }

  // What `count` positions from `begin` on add to drows.
  void items(std::int64_t begin, std::int64_t count) {
    const std::int64_t width = p_.block.width, n = p_.block.items;
    vectors_.k = count;
    vectors_.fill(p_.block.vectors + begin * width, width, false, T(1));
    parallel_blocks(n, kRows, [&](std::int64_t from, std::int64_t to) {
      const Scratch<T> sum((to - from) * width);
      vectors_.multiply(g_.data() + from, n, true, to - from, 0, width, sum.data(), width);
      add(sum.data(), (to - from) * width, p_.drows + from * width);
    });
  }

  const SoftmaxGradients<T>& p_;
  Packed<T> for_logits_;  // (E, n), times scale
  Packed<T> rows_;        // (n, E)
  Packed<T> vectors_;     // (positions of a chunk, E)
  Scratch<T> g_;          // (positions of a chunk, n)
};

}  // namespace

void find_ids(const FindIds& p, HostStream) {
  parallel_blocks(p.wanted_count, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t* const at = std::lower_bound(p.ids, p.ids + p.size, p.wanted[i]);
      p.numbers[i] = at != p.ids + p.size && *at == p.wanted[i] ? at - p.ids : -1;
    }
  });
}

template <typename T>
void start_softmax(const StartSoftmax<T>& p, HostStream) {
  std::fill_n(p.largest, p.positions, -std::numeric_limits<T>::infinity());
  std::fill_n(p.parts, p.positions, SoftmaxPart<T>{});
}

template <typename T>
void add_softmax_block(const SoftmaxSums<T>& p, HostStream) {
  const CatalogueBlock<T>& block = p.block;
  const Packed<T> packed(block.width, block.items);
  packed.fill(block.rows, block.width, true, block.scale);
  parallel_blocks(block.positions, kRows, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> logits(kRows * kColumns);
    for (std::int64_t column = 0; column < block.items; column += kColumns) {
      const std::int64_t n = std::min(kColumns, block.items - column);
      put_logits(block, packed, begin, end - begin, column, n, logits.data(), n);
      for (std::int64_t r = begin; r < end; ++r) {
        T* const z = logits.data() + (r - begin) * n;
        SoftmaxPart<T>& part = p.parts[r];
        const std::int64_t own = block.targets[r] - block.first - column;
        if (own >= 0 && own < n) {
          part.positive = z[own];
          part.found = T(1);
        }
        take_logits(z, n, p.largest[r], part.sum);
      }
    }
  });
}

template <typename T>
void softmax_block_gradients(const SoftmaxGradients<T>& p, HostStream) {
  BlockGradients<T>(p).run();
}

template <typename T>
void rescale_softmax(const SoftmaxRescale<T>& p, HostStream) {
  parallel_blocks(p.positions, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T most = p.largest_of_ranks[r];
      for (std::int64_t k = 1; k < p.ranks; ++k)
        most = std::max(most, p.largest_of_ranks[k * p.positions + r]);
      p.largest[r] = most;
      const T mine = p.largest_of_ranks[p.rank * p.positions + r];
      if (p.parts[r].sum != T(0)) p.parts[r].sum *= std::exp(mine - most);
    }
  });
}

template <typename T>
void softmax_loss(const SoftmaxLoss<T>& p, HostStream) {
  double total = 0;
  sum_over_rows(p.positions, 1, Gradient<double>{&total},
                [&](std::int64_t begin, std::int64_t end, double* sum) {
                  for (std::int64_t r = begin; r < end; ++r) {
                    const double log_sum =
                        static_cast<double>(p.largest[r]) + std::log(static_cast<double>(p.parts[r].sum));
                    p.log_sum[r] = static_cast<T>(log_sum);
                    const double loss = log_sum - static_cast<double>(p.parts[r].positive);
                    *sum += p.parts[r].found == T(1) ? weight_of(p.weights, r) * loss
                                                     : std::numeric_limits<double>::quiet_NaN();
                  }
                });
  *p.loss = static_cast<T>(p.factor * total);
}

template void start_softmax(const StartSoftmax<float>&, HostStream);
template void start_softmax(const StartSoftmax<double>&, HostStream);
template void add_softmax_block(const SoftmaxSums<float>&, HostStream);
template void add_softmax_block(const SoftmaxSums<double>&, HostStream);
template void softmax_block_gradients(const SoftmaxGradients<float>&, HostStream);
template void softmax_block_gradients(const SoftmaxGradients<double>&, HostStream);
template void rescale_softmax(const SoftmaxRescale<float>&, HostStream);
template void rescale_softmax(const SoftmaxRescale<double>&, HostStream);
template void softmax_loss(const SoftmaxLoss<float>&, HostStream);
template void softmax_loss(const SoftmaxLoss<double>&, HostStream);

}  // namespace hstu::kernels
