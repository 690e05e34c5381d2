#include "hstu/mlperf/pack.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/mlperf/system_description.h"
#include "mlperf/scripted_run.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

class Pack : public ::testing::Test {
 protected:
  // What pack() refuses of a run whose configuration names this platform; "": nothing.
  std::string refusal_of(const std::string& platform) {
    RunOptions options = testing::benchmark_options(32'768);
    options.submission.platform = "scripted";
    fs::remove_all(folder_ / "run");
    testing::write_scripted_run(folder_ / "run", options, 60);
    options.submission.platform = platform;
    write_file(folder_ / "run/config.toml", to_toml(options));
    return refusal();
  }
  std::string refusal() {
    try {
      pack({.runs = {folder_ / "run"}, .output = folder_ / "package", .status = kSystemStatuses[0]});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  Path folder_ = temporary_folder();
};

TEST_F(Pack, APlatformBecomesNamesBelowTheOutput) {
  EXPECT_EQ(refusal_of("a-b.c_1"), "");
  EXPECT_TRUE(fs::exists(folder_ / "package/results/a-b.c_1/dlrmv4/result_0.txt"));
  EXPECT_TRUE(fs::exists(folder_ / "package/systems/a-b.c_1.json"));
}

TEST_F(Pack, APlatformThatIsNoNameWritesNothing) {
  for (const std::string& platform :
       {std::string(""), std::string("."), std::string(".."), (folder_ / "x").string(), std::string("../x"),
        std::string("a/b"), std::string("a b"), std::string("a\nb"), std::string("\x1b[2J"),
        std::string("-rf"), std::string("\x7f")}) {
    EXPECT_THAT(refusal_of(platform), ::testing::HasSubstr("submission.platform")) << platform;
    EXPECT_EQ(files(), std::vector<std::string>{"run"}) << platform;
  }
}

TEST_F(Pack, LinksAreNotFollowed) {
  for (const char* file : {"mlperf/result_0.txt", "config.toml", "mlperf"}) {
    ASSERT_EQ(refusal_of("x"), "");
    fs::remove_all(folder_ / "package");
    const Path moved = folder_ / "run" / "moved";
    fs::rename(folder_ / "run" / file, moved);
    fs::create_symlink(moved, folder_ / "run" / file);
    EXPECT_THAT(refusal(), ::testing::HasSubstr("is a link")) << file;
    EXPECT_FALSE(fs::exists(folder_ / "package"));
  }
}

}  // namespace
}  // namespace hstu
