#include "hstu/options/table_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kRequired = "data.path = 'dataset'\n";

TEST(TableOptions, ReadNumbersWithUnits) {
  EXPECT_EQ(parse_rows(""), 0);
  EXPECT_EQ(parse_rows("5000"), 5000);
  EXPECT_EQ(parse_rows("1.5M"), 1'500'000);
  EXPECT_EQ(parse_rows("200M"), 200'000'000);
  EXPECT_EQ(parse_bytes("48GiB"), std::int64_t{48} << 30);
  EXPECT_EQ(parse_bytes("1GB"), 1'000'000'000);
  EXPECT_EQ(parse_duration("30d"), 30 * 86400);
  EXPECT_EQ(parse_duration("90"), 90);
  for (const char* text : {"x", "5X", "-5", "0", "1e3", "200 M", "1.2.3M", "99999999999999G"})
    EXPECT_THROW(parse_rows(text), UsageError) << text;
  EXPECT_THROW(parse_bytes("5M"), UsageError) << "bytes have bytes' units";
  EXPECT_THROW(parse_duration("5y"), UsageError);
}

TEST(TableOptions, AreSectionsByTheNameOfTheTable) {
  const auto options = parse_config<RunOptions>(kRequired + R"(
[tables]
place = "host"
[tables.item]
capacity = "200M"
evict = "lru+lfu"
admit = { after = 3 }
initial = { kind = "normal", deviation = 0.5 }
optimizer = "sgd"
ttl = "30d"
[tables.user]
capacity = 1000
)",
                                                "a.toml", std::vector<std::string>{"tables.user.evict=lfu"});
  ASSERT_EQ(options.tables.by_name.size(), 2u);
  const TableSection& item = options.tables.by_name.at("item");
  EXPECT_EQ(item.capacity, "200M");
  EXPECT_EQ(item.evict, Evict::lru_lfu);
  EXPECT_EQ(item.admit_after, 3);
  EXPECT_EQ(item.initial.kind, InitialKind::normal);
  EXPECT_EQ(item.initial.deviation, 0.5);
  EXPECT_EQ(item.optimizer, "sgd");
  EXPECT_EQ(options.tables.by_name.at("user").capacity, "1000");
  EXPECT_EQ(options.tables.by_name.at("user").evict, Evict::lfu);
  const auto again = parse_config<RunOptions>(to_toml(options), "resolved.toml");
  EXPECT_EQ(to_toml(again), to_toml(options));
}

TEST(TableOptions, AnOverrideMayBeAWholeSection) {
  const auto options = parse_config<RunOptions>(
      kRequired, "a.toml", std::vector<std::string>{"tables.item={capacity = 100, evict = \"lfu\"}"});
  EXPECT_EQ(options.tables.by_name.at("item").capacity, "100");
  EXPECT_EQ(options.tables.by_name.at("item").evict, Evict::lfu);
}

TEST(TableOptions, NameEveryMistake) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_config<RunOptions>(kRequired + text, "a.toml");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("[tables.item]\ncapcity = 5\n"),
              AllOf(HasSubstr("unknown key tables.item.capcity"), HasSubstr("capacity")));
  EXPECT_THAT(message("[tables.item]\ncapacity = '5 rows'\n"),
              AllOf(HasSubstr("tables.item.capacity"), HasSubstr("\"5 rows\""), HasSubstr("200M")));
  EXPECT_THAT(message("[tables.item]\nevict = 'lur'\n"), HasSubstr("did you mean \"lru\"?"));
  EXPECT_THAT(message("[tables.item]\noptimizer = 'adan'\n"), HasSubstr("adam"));
  EXPECT_THAT(message("[tables]\nplcae = 'host'\n"), HasSubstr("did you mean \"place\"?"));
}

TEST(TableOptions, AFrozenTableHasNoRate) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      const auto options = parse_config<RunOptions>(kRequired + text, "a.toml");
      table_configs(options, {FeatureSpec{.name = "item", .rows = 10}}, 8);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("[tables.item]\nrate_factor = 0.5\n"), "");
  EXPECT_EQ(message("[tables.item]\nfrozen = true\n"), "");
  EXPECT_THAT(message("[tables.item]\nrate_factor = 0\n"),
              HasSubstr("tables.item.frozen = true keeps its rows"));
  EXPECT_THAT(message("[tables.item]\nrate_factor = -1\n"), HasSubstr("tables.item.rate_factor"));
  EXPECT_THAT(message("[tables.item]\nfrozen = true\nrate_factor = 0.5\n"),
              HasSubstr("contradict each other"));
}

TEST(TableOptions, AreInTheReferencePage) {
  EXPECT_THAT(config_reference<RunOptions>(),
              AllOf(HasSubstr("[tables.NAME]"), HasSubstr("[tables.NAME.admit]")));
}

}  // namespace
}  // namespace hstu
