#include "hstu/prepare/kafka_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/base/text.h"
#include "hstu/kafka/topic_reader.h"

namespace hstu {
namespace {

struct KafkaWords {
  TopicOptions options;
  std::vector<std::string> settings;
};

void run(const KafkaWords& words) {
  TopicOptions options = words.options;
  for (const std::string& setting : words.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) fail_usage("--set {}: expected key=value", setting);
    options.settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  const TopicCounts counts = read_topic(options, [](const Path& path) {
    fmt::print("{}\n", Json{{"written", printable(path.string())}}.dump());
    std::fflush(stdout);
  });
  fmt::print("{}\n", Json{{"messages", counts.messages},
                          {"empty", counts.empty},
                          {"bad", counts.bad},
                          {"files", counts.files}}
                         .dump());
}

}  // namespace

void add_kafka_command(CLI::App& app) {
  const auto words = std::make_shared<KafkaWords>();
  TopicOptions& o = words->options;
  CLI::App* const command = app.add_subcommand("kafka", "Write the messages of a Kafka topic to CSV files");
  command->add_option("--brokers", o.brokers, "HOST:PORT, several separated by commas")->required();
  command->add_option("--topic", o.topic, "whose partitions are read")->required();
  command->add_option("--output", o.output, "folder of the files, for hstu follow")->required();
  command->add_option("--columns", o.columns, "of the files: keys of the messages, which are JSON objects")
      ->required()
      ->delimiter(',');
  command->add_flag("--lines", o.lines, "messages are lines of CSV with these columns");
  command->add_flag("--from-end", o.from_end, "begin with new messages; default: with the oldest ones");
  command->add_flag("--skip-bad", o.skip_bad, "leave out and count messages that cannot be read");
  command->add_flag("--once", o.once, "end at the end of all partitions");
  command->add_option("--seconds", o.seconds, "a file has the messages of so long a time")
      ->check(CLI::Range(0.05, 86'400.0))
      ->capture_default_str();
  command->add_option("--messages", o.messages, "or so many of them")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--set", words->settings, "key=value of librdkafka, such as security.protocol=ssl")
      ->allow_extra_args(false);
  command->footer(
      "Example:\n"
      "  hstu prepare kafka --brokers localhost:9092 --topic clicks --columns user,item,at,kind --output "
      "logs\n"
      "  hstu follow logs --schema shop.toml --run run\n\n"
      "Files are TOPIC-PARTITION-FIRST-LAST.csv. Their names are all that this command remembers: it goes "
      "on\n"
      "behind the last offset of each partition, so that after a kill every message is in one file. Nothing "
      "is\n"
      "committed to the brokers. Messages that were removed before they were read are an error. Needs\n"
      "librdkafka.so.1 (package librdkafka1).");
  command->callback([words] { run(*words); });
}

}  // namespace hstu
