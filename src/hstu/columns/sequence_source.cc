#include "hstu/columns/sequence_source.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include <arrow/util/utf8.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/field_reader.h"

namespace hstu {
namespace {

// A column that is filled value by value.
class ColumnBuilder {
 public:
  ColumnBuilder(const char* name, bool text) : name_(name), text_(text) {}

  void add(const Path& file, const LineField& field) {
    if (text_) return add_text(file, field);
    const auto id = plain_id(field.text);
    if (!id)
      fail("{}: expected an integer from 0 to 2^63 - 2 for the {}, found \"{}\"", place_of(file, field),
           name_, shown_value(field.text));
    values_.push_back(*id);
  }

  // The column so far; the next one begins.
  RawColumn take() {
    RawColumn column;
    column.name = name_;
    column.type_name = text_ ? "text" : "integer";
    column.kind = text_ ? RawColumn::Kind::kText : RawColumn::Kind::kInteger;
    column.integers = std::exchange(values_, {});
    column.texts = std::exchange(texts_, {});
    codes_.clear();
    return column;
  }

 private:
  void add_text(const Path& file, const LineField& field) {
    const auto [code, added] = codes_.emplace(field.text, std::ssize(texts_));
    if (added) {
      check(arrow::util::ValidateUTF8(field.text),
            "{}: expected text in UTF-8 for the {}, found other bytes: \"{}\"", place_of(file, field), name_,
            shown_value(field.text));
      texts_.push_back(field.text);
    }
    values_.push_back(code->second);
  }

  const char* name_;
  bool text_;
  std::vector<std::int64_t> values_;  // or codes of texts
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int64_t> codes_;
};

// Times as integers if all of them are; else as texts, which event_times.h reads.
RawColumn times_column(std::vector<std::string> texts) {
  RawColumn column;
  column.name = "time";
  column.type_name = "integer";
  for (const std::string& text : texts) {
    const auto time = parse_number<std::int64_t>(text);
    if (!time) break;
    column.integers.push_back(*time);
  }
  if (column.integers.size() == texts.size()) return column;
  column.kind = RawColumn::Kind::kText;
  column.type_name = "text";
  column.integers.clear();
  for (std::size_t r = 0; r < texts.size(); ++r) column.integers.push_back(static_cast<std::int64_t>(r));
  column.texts = std::move(texts);
  return column;
}

class SequenceSource : public ColumnSource {
 public:
  SequenceSource(const Path& file, std::span<const std::string> columns, const SequenceFormat& format,
                 std::int64_t batch_rows)
      : format_(format),
        batch_rows_(batch_rows),
        reader_(file, format.delimiter, format.header),
        users_("user", format.user_texts),
        items_("item", format.item_texts) {
    arrow::util::InitializeUTF8();
    std::vector<std::string> known = {"user", "item"};
    if (format_.timed) known.emplace_back("time");
    order_ = find_columns(file, columns, known);
    if (const auto times = format_.times_of.find(file); times != format_.times_of.end())
      times_.emplace(times->second, format.delimiter, format.header);
  }

  std::vector<std::int64_t> groups() const override { return {0}; }
  std::optional<RawColumn> range(std::size_t, std::size_t) const override { return std::nullopt; }
  bool is_text(std::size_t column) const override {
    return order_[column] == 0 ? format_.user_texts : order_[column] == 1 && format_.item_texts;
  }
  void select(std::size_t) override {
    require(rows_done_ == 0, "{}: its only group has already been read", reader_.file().string());
  }

  bool next(RawBatch& batch) override {
    lines_.clear();
    time_texts_.clear();
    const bool lines = format_.layout == SequenceLayout::kLines;
    while (std::ssize(lines_) < batch_rows_ && (lines ? read_item() : read_row())) continue;
    batch.file = reader_.file().string();
    batch.first_row = rows_done_;
    batch.rows = std::ssize(lines_);
    batch.places.clear();
    batch.line_of = [first = rows_done_, lines = lines_](std::int64_t row) {
      return lines[static_cast<std::size_t>(row - first)];
    };
    rows_done_ += batch.rows;
    std::vector<RawColumn> columns = {users_.take(), items_.take()};
    if (format_.timed) columns.push_back(times_column(std::move(time_texts_)));
    batch.columns.clear();
    for (const std::size_t position : order_) batch.columns.push_back(columns[position]);
    return batch.rows > 0;
  }

 private:
  [[noreturn]] void fail_fields(std::int64_t line, const char* expected) const {
    fail("{}: line {}: expected {}", reader_.file().string(), line, expected);
  }

  // One event of a user's line, whose first field is the user.
  bool read_item() {
    if (!reader_.next(field_)) {
      finish_line();
      return false;
    }
    if (field_.number == 1) {
      finish_line();
      user_ = field_;
      if (times_) read_user_of_times();
      if (!reader_.next(field_) || field_.number == 1)
        fail_fields(user_->line, "a user and at least one item, found the user alone");
    }
    users_.add(reader_.file(), *user_);
    items_.add(reader_.file(), field_);
    lines_.push_back(field_.line);
    if (times_) read_time();
    return true;
  }

  // The line of times must end where the line of items does.
  void finish_line() {
    if (!times_) return;
    LineField& time = pending_;
    const bool any = times_->next(time);
    if (any && time.number > 1)
      fail("{}: a time without an item: line {} of {} has {} items", place_of(times_->file(), time),
           user_->line, reader_.file().string(), time.number - 2);
    if (any && field_.number != 1)
      fail("{}: line {}: the times of the user \"{}\", who has no line in {}", times_->file().string(),
           time.line, shown_value(time.text), reader_.file().string());
    has_pending_ = any;
  }

  void read_user_of_times() {
    if (!has_pending_)
      fail("{}: it ends before the times of line {} of {}, the user \"{}\"", times_->file().string(),
           user_->line, reader_.file().string(), shown_value(user_->text));
    if (pending_.text != user_->text)
      fail(
          "{}: expected the user \"{}\", as in line {} of {}, found \"{}\": both files must have the same "
          "users in the same order",
          place_of(times_->file(), pending_), shown_value(user_->text), user_->line, reader_.file().string(),
          shown_value(pending_.text));
    times_line_ = pending_.line;
  }

  void read_time() {
    LineField& time = pending_;
    if (!times_->next(time) || time.number == 1)
      fail("{}: line {}: expected a time for item {} of line {} of {}, found {} times",
           times_->file().string(), times_line_, field_.number - 1, field_.line, reader_.file().string(),
           field_.number - 2);
    time_texts_.push_back(time.text);
  }

  // One event of a line of its own.
  bool read_row() {
    if (!has_next_ && !reader_.next(next_)) return false;
    has_next_ = false;
    const LineField user = next_;
    LineField item, time;
    const auto expected = format_.timed ? "a user, an item and a time" : "a user and an item";
    const auto read = [&](LineField& to) {
      if (!reader_.next(to) || to.number == 1) fail_fields(user.line, expected);
    };
    read(item);
    if (format_.timed) read(time);
    has_next_ = reader_.next(next_);
    if (has_next_ && next_.number != 1) fail_fields(user.line, expected);
    users_.add(reader_.file(), user);
    items_.add(reader_.file(), item);
    if (format_.timed) time_texts_.push_back(time.text);
    lines_.push_back(user.line);
    return true;
  }

  SequenceFormat format_;
  std::int64_t batch_rows_;
  FieldReader reader_;
  std::optional<FieldReader> times_;
  std::vector<std::size_t> order_;  // of the requested columns: user, item, time
  ColumnBuilder users_, items_;
  std::vector<std::string> time_texts_;
  std::vector<std::int64_t> lines_;   // of the rows of a batch
  LineField field_, next_, pending_;  // of items, of the next row, of times
  std::optional<LineField> user_;
  bool has_next_ = false, has_pending_ = false;
  std::int64_t times_line_ = 0, rows_done_ = 0;
};

}  // namespace

std::optional<std::int64_t> plain_id(std::string_view text) {
  const bool digits =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  const auto id = parse_number<std::int64_t>(text);
  return id && *id < std::numeric_limits<std::int64_t>::max() ? id : std::nullopt;
}

std::unique_ptr<ColumnSource> open_sequences(const Path& file, std::span<const std::string> columns,
                                             const SequenceFormat& format, std::int64_t batch_rows) {
  return std::make_unique<SequenceSource>(file, columns, format, batch_rows);
}

}  // namespace hstu
