// The commands of docs/semantic-ids.md: from a log and vectors of items to lists.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/json_text.h"
#include "hstu/base/npy.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

TEST(SemanticIdsProgram, LeadsFromALogToLists) {
  const Path folder = temporary_folder();
  constexpr std::int64_t kVectors = 30;
  std::string log;
  for (int user = 1; user <= 40; ++user) {
    log += std::to_string(user);
    for (int n = 0; n < 6; ++n) log += fmt::format(" {}", 1 + (user * 7 + n * 3) % kVectors);
    log += '\n';
  }
  write_file(folder / "log.txt", log);
  const std::int64_t shape[] = {kVectors, 3};
  std::string vectors = npy_header("<f4", shape), ids;
  for (std::int64_t i = 0; i < 3 * kVectors; ++i) {
    const float value = static_cast<float>((i * i) % 17);
    vectors.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  write_file(folder / "items.npy", vectors);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 1; i <= kVectors; ++i) numbers.push_back(i);
  write_npy(folder / "ids.npy", numbers);
  write_file(folder / "users.csv", "user\n3\n5\n");
  const auto succeed = [&](const std::string& words) {
    const CommandResult result =
        run_command(fmt::format("cd {} && PATH={}:$PATH && {}", folder.string(), HSTU_PROGRAM_DIR, words));
    EXPECT_EQ(result.exit_status, 0) << words << '\n' << result.text;
    return result.text;
  };
  succeed("hstu tokenize --vectors items.npy --ids ids.npy --levels 2 --codes 6 --output CODES");
  succeed("hstu prepare sequences --input log.txt --output DS");
  succeed("hstu config --template --kind semantic_ids --for DS --codes CODES >s.toml");
  succeed(
      "hstu train s.toml --output RUN --set training.epochs=1 --set model.dim=16 --set model.layers=1 --set "
      "model.heads=2 --set model.head_dim=8");
  const Json result =
      parse_json(succeed("(hstu eval RUN --beam 30 --split test --max-samples 20 2>/dev/null)"), "eval");
  EXPECT_EQ(result.at("n"), 20);
  EXPECT_EQ(result.at("hr@50"), 1.0);  // a search that keeps everything finds everything
  EXPECT_TRUE(result.at("item_baselines").contains("markov"));
  succeed("hstu predict RUN --users users.csv --top 4 --beam 8 --output top.csv");
  const std::string top = read_file(folder / "top.csv");
  EXPECT_EQ(std::count(top.begin(), top.end(), '\n'), 9) << top;
  succeed("hstu plan s.toml");
  EXPECT_NE(
      run_command(fmt::format("cd {} && {}/hstu export RUN --vectors V", folder.string(), HSTU_PROGRAM_DIR))
          .exit_status,
      0);
}

}  // namespace
}  // namespace hstu
