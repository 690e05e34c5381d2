#include "hstu/attention/checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/mask.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostStride = std::int64_t{1} << 40;

std::int64_t element_bytes(AttentionType type) {
  return type == AttentionType::fp64 ? 8 : type == AttentionType::fp32 ? 4 : 2;
}

void check_address(const char* name, const void* address, std::int64_t alignment) {
  check(reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(alignment) == 0,
        "attention: {} must be aligned to {} bytes, found the address {}", name, alignment,
        fmt::ptr(address));
}

void check_not_negative(const char* name, std::int64_t value) {
  check(value >= 0, "attention: {} must not be negative, found {}", name, value);
}

// `list` of `name` against the number of rows that it divides.
void check_ascending(const AttentionProblem& p, const char* name, const std::int64_t* list,
                     const char* rows_name, std::int64_t rows) {
  check(list[0] >= 0, "attention: {}[0] must not be negative, found {}", name, list[0]);
  for (std::int64_t b = 0; b < p.samples; ++b) {
    check(list[b] <= list[b + 1], "attention: {} must not decrease, found {}[{}] = {} and {}[{}] = {}", name,
          name, b, list[b], name, b + 1, list[b + 1]);
  }
  check(list[p.samples] <= rows, "attention: {}[{}] is {}, but {} is {}", name, p.samples, list[p.samples],
        rows_name, rows);
}

void check_bias(const AttentionProblem& p) {
  const RelativeBias& bias = p.bias;
  if (!bias.any()) return;
  const std::int64_t alignment = p.type == AttentionType::fp64 ? 8 : 4;
  check(bias.tables == 1 || bias.tables == p.heads,
        "attention: expected bias tables of 1 or {} heads, found {}", p.heads, bias.tables);
  check(bias.position_table == nullptr || bias.positions >= 1,
        "attention: expected a position table of 1 position or more, found {}", bias.positions);
  check(
      bias.time_table == nullptr || (bias.query_time != nullptr && bias.key_time != nullptr &&
                                     (bias.thresholds != nullptr || bias.buckets == 0) && bias.buckets >= 0),
      "attention: a time table needs times of queries and keys, and {} thresholds", bias.buckets);
  check_address("position_table", bias.position_table, alignment);
  check_address("time_table", bias.time_table, alignment);
}

void check_past(const AttentionProblem& p) {
  const CachedKeys& past = p.past;
  if (!past.any()) return;
  check(past.v != nullptr && past.pages != nullptr && past.page_offsets != nullptr &&
            past.lengths != nullptr && past.past_of != nullptr,
        "attention: cached keys need values, pages, page_offsets, lengths and past_of");
  check(past.page_tokens >= 1 && past.pasts >= 1,
        "attention: expected pages of 1 token or more and a past, found {} and {}", past.page_tokens,
        past.pasts);
  check(p.bias.time_table == nullptr || past.time != nullptr,
        "attention: a time table needs times of cached keys");
}

}  // namespace

void check_input(const AttentionProblem& p, const char* name, const AttentionInput& rows) {
  check(rows.row_stride >= 0 && rows.head_stride >= 0,
        "attention: {}: strides must not be negative, found {} and {}", name, rows.row_stride,
        rows.head_stride);
  check(rows.row_stride < kMostStride && rows.head_stride < kMostStride,
        "attention: {}: strides must be below 2^40, found {} and {}", name, rows.row_stride,
        rows.head_stride);
  check_address(name, rows.data, element_bytes(p.type));
}

void check_attention(const AttentionProblem& p) {
  check_not_negative("samples", p.samples);
  check_not_negative("tokens", p.tokens);
  check_not_negative("queries", p.queries);
  check_not_negative("longest", p.longest);
  check(p.heads >= 1, "attention: expected 1 head or more, found {} heads", p.heads);
  check(p.head_dim >= 1, "attention: expected a head size of 1 or more, found {}", p.head_dim);
  check(p.mask.left >= -1 && p.mask.right >= -1,
        "attention: windows are -1 (unlimited) or more, found {} and {}", p.mask.left, p.mask.right);
  check(p.mask.target_group >= 1, "attention: expected a target group of 1 or more, found {}",
        p.mask.target_group);
  check(p.mask.hidden_period >= 0 && p.mask.hidden_phase >= 0 &&
            (p.mask.hidden_period == 0 || p.mask.hidden_phase < p.mask.hidden_period),
        "attention: expected a hidden phase below the hidden period, found {} and {}", p.mask.hidden_phase,
        p.mask.hidden_period);
  check(p.dropout.rate >= 0 && p.dropout.rate < 1,
        "attention: expected a rate of dropout in [0, 1), found {}", p.dropout.rate);
  check_bias(p);
  check_past(p);
  check(std::isfinite(p.scale) && std::isfinite(p.alpha),
        "attention: alpha and scale must be finite, found {} and {}", p.alpha, p.scale);
  check_input(p, "q", p.q);
  check_input(p, "k", p.k);
  check_input(p, "v", p.v);
  check_address("offsets", p.offsets, 8);
  check_address("query_offsets", p.query_offsets, 8);
  check_address("query_first", p.query_first, 4);
  check(p.query_first == nullptr || p.query_offsets != nullptr, "attention: query_first needs query_offsets");
  check_address("contexts", p.contexts, 4);
  check_address("targets", p.targets, 4);
  check_address("sample_scale", p.sample_scale, p.type == AttentionType::fp64 ? 8 : 4);
}

void check_attention_on_gpu(const AttentionProblem& p) {
  check_attention(p);
  check(p.type != AttentionType::fp64, "attention: no GPU kernel computes in fp64: use fp32, or the CPU");
  const std::int64_t rows = std::max(p.tokens, p.query_rows());
  check(rows < std::numeric_limits<std::int32_t>::max() - 1024 && p.samples < (1 << 30),
        "attention: at most 2^31 tokens and 2^30 samples in one call, found {} and {}; split the batch", rows,
        p.samples);
  check(p.heads < cuda::kMostHeads, "attention: expected 1 to {} heads, found {}", cuda::kMostHeads - 1,
        p.heads);
  check(p.head_dim <= cuda::kPlainHeadDim, "attention: expected a head size of 1 to {}, found {}",
        cuda::kPlainHeadDim, p.head_dim);
  check(rows * p.heads < (std::int64_t{1} << 33),
        "attention: {} tokens times {} heads is too much for one call; split the batch", rows, p.heads);
  check(p.bias.buckets <= cuda::kMostBuckets && p.bias.positions < (1 << 30) / p.heads,
        "attention: a bias on a GPU has at most {} thresholds and fewer than {} positions, found {} and {}",
        cuda::kMostBuckets, (1 << 30) / p.heads, p.bias.buckets, p.bias.positions);
  const auto alpha = static_cast<float>(p.alpha), scale = static_cast<float>(p.scale);
  check(std::isfinite(alpha) && std::isfinite(scale) && (alpha == 0 || std::abs(alpha) >= 1e-30f),
        "attention: alpha and scale must be finite in fp32 and alpha 0 or at least 1e-30, found {} and {}",
        p.alpha, p.scale);
}

// Two vectors that are `dt` rows and `dh` heads apart share an element when their distance is below D. Of one
// number of heads, the rows that come nearest are those on both sides of dh * head_stride / row_stride.
void check_output(const AttentionProblem& p, const char* name, const AttentionRows& output,
                  std::int64_t rows) {
  check_input(p, name, output);
  const auto is_apart = [&](std::int64_t dt, std::int64_t dh) {
    return (dt == 0 && dh == 0) || dt >= rows ||
           std::abs(dh * output.head_stride - dt * output.row_stride) >= p.head_dim;
  };
  bool is_distinct = is_apart(1, 0);
  for (std::int64_t dh = 0; dh < p.heads && rows > 0; ++dh) {
    const std::int64_t nearest = output.row_stride > 0 ? dh * output.head_stride / output.row_stride : 0;
    is_distinct = is_distinct && is_apart(std::min(nearest, rows - 1), dh) && is_apart(nearest + 1, dh);
  }
  check(
      is_distinct,
      "attention: {}: rows share memory: {} rows of {} heads of {} with a row stride of {} and a head stride "
      "of {}",
      name, rows, p.heads, p.head_dim, output.row_stride, output.head_stride);
}

void check_scratch(const AttentionScratch& scratch, std::int64_t needed_bytes) {
  check(scratch.bytes >= needed_bytes, "attention: the workspace has {} bytes, {} are needed", scratch.bytes,
        needed_bytes);
  check(scratch.data != nullptr || needed_bytes == 0, "attention: the workspace is NULL, {} bytes are needed",
        needed_bytes);
  check_address("the workspace", scratch.data, kScratchAlignment);
}

void check_offsets(const AttentionProblem& p) {
  if (p.offsets == nullptr) {
    check(p.samples == 0, "attention: offsets is NULL, {} numbers are needed", p.samples + 1);
    return;
  }
  check_ascending(p, "offsets", p.offsets, "tokens", p.tokens);
  if (p.query_offsets != nullptr) check_ascending(p, "query_offsets", p.query_offsets, "queries", p.queries);
  for (std::int64_t b = 0; b < p.samples; ++b) {
    const std::int64_t tokens = p.offsets[b + 1] - p.offsets[b];
    check(tokens < kUnlimited, "attention: sample {} has {} tokens, at most {} are possible", b, tokens,
          kUnlimited - 1);
    check(p.longest == 0 || tokens <= p.longest, "attention: sample {} has {} tokens, but longest is {}", b,
          tokens, p.longest);
    if (p.query_offsets == nullptr) continue;
    const std::int64_t queries = p.query_offsets[b + 1] - p.query_offsets[b];
    check(queries <= tokens, "attention: sample {} has {} queries but {} tokens", b, queries, tokens);
    if (p.query_first == nullptr) continue;
    const std::int64_t first = p.query_first[b];
    check(first >= 0 && first + queries <= tokens,
          "attention: query_first[{}] is {}, expected 0 to {} ({} of {} tokens are queries)", b, first,
          tokens - queries, queries, tokens);
  }
}

void check_counts(const AttentionProblem& p) {
  for (std::int64_t b = 0; b < p.samples; ++b) {
    const std::int64_t tokens = p.offsets[b + 1] - p.offsets[b];
    const std::int64_t targets = p.targets == nullptr ? 0 : p.targets[b];
    check(targets >= 0 && targets <= tokens,
          "attention: targets[{}] is {}, expected 0 to {} (the sample's tokens)", b, targets, tokens);
    const std::int64_t contexts = p.contexts == nullptr ? 0 : p.contexts[b];
    check(contexts >= 0 && contexts <= tokens - targets,
          "attention: contexts[{}] is {}, expected 0 to {} (the sample's tokens that are not targets)", b,
          contexts, tokens - targets);
    if (p.sample_scale == nullptr) continue;
    const double scale = p.type == AttentionType::fp64 ? static_cast<const double*>(p.sample_scale)[b]
                                                       : static_cast<const float*>(p.sample_scale)[b];
    check(std::isfinite(scale), "attention: sample_scale[{}] is not finite: {}", b, scale);
  }
}

}  // namespace hstu
