#include "hstu/objective/ranking_tally.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/batch_layout.h"

namespace hstu {
namespace {

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

// The samples of all ranks in the order of `places`, which may repeat: (samples) of the global batch.
RankingSamples gather_in_order(RankingSamples mine, std::span<const std::int64_t> places,
                               Communicator& comm) {
  if (comm.size() == 1) return mine;
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

// In the place of a rank's samples, one of whose scores is not finite: it shows all ranks that there is a
// text to exchange, which costs a batch of finite scores nothing.
RankingSamples marked() {
  RankingSamples samples;
  samples.add(std::numeric_limits<float>::quiet_NaN(), false, 0);
  return samples;
}

bool has_mark(const RankingSamples& samples) {
  return std::any_of(samples.probabilities().begin(), samples.probabilities().end(),
                     [](float p) { return std::isnan(p); });
}

// Of the first rank that has one, with its number; "" if none has.
std::string first_text(const std::string& mine, Communicator& comm) {
  const std::string line =
      mine.empty() ? "" : fmt::format("{} (rank {})\n", mine, comm.world_rank(comm.rank()));
  const std::vector<char> all = comm.all_gather(std::span<const char>(line));
  return {all.begin(), std::find(all.begin(), all.end(), '\n')};
}

}  // namespace

void RankingTally::add(const Batch& batch, const Tensor& outputs, const Stream& compute) {
  Part part{outputs, objective_.examples(batch), Event(compute.device()), {}};
  part.places = places_of(part.examples, batch);
  part.ready.record_later(compute);
  parts_.push_back(std::move(part));
}

std::string RankingTally::settle(const Stream& stream, Communicator& comm) {
  const std::size_t tasks = samples_.size();
  std::vector<RankingSamples> mine(tasks);
  std::vector<std::int64_t> places;
  std::string bad_output;
  try {
    for (const Part& part : parts_) {
      stream.wait(part.ready);
      const std::vector<float> probabilities =
          objective_.probabilities(part.logits, part.examples, stream, tasks, "event");
      const std::size_t rows = part.examples.user.size();
      const std::size_t labels = rows == 0 ? tasks : part.examples.label.size() / rows;
      require(tasks <= labels, "expected at most {} tasks, found {}", labels, tasks);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t k = 0; k < tasks; ++k)
          mine[k].add(probabilities[r * tasks + k], part.examples.label[r * labels + k] != 0,
                      part.examples.user[r]);
      places.insert(places.end(), part.places.begin(), part.places.end());
    }
  } catch (const NotFiniteError& error) {
    bad_output = error.what();
    mine.assign(tasks, marked());
    places.assign(1, 0);
  }
  parts_.clear();
  for (RankingSamples& of_task : mine) of_task = gather_in_order(std::move(of_task), places, comm);
  if (comm.size() > 1 && has_mark(mine.front())) bad_output = first_text(bad_output, comm);
  if (bad_output.empty())
    for (std::size_t k = 0; k < tasks; ++k) samples_[k].merge(mine[k]);
  return bad_output;
}

const RankingTally& as_ranking(const Tally& tally) {
  const auto* const found = dynamic_cast<const RankingTally*>(&tally);
  require(found != nullptr, "the predictions are those of another objective");
  return *found;
}

}  // namespace hstu
