// The sums of token gradients by row in one launch, for few tokens: sorting them takes longer.
//
// A block has some of the rows and up to 256 of their columns. Its threads read all tokens' indices at once,
// and the block's own tokens are put in order of their rows in shared memory. Eight columns of a token are of
// one lane, so that a group of neighbouring lanes has a token's columns in the block. The tokens are cut into
// as many pieces of one row each as there are groups, whatever the lengths of the rows. Groups of one warp
// and then warps with the same row add their sums. All of it has a fixed order.
#pragma once

#include <algorithm>

#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels::cuda {

inline constexpr int kTokenThreads = 512, kTokenWarps = kTokenThreads / 32;
inline constexpr int kTokensOfThread = 16, kMostTokens = kTokenThreads * kTokensOfThread;
inline constexpr int kRowsOfLane = 3, kMostRows = 32 * kRowsOfLane;  // of a block
inline constexpr unsigned kEveryLane = 0xffffffffu;

// How a sum is divided into blocks: block b of 2^row_bits has rows b, b + 2^row_bits and so on, because rows
// with many tokens are often neighbours.
struct TokenBlocks {
  int lane_bits = 0, row_bits = 0;  // 2^lane_bits lanes in a group
  std::int64_t strips = 1;          // of a group's columns

  std::int64_t count() const { return strips << row_bits; }
};
template <typename N>
TokenBlocks token_blocks(std::int64_t rows, std::int64_t width) {
  // One multiprocessor reads all tokens of a row, so that strips are narrow: 128 bytes. More than four of
  // them read the indices too often.
  constexpr std::int64_t kBytes = 128, kStrips = 4;
  // About 32 blocks of rows fill a GPU, as a launch has several sums.
  constexpr std::int64_t kRowBlocks = 32;
  TokenBlocks blocks;
  const auto columns = [&] { return kGroup << blocks.lane_bits; };
  while (blocks.lane_bits < 5 && columns() < width &&
         (columns() * std::int64_t{sizeof(N)} < kBytes || kStrips * columns() < width))
    ++blocks.lane_bits;
  blocks.strips = (width + columns() - 1) / columns();
  // A quarter of the groups at least are for second and further pieces of rows.
  const std::int64_t most = std::min(kMostRows, 3 * (kTokenThreads >> blocks.lane_bits) / 4);
  const auto row_blocks = [&] { return std::int64_t{1} << blocks.row_bits; };
  while (row_blocks() < rows && (row_blocks() < kRowBlocks || row_blocks() * most < rows)) ++blocks.row_bits;
  return blocks;
}
// Where every block may read every index: 1,024 blocks take no longer than the launches of a sort.
inline bool are_few_tokens(std::int64_t tokens, const TokenBlocks& blocks) {
  return tokens <= kMostTokens && blocks.count() <= 1024;
}

// One sum of a launch.
template <typename N, typename Out>
struct FewTokens {
  const N* dy = nullptr;  // (tokens, width), rows `stride` apart
  const std::int32_t* index = nullptr;
  int tokens = 0;
  std::int64_t width = 0, stride = 0;
  float factor = 1;
  Target<Out> rows;
  int count = 0;       // of rows
  bool whole = false;  // dy and rows (is_whole)
  TokenBlocks blocks;
  unsigned first = 0;  // block
};
inline constexpr int kMostSums = 8;
template <typename N, typename Out>
struct ManyFewTokens {
  FewTokens<N, Out> each[kMostSums];
  int count = 0;
  unsigned blocks = 0;
};

// What the threads of a block share. A block's rows and its list's places are counted from 0.
struct TokenLists {
  union {
    std::uint16_t place[kMostTokens];  // of a token of this block: its row and its number within row and warp
    float4 sums[2][kTokenThreads];     // of eight columns of a piece, once the list is complete
  };
  std::uint16_t token[kMostTokens];      // the list: row after row
  int before[kTokenWarps][kMostRows];    // tokens of the row that warps before this one have
  int begin[kMostRows + 1];              // of a row in the list
  int piece[kMostRows + 1], piece_size;  // first piece of a row; tokens of a piece
};
inline constexpr int kPlacesOfRow = 32 * kTokensOfThread;  // at most, of one warp
static_assert(kMostRows * kPlacesOfRow <= 65536);

__device__ inline int token_of_thread(int k) {
  return k * kTokenThreads + static_cast<int>(threadIdx.x);
}

// Bit k: the thread's token k is of a row with row % 2^row_bits == block.
__device__ inline unsigned own_tokens(const std::int32_t* index, int tokens, int count, int row_bits,
                                      unsigned block) {
  std::int32_t row[kTokensOfThread];
#pragma unroll
  for (int k = 0; k < kTokensOfThread; ++k) {
    const int t = token_of_thread(k);
    row[k] = t < tokens ? index[t] : -1;
  }
  const unsigned bits = 0x80000000u | ((1u << row_bits) - 1);  // with the sign: negative indices are no row
  unsigned own = 0;
  std::int32_t largest = -1;
#pragma unroll
  for (int k = 0; k < kTokensOfThread; ++k) {
    if ((static_cast<unsigned>(row[k]) & bits) == block) own |= 1u << k;
    largest = max(largest, row[k]);
  }
  if (largest >= count) __trap();  // the host's kernel throws
  return own;
}

// Numbers the tokens of each row within a warp. before: this warp's tokens.
__device__ inline void number_tokens(const std::int32_t* index, int row_bits, unsigned own,
                                     TokenLists& lists) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int* const counts = lists.before[warp];
#pragma unroll
  for (int i = 0; i < kRowsOfLane; ++i) counts[lane + 32 * i] = 0;
  __syncwarp();
  for (unsigned left = __reduce_or_sync(kEveryLane, own); left != 0; left &= left - 1) {
    const int k = __ffs(static_cast<int>(left)) - 1, t = token_of_thread(k);
    const bool is_own = (own >> k & 1) != 0;
    const int row = is_own ? index[t] >> row_bits : kMostRows;
    const unsigned same = __match_any_sync(kEveryLane, row), lower = same & ((1u << lane) - 1);
    int count = 0;
    if (is_own) {
      count = counts[row];
      lists.place[t] = static_cast<std::uint16_t>(row * kPlacesOfRow + count + __popc(lower));
    }
    __syncwarp();
    if (is_own && lower == 0) counts[row] = count + __popc(same);
    __syncwarp();
  }
}

// By one warp: where rows begin in the list, and how many pieces they have; all in all at most `groups`.
__device__ inline void divide_tokens(int groups, TokenLists& lists) {
  const int row0 = kRowsOfLane * static_cast<int>(threadIdx.x % 32);
  int size[kRowsOfLane] = {};
  constexpr int kAtOnce = 4;  // warps: all unrolled is much code, which takes time to load
#pragma unroll 1
  for (int first = 0; first < kTokenWarps; first += kAtOnce) {
    int counts[kAtOnce][kRowsOfLane];
#pragma unroll
    for (int w = 0; w < kAtOnce; ++w) {
#pragma unroll
      for (int i = 0; i < kRowsOfLane; ++i) counts[w][i] = lists.before[first + w][row0 + i];
    }
#pragma unroll
    for (int w = 0; w < kAtOnce; ++w) {
#pragma unroll
      for (int i = 0; i < kRowsOfLane; ++i) {
        lists.before[first + w][row0 + i] = size[i];
        size[i] += counts[w][i];
      }
    }
  }
  int all = 0, rows = 0;
#pragma unroll
  for (int i = 0; i < kRowsOfLane; ++i) {
    all += size[i];
    rows += size[i] > 0 ? 1 : 0;
  }
  const int upto = hstu::cuda::sum_up_to_lane(all), total = __shfl_sync(kEveryLane, upto, 31);
  // The last piece of each row may be small.
  const int others = groups - __reduce_add_sync(kEveryLane, rows), piece = (total + others - 1) / others;
  int pieces[kRowsOfLane], all_pieces = 0;
#pragma unroll
  for (int i = 0; i < kRowsOfLane; ++i) {
    pieces[i] = (size[i] + piece - 1) / piece;
    all_pieces += pieces[i];
  }
  int begin = upto - all, first = hstu::cuda::sum_up_to_lane(all_pieces) - all_pieces;
#pragma unroll
  for (int i = 0; i < kRowsOfLane; ++i) {
    lists.begin[row0 + i] = begin;
    lists.piece[row0 + i] = first;
    begin += size[i];
    first += pieces[i];
  }
  if (row0 + kRowsOfLane == kMostRows) {
    lists.begin[kMostRows] = begin;
    lists.piece[kMostRows] = first;
    lists.piece_size = piece;
  }
}

__device__ inline void list_tokens(unsigned own, TokenLists& lists) {
  const unsigned warp = threadIdx.x / 32;
  for (unsigned left = own; left != 0; left &= left - 1) {
    const int t = token_of_thread(__ffs(static_cast<int>(left)) - 1), place = lists.place[t],
              row = place / kPlacesOfRow;
    lists.token[lists.begin[row] + lists.before[warp][row] + place % kPlacesOfRow] =
        static_cast<std::uint16_t>(t);
  }
}

// The row of a piece: the last one of `rows` that does not begin after it, as rows without tokens have none.
__device__ inline int row_of_piece(int piece, int rows, const TokenLists& lists) {
  int row = 0;
  for (int step = rows > 1 ? 1 << (31 - __clz(rows - 1)) : 0; step > 0; step /= 2) {
    if (row + step < rows && lists.piece[row + step] <= piece) row += step;
  }
  return row;
}

// Adds columns [c, c + 8) of the gradients of `count` tokens.
template <bool kWhole, typename N>
__device__ void add_tokens(const N* dy, std::int64_t stride, std::int64_t width, std::int64_t c, float factor,
                           const std::uint16_t* token, int count, float (&sum)[kGroup]) {
  constexpr int kAtOnce = kWhole ? 4 : 2;  // loads under way
  for (int first = 0; first < count; first += kAtOnce) {
    const N* row[kAtOnce];
    Packed<N> columns[kAtOnce];  // zeros after the last token
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) row[i] = dy + std::int64_t{token[min(first + i, count - 1)]} * stride;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if constexpr (kWhole) {
        if (first + i < count) columns[i] = load_packed<true>(row[i], c, width);
      } else {  // without the call of load_packed
#pragma unroll
        for (int e = 0; e < kGroup; ++e)
          if (first + i < count && c + e < width) columns[i].elements[e] = row[i][c + e];
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      float v[kGroup];
      columns[i].unpack(v);
#pragma unroll
      for (int e = 0; e < kGroup; ++e) sum[e] = fmaf(factor, v[e], sum[e]);
    }
  }
}

// The sum of a group's piece; then the first group of each row in a warp has the sum of all, and stores it.
template <typename N, typename Out>
__device__ void add_pieces(const FewTokens<N, Out>& of, std::int64_t c, int rows, TokenLists& lists) {
  const int lane = static_cast<int>(threadIdx.x % 32), lane_bits = of.blocks.lane_bits,
            group = static_cast<int>(threadIdx.x) >> lane_bits, pieces = lists.piece[kMostRows];
  if ((static_cast<int>(threadIdx.x) - lane) >> lane_bits >= pieces) return;  // the whole warp
  int row = -1;
  float sum[kGroup] = {};
  if (group < pieces) {
    row = row_of_piece(group, rows, lists);
    const int begin = lists.begin[row] + (group - lists.piece[row]) * lists.piece_size,
              count = min(lists.piece_size, lists.begin[row + 1] - begin);
    if (c < of.width) {
      if (of.whole)
        add_tokens<true>(of.dy, of.stride, of.width, c, of.factor, lists.token + begin, count, sum);
      else
        add_tokens<false>(of.dy, of.stride, of.width, c, of.factor, lists.token + begin, count, sum);
    }
  }
  __syncwarp();
  for (int step = 1 << lane_bits; step < 32; step *= 2) {
    const int other = __shfl_down_sync(kEveryLane, row, step);
    const bool is_same = lane + step < 32 && other == row;
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
      const float v = __shfl_down_sync(kEveryLane, sum[e], step);
      if (is_same) sum[e] += v;
    }
  }
  lists.sums[0][threadIdx.x] = {sum[0], sum[1], sum[2], sum[3]};
  lists.sums[1][threadIdx.x] = {sum[4], sum[5], sum[6], sum[7]};
}

// The sum of a row: what its first piece and those at the beginning of further warps hold.
__device__ inline void add_warps(int row, int lane_bits, const TokenLists& lists, float (&sum)[kGroup]) {
  const int last = lists.piece[row + 1], lane = static_cast<int>(threadIdx.x) & ((1 << lane_bits) - 1),
            of_warp = 32 >> lane_bits;
  int next = lists.piece[row];
#pragma unroll 4
  for (; next < last; next = (next & -of_warp) + of_warp) {
    const int thread = (next << lane_bits) + lane;
    const float4 low = lists.sums[0][thread], high = lists.sums[1][thread];
    const float part[kGroup] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int e = 0; e < kGroup; ++e) sum[e] += part[e];
  }
}

template <typename N, typename Out>
__global__ void __launch_bounds__(kTokenThreads, 2)
    add_few_tokens(const __grid_constant__ ManyFewTokens<N, Out> sums_by_row) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ TokenLists lists;
  const FewTokens<N, Out>& of = of_block(sums_by_row);
  const int lane_bits = of.blocks.lane_bits, row_bits = of.blocks.row_bits;
  // Neighbouring blocks have the same rows, one strip of columns each.
  const auto strips = static_cast<unsigned>(of.blocks.strips);
  const unsigned at = blockIdx.x - of.first, block = at / strips, strip = at % strips;
  const int first_row = static_cast<int>(block);
  if (first_row >= of.count) return;
  const int rows = (of.count - first_row - 1 >> row_bits) + 1, groups = kTokenThreads >> lane_bits;
  const std::int64_t c =
      kGroup * ((std::int64_t{strip} << lane_bits) + (threadIdx.x & ((1u << lane_bits) - 1)));

  const unsigned own = own_tokens(of.index, of.tokens, of.count, row_bits, block);
  const bool any = __syncthreads_or(own != 0) != 0;
  if (any) {
    number_tokens(of.index, row_bits, own, lists);
    __syncthreads();
    if (threadIdx.x < 32) divide_tokens(groups, lists);
    __syncthreads();
    list_tokens(own, lists);
    __syncthreads();
    add_pieces(of, c, rows, lists);
    __syncthreads();
  }
  const int row = static_cast<int>(threadIdx.x) >> lane_bits;
  if (row >= rows || c >= of.width) return;
  float sum[kGroup] = {};
  if (any)
    add_warps(row, lane_bits, lists, sum);
  else if (of.rows.accumulate)
    return;
  const std::int64_t first = (first_row + (std::int64_t{row} << row_bits)) * of.width;
  if (of.whole)
    put_group<true>(of.rows, first, c, of.width, sum);
  else
    put_group<false>(of.rows, first, c, of.width, sum);
}

}  // namespace hstu::kernels::cuda
