// The true probabilities of the last day's listens, which the events do not contain, and the quality of
// predictions by them and by running means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/synthetic/generate_options.h"
#include "hstu/synthetic/generate_user.h"

namespace hstu {

struct TrueListen {
  std::uint32_t uid;
  std::uint32_t timestamp;  // seconds
  std::uint32_t item;       // index into Catalogue::items()
  bool label;               // listen_plus
  float probability;
};

// Quality of a prediction; empty if it is not defined (one class is missing).
struct Score {
  std::optional<double> auc;  // exact, ties count one half
  std::optional<double> ne;   // normalised entropy
};

struct EventMix {
  std::int64_t events = 0, listen_plus = 0, skip = 0, like = 0, dislike = 0, unlike = 0, undislike = 0;
};

// The content of truth.json, except the parameters.
struct Truth {
  EventMix counts;                // of all events
  Score oracle, baseline;         // over the last day's listens
  std::int64_t n = 0, n_pos = 0;  // listens of the last day, those of them that are listen_plus
  std::int64_t from = 0, to = 0;  // first and last second of the last day
};

// Receives all events once, in order of users, and keeps the listens of the last 86,400 seconds,
// [newest - 86,399, newest]. The end of this interval is known only after all events.
class TruthKeeper {
 public:
  explicit TruthKeeper(const GenerateOptions& options);
  void add_user(std::uint32_t uid, std::span<const GeneratedEvent> events);
  // Call once, after the last user.
  Truth finish();
  const EventMix& counts() const { return counts_; }
  // After finish(): ordered by (uid, timestamp), as in the events file.
  const std::vector<TrueListen>& last_day() const { return last_day_; }

 private:
  struct Rate {
    std::int64_t positives = 0, listens = 0;
    void add(bool label) { positives += label, ++listens; }
    void remove(bool label) { positives -= label, --listens; }
  };

  std::int64_t from() const;
  void drop_old();
  // sigmoid(logit(item's rate) + logit(user's rate) - logit(global rate)) for every listen of the last day;
  // rates of listen_plus among the listens before it, (positives + 10 global) / (listens + 10). The last term
  // shifts all scores equally: it keeps the sum of two logits calibrated and does not change the AUC.
  std::vector<float> running_means() const;

  std::vector<Rate> items_, users_;  // of all listens; finish() subtracts those of the last day
  EventMix counts_;
  std::int64_t newest_ = 0;
  std::vector<TrueListen> last_day_;
  std::size_t kept_after_drop_ = 0;
};

// truth.json: parameters, counts, oracle and baseline.
void write_truth_json(const Path& path, const GenerateOptions& options, const Truth& truth);

}  // namespace hstu
