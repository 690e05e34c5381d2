#include "hstu/synthetic/generate_truth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "hstu/base/json.h"
#include "hstu/metrics/auc.h"
#include "hstu/metrics/pointwise.h"
#include "hstu/synthetic/generate_signal.h"

namespace hstu {
namespace {

constexpr double kPrior = 10;  // listens with the global rate, added to every rate
constexpr std::size_t kDropAt = 1 << 20;

double logit(double probability) {
  return std::log(probability / (1 - probability));
}

// probabilities, labels: (n).
Score score(std::span<const float> probabilities, std::span<const std::uint8_t> labels) {
  PointwiseSums sums;
  for (std::size_t i = 0; i < labels.size(); ++i) sums.add(probabilities[i], labels[i] != 0);
  return {auc(probabilities, labels), sums.ne()};
}

Json to_json(const Score& score) {
  return {{"auc", score.auc}, {"ne", score.ne}};
}

}  // namespace

TruthKeeper::TruthKeeper(const GenerateOptions& options)
    : items_(static_cast<std::size_t>(options.items)), users_(static_cast<std::size_t>(options.users) + 1) {}

std::int64_t TruthKeeper::from() const {
  return std::max<std::int64_t>(0, newest_ + 1 - kSecondsPerDay);
}

void TruthKeeper::add_user(std::uint32_t uid, std::span<const GeneratedEvent> events) {
  if (events.empty()) return;
  newest_ = std::max<std::int64_t>(newest_, events.back().timestamp);
  const std::int64_t oldest = from();
  for (const GeneratedEvent& event : events) {
    ++counts_.events;
    switch (event.type) {
      case EventType::kListen: {
        const bool label = event.is_listen_plus();
        ++(label ? counts_.listen_plus : counts_.skip);
        items_[event.item].add(label);
        users_[uid].add(label);
        if (event.timestamp >= oldest) {
          last_day_.push_back({uid, event.timestamp, event.item, label, event.probability});
        }
        break;
      }
      case EventType::kLiked:
        ++counts_.like;
        break;
      case EventType::kDislike:
        ++counts_.dislike;
        break;
      case EventType::kUnlike:
        ++counts_.unlike;
        break;
      case EventType::kUndislike:
        ++counts_.undislike;
        break;
    }
  }
  // Listens of early users were kept by an end of time that has increased since.
  if (last_day_.size() > 2 * kept_after_drop_ + kDropAt) drop_old();
}

void TruthKeeper::drop_old() {
  std::erase_if(last_day_, [oldest = from()](const TrueListen& l) { return l.timestamp < oldest; });
  kept_after_drop_ = last_day_.size();
}

Truth TruthKeeper::finish() {
  drop_old();
  for (const TrueListen& listen : last_day_) {
    items_[listen.item].remove(listen.label);
    users_[listen.uid].remove(listen.label);
  }
  std::vector<float> probabilities;
  std::vector<std::uint8_t> labels;
  for (const TrueListen& listen : last_day_) {
    probabilities.push_back(listen.probability);
    labels.push_back(listen.label);
  }
  return {counts_,
          score(probabilities, labels),
          score(running_means(), labels),
          static_cast<std::int64_t>(labels.size()),
          std::count(labels.begin(), labels.end(), 1),
          from(),
          newest_};
}

std::vector<float> TruthKeeper::running_means() const {
  Rate all;
  for (const Rate& item : items_) {
    all.positives += item.positives;
    all.listens += item.listens;
  }
  // One artificial listen of each kind keeps the rate away from 0 and 1.
  const double global = static_cast<double>(all.positives + 1) / static_cast<double>(all.listens + 2);
  const auto smoothed = [&](const Rate& rate) {
    return (static_cast<double>(rate.positives) + kPrior * global) /
           (static_cast<double>(rate.listens) + kPrior);
  };
  std::vector<float> result;
  result.reserve(last_day_.size());
  for (const TrueListen& listen : last_day_) {
    const double sum =
        logit(smoothed(items_[listen.item])) + logit(smoothed(users_[listen.uid])) - logit(global);
    result.push_back(static_cast<float>(1 / (1 + std::exp(-sum))));
  }
  return result;
}

void write_truth_json(const Path& path, const GenerateOptions& options, const Truth& truth) {
  Json oracle = to_json(truth.oracle);
  oracle["n"] = truth.n;
  oracle["n_pos"] = truth.n_pos;
  oracle["from"] = truth.from;
  oracle["to"] = truth.to;
  const Json json{{"format", "hstu-truth"},
                  {"version", 1},
                  {"parameters",
                   {{"users", options.users},
                    {"days", options.days},
                    {"items", options.items},
                    {"seed", options.seed},
                    {"events_per_user_day", options.events_per_user_day},
                    {"genres", options.genres},
                    {"items_per_artist", options.items_per_artist},
                    {"popularity_exponent", options.popularity_exponent},
                    {"taste_days", options.taste_days}}},
                  {"counts",
                   {{"events", truth.counts.events},
                    {"listen_plus", truth.counts.listen_plus},
                    {"skip", truth.counts.skip},
                    {"like", truth.counts.like},
                    {"dislike", truth.counts.dislike},
                    {"unlike", truth.counts.unlike},
                    {"undislike", truth.counts.undislike}}},
                  {"oracle", oracle},
                  {"baseline", to_json(truth.baseline)}};
  write_file(path, json.dump(2) + "\n");
}

}  // namespace hstu
