#include "hstu/tensor/stage_timer.h"

#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/tensor/tape.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;

class Names : public Trace {
 public:
  void begin(std::string_view name) override { text += "(" + std::string(name); }
  void end() override { text += ")"; }
  std::string text;
};

// name@depth<outer, in order.
std::vector<std::string> shapes(const std::vector<StageTime>& times) {
  std::vector<std::string> words;
  words.reserve(times.size());
  for (const StageTime& t : times) words.push_back(fmt::format("{}@{}<{}", t.name, t.depth, t.outer));
  return words;
}

void pause(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

TEST(StageTimer, GivesRangesInTheOrderOfTheirBeginsWithWhatIsAround) {
  StageTimer timer{Stream()};
  timer.begin("forward");
  timer.begin("attention");
  timer.touches_bytes(100);
  timer.end();
  timer.begin("gate");
  timer.touches_bytes(10);
  timer.end();
  timer.end();
  timer.begin("update");
  timer.end();
  const auto times = timer.take();
  EXPECT_THAT(shapes(times), ElementsAre("forward@0<-1", "attention@1<0", "gate@1<0", "update@0<-1"));
  EXPECT_EQ(times[0].bytes, 110);
  EXPECT_EQ(times[1].bytes, 100);
  EXPECT_EQ(times[3].bytes, 0);
  EXPECT_TRUE(timer.take().empty());
}

TEST(StageTimer, WatchesAPool) {
  const auto pool = MemoryPool::create(Stream());
  StageTimer timer(Stream(), 2, nullptr, pool);
  Buffer kept;
  timer.begin("forward");
  kept = pool->allocate(1 << 20);
  timer.end();
  const auto times = timer.take();
  EXPECT_EQ(times[0].memory_begin, 0);
  EXPECT_EQ(times[0].memory_end, 1 << 20);
}

TEST(StageTimer, RangesNestInTime) {
  StageTimer timer{Stream()};
  pause(2);
  for (int step = 0; step < 2; ++step) {
    timer.restart();
    timer.begin("forward");
    pause(2);
    timer.begin("attention");
    pause(3);
    timer.end();
    timer.end();
    const auto times = timer.take();
    EXPECT_GE(times[0].begin_ms, 0);
    EXPECT_GE(times[1].begin_ms, times[0].begin_ms + 2);
    EXPECT_GE(times[1].ms(), 3);
    EXPECT_LE(times[1].end_ms, times[0].end_ms);
    EXPECT_NEAR(times[0].host_begin_ms, times[0].begin_ms, 1);
    EXPECT_LE(times[1].host_end_ms, times[0].host_end_ms);
  }
}

TEST(StageTimer, MeasuresToADepthAndTellsAnotherTraceAll) {
  Names names;
  StageTimer timer(Stream(), 1, &names);
  timer.begin("forward");
  timer.begin("attention");
  timer.end();
  timer.end();
  EXPECT_THAT(shapes(timer.take()), ElementsAre("forward@0<-1"));
  EXPECT_EQ(names.text, "(forward(attention))");
}

// y = x * factor, with a range as an operation has one.
Variable scaled(Tape& tape, const Variable& x, const char* name) {
  const TraceRange range(tape.context(), name);
  return tape.record(x.value(), {x}, [=, context = tape.context()](const Tensor& dy) {
    const TraceRange backward(context, name);
    x.gradient_slot().tensor.copy_from(dy, {});
  });
}

TEST(StageRange, NamesTheStagesOfBothPasses) {
  Names names;
  Context context;
  context.trace = &names;
  Tape tape(context);
  Variable x(Tensor::zeros({2}, DType::f32));
  x = scaled(tape, x, "a");
  {
    StageRange stage(tape, "one");
    x = scaled(tape, scaled(tape, x, "b"), "c");
    stage.next("two");
    x = scaled(tape, x, "d");
  }
  EXPECT_EQ(names.text, "(a)(one(b)(c))(two(d))");
  names.text.clear();
  tape.backward(x, Tensor::zeros({2}, DType::f32));
  EXPECT_EQ(names.text, "(two(d))(one(c)(b))(a)");
}

TEST(StageRange, NamesTheStagesOfWhatIsComputedAgain) {
  Names names;
  Context context;
  context.trace = &names;
  Tape tape(context);
  const Variable x(Tensor::zeros({2}, DType::f32));
  StageRange outer(tape, "outer");
  const Variable y = tape.recompute([&tape, x] {
    StageRange stage(tape, "one");
    const Variable a = scaled(tape, x, "a");
    stage.next("two");
    return scaled(tape, a, "b");
  });
  outer.next("");
  names.text.clear();
  tape.backward(y, Tensor::zeros({2}, DType::f32));
  EXPECT_EQ(names.text, "(outer)(one(a))(two(b))(outer)(two(b))(one(a))");
}

TEST(StageRange, TheTraceLearnsWhatOperationsMove) {
  StageTimer timer{Stream()};
  Context context;
  context.trace = &timer;
  Tape tape(context);
  const Variable x(Tensor::zeros({10}, DType::f32));
  timer.begin("forward");
  const Variable y = scaled(tape, x, "a");
  timer.end();
  timer.begin("backward");
  tape.backward(y, Tensor::zeros({10}, DType::f32));
  timer.end();
  const auto times = timer.take();
  EXPECT_EQ(times[0].bytes, 80);  // x, y
  EXPECT_EQ(times[2].name, "backward");
  EXPECT_EQ(times[2].bytes, 120);  // dy, x, dx
}

}  // namespace
}  // namespace hstu
