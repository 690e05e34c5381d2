// What a SampleBuilder draws from catalogues, and from the targets of a batch.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/batching/distinct_ids.h"
#include "hstu/batching/id_counts.h"
#include "hstu/batching/sample_builder.h"

namespace hstu {

// What is drawn for a batch is the same in all of its parts.
void SampleBuilder::draw_shared(Samples& samples, SampleScratch& scratch) const {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(data_.catalogue.shared));
  catalogue_->draw_shared(samples.draws, drawn);
  for (const std::int64_t item : drawn) samples.shared_item.push_back(scratch.numbers.number(item));
}

// Every event of a sample but the first is a target.
template <typename Body>
void SampleBuilder::each_target(std::int64_t anchor, SampleScratch& scratch, const Body& body) const {
  const auto history = history_of(anchor, scratch);
  if (history.empty()) return;
  for (const std::int64_t position : history.subspan(1)) body(dataset_.item()[position]);
  body(dataset_.item()[anchor]);
}

// Of all samples of the batch, on whatever rank they are.
void SampleBuilder::find_batch_targets(std::span<const std::int64_t> batch, SampleScratch& scratch) const {
  DistinctIds& targets = scratch.targets;
  targets.clear();
  for (const std::int64_t anchor : batch)
    each_target(anchor, scratch, [&](std::int64_t item) { targets.insert(item); });
  std::vector<std::int64_t> items;
  for (const DistinctIds::Numbered& target : targets.sorted()) items.push_back(target.id);
  scratch.batch_targets.reset();
  if (!items.empty()) scratch.batch_targets.emplace(std::move(items));
}

void SampleBuilder::count_targets(const AnchorList& training) {
  constexpr std::int64_t kBlockAnchors = 4096;
  std::vector<AnchorList::Window> blocks;
  for (std::int64_t w = 0; w < training.windows(); ++w) {
    const AnchorList::Window window = training.window(w);
    for (std::size_t begin = 0; begin < window.size(); begin += kBlockAnchors)
      blocks.push_back(window.subspan(begin, std::min<std::size_t>(kBlockAnchors, window.size() - begin)));
  }
  std::mutex mutex;
  IdCounts counts;
  parallel_blocks(std::ssize(blocks), 1, [&](std::int64_t block, std::int64_t) {
    SampleScratch once = scratch();
    IdCounts of_block;
    for (const std::int64_t anchor : blocks[static_cast<std::size_t>(block)])
      each_target(anchor, once, [&](std::int64_t item) { of_block.add(item); });
    const std::scoped_lock lock(mutex);
    counts.add(of_block);
  });
  auto [ids, times] = counts.sorted();
  frequencies_.emplace(std::move(ids), std::move(times));
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
