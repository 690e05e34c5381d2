#include "hstu/batching/negatives.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// Rejected draws of a negative, after which the next allowed item is taken: from a drawn place on, in the
// order of ids.
constexpr std::int64_t kAttempts = 64;
constexpr std::int64_t kWalk = kAttempts;  // the number of the draw of that place

// Whether an event of a range has the item. Without an early end, so that it compares many at once.
bool has_item(const MappedColumn& column, PositionRange range, std::int64_t item) {
  return column.visit([&](const auto* elements) {
    constexpr std::int64_t kBlock = 256;
    for (std::int64_t block = range.begin; block < range.end; block += kBlock) {
      const std::int64_t block_end = std::min(range.end, block + kBlock);
      int found = 0;
      for (std::int64_t p = block; p < block_end; ++p)
        found |=
            static_cast<std::int64_t>(elements[p]) == item ? 1 : 0;  // NOLINT(bugprone-signed-char-misuse)
      if (found != 0) return true;
    }
    return false;
  });
}

}  // namespace

NegativeSampler::NegativeSampler(const Dataset& dataset, const NegativeOptions& options,
                                 std::shared_ptr<const TrainingItems> items,
                                 std::vector<std::int64_t> catalogue)
    : dataset_(dataset), options_(options), items_(std::move(items)), catalogue_(std::move(catalogue)) {
  require(items_ != nullptr, "negatives without the items of the training part");
}

std::int64_t NegativeSampler::propose(const BatchDraws& draws, const Candidate& anchor, std::int64_t slot,
                                      std::int64_t attempt) const {
  switch (options_.from) {
    case NegativeSource::popularity:
      return items_->item_of(draws.below(items_->positives(), anchor.name, slot, attempt));
    case NegativeSource::uniform:
      return items_->items()[static_cast<std::size_t>(
          draws.below(std::ssize(items_->items()), anchor.name, slot, attempt))];
    case NegativeSource::items_of_the_day: {
      const TrainingItems::Range range = items_->of_day(anchor.time);
      return items_->day_item(range.begin + draws.below(range.end - range.begin, anchor.name, slot, attempt));
    }
    case NegativeSource::all:
      break;
  }
  fail("unreachable");
}

bool NegativeSampler::allows(const Candidate& anchor, std::int64_t item) const {
  if (item == anchor.item) return false;
  if (!options_.exclude_seen) return true;
  for (std::size_t r = 0; r < anchor.before.ranges(); ++r)
    if (has_item(dataset_.item(), anchor.before.range(r), item)) return false;
  return true;
}

void NegativeSampler::take_all(const Candidate& anchor, std::vector<std::int64_t>& drawn) const {
  std::vector<std::int64_t> without{anchor.item};
  for (std::size_t r = 0; options_.exclude_seen && r < anchor.before.ranges(); ++r) {
    const PositionRange range = anchor.before.range(r);
    for (std::int64_t p = range.begin; p < range.end; ++p) without.push_back(dataset_.item()[p]);
  }
  std::sort(without.begin(), without.end());
  std::set_difference(catalogue_.begin(), catalogue_.end(), without.begin(), without.end(),
                      std::back_inserter(drawn));
}

void NegativeSampler::draw(const BatchDraws& draws, const Candidate& anchor,
                           std::vector<std::int64_t>& drawn) const {
  if (options_.from == NegativeSource::all) return take_all(anchor, drawn);
  const BatchDraws own = draws.of("negatives");
  const auto first = static_cast<std::ptrdiff_t>(drawn.size());
  const auto take = [&](std::int64_t item) {
    if (std::find(drawn.begin() + first, drawn.end(), item) != drawn.end() || !allows(anchor, item))
      return false;
    drawn.push_back(item);
    return true;
  };
  const std::int64_t items = std::ssize(items_->items());
  for (std::int64_t slot = 0; slot < options_.per_positive; ++slot) {
    bool taken = false;
    for (std::int64_t attempt = 0; attempt < kAttempts && !taken; ++attempt)
      taken = take(propose(own, anchor, slot, attempt));
    if (taken) continue;
    const std::int64_t start = own.below(items, anchor.name, slot, kWalk);
    for (std::int64_t i = 0; i < items && !taken; ++i)
      taken = take(items_->items()[static_cast<std::size_t>((start + i) % items)]);
    if (!taken) return;  // there is no other item
  }
}

}  // namespace hstu
