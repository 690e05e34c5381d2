// MLCommons' layout, byte for byte, against what NumPy wrote (tools/mlcommons_layout.py).
#include "hstu/mlcommons/mlcommons_writer.h"

#include <fstream>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>
#include <unistd.h>

#include "events/yambda_log.h"
#include "hstu/base/random.h"
#include "hstu/columns/parquet_text.h"
#include "hstu/events/digest.h"
#include "hstu/prepare/prepare.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

// The log of tools/mlcommons_layout.py.
std::vector<YambdaEvent> golden_log() {
  const char* const types[] = {"listen", "like", "dislike", "unlike", "undislike"};
  std::vector<YambdaEvent> events;
  for (std::int64_t i = 0; i < 1000; ++i) {
    YambdaEvent event{.uid = 2 + 3 * (i / 50),
                      .timestamp = i % 50 / 2 * 30'005,
                      .item_id = i * i % 97,
                      .event_type = i % 3 == 0 ? types[(i * 7 + i / 5) % 5] : "listen"};
    if (event.event_type == "listen" && i % 11 != 0) event.played_ratio_pct = i * 37 % 130;
    event.is_organic = i % 4 == 1 ? 1 : 0;
    if (event.event_type == "listen") event.track_length_seconds = 100 + i % 200;
    events.push_back(event);
  }
  return events;
}

std::map<std::string, std::string> golden_digests(const std::string& prefix) {
  std::map<std::string, std::string> digests;
  std::ifstream file(HSTU_GOLDEN_DIR "/mlcommons_layout.sha256");
  for (std::string digest, name; file >> digest >> name;) {
    if (name.starts_with(prefix)) digests[name.substr(prefix.size())] = digest;
  }
  return digests;
}

// Parquet's bytes depend on the version of the library that writes them, so tables are compared as texts.
Path as_csv(Path parquet) {
  Path csv = parquet;
  csv.replace_extension(".csv");
  const int descriptor = ::open(csv.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  write_as_csv(parquet, 1, descriptor);
  ::close(descriptor);
  return csv;
}

std::map<std::string, std::string> digests_of(const Path& folder) {
  std::map<std::string, std::string> digests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    Path path = entry.path();
    if (path.extension() == ".parquet") path = as_csv(path);
    digests[path.lexically_relative(folder).string()] = file_digest(path, Digest::kSha256);
  }
  return digests;
}

TEST(MlcommonsLayout, IsWhatNumpyWritesForAnyMinHistory) {
  const Path input = temporary_folder() / "5b";
  std::filesystem::create_directories(input);
  write_yambda(input, golden_log());
  for (const std::int64_t min_history : {10, 3}) {
    const Path output = input / fmt::format("m{}", min_history);
    const MlcommonsCounts counts =
        prepare_mlcommons(input, output, {}, {.history_length = 10, .min_history = min_history});
    EXPECT_EQ(counts.users, 20);
    const auto expected = golden_digests(fmt::format("m{}/", min_history));
    EXPECT_EQ(expected.size(), min_history == 10 ? 21u : 22u);
    EXPECT_EQ(digests_of(output), expected);
  }
}

TEST(MlcommonsLayout, IsTheSameFromASortedLogWithLittleMemory) {
  const Path input = temporary_folder();
  std::vector<YambdaEvent> events = golden_log();
  for (std::size_t i = 0; i < events.size(); ++i)
    events[i].timestamp = static_cast<std::int64_t>(i % 50) * 15'005;
  const MlcommonsOptions layout{.history_length = 10, .min_history = 10};
  write_yambda(input, events);
  prepare_mlcommons(input, input / "ordered", {}, layout);
  RandomStream random{.key = 9};
  for (std::size_t i = events.size(); i > 1; --i) std::swap(events[i - 1], events[random.below(i)]);
  write_yambda(input, events);
  prepare_mlcommons(input, input / "sorted", {}, layout, {.memory = 1 << 18, .threads = 2});
  EXPECT_EQ(digests_of(input / "sorted"), digests_of(input / "ordered"));
}

std::string schema_of(const Path& parquet) {
  parquet::arrow::FileReaderBuilder builder;
  EXPECT_TRUE(builder.OpenFile(parquet.string()).ok());
  std::shared_ptr<arrow::Schema> schema;
  EXPECT_TRUE(builder.Build().ValueOrDie()->GetSchema(&schema).ok());
  std::string text;
  for (const auto& field : schema->fields()) {
    const arrow::DataType& type = *field->type();
    text += fmt::format("{} {}, ", field->name(),
                        type.id() == arrow::Type::LIST
                            ? fmt::format("list<{}>", type.field(0)->type()->ToString())
                            : type.ToString());
  }
  return text;
}

TEST(MlcommonsLayout, HasTablesOfTheReferencesTypes) {
  const Path folder = temporary_folder();
  write_yambda(folder, golden_log());
  prepare_mlcommons(folder, folder / "output", {}, {});
  EXPECT_EQ(schema_of(folder / "output/train_sessions.parquet"),
            "uid uint32, session_id uint32, item_ids list<uint32>, timestamps list<uint32>, "
            "event_types list<uint8>, is_organic list<uint8>, played_ratio_pct list<uint16>, "
            "track_length_seconds list<uint32>, ");
  EXPECT_EQ(
      schema_of(folder / "output/session_index.parquet"),
      "uid uint32, session_ids list<uint32>, session_lens list<uint32>, session_offsets list<uint32>, ");
  EXPECT_EQ(schema_of(folder / "output/test_events.parquet"),
            "uid uint32, timestamp uint32, item_id uint32, is_organic uint8, played_ratio_pct uint16, "
            "track_length_seconds uint32, event_type uint8, ");
}

TEST(MlcommonsLayout, RefusesValuesThatTheReferencesTypesCannotHold) {
  const Path folder = temporary_folder();
  std::vector<YambdaEvent> events = golden_log();
  NamedArrays columns = yambda_columns(events);
  std::vector<std::optional<std::int64_t>> ratios(events.size(), 65'536);
  for (auto& [name, values] : columns)
    if (name == "played_ratio_pct") values = array<arrow::Int64Type>(ratios);
  write_parquet(folder / "multi_event.parquet", columns);
  EXPECT_THAT([&] { prepare_mlcommons(folder, folder / "output", {}, {}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  "played_ratio_pct: the layout has 16 bits for it, which cannot hold 65536 (user 2, time")));
  EXPECT_FALSE(std::filesystem::exists(folder / "output"));
}

TEST(MlcommonsLayout, BeginsASessionAfterMoreThanHalfAnHour) {
  const Path folder = temporary_folder();
  MlcommonsSessions sessions(folder);
  for (const std::uint32_t time : {0, 1'800, 3'601}) sessions.append({.user = 7, .time = time});
  sessions.append({.user = 8, .time = 3'602});
  sessions.close();
  EXPECT_EQ(read_file(as_csv(folder / "session_index.parquet")),
            "uid,session_ids,session_lens,session_offsets\n7,0 1,2 1,2 3\n8,0,1,1\n");
}

// The published file has 361 bytes.
TEST(MlcommonsLayout, HasTheSizeOfThePublishedSplitOfYambda5b) {
  const MlcommonsSplit split{.size = "5b",
                             .time = {.min = 0, .max = 26'000'000},
                             .split = split_boundaries(26'000'000, {}),
                             .rule = {}};
  const MlcommonsCounts counts{.events = 4'763'272'693,
                               .users = 1'000'000,
                               .sessions = 100'000'000,  // the digits of the last two are guessed
                               .test_events = 22'400'000};
  EXPECT_EQ(mlcommons_split_json(split, counts).size(), 361u);
}

TEST(Digest, IsSha256AndMd5) {
  const Path file = temporary_folder() / "meta.json";
  write_file(file, "{\"num_users\": 1000000, \"total_events\": 4763272693}");
  EXPECT_EQ(file_digest(file, Digest::kSha256),
            "dab13cf71beb3c57e29e3eff68c38f3db69eb79533ede9a9eb727bfdce3eefa3");
  write_file(file, "");
  EXPECT_EQ(file_digest(file, Digest::kMd5), "d41d8cd98f00b204e9800998ecf8427e");
}

}  // namespace
}  // namespace hstu
