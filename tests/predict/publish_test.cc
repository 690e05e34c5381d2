// Published exports: which one is current, and which remain.
#include "hstu/predict/publish.h"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "hstu/base/file_lock.h"
#include "hstu/score/model_folder.h"
#include "predict/predict_fixture.h"

namespace hstu::testing {
namespace {

class Publish : public Predict {
 protected:
  std::set<std::string> published() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "to"))
      if (!entry.path().filename().string().starts_with(".")) names.insert(entry.path().filename());
    return names;
  }
};

TEST_F(Publish, KeepsTheLatestExportsAndNamesOne) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 6;
  run("run");
  const auto at = [&](const std::string& step) {
    return publish({.run = folder_ / "run", .to = folder_ / "to", .checkpoint = step, .keep = 2});
  };
  at("2"), at("4");
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "to/current"), "step_00000004");
  // As if it had been killed after the export, or while it removed an old one.
  std::filesystem::remove(folder_ / "to/current");
  std::filesystem::create_directories(folder_ / "to/.removed_step_00000001/weights");
  EXPECT_EQ(at("").filename(), "step_00000006");
  EXPECT_EQ(published(), (std::set<std::string>{"current", "step_00000004", "step_00000006"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/.removed_step_00000001"));
  EXPECT_EQ(open_model_folder(folder_ / "to/current").checkpoint.step(), 6);
  at("4");  // back to an earlier one
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "to/current"), "step_00000004");
  const FileLock other(folder_ / "to/.lock");
  EXPECT_THAT(message_of<UsageError>([&] { at(""); }), ::testing::HasSubstr("another process"));
}

}  // namespace
}  // namespace hstu::testing
