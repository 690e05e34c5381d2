#include "hstu/comparison/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/comparison/suite_report.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kBase =
    "title = \"small\"\n[data]\ngenerate = \"random --users {640*ranks}\"\nprepare = \"parquet\"\n"
    "[base]\nconfig = \"c.toml\"\npublished_gpus = 8\nset = [\"training.batch_size={4*ranks}\"]\n";
constexpr const char* kTwo =
    "[[experiment]]\nname = \"first\"\nset = [\"features.item_rows={1_000*scale}\"]\n"
    "[[experiment]]\nname = \"second\"\nranks = 1\nset = [\"training.balance=none\"]\n";

Path suite_of(const std::string& text) {
  const Path folder = temporary_folder();
  write_file(folder / "c.toml", "seed = 5\n[data]\npath = \"ds\"\n");
  write_file(folder / "s.toml", text);
  return folder / "s.toml";
}

TEST(Suite, SizesAreProductsOfRanksAndScale) {
  EXPECT_EQ(with_sizes("a {32*ranks} b {50_000_000*scale}", 2, 0.25), "a 64 b 12500000");
  EXPECT_EQ(with_sizes("{100*scale/ranks} {ranks} {2 * ranks}", 4, 0.5), "13 4 8");
  EXPECT_EQ(with_sizes("{1*scale}", 1, 0.001), "1") << "at least one";
  EXPECT_EQ(with_sizes("x={a = 1} {} {other} {1*} {", 1, 1), "x={a = 1} {} {other} {1*} {");
}

TEST(Suite, ASizeThatNoConfigurationTakesIsRefused) {
  for (const char* const text : {"x={9999999999999999999999*ranks}", "{1e308*1e308}", "{1e15*ranks}"})
    EXPECT_THROW(with_sizes(text, 2, 1), UsageError) << text;
  EXPECT_EQ(with_sizes("{1e15*scale}", 2, 0.5), "500000000000000");
}

TEST(Suite, AnExperimentHasTheBasesKeysAndItsOwn) {
  const Suite suite = resolve_suite(suite_of(std::string(kBase) + kTwo), {.ranks = 2, .set = {"seed=9"}}, 4);
  EXPECT_EQ(suite.base.scale, 0.25);
  EXPECT_EQ(suite.data.generate, "random --users 1280");
  EXPECT_EQ(scale_text(suite), "2 of 8 GPUs; sizes with a scale are 0.25 of the published ones");
  const std::vector<PlannedRun> runs = plan_suite(suite, "/data set");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_THAT(runs[0].set, ElementsAre("data.path=\"/data set\"", "training.batch_size=8",
                                       "features.item_rows=250", "seed=9"));
  EXPECT_EQ(runs[0].options.training.batch_size, 8);
  EXPECT_EQ(runs[0].options.seed, 9u);
  EXPECT_EQ(runs[1].ranks, 1);
  EXPECT_EQ(runs[1].options.training.batch_size, 4) << "sizes are those of its own ranks";
  EXPECT_EQ(runs[1].options.training.balance, Balance::none);
  EXPECT_EQ(plan_suite(suite, "", {"second"}).front().name, "second");
  EXPECT_THROW(plan_suite(suite, "", {"third"}), UsageError);
  EXPECT_EQ(resolve_suite(suite_of(std::string(kBase) + kTwo), {}, 4).base.ranks, 4) << "the GPUs here";
  const Suite plain = resolve_suite(suite_of(std::string(kBase) + "[[experiment]]\nname = \"a\"\n"), {}, 1);
  EXPECT_EQ(scale_text(plain), "1 of 8 GPUs") << "no size has a scale";
}

TEST(Suite, LeavesOutWhatNeedsMoreRanks) {
  const Path file = Path(HSTU_SOURCE_DIR) / "configs/suites/nvidia-e2e.toml";
  const auto names = [](const Suite& suite) {
    std::vector<std::string> list;
    for (const SuiteExperiment& experiment : suite.experiments) list.push_back(experiment.name);
    for (const PublishedFigures& figures : suite.published) list.push_back(figures.experiment);
    return list;
  };
  const Suite one = resolve_suite(file, {}, 1), two = resolve_suite(file, {}, 2);
  EXPECT_THAT(names(one), Not(::testing::Contains("pr340_tensor")));
  EXPECT_THAT(scale_text(one), HasSubstr("need more ranks: pr340_tensor"));
  EXPECT_THAT(names(two), ::testing::Contains("pr340_tensor").Times(2));
}

TEST(Suite, TheResolvedSuiteReadsBackToItself) {
  const Path file = suite_of(std::string(kBase) + kTwo);
  const std::string text = to_toml(resolve_suite(file, {}, 2));
  write_file(file, text);
  EXPECT_EQ(to_toml(load_config<Suite>(file)), text);
  EXPECT_EQ(to_toml(resolve_suite(file, {}, 99)), to_toml(resolve_suite(file, {}, 1)));
}

TEST(Suite, RefusesWhatIsNoSuiteByName) {
  const auto complaint = [](const std::string& text) {
    try {
      plan_suite(resolve_suite(suite_of(text), {}, 1), "");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(complaint(kBase), HasSubstr("at least one [[experiment]]"));
  EXPECT_THAT(complaint(std::string(kBase) + "[[experiment]]\nname = \"a\"\n[[experiment]]\nname = \"a\"\n"),
              HasSubstr("two experiments have the name \"a\""));
  EXPECT_THAT(complaint(std::string(kBase) + "[[experiment]]\nname = \"data\"\n"),
              HasSubstr("found \"data\""));
  EXPECT_THAT(complaint(std::string(kBase) + "[[experiment]]\nname = \"../a\"\n"),
              HasSubstr("found \"../a\""));
  EXPECT_THAT(
      complaint(std::string(kBase) + kTwo + "[[published]]\nexperiment = \"fiirst\"\nhardware = \"x\"\n"),
      HasSubstr("did you mean \"first\""));
  EXPECT_THAT(complaint(std::string(kBase) + "[[experiment]]\nname = \"a\"\nset = [\"model.layerz=2\"]\n"),
              HasSubstr("experiment a: "));
}

Json train_line(double step, double ms, double tflops, double tokens) {
  return {{"event", "train"},          {"step", step},
          {"samples", 10 * step},      {"step_ms", ms},
          {"data_wait_ms", 0.0},       {"tflops", tflops},
          {"mfu", tflops / 100},       {"tokens_per_s", tokens},
          {"forward_ms", ms / 2},      {"memory_peak_mib", 1024.0},
          {"work_max_over_mean", 1.1}, {"work_max_over_mean_of_slices", 1.5}};
}

TEST(SuiteFigures, AreOfOneRankByTimeWithoutTheFirstLines) {
  const RunMetrics metrics(
      {{{"event", "run"}, {"device", "host"}, {"train_samples", 864000.0}, {"memory_plan_mib", 512.0}},
       train_line(10, 1000, 1, 1),     // warms up
       train_line(20, 100, 40, 4000),  // 1 s
       train_line(30, 300, 20, 2000),  // 3 s
       train_line(40, 100, 60, 6000),  // 1 s
       {{"event", "end"}, {"reason", "completed"}}});
  SuiteExperiment experiment;
  experiment.ranks = 2;
  const SuiteFigures f = suite_figures(experiment, {}, metrics, {});
  EXPECT_EQ(f.state, "completed");
  EXPECT_EQ(f.steps, 30);
  EXPECT_DOUBLE_EQ(f.step_ms, 5000.0 / 30);
  EXPECT_DOUBLE_EQ(*f.tflops, (40 * 1 + 20 * 3 + 60 * 1) / 5.0 / 2);
  EXPECT_DOUBLE_EQ(*f.median_tflops, 20);
  EXPECT_DOUBLE_EQ(*f.best_tflops, 30);
  EXPECT_DOUBLE_EQ(*f.mfu, 0.32);
  EXPECT_DOUBLE_EQ(f.tokens_per_s, 1600);
  EXPECT_DOUBLE_EQ(f.samples_per_s, 60);
  EXPECT_DOUBLE_EQ(f.days_per_epoch, 864000.0 / 60 / 86400);
  EXPECT_DOUBLE_EQ(*f.balance_before, 1.5);
  EXPECT_DOUBLE_EQ(*f.balance_after, 1.1);
  EXPECT_DOUBLE_EQ(f.memory_gib, 1);
  EXPECT_DOUBLE_EQ(f.planned_gib.value_or(0), 0.5);
  EXPECT_FALSE(f.exposed_share);
}

TEST(SuiteFigures, ExposedIsWhatNoOperationIsBeside) {
  const auto name = [](int tid, const char* thread) {
    return Json{{"ph", "M"}, {"name", "thread_name"}, {"pid", 1}, {"tid", tid}, {"args", {{"name", thread}}}};
  };
  const auto range = [](int tid, const char* of, double begin, double end) {
    return Json{{"ph", "X"}, {"name", of}, {"pid", 1}, {"tid", tid}, {"ts", begin}, {"dur", end - begin}};
  };
  Json trace{{"traceEvents",
              {name(1, "hstu steps"), name(2, "cuda:0 stages"), name(3, "cuda:0 messages"),
               name(4, "hstu collectives"), range(1, "step 5", 0, 100), range(2, "forward", 0, 100),
               range(2, "linear", 0, 40), range(3, "rows", 30, 60), range(4, "sum", 0, 90)}}};
  EXPECT_DOUBLE_EQ(*exposed_share(trace), 0.2);  // 40 to 60
  trace["traceEvents"].erase(7);
  EXPECT_DOUBLE_EQ(*exposed_share(trace), 0.5) << "without messages: the collectives";
  EXPECT_FALSE(exposed_share(Json{{"traceEvents", Json::array()}}));
}

TEST(SuiteReport, HasTablesChartsAndPublishedFigures) {
  const Path file =
      suite_of(std::string(kBase) + kTwo +
               "[[published]]\nexperiment = \"first\"\nhardware = \"16 x <H100>\"\nsource = \"them\"\n"
               "tflops = 75.6\nmfu = 0.0765\nspeedup = 1\n");
  const Suite suite = resolve_suite(file, {.ranks = 2}, 0);
  std::vector<SuiteFigures> figures(2);
  figures[0].name = "first", figures[0].state = "completed", figures[0].device = "a, GPU";
  figures[0].tflops = figures[0].best_tflops = 302.6, figures[0].mfu = 0.3059, figures[0].speedup = 1;
  figures[0].step_ms = 12, figures[0].stages = {{"forward", 4.0}, {"backward", 8.0}};
  figures[1].name = "second", figures[1].state = "failed";
  const auto files = suite_report(suite, figures);
  const auto text_of = [&](const std::string& name) {
    for (const auto& [of, text] : files)
      if (of == name) return text;
    return std::string();
  };
  EXPECT_THAT(text_of("report.md"), HasSubstr("| first | them | 16 x <H100> | 75.6 | - | 7.65 | - | 1.00 |"));
  EXPECT_THAT(text_of("report.md"),
              HasSubstr("| first | hstu | 1 x a, GPU | 302.6 | 302.6 | 30.59 | - | 1.00 |"));
  EXPECT_THAT(text_of("report.md"), HasSubstr("**2 of 8 GPUs; sizes"));
  EXPECT_THAT(text_of("report.csv"), HasSubstr("first,completed,\"a, GPU\",1,0,12,302.6,,302.6,0.3059,"));
  EXPECT_THAT(text_of("report.csv"), HasSubstr("second,failed,,1,0,0,,,,,"));
  EXPECT_THAT(text_of("report.html"), HasSubstr("16 x &lt;H100&gt;"));
  EXPECT_THAT(text_of("stages.svg"), HasSubstr("backward"));
  EXPECT_THAT(text_of("mfu.svg"), HasSubstr("class=\"reference\""));
  EXPECT_THAT(text_of("memory.svg"), "") << "nothing was measured";
  EXPECT_THAT(text_of("report.html"), Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace hstu
