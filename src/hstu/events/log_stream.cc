#include "hstu/events/log_stream.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/dataset/event_counter.h"
#include "hstu/dataset/event_sorter.h"
#include "hstu/dataset/time_split.h"
#include "hstu/dataset/user_order.h"
#include "hstu/events/event_stages.h"
#include "hstu/events/log_reader.h"

namespace hstu {
namespace {

// Thrown to stop reading a log that is not in order.
struct OutOfOrder {};

// Examines all chunks in the order of the log, including those whose events are dropped.
class ChunkObserver {
 public:
  explicit ChunkObserver(StreamedLog& log, ItemAttributes& attributes) : log_(log), attributes_(attributes) {}

  // Replaces the chunk's codes of contexts by those of the log.
  void see(LogChunk& chunk) {
    time_.min = std::min(time_.min, chunk.time.min);
    time_.max = std::max(time_.max, chunk.time.max);
    events_ += chunk.events.size();
    for (const auto& [word, rows] : chunk.user_nulls) log_.user_nulls[word] += rows;
    for (const auto& [word, rows] : chunk.item_nulls) log_.item_nulls[word] += rows;
    add_matches(chunk.matches, matches_);
    attributes_.see(chunk, log_.split ? std::optional(log_.split->train_end) : std::nullopt);
    for (const auto& [id, name] : chunk.user_names) log_.user_names->add(id, name);
    for (const auto& [id, name] : chunk.item_names) log_.item_names->add(id, name);
    for (std::size_t c = 0; c < log_.contexts.size(); ++c) {
      if (chunk.context_texts[c])
        translate(*chunk.context_texts[c], *log_.contexts[c], chunk.events.context[c]);
    }
  }

  std::int64_t events() const { return events_; }
  const TimeRange& time() const { return time_; }
  const RuleMatches& matches() const { return matches_; }

 private:
  // The events may be in another order than the texts, whose order decides about the codes.
  static void translate(const std::vector<std::string>& texts, Vocabulary& vocabulary,
                        IntegerColumn& column) {
    std::vector<std::int64_t> own(texts.size() + 1);
    std::iota(own.begin(), own.end(), 0);
    const std::vector<std::int64_t> codes = vocabulary.translate(own, texts);
    std::vector<std::int64_t> values = column.integers();
    for (std::int64_t& value : values) value = codes[static_cast<std::size_t>(value)];
    column = IntegerColumn();
    column.append(values);
  }

  StreamedLog& log_;
  ItemAttributes& attributes_;
  std::int64_t events_ = 0;
  RuleMatches matches_;
  TimeRange time_{.min = std::numeric_limits<std::int64_t>::max(),
                  .max = std::numeric_limits<std::int64_t>::min()};
};

// Where the names of a log are collected, and the vocabularies of its contexts.
void open_names(const Schema& schema, const LogFiles& files, const Path& scratch,
                const PrepareOptions& options, const Dictionaries& known, StreamedLog& log) {
  log.hashed_users = files.texts.contains(schema.user);
  log.hashed_items = files.texts.contains(schema.item);
  for (const std::string& of : schema.keep_names) {
    const bool user = of == "user";
    if (!(user ? log.hashed_users : log.hashed_items)) {
      fail_usage(
          "{}: keep_names: the column \"{}\" contains integers, which are their own names: remove \"{}\"",
          schema.name, user ? schema.user : schema.item, of);
    }
    (user ? log.user_names : log.item_names) =
        std::make_unique<NameCollector>(scratch / (of + "-names.spill"), options.names());
  }
  for (const ContextRule& rule : schema.context) {
    std::optional<Vocabulary>& vocabulary = log.contexts.emplace_back();
    if (!files.texts.contains(rule.column)) continue;
    const auto texts = known.find("context_" + rule.name);
    vocabulary.emplace(fmt::format("the context \"{}\"", rule.name), options.attribute(),
                       texts == known.end() ? std::vector<std::string>() : texts->second);
  }
}

// Detects the first event that should be before its predecessor.
class OrderCheck {
 public:
  // The events inside the chunk are in order.
  void see(const EventTable& events) {
    if (at(events, 0) < last_) throw OutOfOrder{};
    last_ = at(events, events.size() - 1);
  }

 private:
  using Place = std::array<std::int64_t, 3>;  // user, time, nanoseconds
  static Place at(const EventTable& events, std::int64_t row) {
    return {events.user[row], events.time[row], events.nanoseconds.size() > 0 ? events.nanoseconds[row] : 0};
  }

  Place last_{-1, 0, 0};
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

// Counts test events, and passes them on if somebody wants them.
class TestSink : public EventSink {
 public:
  TestSink(EventCounter& counter, EventSink* sink) : counter_(counter), sink_(sink) {}
  void append(EventTable events) override {
    counter_.add(events);
    if (sink_ != nullptr) sink_->append(std::move(events));
  }

 private:
  EventCounter& counter_;
  EventSink* sink_;
};

}  // namespace

LogStream::LogStream(const EventExtractor& extractor, const Path& input, Path scratch,
                     const PrepareOptions& options, Dictionaries known)
    : extractor_(extractor),
      input_(input),
      scratch_(std::move(scratch)),
      options_(options),
      known_(std::move(known)),
      log_(find_log(extractor, input)) {}

std::int64_t LogStream::expected_bytes(bool sort, std::int64_t event_bytes) const {
  // In a run: user, time and item, and the action and each context with one byte.
  const auto run_bytes = static_cast<std::int64_t>(3 * 4 + 1 + extractor_.schema().context.size()) +
                         (has_weights(extractor_.schema()) ? 4 : 0);
  const int copies = (sort ? 1 : 0) + (extractor_.schema().filters.counts() ? 1 : 0);
  return log_.rows * (event_bytes + copies * run_bytes);
}

std::optional<TimeSplit> LogStream::split() const {
  const auto& rule = extractor_.schema().split;
  if (!rule || rule->test_days == 0) return std::nullopt;
  return split_boundaries(log_.last_time ? *log_.last_time : find_last_time(log_, extractor_), *rule);
}

std::optional<StreamedLog> LogStream::run(bool sort, EventSink& sink, EventSink* test) const {
  const Schema& schema = extractor_.schema();
  StreamedLog result;
  open_names(schema, log_, scratch_, options_, known_, result);
  ItemAttributes attributes(schema, result.hashed_items, options_.attribute(), known_);
  attributes.read_mappings(input_);
  result.split = split();

  CountingSink train(sink);
  std::uint8_t label_bit = describe(schema).label_bit();
  EventCounter test_counter(label_bit, scratch_ / "test.spill", options_.distinct());
  TestSink test_sink(test_counter, test);
  std::optional<TimeSplitter> splitter;
  if (result.split) splitter.emplace(*result.split, train, test_sink);
  EventStages stages(schema, scratch_, options_.filters(),
                     splitter ? static_cast<EventSink&>(*splitter) : train);
  EventSink& first = stages.first();

  ChunkObserver observer(result, attributes);
  OrderCheck order;
  EventSorter sorter(scratch_ / "sort.spill", options_.sorter());
  Progress progress(sort ? "reading and sorting" : "reading and writing", log_.rows, "events");
  const auto refine = [&](LogChunk& chunk) {
    if (is_ordered(chunk.events)) return;
    if (!sort) throw OutOfOrder{};
    chunk.events = ordered(chunk.events);
  };
  const auto consume = [&](LogChunk chunk) {
    result.remarks.insert(result.remarks.end(), chunk.remarks.begin(), chunk.remarks.end());
    result.dropped.add(chunk.dropped);
    if (chunk.events.size() == 0) return;
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
  if (observer.events() == 0) {
    throw NoEventsError(
        fmt::format("{}: the log contains no events ({}){}", input_.string(), fmt::join(schema.files, ", "),
                    result.dropped.sum() > 0 ? ": drop_null and keep leave out all of its rows" : ""));
  }
  if (sort) {
    Progress writing("writing in order", sorter.events(), "events");
    sorter.merge_into(first, [&](std::int64_t events) { writing.advance_to(events); });
    writing.finish();
  }
  stages.finish();
  result.filters = stages.report();

  if (result.split) {
    check(observer.time().max == result.split->test_end,
          "{}: according to the statistics of the files the last event is at {} s, but it is at {} s: write "
          "the "
          "files again, because wrong statistics lead to a wrong split",
          input_.string(), result.split->test_end, observer.time().max);
    result.test_events = test_counter.counts();
    if (train.events() == 0) {
      fail_usage(
          "no event is left to train on: the log spans [{}, {}] seconds, and the train interval is [{}, {}); "
          "decrease the hold-out (0 test days keep every event)",
          observer.time().min, observer.time().max, result.split->train_start, result.split->train_end);
    }
  }
  result.time = observer.time();
  result.matches = observer.matches();
  result.attributes = attributes.take();
  result.remarks.insert(result.remarks.end(), result.attributes.remarks.begin(),
                        result.attributes.remarks.end());
  return result;
}

}  // namespace hstu
