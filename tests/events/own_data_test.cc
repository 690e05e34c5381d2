// Logs as users have them: texts for ids, attributes and contexts, times within a second, CSV beside Parquet.
#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/names.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PrepareOptions kSmall{.memory = 1 << 18};

Schema own_schema(const std::string& files) {
  Schema schema;
  schema.name = "own";
  schema.files = {files};
  schema.user = "user";
  schema.time = "at";
  schema.item = "item";
  schema.time_unit = TimeUnit::kMilliseconds;
  schema.actions = {{.name = "any", .bit = 1, .when = {}}};
  schema.label = "any";
  schema.pools = {"any"};
  schema.csv.emplace();
  return schema;
}

Schema text_schema(const std::string& files = "*.csv") {
  Schema schema = own_schema(files);
  schema.attributes = {{.name = "brand", .value_column = "brand", .file = "", .item_column = ""}};
  schema.context = {{.name = "device", .column = "device"}};
  schema.keep_names = {"user", "item"};
  return schema;
}

std::vector<std::string> item_names(const Path& folder) {
  const Dataset dataset(folder);
  const Names names(folder, dataset.manifest(), "item");
  std::vector<std::string> items;
  for (std::int64_t p = 0; p < dataset.events(); ++p)
    items.emplace_back(names.name_of(dataset.item()[p]).value_or("?"));
  return items;
}

std::string brand_of(const Path& folder, const std::string& item) {
  const Dataset dataset(folder);
  const std::int64_t code = dataset.attribute("brand").of(id_of_text(item));
  return std::string(Names(folder, dataset.manifest(), "attribute_brand").name_of(code).value_or("unmapped"));
}

std::string failure_of(const Schema& schema, const Path& input) {
  try {
    prepare(schema, input, input / "failed");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OwnData, KeepsTheOrderWithinASecond) {
  const Path input = temporary_folder();
  write_parquet(input / "log.parquet", {{"user", array<arrow::Int64Type>({5, 5})},
                                        {"item", array<arrow::Int64Type>({7, 8})},
                                        {"at", array<arrow::Int64Type>({1'000'900, 1'000'100})}});
  prepare(own_schema("log.parquet"), input, input / "ds");
  const Dataset dataset(input / "ds");
  EXPECT_EQ(dataset.item()[0], 8);
  EXPECT_EQ(dataset.item()[1], 7);
  EXPECT_EQ(dataset.time()[0], 1'000);
  EXPECT_EQ(dataset.time()[1], 1'000);
}

// Many events of few users within a few seconds, in an order that nothing explains.
std::string crowded_log(std::int64_t events) {
  std::string text = "user,item,at,brand,device\n";
  for (std::int64_t i = 0; i < events; ++i) {
    const std::int64_t time = 1'700'000'000'000 + i * 7'919 % events;
    text +=
        fmt::format("user-{},item-{:05},{},brand {},device {}\n", i % 3, time % 100'000, time, i % 5, i % 4);
  }
  return text;
}

TEST(OwnData, KeepsTheOrderWithinASecondThroughSortingOnDisk) {
  const Path input = temporary_folder();
  write_file(input / "log.csv", crowded_log(20'000));
  Schema schema = text_schema();
  schema.attributes.clear();  // every event has an item of its own, and attributes are in memory
  prepare(schema, input, input / "much");
  prepare(schema, input, input / "little", kSmall);
  EXPECT_EQ(read_file(input / "much" / kManifestFile), read_file(input / "little" / kManifestFile));
  EXPECT_THAT(wrong(input / "little"), IsEmpty());
  const Dataset dataset(input / "little");
  const std::vector<std::string> items = item_names(input / "little");  // named by their time
  for (std::int64_t u = 0; u < 3; ++u) {
    const auto [begin, end] = dataset.events_of(u).last_range();
    EXPECT_TRUE(std::is_sorted(items.begin() + begin, items.begin() + end)) << u;
  }
}

TEST(OwnData, IsTheSameInCsvAndParquetAndInAnyFiles) {
  const Path input = temporary_folder();
  const std::string log = crowded_log(3'000);
  write_file(input / "whole.csv", log);
  const std::string header = log.substr(0, log.find('\n') + 1);
  const std::size_t half = log.find('\n', log.size() / 2) + 1;
  std::filesystem::create_directories(input / "halves");
  write_file(input / "halves" / "1.csv", log.substr(0, half));
  write_file(input / "halves" / "2.csv", header + log.substr(half));
  std::vector<std::optional<std::string>> users, items, brands, devices;
  std::vector<std::optional<std::int64_t>> times;
  for (std::int64_t i = 0; i < 3'000; ++i) {
    const std::int64_t time = 1'700'000'000'000 + i * 7'919 % 3'000;
    users.emplace_back(fmt::format("user-{}", i % 3));
    items.emplace_back(fmt::format("item-{:05}", time % 100'000));
    times.emplace_back(time);
    brands.emplace_back(fmt::format("brand {}", i % 5));
    devices.emplace_back(fmt::format("device {}", i % 4));
  }
  write_parquet(input / "log.parquet",
                {{"user", texts(users)},
                 {"item", dictionary(items)},
                 {"at", timestamps(arrow::TimeUnit::MILLI, times)},
                 {"brand", large_texts(brands)},
                 {"device", dictionary(devices)}},
                700);
  prepare(text_schema("*.csv"), input, input / "a");
  prepare(text_schema("*.csv"), input / "halves", input / "b", {.threads = 3});
  prepare(text_schema("*.parquet"), input, input / "c", {.threads = 2});
  const std::string expected = read_file(input / "a" / kManifestFile);
  EXPECT_EQ(read_file(input / "b" / kManifestFile), expected);
  EXPECT_EQ(read_file(input / "c" / kManifestFile), expected);
}

TEST(OwnData, KeepsNamesAndCodes) {
  const Path input = temporary_folder();
  write_file(input / "log.csv",
             "user,item,at,brand,device\n"
             "u2,shoe,3000,Acme,phone\n"
             "u1,hat,1000,,desk\n"
             "u1,shoe,2000,Acme,phone\n");
  const Manifest manifest = prepare(text_schema(), input, input / "ds");
  EXPECT_EQ(manifest.hashed.at("user"), 0);
  EXPECT_THAT(manifest.names, ElementsAre("user", "item", "context_device", "attribute_brand"));
  const Dataset dataset(input / "ds");
  const Names users(input / "ds", manifest, "user"), devices(input / "ds", manifest, "context_device");
  for (std::int64_t p = 0; p < 3; ++p) {
    const auto user = users.name_of(dataset.user_ids()[static_cast<std::size_t>(dataset.user_at(p))]);
    EXPECT_EQ(devices.name_of(dataset.context("device")[p]), dataset.time()[p] == 1 ? "desk" : "phone");
    EXPECT_EQ(user, dataset.time()[p] == 3 ? "u2" : "u1");
  }
  EXPECT_EQ(devices.id_of("phone"), 1);
  EXPECT_EQ(devices.id_of("desk"), 2);
  EXPECT_EQ(brand_of(input / "ds", "shoe"), "Acme");
  EXPECT_EQ(brand_of(input / "ds", "hat"), "unmapped");
  EXPECT_THAT(wrong(input / "ds"), IsEmpty());
}

TEST(OwnData, HashesIdsWithoutKeepingNames) {
  const Path input = temporary_folder();
  write_file(input / "log.csv", "user,item,at\n007,x,1\n7,x,2\n");
  const Manifest manifest = prepare(own_schema("*.csv"), input, input / "ds");
  EXPECT_EQ(manifest.counts.users, 2);
  EXPECT_EQ(manifest.hashed.at("item"), std::nullopt);
  EXPECT_THAT(manifest.names, IsEmpty());
}

TEST(OwnData, TakesAttributesFromTheLatestEventThatTrainingSees) {
  const Path input = temporary_folder();
  const auto day = [](double days) { return static_cast<std::int64_t>(days * 86'400'000); };
  write_file(input / "log.csv",
             "user,item,at,brand,device\n" +
                 fmt::format("u,moved,{},new,d\n", day(2.0)) +  // the latest before the test interval ...
                 fmt::format("u,moved,{},old,d\n", day(1.0)) +  // ... comes before this one in the file
                 fmt::format("u,moved,{},future,d\n", day(9.5)) +
                 fmt::format("u,fresh,{},future,d\n", day(9.5)) +
                 fmt::format("u,fresh,{},future,d\n", day(10.0)));
  Schema schema = text_schema();
  prepare(schema, input, input / "all");
  EXPECT_EQ(brand_of(input / "all", "moved"), "future");
  schema.split = SplitRule{.train_days = 30, .gap_minutes = 30, .test_days = 1};
  const Manifest manifest = prepare(schema, input, input / "split");
  EXPECT_EQ(brand_of(input / "split", "moved"), "new");
  EXPECT_EQ(brand_of(input / "split", "fresh"), "unmapped");
  EXPECT_EQ(Names(input / "split", manifest, "attribute_brand").id_of("future"), std::nullopt);
}

TEST(OwnData, ReadsAMappingOfTextsByTexts) {
  const Path input = temporary_folder();
  write_file(input / "log.csv", "user,item,at,device\nu,shoe,1,d\nu,hat,2,d\n");
  write_file(input / "items.tsv", "sku\tbrand\nshoe\tAcme\ncoat\tZeta\nshoe\tBolt\n");
  Schema schema = text_schema();
  schema.attributes = {{.name = "brand", .value_column = "brand", .file = "items.tsv", .item_column = "sku"}};
  prepare(schema, input, input / "ds");
  EXPECT_EQ(brand_of(input / "ds", "shoe"), "Bolt");
  EXPECT_EQ(brand_of(input / "ds", "coat"), "Zeta");
  EXPECT_EQ(brand_of(input / "ds", "hat"), "unmapped");
  schema.csv->integers = {"sku"};
  EXPECT_THAT(failure_of(schema, input), HasSubstr("expected texts for the item id, as in the log"));
}

TEST(OwnData, SaysHowAContextOfCsvHoldsIntegers) {
  const Path input = temporary_folder();
  write_file(input / "log.csv", "user,item,at,stars\nu,x,1,5\nu,y,2,3\n");
  Schema schema = own_schema("log.csv");
  schema.context = {{.name = "stars", .column = "stars"}};
  schema.actions = {{.name = "any", .bit = 1, .when = {parse_condition("stars >= 4")}}};
  EXPECT_THAT(failure_of(schema, input), HasSubstr("set integers = [\"stars\"] in the schema"));
  schema.csv->integers = {"stars"};
  EXPECT_EQ(prepare(schema, input, input / "ds").counts.positives, 1);
}

TEST(OwnData, WarnsOfAMappingOfOtherIds) {
  const Path input = temporary_folder();
  write_file(input / "log.csv", "user,item,at,device\nu,i1,1,d\nu,i2,2,d\nu,i1,3,d\nu,i3,4,d\n");
  Schema schema = text_schema();
  schema.files = {"log.csv"};
  schema.attributes = {{.name = "brand", .value_column = "brand", .file = "m.csv", .item_column = "sku"}};
  const auto printed = [&](const std::string& mapping, const std::string& name) {
    write_file(input / "m.csv", mapping);
    testing::internal::CaptureStderr();
    prepare(schema, input, input / name);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(
      printed("sku,brand\ni1 ,A\nI2,B\n", "none"),
      testing::AllOf(HasSubstr("attribute \"brand\""), HasSubstr("has a value for 0 of 3 items of the log"),
                     HasSubstr("(column \"sku\": \"i1 \", \"I2\")"),
                     HasSubstr("(column \"item\": \"i1\", \"i2\", \"i3\")")));
  EXPECT_THAT(printed("sku,brand\ni1,A\n", "one"), testing::Not(HasSubstr("has a value for")));
  schema.csv->integers = {"item", "sku"};
  schema.keep_names = {};
  write_file(input / "log.csv", "user,item,at,device\nu,1,1,d\nu,2,2,d\n");
  EXPECT_THAT(printed("sku,brand\n70,A\n", "integers"),
              testing::AllOf(HasSubstr("has a value for 0 of 2 items"), HasSubstr("\"item\": 1, 2)")));
}

TEST(OwnData, RefusesIntegersInOneFileAndTextsInAnother) {
  const Path input = temporary_folder();
  write_file(input / "a.csv", "user,item,at\n7,x,1\n");
  write_parquet(
      input / "b.parquet",
      {{"user", array<arrow::Int64Type>({7})}, {"item", texts({"x"})}, {"at", array<arrow::Int64Type>({1})}});
  Schema schema = own_schema("*.csv");
  schema.files.emplace_back("*.parquet");
  EXPECT_THAT(failure_of(schema, input),
              testing::AllOf(HasSubstr("b.parquet: column \"user\": found integers"), HasSubstr("a.csv")));
  schema.csv->integers = {"user"};
  const Manifest manifest = prepare(schema, input, input / "ds");
  EXPECT_EQ(manifest.counts.users, 1);
  EXPECT_FALSE(manifest.hashed.contains("user"));
}

TEST(OwnData, RefusesAVocabularyThatTheMemoryCannotHold) {
  const Path input = temporary_folder();
  std::string log = "user,item,at,brand,device\n";
  for (int i = 0; i < 2'000; ++i) log += fmt::format("u,x,{},b,device {}\n", i, i);
  write_file(input / "log.csv", log);
  try {
    prepare(text_schema(), input, input / "ds", kSmall);
    FAIL() << "the memory was exceeded";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("the context \"device\""), HasSubstr("--memory")));
  }
}

TEST(OwnData, RefusesWhatIsNoId) {
  const Path input = temporary_folder();
  write_file(input / "log.csv", "user,item,at,brand,device\nu,x,1,b,d\nu,\"\",2,b,d\n");
  EXPECT_THAT(failure_of(text_schema(), input), HasSubstr("line 3: expected a text for the item id"));
  write_file(input / "log.csv", "user,item,at\n1,x,1\n");
  Schema schema = own_schema("*.csv");
  schema.csv->integers = {"user"};
  schema.keep_names = {"user"};
  EXPECT_THAT(failure_of(schema, input), HasSubstr("which are their own names"));
}

}  // namespace
}  // namespace hstu
