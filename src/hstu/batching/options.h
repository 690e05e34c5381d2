// The user's options for making samples from a dataset. Plain data with defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/choice.h"

namespace hstu {

// Selects the earlier events of pool actions that form a history of at most `history_length` = L events.
enum class HistoryStrategy {
  interleaved,  // the last max(1, L / pools) events of every pool, merged by time
  last_n,       // the last L events of any pool
};

inline constexpr Choice<HistoryStrategy> kHistoryStrategies[] = {
    {"interleaved", HistoryStrategy::interleaved}, {"last_n", HistoryStrategy::last_n}};

// An id computed from the candidate and its user, looked up as one token before the history. Keys: "user",
// "item", "hour" (of the day, UTC), "weekday" (days since time 0, modulo 7), any item attribute, any context
// column of the dataset.
struct ContextualFeature {
  std::string name;
  std::vector<std::string> keys;
  std::int64_t rows = 0;  // of the feature's table: the modulus of hashed ids
  // true: XXH64 (seed 0) of the keys' little-endian int64 values modulo rows. false: the id of the only key.
  bool hashed = true;
};

// What an event is whose label is none of EventOptions::labels.
enum class NewLabels {
  refused,   // an error
  of_none,   // an example that has none of the labels: in evaluations of a trained model, and in requests
  left_out,  // no example: where a trained model learns from data that came later
};

// What a model that predicts at several events of a sample reads of each event beside its item. The events of
// a sample are its history, then the candidate.
struct EventOptions {
  bool wanted = false;              // false: Samples::event_action, event_label and the like stay empty
  std::string action_column;        // context column of action ids; "": the event's action bits
  std::string label_column;         // context column of labels; "": made of `labels`
  std::vector<std::string> labels;  // actions: bit k of a label says that the event has action k
  bool one_of = false;              // the label is the index of the first of `labels` that the event has
  std::int64_t label_end = 0;       // labels are in [0, label_end)
  NewLabels new_labels = NewLabels::refused;
  std::int64_t candidates = 1;  // the last n events of a sample are scored; 0: all of them
  std::int64_t tokens = 1;      // that the model makes of an event
};

// Which items are drawn as negatives: items of positives of the training part, `all` apart.
enum class NegativeSource {
  popularity,        // in proportion to their positives
  uniform,           // each as often as any other
  items_of_the_day,  // in proportion to their positives on the day (UTC) of the sample
  all,               // nothing is drawn: every other item of the dataset, in evaluations alone
};

inline constexpr Choice<NegativeSource> kNegativeSources[] = {
    {"popularity", NegativeSource::popularity},
    {"uniform", NegativeSource::uniform},
    {"items of the day", NegativeSource::items_of_the_day}};
inline constexpr Choice<NegativeSource> kEvaluationNegatives[] = {
    {"popularity", NegativeSource::popularity},
    {"uniform", NegativeSource::uniform},
    {"items of the day", NegativeSource::items_of_the_day},
    {"all", NegativeSource::all}};

// Items that are drawn for each positive anchor, as further candidates of it with the label 0.
struct NegativeOptions {
  std::int64_t per_positive = 0;  // different items; 0: none are drawn; of `all` the most there may be
  NegativeSource from = NegativeSource::popularity;
  bool exclude_seen = true;  // of no event of the user before the anchor
};

// With DataOptions::predicts_next_events: what losses over drawn items read (batching/catalogue_negatives.h).
struct CatalogueDrawOptions {
  std::int64_t own = 0;      // items drawn for each example
  bool of_batch = false;     // those are drawn from the targets of the global batch, not from the catalogue
  std::int64_t shared = 0;   // items drawn for all examples of a global batch together
  bool frequencies = false;  // of items among the targets of training
  bool attributes = false;   // those of all items, beside those of the batch
  bool any() const { return own > 0 || shared > 0; }
};

struct DataOptions {
  std::int64_t history_length = 256;  // L
  HistoryStrategy strategy = HistoryStrategy::interleaved;
  std::vector<std::string> pools;    // actions whose events enter histories; empty: as the dataset says
  std::int64_t scan_limit = 20'000;  // a history comes from at most this many events before the anchor
  // false: a history ends before the second of its anchor, as that of a request does.
  bool same_second = true;
  std::int64_t max_sequence = 0;  // contextual tokens + history + candidate; 0: no limit
  std::int64_t min_history = 0;   // events of any kind a user must have before an anchor
  // Training uses every n-th anchor of a user in a window, counted back from the last; 0: only the last.
  std::int64_t anchor_stride = 1;
  std::int64_t window_seconds = 86'400;  // training proceeds window by window in time; 0: one window
  std::vector<std::string> attributes;   // of items (AttributeOfItems), in the order of Samples::attributes
  std::vector<ContextualFeature> contextual;  // in the order of Samples::context
  EventOptions events;
  NegativeOptions negatives;
  // Negatives are candidates of their anchor's sample (Candidate::others); false: samples of their own.
  bool negatives_share_history = true;
  // Every event of a history predicts the one after it, the last one the anchor: each is an example. false:
  // the anchor is the only example, or EventOptions says which are.
  bool predicts_next_events = false;
  CatalogueDrawOptions catalogue;
  bool weighted = false;  // samples of anchors have the weights of their events (Samples::event_weight)
};

// The hold-out for evaluation: at most one of windows, fraction, seconds, last and split, and in addition
// users, but not to `last` or `split`. Training uses neither anchors at or after the start of a hold-out in
// time nor held-out users' anchors. Hold-outs of each user's last events by name, whose last one is the test.
enum class LastSplit {
  none,
  valid,  // the one before it chooses the model; neither trains
  paper,  // there is no other: evaluations during training score the test
};
inline constexpr Choice<LastSplit> kLastSplits[] = {
    {"", LastSplit::none}, {"valid", LastSplit::valid}, {"paper", LastSplit::paper}};

struct HoldoutOptions {
  std::int64_t windows = 0;           // this many windows: the last ones, or those from first_window on
  std::int64_t first_window = -1;     // without `windows`: all from this one on; -1: the last `windows`
  double fraction = 0;                // the latest anchors, this fraction; equal times are not separated
  std::int64_t seconds = 0;           // anchors later than the newest anchor's time minus this
  std::int64_t last = 0;              // the last anchors of each user, so many; all of a user with no more
  LastSplit split = LastSplit::none;  // in place of `last`
  bool scores_test = false;  // with `split`: evaluations score the test, whatever they score in training
  // Users whose split hash (spec: splitmix64 of id and salt) is below this train, the others are held out.
  double train_user_fraction = 1;
  std::int64_t split_salt = 0;
};

// The order of batches. A window's anchors are divided into consecutive batches; the last may be smaller.
struct ScheduleOptions {
  std::int64_t batch_size = 32;   // samples of all ranks together
  bool drop_last = false;         // true: a window's smaller last batch is omitted
  std::int64_t epochs = 1;        // passes over all windows; 0: unlimited
  std::int64_t first_window = 0;  // of every epoch
  std::int64_t windows = 0;       // of every epoch; 0: all from first_window on
  // Windows of each stage, one behind another; empty: one stage has all. A stage is trained before the next:
  // the first for all epochs, with the windows named above, and each other one, of data that came later,
  // once.
  std::vector<std::int64_t> stages = {};
  // Anchors are shuffled within consecutive runs of max(1, round(fraction * n)) of a window's n anchors;
  // 0: ascending positions; 1: the whole window.
  double shuffle_fraction = 0;
  std::uint64_t seed = 0;
};

}  // namespace hstu
