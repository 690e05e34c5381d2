#include "hstu/synthetic/generate_user.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "hstu/base/contains.h"
#include "hstu/synthetic/generate_signal.h"

namespace hstu {
namespace {

// Events per user: log-normal with the public set's median / mean (2,695 / 4,763), truncated at its
// maximum / mean (27,738 / 4,763); the deviation is chosen so that the mean of the truncated variable is 1.
constexpr double kMedianLength = 0.566, kLongestLength = 5.82, kLengthDeviation = 1.133;
constexpr double kMeanSession = 20;       // events
constexpr double kSessionPause = 1800;    // seconds; the minimum between sessions
constexpr double kPause = 6;              // mean seconds between two listens
constexpr std::uint32_t kResolution = 5;  // seconds
// The next listen: a recent artist again or a new one, usually within the session's genre.
constexpr double kReturn = 0.45, kSessionGenre = 0.95, kLikedSession = 0.5;
constexpr double kLikeRate = 0.052, kDislikeRate = 0.026, kUnlikeRate = 0.0040, kUndislikeRate = 0.0012;

// Listens in each hour of the day (percent of the busiest hour).
constexpr std::array<int, 24> kRhythm{30, 20, 13, 9,  8,  12, 25, 45,  60, 65, 65, 68,
                                      72, 72, 70, 70, 75, 85, 95, 100, 95, 80, 60, 45};

double exponential(double mean, RandomStream& random) {
  return -mean * std::log(1 - random.uniform());
}

int draw_hour(int shift, RandomStream& random) {
  static const auto sums = [] {
    std::array<int, 24> result{};
    for (std::size_t h = 0; h < 24; ++h) result[h] = kRhythm[h] + (h > 0 ? result[h - 1] : 0);
    return result;
  }();
  const auto mark = static_cast<int>(random.below(static_cast<std::uint64_t>(sums.back())));
  const auto hour = std::upper_bound(sums.begin(), sums.end(), mark) - sums.begin();
  return (static_cast<int>(hour) + shift + 24) % 24;
}

// Draws a played ratio. Listens played for half or more usually end at 100 %; skips occur early.
std::uint16_t draw_played_ratio(bool plus, RandomStream& random) {
  const double u = random.uniform();
  if (!plus) return static_cast<std::uint16_t>(50 * u * u);
  if (u < 0.72) return 100;
  if (u < 0.97) return static_cast<std::uint16_t>(50 + 50 * (u - 0.72) / 0.25);
  return static_cast<std::uint16_t>(101 + 50 * (u - 0.97) / 0.03);
}

class UserStory {
 public:
  UserStory(const GenerateOptions& options, const Catalogue& catalogue, std::uint32_t uid,
            std::vector<GeneratedEvent>& events)
      : catalogue_(catalogue),
        random_{mix64(derive_key(options.seed, "user") + uid)},
        listener_(options, random_),
        end_(static_cast<double>(options.days * kSecondsPerDay)),
        events_(events) {
    events_.clear();
    const double mean = options.events_per_user_day * static_cast<double>(options.days);
    const double length =
        std::min(kMedianLength * std::exp(kLengthDeviation * random_.normal()), kLongestLength);
    wanted_ = static_cast<std::size_t>(std::max(1.0, std::round(mean * length)));
  }

  void tell() {
    plan_sessions(static_cast<double>(end_ / kSecondsPerDay));
    double now = 0;
    for (const Session& session : sessions_) {
      now = std::max(now, session.start);
      const std::size_t target = std::min(wanted_, events_.size() + session.size);
      session_genre_ = random_.uniform() < kLikedSession
                           ? listener_.draw_liked_genre(random_)
                           : static_cast<std::int64_t>(random_.below(genre_count()));
      while (now < end_ && events_.size() < target) now = listen(now);
      now += kSessionPause + kResolution;
    }
    sort_events();
  }

 private:
  struct Session {
    double start;  // seconds
    std::size_t size;
  };

  std::uint64_t genre_count() const { return static_cast<std::uint64_t>(catalogue_.genres()); }

  void plan_sessions(double days) {
    for (std::size_t planned = 0; planned < wanted_;) {
      const double day = static_cast<double>(random_.below(static_cast<std::uint64_t>(days)));
      const double hour = draw_hour(listener_.hour_shift(), random_);
      const double start = day * kSecondsPerDay + hour * 3600 + random_.uniform() * 3600;
      sessions_.push_back({start, 1 + static_cast<std::size_t>(exponential(kMeanSession - 0.5, random_))});
      sessions_.back().size = std::min(sessions_.back().size, wanted_ - planned);
      planned += sessions_.back().size;
    }
    std::sort(sessions_.begin(), sessions_.end(), [](const Session& a, const Session& b) {
      return a.start != b.start ? a.start < b.start : a.size < b.size;
    });
  }

  // Adds a listen at `now` (seconds) and the user's reaction to it; returns the time of the next listen.
  double listen(double now) {
    bool organic = false;
    const std::uint32_t artist_index = choose_artist(organic);
    const std::uint32_t item_index = catalogue_.draw_item(artist_index, random_);
    std::uint32_t time = static_cast<std::uint32_t>(now) / kResolution * kResolution;
    while (recent_.contains(item_index, time)) time += kResolution;
    if (time >= end_) return end_;
    listener_.live_until(time, random_);
    const CatalogueItem& item = catalogue_.items()[item_index];
    const double probability = listener_.probability(catalogue_.artists()[artist_index], item, time,
                                                     recent_.sums(artist_index, item_index, time));
    const bool plus = random_.uniform() < probability;
    const std::uint16_t ratio = draw_played_ratio(plus, random_);
    events_.push_back(
        {time, item_index, ratio, EventType::kListen, organic, static_cast<float>(probability)});
    recent_.add(artist_index, item_index, time, plus ? 1.0f : -1.0f);
    const double played = ratio * 0.01 * item.length;
    react(plus, probability, time + std::min(played, exponential(20, random_)));
    return std::max(now, static_cast<double>(time)) + std::max(1.0, played) + exponential(kPause, random_);
  }

  // `organic`: the user's own choice, a recent artist; otherwise a recommendation.
  std::uint32_t choose_artist(bool& organic) {
    const bool in_genre = random_.uniform() < kSessionGenre;
    const std::int64_t genre =
        in_genre ? session_genre_ : static_cast<std::int64_t>(random_.below(genre_count()));
    if (!recent_.empty() && random_.uniform() < kReturn) {
      for (int attempt = 0; attempt < 4; ++attempt) {
        const std::uint32_t artist = recent_.draw_artist(random_);
        organic = catalogue_.artists()[artist].genre == genre;
        if (organic) return artist;
      }
    }
    return catalogue_.draw_artist(genre, random_);
  }

  // Likes follow expected listens, dislikes expected skips. Some are withdrawn later.
  void react(bool plus, double probability, double when) {
    const double u = random_.uniform();
    if (plus && u < kLikeRate * probability) {
      opine(EventType::kLiked, events_.back().item, when, liked_, 2);
    } else if (!plus && u < kDislikeRate * (1 - probability)) {
      opine(EventType::kDislike, events_.back().item, when, disliked_, -2);
    } else if (u > 1 - kUnlikeRate) {
      take_back(EventType::kUnlike, when, liked_);
    } else if (u > 1 - kUnlikeRate - kUndislikeRate) {
      take_back(EventType::kUndislike, when, disliked_);
    }
  }

  void opine(EventType type, std::uint32_t item, double when, std::vector<std::uint32_t>& items,
             float value) {
    if (when >= end_ || contains(items, item)) return;
    add_opinion(type, item, when);
    items.push_back(item);
    recent_.add_to_last(value);
  }

  void take_back(EventType type, double when, std::vector<std::uint32_t>& items) {
    if (when >= end_ || items.empty()) return;
    const auto taken = items.begin() + static_cast<std::ptrdiff_t>(random_.below(items.size()));
    add_opinion(type, *taken, when);
    items.erase(taken);
  }

  void add_opinion(EventType type, std::uint32_t item, double when) {
    const std::uint32_t time = static_cast<std::uint32_t>(when) / kResolution * kResolution;
    events_.push_back({time, item, 0, type, events_.back().is_organic, 0});
  }

  // Stable insertion: only a reaction late in a track can be out of order, and only by a few events.
  void sort_events() {
    const auto before = [](const GeneratedEvent& a, const GeneratedEvent& b) {
      return a.timestamp != b.timestamp ? a.timestamp < b.timestamp : a.type < b.type;
    };
    for (auto event = events_.begin(); event != events_.end(); ++event) {
      std::rotate(std::upper_bound(events_.begin(), event, *event, before), event, event + 1);
    }
  }

  const Catalogue& catalogue_;
  RandomStream random_;
  Listener listener_;
  double end_;  // seconds
  std::vector<GeneratedEvent>& events_;
  std::size_t wanted_;
  std::vector<Session> sessions_;
  RecentListens recent_;
  std::vector<std::uint32_t> liked_, disliked_;  // items
  std::int64_t session_genre_ = 0;
};

}  // namespace

void generate_user(const GenerateOptions& options, const Catalogue& catalogue, std::uint32_t uid,
                   std::vector<GeneratedEvent>& events) {
  UserStory(options, catalogue, uid, events).tell();
}

}  // namespace hstu
