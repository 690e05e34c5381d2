#include "hstu/model/group_batch.h"

#include <array>
#include <bit>
#include <numeric>
#include <span>

#include "hstu/ops/exchange.h"

namespace hstu {
namespace {

// What the ranks of a group tell each other first.
struct Counts {
  std::vector<std::int64_t> tokens, wanted, samples;  // (ranks)
  std::vector<double> scales;                         // (ranks)
  bool any_contexts = false, any_targets = false;
};

Counts counts_of(const Group& group, const std::array<std::int64_t, 6>& mine, const Context& context) {
  Counts counts;
  std::vector<std::int64_t> all;
  if (context.memory->dry() != nullptr) {  // a plan assumes that the others have as much
    for (int rank = 0; rank < group.size(); ++rank) all.insert(all.end(), mine.begin(), mine.end());
  } else {
    group.host.enter("tokens of a tensor group");
    all = group.host.all_gather(std::span<const std::int64_t>(mine));
  }
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    counts.tokens.push_back(all[at]);
    counts.wanted.push_back(all[at + 1]);
    counts.samples.push_back(all[at + 2]);
    counts.scales.push_back(std::bit_cast<double>(all[at + 3]));
    counts.any_contexts = counts.any_contexts || all[at + 4] != 0;
    counts.any_targets = counts.any_targets || all[at + 5] != 0;
  }
  return counts;
}

std::int64_t before(const std::vector<std::int64_t>& counts, const Group& group) {
  return std::accumulate(counts.begin(), counts.begin() + group.rank(), std::int64_t{0});
}

// The offsets (B + 1) of all ranks' samples from those of this rank's.
Tensor gathered_offsets(const Tensor& offsets, const std::vector<std::int64_t>& of_ranks,
                        const Counts& counts, const Group& group, const Context& context) {
  std::vector<std::int64_t> rows = counts.samples;
  ++rows.back();  // the end
  const bool is_last = group.rank() + 1 == group.size();
  return ops::gathered_places(offsets.row_range(0, offsets.size() - (is_last ? 0 : 1)),
                              before(of_ranks, group), rows, group, context);
}

Tensor gathered(const Tensor& x, const std::vector<std::int64_t>& rows, const Group& group,
                const Context& context) {
  return x.defined() ? ops::gathered_rows(x, rows, group, context) : Tensor();
}

// A number for each sample, which some ranks have: the others' samples have 0 of what it counts.
Tensor gathered_numbers(const Tensor& x, bool any, const Counts& counts, const Group& group,
                        const Context& context) {
  if (!any) return {};
  const std::int64_t mine = counts.samples[static_cast<std::size_t>(group.rank())];
  return ops::gathered_rows(x.defined() ? x : Tensor::zeros({mine}, DType::i32, context), counts.samples,
                            group, context);
}

// The scale that all ranks with tokens have; else one for each sample.
void set_scale(StackTokens& batch, const Counts& counts, DType type, const Context& context) {
  bool same = true, is_set = false;
  for (std::size_t rank = 0; rank < counts.scales.size(); ++rank) {
    if (counts.tokens[rank] == 0) continue;
    same = same && (!is_set || counts.scales[rank] == batch.scale);
    if (!is_set) batch.scale = counts.scales[rank];
    is_set = true;
  }
  if (same) return;
  batch.scale = 1;
  const std::int64_t samples = std::accumulate(counts.samples.begin(), counts.samples.end(), std::int64_t{0});
  Tensor of_samples = Tensor::empty({samples}, type == DType::f64 ? DType::f64 : DType::f32);
  with_float_type(of_samples.dtype(), [&]<typename T>() {
    T* next = of_samples.mutable_data<T>();
    for (std::size_t rank = 0; rank < counts.scales.size(); ++rank)
      for (std::int64_t s = 0; s < counts.samples[rank]; ++s) *next++ = static_cast<T>(counts.scales[rank]);
  });
  batch.mask.sample_scale = of_samples.copy(context);
}

}  // namespace

GroupBatch gather_batch(const Group& group, const StackTokens& mine, std::int64_t tokens, DType type,
                        const Context& context) {
  const auto& [all, wanted, mask, scale] = mine;
  require(mask.keys == nullptr, "keys of earlier tokens with heads that ranks share");
  require(!mask.sample_scale.defined(), "samples of one rank have one scale");
  const bool some = wanted.rows.defined();  // else all are wanted
  const Counts counts = counts_of(
      group,
      {tokens, some ? wanted.rows.size() : tokens, all.offsets.size() - 1, std::bit_cast<std::int64_t>(scale),
       mask.contexts.defined() ? 1 : 0, mask.targets.defined() ? 1 : 0},
      context);
  GroupBatch batch;
  const auto of_tokens = [&](const Tensor& x) { return gathered(x, counts.tokens, group, context); };
  batch.tokens.all = {.rows = {},
                      .offsets = gathered_offsets(all.offsets, counts.tokens, counts, group, context),
                      .names = of_tokens(all.names),
                      .query_time = of_tokens(all.query_time),
                      .key_time = of_tokens(all.key_time)};
  batch.every_layer = {&group, counts.tokens, counts.tokens, {}};
  batch.tokens.wanted = batch.tokens.all;
  batch.last_layer = batch.every_layer;
  if (some) {
    const auto of_wanted = [&](const Tensor& x) { return gathered(x, counts.wanted, group, context); };
    batch.tokens.wanted = {.rows = ops::gathered_places(wanted.rows, before(counts.tokens, group),
                                                        counts.wanted, group, context),
                           .offsets = gathered_offsets(wanted.offsets, counts.wanted, counts, group, context),
                           .names = of_wanted(wanted.names),
                           .query_time = of_wanted(wanted.query_time),
                           .key_time = {}};
    batch.last_layer = {&group, counts.tokens, counts.wanted, wanted.rows};
  }
  batch.tokens.mask = {
      .mask = mask.mask,
      .contexts = gathered_numbers(mask.contexts, counts.any_contexts, counts, group, context),
      .targets = gathered_numbers(mask.targets, counts.any_targets, counts, group, context),
      .keys = nullptr};
  batch.tokens.scale = scale;
  set_scale(batch.tokens, counts, type, context);
  return batch;
}

}  // namespace hstu
