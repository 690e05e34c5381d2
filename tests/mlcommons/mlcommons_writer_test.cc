// MLCommons' layout, byte for byte, against what NumPy wrote (tools/mlcommons_layout.py).
#include "hstu/mlcommons/mlcommons_writer.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "events/yambda_log.h"
#include "hstu/base/random.h"
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

std::map<std::string, std::string> digests_of(const Path& folder) {
  std::map<std::string, std::string> digests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    digests[entry.path().lexically_relative(folder).string()] = file_digest(entry.path(), Digest::kSha256);
  }
  return digests;
}

TEST(MlcommonsLayout, IsWhatNumpyWritesForAnyMinHistory) {
  const Path input = temporary_folder();
  write_yambda(input, golden_log());
  for (const std::int64_t min_history : {10, 3}) {
    const Path output = input / fmt::format("m{}", min_history);
    const MlcommonsCounts counts =
        prepare_mlcommons(input, output, {}, {.history_length = 10, .min_history = min_history});
    EXPECT_EQ(counts.users, 20);
    const auto expected = golden_digests(fmt::format("m{}/", min_history));
    EXPECT_EQ(expected.size(), min_history == 10 ? 17u : 18u);
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
