#include "hstu/events/schema.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kShop = R"(name = "shop"
files = ["events-*.parquet"]
user = "customer"
item = "product"
time = "at"
time_unit = "ms"
label = "bought"
pools = ["bought", "viewed"]
rankable = ["kind = view"]
null_as_zero = ["dwell"]

[allowed_texts]
kind = ["view", "purchase"]

[[action]]
name = "bought"
bit = 1
when = ["kind = purchase"]

[[action]]
name = "viewed"
bit = 4
when = ["kind = view", "dwell >= 5"]

[[attribute]]
name = "brand"
column = "brand_id"

[[attribute]]
name = "category"
file = "categories.parquet"
item = "product"
column = "category_id"

[[context]]
name = "device"

[split]
train_days = 30
test_days = 2
)";

Schema read_text(const std::string& text) {
  const Path file = temporary_folder() / "shop.toml";
  write_file(file, text);
  return read_schema(file);
}

std::string error_after(const std::string& from, const std::string& to) {
  std::string text = kShop;
  text.replace(text.find(from), from.size(), to);
  try {
    read_text(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SchemaFile, ReadsEveryKey) {
  const Schema schema = read_text(kShop);
  EXPECT_EQ(schema.name, "shop");
  EXPECT_EQ(schema.files, std::vector<std::string>{"events-*.parquet"});
  EXPECT_EQ(schema.user, "customer");
  EXPECT_EQ(schema.item, "product");
  EXPECT_EQ(schema.time, "at");
  EXPECT_EQ(schema.time_unit, TimeUnit::kMilliseconds);
  EXPECT_EQ(schema.label, "bought");
  EXPECT_EQ(schema.pools, (std::vector<std::string>{"bought", "viewed"}));
  ASSERT_EQ(schema.rankable.size(), 1u);
  EXPECT_EQ(to_string(schema.rankable[0]), "kind = view");
  EXPECT_EQ(schema.null_as_zero, std::vector<std::string>{"dwell"});
  ASSERT_EQ(schema.allowed_texts.size(), 1u);
  EXPECT_EQ(schema.allowed_texts[0].column, "kind");
  ASSERT_EQ(schema.actions.size(), 2u);
  EXPECT_EQ(schema.actions[1].bit, 4);
  ASSERT_EQ(schema.actions[1].when.size(), 2u);
  EXPECT_EQ(to_string(schema.actions[1].when[1]), "dwell >= 5");
  ASSERT_EQ(schema.attributes.size(), 2u);
  EXPECT_EQ(schema.attributes[0].file, "");
  EXPECT_EQ(schema.attributes[1].file, "categories.parquet");
  EXPECT_EQ(schema.attributes[1].item_column, "product");
  ASSERT_EQ(schema.context.size(), 1u);
  EXPECT_EQ(schema.context[0].column, "device");
  EXPECT_EQ(schema.split, (SplitRule{.train_days = 30, .gap_minutes = 30, .test_days = 2}));
}

TEST(SchemaFile, NamesAnUnknownKeyAndTheNearestOneAnywhere) {
  EXPECT_THAT(
      error_after("time_unit", "time_units"),
      AllOf(HasSubstr("shop.toml line 6"), HasSubstr("time_units"), HasSubstr("did you mean \"time_unit\"")));
  EXPECT_THAT(error_after("test_days", "test_day"), HasSubstr("did you mean \"test_days\""));
  EXPECT_THAT(error_after("bit = 4", "bits = 4"), HasSubstr("missing key action[1].bit in"));
  EXPECT_THAT(error_after("bit = 4", "bit = 4\nbitt = 3"), HasSubstr("did you mean \"bit\""));
}

TEST(SchemaFile, NamesAMissingKeyOrAWrongType) {
  EXPECT_THAT(error_after("user = \"customer\"\n", ""), HasSubstr("missing key user in"));
  EXPECT_THAT(error_after("\"customer\"", "3"),
              AllOf(HasSubstr("user: expected a string"), HasSubstr("shop.toml line 3")));
  EXPECT_THAT(error_after("train_days = 30", "train_days = 30.5"), HasSubstr("expected an integer"));
  EXPECT_THAT(error_after("= [\"kind = view\"]", "= \"kind = view\""),
              HasSubstr("rankable: expected a list"));
  EXPECT_THAT(error_after("kind = purchase", "kind"),
              AllOf(HasSubstr("action[0].when: expected a condition"), HasSubstr("shop.toml line 18")));
  EXPECT_THAT(error_after("\"ms\"", "\"minutes\""), HasSubstr("time_unit: expected one of s, ms, us"));
  EXPECT_THAT(error_after("[\"view\", \"purchase\"]", "\"view\""),
              HasSubstr("allowed_texts: kind: expected a list"));
  EXPECT_THAT(error_after("name =", "name"), HasSubstr("shop.toml line 1: not TOML"));
}

TEST(SchemaFile, ReportsEveryMistakeAtOnce) {
  EXPECT_THAT(error_after("time_unit = \"ms\"", "user_id = 3\nlabels = 1"),
              AllOf(HasSubstr("user_id"), HasSubstr("labels")));
}

TEST(SchemaFile, RefusesFieldsAtOddsWithEachOther) {
  EXPECT_THAT(error_after("label = \"bought\"", "label = \"bougt\""), HasSubstr("did you mean \"bought\""));
  EXPECT_THAT(error_after("\"viewed\"]", "\"seen\"]"), HasSubstr("pools"));
  EXPECT_THAT(error_after("bit = 4", "bit = 1"), HasSubstr("another action has the bit 1"));
  EXPECT_THAT(error_after("bit = 4", "bit = 3"), HasSubstr("found 3"));
  EXPECT_THAT(error_after("bit = 4", "bit = 128"), HasSubstr("found 128"));
  EXPECT_THAT(error_after("\"viewed\"\nbit", "\"bought\"\nbit"), HasSubstr("given twice"));
  EXPECT_THAT(error_after("name = \"brand\"", "name = \"../brand\""), HasSubstr("letters, digits"));
  EXPECT_THAT(error_after("item = \"product\"\ncolumn", "column"), HasSubstr("needs both"));
  EXPECT_THAT(error_after("[\"dwell\"]", "[\"customer\"]"), HasSubstr("every event must have"));
  EXPECT_THAT(error_after("test_days = 2", "test_days = -1"), HasSubstr("split"));
}

TEST(SchemaFile, IsDocumentedWithAnExampleThatWorks) {
  const std::string page = read_file(Path(HSTU_SOURCE_DIR) / "docs/prepare.md");
  const std::string fence = "```toml\n";
  const std::size_t begin = page.find(fence) + fence.size();
  const Schema schema = read_text(page.substr(begin, page.find("```", begin) - begin));
  EXPECT_EQ(schema.actions.size(), 2u);
  EXPECT_EQ(schema.attributes.size(), 2u);
  EXPECT_TRUE(schema.split.has_value());
}

TEST(SchemaFile, SaysThatItIsMissing) {
  EXPECT_THROW(read_schema(temporary_folder() / "none.toml"), UsageError);
}

}  // namespace
}  // namespace hstu
