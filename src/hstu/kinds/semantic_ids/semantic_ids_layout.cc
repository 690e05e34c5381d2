#include "hstu/kinds/semantic_ids/semantic_ids_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "hstu/model/draws.h"

namespace hstu {
namespace {

using namespace semantic_ids;

constexpr std::int64_t kNoCodes = -1;

// Of each distinct item: its index among the codes, or kNoCodes.
std::vector<std::int64_t> indices_of(const Samples& samples, const ItemCodes& codes) {
  std::vector<std::int64_t> index;
  index.reserve(samples.items.size());
  for (const std::int64_t item : samples.items) index.push_back(codes.find(item).value_or(kNoCodes));
  return index;
}

// Item j of sample b: the events of its history, then its candidate.
std::size_t item_of(const Samples& samples, std::size_t b, std::int64_t j) {
  const std::int64_t event = samples.history_offsets[b] + j;
  return static_cast<std::size_t>(
      event < samples.history_offsets[b + 1]
          ? samples.history_item[static_cast<std::size_t>(event)]
          : samples.candidate_item[static_cast<std::size_t>(samples.candidate_begin(b))]);
}

void count_without_codes(const Samples& samples, std::span<const std::int64_t> index, Batch& batch) {
  BadIdCount bad{.feature = std::string(kCode)};
  for (std::size_t b = 0; b < static_cast<std::size_t>(samples.count); ++b) {
    const std::int64_t events = samples.history_offsets[b + 1] - samples.history_offsets[b];
    for (std::int64_t j = 0; j < events; ++j) {
      const std::size_t item = item_of(samples, b, j);
      if (index[item] != kNoCodes) continue;
      if (bad.occurrences++ > 0) continue;
      bad.first_id = samples.items[item];
      bad.first_user = samples.user[b], bad.first_position = samples.position[b];
    }
  }
  if (bad.occurrences > 0) batch.bad_ids.push_back(bad);
}

}  // namespace

// The tokens of all samples as they are found.
struct SemanticIdsLayout::Sequences {
  std::vector<std::int64_t> offsets{0}, name;
  std::vector<std::int32_t> index, bos, place;
  std::vector<std::int32_t> first_token;  // of each target: its BOS
  std::vector<std::int64_t> target;       // its index among the codes
  std::vector<float> weight;              // of its loss; empty: each 1

  void add(std::int32_t row, bool is_bos, std::int64_t at, std::int64_t position) {
    index.push_back(row);
    bos.push_back(is_bos ? 0 : -1);
    place.push_back(static_cast<std::int32_t>(at));
    name.push_back(token_name(position, at));
  }
};

SemanticIdsLayout::SemanticIdsLayout(std::shared_ptr<const ItemCodes> codes, CodeTargets targets,
                                     CodeHeads head)
    : codes_(std::move(codes)),
      targets_(targets),
      head_(head),
      events_(SampleFeatures({"item", std::numeric_limits<std::int64_t>::max()})) {}

void SemanticIdsLayout::lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const {
  events_.lay_out(samples, scratch, batch);
  const std::vector<std::int64_t> index = indices_of(samples, *codes_);
  count_without_codes(samples, index, batch);
  const auto ids = batch.add<std::int64_t>(ids_column(kCode), {codes_->rows()});
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  if (!samples.predicts_next_events) add_event_codes(samples, index, batch);
  if (samples.predicts_next_events || targets_ == CodeTargets::candidate) add_tokens(samples, index, batch);
}

void SemanticIdsLayout::add_tokens(const Samples& samples, std::span<const std::int64_t> index,
                                   Batch& batch) const {
  const std::int64_t levels = codes_->levels();
  const bool every = targets_ == CodeTargets::every_item, weighted = !samples.event_weight.empty();
  Sequences s;
  for (std::size_t b = 0; b < static_cast<std::size_t>(samples.count); ++b) {
    const std::int64_t n = samples.history_offsets[b + 1] - samples.history_offsets[b];
    const std::int64_t position = samples.position[b];
    for (std::int64_t j = 0; n > 0 && j <= n; ++j) {
      const std::int64_t item = index[item_of(samples, b, j)];
      if (j == n || (every && j > 0)) {
        if (item != kNoCodes) {
          s.first_token.push_back(static_cast<std::int32_t>(s.index.size()));
          s.target.push_back(item);
          if (weighted)
            s.weight.push_back(samples.event_weight[samples.event_begin(b) + static_cast<std::size_t>(j)]);
        }
        s.add(-1, true, j * (levels + 1) - 1, position);
      }
      for (std::int64_t h = 0; h < (j == n ? levels - 1 : levels); ++h) {
        const std::int64_t row =
            item == kNoCodes ? -1 : codes_->first_row(h) + codes_->tuple(item)[static_cast<std::size_t>(h)];
        s.add(static_cast<std::int32_t>(row), false, j * (levels + 1) + h, position);
      }
    }
    batch.longest = std::max(batch.longest, std::ssize(s.index) - s.offsets.back());
    s.offsets.push_back(std::ssize(s.index));
  }
  const auto put = [&]<typename T>(std::string_view column, const std::vector<T>& values) {
    std::ranges::copy(values, batch.add<T>(column, {std::ssize(values)}).begin());
  };
  batch.tokens = std::ssize(s.index);
  put(kCodeOffsets, s.offsets);
  put(index_column(kCode), s.index);
  put(kBos, s.bos);
  put(kPlace, s.place);
  put(kCodeName, s.name);
  add_targets(s, batch);
}

void SemanticIdsLayout::add_targets(const Sequences& s, Batch& batch) const {
  const std::int64_t levels = codes_->levels(), targets = std::ssize(s.target);
  batch.reserve(batch.slab().size() + 2 * Batch::column_bytes<std::int32_t>(levels * targets) +
                Batch::column_bytes<std::int64_t>(levels * targets) +
                Batch::column_bytes<float>(levels * std::ssize(s.weight)));
  const auto token = batch.add<std::int32_t>(kTargetToken, {levels, targets});
  const auto code = batch.add<std::int64_t>(kTargetCode, {levels, targets});
  const auto row = batch.add<std::int32_t>(kTargetRow, {levels, targets});
  std::iota(row.begin(), row.end(), 0);
  std::size_t at = 0;
  for (std::int64_t h = 0; h < levels; ++h) {
    const std::int64_t first = head_ == CodeHeads::shared ? codes_->first_row(h) : 0;
    for (std::size_t r = 0; r < s.target.size(); ++r, ++at) {
      token[at] = s.first_token[r] + static_cast<std::int32_t>(h);
      code[at] = first + codes_->tuple(s.target[r])[static_cast<std::size_t>(h)];
    }
  }
  if (s.weight.empty()) return;
  const auto weight = batch.add<float>(kTargetCodeWeight, {levels, targets});
  for (std::int64_t h = 0; h < levels; ++h) std::ranges::copy(s.weight, weight.begin() + h * targets);
}

void SemanticIdsLayout::add_event_codes(const Samples& samples, std::span<const std::int64_t> index,
                                        Batch& batch) const {
  const std::int64_t levels = codes_->levels(), events = samples.history_offsets.back();
  const auto rows = batch.add<std::int32_t>(kEventCodes, {events, levels});
  for (std::int64_t e = 0; e < events; ++e) {
    const std::int64_t item =
        index[static_cast<std::size_t>(samples.history_item[static_cast<std::size_t>(e)])];
    for (std::int64_t h = 0; h < levels; ++h)
      rows[static_cast<std::size_t>(e * levels + h)] = static_cast<std::int32_t>(
          item == kNoCodes ? -1 : codes_->first_row(h) + codes_->tuple(item)[static_cast<std::size_t>(h)]);
  }
}

}  // namespace hstu
