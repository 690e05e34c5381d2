#include "hstu/objects/publication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

StoredExport example() {
  return {.folder = "step_00000004",
          .base = "step_00000002-00",
          .files = {{"manifest.json", {12, "ab"}}, {"weights/tables/item/rows", {0, "cd"}}}};
}
std::string name_of(const std::string& text) {
  return "step_00000004-" + checksum(std::string_view(text));
}

TEST(StoredExports, AreReadAsTheyWereWritten) {
  const StoredExport written = example();
  const std::string text = written.manifest();
  EXPECT_EQ(written.name(), name_of(text));
  const StoredExport read = parse_stored_export(written.name(), text);
  EXPECT_EQ(read.manifest(), text);
  EXPECT_EQ(read.files.at("manifest.json").bytes, 12);
}

TEST(StoredExports, HaveANameThatFollowsFromEveryFile) {
  StoredExport other = example();
  other.files["manifest.json"].checksum = "ac";
  EXPECT_NE(other.name(), example().name());
  EXPECT_THROW(parse_stored_export(example().name(), other.manifest()), Error);
  EXPECT_THROW(parse_stored_export("step_00000005" + example().name().substr(13), example().manifest()),
               Error);
}

TEST(StoredExports, AreNowhereElse) {
  const auto refused = [](const StoredExport& stored) {
    const std::string text = stored.manifest();
    EXPECT_THROW(parse_stored_export(stored.folder + "-" + checksum(std::string_view(text)), text), Error)
        << text;
  };
  for (const char* path : {"../x", "/x", "a//b", "a/./b", ""}) {
    StoredExport stored = example();
    stored.files[path] = {1, "ab"};
    refused(stored);
  }
  for (const char* folder : {"current", "step_/x", "..", ""}) {
    StoredExport stored = example();
    stored.folder = folder;
    refused(stored);
  }
  StoredExport stored = example();
  stored.base = "../x";
  refused(stored);
  stored = example();
  stored.files["a"].bytes = -1;
  refused(stored);
  for (const std::string text : {"", "[]", "{}", R"({"format": "hstu-stored-export", "version": 2})"})
    EXPECT_THROW(parse_stored_export(name_of(text), text), Error) << text;
}

TEST(StoredExports, CurrentIsNoLongText) {
  EXPECT_THROW(parse_current(std::string(1 << 20, 'a'), parse_object_url("s3://b/f")), Error);
}

TEST(StoredExports, CurrentIsAName) {
  const ObjectUrl url = parse_object_url("s3://models/shop");
  EXPECT_EQ(parse_current("step_00000004-ab\n", url), "step_00000004-ab");
  for (const char* text : {"", "\n", "../x", "a/b", "a\nb"})
    EXPECT_THROW(parse_current(text, url), Error) << text;
}

}  // namespace
}  // namespace hstu
