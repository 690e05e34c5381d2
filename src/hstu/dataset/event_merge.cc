#include "hstu/dataset/event_merge.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hstu {
namespace {

// A source's table and the next row in it.
struct Cursor {
  EventSource* source = nullptr;
  EventTable table;
  std::int64_t row = 0;
  bool fine = false;  // the table has nanoseconds
};

// The elements of the heap: the event at a cursor, and the cursor.
struct Head {
  std::int64_t user, time;
  std::uint32_t nanoseconds, cursor;

  bool operator<(const Head& other) const {
    if (user != other.user) return user < other.user;
    if (time != other.time) return time < other.time;
    if (nanoseconds != other.nanoseconds) return nanoseconds < other.nanoseconds;
    return cursor < other.cursor;
  }
};

// Columns that grow by single values, before they become a table.
struct Rows {
  std::vector<std::int64_t> user, time, item;
  std::vector<std::int64_t> nanoseconds;  // up to the last event that has them
  std::vector<std::uint8_t> action;
  std::vector<std::vector<std::int64_t>> context;

  void add(const Head& head, const Cursor& from) {
    if (from.fine) {
      nanoseconds.resize(user.size());
      nanoseconds.push_back(head.nanoseconds);
    }
    user.push_back(head.user);
    time.push_back(head.time);
    item.push_back(from.table.item[from.row]);
    action.push_back(from.table.action[static_cast<std::size_t>(from.row)]);
    context.resize(from.table.context.size());
    for (std::size_t c = 0; c < context.size(); ++c) context[c].push_back(from.table.context[c][from.row]);
  }

  EventTable take() {
    EventTable table;
    table.user.append(user);
    table.time.append(time);
    table.item.append(item);
    if (!nanoseconds.empty()) nanoseconds.resize(user.size());
    table.nanoseconds.append(nanoseconds);
    table.action = std::move(action);
    table.context.resize(context.size());
    for (std::size_t c = 0; c < context.size(); ++c) {
      table.context[c].append(context[c]);
      context[c].clear();
    }
    user.clear();
    time.clear();
    item.clear();
    nanoseconds.clear();
    action.clear();
    return table;
  }
};

class Merge {
 public:
  Merge(std::span<const std::unique_ptr<EventSource>> sources) : cursors_(sources.size()) {
    for (std::size_t c = 0; c < sources.size(); ++c) {
      cursors_[c].source = sources[c].get();
      if (refill(cursors_[c])) heap_.push_back(head_of(c));
    }
    std::sort(heap_.begin(), heap_.end());  // A sorted sequence is a heap.
  }

  bool done() const { return heap_.empty(); }
  const Head& head() const { return heap_.front(); }
  const Cursor& cursor() const { return cursors_[heap_.front().cursor]; }

  void advance() {
    const std::size_t c = heap_.front().cursor;
    Cursor& cursor = cursors_[c];
    if (++cursor.row < cursor.table.size() || refill(cursor)) {
      heap_.front() = head_of(c);
    } else {
      heap_.front() = heap_.back();
      heap_.pop_back();
    }
    sift_down();
  }

 private:
  static bool refill(Cursor& cursor) {
    cursor.row = 0;
    const bool any = cursor.source->next(cursor.table);
    if (!any) cursor.table = EventTable();
    cursor.fine = cursor.table.nanoseconds.size() > 0;
    return any;
  }

  Head head_of(std::size_t c) const {
    const Cursor& cursor = cursors_[c];
    return {.user = cursor.table.user[cursor.row],
            .time = cursor.table.time[cursor.row],
            .nanoseconds = cursor.fine ? static_cast<std::uint32_t>(cursor.table.nanoseconds[cursor.row]) : 0,
            .cursor = static_cast<std::uint32_t>(c)};
  }

  // std::priority_queue cannot replace its top, which would cost twice the comparisons.
  void sift_down() {
    const std::size_t size = heap_.size();
    if (size == 0) return;
    const Head moved = heap_.front();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
      if (child + 1 < size && heap_[child + 1] < heap_[child]) ++child;
      if (!(heap_[child] < moved)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = moved;
  }

  std::vector<Cursor> cursors_;
  std::vector<Head> heap_;
};

}  // namespace

void merge_events(std::span<const std::unique_ptr<EventSource>> sources, std::int64_t table_events,
                  EventSink& sink, const std::function<void(std::int64_t)>& advance) {
  Merge merge(sources);
  Rows rows;
  std::int64_t merged = 0;
  const auto pass_on = [&] {
    sink.append(rows.take());
    advance(merged);
  };
  for (; !merge.done(); merge.advance()) {
    rows.add(merge.head(), merge.cursor());
    if (++merged % table_events == 0) pass_on();
  }
  if (merged % table_events != 0) pass_on();
}

}  // namespace hstu
