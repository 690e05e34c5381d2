#include "hstu/batching/batch_builder.h"

#include "hstu/base/error.h"

namespace hstu {
namespace {

// Index of the user that owns `position`; neighbours in a batch mostly share theirs.
std::int64_t find_user(const Dataset& dataset, std::int64_t position, std::int64_t guess) {
  const auto offsets = dataset.user_offsets().subspan(static_cast<std::size_t>(guess), 2);
  return position >= offsets[0] && position < offsets[1] ? guess : dataset.user_at(position);
}

// Replaces numbers of first appearance by places in the ascending order.
void renumber(BatchVector<std::int32_t>& items, const std::vector<std::int32_t>& place) {
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
  BatchScratch once = scratch();
  build(positions, batch, once);
  return batch;
}

void BatchBuilder::build(std::span<const std::int64_t> positions, Batch& batch, BatchScratch& scratch) const {
  batch.samples = static_cast<std::int64_t>(positions.size());
  batch.position.assign(positions.begin(), positions.end());
  scratch.numbers.clear();
  add_candidates(batch, scratch);
  add_histories(batch, scratch);
  add_items(batch, scratch);
}

// Everything but the items.
void BatchBuilder::add_candidates(Batch& batch, BatchScratch& scratch) const {
  const auto samples = static_cast<std::size_t>(batch.samples);
  batch.candidate_time.resize(samples);
  batch.label.resize(samples);
  batch.user.resize(samples);
  batch.context.resize(features_.size());
  for (auto& ids : batch.context) ids.resize(samples);
  scratch.user_starts.resize(samples);
  std::int64_t user = 0;
  for (std::size_t b = 0; b < samples; ++b) {
    const std::int64_t position = batch.position[b];
    require(position >= 0 && position < dataset_.events(), "expected a position in [0, {}), found {}",
            dataset_.events(), position);
    user = find_user(dataset_, position, user);
    scratch.user_starts[b] = dataset_.user_offsets()[static_cast<std::size_t>(user)];
    batch.user[b] = dataset_.user_ids()[static_cast<std::size_t>(user)];
    batch.candidate_time[b] = dataset_.time()[position];
    batch.label[b] = (dataset_.action()[static_cast<std::size_t>(position)] & label_bit_) != 0 ? 1.0f : 0.0f;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      batch.context[f][b] = features_.value(f, batch.user[b], position);
    }
  }
}

// Items get their numbers of first appearance here.
void BatchBuilder::add_histories(Batch& batch, BatchScratch& scratch) const {
  const auto samples = static_cast<std::size_t>(batch.samples);
  batch.history_offsets.resize(samples + 1);
  batch.candidate_item.resize(samples);
  batch.history_offsets[0] = 0;
  const std::uint8_t* const actions = dataset_.action().data();
  std::size_t tokens = 0;
  for (std::size_t b = 0; b < samples; ++b) {
    const std::int64_t anchor = batch.position[b];
    const auto history = scratch.gatherer.gather(scratch.user_starts[b], anchor);
    // Sizes only grow here, to what most batches need in the end: elements are set to zero once, not each
    // time.
    const std::size_t needed = tokens + history.size();
    if (batch.history_item.size() < needed) {
      batch.history_item.resize(needed);
      batch.history_action.resize(needed);
      batch.history_time.resize(needed);
    }
    scratch.numbers.number(dataset_.item(), scratch.user_starts[b], history,
                           batch.history_item.data() + tokens);
    std::uint8_t* const action = batch.history_action.data() + tokens;
    for (std::size_t i = 0; i < history.size(); ++i) {
      action[i] = static_cast<std::uint8_t>(actions[history[i]] & ~kRankableBit);
    }
    std::int64_t* const time = batch.history_time.data() + tokens;
    dataset_.time().visit([&](const auto* times) {
      for (std::size_t i = 0; i < history.size(); ++i) time[i] = static_cast<std::int64_t>(times[history[i]]);
    });
    tokens = needed;
    batch.history_offsets[b + 1] = static_cast<std::int64_t>(tokens);
    batch.candidate_item[b] = scratch.numbers.number(dataset_.item()[anchor]);
  }
  batch.history_item.resize(tokens);
  batch.history_action.resize(tokens);
  batch.history_time.resize(tokens);
}

// The distinct items in ascending order, and what depends on them alone.
void BatchBuilder::add_items(Batch& batch, BatchScratch& scratch) const {
  const auto sorted = scratch.numbers.distinct().sorted();
  batch.items.resize(sorted.size());
  scratch.place.resize(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    batch.items[i] = sorted[i].id;
    scratch.place[static_cast<std::size_t>(sorted[i].number)] = static_cast<std::int32_t>(i);
  }
  renumber(batch.history_item, scratch.place);
  renumber(batch.candidate_item, scratch.place);

  batch.attributes.resize(attributes_.size());
  for (std::size_t a = 0; a < attributes_.size(); ++a) {
    batch.attributes[a].resize(batch.items.size());
    for (std::size_t i = 0; i < batch.items.size(); ++i) {
      batch.attributes[a][i] = attribute_of(*attributes_[a], batch.items[i]);
    }
  }
}

}  // namespace hstu
