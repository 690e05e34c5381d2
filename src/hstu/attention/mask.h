// Which keys a query sees, and which queries see a key, in one sample of a jagged batch. Every set is a few
// intervals, so that kernels skip, take whole, or mask a block by comparing a few numbers.
//
// The n tokens of a sample are contexts [0, c), history [c, h) and targets [h, n), where h is n minus the
// number of targets. Query i sees
//
//   if it is a context   every context and every history token;
//   if it is history     every context, and history j with i - left <= j <= i + right;
//   if it is a target    every context, history j >= h - left (a target's position is the end
//                        of the history), and in its own group of `group` targets those with
//                        j <= i + right.
//
// Causal: right = 0. Unlimited: kUnlimited. Without contexts and targets this is the band of a causal or
// local mask.
#pragma once

#include <cstdint>

#include "hstu/base/host_device.h"

namespace hstu {

inline constexpr std::int32_t kUnlimited = 1 << 29;  // a window; samples are shorter

struct SampleMask {
  std::int32_t n;            // tokens
  std::int32_t c;            // contexts, at most h
  std::int32_t h;            // contexts and history
  std::int32_t group;        // targets of one group, at least 1
  std::int32_t left, right;  // 0 .. kUnlimited
};

// [0, end0), [lo1, hi1) and [lo2, hi2); any of them may be empty.
struct Intervals {
  std::int32_t end0, lo1, hi1, lo2, hi2;
  HSTU_HOST_DEVICE bool contains(std::int32_t x) const {
    return (x < end0) | ((x >= lo1) & (x < hi1)) | ((x >= lo2) & (x < hi2));
  }
};

HSTU_HOST_DEVICE std::int32_t smaller(std::int32_t a, std::int32_t b) {
  return a < b ? a : b;
}
HSTU_HOST_DEVICE std::int32_t larger(std::int32_t a, std::int32_t b) {
  return a > b ? a : b;
}

// A window as mask.h counts: kUnlimited for any negative number.
HSTU_HOST_DEVICE std::int32_t window_of(std::int32_t window) {
  return window < 0 ? kUnlimited : smaller(window, kUnlimited);
}

// The mask of a sample of n tokens. Targets are clamped to the tokens, contexts to the tokens that are not
// targets.
HSTU_HOST_DEVICE SampleMask sample_mask(std::int32_t n, std::int32_t contexts, std::int32_t targets,
                                        std::int32_t group, std::int32_t left, std::int32_t right) {
  const std::int32_t h = n - larger(0, smaller(n, targets));
  return {n, larger(0, smaller(h, contexts)), h, group, window_of(left), window_of(right)};
}

// The first target of the group of target x (x >= h).
HSTU_HOST_DEVICE std::int32_t group_begin(const SampleMask& s, std::int32_t x) {
  return s.h + (x - s.h) / s.group * s.group;
}

// [0, prefix) and [lo, hi), as one interval where they touch.
HSTU_HOST_DEVICE Intervals prefix_and_band(std::int32_t prefix, std::int32_t lo, std::int32_t hi) {
  return lo <= prefix ? Intervals{0, 0, hi, 0, 0} : Intervals{prefix, lo, hi, 0, 0};
}

// Keys that query i of [0, n) sees: the intervals are disjoint and ascend. Every query sees itself.
HSTU_HOST_DEVICE Intervals keys_of_query(const SampleMask& s, std::int32_t i) {
  if (i < s.c) return {0, 0, s.h, 0, 0};
  if (i < s.h) return prefix_and_band(s.c, i - s.left, smaller(s.h, i + s.right + 1));
  Intervals keys = prefix_and_band(s.c, s.h - s.left, s.h);
  keys.lo2 = group_begin(s, i);
  keys.hi2 = smaller(smaller(s.n, keys.lo2 + s.group), i + s.right + 1);
  return keys;
}

// Queries that see key j of [0, n). All history after a history key that a target sees, sees that key too.
HSTU_HOST_DEVICE Intervals queries_of_key(const SampleMask& s, std::int32_t j) {
  if (j < s.c) return {0, 0, s.n, 0, 0};
  if (j < s.h) return prefix_and_band(s.c, j - s.right, j + s.left >= s.h ? s.n : j + s.left + 1);
  const std::int32_t begin = group_begin(s, j);
  return {0, larger(begin, j - s.right), smaller(s.n, begin + s.group), 0, 0};
}

// The intervals of a run of neighbouring rows: `any` contains everything that the intervals of some row
// contain (and perhaps more); the intervals of every row contain [full_lo, full_hi).
struct Coverage {
  Intervals any;
  std::int32_t full_lo, full_hi;
};

HSTU_HOST_DEVICE void hull(std::int32_t& lo, std::int32_t& hi, std::int32_t more_lo, std::int32_t more_hi) {
  if (more_lo >= more_hi) return;
  lo = lo < hi ? smaller(lo, more_lo) : more_lo;
  hi = larger(hi, more_hi);
}

HSTU_HOST_DEVICE void cover(Coverage& all, const Intervals& first, const Intervals& last) {
  all.any.end0 = larger(all.any.end0, larger(first.end0, last.end0));
  hull(all.any.lo1, all.any.hi1, first.lo1, first.hi1);
  hull(all.any.lo1, all.any.hi1, last.lo1, last.hi1);
  hull(all.any.lo2, all.any.hi2, first.lo2, first.hi2);
  hull(all.any.lo2, all.any.hi2, last.lo2, last.hi2);
  // Within one kind of token both ends of the band never decrease.
  all.full_lo = larger(all.full_lo, last.lo1);
  all.full_hi = smaller(all.full_hi, first.hi1);
}

// Keys of the queries [begin, end) of [0, n), begin < end.
HSTU_HOST_DEVICE Coverage keys_of_queries(const SampleMask& s, std::int32_t begin, std::int32_t end) {
  Coverage all{{0, 0, 0, 0, 0}, 0, s.n};
  if (begin < s.c) cover(all, keys_of_query(s, begin), keys_of_query(s, begin));
  if (larger(begin, s.c) < smaller(end, s.h))
    cover(all, keys_of_query(s, larger(begin, s.c)), keys_of_query(s, smaller(end, s.h) - 1));
  if (end > s.h) cover(all, keys_of_query(s, larger(begin, s.h)), keys_of_query(s, end - 1));
  return all;
}

// Queries of the keys [begin, end) of [0, n), begin < end.
HSTU_HOST_DEVICE Coverage queries_of_keys(const SampleMask& s, std::int32_t begin, std::int32_t end) {
  Coverage all{{0, 0, 0, 0, 0}, 0, s.n};
  if (begin < s.c) cover(all, queries_of_key(s, begin), queries_of_key(s, begin));
  if (larger(begin, s.c) < smaller(end, s.h))
    cover(all, queries_of_key(s, larger(begin, s.c)), queries_of_key(s, smaller(end, s.h) - 1));
  if (end > s.h) cover(all, queries_of_key(s, larger(begin, s.h)), queries_of_key(s, end - 1));
  return all;
}

// The blocks of `size` that touch the intervals, without repetition, in ascending order: step i of `steps` is
// block i below end0, then i + shift1 below end1, then i + shift2. (One load reads the four numbers, and
// there is no branch.)
struct alignas(16) BlockWalk {
  std::int32_t end0 = 0, end1 = 0, shift1 = 0, shift2 = 0;
  std::int32_t steps = 0;

  BlockWalk() = default;
  HSTU_HOST_DEVICE BlockWalk(const Intervals& x, std::int32_t size)
      : end0(x.end0 > 0 ? (x.end0 + size - 1) / size : 0), end1(end0) {
    std::int32_t done = end0;
    if (x.lo1 < x.hi1) {
      const std::int32_t begin = larger(done, x.lo1 / size);
      end1 = end0 + larger(0, (x.hi1 + size - 1) / size - begin);
      shift1 = begin - end0;
      done = larger(done, begin + end1 - end0);
    }
    steps = end1;
    if (x.lo2 < x.hi2) {
      const std::int32_t begin = larger(done, x.lo2 / size);
      steps = end1 + larger(0, (x.hi2 + size - 1) / size - begin);
      shift2 = begin - end1;
    }
  }
  HSTU_HOST_DEVICE std::int32_t count() const { return steps; }
  HSTU_HOST_DEVICE std::int32_t operator[](std::int32_t i) const {
    const std::int32_t a = end0, b = end1, one = shift1, two = shift2;
    return i + (i < a ? 0 : i < b ? one : two);
  }
  // The step of one of its blocks.
  HSTU_HOST_DEVICE std::int32_t step_of(std::int32_t block) const {
    return block < end0 ? block : block - shift1 < end1 ? block - shift1 : block - shift2;
  }
};

}  // namespace hstu
