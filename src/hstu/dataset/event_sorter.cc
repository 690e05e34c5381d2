#include "hstu/dataset/event_sorter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/dataset/event_run.h"

namespace hstu {
namespace {

constexpr std::int64_t kMostTableEvents = std::int64_t{1} << 14;
constexpr std::size_t kMostFiles = 512;  // open at the same time: half of the usual limit

// One table, which the first call returns.
class TableSource : public EventSource {
 public:
  explicit TableSource(EventTable table) : table_(std::move(table)) {}
  bool next(EventTable& events) override {
    if (table_.size() == 0) return false;
    events = std::exchange(table_, EventTable());
    return true;
  }

 private:
  EventTable table_;
};

void ignore(std::int64_t) {}

}  // namespace

EventSorter::EventSorter(Path folder, std::int64_t memory) : folder_(std::move(folder)), memory_(memory) {}

EventSorter::~EventSorter() {
  std::error_code ignored;
  if (runs_made_ > 0) std::filesystem::remove_all(folder_, ignored);
}

void EventSorter::append(EventTable events) {
  if (events.size() == 0) return;
  events_ += events.size();
  bytes_ += events.bytes();
  tables_.push_back(std::move(events));
  if (bytes_ >= memory_) spill();
}

Path EventSorter::new_run() {
  std::filesystem::create_directories(folder_);
  return folder_ / fmt::format("run-{}", runs_made_++);
}

EventSorter::Sources EventSorter::take_tables() {
  Sources sources;
  for (EventTable& table : tables_) sources.push_back(std::make_unique<TableSource>(std::move(table)));
  tables_.clear();
  bytes_ = 0;
  return sources;
}

EventSorter::Sources EventSorter::open_runs(std::size_t first, std::size_t count) const {
  Sources sources;
  for (std::size_t r = first; r < first + count; ++r)
    sources.push_back(std::make_unique<RunReader>(runs_[r]));
  return sources;
}

void EventSorter::spill() {
  // Merging needs a table of every run in memory; this size allows merging at least 64 runs at a time.
  const std::int64_t held = [&] {
    std::int64_t sum = 0;
    for (const EventTable& table : tables_) sum += table.size();
    return sum;
  }();
  if (runs_made_ == 0) table_events_ = std::clamp<std::int64_t>(held / 64, 1, kMostTableEvents);
  const Path path = new_run();
  RunWriter run(path);
  merge_events(take_tables(), table_events_, run, ignore);
  run.close();
  spilled_ += static_cast<std::int64_t>(std::filesystem::file_size(path));
  runs_.push_back(path);
}

void EventSorter::merge_runs_until_few() {
  const std::int64_t bytes_per_event =
      std::max<std::int64_t>(1, spilled_ / std::max<std::int64_t>(1, events_));
  const std::int64_t table_bytes = table_events_ * (bytes_per_event + 1);
  const auto fit = static_cast<std::size_t>(memory_ / table_bytes);
  const std::size_t most = std::clamp<std::size_t>(fit, 2, kMostFiles);
  while (runs_.size() > most) {
    std::vector<Path> merged;
    for (std::size_t first = 0; first < runs_.size(); first += most) {
      const std::size_t count = std::min(most, runs_.size() - first);
      merged.push_back(new_run());
      RunWriter run(merged.back());
      merge_events(open_runs(first, count), table_events_, run, ignore);
      run.close();
    }
    runs_ = std::move(merged);
  }
}

void EventSorter::merge_into(EventSink& sink, const std::function<void(std::int64_t)>& advance) {
  if (runs_.empty()) return merge_events(take_tables(), kMostTableEvents, sink, advance);
  if (!tables_.empty()) spill();
  merge_runs_until_few();
  merge_events(open_runs(0, runs_.size()), kMostTableEvents, sink, advance);
}

}  // namespace hstu
