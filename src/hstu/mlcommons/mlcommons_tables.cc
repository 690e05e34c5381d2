#include "hstu/mlcommons/mlcommons_tables.h"

#include <utility>
#include <vector>

#include <arrow/api.h>
#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/json.h"

namespace hstu {
namespace {

constexpr std::int64_t kGroupNumbers = std::int64_t{1} << 19;  // of one column in a row group, about

void expect_ok(const arrow::Status& status) {
  check(status.ok(), "cannot build a column of MLCommons' tables: {}", status.ToString());
}

std::shared_ptr<arrow::Array> finish(arrow::ArrayBuilder& builder) {
  std::shared_ptr<arrow::Array> array;
  expect_ok(builder.Finish(&array));
  return array;
}

template <typename ArrowType>
std::shared_ptr<arrow::Field> list_field(const char* name) {
  return arrow::field(name, arrow::list(arrow::TypeTraits<ArrowType>::type_singleton()));
}

}  // namespace

// A column of lists of numbers.
template <typename ArrowType>
class MlcommonsLists {
 public:
  using Number = typename ArrowType::c_type;
  MlcommonsLists()
      : numbers_(std::make_shared<arrow::NumericBuilder<ArrowType>>()),
        lists_(arrow::system_memory_pool(), numbers_) {}

  void begin() { expect_ok(lists_.Append()); }
  void add(std::optional<Number> number) {
    expect_ok(number ? numbers_->Append(*number) : numbers_->AppendNull());
  }
  std::int64_t numbers() const { return numbers_->length(); }
  std::shared_ptr<arrow::Array> take() { return finish(lists_); }

 private:
  std::shared_ptr<arrow::NumericBuilder<ArrowType>> numbers_;
  arrow::ListBuilder lists_;
};

struct MlcommonsSessions::Columns {
  // Of sessions.
  arrow::UInt32Builder user, session;
  MlcommonsLists<arrow::UInt32Type> items, times, track_seconds;
  MlcommonsLists<arrow::UInt8Type> types, organic;
  MlcommonsLists<arrow::UInt16Type> ratios;
  // Of users.
  arrow::UInt32Builder indexed_user;
  MlcommonsLists<arrow::UInt32Type> sessions, lengths, ends;

  void write_sessions(ParquetFile& file) {
    file.write({finish(user), finish(session), items.take(), times.take(), types.take(), organic.take(),
                ratios.take(), track_seconds.take()});
  }
  void write_index(ParquetFile& file) {
    file.write({finish(indexed_user), sessions.take(), lengths.take(), ends.take()});
  }
};

MlcommonsSessions::MlcommonsSessions(const Path& folder)
    : session_file_(
          folder / "train_sessions.parquet",
          arrow::schema(
              {arrow::field("uid", arrow::uint32()), arrow::field("session_id", arrow::uint32()),
               list_field<arrow::UInt32Type>("item_ids"), list_field<arrow::UInt32Type>("timestamps"),
               list_field<arrow::UInt8Type>("event_types"), list_field<arrow::UInt8Type>("is_organic"),
               list_field<arrow::UInt16Type>("played_ratio_pct"),
               list_field<arrow::UInt32Type>("track_length_seconds")})),
      index_file_(
          folder / "session_index.parquet",
          arrow::schema({arrow::field("uid", arrow::uint32()), list_field<arrow::UInt32Type>("session_ids"),
                         list_field<arrow::UInt32Type>("session_lens"),
                         list_field<arrow::UInt32Type>("session_offsets")})),
      columns_(std::make_unique<Columns>()) {}

MlcommonsSessions::~MlcommonsSessions() = default;

void MlcommonsSessions::append(const MlcommonsEvent& event) {
  const bool first = !last_ || last_->user != event.user;
  if (first || std::int64_t{event.time} - last_->time > kMlcommonsSessionGap) {
    end_session();
    begin_session(event.user, first);
  }
  Columns& c = *columns_;
  c.items.add(event.item);
  c.times.add(event.time);
  c.types.add(event.type);
  c.organic.add(event.organic);
  c.ratios.add(event.played_ratio);
  c.track_seconds.add(event.track_seconds);
  ++session_events_;
  last_ = event;
}

void MlcommonsSessions::begin_session(std::uint32_t user, bool first_of_user) {
  Columns& c = *columns_;
  if (c.items.numbers() >= kGroupNumbers) c.write_sessions(session_file_);
  ++session_;
  ++sessions_;
  if (first_of_user) {
    if (c.sessions.numbers() >= kGroupNumbers) c.write_index(index_file_);
    session_ = 0;
    user_events_ = 0;
    expect_ok(c.indexed_user.Append(user));
    c.sessions.begin();
    c.lengths.begin();
    c.ends.begin();
  }
  expect_ok(c.user.Append(user));
  expect_ok(c.session.Append(session_));
  c.items.begin();
  c.times.begin();
  c.types.begin();
  c.organic.begin();
  c.ratios.begin();
  c.track_seconds.begin();
}

void MlcommonsSessions::end_session() {
  if (session_events_ == 0) return;
  user_events_ += session_events_;
  columns_->sessions.add(session_);
  columns_->lengths.add(session_events_);
  columns_->ends.add(user_events_);
  session_events_ = 0;
}

void MlcommonsSessions::close() {
  end_session();
  columns_->write_sessions(session_file_);
  columns_->write_index(index_file_);
  session_file_.close();
  index_file_.close();
}

struct MlcommonsTestEvents::Columns {
  arrow::UInt32Builder user, time, item, track_seconds;
  arrow::UInt8Builder organic, type;
  arrow::UInt16Builder ratio;

  void write(ParquetFile& file) {
    file.write({finish(user), finish(time), finish(item), finish(organic), finish(ratio),
                finish(track_seconds), finish(type)});
  }
};

MlcommonsTestEvents::MlcommonsTestEvents(const Path& folder)
    : file_(
          folder / "test_events.parquet",
          arrow::schema({arrow::field("uid", arrow::uint32()), arrow::field("timestamp", arrow::uint32()),
                         arrow::field("item_id", arrow::uint32()), arrow::field("is_organic", arrow::uint8()),
                         arrow::field("played_ratio_pct", arrow::uint16()),
                         arrow::field("track_length_seconds", arrow::uint32()),
                         arrow::field("event_type", arrow::uint8())})),
      columns_(std::make_unique<Columns>()) {}

MlcommonsTestEvents::~MlcommonsTestEvents() = default;

void MlcommonsTestEvents::append(const MlcommonsEvent& event) {
  Columns& c = *columns_;
  if (c.user.length() >= kGroupNumbers) c.write(file_);
  expect_ok(c.user.Append(event.user));
  expect_ok(c.time.Append(event.time));
  expect_ok(c.item.Append(event.item));
  expect_ok(c.organic.Append(event.organic));
  expect_ok(c.ratio.AppendOrNull(event.played_ratio));
  expect_ok(c.track_seconds.AppendOrNull(event.track_seconds));
  expect_ok(c.type.Append(event.type));
  ++events_;
}

void MlcommonsTestEvents::close() {
  columns_->write(file_);
  file_.close();
}

std::string mlcommons_split_json(const MlcommonsSplit& split, const MlcommonsCounts& counts) {
  const auto [first, last] = split.time;
  const TimeSplit times = split.split.value_or(
      TimeSplit{.train_start = first, .train_end = last + 1, .test_start = last + 1, .test_end = last + 1});
  const Json json = {{"size", split.size},
                     {"t_min", first},
                     {"t_max", last},
                     {"train_start", times.train_start},
                     {"train_end", times.train_end},
                     {"test_start", times.test_start},
                     {"test_end", times.test_end},
                     {"train_days", split.rule.train_days},
                     {"gap_minutes", split.rule.gap_minutes},
                     {"test_days", split.rule.test_days},
                     {"session_gap_seconds", kMlcommonsSessionGap},
                     {"num_train_events", counts.events},
                     {"num_test_events", counts.test_events},
                     {"num_sessions", counts.sessions},
                     {"num_users", counts.users}};
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace hstu
