// hstu suite as a program: a whole suite here, and as jobs of a SLURM that a script plays.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/files.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kConfig = R"(
seed = 1
device = "host"
[data]
history_length = 15
min_history = 0
anchor_stride = 0
window_seconds = 0
history_strategy = "last_n"
[features]
item_rows = 100
[model]
kind = "ranking_gr"
embedding_dim = 8
dim = 16
layers = 1
heads = 1
head_dim = 16
positions = 64
attention_divisor = 0
candidates = 0
contextual_mask = true
allow_seen_labels = true
head_hidden = [16]
action_column = "action"
action_rows = 100
head = "multi_task"
labels = ["task0", "task1"]
label_column = "label"
[training]
batch_size = 8
max_steps = 4
[metrics]
every_steps = 1
[checkpoint]
final = false
every_seconds = 0
)";

constexpr const char* kSuite = R"(
title = "tiny suite"
[data]
generate = "random --users {16*ranks} --length-high 16 --items 50 --tasks 2"
prepare = "parquet"
[base]
config = "c.toml"
ranks = 2
published_gpus = 2
profile = "steps=2:3"
set = ["training.drop_last=true", "training.epochs=9"]
[[experiment]]
name = "slices"
set = ["training.balance=none"]
[[experiment]]
name = "broken"
set = ["training.first_window=99"]
[[experiment]]
name = "balanced"
[[published]]
experiment = "balanced"
hardware = "16 x H100"
tflops = 115.8
)";

class SuiteProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_folder();
    write_file(folder_ / "c.toml", kConfig);
    write_file(folder_ / "s.toml", kSuite);
  }
  CommandResult suite(const std::string& words) const {
    return run_command(fmt::format("PATH={}:$PATH {}/hstu suite {}/s.toml --output {} {}", folder_.string(),
                                   HSTU_PROGRAM_DIR, folder_.string(), out().string(), words));
  }
  Path out() const { return folder_ / "out"; }
  void script(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  Path folder_;
};

TEST_F(SuiteProgram, TrainsReportsAndContinues) {
  const CommandResult plan = suite("--dry-run");
  EXPECT_EQ(plan.exit_status, 0) << plan.text;
  EXPECT_THAT(plan.text, AllOf(HasSubstr("hstu generate random --users 32"), HasSubstr("--ranks 2")));
  EXPECT_FALSE(std::filesystem::exists(out()));

  const CommandResult first = suite("");
  EXPECT_EQ(first.exit_status, 1) << first.text;
  EXPECT_THAT(first.text, AllOf(HasSubstr("broken: FAILED"), HasSubstr("balanced: completed"),
                                HasSubstr("1 of 3 runs failed"), HasSubstr("speed-up")));
  EXPECT_THAT(read_file(out() / "report.md"),
              AllOf(HasSubstr("16 x H100"), HasSubstr("| slices | 2 |"), ContainsRegex("broken.*failed")));
  EXPECT_THAT(read_file(out() / "report.csv"), Not(HasSubstr("slices,not started")));
  EXPECT_TRUE(std::filesystem::exists(out() / "stages.svg"));
  EXPECT_TRUE(std::filesystem::exists(out() / "balanced/trace_2_3.json"));

  std::filesystem::remove_all(out() / "balanced");
  const CommandResult again = suite("--only slices --only balanced");
  EXPECT_EQ(again.exit_status, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("2 runs: 1 have ended, 1 to go"));
  const CommandResult other = suite("--ranks 1");
  EXPECT_EQ(other.exit_status, 2) << other.text;
  EXPECT_THAT(other.text, HasSubstr("has the runs of other data"));
}

TEST_F(SuiteProgram, TheShippedSuitesAreValid) {
  int suites = 0;
  for (const auto& file : std::filesystem::directory_iterator(Path(HSTU_SOURCE_DIR) / "configs/suites")) {
    const CommandResult result =
        run_command(fmt::format("{}/hstu suite {} --output {} --dry-run --ranks 2", HSTU_PROGRAM_DIR,
                                file.path().string(), out().string()));
    EXPECT_EQ(result.exit_status, 0) << result.text;
    EXPECT_THAT(result.text, HasSubstr("--ranks 2"));
    ++suites;
  }
  EXPECT_EQ(suites, 3);
}

TEST_F(SuiteProgram, JobsOfSlurmRunACopyInTheirOrder) {
  // A cluster of one machine: a job is done when it has been submitted.
  script("sbatch", fmt::format("echo \"sbatch $*\" >> {0}/calls\nfor last; do :; done\n"
                               "SLURM_FAKE=1 sh $last >> {0}/jobs.txt 2>&1\n"
                               "n=$(grep -c ^sbatch {0}/calls)\necho \"$n;cluster\"\n",
                               folder_.string()));
  script("srun", "exec \"$@\"\n");
  script("squeue", fmt::format("echo \"squeue $*\" >> {}/calls\n", folder_.string()));
  script("ssh",
         fmt::format("echo \"ssh $1 $2\" >> {}/calls\nshift 2\nexec sh -c \"$*\"\n", folder_.string()));
  const CommandResult result = suite(
      "--slurm --nodes 1 --gpus-per-node 1 --sequential --wait --poll 1 --host login "
      "--only slices --only balanced");
  ASSERT_EQ(result.exit_status, 0) << result.text << read_file(folder_ / "calls");
  const std::string calls = read_file(folder_ / "calls"), jobs = (out() / "jobs").string();
  EXPECT_THAT(calls, HasSubstr("ssh -- login\nsbatch --parsable " + jobs + "/data.sh"));
  EXPECT_THAT(calls, HasSubstr("sbatch --parsable --dependency=afterok:1 " + jobs + "/slices.sh"));
  EXPECT_THAT(calls,
              HasSubstr("sbatch --parsable --dependency=afterok:1,afterany:2 " + jobs + "/balanced.sh"));
  EXPECT_THAT(calls, HasSubstr("squeue --noheader --format=%i --jobs=1,2,3"));
  const std::string job = read_file(out() / "jobs/slices.sh");
  EXPECT_THAT(job,
              AllOf(HasSubstr("#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=1\n"),
                    HasSubstr("#SBATCH --nodes=1\n"), HasSubstr(out().string() + "/copy/bin/hstu train")));
  EXPECT_THAT(read_file(out() / "copy/commit.txt"), HasSubstr("hstu "));
  EXPECT_TRUE(std::filesystem::exists(out() / "copy/configs/c.toml"));
  EXPECT_THAT(result.text, AllOf(HasSubstr("balanced"), HasSubstr("completed")))
      << read_file(folder_ / "jobs.txt");

  script("sbatch", "echo 'sbatch: error: invalid partition' >&2\nexit 1\n");
  std::filesystem::remove_all(out() / "balanced");
  const CommandResult refused = suite("--slurm --gpus-per-node 1 --only balanced");
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.text, HasSubstr("invalid partition"));
}

// The queue is a file of job numbers; no job runs until it is run by hand.
TEST_F(SuiteProgram, QueuedJobsAreNotSubmittedAgainAndKilledDataAreRepeated) {
  script("sbatch",
         fmt::format("n=$(($(cat {0}/count 2>/dev/null || echo 0) + 1))\necho $n >{0}/count\n"
                     "for last; do :; done\necho $n >>{0}/queue\necho \"$last\" >>{0}/scripts\necho $n\n",
                     folder_.string()));
  script("squeue",
         fmt::format("cat {0}/queue\n[ -s {0}/queue ] || {{ echo 'Invalid job id specified'; exit 1; }}\n",
                     folder_.string()));
  const std::string words = "--slurm --nodes 1 --gpus-per-node 1 --only slices";
  ASSERT_EQ(suite(words).exit_status, 0);
  EXPECT_EQ(read_file(folder_ / "queue"), "1\n2\n");  // data, slices
  const CommandResult again = suite(words);
  EXPECT_EQ(again.exit_status, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("slices: job 2 is in the queue: it is not submitted again"));
  EXPECT_EQ(read_file(folder_ / "queue"), "1\n2\n");

  // The data's job was killed in the middle: SLURM removes what waits for it.
  std::filesystem::create_directories(out() / "data/events");
  write_file(folder_ / "queue", "");
  ASSERT_EQ(suite(words).exit_status, 0);
  EXPECT_EQ(read_file(folder_ / "queue"), "3\n4\n");
  EXPECT_THAT(read_file(out() / "jobs/slices.sh"), HasSubstr("#SBATCH --kill-on-invalid-dep=yes\n"));
  const CommandResult made = run_command("sh " + (out() / "jobs/data.sh").string());
  EXPECT_EQ(made.exit_status, 0) << made.text;
  EXPECT_TRUE(std::filesystem::exists(out() / "data"));
  // The data are there: only the experiment, which is in the queue, is left.
  write_file(folder_ / "queue", "4\n");
  const CommandResult last = suite(words);
  EXPECT_EQ(last.exit_status, 0) << last.text;
  EXPECT_THAT(last.text, AllOf(HasSubstr("slices: job 4 is in the queue"), Not(HasSubstr("data: job"))));
}

TEST_F(SuiteProgram, WordsThatScriptsOrSshWouldTakeAsSomethingElseAreRefused) {
  for (const std::string words : {"--time $'1\\ntouch x'", "--partition $'a\\rb'", "--account $'\\033[2J'",
                                  "--host -oProxyCommand=x", "--host 'a b'", "--host ''$'a\\n'"}) {
    const CommandResult result = run_command(
        fmt::format("bash -c \"PATH={0}:$PATH {1}/hstu suite {0}/s.toml --output {2} --slurm --nodes 1 "
                    "--gpus-per-node 1 {3}\"",
                    folder_.string(), HSTU_PROGRAM_DIR, out().string(), words));
    EXPECT_EQ(result.exit_status, 2) << words << result.text;
    EXPECT_THAT(result.text, HasSubstr(words.substr(0, words.find(' ')))) << words;
    EXPECT_FALSE(std::filesystem::exists(out()));
  }
}

TEST_F(SuiteProgram, OptionsOfSbatchAreQuoted) {
  script("sbatch", "echo 1\n");
  const CommandResult result = run_command(fmt::format(
      "PATH={0}:$PATH {1}/hstu suite {0}/s.toml --output '{0}/o %j \"p' --slurm --nodes 1 --gpus-per-node 1 "
      "--time '1 --wrap=x' --only slices",
      folder_.string(), HSTU_PROGRAM_DIR));
  ASSERT_EQ(result.exit_status, 0) << result.text;
  EXPECT_THAT(read_file(folder_ / "o %j \"p/jobs/slices.sh"),
              AllOf(HasSubstr("#SBATCH --time=\"1 --wrap=x\"\n"),
                    HasSubstr(fmt::format("#SBATCH --output=\"{}/o %%j \\\"p/logs/slices.txt\"\n",
                                          folder_.string()))));
}

// What git would run of a tree that somebody else has made.
TEST_F(SuiteProgram, TheTreeOfASuiteRunsNothingAndItsDifferenceIsKept) {
  script("sbatch", "echo 1\n");
  script("program", fmt::format("touch {}/has_run\ncat\n", folder_.string()));
  const Path tree = folder_ / "tree";
  const CommandResult made =
      run_command(fmt::format("mkdir {0} && cp {1}/c.toml {1}/s.toml {0} && cd {0} && git init -q && echo "
                              "'*.toml filter=f diff=d' >.gitattributes && "
                              "echo old >a.toml && git add . && git -c user.name=a -c user.email=a@b commit "
                              "-q -m x && git rev-parse HEAD && "
                              "echo new >a.toml && for k in core.fsmonitor filter.f.clean filter.f.process "
                              "diff.d.command diff.d.textconv "
                              "diff.external; do git config $k {1}/program; done",
                              tree.string(), folder_.string()));
  ASSERT_EQ(made.exit_status, 0) << made.text;
  const CommandResult result = run_command(fmt::format(
      "PATH={0}:$PATH GIT_DIR=/nowhere GIT_INDEX_FILE={0}/index {1}/hstu suite {2}/s.toml --output "
      "{3} --slurm --nodes 1 --gpus-per-node 1 --only slices",
      folder_.string(), HSTU_PROGRAM_DIR, tree.string(), out().string()));
  ASSERT_EQ(result.exit_status, 0) << result.text;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "has_run"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "index"));
  EXPECT_FALSE(std::filesystem::exists(out() / "copy/git"));
  EXPECT_THAT(read_file(out() / "copy/commit.txt"), HasSubstr(made.text));
  EXPECT_THAT(read_file(out() / "copy/difference.patch"), HasSubstr("-old\n+new\n"));
}

}  // namespace
}  // namespace hstu
