#include "hstu/kafka/topic_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/foreign_text.h"
#include "hstu/base/staged_file.h"
#include "hstu/base/text.h"
#include "hstu/kafka/kafka_library.h"
#include "hstu/kafka/message_text.h"

namespace hstu {
namespace {

constexpr int kAnswerMs = 10'000;  // to questions to a broker
constexpr int kPollMs = 100;
constexpr std::size_t kFileBytes = std::size_t{64} << 20;  // a file is complete with so many

// Calls a function of the library when it leaves its scope.
template <typename T>
using Owned = std::unique_ptr<T, std::function<void(T*)>>;

struct Partition {
  std::int64_t next = 0;   // offset behind the last file
  std::string lines = {};  // of the next file
  std::int64_t count = 0, first = 0, last = 0;
  Clock::time_point began = {};
  bool at_end = false;
};

class TopicReader {
 public:
  TopicReader(const TopicOptions& options, const std::function<void(const Path&)>& written)
      : options_(options), written_(written), consumer_(make_consumer()), lock_(options.output / ".lock") {
    if (!lock_.held())
      fail_usage("{}: another process writes files of a topic there", options.output.string());
    for (const auto& entry : std::filesystem::directory_iterator(options_.output))
      if (entry.path().extension() == ".partial")
        std::filesystem::remove(entry.path());  // of a killed process
    find_partitions();
  }

  TopicCounts run() {
    assign();
    while (!options_.once || !all_at_end()) {
      const Owned<rd_kafka_message_t> message(k_.consumer_poll(consumer_.get(), kPollMs), k_.message_destroy);
      if (message != nullptr) take(*message);
      for (auto& [number, partition] : partitions_)
        if (is_complete(partition)) write(number, partition);
    }
    for (auto& [number, partition] : partitions_)
      if (partition.count > 0) write(number, partition);
    k_.consumer_close(consumer_.get());
    return counts_;
  }

 private:
  Owned<rd_kafka_t> make_consumer() const {
    std::map<std::string, std::string> settings = options_.settings;
    settings["bootstrap.servers"] = options_.brokers;
    settings.try_emplace("group.id", "hstu");  // required, and without meaning: nothing is committed
    settings["enable.auto.commit"] = "false";
    settings["enable.partition.eof"] = "true";
    settings["auto.offset.reset"] = "error";
    Owned<rd_kafka_conf_t> conf(k_.conf_new(), k_.conf_destroy);
    char text[512];
    for (const auto& [key, value] : settings)
      if (k_.conf_set(conf.get(), key.c_str(), value.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK)
        fail_usage("--set {}={}: {}", key, value, text);
    rd_kafka_t* const consumer = k_.create(RD_KAFKA_CONSUMER, conf.get(), text, sizeof text);
    check(consumer != nullptr, "Kafka: {}", text);
    static_cast<void>(conf.release());  // it is the consumer's
    k_.poll_set_consumer(consumer);
    return {consumer, k_.destroy};
  }

  void check_answer(rd_kafka_resp_err_t error, const char* what) const {
    check(error == RD_KAFKA_RESP_ERR_NO_ERROR, "Kafka at {}, topic {}: {}: {}", options_.brokers,
          options_.topic, what, k_.err2str(error));
  }

  void find_partitions() {
    const Owned<rd_kafka_topic_t> topic(k_.topic_new(consumer_.get(), options_.topic.c_str(), nullptr),
                                        k_.topic_destroy);
    const struct rd_kafka_metadata* answer = nullptr;
    check_answer(k_.metadata(consumer_.get(), 0, topic.get(), &answer, kAnswerMs), "its partitions");
    const Owned<const struct rd_kafka_metadata> metadata(answer, k_.metadata_destroy);
    check(metadata->topic_cnt == 1, "Kafka at {}: there is no topic {}", options_.brokers, options_.topic);
    check_answer(metadata->topics[0].err, "its partitions");
    for (int p = 0; p < metadata->topics[0].partition_cnt; ++p) {
      const int number = metadata->topics[0].partitions[p].id;
      partitions_[number].next = first_offset(number);
    }
    check(!partitions_.empty(), "Kafka at {}: there is no topic {}", options_.brokers, options_.topic);
  }

  std::string prefix(int partition) const { return fmt::format("{}-{:05}-", options_.topic, partition); }

  // Behind the last file; none: where the options say.
  std::int64_t first_offset(int partition) const {
    std::int64_t low = 0, high = 0;
    check_answer(k_.query_watermark_offsets(consumer_.get(), options_.topic.c_str(), partition, &low, &high,
                                            kAnswerMs),
                 "the offsets of its messages");
    std::optional<std::int64_t> next;
    for (const auto& entry : std::filesystem::directory_iterator(options_.output)) {
      std::string name = entry.path().filename().string();
      if (!name.starts_with(prefix(partition)) || !name.ends_with(".csv")) continue;
      const std::vector<std::string> offsets =
          split(name.substr(prefix(partition).size(), name.size() - prefix(partition).size() - 4), '-');
      const auto last = offsets.size() == 2 ? parse_number<std::int64_t>(offsets[1]) : std::nullopt;
      if (last) next = std::max(next.value_or(0), *last + 1);
    }
    if (!next) return options_.from_end ? high : low;
    check(*next >= low,
          "Kafka: topic {}, partition {}: messages {} to {} are next, and do not exist any more: they are "
          "lost. "
          "Another --output begins with those that exist",
          options_.topic, partition, *next, low - 1);
    check(*next <= high,
          "Kafka: topic {}, partition {}: message {} is next, and the last one is {}: the topic was made "
          "again. "
          "Name another --output",
          options_.topic, partition, *next, high - 1);
    return *next;
  }

  void assign() {
    const Owned<rd_kafka_topic_partition_list_t> list(k_.list_new(static_cast<int>(partitions_.size())),
                                                      k_.list_destroy);
    for (const auto& [number, partition] : partitions_)
      k_.list_add(list.get(), options_.topic.c_str(), number)->offset = partition.next;
    check_answer(k_.assign(consumer_.get(), list.get()), "the messages");
  }

  void take(const rd_kafka_message_t& message) {
    if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      partitions_.at(message.partition).at_end = true;
      return;
    }
    check_answer(message.err, "a message");
    Partition& partition = partitions_.at(message.partition);
    partition.at_end = false;
    const std::string line = line_of(message);
    if (partition.count++ == 0) {
      partition.first = message.offset;
      partition.began = Clock::now();
    }
    partition.last = message.offset;
    if (!line.empty()) partition.lines += line + '\n';
  }

  // "": of a message that is left out, and counted.
  std::string line_of(const rd_kafka_message_t& message) {
    ++counts_.messages;
    const std::string_view text(static_cast<const char*>(message.payload), message.len);
    if (text.empty()) {
      ++counts_.empty;
      return "";
    }
    try {
      return options_.lines ? csv_of_line(text, options_.columns) : csv_of_json(text, options_.columns);
    } catch (const Error& error) {
      check(options_.skip_bad,
            "Kafka: topic {}, partition {}, offset {}: {}, found {}; --skip-bad leaves such messages out",
            options_.topic, message.partition, message.offset, error.what(),
            printable(std::string(text.substr(0, 80))));
      ++counts_.bad;
      return "";
    }
  }

  bool all_at_end() const {
    return std::all_of(partitions_.begin(), partitions_.end(), [](const auto& p) { return p.second.at_end; });
  }
  bool is_complete(const Partition& partition) const {
    return partition.count > 0 &&
           (partition.count >= options_.messages || partition.lines.size() >= kFileBytes ||
            seconds_since(partition.began) >= options_.seconds);
  }

  void write(int number, Partition& partition) {
    const Path path =
        options_.output / fmt::format("{}{:020}-{:020}.csv", prefix(number), partition.first, partition.last);
    StagedFile staged(path, StagedFile::Existing::refuse);
    write_file(staged.temporary(), csv_header(options_.columns) + '\n' + partition.lines);
    staged.commit();
    ++counts_.files;
    partition.next = partition.last + 1;
    partition.lines.clear();
    partition.count = 0;
    written_(path);
  }

  const KafkaLibrary& k_ = kafka_library();
  const TopicOptions& options_;
  const std::function<void(const Path&)>& written_;
  Owned<rd_kafka_t> consumer_;
  FileLock lock_;
  std::map<int, Partition> partitions_;
  TopicCounts counts_;
};

}  // namespace

TopicCounts read_topic(const TopicOptions& options, const std::function<void(const Path&)>& written) {
  if (!is_file_name(options.topic))
    fail_usage("--topic \"{}\": expected the name of a topic, which names files", options.topic);
  const std::set<std::string> columns(options.columns.begin(), options.columns.end());
  if (columns.empty() || columns.contains("") || columns.size() < options.columns.size())
    fail_usage("--columns {}: name each column of the files once", fmt::join(options.columns, ","));
  std::filesystem::create_directories(options.output);
  return TopicReader(options, written).run();
}

}  // namespace hstu
