#include "hstu/dataset/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Manifest example_manifest() {
  Manifest manifest;
  manifest.name = "yambda";
  manifest.counts = {.events = 5, .users = 2, .items = 3, .rankable = 4, .positives = 2};
  manifest.time = {.min = 10, .max = 90};
  manifest.split = TimeSplit{.train_start = -5, .train_end = 95, .test_start = 100, .test_end = 200};
  manifest.actions = {{"listen_plus", 1}, {"like", 2}, {"skip", 4}};
  manifest.label = "listen_plus";
  manifest.pools = {"listen_plus", "skip"};
  manifest.context = {"is_organic"};
  manifest.attributes = {"artist_id"};
  manifest.columns[kUserIdsFile] = {
      .type = "<i8", .count = 2, .bytes = 144, .checksum = "a", .min = {}, .max = {}};
  manifest.columns[kUserOffsetsFile] = {
      .type = "<i8", .count = 3, .bytes = 152, .checksum = "b", .min = {}, .max = {}};
  for (const char* file : {kItemFile, kTimestampFile}) {
    manifest.columns[file] = {.type = "<u4", .count = 5, .bytes = 148, .checksum = "c", .min = 1, .max = 9};
  }
  manifest.columns[kActionFile] = {
      .type = "|u1", .count = 5, .bytes = 133, .checksum = "d", .min = {}, .max = {}};
  manifest.columns[kPoolCountsFile] = {
      .type = "<i8", .count = 3, .bytes = 152, .checksum = "p", .min = 0, .max = 0};
  manifest.columns[context_file("is_organic")] = {
      .type = "|u1", .count = 5, .bytes = 133, .checksum = "e", .min = {}, .max = {}};
  manifest.columns[attribute_file("artist_id")] = {
      .type = "<u4", .count = 7, .bytes = 156, .checksum = "f", .min = {}, .max = {}};
  manifest.id = dataset_id(manifest.columns);
  manifest.test_events = EventCounts{.events = 1, .users = 1, .items = 1, .rankable = 1, .positives = 0};
  return manifest;
}

// The error that the example gives after `alter` changed its JSON.
template <typename Alter>
std::string error_after(const Alter& alter) {
  json text = json::parse(manifest_to_json(example_manifest()));
  alter(text);
  try {
    manifest_from_json(text.dump(), "D/manifest.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Manifest, SaysThatTimesAreAnOrder) {
  Manifest manifest = example_manifest();
  EXPECT_FALSE(json::parse(manifest_to_json(manifest)).contains("times"));
  manifest.times = Times::kOrder;
  EXPECT_EQ(json::parse(manifest_to_json(manifest))["times"], "order");
  EXPECT_EQ(manifest_from_json(manifest_to_json(manifest), "m"), manifest);
  EXPECT_EQ(error_after([](json& m) { m["times"] = "days"; }),
            "D/manifest.json: times: expected seconds or order, found \"days\"");
}

TEST(Manifest, RoundTripsThroughJson) {
  EXPECT_EQ(manifest_from_json(manifest_to_json(example_manifest()), "m"), example_manifest());
  Manifest plain = example_manifest();
  plain.split.reset();
  plain.test_events.reset();
  EXPECT_EQ(manifest_from_json(manifest_to_json(plain), "m"), plain);
}

TEST(Manifest, KnowsTheBitsOfActions) {
  EXPECT_EQ(example_manifest().action_bit("skip"), 4);
  EXPECT_EQ(example_manifest().label_bit(), 1);
  EXPECT_EQ(example_manifest().pool_bits(), 5);
  try {
    example_manifest().action_bit("skipp");
    FAIL() << "an unknown action was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"skip\""));
  }
}

TEST(Manifest, NamesTheFieldThatIsMissingOrOfTheWrongType) {
  EXPECT_THAT(error_after([](json& j) { j["counts"].erase("users"); }),
              HasSubstr("D/manifest.json: counts: the field \"users\" is missing"));
  EXPECT_THAT(error_after([](json& j) { j["counts"]["users"] = "two"; }),
              HasSubstr("counts: users: expected an integer, found \"two\""));
  EXPECT_THAT(error_after([](json& j) { j["counts"]["users"] = -1; }), HasSubstr("at least 0, found -1"));
  EXPECT_THAT(error_after([](json& j) { j["pools"] = 3; }), HasSubstr("pools: expected a list"));
}

TEST(Manifest, RefusesAnotherFormatOrVersion) {
  EXPECT_THAT(error_after([](json& j) { j["format"] = "parquet"; }), HasSubstr("expected \"hstu-dataset\""));
  EXPECT_THAT(error_after([](json& j) { j["version"] = 3; }), HasSubstr("version: expected 2, found 3"));
  EXPECT_THROW(manifest_from_json("{", "m"), Error);
}

TEST(Manifest, RefusesFieldsAtOddsWithEachOther) {
  EXPECT_THAT(error_after([](json& j) { j["columns"].erase("item.npy"); }), HasSubstr("item.npy is missing"));
  EXPECT_THAT(error_after([](json& j) { j["columns"]["item.npy"]["count"] = 4; }),
              HasSubstr("item.npy: expected 5 elements, found 4"));
  EXPECT_THAT(error_after([](json& j) { j["columns"].erase("attribute_artist_id.npy"); }),
              HasSubstr("attribute_artist_id.npy is missing"));
  EXPECT_THAT(error_after([](json& j) { j["columns"]["item.npy"]["min"] = 10; }),
              HasSubstr("item.npy: expected min <= max, or null for both, found 10 and 9"));
  EXPECT_THAT(error_after([](json& j) { j["columns"]["item.npy"]["max"] = nullptr; }),
              HasSubstr("found 1 and null"));
  EXPECT_THAT(error_after([](json& j) { j["label"] = "likes"; }), HasSubstr("did you mean \"like\""));
  EXPECT_THAT(error_after([](json& j) { j["actions"][1]["bit"] = 1; }), HasSubstr("share the bit 1"));
  EXPECT_THAT(error_after([](json& j) { j["actions"][1]["bit"] = 128; }), HasSubstr("found 128"));
  EXPECT_THAT(error_after([](json& j) { j["actions"][1]["name"] = "a\nb"; }),
              HasSubstr("without control characters"));
  EXPECT_THAT(error_after([](json& j) { j["columns"]["../item.npy"] = j["columns"]["item.npy"]; }),
              HasSubstr("is not the name of a file in this folder"));
  EXPECT_THAT(error_after([](json& j) { j["columns"]["\x1b[2J"] = j["columns"]["item.npy"]; }),
              HasSubstr("is not the name of a file in this folder"));
  EXPECT_THAT(error_after([](json& j) { j["counts"]["positives"] = 5; }), HasSubstr("positives <= rankable"));
  EXPECT_THAT(error_after([](json& j) { j["columns"]["item.npy"]["checksum"] = "x"; }), HasSubstr("altered"));
}

TEST(Manifest, SaysThatAFolderIsNotADataset) {
  EXPECT_THROW(read_manifest(Path(testing::TempDir()) / "no_such_dataset"), UsageError);
}

}  // namespace
}  // namespace hstu
