// The trace of --profile, read as a viewer reads it.
#include "hstu/profile/profile.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "hstu/comm/thread_group.h"
#include "hstu/training/train.h"
#include "support/kind_options.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

struct Range {
  std::string name;
  double begin, end;  // microseconds
};
// The ranges of each track, "process/thread", in the order of the file.
std::map<std::string, std::vector<Range>> tracks_of(const Path& file) {
  std::map<std::pair<int, int>, std::string> names;
  std::map<int, std::string> processes;
  std::map<std::string, std::vector<Range>> tracks;
  const Json trace = Json::parse(read_file(file));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") continue;  // of a process, without a thread
    const int process = event.at("pid"), thread = event.at("tid");
    if (event.at("name") == "process_name") processes[process] = event.at("args").at("name");
    if (event.at("name") == "thread_name") {
      names[{process, thread}] = processes.at(process) + "/" + event.at("args").at("name").get<std::string>();
      tracks[names[{process, thread}]];
    }
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts"), duration = event.at("dur");
    EXPECT_GE(begin, 0);
    EXPECT_GE(duration, 0);
    tracks.at(names.at({process, thread})).push_back({event.at("name"), begin, begin + duration});
  }
  return tracks;
}

// Expects that every range is inside the last one that is still open, or begins after it: what a viewer can
// draw.
void expect_nesting(const std::string& track, const std::vector<Range>& ranges) {
  constexpr double kHalfNanosecond = 0.0005;
  std::vector<Range> open;
  for (const Range& range : ranges) {
    while (!open.empty() && range.begin >= open.back().end - kHalfNanosecond) open.pop_back();
    if (open.empty()) {
      open.push_back(range);
      continue;
    }
    EXPECT_GE(range.begin, open.back().begin - kHalfNanosecond) << track << ": " << range.name;
    EXPECT_LE(range.end, open.back().end + kHalfNanosecond)
        << track << ": " << range.name << " in " << open.back().name;
    open.push_back(range);
  }
}

std::vector<std::string> names_of(const std::vector<Range>& ranges, const std::string& beginning = "") {
  std::vector<std::string> names;
  for (const Range& range : ranges) {
    if (range.name.starts_with(beginning)) names.push_back(range.name);
  }
  return names;
}

class Profile : public testing::RunTest {
 protected:
  TrainResult profiled(const std::string& name, ProfileSteps steps, const std::atomic<bool>* stop = nullptr) {
    return train({.options = options_,
                  .folder = create_run_folder(folder_ / name, options_),
                  .version = "test",
                  .stop = stop,
                  .profiles = {steps}});
  }
  Path file(const std::string& run, const std::string& name) const { return folder_ / run / name; }
};

TEST_F(Profile, HasTheStepsAskedForOnTracksThatNest) {
  profiled("run", {4, 6});
  const auto tracks = tracks_of(file("run", "trace_4_6.json"));
  for (const auto& [track, ranges] : tracks) expect_nesting(track, ranges);
  const auto& steps = tracks.at("hstu/steps");
  EXPECT_THAT(names_of(steps, "step "), ElementsAre("step 4", "step 5", "step 6"));
  EXPECT_EQ(steps.front().begin, 0) << "what comes before is trimmed";
  EXPECT_THAT(names_of({steps.begin(), steps.begin() + 6}),
              ElementsAre("step 4", "data_wait", "lookup", "forward", "backward", "update"));
  for (std::size_t i = 1; i < 6; ++i) EXPECT_LE(steps[i].end, steps[0].end);
}

TEST_F(Profile, HasTheStagesOfTheModelInTheOrderOfBothPasses) {
  dlrmv4_of(options_).layers = 2;
  profiled("run", {2, 2});
  const auto tracks = tracks_of(file("run", "trace_2_2.json"));
  const std::set<std::string> stages{"preprocessor", "norm_uvqk", "attention", "gate",     "projection",
                                     "head",         "loss",      "embedding", "optimizer"};
  std::vector<std::string> found;
  std::string section;
  Range stage{"", 0, 0};
  for (const Range& range : tracks.at("host/stages")) {
    if (range.name == "forward" || range.name == "backward" || range.name == "update")
      found.push_back(range.name + ":");
    if (!stages.contains(range.name) || range.begin < stage.end)
      continue;  // an operation of the same name is inside
    stage = range;
    found.push_back(range.name);
  }
  EXPECT_THAT(found,
              ElementsAre("embedding", "forward:", "preprocessor", "norm_uvqk", "attention", "gate",
                          "projection", "norm_uvqk", "attention", "gate", "projection", "head", "loss",  //
                          "backward:", "loss", "head", "projection", "gate", "attention", "norm_uvqk",
                          "projection", "gate", "attention", "norm_uvqk", "preprocessor", "embedding",  //
                          "update:", "optimizer", "optimizer", "embedding"));
}

TEST_F(Profile, HasTheMemoryOfThePassesAsACurve) {
  profiled("run", {2, 3});
  const Json trace = Json::parse(read_file(file("run", "trace_2_3.json")));
  std::vector<double> times, bytes;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "C") continue;
    EXPECT_EQ(event.at("name"), "memory of the passes, bytes");
    times.push_back(event.at("ts"));
    bytes.push_back(event.at("args").at("value"));
  }
  ASSERT_GT(bytes.size(), 10u) << "activations come and go";
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_GT(*std::max_element(bytes.begin(), bytes.end()), bytes.front());
}

TEST_F(Profile, SaysTheSizesOfProductsAndTheirFlops) {
  dlrmv4_of(options_).layers = 1;
  profiled("run", {2, 2});
  const Json trace = Json::parse(read_file(file("run", "trace_2_2.json")));
  int products = 0, attentions = 0;
  double of_products = 0, of_passes = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || !event.contains("args")) continue;
    const Json& about = event.at("args");
    if (event.at("name") == "forward" || event.at("name") == "backward")
      of_passes += about.at("flops").get<double>();
    if (about.contains("sizes") && about.contains("flops")) of_products += about.at("flops").get<double>();
    if (event.at("name") == "linear" && about.contains("sizes")) {
      ++products;
      const std::vector<double> sizes = about.at("sizes");
      ASSERT_EQ(sizes.size(), 3u);
      const double passes = about.at("flops").get<double>() / (2 * sizes[0] * sizes[1] * sizes[2]);
      EXPECT_TRUE(passes == 1 || passes == 2) << event;
    }
    if (event.at("name") == "attention" && about.contains("sizes")) ++attentions;
  }
  EXPECT_GT(products, 3);
  EXPECT_EQ(attentions, 2) << "forward and backward";
  EXPECT_EQ(of_products, of_passes);
}

TEST_F(Profile, ShowsTheLoadersThreads) {
  options_.data.workers = 2;
  options_.training.epochs = 4;
  profiled("run", {2, 30});
  const auto tracks = tracks_of(file("run", "trace_2_30.json"));
  std::size_t built = 0;
  for (const auto& [track, ranges] : tracks) {
    if (!track.starts_with("hstu/loader ")) continue;
    built += ranges.size();
    for (std::size_t i = 1; i < ranges.size(); ++i)
      EXPECT_GE(ranges[i].begin, ranges[i - 1].end - 0.001) << track;
  }
  EXPECT_GE(built, 20u);
}

TEST_F(Profile, ChangesNeitherTheRunNorItsLog) {
  run("plain");
  profiled("profiled", {1, 5});
  expect_same_run("plain", "profiled");
}

TEST_F(Profile, ThatCannotBeWrittenEndsNothing) {
  const RunFolder folder = create_run_folder(folder_ / "run", options_);
  std::filesystem::create_directory(file("run", "trace_2_3.json"));  // a file of this name cannot be written
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(
      train({.options = options_, .folder = folder, .version = "test", .profiles = {ProfileSteps{2, 3}}})
          .reason,
      "completed");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("WARNING: the profile is lost: "));
  run("plain");
  expect_same_run("plain", "run");
}

TEST_F(Profile, OfARunThatIsInterruptedHasTheStepsUntilThen) {
  std::atomic<bool> stop = false;
  at("step.end", 3, [&] { stop = true; });
  EXPECT_EQ(profiled("run", {2, 9}, &stop).reason, "interrupted");
  const auto tracks = tracks_of(file("run", "trace_2_9.json"));
  EXPECT_THAT(names_of(tracks.at("hstu/steps"), "step "), ElementsAre("step 2", "step 3"));
}

TEST_F(Profile, OfSeveralRanksHasTheTracksOfAll) {
  create_run_folder(folder_ / "run", options_);
  run_ranks(3, [&](Communicator& comm) {
    const TrainRequest request{.options = options_,
                               .folder = open_run_folder(folder_ / "run"),
                               .version = "test",
                               .profiles = {ProfileSteps{3, 4}}};
    if (comm.rank() > 0) return follow(request, comm);
    train(request, comm);
  });
  const auto tracks = tracks_of(file("run", "trace_3_4.json"));
  const std::vector<std::string> collectives = names_of(tracks.at("rank 0/collectives"));
  EXPECT_THAT(collectives, Contains("all-to-all"));
  EXPECT_THAT(collectives, Contains("all-reduce"));
  for (int rank = 0; rank < 3; ++rank) {
    const std::string process = fmt::format("rank {}/", rank);
    EXPECT_THAT(names_of(tracks.at(process + "steps"), "step "), ElementsAre("step 3", "step 4"));
    EXPECT_THAT(names_of(tracks.at(process + "host stages")), Contains("attention"));
    EXPECT_EQ(names_of(tracks.at(process + "collectives")), collectives);
    // No rank leaves the first all-to-all before the last one has come to it.
    const auto first_of = [&](int of) {
      const auto& ranges = tracks.at(fmt::format("rank {}/collectives", of));
      return *std::find_if(ranges.begin(), ranges.end(),
                           [](const Range& r) { return r.name == "all-to-all"; });
    };
    for (int other = 0; other < 3; ++other) EXPECT_GE(first_of(rank).end, first_of(other).begin);
  }
  for (const auto& [track, ranges] : tracks) expect_nesting(track, ranges);
}

// Messages between GPUs, in the form that moves them through the host.
TEST(ExchangeTimes, NameTheStageAndTheBytesThatLeaveTheRank) {
  run_ranks(2, [](Communicator& comm) {
    const auto transport = staged_transport(comm);
    ExchangeTimes times(comm);
    std::string out = "to the other", in(out.size(), ' '), own = "mine", copy(own.size(), ' ');
    const auto message = [](int rank, std::string& text) {
      return DeviceMessage{rank, reinterpret_cast<std::byte*>(text.data()), std::ssize(text)};
    };
    const std::vector<DeviceMessage> sends{message(1 - comm.rank(), out), message(comm.rank(), own)},
        receives{message(1 - comm.rank(), in), message(comm.rank(), copy)};
    transport->exchange(sends, receives, Stream());  // before the profile
    transport->set_trace(&times);
    times.restart(Stream());
    comm.enter(3, "lookup");
    transport->exchange(sends, receives, Stream());
    comm.enter("dense gradients");
    transport->exchange(sends, receives, Stream());
    const std::vector<TraceEvent> events = times.take(100);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].name, "lookup");
    EXPECT_EQ(events[1].name, "dense gradients");
    EXPECT_EQ(events[1].arguments.at("bytes"), 12);
    EXPECT_GE(events[0].begin_ms, 100);
    EXPECT_GE(events[0].end_ms, events[0].begin_ms);
    EXPECT_GE(events[1].begin_ms, events[0].end_ms);
    transport->set_trace(nullptr);
    transport->exchange(sends, receives, Stream());
    EXPECT_TRUE(times.take(0).empty());
  });
}

TEST_F(Profile, OfStepsThatAreNotTrainedIsRefused) {
  options_.training.max_steps = 10;
  EXPECT_THAT(message_of<UsageError>([&] {
                profiled("run", {8, 11});
              }),
              HasSubstr("--profile steps=8:11: this process trains the steps 1 to 10"));
}

TEST_F(Profile, EachOfSeveralHasItsFile) {
  options_.training.max_steps = 10;
  const auto train_with = [&](const std::string& name, std::vector<ProfileSteps> profiles) {
    train({.options = options_,
           .folder = create_run_folder(folder_ / name, options_),
           .version = "test",
           .profiles = std::move(profiles)});
  };
  train_with("run", {{6, 7, 2}, {2, 3}});
  const auto steps_in = [&](const char* name) {
    std::string names;
    const Json trace = Json::parse(read_file(file("run", name)));
    for (const Json& event : trace.at("traceEvents"))
      if (event.value("ph", "") == "X" && event.at("name").get<std::string>().starts_with("step "))
        names += event.at("name").get<std::string>() + ";";
    return names;
  };
  EXPECT_EQ(steps_in("trace_2_3.json"), "step 2;step 3;");
  EXPECT_EQ(steps_in("trace_6_7.json"), "step 6;step 7;");
  EXPECT_THAT(message_of<UsageError>([&] {
                train_with("other", {{2, 3}, {5, 6, 2}});
              }),
              HasSubstr("steps=5:6,warmup=2: the steps up to 3 are those of another profile"));
}

TEST(ProfileSteps, AreReadFromTheirWords) {
  const ProfileSteps steps = parse_profile("steps=50:55");
  EXPECT_EQ(steps.first, 50);
  EXPECT_EQ(steps.last, 55);
  EXPECT_EQ(steps.warmup, 1);
  EXPECT_EQ(parse_profile("steps=50:55,warmup=3").warmup, 3);
  for (const char* words :
       {"", "50:55", "steps=", "steps=5", "steps=0:3", "steps=6:5", "steps=1:2:3", "steps=1:x", "warmup=2",
        "steps=1:2,warmup=x", "steps=1:2,warmup=-1", "steps=1:2,steps=3:4", "steps=1:2,"}) {
    EXPECT_THAT(message_of<UsageError>([&] { parse_profile(words); }),
                HasSubstr("expected steps=FIRST:LAST with 1 <= FIRST <= LAST"))
        << words;
  }
}

}  // namespace
}  // namespace hstu
