#include <algorithm>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/dot.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/sampled_loss.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kPositions = 16, kSampledRows = 16;  // of one task

template <typename T>
void add_row(T factor, const T* from, std::int64_t width, T* to) {
#pragma omp simd
  for (std::int64_t e = 0; e < width; ++e) to[e] += factor * from[e];
}

template <typename T>
bool is_masked(const SampledLogits<T>& p, std::int64_t r, std::int64_t column) {
  const std::int32_t* const index = p.index + r * p.columns;
  return index[column] < 0 || (column > 0 && index[column] == index[0]);
}

// The places (r * C + c) that read each row, in ascending order.
struct Places {
  std::vector<std::int64_t> begin;  // (I + 1)
  std::vector<std::int64_t> at;
};
template <typename T>
Places places_of_rows(const SampledLogits<T>& p) {
  Places places;
  places.begin.assign(static_cast<std::size_t>(p.rows_count) + 1, 0);
  const auto for_each = [&](const auto& body) {
    for (std::int64_t i = 0; i < p.positions * p.columns; ++i)
      if (!is_masked(p, i / p.columns, i % p.columns)) body(i, static_cast<std::size_t>(p.index[i]));
  };
  for_each([&](std::int64_t, std::size_t row) { ++places.begin[row + 1]; });
  for (std::size_t row = 1; row < places.begin.size(); ++row) places.begin[row] += places.begin[row - 1];
  places.at.resize(static_cast<std::size_t>(places.begin.back()));
  std::vector<std::int64_t> next(places.begin.begin(), places.begin.end() - 1);
  for_each([&](std::int64_t i, std::size_t row) { places.at[static_cast<std::size_t>(next[row]++)] = i; });
  return places;
}

template <typename T>
void vector_gradients(const SampledLogitsBackward<T>& p) {
  const SampledLogits<T>& f = p.forward;
  parallel_blocks(f.positions, kPositions, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const to = p.dvectors.to + r * f.width;
      if (!p.dvectors.accumulate) std::fill_n(to, f.width, T(0));
      for (std::int64_t c = 0; c < f.columns; ++c) {
        const std::int64_t i = r * f.columns + c;
        if (!is_masked(f, r, c)) add_row(f.scale * p.dlogits[i], f.rows + f.index[i] * f.width, f.width, to);
      }
    }
  });
}

template <typename T>
void row_gradients(const SampledLogitsBackward<T>& p) {
  const SampledLogits<T>& f = p.forward;
  const Places places = places_of_rows(f);
  parallel_blocks(f.rows_count, kSampledRows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* const to = p.drows.to + row * f.width;
      if (!p.drows.accumulate) std::fill_n(to, f.width, T(0));
      const auto first = static_cast<std::size_t>(places.begin[static_cast<std::size_t>(row)]),
                 last = static_cast<std::size_t>(places.begin[static_cast<std::size_t>(row) + 1]);
      for (std::size_t at = first; at < last; ++at) {
        const std::int64_t i = places.at[at];
        add_row(f.scale * p.dlogits[i], f.vectors + i / f.columns * f.width, f.width, to);
      }
    }
  });
}

}  // namespace

template <typename T>
void sampled_logits(const SampledLogits<T>& p, HostStream) {
  parallel_blocks(p.positions, kPositions, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t c = 0; c < p.columns; ++c) {
        const std::int64_t i = r * p.columns + c, row = p.index[i];
        require(row < p.rows_count && (c > 0 || row >= 0), "sampled_logits: row {} of {}", row, p.rows_count);
        p.logits[i] = is_masked(p, r, c)
                          ? T(kMaskedLogit)
                          : p.scale * dot(p.vectors + r * p.width, p.rows + row * p.width, p.width);
      }
    }
  });
}

template <typename T>
void sampled_logits_backward(const SampledLogitsBackward<T>& p, HostStream) {
  if (p.dvectors.to != nullptr) vector_gradients(p);
  if (p.drows.to != nullptr) row_gradients(p);
}

template void sampled_logits(const SampledLogits<float>&, HostStream);
template void sampled_logits(const SampledLogits<double>&, HostStream);
template void sampled_logits_backward(const SampledLogitsBackward<float>&, HostStream);
template void sampled_logits_backward(const SampledLogitsBackward<double>&, HostStream);

}  // namespace hstu::kernels
