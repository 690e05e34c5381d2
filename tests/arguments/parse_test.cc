#include "hstu/arguments/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/arguments/completion.h"
#include "hstu/arguments/manual.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

// A program "tool" with the commands "train CONFIG --output" and "bench step|data".
struct Tool {
  Tool() {
    app.require_subcommand(1);
    app.set_version_flag("--version", "tool 1");
    CLI::App* const train = app.add_subcommand("train", "Train a model");
    train->add_option("CONFIG", config, "a file");
    train->add_option("--output", output, "a folder\nthat is new")->required();
    train->add_option("--secret", output)->group("");
    train->add_flag("--quiet", quiet, "say -nothing");
    train->footer("Example:\n  tool train c.toml\n.hidden");
    train->callback([this] { ran = true; });
    CLI::App* const bench = app.add_subcommand("bench", "Measure");
    bench->require_subcommand(1);
    bench->add_subcommand("step", "A step");
    bench->add_subcommand("data", "The data")->alias("input");
  }
  CLI::App app{"tool does things\n\nand more", "tool"};
  std::string config, output;
  bool quiet = false, ran = false;
};

struct Outcome {
  int status;
  std::string output, messages;
  bool ran;
};

Outcome run(const std::vector<std::string>& words) {
  Tool tool;
  CaptureStdout();
  CaptureStderr();
  const int status = parse_command_line(tool.app, words, "tool 1");
  std::string messages = GetCapturedStderr();
  return {status, GetCapturedStdout(), messages, tool.ran};
}

// Options of numbers, alone and in lists; one with a type of its own and a range.
std::string number_problem_of(const std::string& option, const std::string& word) {
  CLI::App app{"tool", "tool"};
  double rate = 0, seconds = 0;
  std::int64_t n = 0;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> list;
  app.add_option("--rate", rate);
  app.add_option("--seconds", seconds)->check(CLI::Range(0.5, 10.0))->type_name("SECONDS");
  app.add_option("--n", n);
  app.add_option("--seed", seed);
  app.add_option("--list", list)->delimiter(',');
  CaptureStderr();
  const int status = parse_command_line(app, {option, word}, "tool 1");
  std::string messages = GetCapturedStderr();
  EXPECT_EQ(status, messages.empty() ? 0 : 2) << option << " " << word;
  return messages;
}

std::string refused(const std::vector<std::string>& words) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.output, "");
  EXPECT_FALSE(outcome.ran);
  return outcome.messages;
}

TEST(CommandLine, RunsTheCommandThatTheWordsName) {
  const Outcome outcome = run({"train", "c.toml", "--output", "run"});
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_TRUE(outcome.ran);
}

TEST(CommandLine, NamesTheNearestCommand) {
  EXPECT_EQ(refused({"trian"}),
            "hstu: tool has no command \"trian\"; did you mean \"train\"?\nSee tool --help.\n");
  EXPECT_THAT(refused({"bench", "dat"}),
              HasSubstr("tool bench has no command \"dat\"; did you mean \"data\"?"));
  EXPECT_THAT(refused({"bench", "everything"}), HasSubstr("known: step, data"));
  EXPECT_THAT(refused({"trian", "--help"}), HasSubstr("\"train\"")) << "instead of the help of the program";
}

TEST(CommandLine, NamesTheNearestOption) {
  EXPECT_THAT(refused({"train", "--ouput", "r", "c.toml"}),
              AllOf(HasSubstr("hstu: tool train has no option \"--ouput\"; did you mean \"--output\"?"),
                    HasSubstr("See tool train --help.")))
      << "rather than that --output is missing";
  EXPECT_THAT(refused({"train", "--output", "r", "--quite=1"}), HasSubstr("did you mean \"--quiet\"?"));
}

TEST(CommandLine, NamesWhatIsMissingOrTooMuch) {
  EXPECT_THAT(refused({}), HasSubstr("tool needs a command: train, bench"));
  EXPECT_THAT(refused({"bench"}), HasSubstr("tool bench needs a command: step, data"));
  EXPECT_THAT(refused({"train"}), HasSubstr("--output is required"));
  EXPECT_THAT(refused({"train", "a", "b", "--output", "r"}),
              HasSubstr("tool train: unexpected argument \"b\""));
}

TEST(CommandLine, HelpIsACommandToo) {
  char program[] = "tool", help[] = "help", train[] = "train";
  char* argv[] = {program, help, train};
  EXPECT_EQ(words_of_command_line(3, argv), (std::vector<std::string>{"train", "--help"}));
  EXPECT_EQ(words_of_command_line(2, argv), (std::vector<std::string>{"--help"}));
  EXPECT_EQ(words_of_command_line(1, argv), std::vector<std::string>{});
  const Outcome outcome = run({"train", "--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("tool train [OPTIONS]"));
  EXPECT_EQ(run({"--version"}).output, "tool 1\n");
}

TEST(Completion, OffersCommandsAndOptionsWithTheirDescriptions) {
  EXPECT_EQ(run({"complete"}).output, "train\tTrain a model\nbench\tMeasure\n");
  EXPECT_EQ(run({"complete", "t"}).output, "train\tTrain a model\n");
  EXPECT_EQ(run({"complete", "bench", ""}).output, "step\tA step\ndata\tThe data\n");
  EXPECT_EQ(run({"complete", "train", "--o"}).output, "--output\ta folder\n");
  EXPECT_EQ(run({"complete", "train", "--secr"}).output, "");
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_EQ(run({"complete", "train", "c"}).output, "");
  EXPECT_EQ(run({"complete", "train", "--output", ""}).output, "");
  EXPECT_THAT(run({"complete", "train", "--quiet", "--"}).output, HasSubstr("--output"));
}

TEST(Manual, HasAPageForEachCommand) {
  const Path folder = temporary_folder();
  EXPECT_EQ(run({"--man", folder.string()}).status, 0);
  EXPECT_THAT(read_file(folder / "tool.1"),
              AllOf(HasSubstr(".TH TOOL 1"), HasSubstr(".BR tool\\-train (1)")));
  EXPECT_THAT(read_file(folder / "tool-bench.1"),
              AllOf(HasSubstr(".SH tool bench step"), HasSubstr("The data")));
}

TEST(Manual, EscapesWhatRoffWouldRead) {
  const Tool tool;
  const std::string page = manual_page(*tool.app.get_subcommand("train"), "tool 1");
  EXPECT_THAT(page, HasSubstr("say \\-nothing"));
  EXPECT_THAT(page, HasSubstr("\n\\&.hidden\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-output\\fR \\fITEXT\\fR"));
  EXPECT_THAT(page, Not(HasSubstr("secret")));
}

TEST(Parse, AnAliasIsACommand) {
  EXPECT_EQ(run({"bench", "input"}).status, 0);
}

TEST(ParseCommandLine, RefusesWordsThatAreNoNumbersAndNumbersThatDoNotFit) {
  for (const char* const option : {"--rate", "--seconds"})
    for (const char* const word : {"nan", "inf", "-inf", "1e999", "x"})
      EXPECT_THAT(number_problem_of(option, word), HasSubstr(word)) << option;
  for (const char* const option : {"--n", "--seed", "--list"})
    for (const char* const word :
         {"99999999999999999999", "-99999999999999999999", "010", "0x10", "1e3", "1.0"})
      EXPECT_THAT(number_problem_of(option, word), HasSubstr(word)) << option;
  EXPECT_THAT(number_problem_of("--seed", "-1"), HasSubstr("-1"));
  EXPECT_THAT(number_problem_of("--list", "1,99999999999999999999"), HasSubstr("99999999999999999999"));
  EXPECT_EQ(number_problem_of("--rate", "1e-3"), "");
  EXPECT_EQ(number_problem_of("--seconds", "2.5"), "");
  EXPECT_EQ(number_problem_of("--n", "-9223372036854775808"), "");
  EXPECT_EQ(number_problem_of("--seed", "18446744073709551615"), "");
  EXPECT_EQ(number_problem_of("--list", "1,2"), "");
}

}  // namespace
}  // namespace hstu
