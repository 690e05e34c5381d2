#include "hstu/events/generate_truth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "hstu/events/generate_signal.h"
#include "hstu/metrics/auc.h"

namespace hstu {
namespace {

constexpr double kPrior = 10;  // listens with the global rate, added to every rate
constexpr std::size_t kDropAt = 1 << 20;

double cross_entropy(double probability, double label) {
  const double p = std::clamp(probability, 1e-12, 1 - 1e-12);
  return -(label * std::log(p) + (1 - label) * std::log(1 - p));
}

double logit(double probability) {
  return std::log(probability / (1 - probability));
}

nlohmann::ordered_json json_of(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

Score score(std::span<const double> probabilities, std::span<const std::uint8_t> labels) {
  Score result{auc(probabilities, labels), std::nullopt};
  if (!result.auc) return result;
  double sum = 0, positives = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    sum += cross_entropy(probabilities[i], labels[i]);
    positives += labels[i];
  }
  const auto n = static_cast<double>(labels.size());
  result.ne = sum / (n * cross_entropy(positives / n, positives / n));
  return result;
}

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
      case EventType::kLike:
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
  // Early users were kept by an end of time that has moved on since.
  if (last_day_.size() > 2 * kept_after_drop_ + kDropAt) drop_old();
}

void TruthKeeper::drop_old() {
  std::erase_if(last_day_, [oldest = from()](const TrueListen& l) { return l.timestamp < oldest; });
  kept_after_drop_ = last_day_.size();
}

void TruthKeeper::finish() {
  drop_old();
  for (const TrueListen& listen : last_day_) {
    items_[listen.item].remove(listen.label);
    users_[listen.uid].remove(listen.label);
  }
}

std::vector<std::uint8_t> TruthKeeper::labels() const {
  std::vector<std::uint8_t> result;
  result.reserve(last_day_.size());
  for (const TrueListen& listen : last_day_) result.push_back(listen.label);
  return result;
}

Score TruthKeeper::oracle() const {
  std::vector<double> probabilities;
  probabilities.reserve(last_day_.size());
  for (const TrueListen& listen : last_day_) probabilities.push_back(static_cast<double>(listen.probability));
  return score(probabilities, labels());
}

Score TruthKeeper::baseline() const {
  Rate all;
  for (const Rate& item : items_) {
    all.positives += item.positives;
    all.listens += item.listens;
  }
  // One made-up listen of each kind keeps the rate off 0 and 1.
  const double global = static_cast<double>(all.positives + 1) / static_cast<double>(all.listens + 2);
  const auto smoothed = [&](const Rate& rate) {
    return (static_cast<double>(rate.positives) + kPrior * global) /
           (static_cast<double>(rate.listens) + kPrior);
  };
  std::vector<double> probabilities;
  probabilities.reserve(last_day_.size());
  for (const TrueListen& listen : last_day_) {
    const double sum =
        logit(smoothed(items_[listen.item])) + logit(smoothed(users_[listen.uid])) - logit(global);
    probabilities.push_back(1 / (1 + std::exp(-sum)));
  }
  return score(probabilities, labels());
}

void write_truth_json(const Path& path, const GenerateOptions& options, const TruthKeeper& truth) {
  const auto& counts = truth.counts();
  const auto positives = std::count_if(truth.last_day().begin(), truth.last_day().end(),
                                       [](const TrueListen& listen) { return listen.label; });
  const Score oracle = truth.oracle(), baseline = truth.baseline();
  const nlohmann::ordered_json json{
      {"format", "hstu-truth"},
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
       {{"events", counts.events},
        {"listen_plus", counts.listen_plus},
        {"skip", counts.skip},
        {"like", counts.like},
        {"dislike", counts.dislike},
        {"unlike", counts.unlike},
        {"undislike", counts.undislike}}},
      {"oracle",
       {{"auc", json_of(oracle.auc)},
        {"ne", json_of(oracle.ne)},
        {"n", truth.last_day().size()},
        {"n_pos", positives},
        {"from", truth.from()},
        {"to", truth.newest()}}},
      {"baseline", {{"auc", json_of(baseline.auc)}, {"ne", json_of(baseline.ne)}}}};
  write_file(path, json.dump(2) + "\n");
}

}  // namespace hstu
