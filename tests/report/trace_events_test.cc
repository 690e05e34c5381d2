#include "hstu/report/trace_events.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(TraceEvents, AreTracksOfProcessesAndThreadsInMicroseconds) {
  const std::vector<TraceTrack> tracks{
      {"hstu", "steps", {{"step \"1\"", 0, 2.5, {{"tokens", 7}}}, {"forward", 0.25, 1.0004567}}},
      {"hstu", "loader 0", {}},
      {"cuda:0", "stages", {{"gate", 0.5, 0.5}}}};
  const Json trace = Json::parse(trace_events_json(tracks));
  const Json& events = trace.at("traceEvents");
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(events[0].dump(), R"({"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"hstu"}})");
  EXPECT_EQ(events[1].dump(), R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"steps"}})");
  EXPECT_EQ(events[2].dump(),
            R"({"ph":"X","name":"step \"1\"","pid":1,"tid":1,"ts":0.0,"dur":2500.0,"args":{"tokens":7}})");
  EXPECT_EQ(events[3].dump(), R"({"ph":"X","name":"forward","pid":1,"tid":1,"ts":250.0,"dur":750.457})");
  EXPECT_EQ(events[4].dump(),
            R"({"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"loader 0"}})");
  EXPECT_EQ(events[5].at("pid"), 2);
  EXPECT_EQ(events[7].at("dur"), 0.0);
}

TEST(TraceEvents, OfNothingAreAFileAllTheSame) {
  EXPECT_TRUE(Json::parse(trace_events_json({})).at("traceEvents").empty());
}

}  // namespace
}  // namespace hstu
