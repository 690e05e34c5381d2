// Hostile input: every row of tests/hostile/rows says what is done to good input, the command that then meets
// it, and the exit status and words that must come of it. tests/hostile/README.md describes the rows.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "command.h"
#include "hostile/parquet_inputs.h"
#include "hstu/base/files.h"
#include "sanitizers.h"

namespace hstu {
namespace {

constexpr std::string_view kSeparator = " :: ";
constexpr int kTimeLimit = kSanitized ? 300 : 60;  // seconds; timeout(1) then ends with status 124

struct Row {
  int line = 0;
  std::string input, command, words;
  int exit_status = 0;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t end = 0; (end = text.find(kSeparator)) != std::string_view::npos;) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + kSeparator.size());
  }
  parts.emplace_back(text);
  return parts;
}

std::vector<Row> read_rows(const Path& file) {
  std::vector<Row> rows;
  const std::string text = read_file(file);
  int number = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++number;
    const std::string line = text.substr(begin, end - begin);
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> parts = split(line);
    if (parts.size() != 4) {
      ADD_FAILURE() << file << " line " << number << ": expected input :: command :: status :: words";
      continue;
    }
    rows.push_back({number, parts[0] == "-" ? "" : parts[0], parts[1], parts[3], std::stoi(parts[2])});
  }
  return rows;
}

// Runs in `folder`, where hstu and hstu-prepare are in the PATH.
CommandResult run_in(const Path& folder, const std::string& command) {
  const Path script = folder / ".command";
  write_file(script,
             fmt::format("cd '{}'\nexport PATH={}:$PATH\n{}\n", folder.string(), HSTU_PROGRAM_DIR, command));
  return run_command(fmt::format("timeout {} bash {}", kTimeLimit, script.string()));
}

// Good input, made once: events, the dataset ds made of them, the trained run, its configuration c.toml,
// schema.toml for Parquet and the log p/events.parquet, the MovieLens log ml.
// A run holds the path of its dataset: what is made in `place` must be copied to there.
class GoodInput {
 public:
  explicit GoodInput(const Path& place) : folder_(place.string() + "_good") {
    std::filesystem::remove_all(place);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(place / "p");
    write_good_parquet(place / "p/events.parquet");
    const CommandResult made =
        run_in(place, fmt::format("bash {}/tests/hostile/good_input.sh", HSTU_SOURCE_DIR));
    EXPECT_EQ(made.exit_status, 0) << made.text;
    std::filesystem::rename(place, folder_);
  }
  ~GoodInput() { std::filesystem::remove_all(folder_); }
  const Path& folder() const { return folder_; }

 private:
  Path folder_;
};

// Texts that only a library or a crash writes.
constexpr std::string_view kRawTexts[] = {
    "[json.exception",  "filesystem error", "max_size()", "libgomp:",     "std::",    "terminate called",
    "AddressSanitizer", "runtime error:",   "vector::",   "basic_string", "OpenBLAS", "Segmentation"};

void check_row(const Row& row, const Path& folder) {
  static const GoodInput good(folder);
  std::filesystem::remove_all(folder);
  std::filesystem::copy(
      good.folder(), folder,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  if (row.input.starts_with("@")) {
    write_hostile_parquet(row.input.substr(1), folder / "p/events.parquet");
  } else if (!row.input.empty()) {
    const CommandResult made = run_in(folder, "set -e\n" + row.input);
    ASSERT_EQ(made.exit_status, 0) << made.text;
  }
  const CommandResult result = run_in(folder, row.command);
  EXPECT_EQ(result.exit_status, row.exit_status) << result.text;
  EXPECT_NE(result.text.find(row.words), std::string::npos)
      << "expected the words \"" << row.words << "\" in\n"
      << result.text;
  for (const std::string_view raw : kRawTexts)
    EXPECT_EQ(result.text.find(raw), std::string::npos) << "\"" << raw << "\" reached the user:\n"
                                                        << result.text;
}

class Hostile : public testing::TestWithParam<std::string> {};

TEST_P(Hostile, InputIsMetWithTheStatusAndTheWordsOfItsRow) {
  const Path file = Path(HSTU_SOURCE_DIR) / "tests/hostile/rows" / (GetParam() + ".rows");
  const std::vector<Row> rows = read_rows(file);
  ASSERT_FALSE(rows.empty());
  const Path folder = Path(testing::TempDir()) / fmt::format("hstu_hostile_{}", ::getpid());
  for (const Row& row : rows) {
    SCOPED_TRACE(
        fmt::format("{} line {}: {} :: {}", file.filename().string(), row.line, row.input, row.command));
    check_row(row, folder);
    if (HasFatalFailure()) break;
  }
  std::filesystem::remove_all(folder);
}

std::vector<std::string> tables() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(Path(HSTU_SOURCE_DIR) / "tests/hostile/rows")) {
    const std::string name = entry.path().stem().string();
    if (kSanitized && name == "limits") continue;  // a sanitizer reserves terabytes of addresses
    if (entry.path().extension() == ".rows") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Rows, Hostile, testing::ValuesIn(tables()),
                         [](const auto& table) { return table.param; });

}  // namespace
}  // namespace hstu
