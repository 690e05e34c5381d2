// What a SampleBuilder draws from catalogues, and from the targets of a batch.
#include <utility>
#include <vector>

#include "hstu/batching/distinct_ids.h"
#include "hstu/batching/sample_builder.h"

namespace hstu {

// What is drawn for a batch is the same in all of its parts.
void SampleBuilder::draw_shared(Samples& samples, SampleScratch& scratch) const {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(data_.catalogue.shared));
  catalogue_->draw_shared(samples.draws, drawn);
  for (const std::int64_t item : drawn) samples.shared_item.push_back(scratch.numbers.number(item));
}

// Every event of a sample but the first is a target, on whatever rank it is.
void SampleBuilder::find_batch_targets(std::span<const std::int64_t> batch, SampleScratch& scratch) const {
  DistinctIds& targets = scratch.targets;
  targets.clear();
  for (const std::int64_t anchor : batch) {
    const auto history = scratch.gatherer.gather(events_before(dataset_.user_at(anchor), anchor));
    if (history.empty()) continue;
    for (const std::int64_t position : history.subspan(1)) targets.insert(dataset_.item()[position]);
    targets.insert(dataset_.item()[anchor]);
  }
  std::vector<std::int64_t> items;
  for (const DistinctIds::Numbered& target : targets.sorted()) items.push_back(target.id);
  scratch.batch_targets.reset();
  if (!items.empty()) scratch.batch_targets.emplace(std::move(items));
}

void SampleBuilder::draw_own(const CatalogueDraws& from, const Candidate& candidate, std::size_t tokens,
                             Samples& samples, SampleScratch& scratch) const {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(data_.catalogue.own));
  std::size_t at = samples.drawn_item.size();
  samples.drawn_item.resize(at + tokens * drawn.size());
  for (std::size_t t = 0; t < tokens; ++t) {
    from.draw_own(samples.draws, candidate.name, static_cast<std::int64_t>(t), drawn);
    for (const std::int64_t i : drawn) {
      std::int32_t& number = scratch.drawn[static_cast<std::size_t>(i)];
      if (number == DistinctIds::kAbsent) number = scratch.numbers.number(from.item(i));
      samples.drawn_item[at++] = number;
    }
  }
}

}  // namespace hstu
