#include "hstu/batching/batch_builder.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/batching/distinct_ids.h"

namespace hstu {
namespace {

// Index of the user that owns `position`; neighbours in a batch mostly share theirs.
std::int64_t find_user(const Dataset& dataset, std::int64_t position, std::int64_t guess) {
  const auto offsets = dataset.user_offsets().subspan(static_cast<std::size_t>(guess), 2);
  return position >= offsets[0] && position < offsets[1] ? guess : dataset.user_at(position);
}

// Replaces numbers of first appearance by places in the ascending order.
void renumber(std::vector<std::int32_t>& items, const std::vector<std::int32_t>& place) {
  for (std::int32_t& item : items) item = place[static_cast<std::size_t>(item)];
}

}  // namespace

BatchBuilder::BatchBuilder(const Dataset& dataset, const DataOptions& options)
    : dataset_(dataset),
      rule_(resolve_history(options, dataset.manifest())),
      features_(dataset, options.contextual),
      label_bit_(dataset.manifest().label_bit()) {
  for (const std::string& name : options.attributes) attributes_.push_back(&dataset.attribute(name));
}

Batch BatchBuilder::build(std::span<const std::int64_t> positions) const {
  Batch batch;
  const std::size_t samples = positions.size();
  batch.samples = static_cast<std::int64_t>(samples);
  batch.position.assign(positions.begin(), positions.end());
  batch.candidate_time.resize(samples);
  batch.label.resize(samples);
  batch.user.resize(samples);
  batch.context.assign(features_.size(), std::vector<std::int64_t>(samples));

  std::vector<std::int64_t> user_starts(samples);
  std::int64_t user = 0;
  for (std::size_t b = 0; b < samples; ++b) {
    const std::int64_t position = positions[b];
    require(position >= 0 && position < dataset_.events(), "expected a position in [0, {}), found {}",
            dataset_.events(), position);
    user = find_user(dataset_, position, user);
    user_starts[b] = dataset_.user_offsets()[static_cast<std::size_t>(user)];
    batch.user[b] = dataset_.user_ids()[static_cast<std::size_t>(user)];
    batch.candidate_time[b] = dataset_.time()[position];
    batch.label[b] = (dataset_.action()[static_cast<std::size_t>(position)] & label_bit_) != 0 ? 1.0f : 0.0f;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      batch.context[f][b] = features_.value(f, batch.user[b], position);
    }
  }
  add_histories(batch, user_starts);

  batch.attributes.reserve(attributes_.size());
  for (const MappedColumn* attribute : attributes_) {
    std::vector<std::int64_t>& ids = batch.attributes.emplace_back();
    ids.reserve(batch.items.size());
    for (const std::int64_t item : batch.items) ids.push_back(attribute_of(*attribute, item));
  }
  return batch;
}

void BatchBuilder::add_histories(Batch& batch, std::span<const std::int64_t> user_starts) const {
  const std::size_t samples = user_starts.size();
  std::size_t most = 0;
  for (std::size_t b = 0; b < samples; ++b) {
    most += static_cast<std::size_t>(std::min(rule_.longest, batch.position[b] - user_starts[b]));
  }
  batch.history_item.reserve(most);
  batch.history_action.reserve(most);
  batch.history_time.reserve(most);
  batch.history_offsets.reserve(samples + 1);
  batch.history_offsets.push_back(0);
  batch.candidate_item.reserve(samples);

  HistoryGatherer gatherer(dataset_.action(), rule_);
  DistinctIds distinct;
  for (std::size_t b = 0; b < samples; ++b) {
    for (const std::int64_t p : gatherer.gather(user_starts[b], batch.position[b])) {
      batch.history_item.push_back(distinct.insert(dataset_.item()[p]));
      const std::uint8_t action = dataset_.action()[static_cast<std::size_t>(p)];
      batch.history_action.push_back(static_cast<std::uint8_t>(action & ~kRankableBit));
      batch.history_time.push_back(dataset_.time()[p]);
    }
    batch.history_offsets.push_back(static_cast<std::int64_t>(batch.history_item.size()));
    batch.candidate_item.push_back(distinct.insert(dataset_.item()[batch.position[b]]));
  }
  DistinctIds::Sorted sorted = distinct.sorted();
  batch.items = std::move(sorted.ids);
  renumber(batch.history_item, sorted.place);
  renumber(batch.candidate_item, sorted.place);
}

}  // namespace hstu
