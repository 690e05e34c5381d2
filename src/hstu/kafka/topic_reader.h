// Messages of a Kafka topic as CSV files of a folder, for hstu follow and hstu prepare.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

struct TopicOptions {
  std::string brokers, topic;
  Path output;                            // folder of the files
  std::vector<std::string> columns = {};  // of the files: of each message, a JSON object or (lines) CSV
  bool lines = false;                     // messages are lines of CSV
  bool from_end = false;  // a partition without a file begins with the next message, not the first
  bool skip_bad = false;  // count messages that are no line; otherwise they are errors
  bool once = false;      // end at the end of all partitions
  double seconds = 60;    // a file is complete when its first message is so old,
  std::int64_t messages = 1'000'000;                 // or has so many
  std::map<std::string, std::string> settings = {};  // of librdkafka
};

struct TopicCounts {
  std::int64_t messages = 0, empty = 0, bad = 0, files = 0;
};

// Reads all partitions, with `once` to their ends. A file TOPIC-PARTITION-FIRST-LAST.csv has the messages of
// these offsets, and gets its name when it is complete, which is called `written` for. The folder is the only
// memory: the next call goes on behind the last file of each partition, whenever this one was killed, so that
// every message is in one file. Throws Error naming partition and offset if messages that come next do not
// exist any more, or are no lines.
TopicCounts read_topic(const TopicOptions& options, const std::function<void(const Path&)>& written);

}  // namespace hstu
