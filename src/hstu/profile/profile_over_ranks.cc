#include "hstu/profile/profile_over_ranks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace hstu {
namespace {

constexpr int kMeetings = 5;  // the clocks are compared so often, and the median counts
// Clocks of one machine are one clock. Those of two count from different moments, far more than this apart.
constexpr double kOneClockMs = 50;

double milliseconds(Clock::time_point time) {
  return std::chrono::duration<double, std::milli>(time.time_since_epoch()).count();
}

// What a rank sends: its clock at the meetings, the beginning of its times, its tracks.
Json packed(const std::vector<TraceTrack>& tracks, Clock::time_point start, Communicator& comm) {
  Json clock = Json::array(), all = Json::array();
  for (int i = 0; i < kMeetings; ++i) {
    comm.barrier();
    clock.push_back(milliseconds(Clock::now()));
  }
  for (const TraceTrack& track : tracks) {
    Json events = Json::array(), counters = Json::array();
    for (const TraceCounter& c : track.counters) counters.push_back({c.at_ms, c.value});
    for (const TraceEvent& e : track.events) events.push_back({e.name, e.begin_ms, e.end_ms, e.arguments});
    all.push_back({{"process", track.process},
                   {"thread", track.thread},
                   {"events", std::move(events)},
                   {"counters", std::move(counters)}});
  }
  return {{"clock", std::move(clock)}, {"start", milliseconds(start)}, {"tracks", std::move(all)}};
}

// By how much the clock of `rank` is behind that of rank 0.
double behind(const Json& rank_0, const Json& rank) {
  std::array<double, kMeetings> differences{};
  for (std::size_t i = 0; i < differences.size(); ++i)
    differences[i] = rank_0.at("clock")[i].get<double>() - rank.at("clock")[i].get<double>();
  std::sort(differences.begin(), differences.end());
  const double median = differences[kMeetings / 2];
  return std::abs(median) < kOneClockMs ? 0 : median;
}

TraceTrack unpacked(const Json& track, std::size_t rank, double shift_ms) {
  const std::string process = track.at("process"), thread = track.at("thread");
  TraceTrack unpacked{.process = fmt::format("rank {}", rank),
                      .thread = process == "hstu" ? thread : fmt::format("{} {}", process, thread),
                      .events = {}};
  for (const Json& e : track.at("events"))
    unpacked.events.push_back({e[0], e[1].get<double>() + shift_ms, e[2].get<double>() + shift_ms, e[3]});
  for (const Json& c : track.at("counters"))
    unpacked.counters.push_back({c[0].get<double>() + shift_ms, c[1].get<std::int64_t>()});
  return unpacked;
}

}  // namespace

void CollectiveTimes::begin(std::string_view name, std::int64_t bytes) {
  const Activity& now = comm_.activity();
  ranges_.push_back({name, now.stage, bytes, now.collectives, Clock::now(), {}});
}

void CollectiveTimes::end() {
  ranges_.back().end = Clock::now();
}

std::vector<TraceEvent> CollectiveTimes::take(Clock::time_point start) {
  std::vector<TraceEvent> events;
  for (const Range& range : ranges_) {
    events.push_back(
        {.name = std::string(range.name),
         .begin_ms = 1000 * seconds_between(start, range.begin),
         .end_ms = 1000 * seconds_between(start, range.end),
         .arguments = {{"bytes", range.bytes}, {"stage", range.stage}, {"number", range.number}}});
  }
  ranges_.clear();
  return events;
}

void ExchangeTimes::begin(const Stream& stream, std::int64_t bytes) {
  Event begin(stream.device(), true);
  begin.record(stream);
  ranges_.push_back({comm_.activity().stage, bytes, std::move(begin), Event(stream.device(), true)});
}

void ExchangeTimes::end(const Stream& stream) {
  ranges_.back().end.record(stream);
}

void ExchangeTimes::restart(const Stream& stream) {
  ranges_.clear();
  origin_ = Event(stream.device(), true);
  origin_.record(stream);
}

std::vector<TraceEvent> ExchangeTimes::take(double begin_ms) {
  std::vector<TraceEvent> events;
  events.reserve(ranges_.size());
  for (const Range& range : ranges_) {
    range.end.synchronize();
    events.push_back({.name = std::string(range.stage),
                      .begin_ms = begin_ms + range.begin.milliseconds_since(origin_),
                      .end_ms = begin_ms + range.end.milliseconds_since(origin_),
                      .arguments = {{"bytes", range.bytes}}});
  }
  ranges_.clear();
  return events;
}

std::vector<TraceTrack> gather_tracks(const std::vector<TraceTrack>& mine, Clock::time_point start,
                                      Communicator& comm) {
  const std::string text = packed(mine, start, comm).dump() + "\n";
  const std::vector<char> all = comm.all_gather(std::span<const char>(text));
  if (comm.rank() > 0) return {};
  std::vector<Json> ranks;
  for (auto at = all.begin(); at != all.end();) {
    const auto end = std::find(at, all.end(), '\n');
    ranks.push_back(Json::parse(at, end));
    at = end + 1;
  }
  std::vector<double> starts;  // by the clock of rank 0
  starts.reserve(ranks.size());
  for (const Json& rank : ranks)
    starts.push_back(rank.at("start").get<double>() + behind(ranks.front(), rank));
  const double first = *std::min_element(starts.begin(), starts.end());
  std::vector<TraceTrack> tracks;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const Json& track : ranks[r].at("tracks")) tracks.push_back(unpacked(track, r, starts[r] - first));
  return tracks;
}

}  // namespace hstu
