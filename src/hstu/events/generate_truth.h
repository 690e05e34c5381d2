// What nobody who learns from the events is told: the probabilities behind the last day's listens, and how
// well they, and the running means that anybody can keep, predict the outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/generate_options.h"
#include "hstu/events/generate_user.h"

namespace hstu {

struct TrueListen {
  std::uint32_t uid;
  std::uint32_t timestamp;  // seconds
  std::uint32_t item;       // index into Catalogue::items()
  bool label;               // listen_plus
  float probability;
};

// Quality of a prediction; empty where it is not defined (one class is missing).
struct Score {
  std::optional<double> auc;  // exact, ties count one half
  std::optional<double> ne;   // cross-entropy divided by that of the mean label
};

// probabilities, labels: (n).
Score score(std::span<const double> probabilities, std::span<const std::uint8_t> labels);

// Takes all events once, in order of users, and keeps the listens of the last 86,400 seconds, whose end is
// known only when all have been seen: [newest - 86,399, newest].
class TruthKeeper {
 public:
  explicit TruthKeeper(const GenerateOptions& options);
  void add_user(std::uint32_t uid, std::span<const GeneratedEvent> events);
  // Call once, after the last user.
  void finish();

  struct Counts {
    std::int64_t events = 0, listen_plus = 0, skip = 0, like = 0, dislike = 0, unlike = 0, undislike = 0;
  };
  const Counts& counts() const { return counts_; }
  std::int64_t newest() const { return newest_; }  // seconds
  std::int64_t from() const;                       // first second of the last day
  // The rest is ready after finish(). Ordered by (uid, timestamp), in the order of the events file.
  const std::vector<TrueListen>& last_day() const { return last_day_; }
  Score oracle() const;
  // sigmoid(logit(item's rate) + logit(user's rate) - logit(global rate)), rates of listen_plus among listens
  // before the last day, (positives + 10 global) / (listens + 10). The last term shifts all scores alike: it
  // keeps the sum of two logits calibrated and does not touch the AUC.
  Score baseline() const;

 private:
  struct Rate {
    std::int64_t positives = 0, listens = 0;
    void add(bool label) { positives += label, ++listens; }
    void remove(bool label) { positives -= label, --listens; }
  };

  void drop_old();
  std::vector<std::uint8_t> labels() const;

  std::vector<Rate> items_, users_;  // of all listens; finish() takes the last day's out
  Counts counts_;
  std::int64_t newest_ = 0;
  std::vector<TrueListen> last_day_;
  std::size_t kept_after_drop_ = 0;
};

// truth.json: parameters, counts, oracle and baseline.
void write_truth_json(const Path& path, const GenerateOptions& options, const TruthKeeper& truth);

}  // namespace hstu
