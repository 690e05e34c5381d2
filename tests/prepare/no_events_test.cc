// Logs without events: quiet days.
#include <string>

#include <gtest/gtest.h>

#include "hstu/dataset/manifest.h"
#include "hstu/events/log_stream.h"
#include "hstu/prepare/prepare.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

TEST(NoEvents, AreNothingToAppendAndNoDataset) {
  const Path folder = temporary_folder();
  const auto write_log = [&](const char* name, const std::string& text) {
    std::filesystem::create_directory(folder / name);
    write_file(folder / name / "log.csv", text);
  };
  write_log("first", "user,item,at\nu1,i1,1700000000\nu1,i2,1700000001\n");
  write_log("header", "user,item,at");
  write_log("empty", "");
  Schema schema;
  schema.name = "shop";
  schema.files = {"*.csv"};
  schema.user = "user";
  schema.item = "item";
  schema.time = "at";
  schema.csv.emplace();
  complete(schema);
  prepare(schema, folder / "first", folder / "ds");
  const std::string id = read_manifest(folder / "ds").id;
  EXPECT_THROW(append(schema, folder / "header", folder / "ds"), NoEventsError);
  Schema other = schema;
  other.keep = {parse_condition("item = none")};
  EXPECT_THROW(append(other, folder / "first", folder / "ds"), NoEventsError);
  other = schema;
  other.csv->columns = {"user", "item", "at"};  // there is no header
  EXPECT_THROW(append(other, folder / "empty", folder / "ds"), NoEventsError);
  EXPECT_EQ(read_manifest(folder / "ds").id, id);
  EXPECT_THROW(prepare(schema, folder / "header", folder / "none"), NoEventsError);
}

}  // namespace
}  // namespace hstu
