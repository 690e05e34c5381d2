#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/kernels/reduce.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kChunk = 256;  // tokens of one row that one task adds up

// Tokens grouped by the row they read: a counting sort, stable in t.
struct Groups {
  std::vector<std::int64_t> begin;   // (n + 1)
  std::vector<std::int32_t> tokens;  // token numbers, row after row
};

Groups group_by_row(const std::int32_t* index, std::int64_t tokens, std::int64_t n) {
  Groups g;
  g.begin.assign(static_cast<std::size_t>(n + 1), 0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (index[t] >= 0) ++g.begin[static_cast<std::size_t>(index[t]) + 1];
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) g.begin[r + 1] += g.begin[r];
  g.tokens.resize(static_cast<std::size_t>(g.begin.back()));
  std::vector<std::int64_t> next(g.begin.begin(), g.begin.end() - 1);
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (index[t] >= 0) {
      g.tokens[static_cast<std::size_t>(next[static_cast<std::size_t>(index[t])]++)] =
          static_cast<std::int32_t>(t);
    }
  }
  return g;
}

// A run of tokens of one row. Rows with several chunks add them through `partial`, in order.
struct Chunk {
  std::int64_t row, begin, end;
  std::int64_t partial;  // slot of the partial sum, -1: straight into the row
};

std::vector<Chunk> chunks_of(const Groups& g, std::int64_t n, std::int64_t* partials) {
  std::vector<Chunk> chunks;
  *partials = 0;
  for (std::int64_t r = 0; r < n; ++r) {
    const std::int64_t begin = g.begin[static_cast<std::size_t>(r)],
                       end = g.begin[static_cast<std::size_t>(r) + 1];
    const bool several = end - begin > kChunk;
    for (std::int64_t at = begin; at < end; at += kChunk) {
      chunks.push_back({r, at, std::min(end, at + kChunk), several ? (*partials)++ : -1});
    }
  }
  return chunks;
}

}  // namespace

template <typename T>
void gather_sum(const GatherSum<T>& p, HostStream) {
  const std::int64_t width = p.width;
  parallel_blocks(p.tokens, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      T* const out = p.y + t * width;
      bool first = true;
      for (const GatherSource<T>& source : p.sources) {
        if (source.index[t] < 0) continue;
        require(source.index[t] < source.count, "gather_sum: row {} of {}", source.index[t], source.count);
        const T* const row = source.rows + source.index[t] * width;
        if (first) {
          for (std::int64_t c = 0; c < width; ++c) out[c] = source.factor * row[c];
        } else {
          for (std::int64_t c = 0; c < width; ++c) out[c] += source.factor * row[c];
        }
        first = false;
      }
      if (first) std::fill_n(out, width, T(0));
    }
    if (p.dropout.rate > 0) {
      std::vector<T> factors(static_cast<std::size_t>(width));
      for (std::int64_t t = begin; t < end; ++t) {
        dropout_factors(p.dropout, t, width, factors.data());
        for (std::int64_t c = 0; c < width; ++c) p.y[t * width + c] *= factors[static_cast<std::size_t>(c)];
      }
    }
  });
}

template <typename T>
void gather_rows(std::span<const GatherRows<T>> all, HostStream) {
  for (const GatherRows<T>& p : all) {
    parallel_blocks(p.tokens, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        T* const out = p.y + t * p.stride;
        require(p.index[t] < p.count, "gather_rows: row {} of {}", p.index[t], p.count);
        if (p.index[t] < 0)
          std::fill_n(out, p.width, T(0));
        else
          std::copy_n(p.rows + p.index[t] * p.width, p.width, out);
      }
    });
  }
}

template <typename T>
void apply_dropout(const ApplyDropout<T>& p, HostStream) {
  const std::int64_t width = p.width;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> factors(static_cast<std::size_t>(width));
    for (std::int64_t r = begin; r < end; ++r) {
      dropout_factors(p.dropout, r, width, factors.data());
      for (std::int64_t c = 0; c < width; ++c)
        p.y[r * width + c] = p.x[r * width + c] * factors[static_cast<std::size_t>(c)];
    }
  });
}

namespace {

template <typename T>
void add_by_row(const ScatterAdd<T>& p) {
  if (p.drows.to == nullptr) return;
  const std::int64_t width = p.width;
  T* const rows = p.drows.to;
  const T factor = p.factor;
  if (!p.drows.accumulate) std::fill_n(rows, p.count * width, T(0));
  const Groups groups = group_by_row(p.index, p.tokens, p.count);
  std::int64_t partials = 0;
  const std::vector<Chunk> chunks = chunks_of(groups, p.count, &partials);
  std::vector<T> partial(static_cast<std::size_t>(partials * width), T(0));
  constexpr std::int64_t kChunksPerTask = 16;
  parallel_blocks(
      static_cast<std::int64_t>(chunks.size()), kChunksPerTask, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
          T* const out =
              chunk.partial >= 0 ? partial.data() + chunk.partial * width : rows + chunk.row * width;
          for (std::int64_t at = chunk.begin; at < chunk.end; ++at) {
            const T* const in = p.dy + std::int64_t{groups.tokens[static_cast<std::size_t>(at)]} * p.stride;
            for (std::int64_t c = 0; c < width; ++c) out[c] += factor * in[c];
          }
        }
      });
  for (const Chunk& chunk : chunks) {
    if (chunk.partial < 0) continue;
    const T* const in = partial.data() + chunk.partial * width;
    for (std::int64_t c = 0; c < width; ++c) rows[chunk.row * width + c] += in[c];
  }
}

}  // namespace

template <typename T>
void scatter_add(std::span<const ScatterAdd<T>> all, HostStream) {
  for (const ScatterAdd<T>& p : all) add_by_row(p);
}

template void gather_sum(const GatherSum<float>&, HostStream);
template void gather_sum(const GatherSum<double>&, HostStream);
template void gather_rows(std::span<const GatherRows<float>>, HostStream);
template void gather_rows(std::span<const GatherRows<double>>, HostStream);
template void apply_dropout(const ApplyDropout<float>&, HostStream);
template void apply_dropout(const ApplyDropout<double>&, HostStream);
template void scatter_add(std::span<const ScatterAdd<float>>, HostStream);
template void scatter_add(std::span<const ScatterAdd<double>>, HostStream);

}  // namespace hstu::kernels
