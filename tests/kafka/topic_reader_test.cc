// Topics of the library's own mock cluster, as files.
#include "hstu/kafka/topic_reader.h"

#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "hstu/base/csv_text.h"
#include "hstu/base/error.h"
#include "hstu/kafka/message_text.h"
#include "temporary_folder.h"

namespace hstu::testing {
namespace {

using ::testing::HasSubstr;

class Topic : public ::testing::Test {
 protected:
  void SetUp() override {
    char error[512];
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), error, sizeof error);
    ASSERT_NE(producer_, nullptr) << error;
    cluster_ = rd_kafka_mock_cluster_new(producer_, 1);
    options_.brokers = rd_kafka_mock_cluster_bootstraps(cluster_);
    ASSERT_EQ(rd_kafka_brokers_add(producer_, options_.brokers.c_str()), 1);
    rd_kafka_mock_topic_create(cluster_, "clicks", 2, 1);
    topic_ = rd_kafka_topic_new(producer_, "clicks", nullptr);
  }
  void TearDown() override {
    rd_kafka_flush(producer_, 5000);
    rd_kafka_topic_destroy(topic_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(producer_);
  }

  void send(int partition, const std::string& text) {
    std::string copied = text;
    ASSERT_EQ(rd_kafka_produce(topic_, partition, RD_KAFKA_MSG_F_COPY, copied.data(), copied.size(), nullptr,
                               0, nullptr),
              0);
    ASSERT_EQ(rd_kafka_flush(producer_, 5000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  TopicCounts read() {
    return read_topic(options_, [](const Path&) {});
  }
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(options_.output))
      if (entry.path().extension() == ".csv") files[entry.path().filename()] = read_file(entry.path());
    return files;
  }

  rd_kafka_t* producer_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  rd_kafka_topic_t* topic_ = nullptr;
  TopicOptions options_{.brokers = {},
                        .topic = "clicks",
                        .output = temporary_folder() / "logs",
                        .columns = {"user", "kind"},
                        .once = true};
};

template <typename Expected, typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Expected& error) {
    return error.what();
  }
  return "no error";
}

std::string name_of(int partition, int first, int last) {
  return fmt::format("clicks-{:05}-{:020}-{:020}.csv", partition, first, last);
}

TEST_F(Topic, MessagesAreInOneFileEachWhateverWasKilled) {
  send(0, R"({"user": 7, "kind": "a,b", "more": [1]})");
  send(0, R"({"user": "say \"x\"", "kind": null})");
  send(1, R"({"kind": true})");
  EXPECT_EQ(read().messages, 3);
  const std::map<std::string, std::string> first{
      {name_of(0, 0, 1), "user,kind\n7,\"a,b\"\n\"say \"\"x\"\"\",\n"},
      {name_of(1, 0, 0), "user,kind\n,true\n"}};
  EXPECT_EQ(files(), first);
  EXPECT_EQ(read().messages, 0) << "nothing is new";
  write_file(options_.output / (name_of(1, 1, 1) + ".partial"), "of a killed process");
  send(1, R"({"user": 8})");
  EXPECT_EQ(read().messages, 1);
  EXPECT_EQ(files().at(name_of(1, 1, 1)), "user,kind\n8,\n");
  std::filesystem::remove(options_.output / name_of(1, 1, 1));  // as if it had been killed before
  EXPECT_EQ(read().messages, 1);
  EXPECT_EQ(files().size(), 3U);
}

TEST_F(Topic, BadMessagesAreNamedOrCounted) {
  send(0, "[1]");
  send(0, R"({"user": {"id": 1}})");
  send(0, R"({"user": 1})");
  EXPECT_THAT(
      error_of<Error>([&] { read(); }),
      AllOf(HasSubstr("partition 0, offset 0: expected a JSON object, found [1]"), HasSubstr("--skip-bad")));
  send(1, R"({"user": 1, "kind": "a", "user": 2})");
  options_.skip_bad = true;
  const TopicCounts counts = read();
  EXPECT_EQ(counts.bad, 3);
  EXPECT_EQ(files().at(name_of(0, 0, 2)), "user,kind\n1,\n");
  send(0, "1,\"x\ny\"\n");
  send(0, "1,2\n3,4");
  options_.lines = true;
  EXPECT_EQ(read().bad, 1);
  EXPECT_EQ(files().at(name_of(0, 3, 4)), "user,kind\n1,\"x\ny\"\n");
  options_.settings["no.such"] = "1";
  EXPECT_THAT(error_of<UsageError>([&] { read(); }), HasSubstr("no.such"));
}

TEST_F(Topic, NumbersOfAnyLengthKeepTheirDigits) {
  send(0, R"({"user": 21602730330000060100100000358582, "kind": 18446744073709551615})");
  send(0, R"({"user": -9223372036854775809, "kind": 0.12345678901234567890})");
  send(0, R"({"more": {"user": 1}, "user": 2, "rest": [{"kind": 3}, [4]]})");
  read();
  EXPECT_EQ(files().at(name_of(0, 0, 2)),
            "user,kind\n21602730330000060100100000358582,18446744073709551615\n"
            "-9223372036854775809,0.12345678901234567890\n2,\n");
}

TEST_F(Topic, ObjectsWithoutARowAreBad) {
  options_.skip_bad = true;
  for (const char* const text : {R"({"other": 1})", "{}", R"({"user": null, "kind": ""})",
                                 R"({"user": 1, "user": 2})", R"({"user": 1} {})", R"({"user": 1e999})",
                                 R"({"user": [1]})", "7", "\"user\"", "{\"user\": \"\xff\"}"})
    send(0, text);
  const TopicCounts counts = read();
  EXPECT_EQ(counts.bad, counts.messages);
  EXPECT_EQ(files().at(name_of(0, 0, 9)), "user,kind\n");
  options_.skip_bad = false;
  send(0, R"({"other": 1})");
  EXPECT_THAT(error_of<Error>([&] { read(); }), HasSubstr("offset 10: expected a value of user or kind"));
}

TEST_F(Topic, RowsThatAreTooLongForHstuPrepareAreBad) {
  const std::string longest(kLongestCsvRow - 2, 'u');
  EXPECT_EQ(csv_of_json("{\"user\": \"" + longest + "\"}", options_.columns), longest + ",");
  EXPECT_THAT(error_of<Error>([&] { csv_of_json("{\"user\": \"" + longest + "u\"}", options_.columns); }),
              HasSubstr("expected a row of less than 1048576 bytes"));
}

TEST_F(Topic, LinesAreRowsOfTheColumns) {
  options_.lines = true;
  options_.skip_bad = true;
  for (const char* const bad :
       {"1", "1,2,3", "user,kind", ",", "\n", "\"1\"2,3", "1,\"2", "1\r2,3", "\xff,1"})
    send(0, bad);
  for (const char* const good : {"1,5\" disk", "\"a,\"\"b\"\"\",", "1,\"x\r\ny\"\r\n"}) send(0, good);
  EXPECT_EQ(read().bad, 9);
  EXPECT_EQ(files().at(name_of(0, 0, 11)), "user,kind\n1,5\" disk\n\"a,\"\"b\"\"\",\n1,\"x\r\ny\"\n");
  options_.skip_bad = false;
  send(0, "1,2,3");
  EXPECT_THAT(error_of<Error>([&] { read(); }),
              HasSubstr("offset 12: expected 2 fields, as in --columns, found 3"));
  options_.columns = {"user", "user"};
  EXPECT_THAT(error_of<UsageError>([&] { read(); }), HasSubstr("--columns user,user: name each column"));
}

}  // namespace
}  // namespace hstu::testing
