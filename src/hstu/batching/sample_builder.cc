#include "hstu/batching/sample_builder.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// Index of the user that owns `position`. Tries `guess` first, because consecutive positions mostly share it.
std::int64_t find_user(const Dataset& dataset, std::int64_t position, std::int64_t guess) {
  const UserEvents events = dataset.events_of(guess);
  for (std::size_t r = events.ranges(); r-- > 0;)
    if (events.range(r).contains(position)) return guess;
  return dataset.user_at(position);
}

// Replaces numbers in order of first appearance by ranks in ascending order.
void renumber(std::vector<std::int32_t>& items, const std::vector<std::int32_t>& place) {
  for (std::int32_t& item : items) item = place[static_cast<std::size_t>(item)];
}

}  // namespace

// The items that a positive is ranked among, of a catalogue that is small enough.
std::int64_t SampleBuilder::other_items(const std::vector<std::int64_t>& catalogue, std::int64_t most) {
  const std::int64_t others = std::ssize(catalogue) - 1;
  if (others > most) {
    fail_usage(
        "evaluation.negatives_from = \"all\": the dataset has {} other items and evaluation.negatives = {} "
        "is "
        "the most: raise it (up to 100,000; an item costs a token of each sample and about 60 bytes), take "
        "fewer samples (evaluation.max_samples), or rank among items that are drawn (\"popularity\")",
        others, most);
  }
  return std::max<std::int64_t>(1, others);
}

SampleBuilder::SampleBuilder(const Dataset& dataset, const DataOptions& options,
                             std::shared_ptr<const TrainingItems> items,
                             const std::vector<std::int64_t>& catalogue)
    : dataset_(dataset),
      data_(options),
      rule_(resolve_history(options, dataset.manifest())),
      features_(dataset, options.contextual),
      label_bit_(dataset.manifest().label_bit()),
      events_(dataset, options.events) {
  if (!options.same_second && options.predicts_next_events)
    fail_usage(
        "data.same_second = false: this model predicts every event of a history from those before it, "
        "also of its second: set true");
  for (const std::string& name : options.attributes) attributes_.emplace_back(dataset, name);
  if (options.catalogue.attributes)
    for (const AttributeOfItems& attribute : attributes_) of_catalogue_.emplace_back(attribute.of(catalogue));
  if (options.catalogue.any() && !catalogue.empty()) catalogue_.emplace(catalogue);
  require(!options.weighted || dataset.has_weights(), "{}: the dataset has no weights",
          dataset.folder().string());
  if (!draws_negatives() || items == nullptr) return;
  const bool all = options.negatives.from == NegativeSource::all;
  if (all) data_.negatives.per_positive = other_items(catalogue, options.negatives.per_positive);
  negatives_.emplace(dataset, options.negatives, std::move(items),
                     all ? catalogue : std::vector<std::int64_t>());
}

Samples SampleBuilder::build(std::span<const std::int64_t> positions,
                             std::span<const std::int64_t> batch) const {
  Samples samples;
  samples.batch = batch;
  SampleScratch once = scratch();
  build(positions, samples, once);
  samples.batch = {};  // which the caller may not keep
  return samples;
}

void SampleBuilder::build(std::span<const std::int64_t> positions, Samples& samples,
                          SampleScratch& scratch) const {
  find_candidates(positions, samples.draws, scratch);
  if (data_.catalogue.of_batch)
    find_batch_targets(samples.batch.empty() ? positions : samples.batch, scratch);
  build(scratch.candidates, samples, scratch);
}

void SampleBuilder::build(std::span<const Candidate> candidates, Samples& samples,
                          SampleScratch& scratch) const {
  samples.count = static_cast<std::int64_t>(candidates.size());
  samples.predicts_next_events = data_.predicts_next_events;
  scratch.numbers.clear();
  add_candidates(candidates, samples);
  add_histories(candidates, samples, scratch);
  add_items(samples, scratch);
}

UserEvents SampleBuilder::events_before(std::int64_t user, std::int64_t position) const {
  if (data_.same_second) return dataset_.events_before(user, position);
  return dataset_.events_before_time(dataset_.user_ids()[static_cast<std::size_t>(user)],
                                     dataset_.time()[position]);
}

Candidate SampleBuilder::anchor_at(std::int64_t position, std::int64_t& user) const {
  dataset_.checked(position);
  user = find_user(dataset_, position, user);
  return {.name = position,
          .is_anchor = true,
          .user = dataset_.user_ids()[static_cast<std::size_t>(user)],
          .item = dataset_.item()[position],
          .time = dataset_.time()[position],
          .label = (dataset_.action()[static_cast<std::size_t>(position)] & label_bit_) != 0 ? 1.0f : 0.0f,
          .before = events_before(user, position)};
}

// Of an event with several labels any of them makes it one.
bool SampleBuilder::is_positive(std::int64_t position) const {
  if (events_.wanted()) return events_.label(position) != 0;
  return (dataset_.action()[static_cast<std::size_t>(position)] & label_bit_) != 0;
}

void SampleBuilder::find_candidates(std::span<const std::int64_t> positions, const BatchDraws& draws,
                                    SampleScratch& scratch) const {
  std::vector<Candidate>& candidates = scratch.candidates;
  candidates.clear();
  require(negatives_ || !draws_negatives(), "anchors are built without items for their negatives");
  // Candidates refer to this memory, which so many negatives do not move.
  scratch.negatives.clear();
  if (negatives_)
    scratch.negatives.reserve(positions.size() * static_cast<std::size_t>(data_.negatives.per_positive));
  std::int64_t user = 0;
  for (const std::int64_t position : positions) {
    candidates.push_back(anchor_at(position, user));
    if (!negatives_ || !is_positive(position)) continue;
    const Candidate anchor = candidates.back();
    const std::size_t begin = scratch.negatives.size();
    negatives_->draw(draws, anchor, scratch.negatives);
    const auto drawn = std::span<const std::int64_t>(scratch.negatives).subspan(begin);
    if (share_histories()) {
      candidates.back().others = drawn;
      continue;
    }
    for (const std::int64_t item : drawn) {
      Candidate& negative = candidates.emplace_back(anchor);
      negative.item = item;
      negative.label = 0;
      negative.is_negative = true;
    }
  }
}

void SampleBuilder::draw_negatives(const BatchDraws& draws, std::int64_t position,
                                   std::vector<std::int64_t>& drawn) const {
  drawn.clear();
  std::int64_t user = 0;
  if (negatives_ && is_positive(position)) negatives_->draw(draws, anchor_at(position, user), drawn);
}

std::int64_t SampleBuilder::most_tokens(std::int64_t position) const {
  const std::int64_t tokens = most_tokens({.before = events_before(dataset_.user_at(position), position)});
  if (!draws_negatives() || !is_positive(position)) return tokens;
  const std::int64_t negatives = data_.negatives.per_positive;
  return share_histories() ? tokens + negatives * events_.tokens() : tokens * (1 + negatives);
}

std::int64_t SampleBuilder::most_tokens(const Candidate& candidate) const {
  return static_cast<std::int64_t>(features_.size()) +
         events_.tokens() *
             (std::min(candidate.before.size(), rule_.longest) + 1 + std::ssize(candidate.others));
}

std::int64_t SampleBuilder::examples(std::span<const std::int64_t> positions, SampleScratch& scratch) const {
  std::int64_t count = 0, user = 0;
  if (draws_negatives())
    for (const std::int64_t anchor : positions)
      count += is_positive(anchor) ? data_.negatives.per_positive : 0;
  if (data_.predicts_next_events) {
    for (const std::int64_t anchor : positions) {
      user = find_user(dataset_, anchor, user);
      count += std::ssize(scratch.gatherer.gather(events_before(user, anchor)));
    }
    return count;
  }
  if (!events_.wanted()) return count + static_cast<std::int64_t>(positions.size());
  for (const std::int64_t anchor : positions) {
    user = find_user(dataset_, anchor, user);
    const auto history = scratch.gatherer.gather(events_before(user, anchor));
    const auto scored = events_.candidates(static_cast<std::int64_t>(history.size()) + 1) - 1;
    for (const std::int64_t position : history.last(static_cast<std::size_t>(scored)))
      count += events_.rankable(position) ? 1 : 0;
    count += events_.rankable(anchor) ? 1 : 0;
  }
  return count;
}

TokenEvents SampleBuilder::tokens_of(const EventColumns& history) const {
  TokenEvents events{.item = history.item, .time = history.time, .action = history.action, .action_id = {}};
  if (const std::optional<std::size_t> column = events_.action_column())
    events.action_id = history.context[*column];
  return events;
}

std::vector<std::int64_t> SampleBuilder::contexts_of(const Candidate& candidate) const {
  std::vector<std::int64_t> ids;
  for (std::size_t f = 0; f < features_.size(); ++f) ids.push_back(features_.value(f, candidate));
  return ids;
}

// Everything but the items.
void SampleBuilder::add_candidates(std::span<const Candidate> candidates, Samples& samples) const {
  const std::size_t count = candidates.size();
  samples.position.resize(count);
  samples.candidate_time.resize(count);
  samples.label.resize(count);
  samples.user.resize(count);
  samples.context.resize(features_.size());
  for (auto& ids : samples.context) ids.resize(count);
  for (std::size_t b = 0; b < count; ++b) {
    const Candidate& candidate = candidates[b];
    require(candidate.others.empty() || shares_contexts(),
            "candidates with contexts of their own share a history");
    samples.position[b] = candidate.name;
    samples.user[b] = candidate.user;
    samples.candidate_time[b] = candidate.time;
    samples.label[b] = candidate.label;
    for (std::size_t f = 0; f < features_.size(); ++f) samples.context[f][b] = features_.value(f, candidate);
  }
}

// Items get numbers in order of first appearance here.
void SampleBuilder::add_histories(std::span<const Candidate> candidates, Samples& samples,
                                  SampleScratch& scratch) const {
  const std::size_t count = candidates.size();
  samples.history_offsets.resize(count + 1);
  samples.history_offsets[0] = 0;
  samples.candidate_item.clear();
  samples.candidate_offsets.assign(1, 0);
  samples.event_action.clear();
  samples.event_label.clear();
  samples.event_rankable.clear();
  samples.event_weight.clear();
  samples.candidates.clear();
  samples.known.clear();
  samples.drawn_item.clear();
  samples.shared_item.clear();
  require(catalogue_ || !data_.catalogue.any(), "items are drawn without a catalogue");
  samples.catalogue_size = catalogue_ ? catalogue_->size() : 0;
  samples.frequencies = frequencies_ ? &*frequencies_ : nullptr;
  samples.catalogue_attributes = data_.catalogue.attributes ? &of_catalogue_ : nullptr;
  if (data_.catalogue.shared > 0) draw_shared(samples, scratch);
  const std::optional<CatalogueDraws>& own = data_.catalogue.of_batch ? scratch.batch_targets : catalogue_;
  if (data_.catalogue.own > 0 && own)
    scratch.drawn.assign(static_cast<std::size_t>(own->size()), DistinctIds::kAbsent);
  const std::uint8_t* const actions = dataset_.action().data();
  std::size_t tokens = 0;
  for (std::size_t b = 0; b < count; ++b) {
    const Candidate& candidate = candidates[b];
    const auto history = scratch.gatherer.gather(candidate.before);
    samples.known.push_back(candidate.known);
    // Sizes only grow here, so that elements are set to zero only once and not for each batch.
    const std::size_t needed = tokens + history.size();
    if (samples.history_item.size() < needed) {
      samples.history_item.resize(needed);
      samples.history_action.resize(needed);
      samples.history_time.resize(needed);
    }
    number_items(candidate.before, history, samples.history_item.data() + tokens, scratch);
    std::uint8_t* const action = samples.history_action.data() + tokens;
    for (std::size_t i = 0; i < history.size(); ++i) {
      action[i] = static_cast<std::uint8_t>(actions[history[i]] & ~kRankableBit);
    }
    std::int64_t* const time = samples.history_time.data() + tokens;
    dataset_.time().visit([&](const auto* times) {
      for (std::size_t i = 0; i < history.size(); ++i)
        time[i] = +times[history[i]];  // + widens: an i1 is a number here, not a character
    });
    tokens = needed;
    samples.history_offsets[b + 1] = static_cast<std::int64_t>(tokens);
    samples.candidate_item.push_back(scratch.numbers.number(candidate.item));
    const std::size_t first = samples.candidate_item.size();
    samples.candidate_item.resize(first + candidate.others.size());
    scratch.numbers.distinct().insert(candidate.others, samples.candidate_item.data() + first);
    samples.candidate_offsets.push_back(std::ssize(samples.candidate_item));
    if (data_.catalogue.own > 0 && !history.empty())
      draw_own(*own, candidate, history.size(), samples, scratch);
    if (events_.wanted()) add_events(candidate, history, samples);
    if (data_.weighted) add_weights(candidate, history, samples);
  }
  samples.history_item.resize(tokens);
  samples.history_action.resize(tokens);
  samples.history_time.resize(tokens);
}

// The positions of a range are close to each other; the events of a history may be in several.
void SampleBuilder::number_items(const UserEvents& before, std::span<const std::int64_t> history,
                                 std::int32_t* numbers, SampleScratch& scratch) const {
  std::size_t begin = 0;
  for (std::size_t r = 0; r < before.ranges() && begin < history.size(); ++r) {
    const PositionRange range = before.range(r);
    std::size_t end = begin;
    if (r + 1 == before.ranges()) end = history.size();
    while (end < history.size() && range.contains(history[end])) ++end;
    scratch.numbers.number(dataset_.item(), range.begin, history.subspan(begin, end - begin),
                           numbers + begin);
    begin = end;
  }
}

// A request and a negative have no action, and nothing reads it: no score depends on the last action of a
// sample. Of a request's events it alone is an example, so that labels are not read.
void SampleBuilder::add_events(const Candidate& candidate, std::span<const std::int64_t> history,
                               Samples& samples) const {
  const bool anchor = candidate.is_anchor;
  const auto add = [&](std::int64_t position) {
    samples.event_action.push_back(events_.action(position));
    samples.event_label.push_back(anchor ? events_.label(position) : 0);
    samples.event_rankable.push_back(anchor && events_.rankable(position) ? 1 : 0);
  };
  for (const std::int64_t position : history) add(position);
  const bool of_event = anchor && !candidate.is_negative;
  if (of_event) add(candidate.name);
  const std::size_t events = samples.event_action.size() + (of_event ? 0 : 1) + candidate.others.size();
  samples.event_action.resize(events, 0);
  samples.event_label.resize(events, 0);
  samples.event_rankable.resize(events, 1);
  samples.candidates.push_back(static_cast<std::int32_t>(
      events_.candidates(static_cast<std::int64_t>(history.size()) + 1) + std::ssize(candidate.others)));
}

void SampleBuilder::add_weights(const Candidate& candidate, std::span<const std::int64_t> history,
                                Samples& samples) const {
  for (const std::int64_t position : history) samples.event_weight.push_back(dataset_.weight(position));
  samples.event_weight.insert(samples.event_weight.end(), 1 + candidate.others.size(),
                              dataset_.weight(candidate.name));
}

// The distinct items in ascending order, and the columns that depend only on them.
void SampleBuilder::add_items(Samples& samples, SampleScratch& scratch) const {
  const auto sorted = scratch.numbers.distinct().sorted();
  samples.items.resize(sorted.size());
  scratch.place.resize(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    samples.items[i] = sorted[i].id;
    scratch.place[static_cast<std::size_t>(sorted[i].number)] = static_cast<std::int32_t>(i);
  }
  renumber(samples.history_item, scratch.place);
  renumber(samples.candidate_item, scratch.place);
  renumber(samples.drawn_item, scratch.place);
  renumber(samples.shared_item, scratch.place);

  samples.attributes.resize(attributes_.size());
  for (std::size_t a = 0; a < attributes_.size(); ++a) {
    samples.attributes[a].resize(samples.items.size());
    for (std::size_t i = 0; i < samples.items.size(); ++i) {
      samples.attributes[a][i] = attributes_[a].of(samples.items[i]);
    }
  }
}

}  // namespace hstu
