#include "hstu/events/log_stream.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/dataset/event_counter.h"
#include "hstu/dataset/event_sorter.h"
#include "hstu/dataset/time_split.h"
#include "hstu/dataset/user_order.h"
#include "hstu/events/item_attributes.h"
#include "hstu/events/log_reader.h"

namespace hstu {
namespace {

// Thrown to stop reading a log that is not in order.
struct OutOfOrder {};

// Examines all chunks in the order of the log, including those whose events are dropped.
class ChunkObserver {
 public:
  ChunkObserver(const Schema& schema, std::int64_t memory, std::vector<ItemAttribute>& attributes)
      : memory_(memory) {
    for (std::size_t a = 0; a < schema.attributes.size(); ++a) {
      if (schema.attributes[a].file.empty()) from_log_.push_back(&attributes[a]);
    }
  }

  void see(const LogChunk& chunk) {
    time_.min = std::min(time_.min, chunk.time.min);
    time_.max = std::max(time_.max, chunk.time.max);
    events_ += chunk.events.size();
    for (std::size_t a = 0; a < from_log_.size(); ++a) {
      assign_attribute(chunk.attribute_items, chunk.attributes[a], memory_, *from_log_[a]);
    }
  }

  std::int64_t events() const { return events_; }
  const TimeRange& time() const { return time_; }

 private:
  std::int64_t memory_;
  std::vector<ItemAttribute*> from_log_;
  std::int64_t events_ = 0;
  TimeRange time_{.min = std::numeric_limits<std::int64_t>::max(),
                  .max = std::numeric_limits<std::int64_t>::min()};
};

// Detects the first event that should be before its predecessor.
class OrderCheck {
 public:
  // The events inside the chunk are in order.
  void see(const EventTable& events) {
    if (at(events, 0) < last_) throw OutOfOrder{};
    last_ = at(events, events.size() - 1);
  }

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  // user, time
  static Place at(const EventTable& events, std::int64_t row) { return {events.user[row], events.time[row]}; }

  Place last_{-1, 0};
};

// Counts the events that reach the sink.
class CountingSink : public EventSink {
 public:
  explicit CountingSink(EventSink& sink) : sink_(sink) {}
  void append(EventTable events) override {
    events_ += events.size();
    sink_.append(std::move(events));
  }
  std::int64_t events() const { return events_; }

 private:
  EventSink& sink_;
  std::int64_t events_ = 0;
};

}  // namespace

LogStream::LogStream(const EventExtractor& extractor, const Path& input, Path scratch,
                     const PrepareOptions& options)
    : extractor_(extractor),
      input_(input),
      scratch_(std::move(scratch)),
      options_(options),
      log_(find_log(extractor, input)) {}

std::int64_t LogStream::expected_bytes(bool sort, std::int64_t event_bytes) const {
  // In a run: user, time and item, and the action and each context with one byte.
  const auto run_bytes = static_cast<std::int64_t>(3 * 4 + 1 + extractor_.schema().context.size());
  return log_.rows * (event_bytes + (sort ? run_bytes : 0));
}

std::optional<TimeSplit> LogStream::split() const {
  const auto& rule = extractor_.schema().split;
  if (!rule || rule->test_days == 0) return std::nullopt;
  return split_boundaries(log_.last_time ? *log_.last_time : find_last_time(log_, extractor_), *rule);
}

std::optional<StreamedLog> LogStream::run(bool sort, EventSink& sink) const {
  const Schema& schema = extractor_.schema();
  StreamedLog result;
  result.attributes = read_mappings(schema, input_, options_.attribute());
  result.split = split();

  CountingSink train(sink);
  std::uint8_t label_bit = describe(schema).label_bit();
  EventCounter test(label_bit, scratch_ / "test.spill", options_.distinct());
  std::optional<TimeSplitter> splitter;
  if (result.split) splitter.emplace(*result.split, train, test);
  EventSink& first = splitter ? static_cast<EventSink&>(*splitter) : train;

  ChunkObserver observer(schema, options_.attribute(), result.attributes);
  OrderCheck order;
  EventSorter sorter(scratch_ / "sort.spill", options_.sorter());
  Progress progress(sort ? "reading and sorting" : "reading and writing", log_.rows, "events");
  const auto refine = [&](LogChunk& chunk) {
    if (is_ordered(chunk.events)) return;
    if (!sort) throw OutOfOrder{};
    chunk.events = ordered(chunk.events);
  };
  const auto consume = [&](LogChunk chunk) {
    observer.see(chunk);
    if (sort) {
      sorter.append(std::move(chunk.events));
    } else {
      order.see(chunk.events);
      first.append(std::move(chunk.events));
    }
    progress.advance_to(observer.events());
  };
  const LogReading reading{.threads = options_.readers(),
                           .batch_rows = PrepareOptions::kBatchRows,
                           .queue_bytes = options_.queue()};
  try {
    read_log(log_, extractor_, reading, refine, consume);
  } catch (const OutOfOrder&) {
    return std::nullopt;
  }
  progress.finish();
  check(observer.events() > 0, "{}: the log contains no events ({})", input_.string(),
        fmt::join(schema.files, ", "));
  if (sort) {
    Progress writing("writing in order", sorter.events(), "events");
    sorter.merge_into(first, [&](std::int64_t events) { writing.advance_to(events); });
    writing.finish();
  }

  if (result.split) {
    check(observer.time().max == result.split->test_end,
          "{}: according to the statistics of the files the last event is at {} s, but it is at {} s: write "
          "the "
          "files again, because wrong statistics lead to a wrong split",
          input_.string(), result.split->test_end, observer.time().max);
    result.test_events = test.counts();
    if (train.events() == 0) {
      fail_usage(
          "no event is left to train on: the log spans [{}, {}] seconds, and the train interval is [{}, {}); "
          "decrease the hold-out (0 test days keep every event)",
          observer.time().min, observer.time().max, result.split->train_start, result.split->train_end);
    }
  }
  equalize_lengths(result.attributes);
  return result;
}

}  // namespace hstu
