// What both passes of an MLP in one kernel compute with, in shared memory (kernels/mlp_shape.h: MlpLayout).
// Elements between a width and its padded width are zeros in everything that is multiplied, so that no loop
// over them ends inside of four elements.
#pragma once

#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/mlp_shape.h"

namespace hstu::kernels::cuda::mlp_tile {

inline constexpr int kRows = static_cast<int>(kMlpRows);
static_assert(kRows == kWarps && kRows == 8,
              "a warp has a row, and of eight lanes that add up each has a row");

struct Width {
  int size, padded, stride;  // mlp_padded, mlp_stride
  unsigned inverse;          // 2^32 / padded, rounded up
  float one_by_size;

  explicit Width(std::int64_t width)
      : size(static_cast<int>(width)),
        padded(static_cast<int>(mlp_padded(width))),
        stride(static_cast<int>(mlp_stride(width))),
        inverse(static_cast<unsigned>(((std::int64_t{1} << 32) + padded - 1) / padded)),
        one_by_size(1.0f / static_cast<float>(width)) {}
  // The row of element i of padded rows: i / padded, exact for everything that fits into shared memory.
  __device__ int row_of(int i) const { return static_cast<int>(__umulhi(static_cast<unsigned>(i), inverse)); }
};

// Kept in registers: to read them again at the begin of every step would take longer than some steps.
struct Thread {
  int index, warp, lane;

  // The compiler knows that what comes from one lane is the same in all.
  __device__ Thread()
      : index(static_cast<int>(hstu::cuda::opaque(threadIdx.x))),
        warp(__shfl_sync(0xffffffffu, index >> 5, 0)),
        lane(index & 31) {}
};
// body(c) for the elements of a padded row, four of a lane at a time. All lanes leave together.
template <typename Body>
__device__ void for_quads(const Thread& t, const Width& width, const Body& body) {
#pragma unroll 1
  for (int first = 0; first < width.padded; first += 4 * 32) {
    const int c = first + 4 * t.lane;
    if (c < width.padded) body(c);
  }
}

struct Problem {
  int rows;
  Width in, hidden, out;
  bool is_normalised;
  float epsilon;
  MlpLayout at;
  const float* x;
  const float* parameters[kMlpParameters];
};

struct Quad {
  float v[4];
};
__device__ inline Quad load_quad(const float* from) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}
// To shared memory.
__device__ inline void store_quad(float* to, const Quad& x) {
  hstu::cuda::store_shared_quad(hstu::cuda::shared_address(to), x.v[0], x.v[1], x.v[2], x.v[3]);
}
__device__ inline void store_pair(float* to, float2 x) {
  hstu::cuda::store_shared_pair(hstu::cuda::shared_address(to), x.x, x.y);
}
// To elements [c, c + 4) of a row of `width` in memory.
__device__ inline void put_quad(float* row, int c, int width, const Quad& x) {
  if (c + 4 <= width && reinterpret_cast<std::uintptr_t>(row + c) % 16 == 0)
    return hstu::cuda::store_global_quad(row + c, x.v[0], x.v[1], x.v[2], x.v[3]);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (c + i < width) row[c + i] = x.v[i];
}
// To elements c and c + 1 of a row of `width` in memory, whose first element is `first`.
__device__ inline void put_pair(const Target<float>& target, std::int64_t first, int c, int width, float2 x) {
  float* const at = target.to + first + c;
  if (c + 2 <= width && reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
    const float2 before = target.accumulate ? *reinterpret_cast<const float2*>(at) : float2{0, 0};
    *reinterpret_cast<float2*>(at) = {before.x + x.x, before.y + x.y};
    return;
  }
  if (c < width) target.put(first + c, x.x);
  if (c + 1 < width) target.put(first + c + 1, x.y);
}

// Rows (kRows, width) of a block.
struct Rows {
  float* at;
  int stride;

  __device__ float* operator[](int row) const { return at + row * stride; }
};

// Row k of a weight, from the place of the first.
__device__ inline int weight_row(const Width& columns, int k) {
  return k * columns.padded + (k & ~3);
}

// Of the block. Its address is computed once, not again at every use.
__device__ inline float* shared_memory() {
  extern __shared__ __align__(16) float shared[];
  const std::uint32_t address = hstu::cuda::opaque(hstu::cuda::shared_address(shared));
  return static_cast<float*>(__cvta_shared_to_generic(address));
}

struct Arrays {
  Thread thread;
  float *weight1, *weight2, *of_hidden, *of_out;
  Rows x, a, dh, h, gh, dz, z, dy, addend;  // the last two are of one pass each, in one place

  __device__ Arrays(const Problem& p, float* shared)
      : weight1(shared + p.at.weight1),
        weight2(shared + p.at.weight2),
        of_hidden(shared + p.at.of_hidden),
        of_out(shared + p.at.of_out),
        x{shared + p.at.x, p.in.stride},
        a{shared + p.at.a, p.hidden.stride},
        dh{shared + p.at.hidden_rows, p.hidden.stride},
        h{dh[kRows], p.hidden.stride},
        gh{h[kRows], p.hidden.stride},
        dz{shared + p.at.out_rows, p.out.stride},
        z{dz[kRows], p.out.stride},
        dy{z[kRows], p.out.stride},
        addend(dy) {}
  __device__ const float* vector(const Problem& p, MlpParameter parameter) const {
    return parameter < kMlpWeight2 ? of_hidden + (parameter - kMlpBias1) * p.hidden.padded
                                   : of_out + (parameter - kMlpBias2) * p.out.padded;
  }
};

// Requests `rows` rows of `width`, of which memory has `present`; the others are zeros. place(i, r) is where
// element i of the padded rows goes, which is in row r. A thread requests up to kBatch of them without a test
// of the loop between.
template <int kBatch, typename Place>
__device__ void request_rows(const Thread& t, const float* from, int present, const Width& width, int rows,
                             float* to, const Place& place) {
  const std::uint32_t at = hstu::cuda::shared_address(to);
  const int count = rows * width.padded;
  if (width.size == width.padded && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
    const int end = present * width.padded;
#pragma unroll 1
    for (int first = 4 * t.index; first < count; first += 4 * kBatch * kThreads) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int i = first + 4 * b * kThreads;
        if (i < count)
          hstu::cuda::copy_or_zero(at + 4 * place(i, width.row_of(i)), from + (i < end ? i : 0),
                                   i < end ? 16 : 0);
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = t.index; i < count; i += kThreads) {
    const int r = width.row_of(i), c = i - r * width.padded;
    const bool is_present = r < present && c < width.size;
    hstu::cuda::copy_word_or_zero(at + 4 * place(i, r), from + (is_present ? r * width.size + c : 0),
                                  is_present ? 4 : 0);
  }
}
__device__ inline void request_weight(const Thread& t, const float* from, int rows, const Width& columns,
                                      float* to) {
  request_rows<4>(t, from, rows, columns, (rows + 3) / 4 * 4, to, [](int i, int r) { return i + (r & ~3); });
}
// This block's rows of a matrix (p.rows, width).
__device__ inline void request_block_rows(const Thread& t, const float* from, const Problem& p,
                                          const Width& width, const Rows& to) {
  const int first = static_cast<int>(blockIdx.x) * kRows, gap = width.stride - width.padded;
  request_rows<1>(t, from + static_cast<std::int64_t>(first) * width.size, p.rows - first, width, kRows,
                  to.at, [=](int i, int r) { return i + r * gap; });
}
// A warp requests the parameter of its number, if that is a vector.
__device__ inline void request_vectors(const Problem& p, const Arrays& s) {
  const int parameter = s.thread.warp;
  if (parameter == kMlpWeight1 || parameter == kMlpWeight2) return;
  if (parameter >= kMlpNormWeight && !p.is_normalised) return;
  const bool is_of_hidden = parameter < kMlpWeight2;
  const int size = is_of_hidden ? p.hidden.size : p.out.size,
            padded = is_of_hidden ? p.hidden.padded : p.out.padded;
  float* const to = is_of_hidden ? s.of_hidden + (parameter - kMlpBias1) * padded
                                 : s.of_out + (parameter - kMlpBias2) * padded;
  const float* const from = p.parameters[parameter];
#pragma unroll 1
  for (int c = s.thread.lane; c < padded; c += 32)
    hstu::cuda::copy_word_or_zero(hstu::cuda::shared_address(to + c), from + (c < size ? c : 0),
                                  c < size ? 4 : 0);
}

// The products of eight rows of `left` (kRows, depth) with two columns of a right factor: right(d, first,
// second) sets elements [d, d + 4) of both. Four lanes have two columns each, and the eight lanes 4 s + l for
// s < 8, which have the same columns, add up an eighth of the depth each. The result is that of row s.
template <typename Right>
__device__ float2 multiply_pair(const Thread& t, const Rows& left, int depth, const Right& right) {
  const unsigned split = static_cast<unsigned>(t.lane) >> 2;
  float sums[kRows][2] = {};
  // Splits next to each other are 16 elements apart, those after the next 8: of a right factor, lanes that
  // read at the same time use different banks.
  const int begin = static_cast<int>(__brev(split) >> 29) * 4;
#pragma unroll 1
  for (int step = 0; step < depth; step += 4 * kRows) {
    const int d = step + begin;
    if (d >= depth) continue;
    Quad first, second;
    right(d, first, second);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Quad x = load_quad(left[r] + d);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[r][0] += x.v[i] * first.v[i];
        sums[r][1] += x.v[i] * second.v[i];
      }
    }
  }
  // Two lanes exchange halves of their rows, until each has one.
#pragma unroll
  for (int half = kRows / 2; half > 0; half /= 2) {
    const bool keeps_upper = (split & static_cast<unsigned>(half)) != 0;
#pragma unroll
    for (int r = 0; r < half; ++r) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float given = keeps_upper ? sums[r][i] : sums[r + half][i],
                    kept = keeps_upper ? sums[r + half][i] : sums[r][i];
        sums[r][i] = kept + __shfl_xor_sync(0xffffffffu, given, 4 * half);
      }
    }
  }
  return {sums[0][0], sums[0][1]};
}

// result(r, c, elements c and c + 1 of row r of left (kRows, depth) times weight (depth, columns)).
template <typename Result>
__device__ void multiply(const Thread& t, const Rows& left, const Width& depth, const float* weight,
                         const Width& columns, const Result& result) {
#pragma unroll 1
  for (int first = 8 * t.warp; first < columns.padded; first += 8 * kWarps) {
    // In the last eight columns it may be one of the elements behind the row, whose product is not kept.
    const int c = first + (t.lane & 3) * 2;
    const float2 sum = multiply_pair(t, left, depth.padded, [&](int d, Quad& a, Quad& b) {
      const float* const at = weight + weight_row(columns, d) + c;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = *reinterpret_cast<const float2*>(at + i * columns.padded);
        a.v[i] = pair.x;
        b.v[i] = pair.y;
      }
    });
    if (c < columns.padded) result(t.lane >> 2, c, sum);
  }
}
// result(r, k, elements k and k + 1 of row r of left (kRows, columns) times the transposed weight (depth,
// columns)).
template <typename Result>
__device__ void multiply_transposed(const Thread& t, const Rows& left, const Width& columns,
                                    const float* weight, const Width& depth, const Result& result) {
  const int last = depth.padded - 4;
  // A warp has the first or the last two rows of each of four groups of four.
#pragma unroll 1
  for (int tile = t.warp; tile / 2 * 16 < depth.padded; tile += kWarps) {
    const int group = tile / 2 * 16 + (t.lane & 3) * 4, row = tile % 2 * 2;
    const float* const at = weight + weight_row(columns, min(group, last)) + row * columns.padded;
    const float2 sum = multiply_pair(t, left, columns.padded, [&](int d, Quad& a, Quad& b) {
      a = load_quad(at + d);
      b = load_quad(at + columns.padded + d);
    });
    if (group <= last) result(t.lane >> 2, group + row, sum);
  }
}

struct Statistics {
  float mean, rstd;
};
// Of a row, by a warp.
__device__ inline Statistics statistics(const Thread& t, const float* row, const Width& width,
                                        float epsilon) {
  float sum = 0, squares = 0;
  for_quads(t, width, [&](int c) {
    const Quad x = load_quad(row + c);
    sum += (x.v[0] + x.v[1]) + (x.v[2] + x.v[3]);
  });
  const float mean = warp_sum(sum) * width.one_by_size;
  for_quads(t, width, [&](int c) {
    const Quad x = load_quad(row + c);
#pragma unroll
    for (int i = 0; i < 4; ++i) squares += c + i < width.size ? (x.v[i] - mean) * (x.v[i] - mean) : 0;
  });
  return {mean, rsqrtf(warp_sum(squares) * width.one_by_size + epsilon)};
}

// Requests everything that the passes read, dy or the addend if it is not null, and computes h = x W1 + b1
// and a = h sigmoid(norm(h)); with kKeepsGate the sigmoid too, in gh. Weight 2, the vectors of the result and
// dy or the addend are there then. Returns the statistics of this warp's row of h.
template <bool kKeepsGate>
__device__ Statistics compute_hidden(const Problem& p, const Arrays& s, const float* dy_or_addend) {
  const Thread& t = s.thread;
  request_block_rows(t, p.x, p, p.in, s.x);
  request_weight(t, p.parameters[kMlpWeight1], p.in.size, p.hidden, s.weight1);
  request_vectors(p, s);
  hstu::cuda::commit_copies();
  request_weight(t, p.parameters[kMlpWeight2], p.hidden.size, p.out, s.weight2);
  if (dy_or_addend != nullptr) request_block_rows(t, dy_or_addend, p, p.out, s.dy);
  hstu::cuda::commit_copies();
  hstu::cuda::wait_for_copy_groups<1>();
  __syncthreads();
  const float* const bias1 = s.vector(p, kMlpBias1);
  multiply(t, s.x, p.in, s.weight1, p.hidden, [&](int r, int c, float2 sum) {
    const float2 bias = *reinterpret_cast<const float2*>(bias1 + c);
    store_pair(s.h[r] + c, {sum.x + bias.x, sum.y + bias.y});
  });
  __syncthreads();
  const int row = t.warp;
  const Statistics of_h = statistics(t, s.h[row], p.hidden, p.epsilon);
  const float *const weight = s.vector(p, kMlpSwishWeight), *const bias = s.vector(p, kMlpSwishBias);
  for_quads(t, p.hidden, [&](int c) {
    const Quad h = load_quad(s.h[row] + c), w = load_quad(weight + c), b = load_quad(bias + c);
    Quad gate, a;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      gate.v[i] = sigmoid((h.v[i] - of_h.mean) * of_h.rstd * w.v[i] + b.v[i]);
      a.v[i] = h.v[i] * gate.v[i];
    }
    store_quad(s.a[row] + c, a);
    if constexpr (kKeepsGate) store_quad(s.gh[row] + c, gate);
  });
  hstu::cuda::wait_for_copy_groups<0>();
  __syncthreads();
  return of_h;
}

// z = a W2 + b2: result(r, c, elements c and c + 1 of row r).
template <typename Result>
__device__ void compute_result(const Problem& p, const Arrays& s, const Result& result) {
  const float* const bias2 = s.vector(p, kMlpBias2);
  multiply(s.thread, s.a, p.hidden, s.weight2, p.out, [&](int r, int c, float2 sum) {
    const float2 bias = *reinterpret_cast<const float2*>(bias2 + c);
    result(r, c, float2{sum.x + bias.x, sum.y + bias.y});
  });
}

}  // namespace hstu::kernels::cuda::mlp_tile
