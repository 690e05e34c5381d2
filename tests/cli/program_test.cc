// hstu as a program: exit status and messages.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/json.h"
#include "hstu/base/npy.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

CommandResult run(const std::string& words) {
  return run_command(fmt::format("{}/hstu {}", HSTU_PROGRAM_DIR, words));
}

std::string config_text(const Path& dataset) {
  RunOptions options = testing::small_run(dataset);
  options.training.max_steps = 12;
  return to_toml(options);
}

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_folder();
    testing::write_small_dataset(folder_ / "dataset");
    write_file(config(), config_text(folder_ / "dataset"));
  }
  Path config() const { return folder_ / "config.toml"; }
  std::string train_words(const std::string& more = "") const {
    return fmt::format("train {} --output {} {}", config().string(), (folder_ / "run").string(), more);
  }
  Path folder_;
};

TEST_F(Program, AttentionBenchmarkNamesTheWordItDoesNotKnow) {
  const auto complaint = [&](const std::string& words) {
    const CommandResult result = run("bench attention " + words);
    EXPECT_EQ(result.exit_status, 2) << words;
    return result.text;
  };
  EXPECT_THAT(complaint("--shape 32,4096,4"), HasSubstr("samples,length,heads,head size, found '32,4096,4'"));
  EXPECT_THAT(complaint("--shape 32,x,4,64"), HasSubstr("expected a whole number, found 'x'"));
  EXPECT_THAT(complaint("--mask diagonal"), HasSubstr("causal, full or LEFT,RIGHT, found 'diagonal'"));
  EXPECT_THAT(complaint("--mask 99999999999,0"), HasSubstr("expected a whole number, found '99999999999'"));
  EXPECT_THAT(complaint("--direction up"), HasSubstr("fwd, bwd or both, found 'up'"));
  EXPECT_THAT(complaint("--type int8"), HasSubstr("bf16, fp16 or fp32, found 'int8'"));
  EXPECT_THAT(complaint("--lengths gamma"),
              HasSubstr("fixed, uniform, normal, zipf or lognormal, found 'gamma'"));
  EXPECT_THAT(complaint("--bias time,day"),
              HasSubstr("position, time or both with a comma, found 'time,day'"));
  EXPECT_THAT(complaint("--device ampere"), HasSubstr("such as 8.0 or 9.0, found 'ampere'"));
  EXPECT_THAT(complaint("--device 9"), HasSubstr("such as 8.0 or 9.0, found '9'"));
  EXPECT_THAT(complaint("--heatmap figures.json"), HasSubstr("an .svg file, found 'figures.json'"));
  EXPECT_THAT(complaint("--heatmap x.svg --heatmap-samples 1,,2"),
              HasSubstr("--heatmap-samples: expected a whole"));
  EXPECT_THAT(complaint("--heatmap x.svg --heatmap-lengths 0"), HasSubstr("positive numbers, found '0'"));
  EXPECT_THAT(complaint("--heatmap x.svg --shape 1,1,4,64 --shape 1,1,4,128"), HasSubstr("one --shape"));
  EXPECT_THAT(complaint("--heatmap x.svg --explain"), HasSubstr("--explain"));
}

TEST_F(Program, AttentionIsExplainedForAnyDeviceWithoutAGpu) {
  const auto explained = [&](const std::string& words) {
    const CommandResult result = run("bench attention --explain " + words);
    EXPECT_EQ(result.exit_status, 0) << result.text;
    return result.text;
  };
  EXPECT_EQ(
      explained("--device 9.0"),
      "32,4096,4,128: forward hopper, backward hopper: kernels for Hopper, forward two blocks to a tile\n");
  EXPECT_THAT(explained("--device 9.0 --bias time --shape 1,9,4,256"), HasSubstr("backward mma"));
  EXPECT_THAT(explained("--device 9.0 --deterministic"), HasSubstr("dQ added up in one order"));
  const std::string ampere = explained("--device 8.0 --shape 32,4096,4,128 --shape 1,9,4,96");
  EXPECT_THAT(ampere, HasSubstr("32,4096,4,128: forward mma, backward mma: kernels for mma.sync"));
  EXPECT_THAT(ampere, HasSubstr("1,9,4,96: forward plain, backward plain: plain kernels: head size 96"));
  EXPECT_THAT(explained("--device 7.5"), HasSubstr("below 8.0"));
}

TEST_F(Program, AttentionBenchmarkSaysThatThereIsNoGpuAndNothingElse) {
  if (run("bench attention --explain").exit_status == 0) GTEST_SKIP() << "there is a GPU";
  const CommandResult result = run("bench attention --shape 1,128,4,64");
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.text,
              MatchesRegex("hstu: [^\n]*(no NVIDIA GPU can be used here|built without CUDA)[^\n]*\n"));
}

TEST_F(Program, AttentionBenchmarkRefusesPathsItCannotWriteBeforeItTimes) {
  const auto complaint = [&](const std::string& words) {
    const CommandResult result = run("bench attention " + words);
    EXPECT_EQ(result.exit_status, 1) << words;
    return result.text;
  };
  const std::string folder = folder_.string();
  EXPECT_THAT(complaint("--json " + folder), HasSubstr("cannot write " + folder + ": it is a folder"));
  EXPECT_THAT(complaint("--json /proc/x.json"), HasSubstr("cannot write /proc/x.json: "));
  EXPECT_THAT(complaint("--heatmap /proc/x.svg"), HasSubstr("cannot write /proc/x.svg: "));
  EXPECT_THAT(complaint("--heatmap " + folder + "/x.svg --json /proc/x.json"),
              HasSubstr("cannot write /proc/x.json: "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.svg.partial"));
}

TEST_F(Program, EveryCommandTeachesWithAnExample) {
  for (const char* command :
       {"train", "plan", "eval", "predict", "export", "inspect", "compare", "sweep", "suite", "doctor",
        "config", "bench step", "bench attention", "bench balance"}) {
    const CommandResult result = run(fmt::format("{} --help", command));
    EXPECT_EQ(result.exit_status, 0) << command;
    EXPECT_THAT(result.text, HasSubstr("Example")) << command;
  }
  EXPECT_THAT(run("--help").text, AllOf(HasSubstr("generate"), HasSubstr("prepare"), HasSubstr("train")));
}

TEST_F(Program, WrongWordsEndWithStatusTwo) {
  EXPECT_EQ(run("").exit_status, 2);
  EXPECT_EQ(run("trian").exit_status, 2);
  EXPECT_EQ(run("train --nonsense").exit_status, 2);
  EXPECT_EQ(run("train").exit_status, 2);
  const CommandResult missing =
      run(fmt::format("train {} --output {}", (folder_ / "none.toml").string(), "run"));
  EXPECT_EQ(missing.exit_status, 2);
  EXPECT_THAT(missing.text, HasSubstr("none.toml"));
}

TEST_F(Program, AnUnknownKeyNamesTheNearestOneAndMakesNoRun) {
  const CommandResult result = run(train_words("--set training.bacth_size=3"));
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.text, AllOf(HasSubstr("bacth_size"), HasSubstr("batch_size")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(Program, AWrongTypeNamesKeyAndValue) {
  const CommandResult result = run(train_words("--set training.batch_size=many"));
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.text, AllOf(HasSubstr("training.batch_size"), HasSubstr("many")));
}

TEST_F(Program, AMissingDatasetIsNamedAndMakesNoRun) {
  const CommandResult result = run(train_words("--set data.path=nowhere"));
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.text, HasSubstr("nowhere"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(Program, TrainsEvaluatesAndInspects) {
  const CommandResult trained = run(train_words());
  EXPECT_EQ(trained.exit_status, 0) << trained.text;
  EXPECT_THAT(trained.text, AllOf(HasSubstr("completed after 12 steps"), HasSubstr("baseline")));
  for (const char* name : {"config.toml", "metrics.jsonl", "summary.json", "checkpoints"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / name)) << name;
  }
  EXPECT_EQ(run(train_words()).exit_status, 2) << "wrote over a run";

  const Path run_folder = folder_ / "run", scores = folder_ / "scores";
  const CommandResult evaluated =
      run(fmt::format("eval {} --predictions {}", run_folder.string(), scores.string()));
  EXPECT_EQ(evaluated.exit_status, 0) << evaluated.text;
  const Json summary = Json::parse(read_file(run_folder / "summary.json"));
  EXPECT_THAT(evaluated.text, HasSubstr(fmt::format("\"auc\": {}", summary.at("eval").at("auc").dump())));
  const NpyColumn<float> score(scores / "score.npy");
  EXPECT_EQ(score.size(), summary.at("eval").at("n").get<std::int64_t>());
  for (const char* name : {"user.npy", "item.npy", "time.npy", "position.npy"}) {
    EXPECT_EQ(NpyColumn<std::int64_t>(scores / name).size(), score.size()) << name;
  }
  EXPECT_EQ(NpyColumn<std::uint8_t>(scores / "label.npy").size(), score.size());

  EXPECT_THAT(
      run("inspect " + run_folder.string()).text,
      AllOf(HasSubstr("completed after 12 steps"), HasSubstr("baseline"), HasSubstr("max_steps = 12")));
  EXPECT_THAT(run("inspect --all " + run_folder.string()).text, HasSubstr("baseline_auc"));
  EXPECT_THAT(run("inspect " + (folder_ / "dataset").string()).text, HasSubstr("1,200"));
  EXPECT_THAT(run("inspect --all " + (folder_ / "dataset").string()).text, HasSubstr("counts.events"));
  EXPECT_EQ(run("inspect --json " + (run_folder / "checkpoints/step_00000012").string()).exit_status, 0);
  EXPECT_EQ(run("inspect " + (run_folder / "checkpoints").string()).exit_status, 2);
  EXPECT_EQ(run(fmt::format("eval {} --checkpoint 5", run_folder.string())).exit_status, 2);
}

TEST_F(Program, EvaluatesByWeightsAsTrainingDidUnlessTold) {
  testing::write_small_dataset(folder_ / "weighted", 40, 30, true);
  const CommandResult trained =
      run(train_words("--set evaluation.weighted=true --set data.path=" + (folder_ / "weighted").string()));
  ASSERT_EQ(trained.exit_status, 0) << trained.text;
  const Path run_folder = folder_ / "run", scores = folder_ / "scores";
  const Json summary = Json::parse(read_file(run_folder / "summary.json"));
  const std::string log_loss = fmt::format("\"log_loss\": {}", summary.at("eval").at("log_loss").dump());
  EXPECT_THAT(run(fmt::format("eval {} --predictions {}", run_folder.string(), scores.string())).text,
              HasSubstr(log_loss));
  EXPECT_TRUE(std::filesystem::exists(scores / "weight.npy"));
  EXPECT_THAT(run("eval --weighted " + run_folder.string()).text, HasSubstr(log_loss));
  EXPECT_THAT(run("eval --no-weighted " + run_folder.string()).text,
              AllOf(HasSubstr("log_loss"), Not(HasSubstr(log_loss))));
}

TEST_F(Program, ARunHoldsTheAbsolutePathOfItsDataset) {
  const CommandResult trained = run_command(fmt::format("cd {0} && {1}/hstu {2} --set data.path=./dataset",
                                                        folder_.string(), HSTU_PROGRAM_DIR, train_words()));
  EXPECT_EQ(trained.exit_status, 0) << trained.text;
  EXPECT_THAT(read_file(folder_ / "run/config.toml"),
              HasSubstr(fmt::format("path = \"{}\"", (folder_ / "dataset").string())));
}

TEST_F(Program, ARunThatFailsBeforeItsFirstStepLeavesNoFolder) {
  std::filesystem::remove(folder_ / "dataset/item.npy");
  const CommandResult result = run(train_words());
  EXPECT_EQ(result.exit_status, 1) << result.text;
  EXPECT_THAT(result.text, HasSubstr("item.npy"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(Program, ARefusedRunLeavesNoFolder) {
  const CommandResult result = run(train_words("--set training.first_window=99"));
  EXPECT_EQ(result.exit_status, 2) << result.text;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(Program, AnOutputThatCannotBeWrittenIsNamed) {
  const CommandResult result = run(fmt::format("train {} --output /proc/hstu-run", config().string()));
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.text, HasSubstr("cannot create the folder /proc/hstu-run"));
}

TEST_F(Program, GoesOnWithTheLatestRunAndWarmStartsAnother) {
  ASSERT_EQ(run(train_words()).exit_status, 0);
  const CommandResult more = run(fmt::format(
      "train --resume latest --runs {} --set sparse_optimizer.learning_rate=0.5", folder_.string()));
  EXPECT_EQ(more.exit_status, 2);
  EXPECT_THAT(more.text, HasSubstr("sparse_optimizer.learning_rate"));
  const CommandResult allowed = run(fmt::format(
      "train --resume latest --runs {} --set training.max_steps=14 --allow-change training.max_steps",
      folder_.string()));
  EXPECT_EQ(allowed.exit_status, 0) << allowed.text;
  EXPECT_THAT(allowed.text, HasSubstr("completed after 14 steps"));
  const CommandResult warm = run(
      fmt::format("train {0} --warm-start {1}/run --output {1}/warm", config().string(), folder_.string()));
  EXPECT_EQ(warm.exit_status, 0) << warm.text;
  EXPECT_THAT(warm.text, HasSubstr("warm start from"));
  EXPECT_EQ(run(fmt::format("train --resume {0}/warm --warm-start {0}/run", folder_.string())).exit_status,
            2);
}

TEST_F(Program, WritesAConfigurationThatTrains) {
  const Path made = folder_ / "made.toml";
  const CommandResult written =
      run(fmt::format("config --template --for {} > {}", (folder_ / "dataset").string(), made.string()));
  EXPECT_EQ(written.exit_status, 0) << written.text;
  EXPECT_EQ(run("plan " + made.string()).exit_status, 0);
  const CommandResult trained = run(fmt::format("train {} --set training.max_steps=4 --output {}",
                                                made.string(), (folder_ / "run").string()));
  EXPECT_EQ(trained.exit_status, 0) << trained.text;
  EXPECT_THAT(trained.text, AllOf(HasSubstr("completed after 4 steps"), HasSubstr("best auc: 0.")));
  EXPECT_EQ(run("eval --checkpoint best " + (folder_ / "run").string()).exit_status, 0);
  EXPECT_THAT(run("inspect " + (folder_ / "run").string()).text, HasSubstr("best           of step 4"));
}

TEST_F(Program, SaysWhatIsNotSeenByThemselves) {
  const CommandResult silent =
      run(train_words("--set evaluation.holdout_fraction=0 --set features.item_rows=5"));
  EXPECT_EQ(silent.exit_status, 0) << silent.text;
  EXPECT_THAT(silent.text, HasSubstr("no evaluation: nothing is held out"));
  EXPECT_THAT(silent.text,
              AllOf(HasSubstr("WARNING: ids outside their tables"), HasSubstr("features.item_rows")));
}

TEST_F(Program, ASweepTrainsSkipsResumesAndReports) {
  const Path output = folder_ / "sweep";
  const std::string words = fmt::format(
      "sweep {} --vary dense_optimizer.learning_rate=0.01,0.02 --seeds 2 --jobs 2 --threads 2 --set "
      "training.max_steps=4 --output {}",
      config().string(), output.string());
  const CommandResult first = run(words);
  EXPECT_EQ(first.exit_status, 0) << first.text;
  EXPECT_THAT(first.text,
              AllOf(HasSubstr("0 have ended, 4 to go; 2 at a time, 1 threads"), HasSubstr("2 of 2")));
  const Path one = output / "dense_optimizer.learning_rate=0.02,seed=2";
  EXPECT_TRUE(std::filesystem::exists(one / "summary.json"));
  EXPECT_TRUE(std::filesystem::exists(output / "summary.html"));
  const std::string lines = read_file(output / "summary.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);

  // One run is gone, and one was killed before its end.
  std::filesystem::remove_all(one);
  const Path killed = output / "dense_optimizer.learning_rate=0.01,seed=1/metrics.jsonl";
  const std::string log = read_file(killed);
  write_file(killed, log.substr(0, log.rfind('\n', log.size() - 2) + 1));
  const CommandResult again = run(words);
  EXPECT_EQ(again.exit_status, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("2 have ended, 2 to go"));
  EXPECT_TRUE(std::filesystem::exists(one / "summary.json"));

  const CommandResult compared =
      run(fmt::format("compare {}/dense* --output {}", output.string(), (folder_ / "all.html").string()));
  EXPECT_EQ(compared.exit_status, 0) << compared.text;
  EXPECT_THAT(compared.text, AllOf(HasSubstr("dense_optimizer.learning_rate"), HasSubstr("completed")));
  EXPECT_THAT(read_file(folder_ / "all.html"), HasSubstr("AUC of the held-out samples"));
}

TEST_F(Program, ARunOfASweepThatFailsDoesNotStopTheOthers) {
  const CommandResult result =
      run(fmt::format("sweep {} --vary training.first_window=0,99 --set training.max_steps=2 --output {}",
                      config().string(), (folder_ / "sweep").string()));
  EXPECT_EQ(result.exit_status, 1) << result.text;
  EXPECT_THAT(result.text, AllOf(HasSubstr("training.first_window=99,seed=1: FAILED with status 2: hstu: "),
                                 HasSubstr("training.first_window=0,seed=1: completed"),
                                 HasSubstr("1 of 2 runs failed"), HasSubstr("0 of 1")));
}

TEST_F(Program, RefusesATornCheckpointByName) {
  ASSERT_EQ(run(train_words()).exit_status, 0);
  const Path dense = folder_ / "run/checkpoints/step_00000012/dense.safetensors";
  std::filesystem::resize_file(dense, std::filesystem::file_size(dense) - 1);
  const CommandResult result = run("eval " + (folder_ / "run").string());
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.text, HasSubstr("dense.safetensors"));
}

TEST_F(Program, DoctorSaysThatTheCpuPathWorks) {
  const CommandResult result = run("doctor");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("processor"), HasSubstr("GPU"), HasSubstr("works on this machine")));
}

}  // namespace
}  // namespace hstu
