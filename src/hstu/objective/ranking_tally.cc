#include "hstu/objective/ranking_tally.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/batching/batch_layout.h"

namespace hstu {
namespace {

// More than a global batch has.
constexpr std::int64_t kPlaces = std::int64_t{1} << 40;

// An example names its sample by the sample's event.
std::vector<std::int64_t> places_of(const Examples& examples, const Batch& batch) {
  std::vector<std::int64_t> places;
  if (batch.places.empty()) return places;
  std::unordered_map<std::int64_t, std::int64_t> place_of;
  const auto positions = batch.values<std::int64_t>(kPositionColumn);
  for (std::size_t b = 0; b < batch.places.size(); ++b) place_of.emplace(positions[b], batch.places[b]);
  for (const std::int64_t position : examples.position) places.push_back(place_of.at(position));
  return places;
}

// The samples of all ranks in the order of `places`, which may repeat.
RankingSamples gather_in_order(const RankingSamples& mine, std::span<const std::int64_t> places,
                               Communicator& comm) {
  const std::vector<float> probabilities = comm.all_gather(mine.probabilities());
  const std::vector<std::uint8_t> labels = comm.all_gather(mine.labels());
  const std::vector<std::int64_t> users = comm.all_gather(mine.groups());
  const std::vector<std::int64_t> place_of = comm.all_gather(places);
  std::vector<std::size_t> order(place_of.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place_of[a] < place_of[b]; });
  RankingSamples in_order;
  for (const std::size_t i : order) in_order.add(probabilities[i], labels[i] != 0, users[i]);
  return in_order;
}

// Those of all ranks, each of which sends the bins that are not empty.
LifetimeMetrics gather_sums(const LifetimeMetrics& mine, Communicator& comm) {
  std::vector<std::int64_t> bins;
  const auto positives = mine.auc.positives(), negatives = mine.auc.negatives();
  for (std::size_t b = 0; b < positives.size(); ++b) {
    if (positives[b] == 0 && negatives[b] == 0) continue;
    bins.insert(bins.end(), {static_cast<std::int64_t>(b), static_cast<std::int64_t>(positives[b]),
                             static_cast<std::int64_t>(negatives[b])});
  }
  const std::vector<std::int64_t> all_bins = comm.all_gather(std::span<const std::int64_t>(bins));
  std::vector<std::uint64_t> all_positives(positives.size()), all_negatives(negatives.size());
  for (std::size_t i = 0; i < all_bins.size(); i += 3) {
    const auto bin = static_cast<std::size_t>(all_bins[i]);
    all_positives[bin] += static_cast<std::uint64_t>(all_bins[i + 1]);
    all_negatives[bin] += static_cast<std::uint64_t>(all_bins[i + 2]);
  }
  LifetimeMetrics all{{}, {std::move(all_positives), std::move(all_negatives)}};
  const std::string state = mine.sums.state().dump() + "\n";
  const std::vector<char> states = comm.all_gather(std::span<const char>(state));
  for (auto at = states.begin(); at != states.end();) {
    const auto end = std::find(at, states.end(), '\n');
    all.sums.merge(PointwiseSums::from_state(Json::parse(at, end)));
    at = end + 1;
  }
  return all;
}

}  // namespace

void RankingTally::keep_latest(std::int64_t examples) {
  require(batches_ == 0 && examples > 0,
          "expected to keep examples from the first batch on, found {} after {}", examples, batches_);
  collected_.assign(samples_.size(), RankingSamples(examples));
  sums_.emplace();
}

void RankingTally::add(const Batch& batch, const Tensor& outputs, const Stream& compute) {
  Part part{outputs, objective_.examples(batch), Event(compute.device()), {}};
  part.places = places_of(part.examples, batch);
  part.ready.record_later(compute);
  parts_.push_back(std::move(part));
}

std::string RankingTally::collect(const Stream& stream) {
  const std::size_t tasks = samples_.size();
  std::vector<RankingSamples> batch(tasks);
  std::vector<std::int64_t> places;
  const std::vector<Part> parts = std::exchange(parts_, {});
  const std::int64_t first_place = batches_++ * kPlaces;
  try {
    for (const Part& part : parts) {
      stream.wait(part.ready);
      const std::vector<float> probabilities =
          objective_.probabilities(part.logits, part.examples, stream, tasks, "event");
      const std::size_t rows = part.examples.user.size();
      const std::size_t labels = rows == 0 ? tasks : part.examples.label.size() / rows;
      require(tasks <= labels, "expected at most {} tasks, found {}", labels, tasks);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t k = 0; k < tasks; ++k)
          batch[k].add(probabilities[r * tasks + k], part.examples.label[r * labels + k] != 0,
                       part.examples.user[r]);
      for (const std::int64_t place : part.places) places.push_back(first_place + place);
    }
  } catch (const NotFiniteError& error) {
    return error.what();
  }
  for (std::size_t k = 0; k < tasks; ++k) collected_[k].merge(batch[k]);
  order_.insert(order_.end(), places.begin(), places.end());
  if (!sums_) return "";
  sums_->add(batch.front());
  const auto kept = static_cast<std::size_t>(collected_.front().size());
  if (order_.size() > kept) order_.erase(order_.begin(), order_.end() - static_cast<std::ptrdiff_t>(kept));
  return "";
}

void RankingTally::share(Communicator& comm) {
  for (std::size_t k = 0; k < samples_.size(); ++k) {
    samples_[k].merge(comm.size() == 1 ? collected_[k] : gather_in_order(collected_[k], order_, comm));
    collected_[k].clear();
  }
  order_.clear();
  if (sums_ && comm.size() > 1) sums_ = gather_sums(*sums_, comm);
}

const RankingTally& as_ranking(const Tally& tally) {
  const auto* const found = dynamic_cast<const RankingTally*>(&tally);
  require(found != nullptr, "the predictions are those of another objective");
  return *found;
}

}  // namespace hstu
