#include "hstu/config/config.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Pace { kFlat, kLinear };
constexpr Choice<Pace> kPaces[] = {{"flat", Pace::kFlat}, {"linear", Pace::kLinear}};

struct LoopOptions {
  std::int64_t max_steps = 100;
  int batch_size = 32;
  float lr = 1e-3f;
  double momentum = 0.1;
  bool shuffle = false;
  std::uint64_t seed = 1;
  Pace pace = Pace::kFlat;
};

void describe(ConfigFields& fields, LoopOptions& o) {
  fields.field("max_steps", o.max_steps, "stop after this many steps", rule::at_least(0));
  fields.field("batch_size", o.batch_size, "samples a step", rule::between(1, 1024));
  fields.field("lr", o.lr, "learning rate", rule::positive());
  fields.field("momentum", o.momentum, "momentum");
  fields.field("shuffle", o.shuffle, "shuffle the samples");
  fields.field("seed", o.seed, "seed of everything random");
  fields.choice("pace", o.pace, kPaces, "shape of the warm-up");
}

struct ContextOptions {
  std::string name;
  std::int64_t rows = 7;
};

void describe(ConfigFields& fields, ContextOptions& o) {
  fields.field("name", o.name, "column of the dataset", rule::required());
  fields.field("rows", o.rows, "rows of the table", rule::positive());
}

struct FeatureOptions {
  std::vector<std::string> pools{"listen", "skip"};
  std::vector<std::int64_t> sizes{1, 2};
  std::vector<double> weights;
  std::vector<ContextOptions> context{{"hour", 24}};
};

void describe(ConfigFields& fields, FeatureOptions& o) {
  fields.field("pools", o.pools, "pools", rule::distinct(Rule{.words = {"listen", "skip", "like"}}));
  fields.field("sizes", o.sizes, "sizes", rule::positive());
  fields.field("weights", o.weights, "weights");
  fields.sections("context", o.context, "a context column");
}

struct Options {
  std::string title = "none";
  LoopOptions training;
  FeatureOptions features;
  Path output = "out";
};

void describe(ConfigFields& fields, Options& o) {
  fields.field("title", o.title, "a title");
  fields.section("training", o.training, "the loop");
  fields.section("features", o.features, "what the model sees");
  fields.field("output", o.output, "where results go");
}

Options parse(std::string_view text, std::vector<std::string> overrides = {}) {
  return parse_config<Options>(text, "run.toml", overrides);
}

std::string error_of(std::string_view text, std::vector<std::string> overrides = {}) {
  try {
    parse(text, std::move(overrides));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, ReadsEveryKindOfValueAndKeepsDefaults) {
  const Options o = parse(R"(
title = "a"
[training]
max_steps = 5_000_000_000
lr = 1
shuffle = true
pace = "linear"
[features]
pools = ["like"]
weights = [1, 2.5]
[[features.context]]
name = "x"
[[features.context]]
name = "y"
rows = 3
)");
  EXPECT_EQ(o.title, "a");
  EXPECT_EQ(o.training.max_steps, 5'000'000'000);
  EXPECT_EQ(o.training.batch_size, 32);
  EXPECT_EQ(o.training.lr, 1.0f);
  EXPECT_TRUE(o.training.shuffle);
  EXPECT_EQ(o.training.pace, Pace::kLinear);
  EXPECT_THAT(o.features.pools, ElementsAre("like"));
  EXPECT_THAT(o.features.weights, ElementsAre(1.0, 2.5));
  ASSERT_EQ(o.features.context.size(), 2u);
  EXPECT_EQ(o.features.context[0].rows, 7);
  EXPECT_EQ(o.features.context[1].name, "y");
  EXPECT_EQ(o.features.context[1].rows, 3);
}

TEST(Config, AnEmptyListOfSectionsReplacesTheDefault) {
  EXPECT_EQ(parse("").features.context.size(), 1u);
  EXPECT_THAT(parse("[features]\ncontext = []").features.context, IsEmpty());
}

TEST(Config, NamesTheUnknownKeyItsLineAndTheNearestKnownOne) {
  EXPECT_EQ(error_of("[training]\nmax_steps = 1\nbacth_size = 2\n"),
            "unknown key training.bacth_size in run.toml line 3; did you mean \"batch_size\"?");
  EXPECT_EQ(error_of("[trainign]\nlr = 2\n"),
            "unknown section trainign in run.toml line 1; did you mean \"training\"?");
  EXPECT_THAT(error_of("[[features.context]]\nname = \"x\"\nrow = 2\n"),
              HasSubstr("unknown key features.context[0].row in run.toml line 3; did you mean \"rows\"?"));
}

// The trap: a flag in the wrong section is never read, and nobody notices.
TEST(Config, AKeyInTheWrongSectionIsNotAcceptedSilently) {
  EXPECT_EQ(error_of("lr = 0.5\n"), "unknown key lr in run.toml line 1; did you mean \"training.lr\"?");
  EXPECT_EQ(error_of("[features]\nshuffle = true\n"),
            "unknown key features.shuffle in run.toml line 2; did you mean \"training.shuffle\"?");
  EXPECT_EQ(error_of("[training]\ntitle = \"x\"\n"),
            "unknown key training.title in run.toml line 2; did you mean \"title\"?");
}

TEST(Config, NamesKeyExpectedTypeFoundValueAndLine) {
  EXPECT_EQ(error_of("[training]\nmax_steps = \"many\"\n"),
            "training.max_steps: expected an integer, found the string \"many\" (run.toml line 2)");
  EXPECT_EQ(error_of("[training]\nmax_steps = 1.5\n"),
            "training.max_steps: expected an integer, found the number 1.5 (run.toml line 2)");
  EXPECT_EQ(error_of("[training]\nshuffle = 1\n"),
            "training.shuffle: expected true or false, found the integer 1 (run.toml line 2)");
  EXPECT_EQ(error_of("title = 3\n"), "title: expected a string, found the integer 3 (run.toml line 1)");
  EXPECT_EQ(error_of("training = 3\n"),
            "training: expected a section, found the integer 3 (run.toml line 1)");
  EXPECT_THAT(error_of("[features]\npools = \"like\"\n"), HasSubstr("features.pools: expected a list"));
  EXPECT_THAT(error_of("[features]\npools = [1]\n"),
              HasSubstr("expected a list of strings, found the integer 1"));
  EXPECT_THAT(error_of("[features]\ncontext = [1]\n"), HasSubstr("expected sections [[features.context]]"));
}

TEST(Config, ChecksRangesAndWords) {
  EXPECT_EQ(error_of("[training]\nlr = 0.0\n"),
            "training.lr: expected a number > 0, found 0 (run.toml line 2)");
  EXPECT_EQ(error_of("[training]\nbatch_size = 1025\n"),
            "training.batch_size: expected a number in [1, 1024], found 1025 (run.toml line 2)");
  EXPECT_EQ(
      error_of("[training]\npace = \"liner\"\n"),
      "training.pace: expected one of flat, linear, found \"liner\"; did you mean \"linear\"? (run.toml "
      "line 2)");
  EXPECT_THAT(error_of("[features]\nsizes = [1, 0]\n"), HasSubstr("features.sizes: expected a number > 0"));
  EXPECT_THAT(error_of("[training]\nlr = nan\n"), HasSubstr("expected a finite number"));
  EXPECT_THAT(error_of("[training]\nlr = 1e300\n"), HasSubstr("expected a finite number"));
  EXPECT_THAT(error_of("[training]\nseed = -1\n"), HasSubstr("expected an integer in [0, "));
  EXPECT_THAT(error_of("[training]\nbatch_size = 4294967297\n"), HasSubstr("expected an integer in ["));
}

// Arithmetic is in fp32, which once made a loss weight of 1e-320 zero in silence.
TEST(Config, ANumberThatIsZeroInFp32IsRefused) {
  for (const char* number : {"1e-320", "-1e-39", "1.1e-38"})
    EXPECT_THAT(error_of(fmt::format("[training]\nmomentum = {}\n", number)),
                HasSubstr("training.momentum: expected 0 or a number that fp32 keeps"));
  EXPECT_EQ(parse("[training]\nmomentum = 0.0\n").training.momentum, 0);
  EXPECT_EQ(parse("[training]\nmomentum = 1.2e-38\n").training.momentum, 1.2e-38);
}

TEST(Config, AListThatNamesAWordTwiceIsRefused) {
  EXPECT_EQ(error_of("[features]\npools = [\"skip\", \"listen\", \"skip\"]\n"),
            "features.pools: skip is named twice (run.toml line 2)");
  EXPECT_EQ(parse("[features]\nsizes = [2, 2]\n").features.sizes.size(), 2u);
}

// Such a value was once left as it was in memory.
TEST(Config, AnIntegerThatANumberCannotHoldIsRefused) {
  EXPECT_EQ(parse("[training]\nlr = 9007199254740992\n").training.lr, 9007199254740992.0);
  EXPECT_EQ(error_of("[training]\nlr = 9007199254740993\n"),
            "training.lr: expected a number, found the integer 9007199254740993, which has more digits than "
            "a number "
            "keeps: write 9007199254740992.0 (run.toml line 2)");
  EXPECT_THAT(error_of("[training]\nlr = 9223372036854775807\n"), HasSubstr("write 9223372036854775808.0"));
}

TEST(Config, NamesAMissingRequiredKey) {
  EXPECT_EQ(error_of("[[features.context]]\nrows = 1\n"),
            "missing key features.context[0].name in run.toml line 1: column of the dataset");
}

TEST(Config, ReportsEveryProblemAtOnce) {
  EXPECT_THAT(error_of("[training]\nlr = -1\nlrr = 1\n[feature]\n"),
              AllOf(HasSubstr("training.lr: "), HasSubstr("training.lrr"), HasSubstr("section feature ")));
}

TEST(Config, NamesTheLineOfTextThatIsNotToml) {
  EXPECT_THAT(error_of("title = \"a\"\n[training\n"), HasSubstr("run.toml line 2: not TOML: "));
  EXPECT_THAT(error_of("[[[[training]]"), HasSubstr("run.toml line 1: not TOML: "));  // once an assertion
  EXPECT_THAT(error_of("title = \"a\"\np\xEF\xBB\x96 = 1\n"), HasSubstr("run.toml line 2: not TOML: "));
}

TEST(Config, OverridesWinTheLastOneMost) {
  const Options o = parse("[training]\nlr = 1.0\nshuffle = true\n",
                          {"training.lr=2", "training.lr=0.5", "title=plain words", "features.sizes=[3]"});
  EXPECT_EQ(o.training.lr, 0.5f);
  EXPECT_TRUE(o.training.shuffle);
  EXPECT_EQ(o.title, "plain words");
  EXPECT_THAT(o.features.sizes, ElementsAre(3));
}

TEST(Config, AnOverrideReplacesAListOfSectionsWhole) {
  const Options o = parse("[[features.context]]\nname = \"x\"\nrows = 3\n",
                          {"features.context=[{name = 'y'}, {name = 'z', rows = 9}]"});
  ASSERT_EQ(o.features.context.size(), 2u);
  EXPECT_EQ(o.features.context[0].name, "y");
  EXPECT_EQ(o.features.context[0].rows, 7);
  EXPECT_EQ(o.features.context[1].rows, 9);
}

TEST(Config, AnOverrideOfAStringIsTakenAsTyped) {
  EXPECT_EQ(parse("", {"output=../data/ml-100k"}).output, Path("../data/ml-100k"));
  EXPECT_EQ(parse("", {"title=2024-01-01"}).title, "2024-01-01");
  EXPECT_EQ(parse("", {"title=007"}).title, "007");
  EXPECT_EQ(parse("", {"title=a=b"}).title, "a=b");
  EXPECT_EQ(parse("", {"title=\"quoted\""}).title, "quoted");
  EXPECT_EQ(parse("", {"title=C:\\x \"y\""}).title, "C:\\x \"y\"");
  EXPECT_EQ(parse("title = \"x\"", {"title="}).title, "");
  EXPECT_EQ(parse("title = \"x\"", {"title=\"\""}).title, "");
  EXPECT_EQ(parse("", {"title=two\nlines"}).title, "two\nlines");
  EXPECT_EQ(parse("", {"title=${HSTU_TEST_UNSET:-expanded}"}).title, "expanded");
  EXPECT_THAT(parse("", {"features.pools=['like', \"skip\"]"}).features.pools, ElementsAre("like", "skip"));
  EXPECT_EQ(parse("", {"training.pace=linear"}).training.pace, Pace::kLinear);
}

TEST(Config, ErrorsNameTheOverride) {
  EXPECT_EQ(error_of("[training]\nlr = 1\n", {"training.lr=fast"}),
            "training.lr: expected a number, found the string \"fast\" (--set training.lr=fast)");
  EXPECT_EQ(error_of("", {"training.lrr=1"}),
            "unknown key training.lrr in --set training.lrr=1; did you mean \"lr\"?");
  EXPECT_EQ(error_of("", {"trainin.lr=1"}),
            "unknown section trainin in --set trainin.lr=1; did you mean \"training\"?");
  EXPECT_THAT(error_of("", {"training.lr"}), HasSubstr("--set training.lr: expected section.key=value"));
  EXPECT_THAT(error_of("", {"a b=1"}), HasSubstr("--set a b=1: expected section.key=value"));
  EXPECT_THAT(error_of("", {"title=[1"}), "no error");
}

TEST(Config, ExpandsEnvironmentVariablesInStringsAndNumbers) {
  ::setenv("HSTU_TEST_STEPS", "12", 1);
  ::setenv("HSTU_TEST_EMPTY", "", 1);
  ::unsetenv("HSTU_TEST_UNSET");
  const Options o = parse(R"(
title = "n=${HSTU_TEST_STEPS}, ${HSTU_TEST_UNSET:-none}, ${HSTU_TEST_EMPTY:-void}, $${HSTU_TEST_STEPS}"
[training]
max_steps = "${HSTU_TEST_STEPS:-3}"
lr = "${HSTU_TEST_UNSET:-0.25}"
)");
  EXPECT_EQ(o.title, "n=12, none, void, ${HSTU_TEST_STEPS}");
  EXPECT_EQ(o.training.max_steps, 12);
  EXPECT_EQ(o.training.lr, 0.25f);
  EXPECT_THAT(
      error_of("title = \"${HSTU_TEST_UNSET}\""),
      AllOf(HasSubstr("title: "), HasSubstr("HSTU_TEST_UNSET is not set"), HasSubstr("run.toml line 1")));
  EXPECT_THAT(error_of("title = \"${HOME\""), HasSubstr("expected \"}\""));
  EXPECT_THAT(error_of("[training]\nmax_steps = \"${HSTU_TEST_UNSET:-x y}\""),
              HasSubstr("training.max_steps: "));
}

TEST(Config, TheDumpReadsBackToTheSameValues) {
  Options o;
  o.title = "a \"quoted\" \\ line\nand ${HOME}";
  o.training = {.max_steps = 1LL << 40,
                .batch_size = 3,
                .lr = 0.1f,
                .momentum = 1e-20,
                .shuffle = true,
                .seed = 1ULL << 62,
                .pace = Pace::kLinear};
  o.features.weights = {1.0, 0.1, 1e300};
  o.features.context = {{"x", 1}, {"y", 2}};
  const std::string text = to_toml(o);
  const Options back = parse(text);
  EXPECT_EQ(to_toml(back), text);
  EXPECT_EQ(back.title, o.title);
  EXPECT_EQ(back.training.lr, o.training.lr);
  EXPECT_EQ(back.training.momentum, o.training.momentum);
  EXPECT_EQ(back.training.seed, o.training.seed);
  EXPECT_EQ(back.features.weights, o.features.weights);
  EXPECT_EQ(back.output, o.output);
  ASSERT_EQ(back.features.context.size(), 2u);
  EXPECT_EQ(back.features.context[1].name, "y");
  o.features.context.clear();
  EXPECT_THAT(parse(to_toml(o)).features.context, IsEmpty());
}

TEST(Config, TheDumpHoldsEveryKeyInOrderOfDescription) {
  EXPECT_EQ(
      to_toml(Options{}),
      "title = \"none\"\noutput = \"out\"\n\n"
      "[training]\nmax_steps = 100\nbatch_size = 32\nlr = 0.001\nmomentum = 0.1\nshuffle = false\nseed = 1\n"
      "pace = \"flat\"\n\n"
      "[features]\npools = [\"listen\", \"skip\"]\nsizes = [1, 2]\nweights = []\n\n"
      "[[features.context]]\nname = \"hour\"\nrows = 24\n");
}

TEST(Config, TheHashFollowsTheValues) {
  const std::string one = config_hash(to_toml(Options{}));
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(one, config_hash(to_toml(parse("[training]\nlr = 1e-3\n"))));
  EXPECT_NE(one, config_hash(to_toml(parse("[training]\nlr = 2e-3\n"))));
}

TEST(Config, TheReferenceListsEveryKey) {
  const std::string page = config_reference<Options>();
  EXPECT_THAT(page, HasSubstr("## [training]"));
  EXPECT_THAT(page, HasSubstr("| `batch_size` | integer, in [1, 1024] | `32` | samples a step |"));
  EXPECT_THAT(page, HasSubstr("## [[features.context]]"));
  EXPECT_THAT(page, HasSubstr("| `name` | string | required | column of the dataset |"));
}

TEST(Config, AFolderAndAPipeAreNamedAsSuch) {
  const Path folder = temporary_folder();
  const auto complaint = [](const Path& path) {
    try {
      load_config<Options>(path);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint(folder), HasSubstr("it is a folder: name a file"));
  write_file(folder / "config.toml", "");
  EXPECT_THAT(complaint(folder), HasSubstr("it is a folder: name " + (folder / "config.toml").string()));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(complaint(folder / "pipe"), HasSubstr("it is a pipe: write its text to a file"));
  EXPECT_THAT(complaint("/dev/null"), HasSubstr("it is a device"));
}

TEST(Config, ARandomNumberIsAWordWhereItIsAllowed) {
  struct Seeds {
    std::uint64_t seed = 1, salt = 2;
  };
  const auto read = [](std::string_view text) {
    Seeds o;
    ConfigReader reader(text, "run.toml", {});
    ConfigFields& fields = reader;
    fields.field("seed", o.seed, "a seed", rule::or_random());
    fields.field("salt", o.salt, "a salt");
    reader.finish();
    return o;
  };
  EXPECT_EQ(read("seed = \"random\"").seed, kRandomNumber);
  EXPECT_EQ(read("seed = 5").seed, 5u);
  EXPECT_THROW(read("seed = \"ramdon\""), UsageError);
  EXPECT_THROW(read("salt = \"random\""), UsageError);
  std::uint64_t drawn = kRandomNumber;
  EXPECT_EQ(toml_value(&drawn), "\"random\"");
}

TEST(Config, AMissingFileIsTheUsersMistake) {
  EXPECT_THROW(load_config<Options>("no/such.toml"), UsageError);
}

struct Twice {
  int a = 0;
};
void describe(ConfigFields& fields, Twice& o) {
  fields.field("a", o.a, "a");
  fields.field("a", o.a, "a");
}

TEST(Config, DescribingAKeyTwiceIsADefect) {
  EXPECT_THROW(parse_config<Twice>("", "x"), InternalError);
}

}  // namespace
}  // namespace hstu
